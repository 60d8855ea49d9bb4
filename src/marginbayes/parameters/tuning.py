"""Choose the parameters of a parameter learner from a grid, by what rows that were held out say."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.design import Design
from marginbayes.parameters.folds import accuracy, check_split, log_loss, usual_split
from marginbayes.solvers import Moment
from marginbayes.solvers.interrupt import kernel_interrupts

__all__ = ["Trial", "Tuned", "TunedResult", "learn_tuned"]

SCORES = ("accuracy", "log_loss")
# Of more rows one split says enough, and folds cost too much.
FEW_ROWS = 9_999

Point = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One point of the grid: its parameters, the score on held-out rows in each fold, and the time it took."""

    parameters: Mapping[str, Any]
    scores: tuple[float, ...]
    seconds: float

    @property
    def score(self) -> float:
        """Mean over the folds; higher is better. What gives a held-out row no probability at all is worst."""
        mean = round(float(np.mean(self.scores)), 12)  # equal means tie, whatever their rounding
        return -np.inf if np.isnan(mean) else mean


@dataclass(frozen=True)
class TunedResult(ParameterResult):
    """The network with the best parameters on all rows, what its learner returned, and all that was tried."""

    best: Mapping[str, Any] = field(default_factory=dict)
    trials: tuple[Trial, ...] = ()
    result: ParameterResult | None = None


class Tuned(ParameterLearner):
    """A parameter learner whose parameters are chosen from a grid by inner cross-validation.

    The points are tried in an order in which neighbours differ in one parameter, and where the learner can start from a
    network (``learn(..., start=network)``) or from its own last result for the same rows (``learn(...,
    previous=result)``), each point starts where the one before ended. The index arrays of a fold are made once, where
    the learner takes them (``learn(..., design=design)``). A class with a `TUNING_TOL` is content with that tolerance
    while points are compared. Then the best point is learned on all rows, to its full tolerance. Of points that score
    equally the first wins: put the most cautious values first.

    Parameters
    ----------
    learner : ParameterLearner
        Its other parameters stay as they are.
    grid : dict or None, default=None
        Names of parameters and the values to try. None: the `GRID` of the learner's class.
    cv : int or None, default=None
        Number of folds, dealt out class by class.
    holdout : float or None, default=None
        Share of the rows that one split holds out, instead of folds. If both are None: five folds below 10,000 rows, a
        fifth of the rows from there on.
    score : {"accuracy", "log_loss"}, default="accuracy"
        Of the held-out rows. Minus the log loss is taken, so that higher is better.
    n_jobs : int or None, default=None
        Threads over folds.
    random_state : int or None, default=None
        Seed of the folds.
    callback : callable, default=None
        Given a `marginbayes.solvers.Moment` after each point of the grid.

    Notes
    -----
    Ctrl-C ends the search: the best parameters so far are learned on all rows (a second Ctrl-C shortens that too).
    """

    def __init__(
        self,
        learner: ParameterLearner,
        grid: Mapping[str, Sequence[Any]] | None = None,
        *,
        cv: int | None = None,
        holdout: float | None = None,
        score: str = "accuracy",
        n_jobs: int | None = None,
        random_state: int | None = None,
        callback: Callable[[Moment], None] | None = None,
    ) -> None:
        self.learner = learner
        self.grid = grid
        self.cv = cv
        self.holdout = holdout
        self.score = score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def learn(self, schema: Schema, dag: Dag, rows: Rows, start: Network | None = None) -> TunedResult:
        """Network with this graph for these rows, by the best parameters of the grid."""
        grid = self._grid()
        folds = [_Fold(schema, dag, *parts, start) for parts in self._split(rows)]
        course = _Course(grid, self.callback)
        try:
            with kernel_interrupts():
                for point in course.points:
                    course.note(self._try(point, folds), folds[0].network)
        except KeyboardInterrupt:  # what was tried so far is enough to choose
            course.status = "interrupted"
        best = course.best()
        found = _learn(self._with(best), schema, dag, rows, start=course.network or start)
        status = "interrupted" if found.interrupted else course.status
        return TunedResult(found.network, found.certificate, found.path, status, best, tuple(course.trials), found)

    def _grid(self) -> dict[str, list[Any]]:
        kind = type(self.learner).__name__
        grid = self.grid if self.grid is not None else getattr(self.learner, "GRID", None)
        if not grid:
            raise ValueError(f"{kind} has no grid of its own; give one, such as grid={{'smoothing': [1.0, 0.1]}}")
        if not isinstance(grid, Mapping):
            raise ValueError(f"the grid is {grid!r}; give a dictionary, such as {{'smoothing': [1.0, 0.1]}}")
        known = self.learner.get_params()
        for name, values in grid.items():
            if name not in known:
                raise ValueError(f"{kind} has no parameter {name!r}; it has {', '.join(sorted(known))}")
            if isinstance(values, str) or not isinstance(values, Sized) or not len(values):
                raise ValueError(f"the grid gives {name!r} {values!r}; give it a list of the values to try")
        return {name: list(values) for name, values in grid.items()}

    def _split(self, rows: Rows) -> list[tuple[Rows, Rows]]:
        checks.one_of("score", self.score, SCORES)
        check_split(self.cv, self.holdout)
        checks.jobs("n_jobs", self.n_jobs)
        checks.whole("random_state", self.random_state, none=True)
        return usual_split(rows, self.cv, self.holdout, self.random_state, FEW_ROWS)

    def _with(self, point: Point) -> ParameterLearner:
        learner: ParameterLearner = clone(self.learner).set_params(**point)
        return learner

    def _try(self, point: Point, folds: Sequence[_Fold]) -> Trial:
        began, learner = time.monotonic(), self._with(point)
        rough = getattr(learner, "TUNING_TOL", None)
        if rough is not None and "tol" not in point:
            learner.set_params(tol=max(rough, learner.get_params(deep=False)["tol"]))
        if "normalize" in learner.get_params(deep=False) and all(fold.complete for fold in folds):
            learner.set_params(normalize="plain")  # the same answers for complete rows, sooner
        workers = min(effective_n_jobs(self.n_jobs), len(folds))
        if workers <= 1:
            scores = [fold.judge(learner, self.score) for fold in folds]
        else:
            with ThreadPoolExecutor(workers) as pool:
                scores = list(pool.map(lambda fold: fold.judge(learner, self.score), folds))
        return Trial(point, tuple(scores), time.monotonic() - began)


