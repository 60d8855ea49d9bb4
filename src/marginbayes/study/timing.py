"""How long a fit takes, by the clock and of the processor; and of it the structure alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.evaluation.folds import Task as Split
from marginbayes.structure import StructureLearner, StructureResult

__all__ = ["Spent", "Stopwatch", "structure_seconds"]

# Enough rows to meet every compiled function before the clock runs.
WARM = 200


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, which passes for other processes as well, and seconds of the processor in this one."""

    seconds: float = 0.0
    processor: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.seconds + other.seconds, self.processor + other.processor)

    def of_fit(self) -> dict[str, float]:
        """What a record has of it."""
        return {"fit_seconds": self.seconds, "fit_processor_seconds": self.processor}


class Stopwatch:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._start, self._used = time.perf_counter(), time.process_time()

    def spent(self) -> Spent:
        """What has passed so far; of the processor, in all threads."""
        return Spent(time.perf_counter() - self._start, time.process_time() - self._used)


class _Timed(StructureLearner):
    """A structure learner that notes how long it took."""

    def __init__(self, learner: StructureLearner) -> None:
        self.learner = learner

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        start = time.perf_counter()
        found = self.learner.learn(schema, rows)
        self.seconds = time.perf_counter() - start
        return found


def structure_seconds(model: Any, rows: Split) -> tuple[Any, Spent, float]:
    """The classifier fitted to the training rows, what the fit took, and the seconds of structure learning in it."""
    timed = _Timed(model._structure_learner())
    model.set_params(structure=timed)
    model.fit(rows.X_train[:WARM], rows.y_train[:WARM])
    watch = Stopwatch()
    model.fit(rows.X_train, rows.y_train)
    return model, watch.spent(), timed.seconds
