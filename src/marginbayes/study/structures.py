"""Structures that several methods of a study have in common, learned once."""

from __future__ import annotations

import json
from typing import Any

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.structure import StructureLearner, StructureResult
from marginbayes.study.spec import Task
from marginbayes.study.timing import Spent, Stopwatch

__all__ = ["shared_structure"]

# What a method may differ in from another one with the same structure.
OF_TABLES = ("parameters", "parameters_options")


class Remembered(StructureLearner):
    """Learns a structure, or returns what was learned before under the same key; `spared` is what that took.

    Certificates are large, and part of a record: a structure that has one is learned again.
    """

    def __init__(self, learner: StructureLearner, key: str) -> None:
        self.learner = learner
        self.key = key
        self.spared = Spent()

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """Structure for these rows."""
        if self.key in _known:
            found, self.spared = _known[self.key]
            return found
        watch = Stopwatch()
        found = self.learner.learn(schema, rows)
        if found.certificate is None and found.status == "finished":
            _known[self.key] = found, watch.spent()
        return found


_known: dict[str, tuple[StructureResult, Spent]] = {}


def shared_structure(task: Task, learner: StructureLearner) -> Remembered:
    """The learner of a task's structure, for all tasks of this process that differ from it in their tables alone."""
    own = {name: value for name, value in task.method.options.items() if name not in OF_TABLES}
    rows: list[Any] = [task.dataset, task.split, task.seed, task.options["protocol"]]
    return Remembered(learner, json.dumps([*rows, own], sort_keys=True))
