"""How long a structure takes to learn, apart from reading, cutting and filling tables."""

from __future__ import annotations

import time
from typing import Any

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.evaluation.folds import Task as Split
from marginbayes.structure import StructureLearner, StructureResult

__all__ = ["structure_seconds"]

# Enough rows to meet every compiled function before the clock runs.
WARM = 200


class _Timed(StructureLearner):
    """A structure learner that notes how long it took."""

    def __init__(self, learner: StructureLearner) -> None:
        self.learner = learner

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        start = time.perf_counter()
        found = self.learner.learn(schema, rows)
        self.seconds = time.perf_counter() - start
        return found


def structure_seconds(model: Any, rows: Split) -> tuple[Any, float, float]:
    """The classifier fitted to the training rows, the seconds of the fit, and of them those of structure learning."""
    timed = _Timed(model._structure_learner())
    model.set_params(structure=timed)
    model.fit(rows.X_train[:WARM], rows.y_train[:WARM])
    start = time.perf_counter()
    model.fit(rows.X_train, rows.y_train)
    return model, time.perf_counter() - start, timed.seconds
