"""Formulation (19) of Peharz & Pernkopf (2012) as it stands, for a general solver: the reference and second opinion.

One binary for each parent set, one number for each sample (its margin, cut off at gamma), and either one number for
each variable (its place in an order, constraints (16)), or cluster inequalities (7), or both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from marginbayes import checks
from marginbayes.solvers import Moment
from marginbayes.structure.exact.clusters import choice_matrix, cluster_matrix, violated_clusters
from marginbayes.structure.exact.problem import DenseProblem

__all__ = ["Formulation", "FullBound", "MilpResult", "full_lp_bound", "solve_milp"]

Floats = NDArray[np.float64]
Set = tuple[int, ...]

ACYCLICITY = ("order", "clusters", "both")
SOLVERS = ("highs", "scip")


class MilpResult(NamedTuple):
    """Parents of each variable (None: nothing was found), objective, the solver's bound, status, and the way there.

    The bound is the solver's word: it holds within the solver's tolerances, and no evidence comes with it.
    """

    parents: tuple[Set, ...] | None
    objective: float
    bound: float
    status: str
    trace: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Formulation:
    """The matrices of (19); columns are the parent sets, the samples' margins, then the variables' places in order."""

    problem: DenseProblem

    @cached_property
    def sets(self) -> list[list[Set]]:
        """Parent sets of each variable."""
        found: list[list[Set]] = [[] for _ in self.problem.names]
        for option in self.problem.options:
            found[option.variable].append(option.parents)
        return found

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of columns of the three kinds."""
        return len(self.problem.options), len(self.problem.weights), len(self.problem.names)

    @property
    def unit(self) -> float:
        """The largest weight. Solvers get weights in units of it: their tolerances are absolute."""
        return float(self.problem.weights.max(initial=0.0)) or 1.0

    @property
    def gain(self) -> Floats:
        """What is maximised: the weighted sum of the margins, divided by `unit`."""
        options, _, variables = self.sizes
        return np.concatenate([np.zeros(options), self.problem.weights / self.unit, np.zeros(variables)])

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """Least and greatest value of each column; margins are at most gamma, constraint (15)."""
        options, samples, variables = self.sizes
        low = np.concatenate([np.zeros(options), np.full(samples, -np.inf), np.zeros(variables)])
        high = np.concatenate([np.ones(options), np.full(samples, self.problem.gamma), np.full(variables, variables)])
        return low, high

    @property
    def choice(self) -> sparse.csr_matrix:
        """Each variable takes one parent set (5): these sums are 1."""
        return self._wide(choice_matrix(self.sets))

    @property
    def margins(self) -> sparse.csr_matrix:
        """A margin is no more than that over each rival (14): these are at most 0."""
        rows = len(self.problem.sample)
        own = sparse.csr_matrix((np.ones(rows), (np.arange(rows), self.problem.sample)), shape=(rows, self.sizes[1]))
        return sparse.hstack(
            [-sparse.csr_matrix(self.problem.coefficients), own, sparse.csr_matrix((rows, self.sizes[2]))]
        ).tocsr()

    @property
    def order(self) -> tuple[sparse.csr_matrix, float]:
        """A parent's place is before its child's (16), with Delta = N: these are at least the second number."""
        options, samples, n = self.sizes
        pairs = sorted({(p, o.variable) for o in self.problem.options for p in o.parents})
        line = {pair: i for i, pair in enumerate(pairs)}
        rows, columns, values = [], [], []
        for place, option in enumerate(self.problem.options):
            for parent in option.parents:
                rows.append(line[parent, option.variable])
                columns.append(place)
                values.append(-2.0 * n)
        for (parent, child), i in line.items():
            rows += [i, i]
            columns += [options + samples + child, options + samples + parent]
            values += [1.0, -1.0]
        shape = (len(pairs), options + samples + n)
        return sparse.csr_matrix((values, (rows, columns)), shape=shape), 1.0 - 2.0 * n

    def cuts(self, clusters: Sequence[Set]) -> sparse.csr_matrix:
        """Left sides of (7) for these clusters: at least 1."""
        return self._wide(cluster_matrix(self.sets, clusters))

    def _wide(self, matrix: sparse.csr_matrix) -> sparse.csr_matrix:
        rest = sparse.csr_matrix((matrix.shape[0], self.sizes[1] + self.sizes[2]))
        return sparse.hstack([matrix, rest]).tocsr()

    def shares(self, x: Floats) -> list[Floats]:
        """The part of a solution that each variable's parent sets have."""
        parts = np.split(x[: self.sizes[0]], np.cumsum([len(own) for own in self.sets])[:-1])
        return [np.asarray(part) for part in parts]

    def parents(self, x: Floats) -> tuple[Set, ...]:
        """The parent set of greatest share of each variable."""
        return tuple(own[int(share.argmax())] for own, share in zip(self.sets, self.shares(x), strict=True))

    def value(self, parents: Sequence[Set]) -> float:
        """Soft margin of a structure, computed from its coefficients."""
        place = {(o.variable, o.parents): i for i, o in enumerate(self.problem.options)}
        return self.problem.objective([place[v, own] for v, own in enumerate(parents)])


