"""Maximum likelihood: smoothed relative frequencies, or expectation maximisation where cells are missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbayes import checks
from marginbayes.data.counts import family_counts
from marginbayes.data.rows import Block, Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.network.evaluate import Evaluator, normalise_logs
from marginbayes.network.smoothing import KINDS, log_table
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.solvers.interrupt import kernel_interrupts

__all__ = ["MaximumLikelihood"]

Floats = NDArray[np.float64]


class MaximumLikelihood(ParameterLearner):
    """Smoothed maximum-likelihood tables.

    Parameters
    ----------
    smoothing : float, default=1.0
        The amount; what it means depends on `kind`.
    kind : {"laplace", "ess", "dirichlet", "floor"}, default="laplace"
        ``"laplace"`` adds the amount to every cell. ``"ess"`` spreads an equivalent sample size over all cells of a
        table (BDeu). ``"dirichlet"`` adds that many observations to every row, distributed like the child itself
        (Friedman, Geiger & Goldszmidt 1997, who use 5). ``"floor"`` replaces zero probabilities by the amount (1e-5 in
        Pernkopf & Bilmes 2010) and scales the row back to one.
    missing : {"available", "em"}, default="available"
        ``"available"`` counts for each family the rows in which all of it is observed. ``"em"`` maximises the smoothed
        likelihood of what is observed by expectation maximisation, started there.
    max_iter : int, default=200
        Most EM steps.
    tol : float, default=1e-7
        EM stops when a step improves the objective by less than this, relative to its size.
    """

    def __init__(
        self,
        smoothing: float = 1.0,
        kind: str = "laplace",
        missing: str = "available",
        max_iter: int = 200,
        tol: float = 1e-7,
    ) -> None:
        self.smoothing = smoothing
        self.kind = kind
        self.missing = missing
        self.max_iter = max_iter
        self.tol = tol

    def learn(self, schema: Schema, dag: Dag, rows: Rows) -> ParameterResult:
        """Network with this graph for these rows."""
        self._check()
        families = [(*parents, child) for child, parents in enumerate(dag.parents)]
        network = self.from_counts(schema, dag, family_counts(rows, families))
        if self.missing == "em" and rows.is_missing().any():
            return self._maximise(network, rows.merged()[0])
        return ParameterResult(network)

    def from_counts(self, schema: Schema, dag: Dag, counts: list[Floats]) -> Network:
        """Network from the counts of every family; the list is used up."""
        tables = []
        for _ in range(len(counts)):
            # One after the other, so that counts and tables are never all there at once; read-only is not copied again.
            tables.append(log_table(counts.pop(0), self.kind, self.smoothing))
            tables[-1].setflags(write=False)
        return Network(schema, dag, tuple(tables))

    def _check(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        checks.one_of("missing", self.missing, ("available", "em"))
        checks.not_negative("smoothing", self.smoothing)
        checks.whole("max_iter", self.max_iter)
        checks.not_negative("tol", self.tol, infinite=True)
        if self.missing == "em" and self.kind in ("dirichlet", "floor"):
            raise ValueError(
                f"missing='em' needs a prior that stays the same in every step; kind={self.kind!r} is none"
            )

    # -- expectation maximisation

    def _maximise(self, network: Network, rows: Rows) -> ParameterResult:
        path: list[float] = []
        try:
            with kernel_interrupts():
                for _ in range(self.max_iter):
                    counts, likelihood = expectation(network, rows)
                    path.append(likelihood + self._log_prior(network))
                    if len(path) > 1 and path[-1] - path[-2] <= self.tol * max(1.0, abs(path[-1])):
                        break
                    network = self.from_counts(network.schema, network.dag, counts)
        except KeyboardInterrupt:  # every step has raised the likelihood
            return ParameterResult(network, path=tuple(path), status="interrupted")
        return ParameterResult(network, path=tuple(path))

    def _log_prior(self, network: Network) -> float:
        """Log density, up to a constant, of the Dirichlet prior whose mode the smoothed tables are."""
        amounts = [self.smoothing / (t.size if self.kind == "ess" else 1) for t in network.tables]
        return float(sum(a * t.sum() for a, t in zip(amounts, network.tables, strict=True) if a > 0))


def expectation(network: Network, rows: Rows) -> tuple[list[Floats], float]:
    """Expected counts of all families under the network, and the log-likelihood of what is observed."""
    evaluator = Evaluator(network.dag, network.schema.cardinalities, network.tables, 0, network.normalized)
    total = rows.sum(_expectation, evaluator)
    return evaluator.unflatten(total[:-1]), float(total[-1])


def _expectation(block: Block, evaluator: Evaluator) -> Floats:
    """Expected counts of one block, flat, and behind them its log-likelihood."""
    rows = Rows(block.codes, block.cardinalities)
    chances = _class_chances(rows, evaluator)
    # log P(row) = sum_c P(c | row) log P(c, row) + entropy of P(c | row); the kernel adds up the first term.
    entropy = -xlogy(chances, chances).sum(axis=1)
    row_weights = np.ones(len(block)) if block.weights is None else block.weights
    counts, likelihood = evaluator.expected_counts(rows, chances * row_weights[:, None])
    return np.append(counts, likelihood + entropy @ row_weights)


def _class_chances(rows: Rows, evaluator: Evaluator) -> Floats:
    """P(class | row): certain where the class is observed."""
    levels, labels = evaluator.cardinalities[0], rows.codes[0]
    chances = np.zeros((len(rows), levels))
    known = labels < levels
    chances[known, labels[known]] = 1.0
    if not known.all():
        chances[~known] = normalise_logs(evaluator.log_joint(rows.take(~known)))
    return chances
