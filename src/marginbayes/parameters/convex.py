"""The published convex margin problem, literally: solved exactly, or by the published barrier path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.coordinate import MarginRows
from marginbayes.solvers.hinge import HingeSolution, solve_hinge

__all__ = ["MarginConvex"]

Floats = NDArray[np.float64]
METHODS = ("exact", "barrier")


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
    outer_steps, inner_steps : int, default=7, 20
        Values of the barrier's parameter mu, each a tenth of the one before and the first 1, and most Newton steps for
        each.
    subnormal : bool, default=False
        Where two parents of a feature are not joined (Proposition 2 fails), return tables whose rows sum to less than
        one, instead of refusing.
    normalize : {"likeliest", "plain"}, default="likeliest"
        How weights become a network: of all networks with the same answers for complete rows the likeliest, which also
        answers well with features missing, or the one that the renormalisation of Guo et al. gives.
    smoothing : float, default=1.0
        Of the maximum-likelihood tables (Laplace) at the start of the barrier path and in families without the class.
    max_bytes : float, default=2e9
        Largest matrix to be factorised; its side is about the number of table entries.
    callback : callable, default=None
        Given a `Moment` as the work proceeds; the exact method reports L, the barrier path the objective.

    Notes
    -----
    A family with a missing member adds nothing to a row's score while learning. Ctrl-C keeps the best so far.
    """

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
        self.callback = callback

    def learn(self, schema: Schema, dag: Dag, rows: Rows) -> ParameterResult:
        """Network with this graph for these rows, and the certificate of the convex problem."""
        self._check()
        check_normalize(self.normalize, self.smoothing)
        check_married("MarginConvex", dag, self.subnormal)
        start = MaximumLikelihood(self.smoothing).learn(schema, dag, rows).network
        design = Design.of(dag, rows)
        merged = distinct_rows(design)
        if self.method == "barrier":
            return self._by_barrier(schema, dag, design, merged, start)
        return self._exactly(schema, dag, design, merged, start)

    # -- exact

    def _exactly(self, schema: Schema, dag: Dag, design: Design, rows: MarginRows, start: Network) -> ParameterResult:
        found = solve_hinge(
            rows, redundant_cells(design), tol=self.tol, max_bytes=self.max_bytes, callback=self.callback
        )
        if self.hard and not found.separable:
            raise ValueError(
                "hard=True needs rows that some network of this structure classifies without error; these are not, "
                "so the largest least margin is 0 and any uniform network has it; use hard=False"
            )
        gamma = self._gamma(found)
        weights = gamma * found.weights
        network = as_network(schema, design, weights, start, self.normalize)
        certificate = self._hard_certificate if self.hard else self._exact_certificate
        path = tuple(loss for _, loss, _ in found.trace)
        return ParameterResult(network, certificate(dag, design, rows, found, gamma), path)

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
        elif status == "optimal":
            status = f"optimal within |u| <= {found.radius:.3g}"
        evidence = self._evidence(dag, design, rows, found, gamma) | {"radius": found.radius, "method": self.method}
        trace = [(t, *(1.5 * (self.B * max(0.0, v)) ** (2 / 3) for v in pair)) for t, *pair in found.trace]
        return Certificate("margin-convex", "min", objective, bound, status, found.seconds, trace, evidence)

    def _hard_certificate(
        self, dag: Dag, design: Design, rows: MarginRows, found: HingeSolution, gamma: float
    ) -> Certificate:
        least = gamma * (1.0 - _worst_lack(rows, found.weights))
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
        network = as_network(schema, design, path.weights, start, self.normalize)
        return ParameterResult(network, self._barrier_certificate(dag, design, path), path.values)

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
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r} is not known; choose one of {', '.join(map(repr, METHODS))}")
        if not (self.B > 0 and np.isfinite(self.B)):
            raise ValueError(f"B={self.B!r} must be a positive number")
        if not (self.gamma_limit > 0 and np.isfinite(self.gamma_limit)):
            raise ValueError(f"gamma_limit={self.gamma_limit!r} must be a positive number")
        if self.hard and self.method != "exact":
            raise ValueError(f"hard=True has no method {self.method!r}; use method='exact'")
        if self.method == "barrier" and not self.smoothing > 0:
            raise ValueError(f"the barrier starts at finite log tables; smoothing={self.smoothing!r} must be positive")
        if min(self.outer_steps, self.inner_steps) < 1:
            raise ValueError(
                f"outer_steps={self.outer_steps!r} and inner_steps={self.inner_steps!r} must be positive whole numbers"
            )


def _worst_lack(rows: MarginRows, weights: Floats) -> float:
    """How much the row with the least margin lacks of margin 1; negative if it has more."""
    scores = rows.scores(weights)
    at = np.arange(len(rows))
    own = scores[at, rows.labels].copy()
    scores[at, rows.labels] = -np.inf
    return float(1.0 - (own - scores.max(axis=1)).min())


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