def solve_milp(
    problem: DenseProblem,
    *,
    acyclicity: str = "order",
    solver: str = "highs",
    time_limit: float | None = None,
    gap: float = 1e-6,
    callback: Callable[[Moment], None] | None = None,
) -> MilpResult:
    """Solution of (19) by HiGHS (through SciPy), or by SCIP if PySCIPOpt is installed.

    Parameters
    ----------
    acyclicity : {"order", "clusters", "both"}, default="order"
        ``"order"`` as in the paper. ``"clusters"``: solve without, add the clusters of the cycles that are found, solve
        again (HiGHS takes no cuts while it runs; SCIP does, and needs one run). ``"both"``: order constraints, and the
        clusters that the linear relaxation violates.
    time_limit : float or None, default=None
        Seconds in all.
    gap : float, default=1e-6
        Relative to max(1, |objective|).
    callback : callable or None
        Called with a `Moment` after each run.
    """
    checks.one_of("acyclicity", acyclicity, ACYCLICITY)
    checks.one_of("solver", solver, SOLVERS)
    form = Formulation(problem)
    run = _Run(form, time_limit, gap, callback)
    clusters = full_lp_bound(problem, time_limit=run.left).clusters if acyclicity == "both" else []
    if solver == "scip":
        from marginbayes.structure.exact.scip import solve_scip

        order, lazy = acyclicity != "clusters", acyclicity != "order"
        return solve_scip(form, run.left, gap, clusters, order=order, lazy=lazy)
    return run.highs(clusters, order=acyclicity != "clusters")


