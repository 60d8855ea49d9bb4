"""Local search: hill climbing, iterated local search and simulated annealing over changes of one edge or feature."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.data.small import small_table
from marginbayes.structure.base import Step, StructureResult
from marginbayes.structure.constraints import Constraints
from marginbayes.structure.engine import Engine, Parents
from marginbayes.structure.moves import MOVES, Neighbourhood, loss_after, make
from marginbayes.structure.search import Search, SearchLearner

__all__ = ["LocalSearch"]

Floats = NDArray[np.float64]

METHODS = ("hc", "ils", "sa")
# Rounds of iterated local search by default, and random changes from which the temperature is judged.
ROUNDS, SAMPLE = 50, 100


class LocalSearch(SearchLearner):
    """Search among structures that differ in one edge or one feature.

    The changes are: add an edge, remove one, reverse one, replace a parent of a feature by another one, drop a feature
    together with all its edges, and restore a dropped feature with one feature parent or none. Constraints, acyclicity,
    k and the treewidth are obeyed at every step. The best structure that was met is returned. Ties go to changes
    without a new parent, then to the smaller child, then to the kind that comes first in the default of `moves`, then
    to the smaller parent.

    Cost: looking at all changes scores (k + 1) d^2 candidates, each in one pass over the distinct rows and the classes,
    or less where it is given up early. Hill climbing does so once for each change it makes, a round of iterated local
    search two or three times in all; a proposal of simulated annealing scores one candidate.

    Parameters
    ----------
    score : {"sm", "sbm", "cr", "cl"}, default="sm"
        As in `SearchLearner`.
    method : {"ils", "hc", "sa"}, default="ils"
        ``"hc"``, hill climbing: make the change that improves the score most until none does. ``"ils"``, iterated local
        search: make the best change of one feature after the other, in random order, until none improves the score;
        then, in each round, make a few random changes, climb again in that way, and go on from the result unless it is
        worse. ``"sa"``, simulated annealing (Pernkopf & Wohlmayr 2013): after such a climb, random changes, accepted
        for sure where they improve the score and else with probability exp(-loss / temperature), while the temperature
        falls; then climb from the best. All end in a structure that no single change improves, unless a limit comes
        first. Iterated local search usually finds more than annealing in the same time.
    moves : sequence of str, default=("remove", "drop", "restore", "add", "replace", "reverse")
        The changes that are made.
    max_iter : int or None, default=None
        Most rounds: changes of hill climbing (no limit by default), rounds of iterated local search (50 by default),
        proposals of simulated annealing (20 for each pair of features by default, at least 2000).
    n_perturb : int, default=3
        Random changes at the start of each round of iterated local search.
    temperature : float, default=0.1
        At the start of simulated annealing, as a multiple of how much a random change worsens the score there.
    cooling : float, default=0.01
        How much of the temperature is left at the end; it falls geometrically.
    time_limit : float or None, default=None
        Seconds after which the search ends with what it has, and says so in the `status` of its result, which then
        depends on the machine. What is compiled at its first use does not count.
    k : int, default=1
        As in `SearchLearner`.
    gamma : float or None, default=None
        As in `SearchLearner`.
    smoothing : float, default=1.0
        As in `SearchLearner`.
    kind : {"laplace", "ess", "floor"}, default="laplace"
        As in `SearchLearner`.
    constraints : Constraints or None, default=None
        As in `SearchLearner`.
    selection : {None, "cv"}, default=None
        As in `SearchLearner`; ``"cv"`` chooses a number of improvements, so it needs ``method="hc"``.
    candidates : int or None, default=None
        As in `SearchLearner`.
    treewidth : bool, default=False
        As in `SearchLearner`.
    max_table : float, default=1e7
        As in `SearchLearner`.
    n_jobs : int or None, default=None
        As in `SearchLearner`.
    random_state : int or None, default=None
        As in `SearchLearner`.
    callback : callable or None, default=None
        As in `SearchLearner`.
    """

    def __init__(
        self,
        score: str = "sm",
        method: str = "ils",
        k: int = 1,
        *,
        moves: Sequence[str] = MOVES,
        max_iter: int | None = None,
        n_perturb: int = 3,
        temperature: float = 0.1,
        cooling: float = 0.01,
        time_limit: float | None = None,
        gamma: float | None = None,
        smoothing: float = 1.0,
        kind: str = "laplace",
        constraints: Constraints | None = None,
        selection: str | None = None,
        candidates: int | None = None,
        treewidth: bool = False,
        max_table: float = 1e7,
        n_jobs: int | None = None,
        random_state: int | None = None,
        callback: Callable[[Step], None] | None = None,
    ) -> None:
        super().__init__(
            score,
            k,
            gamma=gamma,
            smoothing=smoothing,
            kind=kind,
            constraints=constraints,
            selection=selection,
            candidates=candidates,
            treewidth=treewidth,
            max_table=max_table,
            n_jobs=n_jobs,
            random_state=random_state,
            callback=callback,
        )
        self.method = method
        self.moves = moves
        self.max_iter = max_iter
        self.n_perturb = n_perturb
        self.temperature = temperature
        self.cooling = cooling
        self.time_limit = time_limit

    @property
    def wanders(self) -> bool:  # type: ignore[override]
        """Whether the last structure may not be the best."""
        return self.method != "hc"

    def _check(self) -> None:
        super()._check()
        checks.one_of("method", self.method, METHODS)
        unknown = [m for m in self.moves if m not in MOVES]
        if unknown or isinstance(self.moves, str):
            raise ValueError(f"moves={self.moves!r} should be some of {', '.join(map(repr, MOVES))}")
        if self.selection is not None and self.method != "hc":
            raise ValueError(
                f"selection={self.selection!r} chooses a number of improvements, but method={self.method!r} also goes "
                "down; use method='hc'"
            )
        checks.whole("max_iter", self.max_iter, none=True)
        checks.whole("n_perturb", self.n_perturb, 1)
        checks.not_negative("time_limit", self.time_limit, infinite=True, none=True)
        checks.positive("temperature", self.temperature, infinite=True)
        checks.number("cooling", self.cooling, lambda share: 0 < share <= 1, "above 0 and at most 1")

    def _learned(self, schema: Schema, rows: Rows) -> StructureResult:
        if self.time_limit is not None:
            _compile_kernels()
        return super()._learned(schema, rows)

    # -- the three methods

    def run(self, search: Search, rows: Rows) -> None:  # noqa: ARG002
        """Search until the rounds or the time are over."""
        rng = np.random.default_rng(self.random_state)
        around = Neighbourhood(search, self.moves)
        if self.method == "hc":
            self._climb(around)
        else:
            self._sweep(around, rng)
            (self._iterate if self.method == "ils" else self._anneal)(around, rng)

    def _in_time(self, search: Search) -> bool:
        if self.time_limit is None or time.perf_counter() - search.started < self.time_limit:
            return True
        search.status = "time limit"
        return False

    def _climb(self, around: Neighbourhood) -> None:
        """Make the best change of all while one improves the score."""
        search = around.search
        while (self.max_iter is None or len(search.path) < self.max_iter) and self._in_time(search):
            move = around.best(around.features)
            if move is None:
                return
            make(search, move)

    def _sweep(self, around: Neighbourhood, rng: np.random.Generator) -> None:
        """Make the best change of one feature after the other, in random order, until none improves the score."""
        search = around.search
        settled: set[int] = set()
        while len(settled) < len(around.features):
            for child in rng.permutation([i for i in around.features if i not in settled]).tolist():
                if not self._in_time(search):
                    return
                move = around.best([child])
                if move is None:
                    settled.add(child)
                else:
                    make(search, move)
                    settled.clear()

    def _iterate(self, around: Neighbourhood, rng: np.random.Generator) -> None:
        """Shake, climb again, go on from there unless it is worse."""
        search = around.search
        best = _Place.of(search.engine)
        for _ in range(ROUNDS if self.max_iter is None else self.max_iter):
            if not self._in_time(search):
                return
            for _ in range(self.n_perturb):
                move = around.random(rng)
                if move is not None:
                    make(search, move)
            self._sweep(around, rng)
            if search.engine.loss <= best.loss + search.tolerance:
                best = _Place.of(search.engine)
            else:
                best.restore(search)

    def _anneal(self, around: Neighbourhood, rng: np.random.Generator) -> None:
        """Random changes at a falling temperature, then a climb from the best structure met."""
        search, engine = around.search, around.search.engine
        d = len(around.features)
        rounds = max(2000, 20 * d * (d - 1)) if self.max_iter is None else self.max_iter
        heat = self.temperature * _mean_rise(around, rng)
        best = _Place.of(engine)
        for _ in range(rounds):
            move = around.random(rng)
            if move is None or not self._in_time(search):
                break
            # Metropolis' rule with the chance drawn first, so that a hopeless change is given up early.
            limit = engine.loss - heat * math.log(1.0 - rng.random())
            if loss_after(engine, move.families, limit) <= limit:
                make(search, move)
                if engine.loss < best.loss:
                    best = _Place.of(engine)
            heat *= self.cooling ** (1.0 / rounds)
        if engine.loss > best.loss:
            best.restore(search)
        self._sweep(around, rng)


@dataclass(frozen=True)
class _Place:
    """Where a search was: enough to go back there at once."""

    parents: list[Parents]
    state: Floats
    loss: float

    @classmethod
    def of(cls, engine: Engine) -> _Place:
        """The present place; the engine makes a new state for each change, so this one stays."""
        return cls(list(engine.parents), engine.state, engine.loss)

    def restore(self, search: Search) -> None:
        """Go back, and put that on record."""
        engine = search.engine
        engine.parents, engine.state, engine.loss = list(self.parents), self.state, self.loss
        search.record("return", None, None)


@cache
def _compile_kernels() -> None:
    """Search on a small table, once in a process: no time limit is spent on what is compiled at its first use."""
    if LocalSearch(max_iter=1, random_state=0).learn(*small_table()).interrupted:
        raise KeyboardInterrupt


def _mean_rise(around: Neighbourhood, rng: np.random.Generator) -> float:
    """Mean loss that random changes cause; of those that cause some."""
    engine = around.engine
    moves = [around.random(rng) for _ in range(SAMPLE)]
    rises = [loss_after(engine, m.families, math.inf) - engine.loss for m in moves if m is not None]
    return float(np.mean([r for r in rises if r > around.search.tolerance] or [1.0]))