def learn_tuned(
    learner: ParameterLearner, schema: Schema, dag: Dag, rows: Rows, start: Network | None = None
) -> TunedResult:
    """What a learner with the option `tune` returns: that of `Tuned` around a copy without it.

    A learner offers the option by a parameter `tune`, False by default, a class attribute `GRID` for ``tune=True``, and
    ``if self.tune: return learn_tuned(self, schema, dag, rows)`` at the beginning of its `learn`.
    """
    own = learner.get_params(deep=False)
    inner = clone(learner).set_params(tune=False)
    if "callback" in own:
        inner.set_params(callback=None)
    shared = {name: own.get(name) for name in ("n_jobs", "random_state", "callback")}
    return Tuned(inner, None if own["tune"] is True else own["tune"], **shared).learn(schema, dag, rows, start)


class _Fold:
    """Training and held-out rows, and what was learned here last."""

    def __init__(self, schema: Schema, dag: Dag, train: Rows, held_out: Rows, start: Network | None) -> None:
        self.schema, self.dag, self.train, self.network = schema, dag, train, start
        self.labels, self.weights = held_out.codes[0], held_out.weights
        self.features = _unlabelled(held_out)
        self.complete = not held_out.is_missing().any()
        self.design: Design | None = None
        self.result: ParameterResult | None = None

    def judge(self, learner: ParameterLearner, score: str) -> float:
        """Score of the held-out rows, higher is better."""
        if self.design is None and _takes(learner, "design"):
            self.design = Design.of(self.dag, self.train, getattr(learner, "n_jobs", None))
        known = {"start": self.network, "design": self.design, "previous": self.result}
        result = _learn(learner, self.schema, self.dag, self.train, **known)
        if result.interrupted:
            raise KeyboardInterrupt
        self.result, self.network = result, result.network
        scores = result.network.log_joint(self.features)
        if score == "accuracy":
            return accuracy(scores, self.labels, self.weights)
        return -log_loss(scores, self.labels, self.weights)


def _learn(learner: ParameterLearner, schema: Schema, dag: Dag, rows: Rows, **known: Any) -> ParameterResult:
    """What is known already is given to learners that take it."""
    offered = {name: value for name, value in known.items() if value is not None and _takes(learner, name)}
    return learner.learn(schema, dag, rows, **offered)


def _takes(learner: ParameterLearner, name: str) -> bool:
    return name in inspect.signature(learner.learn).parameters


def _unlabelled(rows: Rows) -> Rows:
    codes = rows.codes.copy()
    codes[0] = rows.cardinalities[0]
    return Rows(codes, rows.cardinalities, n_jobs=rows.n_jobs)


def _snake(grid: Mapping[str, Sequence[Any]]) -> Iterator[Point]:
    """All points of a grid, each differing from the one before in one parameter; the last name runs fastest."""
    for position in product(*(range(len(values)) for values in grid.values())):
        point, before = {}, 0
        for (name, values), k in zip(grid.items(), position, strict=True):
            point[name] = values[len(values) - 1 - k if before % 2 else k]
            before = before * len(values) + k
        yield point


class _Course:
    """What was tried, and what was best."""

    def __init__(self, grid: Mapping[str, Sequence[Any]], callback: Callable[[Moment], None] | None) -> None:
        self.points, self.callback = list(_snake(grid)), callback
        self.ranks = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        self.trials, self.status, self.began = list[Trial](), "finished", time.monotonic()
        self.network: Network | None = None

    def note(self, trial: Trial, network: Network | None) -> None:
        """Remember a trial, and the network of the best one so far, where the last descent will start."""
        self.trials.append(trial)
        best = self.best()
        if best == trial.parameters:
            self.network = network
        if self.callback is not None:
            note = f"{len(self.trials)} of {len(self.points)} settings, best {best}"
            score = max(t.score for t in self.trials)
            self.callback(Moment(time.monotonic() - self.began, score, max(score, 1.0), note))

    def best(self) -> Point:
        """The parameters of the highest score; of equal ones those that come first in the grid."""
        if not self.trials:
            return self.ranks[0]
        top = max(t.score for t in self.trials)
        winners = [t.parameters for t in self.trials if t.score == top]
        return next(point for point in self.ranks if point in winners)