class _Run:
    """Runs of HiGHS until the structure is acyclic."""

    def __init__(self, form: Formulation, limit: float | None, gap: float, callback: Any) -> None:
        self.form, self.limit, self.gap, self.callback = form, limit, gap, callback
        self.started = time.perf_counter()
        self.trace: list[tuple[float, float, float]] = []
        self.best: tuple[Set, ...] | None = None
        self.objective, self.bound = -np.inf, np.inf

    @property
    def left(self) -> float | None:
        """Seconds that are left."""
        return None if self.limit is None else max(0.0, self.limit - (time.perf_counter() - self.started))

    def highs(self, clusters: list[Set], *, order: bool) -> MilpResult:
        """Solve, and add the clusters of cycles, until there are none; Ctrl-C is heard when the solver comes back."""
        try:
            return self._rounds(clusters, order)
        except KeyboardInterrupt:
            return self._result("interrupted")

    def _rounds(self, clusters: list[Set], order: bool) -> MilpResult:
        while True:
            found = _call_highs(self.form, clusters, order, self.left, self.gap)
            if found.mip_dual_bound is not None:
                self.bound = min(self.bound, -self.form.unit * float(found.mip_dual_bound))
            new = self._look_at(found.x)
            self._tell(len(clusters))
            if found.status != 0 or not new:
                return self._result(_STATUS.get(found.status, found.message))
            clusters = [*clusters, *new]

    def _look_at(self, x: Floats | None) -> list[Set]:
        """Clusters that the solution violates; an acyclic one is kept if it is the best so far."""
        if x is None:
            return []
        new = violated_clusters(self.form.sets, [np.round(part) for part in self.form.shares(x)])
        if not new:
            parents = self.form.parents(x)
            value = self.form.value(parents)
            if value > self.objective:
                self.best, self.objective = parents, value
        return new

    def _tell(self, cuts: int) -> None:
        moment = Moment(time.perf_counter() - self.started, self.objective, self.bound, f"{cuts} clusters")
        self.trace.append((moment.seconds, moment.objective, moment.bound))
        if self.callback is not None:
            self.callback(moment)

    def _result(self, status: str) -> MilpResult:
        # The solver's bound may lie below by its tolerance.
        bound = max(self.bound, self.objective)
        return MilpResult(self.best, self.objective, bound, status, tuple(self.trace))


_STATUS = {0: "optimal", 1: "time limit", 2: "infeasible", 3: "unbounded"}


def _call_highs(form: Formulation, clusters: Sequence[Set], order: bool, limit: float | None, gap: float) -> Any:
    from scipy.optimize import Bounds, LinearConstraint, milp

    constraints = [LinearConstraint(form.choice, 1.0, 1.0), LinearConstraint(form.margins, -np.inf, 0.0)]
    if order:
        matrix, least = form.order
        constraints.append(LinearConstraint(matrix, least, np.inf))
    if clusters:
        constraints.append(LinearConstraint(form.cuts(clusters), 1.0, np.inf))
    whole = np.concatenate([np.ones(form.sizes[0]), np.zeros(sum(form.sizes[1:]))])
    options: dict[str, Any] = {"mip_rel_gap": gap}
    if limit is not None:
        options["time_limit"] = limit
    low, high = form.bounds
    return milp(-form.gain, integrality=whole, bounds=Bounds(low, high), constraints=constraints, options=options)


class FullBound(NamedTuple):
    """Bound of the linear relaxation, the clusters it needed, and whether no cluster is violated any more."""

    bound: float
    clusters: list[Set]
    complete: bool


def full_lp_bound(problem: DenseProblem, *, time_limit: float | None = None) -> FullBound:
    """Value of the linear relaxation of (19) with all rows, all columns and all cluster inequalities."""
    from scipy.optimize import linprog

    form = Formulation(problem)
    known: list[Set] = []
    started, bound = time.perf_counter(), np.inf
    keep = sum(form.sizes[:2])  # the places in order have no constraint here
    low, high = form.bounds
    margins, choice = form.margins[:, :keep], form.choice[:, :keep]
    while True:
        rows = sparse.vstack([margins, -form.cuts(known)[:, :keep]]) if known else margins
        right = np.concatenate([np.zeros(margins.shape[0]), -np.ones(len(known))])
        left = None if time_limit is None else max(0.01, time_limit - (time.perf_counter() - started))
        found = linprog(
            -form.gain[:keep],
            A_ub=rows,
            b_ub=right,
            A_eq=choice,
            b_eq=np.ones(choice.shape[0]),
            bounds=np.column_stack([low, high])[:keep],
            method="highs",
            options={} if left is None else {"time_limit": left},
        )
        if found.status != 0:
            return FullBound(bound, known, False)
        bound = min(bound, -form.unit * float(found.fun))
        new = violated_clusters(form.sets, form.shares(found.x))
        if not new:
            return FullBound(bound, known, True)
        known += [c for c in new if c not in known]
