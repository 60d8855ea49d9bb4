"""Margin of the Markov network: the support vector machine over one-hot features, renormalised to a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.certified import (
    as_network,
    check_married,
    check_normalize,
    distinct_rows,
    graph_evidence,
    sparse,
)
from marginbayes.parameters.design import Design
from marginbayes.parameters.likelihood import MaximumLikelihood
from marginbayes.parameters.tuning import learn_tuned
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.coordinate import MarginRows, MarginSolution, solve_margin

__all__ = ["MarginMarkov", "MarkovResult"]

Floats = NDArray[np.float64]
SHRINKAGES = ("zero", "ml")


@dataclass(frozen=True)
class MarkovResult(ParameterResult):
    """Also what the solver found: where another cost can start."""

    solution: MarginSolution | None = None


class MarginMarkov(ParameterLearner):
    """Tables of the maximum margin Markov network (M3N), with a certificate.

    Minimises ``|w|^2 / 2 + C sum_n max(0, 1 - margin_n(w))``, problem (11) of Guo, Wilkinson & Schuurmans (2005): the
    weights w have one entry for each entry of the tables, and the margin of a row is the score of its class less the
    best score of another (Crammer & Singer 2001). The weights are then made a proper network that decides alike.

    Parameters
    ----------
    C : float, default=1.0
        Cost of missing margin. A row has one feature for each family, so strong shrinkage begins near 1 / families.
    shrink : {"zero", "ml"}, default="zero"
        Towards what: zero weights, as published, or a multiple of the maximum-likelihood log tables,
        ``w = s w_ML + U`` with the squared norm on U. The multiple s is all but free: its penalty is
        ``scale_penalty * C * (weight of the rows) * s^2 / 2``.
    tol : float, default=1e-6
        Wanted gap between objective and bound, relative to the objective.
    max_iter : int, default=10000
        Most sweeps over the rows.
    subnormal : bool, default=False
        Where two parents of a feature are not joined (Proposition 2 fails), return tables whose rows sum to less than
        one, instead of refusing. They decide alike for complete rows; a missing feature is summed out under weights
        that are no probabilities.
    normalize : {"likeliest", "plain"}, default="likeliest"
        How weights become a network: of all networks with the same answers for complete rows the likeliest, which also
        answers well with features missing, or the one that the renormalisation of Guo et al. gives.
    smoothing : float, default=1.0
        Of the maximum-likelihood tables (Laplace), which `shrink="ml"` and families without the class use.
    scale_penalty : float, default=1e-3
        Of the multiple s with `shrink="ml"`.
    tune : bool or dict, default=False
        Choose parameters by held-out accuracy: True takes the grid of C in ``MarginMarkov.GRID``, a dict maps names of
        parameters to the values to try. Each value starts from the multipliers of the one before.
    n_jobs : int or None, default=None
        Threads over the folds of `tune`; the descent itself visits one row after the other.
    random_state : int or None, default=0
        Seed of the order in which rows are visited, which changes the result by no more than `tol`, and of the folds of
        `tune`.
    callback : callable, default=None
        Given a `Moment` with objective and bound after every ten sweeps.

    Notes
    -----
    A family with a missing member adds nothing to a row's score while learning. A sweep costs rows x families x
    classes, memory is one number for each row and class. The larger C, the more sweeps it takes; where `max_iter` ends
    them, the certificate tells how far they got. Ctrl-C keeps the best weights so far.
    """

    GRID: ClassVar[Mapping[str, Sequence[Any]]] = {"C": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)}
    TUNING_TOL: ClassVar[float] = 1e-4

    def __init__(
        self,
        C: float = 1.0,
        *,
        shrink: str = "zero",
        tol: float = 1e-6,
        max_iter: int = 10_000,
        subnormal: bool = False,
        normalize: str = "likeliest",
        smoothing: float = 1.0,
        scale_penalty: float = 1e-3,
        tune: bool | Mapping[str, Sequence[Any]] = False,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        callback: Callable[[Moment], object] | None = None,
    ) -> None:
        self.C = C
        self.shrink = shrink
        self.tol = tol
        self.max_iter = max_iter
        self.subnormal = subnormal
        self.normalize = normalize
        self.smoothing = smoothing
        self.scale_penalty = scale_penalty
        self.tune = tune
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def learn(
        self,
        schema: Schema,
        dag: Dag,
        rows: Rows,
        previous: ParameterResult | None = None,
        design: Design | None = None,
    ) -> ParameterResult:
        """Network with this graph for these rows, and the certificate of the margin problem.

        Parameters
        ----------
        previous : MarkovResult, default=None
            Of the same graph and rows with other parameters: the descent starts from its multipliers.
        design : Design, default=None
            The index arrays of this graph and these rows, if they are there already.
        """
        self._check()
        if self.tune:
            return learn_tuned(self, schema, dag, rows)
        check_normalize(self.normalize, self.smoothing)
        check_married("MarginMarkov", dag, self.subnormal)
        start = MaximumLikelihood(self.smoothing).learn(schema, dag, rows).network
        design = design or Design.of(dag, rows)
        merged = distinct_rows(design)
        reference = design.flatten(start.tables) if self.shrink == "ml" else np.zeros(design.shape)
        found = self._solve(merged, reference, previous.solution if isinstance(previous, MarkovResult) else None)
        network, status = as_network(schema, design, found.scale * reference + found.weights, start, self.normalize)
        path = tuple(objective for _, objective, _ in found.trace)
        return MarkovResult(network, self._certificate(dag, design, merged, found), path, status, solution=found)

    def _solve(self, rows: MarginRows, reference: Floats, start: MarginSolution | None) -> MarginSolution:
        free = self.shrink == "ml"
        found = solve_margin(
            rows,
            self.C * rows.row_weights,
            rows.scores(reference) if free else None,
            self.scale_penalty * self.C * float(rows.row_weights.sum()) if free else 0.0,
            start=start,
            tol=self.tol,
            max_sweeps=self.max_iter,
            seed=int(np.random.default_rng().integers(2**31)) if self.random_state is None else self.random_state,
            callback=self.callback,
        )
        # With one class there is no rival, no margin to miss and no bound to prove.
        return replace(found, bound=min(found.bound, found.objective))

    def _certificate(self, dag: Dag, design: Design, rows: MarginRows, found: MarginSolution) -> Certificate:
        evidence = {
            **graph_evidence(dag, design),
            "C": self.C,
            "shrink": self.shrink,
            "scale_penalty": self.scale_penalty,
            "smoothing": self.smoothing,
            "gap": self.tol,
            "scale": found.scale,
            "weights": found.weights,
            "duals": sparse(rows.labels, found.multipliers),
        }
        numbers = found.objective, found.bound, found.status, found.seconds, found.trace
        return Certificate("margin-markov", "min", *numbers, evidence=evidence)

    def _check(self) -> None:
        checks.one_of("shrink", self.shrink, SHRINKAGES)
        checks.positive("C", self.C)
        checks.positive("scale_penalty", self.scale_penalty)
        if self.shrink == "ml":
            checks.positive("smoothing", self.smoothing, note=": shrink='ml' needs finite log tables")
        checks.not_negative("tol", self.tol, infinite=True)
        checks.whole("max_iter", self.max_iter, 1)
        checks.jobs("n_jobs", self.n_jobs)
        checks.whole("random_state", self.random_state, none=True)
