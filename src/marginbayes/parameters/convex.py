"""The published convex margin problem, literally: solved exactly, or by the published barrier path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.parameters.barrier import BarrierPath, barrier_path
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.certified import (
    as_network,
    check_married,
    check_normalize,
    distinct_rows,
    graph_evidence,
    sparse,
    subnormalised,
)
from marginbayes.parameters.design import Design
from marginbayes.parameters.likelihood import MaximumLikelihood
from marginbayes.parameters.redundant import redundant_cells
from marginbayes.parameters.tuning import learn_tuned
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.coordinate import MarginRows
from marginbayes.solvers.hinge import HingeSolution, solve_hinge

__all__ = ["ConvexResult", "MarginConvex"]

Floats = NDArray[np.float64]
METHODS = ("exact", "barrier")


@dataclass(frozen=True)
class ConvexResult(ParameterResult):
    """Also what the exact method found, which is the same for every B."""

    solution: HingeSolution | None = None


class MarginConvex(ParameterLearner):
    """Tables of the maximum margin Bayesian network by the published convex problem, with a certificate.

    Problem (14) of Guo, Wilkinson & Schuurmans (2005), (12)-(16) of Tschiatschek & Pernkopf (2012): minimise
    ``1 / (2 gamma^2) + B sum_n eps_n`` such that every row beats every other class by ``gamma - eps_n`` and no row of a
    table sums to more than one. It is a study, not a recommendation: the constraint on the tables never binds, the
    optimum is ``3/2 (B L)^(2/3)`` with L the least sum of hinges without any regulariser, **B never changes a
    decision**, and where the training rows are separable there is no optimum at all. See the page on the collapse of
    the convex problem; `MarginHybrid` and `MarginMarkov` are the well-posed learners.

    Parameters
    ----------
    B : float, default=1.0
        Cost of missing margin: with ``method="exact"`` only a temperature of the probabilities.
    method : {"exact", "barrier"}, default="exact"
        ``"exact"``: the optimum, proved by multipliers among weights up to a radius that the certificate states.
        ``"barrier"``: damped Newton steps on the logarithmic barrier (18) as published. That barrier has no minimiser
        either, so the result is *defined* by its start, the smoothed maximum-likelihood tables divided by two, and by
        the numbers of steps.
    hard : bool, default=False
        The problem without slack, (9) and (10): for separable rows it is unbounded, which the certificate says; other
        rows are refused. Only with ``method="exact"``.
    gamma_limit : float, default=10.0
        Least margin, in nats, of the network returned where there is no optimum because any margin can be reached.
    tol : float, default=1e-7
        Wanted gap of the exact method, relative to L.
    outer_steps : int, default=7
        Values of the barrier's parameter mu, each a tenth of the one before and the first 1.
    inner_steps : int, default=20
        Most Newton steps for each of them.
    subnormal : bool, default=False
        Where two parents of a feature are not joined (Proposition 2 fails), return tables whose rows sum to less than
        one, instead of refusing.
    normalize : {"likeliest", "plain"}, default="likeliest"
        How weights become a network: of all networks with the same answers for complete rows the likeliest, which also
        answers well with features missing, or the one that the renormalisation of Guo et al. gives.
    smoothing : float, default=1.0
        Of the maximum-likelihood tables (Laplace) at the start of the barrier path and in families without the class.
    max_bytes : float, default=2e9
        Largest matrix to be factorised; its side is about the number of table entries, for the barrier of those that
        rows use.
    tune : bool or dict, default=False
        Choose parameters by held-out accuracy: True takes the grid of B in ``MarginConvex.GRID``, a dict maps names of
        parameters to the values to try. With the exact method every B has the same accuracy, so the first one is taken;
        its linear program is solved once for all of them.
    n_jobs : int or None, default=None
        Threads over the folds of `tune`.
    random_state : int or None, default=None
        Seed of the folds of `tune`.
    callback : callable, default=None
        Given a `Moment` as the work proceeds; the exact method reports L, the barrier path the objective.

    Notes
    -----
    A family with a missing member adds nothing to a row's score while learning. Ctrl-C keeps the best so far.
    """

    GRID: ClassVar[Mapping[str, Sequence[Any]]] = {"B": (0.01, 0.1, 1.0, 10.0, 100.0)}

    def __init__(
        self,
        B: float = 1.0,
        method: str = "exact",
        *,
        hard: bool = False,
        gamma_limit: float = 10.0,
        tol: float = 1e-7,
        outer_steps: int = 7,
        inner_steps: int = 20,
        subnormal: bool = False,
        normalize: str = "likeliest",
        smoothing: float = 1.0,
        max_bytes: float = 2e9,
        tune: bool | Mapping[str, Sequence[Any]] = False,
        n_jobs: int | None = None,
        random_state: int | None = None,
        callback: Callable[[Moment], object] | None = None,
    ) -> None:
        self.B = B
        self.method = method
        self.hard = hard
        self.gamma_limit = gamma_limit
        self.tol = tol
        self.outer_steps = outer_steps
        self.inner_steps = inner_steps
        self.subnormal = subnormal
        self.normalize = normalize
        self.smoothing = smoothing
        self.max_bytes = max_bytes
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
        """Network with this graph for these rows, and the certificate of the convex problem.

        Parameters
        ----------
        previous : ConvexResult, default=None
            Of the same graph and rows with another B: what the exact method found then is used again.
        design : Design, default=None
            The index arrays of this graph and these rows, if they are there already.
        """
        if self.tune:
            return learn_tuned(self, schema, dag, rows)
        self._check()
        check_normalize(self.normalize, self.smoothing)
        check_married("MarginConvex", dag, self.subnormal)
        start = MaximumLikelihood(self.smoothing).learn(schema, dag, rows).network
        design = design or Design.of(dag, rows)
        merged = distinct_rows(design)
        if self.method == "barrier":
            return self._by_barrier(schema, dag, design, merged, start)
        known = previous.solution if isinstance(previous, ConvexResult) else None
        found = known if known is not None and self._still_holds(known, merged) else self._solved(merged, design)
        return self._exactly(schema, dag, design, merged, start, found)

    # -- exact

    def _solved(self, rows: MarginRows, design: Design) -> HingeSolution:
        return solve_hinge(
            rows, redundant_cells(design), tol=self.tol, max_bytes=self.max_bytes, callback=self.callback
        )

    def _still_holds(self, found: HingeSolution, rows: MarginRows) -> bool:
        """Whether an earlier solution is one of these rows, and as good as wanted."""
        same = found.multipliers.shape == (len(rows), rows.shape[1]) and found.loss == rows.hinges(found.weights)
        return same and (found.separable or found.loss - found.bound <= self.tol * found.loss)

    def _exactly(
        self, schema: Schema, dag: Dag, design: Design, rows: MarginRows, start: Network, found: HingeSolution
    ) -> ParameterResult:
        if self.hard and not found.separable:
            if found.status == "interrupted":  # nothing is known yet
                raise KeyboardInterrupt
            raise ValueError(
                "hard=True needs rows that some network of this structure classifies without error; these are not, "
                "so the largest least margin is 0 and any uniform network has it; use hard=False"
            )
        gamma = self._gamma(found)
        weights = gamma * found.weights
        network, status = as_network(schema, design, weights, start, self.normalize)
        certificate = self._hard_certificate if self.hard else self._exact_certificate
        path = tuple(loss for _, loss, _ in found.trace)
        return ConvexResult(network, certificate(dag, design, rows, found, gamma), path, status, solution=found)

    def _gamma(self, found: HingeSolution) -> float:
        """Margin at the optimum for the loss found, (B L)^(-1/3); its limit where there is none."""
        return self.gamma_limit if found.separable else float((self.B * found.loss) ** (-1 / 3))

    def _exact_certificate(
        self, dag: Dag, design: Design, rows: MarginRows, found: HingeSolution, gamma: float
    ) -> Certificate:
        objective = 1 / (2 * gamma**2) + self.B * gamma * found.loss
        bound = 0.0 if found.separable else 1.5 * (self.B * max(0.0, found.bound)) ** (2 / 3)
        status = found.status
        if found.separable:
            status = "not attained: the rows are separable, the infimum is 0 and gamma grows without end"
        else:
            status = f"{status} within |u| <= {found.radius:.3g}"
        evidence = self._evidence(dag, design, rows, found, gamma) | {"radius": found.radius, "method": self.method}
        trace = [(t, *(1.5 * (self.B * max(0.0, v)) ** (2 / 3) for v in pair)) for t, *pair in found.trace]
        return Certificate("margin-convex", "min", objective, bound, status, found.seconds, trace, evidence)

    def _hard_certificate(
        self, dag: Dag, design: Design, rows: MarginRows, found: HingeSolution, gamma: float
    ) -> Certificate:
        least = gamma * rows.least_margin(found.weights)
        evidence = self._evidence(dag, design, rows, found, gamma)
        return Certificate("margin-hard", "max", least, np.inf, "unbounded", found.seconds, evidence=evidence)

    def _evidence(
        self, dag: Dag, design: Design, rows: MarginRows, found: HingeSolution, gamma: float
    ) -> dict[str, Any]:
        witness = {"levels": found.levels, "core": found.core_weights} if found.separable else {}
        return {
            **graph_evidence(dag, design),
            **witness,
            "B": self.B,
            "gamma": gamma,
            "gap": self.tol,
            "weights": subnormalised(design, gamma * found.weights),
            "separable": found.separable,
            "duals": sparse(rows.labels, found.multipliers),
        }

    # -- barrier

    def _by_barrier(
        self, schema: Schema, dag: Dag, design: Design, rows: MarginRows, start: Network
    ) -> ParameterResult:
        first = design.flatten(start.tables) - np.log(2.0)
        path = barrier_path(
            rows, _groups(design), first, self.B, self.outer_steps, self.inner_steps, self.max_bytes, self.callback
        )
        network, status = as_network(schema, design, path.weights, start, self.normalize)
        return ParameterResult(network, self._barrier_certificate(dag, design, path), path.values, status)

    def _barrier_certificate(self, dag: Dag, design: Design, path: BarrierPath) -> Certificate:
        evidence = {
            **graph_evidence(dag, design),
            "B": self.B,
            "gamma": path.gamma,
            "weights": path.weights,
            "separable": False,
            "radius": 0.0,
            "method": self.method,
            "duals": {"rows": [], "classes": [], "values": []},
        }
        return Certificate("margin-convex", "min", path.objective, 0.0, path.status, path.seconds, path.trace, evidence)

    def _check(self) -> None:
        checks.one_of("method", self.method, METHODS)
        checks.positive("B", self.B)
        checks.positive("gamma_limit", self.gamma_limit)
        checks.not_negative("tol", self.tol, infinite=True)
        checks.whole("outer_steps", self.outer_steps, 1)
        checks.whole("inner_steps", self.inner_steps, 1)
        checks.positive("max_bytes", self.max_bytes, infinite=True)
        checks.jobs("n_jobs", self.n_jobs)
        checks.whole("random_state", self.random_state, none=True)
        if self.hard and self.method != "exact":
            raise ValueError(f"hard=True has no method {self.method!r}; use method='exact'")
        if self.method == "barrier":
            checks.positive("smoothing", self.smoothing, note=": the barrier starts at finite log tables")


def _groups(design: Design) -> NDArray[np.int64]:
    """For each entry of the weights (cells x classes) the number of the row of a table that it belongs to."""
    numbers, start = [], 0
    for i in range(len(design.dag.names)):
        if i not in design.families:
            numbers.append(np.zeros(1))
            continue
        shape = [design.cardinalities[v] for v in (*design.dag.parents[i], i)]
        rows = start + np.arange(int(np.prod(shape[:-1]))).reshape([*shape[:-1], 1])
        numbers.append(np.broadcast_to(rows, shape).astype(np.float64))
        start += int(np.prod(shape[:-1]))
    return design.flatten(numbers).astype(np.int64)
