"""Cross tuning: how many steps to take, by what held-out rows say after each (Greiner et al. 2005)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.parameters.descent import Descent, Enough
from marginbayes.parameters.design import Design
from marginbayes.parameters.folds import accuracy
from marginbayes.parameters.parametrisation import Problem

__all__ = ["EARLY_STOPPING", "steps_to_take"]

Floats = NDArray[np.float64]
EARLY_STOPPING = (None, "cv", "cv-accuracy")
# A fold ends after so many steps, or as many as its best step took, in which the held-out rows did not do better.
PATIENCE = 50

# From a problem and what is to be called after each step to the descent.
Run = Callable[[Problem, Callable[[Floats], None]], Descent]


def steps_to_take(
    folds: Sequence[tuple[Rows, Rows]], problem: Callable[[Rows], Problem], run: Run, score: str
) -> tuple[int, bool]:
    """Average over the folds of the step that does best on the held-out rows, and whether it was interrupted.

    Step 0 is the start. Of steps that do equally well the first counts.
    """
    best: list[int] = []
    for train, held_out in folds:
        task = problem(train)
        judge = Design.of(task.design.dag, held_out, task.design.n_jobs)
        values = [_judged(judge, task, score, task.start())]
        done = run(task, _Noted(values, partial(_judged, judge, task, score)))
        best.append(int(np.argmin(values)))
        if done.status == "interrupted":
            return round(float(np.mean(best))), True
    return round(float(np.mean(best))), False


@dataclass(frozen=True)
class _Noted:
    """Puts what it finds for a point behind the others, until the best of them is long past."""

    values: list[float]
    find: Callable[[Floats], float]

    def __call__(self, point: Floats) -> None:
        self.values.append(self.find(point))
        best = int(np.argmin(self.values))
        if len(self.values) - 1 - best >= max(PATIENCE, best):
            raise Enough


def _judged(judge: Design, problem: Problem, score: str, point: Floats) -> float:
    """What the held-out rows lose: the learner's own loss, or the share that is not classified correctly."""
    weights = problem.weights(point)
    if score == "cv":
        return judge.loss(weights, problem.row_loss)[0]
    return 1.0 - accuracy(judge.scores(weights), judge.labels, judge.row_weights)
