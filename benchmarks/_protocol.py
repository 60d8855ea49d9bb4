"""Which rows train, validate and test, by the papers' protocol; one encoding and one graph for all learners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from _two_tree import TwoTree
from numpy.typing import NDArray

from marginbayes import Dag, datasets
from marginbayes.data import Rows, Schema, Variable
from marginbayes.data.encode import Encoder
from marginbayes.data.frame import read_frame
from marginbayes.evaluation import Task, holdout, stratified_tasks
from marginbayes.structure import KDB, ChowLiuTAN, NaiveBayes, StructureLearner

__all__ = ["IMAGES", "SETS", "STRUCTURES", "UCI", "Encoded", "Fold", "folds"]

# Sets with a test part; a number is the share of test rows where the set comes without a split (the papers' sizes, as
# the width of their confidence intervals gives them away), None takes the split of the set. All others: five folds.
SPLIT = {
    **dict.fromkeys(
        ("chess", "letter", "mofn-3-7-10", "satimage", "segment", "shuttle-small", "waveform-21", "adult"), None
    ),
    **{"abalone": 1 / 4, "car": 1 / 3, "mushroom": 1 / 3, "nursery": 1 / 2, "spambase": 1 / 2},
    **dict.fromkeys(("usps", "mnist-14x14")),
}
UCI = (
    *("australian", "breast", "chess", "cleve", "corral", "crx", "diabetes", "flare", "german", "glass", "glass2"),
    *("heart", "hepatitis", "iris", "letter", "lymphography", "mofn-3-7-10", "pima", "satimage", "segment"),
    *("shuttle-small", "soybean-large", "vehicle", "vote", "waveform-21", "abalone", "adult", "car", "mushroom"),
    *("nursery", "spambase"),
)
IMAGES = ("usps", "mnist-14x14")
SETS = (*UCI, *IMAGES)
STRUCTURES: dict[str, StructureLearner] = {"nb": NaiveBayes(), "tan": ChowLiuTAN(), "kdb2": KDB(2), "2tree": TwoTree()}

# More training rows than this: one validation part of 20 %; otherwise five folds.
LARGE = 1000


@dataclass(frozen=True)
class Encoded:
    """Rows to learn from and rows to be judged by, encoded by what the former show (cuts, levels, graphs)."""

    schema: Schema
    train: Rows
    test: Rows
    truth: NDArray[np.intp]

    @classmethod
    def of(cls, task: Task, classes: NDArray[Any]) -> Encoded:
        """Encoded task; the classes are those of the whole set, so that all parts agree on their codes."""
        frame = read_frame(task.X_train)
        labels = np.searchsorted(classes, task.y_train)
        encoder = Encoder(labels, len(classes), None, np.zeros(len(frame.names), bool))
        schema, rows = encoder.learn(Variable("the class", tuple(classes.tolist()), origin="class"), frame)
        return cls(schema, rows, schema.encode(read_frame(task.X_test)), np.searchsorted(classes, task.y_test))

    def graph(self, structure: str) -> Dag:
        """Graph of a structure learner, found once."""
        if structure not in self._graphs:
            self._graphs[structure] = STRUCTURES[structure].learn(self.schema, self.train).dag
        return self._graphs[structure]

    @cached_property
    def _graphs(self) -> dict[str, Dag]:
        return {}


@dataclass(frozen=True)
class Fold:
    """One training and one test part, and the parts of the former that choose among settings."""

    data: str
    number: int
    count: int
    task: Task
    classes: NDArray[Any]
    seed: int

    @cached_property
    def encoded(self) -> Encoded:
        """The whole training part and the test part."""
        return Encoded.of(self.task, self.classes)

    @cached_property
    def inner_tasks(self) -> list[Task]:
        """A fifth of a large training part, or five folds of a small one, to be judged by."""
        parts = list(stratified_tasks(self.task.X_train, self.task.y_train, 5, random_state=self.seed + 1))
        return parts[:1] if len(self.task.y_train) > LARGE else parts

    def limited(self, rows: int | None) -> Fold:
        """The same with at most that many training rows, drawn at random."""
        if rows is None or len(self.task.y_train) <= rows:
            return self
        kept = np.random.default_rng(self.seed).permutation(len(self.task.y_train))[:rows]
        task = replace(self.task, X_train=self.task.X_train.iloc[kept], y_train=self.task.y_train[kept])
        return replace(self, task=task)

    @cached_property
    def inner(self) -> list[Encoded]:
        """The same, encoded by the rows that are learned from alone."""
        return [Encoded.of(task, self.classes) for task in self.inner_tasks]


def folds(name: str, seed: int, rows: int | None = None) -> Iterator[Fold]:
    """Folds of a data set by the papers' protocol; `rows` limits it to that many random training rows."""
    data = datasets.load(name, complete=True, keep_ids=name == "breast")
    classes = np.unique(data.y)
    if name not in SPLIT:
        tasks = list(stratified_tasks(data.X, data.y, 5, random_state=seed))
    elif SPLIT[name] is None:
        tasks = [holdout(*data.split()[:2], *data.split()[2:])]
    else:
        parts = stratified_tasks(data.X, data.y, round(1 / SPLIT[name]), random_state=seed)
        tasks = [next(iter(parts))]
    for number, task in enumerate(tasks):
        yield Fold(name, number, len(tasks), task, classes, seed).limited(rows)
