"""The desired margin and the number of feature parents by validation, as Peharz & Pernkopf (2012) choose them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.parameters.folds import check_split, usual_split
from marginbayes.solvers import Moment
from marginbayes.structure.base import StructureLearner, StructureResult
from marginbayes.structure.constraints import Constraints
from marginbayes.structure.selection import held_out_rates

if TYPE_CHECKING:
    from marginbayes.structure.exact.learner import ExactMargin

__all__ = ["MarginTrial", "TunedMargin", "TunedMarginResult"]

GRID = (0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
# Up to this many rows are dealt into folds, of more a part is held out once (section 6).
FEW_ROWS = 1000


@dataclass(frozen=True)
class MarginTrial:
    """One point of the grid: feature parents, p of gamma = log(p / (1 - p)), and how well it did on held-out rows."""

    k: int
    p: float
    accuracy: float
    gap: float
    seconds: float

    @property
    def gamma(self) -> float:
        """The desired margin."""
        return math.log(self.p / (1.0 - self.p))


@dataclass(frozen=True)
class TunedMarginResult(StructureResult):
    """A structure, and the trials from which its margin was chosen: mean accuracy and gap over the splits.

    Attributes
    ----------
    trials : tuple of MarginTrial
        One for each k and p that was tried.
    chosen : MarginTrial or None
        None where the search was interrupted before there was any.
    """

    trials: tuple[MarginTrial, ...] = ()
    chosen: MarginTrial | None = None


class TunedMargin(StructureLearner):
    """The structure of greatest soft margin, with the desired margin and the number of parents found by validation.

    For every number of feature parents `k` and every `p` a structure is learned from a part of the rows and judged by
    the accuracy of its smoothed maximum-likelihood network on the others. Those solves are short. Each starts from the
    structure that the one before found on the same rows. Then the best pair is solved on all rows, from a structure of
    its trials and with all the time there is. Ties go to fewer parents, then to the `p` that is listed first.

    Parameters
    ----------
    margin : {"sm", "sbm"}, default="sm"
        As in `ExactMargin`.
    k : sequence of int, default=(0, 1)
        Feature parents to try; the paper's 1 and 2 parents are 0 and 1. Numbers that required edges rule out are passed
        over.
    p : sequence of float, default=(.501, .6, .7, .8, .9, .95, .99, .999)
        Probabilities to try; the desired log-margin is log(p / (1 - p)).
    class_parents : int or "k+1", default=0
        Most parents of the class; ``"k+1"``: as many as a feature has with the class among them, as in the paper.
    cv : int or None, default=None
        Folds. By default five for up to 1000 rows, and for more a part is held out once.
    holdout : float or None, default=None
        Share of the rows to hold out once instead; 0.2 by default for more than 1000 rows.
    tuning_limit : float, default=5.0
        Seconds for each of the short solves.
    tuning_gap : float, default=0.005
        Gap at which a short solve ends.
    time_limit : float or None, default=None
        Seconds for the last solve.
    gap : float, default=1e-6
        Of the last solve.
    constraints : Constraints or None, default=None
        As in `ExactMargin`.
    smoothing : float, default=1.0
        As in `ExactMargin`.
    random_state : int or None, default=0
        Seed of the splits and of the solver.
    n_jobs : int or None, default=None
        Threads of each solve, as in `ExactMargin`.
    callback : callable or None, default=None
        Called with a `Moment` by every solve.
    """

    def __init__(
        self,
        margin: str = "sm",
        k: Sequence[int] = (0, 1),
        p: Sequence[float] = GRID,
        *,
        class_parents: int | str = 0,
        cv: int | None = None,
        holdout: float | None = None,
        tuning_limit: float = 5.0,
        tuning_gap: float = 0.005,
        time_limit: float | None = None,
        gap: float = 1e-6,
        constraints: Constraints | None = None,
        smoothing: float = 1.0,
        random_state: int | None = 0,
        n_jobs: int | None = None,
        callback: Callable[[Moment], None] | None = None,
    ) -> None:
        self.margin = margin
        self.k = k
        self.p = p
        self.class_parents = class_parents
        self.cv = cv
        self.holdout = holdout
        self.tuning_limit = tuning_limit
        self.tuning_gap = tuning_gap
        self.time_limit = time_limit
        self.gap = gap
        self.constraints = constraints
        self.smoothing = smoothing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def learn(self, schema: Schema, rows: Rows) -> TunedMarginResult:
        """The structure for these rows, and what was tried on the way."""
        self._check()
        parts = usual_split(rows, self.cv, self.holdout, self.random_state, FEW_ROWS)
        numbers = self._numbers(schema)
        trials, start = _Tuning(self, schema, parts, numbers).run()
        interrupted = len(trials) < len(numbers) * len(self.p)
        # Sums of the same rates in another order are no difference.
        best = max(trials, key=lambda t: (round(t.accuracy, 9), -t.k), default=None)
        last = best if best is not None else MarginTrial(min(numbers), self.p[0], math.nan, math.inf, 0.0)
        # Once interrupted, the last solve is as short as the others.
        limit, gap = (self.tuning_limit, self.tuning_gap) if interrupted else (self.time_limit, self.gap)
        found = self.solver(last.k, last.p, limit, gap, start.get((last.k, last.p))).learn(schema, rows)
        known = {field.name: getattr(found, field.name) for field in fields(found)}
        status = "interrupted" if interrupted else found.status
        return TunedMarginResult(**{**known, "status": status}, trials=tuple(trials), chosen=best)

    def solver(self, k: int, p: float, limit: float | None, gap: float, start: Any) -> ExactMargin:
        """The learner for one point of the grid."""
        from marginbayes.structure.exact.learner import ExactMargin

        if isinstance(self.class_parents, str) and self.class_parents != "k+1":
            raise ValueError(f"class_parents={self.class_parents!r} must be 'k+1', or a whole number from 0 to 2")
        own: Any = k + 1 if self.class_parents == "k+1" else self.class_parents
        return ExactMargin(
            self.margin,
            gamma=math.log(p / (1.0 - p)),
            k=k,
            class_parents=own,
            time_limit=limit,
            gap=gap,
            start=start,
            constraints=self.constraints,
            smoothing=self.smoothing,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            callback=self.callback,
        )

    def _numbers(self, schema: Schema) -> list[int]:
        """The numbers of feature parents with which the required edges can be had; all, if there are none."""
        required = set(Constraints.given(self.constraints).required)
        known = Counter(child for parent, child in required if schema.names[0] not in (parent, child))
        least = max(known.values(), default=0)
        return [k for k in self.k if k >= least] or list(self.k)

    def _check(self) -> None:
        for name in ("k", "p"):
            tried = getattr(self, name)
            if isinstance(tried, str) or not isinstance(tried, Sized) or not len(tried):
                raise ValueError(f"{name}={tried!r} should be a list of what to try")
        for p in self.p:
            note = ": the desired margin is log(p / (1 - p))"
            checks.number("p", p, lambda p: 0.5 < p < 1.0, "above 0.5 and below 1", note=note)
        for k in self.k:  # what all solves share is refused before the first of them
            self.solver(k, self.p[0], self.time_limit, self.gap, None).check()
        checks.not_negative("tuning_limit", self.tuning_limit, infinite=True, none=True)
        checks.not_negative("tuning_gap", self.tuning_gap, infinite=True)
        check_split(self.cv, self.holdout)


class _Tuning:
    """The grid over all splits; a split's structures start from one another."""

    def __init__(
        self, tuned: TunedMargin, schema: Schema, parts: Sequence[tuple[Rows, Rows]], numbers: Sequence[int]
    ) -> None:
        self.tuned, self.schema, self.parts, self.numbers = tuned, schema, parts, numbers
        self.previous: list[StructureResult | None] = [None] * len(parts)

    def run(self) -> tuple[list[MarginTrial], dict[tuple[int, float], StructureResult]]:
        """What was tried in full, and a structure for each trial to start from on all rows."""
        trials: list[MarginTrial] = []
        starts: dict[tuple[int, float], StructureResult] = {}
        try:
            for k in self.numbers:
                self.previous = [None] * len(self.parts)  # with other parents it may not be allowed
                for p in self.tuned.p:
                    trial, starts[k, p] = self._try(k, p)
                    if trial is None:
                        return trials, starts
                    trials.append(trial)
        except KeyboardInterrupt:
            pass
        return trials, starts

    def _try(self, k: int, p: float) -> tuple[MarginTrial | None, StructureResult]:
        """One point of the grid on every split; None after an interruption."""
        rates, gaps, started = [], [], time.perf_counter()
        for i, (train, test) in enumerate(self.parts):
            tuned = self.tuned
            found = tuned.solver(k, p, tuned.tuning_limit, tuned.tuning_gap, self.previous[i]).learn(self.schema, train)
            if found.status == "interrupted":
                return None, found
            self.previous[i] = found
            rates += held_out_rates(self.schema, [found.dag], train, test, tuned.smoothing, "laplace").tolist()
            gaps.append(math.inf if found.certificate is None else found.certificate.gap)
        return MarginTrial(k, p, float(np.mean(rates)), float(np.mean(gaps)), time.perf_counter() - started), found
