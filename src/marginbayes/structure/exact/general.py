"""Exact soft margin for parent sets of any size: branch and bound with cluster inequalities, and its certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.interrupt import interruptible
from marginbayes.structure.base import StructureResult
from marginbayes.structure.constraints import Constraints
from marginbayes.structure.exact.clusters import RelaxedFamilies
from marginbayes.structure.exact.clustertree import ClusterTree, tree_evidence
from marginbayes.structure.exact.families import ParentSpace
from marginbayes.structure.exact.marginlp import MarginProof, MarginRelaxation, TimeUp, climb
from marginbayes.structure.exact.milp import Formulation, MilpResult, solve_milp
from marginbayes.structure.exact.orders import OrderSearch
from marginbayes.structure.exact.problem import DenseProblem, check_start, dense_problem, margin_rows, merged_samples

__all__ = ["GENERAL_KIND", "learn_general", "learn_milp"]

Set = tuple[int, ...]
Callback = Callable[[Moment], None] | None

# A gap below this is rounding.
ROUNDING = 1e-9

GENERAL_KIND, MILP_KIND = "exact-margin-general", "exact-margin-milp"


def learn_general(
    schema: Schema,
    rows: Rows,
    *,
    start: Dag | None = None,
    time_limit: float | None = None,
    gap: float = 1e-6,
    callback: Callback = None,
    **problem_settings: Any,
) -> StructureResult:
    """The structure of greatest soft margin with any number of feature parents, and a certificate that can be verified.

    Every coefficient is held in memory and the relaxation is solved by a general linear solver, so this is for small
    problems, or for a bound after some time on others. With one feature parent branchings are far faster.
    `problem_settings` are those of `dense_problem`.
    """
    started = time.perf_counter()
    with interruptible() as wished:  # Ctrl-C counts once there is a structure to end with
        problem, stated = _stated(schema, rows, gap, **problem_settings)
        run = _Run(problem, start, time_limit, gap, callback, started, wished)
    ended = "interrupted" if wished() else run.go()
    tree, bound, interrupted = run.tree, run.tree.bound, ended == "interrupted"
    closed = bound - tree.value <= max(gap, ROUNDING) * max(1.0, abs(tree.value))
    status = "optimal" if closed else "stalled" if ended == "optimal" else ended  # by rounding, if at all
    evidence = {
        **stated,
        "parents": [list(own) for own in tree.parents],
        **tree_evidence(tree.leaves, tree.fixes, _plain_proofs(problem, rows)),
    }
    trace = [*run.trace, (run.seconds, tree.value, bound)]
    certificate = Certificate(GENERAL_KIND, "max", tree.value, bound, status, run.seconds, trace, evidence)
    finished = "interrupted" if interrupted else "finished"
    return StructureResult(Dag(schema.names, tree.parents), certificate, tree.value, status=finished)


class _Run:
    """One search: time, progress and suggestions."""

    def __init__(
        self,
        problem: DenseProblem,
        start: Dag | None,
        limit: float | None,
        gap: float,
        callback: Callback,
        started: float,
        wished: Callable[[], bool] = bool,
    ) -> None:
        self.wished = wished
        self.started, self.limit, self.callback = started, math.inf if limit is None else limit, callback
        self.trace: list[tuple[float, float, float]] = []
        self.relaxation = MarginRelaxation(problem, lambda: self.limit - self.seconds)
        self.form: Formulation = self.relaxation.form
        self._seen: set[tuple[Set, ...]] = set()
        self.tree = ClusterTree(self.relaxation, self._first(start), self.suggest, gap)

    def _first(self, start: Dag | None) -> tuple[Set, ...]:
        if start is not None:
            given = tuple(tuple(sorted(own)) for own in start.reindexed(self.form.problem.names).parents)
            check_start(self.form.problem.names, self.form.sets, given)
            return climb(self.form, given, self._in_time)
        search = OrderSearch(self.relaxation.families)
        parents = search.parents(search.greedy())
        if parents is None:
            raise ValueError("no acyclic graph obeys the constraints")
        return climb(self.form, parents, self._in_time)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.started

    def _in_time(self) -> bool:
        return self.seconds < self.limit and not self.wished()

    def go(self) -> str:
        """Run to the end; why it ended."""
        try:
            return "optimal" if self.tree.run(lambda: not self._in_time(), self._tell) else "time limit"
        except TimeUp:
            return "time limit"
        except KeyboardInterrupt:
            return "interrupted"

    def _tell(self, tree: ClusterTree) -> None:
        moment = Moment(self.seconds, tree.value, tree.bound, f"{tree.nodes} nodes")
        self.trace.append((moment.seconds, moment.objective, moment.bound))
        if self.callback is not None:
            self.callback(moment)

    def suggest(self, found: RelaxedFamilies) -> Sequence[tuple[Set, ...]]:
        """Round a solution: the order that its shares prefer, the best parents along it, then single changes."""
        families = self.relaxation.families
        order = OrderSearch(families, found.shares).greedy()
        parents = OrderSearch(families, self.relaxation.family_values(found.proof)).parents(order)
        if parents is None or parents in self._seen:
            return []
        self._seen.add(parents)
        return [climb(self.form, parents, self._in_time)]


# -- evidence


def _stated(
    schema: Schema,
    rows: Rows,
    gap: float,
    *,
    k: int = 1,
    class_parents: int = 0,
    constraints: Constraints | None = None,
    smoothing: float = 1.0,
    **others: Any,
) -> tuple[DenseProblem, dict[str, Any]]:
    """The problem, and what a certificate says of it."""
    shared: dict[str, Any] = {"k": k, "class_parents": class_parents, "constraints": constraints}
    problem = dense_problem(schema, rows, smoothing=smoothing, **shared, **others)
    return problem, {
        "margin": problem.margin,
        "gamma": problem.gamma,
        "smoothing": float(smoothing),
        "gap": gap,
        "weight": float(problem.weights.sum()),
        "cardinalities": list(rows.cardinalities),
        "space": ParentSpace.of(schema.names, **shared).to_evidence(),
    }


def _plain_proofs(problem: DenseProblem, rows: Rows) -> Callable[[MarginProof], dict[str, Any]]:
    """How a proof is written down: a margin row by the place of its sample among the sorted samples, and its rival."""
    samples = merged_samples(rows)
    place = np.unique(samples.codes.T, axis=0, return_inverse=True)[1].reshape(-1)
    sample, _, rival = margin_rows(samples, problem.margin)

    def plain(proof: MarginProof) -> dict[str, Any]:
        return {
            "samples": place[sample[proof.rows]],
            "rivals": rival[proof.rows],
            "values": proof.values,
            "clusters": [list(c) for c in proof.clusters.clusters],
            "multipliers": list(proof.clusters.multipliers),
        }

    return plain


# -- the reference


def learn_milp(
    schema: Schema,
    rows: Rows,
    *,
    acyclicity: str = "order",
    solver: str = "highs",
    time_limit: float | None = None,
    gap: float = 1e-6,
    callback: Callback = None,
    **problem_settings: Any,
) -> StructureResult:
    """The structure that a general solver finds for (19); its certificate has the solver's bound and no evidence.

    Where the solver finds nothing in time, a structure that a greedy search finds is returned. `problem_settings` are
    those of `dense_problem`.
    """
    started = time.perf_counter()
    with interruptible() as wished:
        problem, stated = _stated(schema, rows, gap, **problem_settings)
    left = None if time_limit is None else max(0.0, time_limit - (time.perf_counter() - started))
    if wished():
        found = MilpResult(None, -math.inf, math.inf, "interrupted", ())
    else:
        found = solve_milp(problem, acyclicity=acyclicity, solver=solver, time_limit=left, gap=gap, callback=callback)
    parents, form = found.parents, Formulation(problem)
    if parents is None:
        parents = _Run(problem, None, 0.0, gap, None, started).tree.parents
    value, seconds = form.value(parents), time.perf_counter() - started
    evidence = {
        **stated,
        "parents": [list(own) for own in parents],
        "solver": solver,
    }
    bound = max(min(found.bound, problem.gamma * float(problem.weights.sum())), value)
    certificate = Certificate(MILP_KIND, "max", value, bound, found.status, seconds, found.trace, evidence)
    return StructureResult(Dag(schema.names, parents), certificate, value)
