"""`ExactMargin`: the structure of greatest soft margin, with a proof, or the best so far with a proved bound."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.data.small import small_table
from marginbayes.graph import Dag
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.interrupt import interruptible
from marginbayes.structure.base import StructureLearner, StructureResult
from marginbayes.structure.constraints import Constraints
from marginbayes.structure.exact.checkpoint import Checkpoint
from marginbayes.structure.exact.incumbent import BRIEF, plain_choice, search_from
from marginbayes.structure.exact.instance import Instance, make_instance
from marginbayes.structure.exact.problem import MARGINS, check_start, merged_samples, parent_sets
from marginbayes.structure.exact.tree import Limits, Search
from marginbayes.structure.exact.watch import Watch, watching

__all__ = ["ExactMargin", "gaps"]

METHODS = ("branch-and-bound", "milp")
# A callback is called when something was found, else once in so many seconds.
NEWS = 0.25
# Share of a time limit that a search for good structures may take, before the tree and in it.
FIRST = 0.1
# Beyond this margin nothing but rounding would tell structures apart.
LARGEST_GAMMA = 1e6
# Coefficients of a problem that is searched for good structures in no time.
SMALL = 500_000


class ExactMargin(StructureLearner):
    """Structure of greatest soft margin (Peharz & Pernkopf 2012), with a bound that no structure exceeds.

    Every feature has no parent, the class, or the class and up to k features as parents; the class may have parents of
    its own. Among all acyclic structures of this kind the one of greatest soft margin (9), or binary soft margin (21),
    is sought, the tables being smoothed maximum-likelihood estimates. The search can be stopped at any time: it then
    returns the best structure so far and a bound that no structure exceeds, and its certificate holds all that is
    needed to check both.

    Parameters
    ----------
    margin : {"sm", "sbm"}, default="sm"
        Against the strongest other class, or against all other classes taken as one. The same for two classes.
    gamma : float or None, default=None
        The log-margin that is enough, in nats; log(p / (1 - p)) by default.
    p : float, default=0.9
        The posterior of the true class, against its rival, that is enough; used where `gamma` is None.
    k : int, default=1
        Most feature parents of a feature. Up to one, the search is over branchings and goes far. For more, linear
        programs over all parent sets are solved: small problems to the end, others as far as the time limit allows.
    class_parents : {0, 1, 2}, default=0
        Most parents of the class.
    smoothing : float, default=1.0
        Added to every count (Laplace); must be positive.
    time_limit : float or None, default=None
        Seconds after which the search ends with what it has. What is compiled at its first use does not count.
    gap : float, default=1e-6
        The search ends when bound - objective <= gap * max(1, |objective|).
    node_limit : int or None, default=None
        The search ends once this many parts were relaxed. They are relaxed by fours, so there may be three more, and in
        large searches, which go depth first below a part, half a percent or three thousand, whichever is less. For a
        node limit and a seed the result is the same on every number of threads, and a search that is cut in this way
        and resumed from its checkpoint takes the very course of one that is not.
    method : {"branch-and-bound", "milp"}, default="branch-and-bound"
        ``"milp"`` hands formulation (19) to a general solver, as a second opinion: its bound is that solver's word, and
        comes with no evidence to verify.
    solver : {"highs", "scip"}, default="highs"
        For ``method="milp"``; SCIP needs the package PySCIPOpt.
    acyclicity : {"order", "clusters", "both"}, default="order"
        For ``method="milp"``: constraints (16) as in the paper, cluster inequalities (7) where violated, or both.
    start : Dag, StructureResult or None, default=None
        A structure to begin with, for instance the one of another gamma. A search that goes on from its checkpoint
        takes it over if it is better than the best one there.
    checkpoint : path or None, default=None
        File that keeps the search; written every `checkpoint_seconds` and at the end. If it exists, the search in it
        goes on; the time limit counts anew, the node limit does not.
    checkpoint_seconds : float, default=60.0
        Time between two writings of that file.
    constraints : Constraints or None, default=None
        Obeyed exactly. A feature that must be kept always has the class as a parent; a feature whose edge from the
        class is forbidden takes no part at all.
    max_memory : float, default=4e9
        Bytes that rows of coefficients, and the record of the search, may take each. Beyond, the search ends with what
        it has.
    random_state : int, default=0
        Seed of the search for good structures.
    n_jobs : int or None, default=None
        Threads. None: all cores; other numbers as joblib counts them. They do not change the result.
    callback : callable or None, default=None
        Called with a `Moment` while the search runs.

    Notes
    -----
    Missing cells: a missing feature adds nothing to the margin of its row; a missing parent is summed over, which
    leaves the feature given the class, as in the other searches. Rows without a class take no part.

    The certificate's status is ``"optimal"``, ``"time limit"``, ``"node limit"``, ``"interrupted"``, ``"memory
    limit"``, or, where rounding leaves more than the gap asked for, ``"stalled"``. `gaps` puts its gap in other terms.
    """

    def __init__(
        self,
        margin: str = "sm",
        *,
        gamma: float | None = None,
        p: float = 0.9,
        k: int = 1,
        class_parents: int = 0,
        smoothing: float = 1.0,
        time_limit: float | None = None,
        gap: float = 1e-6,
        node_limit: int | None = None,
        method: str = "branch-and-bound",
        solver: str = "highs",
        acyclicity: str = "order",
        start: Dag | StructureResult | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_seconds: float = 60.0,
        constraints: Constraints | None = None,
        max_memory: float = 4e9,
        random_state: int | None = 0,
        n_jobs: int | None = None,
        callback: Callable[[Moment], None] | None = None,
    ) -> None:
        self.margin = margin
        self.gamma = gamma
        self.p = p
        self.k = k
        self.class_parents = class_parents
        self.smoothing = smoothing
        self.time_limit = time_limit
        self.gap = gap
        self.node_limit = node_limit
        self.method = method
        self.solver = solver
        self.acyclicity = acyclicity
        self.start = start
        self.checkpoint = checkpoint
        self.checkpoint_seconds = checkpoint_seconds
        self.constraints = constraints
        self.max_memory = max_memory
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """Structure of greatest soft margin for these rows, and its certificate; Ctrl-C keeps the best so far."""
        self.check()
        if self.method == "milp" or self.k > 1:
            return self._learn_by_programs(schema, rows)
        if self.time_limit is not None:
            _compile_kernels()
        began = time.perf_counter()
        file = Checkpoint(self.checkpoint, self.checkpoint_seconds)
        with interruptible() as wished:
            instance = self._instance(schema, rows)
            nodes = math.inf if self.node_limit is None else self.node_limit
            limits = Limits(float(self.gap), nodes, began + self._seconds, FIRST * self._seconds, wished)
            with watching(self.n_jobs, limits.in_time, instance.has_matrices) as watch:
                search = file.resume(instance, limits.gap)
                if search is None:
                    search = self._begin(instance, schema, watch, began)
                elif (given := self._given(schema)) is not None:
                    search.adopt(*instance.choice(given))
                status = search.run(limits, watch, self._ticker(search, file))
        file.write(search)
        return self._result(schema, search, status)

    def _learn_by_programs(self, schema: Schema, rows: Rows) -> StructureResult:
        from marginbayes.structure.exact.general import learn_general, learn_milp

        shared: dict[str, Any] = {
            "margin": self.margin,
            "gamma": self._gamma,
            "k": self.k,
            "class_parents": self.class_parents,
            "constraints": self.constraints,
            "smoothing": float(self.smoothing),
            "time_limit": self.time_limit,
            "gap": self.gap,
            "max_memory": self.max_memory,
            "callback": self.callback,
        }
        if self.method == "milp":
            return learn_milp(schema, rows, **shared, acyclicity=self.acyclicity, solver=self.solver)
        given = self._given(schema)
        start = None if given is None else Dag(schema.names, tuple(given))
        return learn_general(schema, rows, **shared, start=start)

    def _instance(self, schema: Schema, rows: Rows) -> Instance:
        return make_instance(
            merged_samples(rows),
            self._sets(schema),
            # With two classes both margins are the same; so are then the searches, ties and all.
            margin="sm" if schema.cardinalities[0] == 2 else self.margin,
            gamma=self._gamma,
            smoothing=float(self.smoothing),
            max_memory=self.max_memory,
            seed=int(self.random_state or 0),
        )

    def _sets(self, schema: Schema) -> list[list[tuple[int, ...]]]:
        return parent_sets(schema.names, self.k, self.class_parents, self.constraints)

    def _begin(self, instance: Instance, schema: Schema, watch: Watch, began: float) -> Search:
        """A new search, from the first structure that local search finds."""
        if not instance.rivals:
            return Search.without_rivals(instance, plain_choice(instance))
        given = self._given(schema)
        start = (0, plain_choice(instance)) if given is None else instance.choice(given)
        small = instance.n_rows * instance.allowed.size < SMALL
        work = partial(search_from, instance, *start, instance.seed, patience=BRIEF)
        [found] = watch.run([lambda stop: work(stop=stop)], not small, FIRST * self._seconds)
        return Search(instance, found.result(), started=began)

    def _given(self, schema: Schema) -> list[tuple[int, ...]] | None:
        """Parents of every variable in the structure to begin with."""
        if self.start is None:
            return None
        dag = self.start.dag if isinstance(self.start, StructureResult) else self.start
        parents = [tuple(sorted(own)) for own in dag.reindexed(schema.names).parents]
        # Without the class a feature adds nothing, whatever its parents.
        parents[1:] = [own if 0 in own else () for own in parents[1:]]
        check_start(schema.names, self._sets(schema), parents)
        return parents

    def _ticker(self, search: Search, file: Checkpoint) -> Callable[[], None]:
        """What happens between two batches: trace, checkpoint, callback."""
        told = [-math.inf, -math.inf]  # when, and with which objective

        def tick() -> None:
            search.note()
            file.tick(search)
            late = time.perf_counter() - told[0] > NEWS
            news = late or search.nodes <= 1 or search.incumbent.objective > told[1] or bool(search.doing)
            if self.callback is not None and news:
                told[:] = [time.perf_counter(), search.incumbent.objective]
                note = ", ".join(filter(None, (f"{search.nodes} nodes", f"{search.n_open} open", search.doing)))
                self.callback(Moment(search.elapsed, search.incumbent.objective, search.bound, note))

        return tick

    def _result(self, schema: Schema, search: Search, status: str) -> StructureResult:
        search.note()
        status, _, why = status.partition(": ")
        if why:
            message = f"the search ended at its {status}, with the best so far: {why}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)
        parents = search.instance.parents(search.incumbent.top, search.incumbent.choice)
        certificate = Certificate(
            "exact-margin",
            "max",
            search.incumbent.objective,
            search.bound,
            status,
            search.elapsed,
            search.trace,
            self._evidence(schema, search, parents),
        )
        return StructureResult(
            Dag(schema.names, parents),
            certificate,
            score=search.incumbent.objective,
        )

    def _evidence(self, schema: Schema, search: Search, parents: tuple[tuple[int, ...], ...]) -> dict[str, Any]:
        return {
            "margin": self.margin,
            "gamma": self._gamma,
            "smoothing": float(self.smoothing),
            "k": self.k,
            "class_parents": self.class_parents,
            "gap": self.gap,
            "names": list(schema.names),
            "cardinalities": list(schema.cardinalities),
            "parents": [list(own) for own in parents],
            "constraints": Constraints.given(self.constraints).to_evidence(schema.names),
            "weight": search.instance.samples.total,
            "redundant": search.instance.redundant,
            "nodes": search.nodes,
            "proof": search.closed_proof().evidence(),
        }

    @property
    def _seconds(self) -> float:
        return math.inf if self.time_limit is None else float(self.time_limit)

    @property
    def _gamma(self) -> float:
        return math.log(self.p / (1.0 - self.p)) if self.gamma is None else float(self.gamma)

    def check(self) -> None:
        """Refuse settings that make no sense; `learn` does so before any work."""
        checks.one_of("margin", self.margin, MARGINS)
        if self.gamma is None:
            meaning = "above 0.5 and below 1, so that gamma = log(p / (1 - p)) > 0"
            checks.number("p", self.p, lambda p: 0.5 < p < 1.0, meaning)
        else:
            meaning = f"a positive number up to {LARGEST_GAMMA:g}; log(p / (1 - p)) for a posterior p"
            checks.number("gamma", self.gamma, lambda gamma: 0.0 < gamma <= LARGEST_GAMMA, meaning)
        checks.whole("k", self.k)
        checks.one_of("method", self.method, METHODS)
        if self.method == "milp" or self.k > 1:
            self._check_programs()
        Constraints.given(self.constraints)
        checks.whole("class_parents", self.class_parents, 0, 2)
        checks.positive("smoothing", self.smoothing)
        checks.not_negative("gap", self.gap, infinite=True)
        checks.not_negative("time_limit", self.time_limit, infinite=True, none=True)
        checks.whole("node_limit", self.node_limit, none=True)
        checks.not_negative("checkpoint_seconds", self.checkpoint_seconds, infinite=True)
        checks.positive("max_memory", self.max_memory, infinite=True)
        checks.whole("random_state", self.random_state, none=True)
        checks.jobs("n_jobs", self.n_jobs)

    def _check_programs(self) -> None:
        """What only the search over branchings can do is not left out in silence."""
        way = "method='milp'" if self.method == "milp" else f"k={self.k}"
        for name in ("checkpoint", "node_limit", *(["start"] if self.method == "milp" else [])):
            if getattr(self, name) is not None:
                raise ValueError(f"{name}={getattr(self, name)!r} is not for {way}, which cannot make use of it")


@cache
def _compile_kernels() -> None:
    """Solve a small problem, once in a process: no time limit is spent on what is compiled at its first use."""
    if ExactMargin().learn(*small_table()).interrupted:
        raise KeyboardInterrupt


def gaps(certificate: Certificate) -> dict[str, float | None]:
    """How far the objective of an exact margin can be from the optimum, in several terms.

    ``"absolute"``; ``"relative"`` to max(1, |objective|); ``"lost margin"``, relative to what the margins lack of gamma
    everywhere, which does not depend on where zero lies and is 1 at most; ``"paper"``, (bound - objective) / bound of
    Peharz & Pernkopf (2012), None unless both are positive.
    """
    ceiling = float(certificate.evidence["gamma"]) * float(certificate.evidence["weight"])
    absolute = certificate.absolute_gap
    lack = ceiling - certificate.objective
    perfect = lack <= abs(ceiling) * 1e-9  # what is left is rounding
    paper = absolute / certificate.bound if min(certificate.bound, certificate.objective) > 0 else None
    return {
        "absolute": absolute,
        "relative": certificate.gap,
        "lost margin": 0.0 if perfect else min(1.0, absolute / lack),
        "paper": paper,
    }
