"""Experiments on sequences: which chains learn and which test, and how many positions are labelled rightly."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from marginbayes import datasets
from marginbayes.datasets import synthetic
from marginbayes.datasets.dataset import Dataset, pandas
from marginbayes.sequence import SequenceLabeler
from marginbayes.study.spec import Task
from marginbayes.study.timing import Stopwatch

__all__ = ["label"]

ID = "sequence id"


def label(task: Task) -> dict[str, Any]:
    """Share of test positions, and of whole test sequences, that are labelled rightly.

    The split is ``SIZE-REPEAT``. Generated chains: so many of them learn. Others: chains are drawn until they have so
    many positions, then more until there are ``test_positions`` to test.
    """
    size, repeat = map(int, task.split.split("-"))
    data, train, test = _chains(task, size, repeat)
    X = pandas().concat([data.X, _ids(data).rename(ID)], axis=1)
    model = SequenceLabeler(sequence=ID, **task.method.options.get("options", {}))
    watch = Stopwatch()
    model.fit(X.iloc[train], data.y.iloc[train])
    spent = watch.spent()
    right = np.asarray(model.predict(X.iloc[test])) == data.y.iloc[test].to_numpy()
    result = {
        "accuracy": float(right.mean()),
        "tested": len(test),
        "trained": len(train),
        "whole_sequences": float(pandas().Series(right).groupby(X[ID].iloc[test].to_numpy()).all().mean()),
        **spent.of_fit(),
    }
    if model.certificate_ is not None:
        result["gap"] = model.certificate_.gap
    return result


def _chains(task: Task, size: int, repeat: int) -> tuple[Dataset, Any, Any]:
    """The data, and the rows that learn and that test."""
    protocol = task.options["protocol"]
    if task.dataset == "skewed-chain":
        data = synthetic.skewed_chain(size, random_state=task.seed + repeat, **protocol.get("generate", {}))
        return data, data.train, data.test
    data = _load(task.dataset)
    ids = _ids(data)
    order = np.random.default_rng([task.seed, repeat]).permutation(ids.unique())
    lengths = ids.value_counts()[order].to_numpy()
    reached = np.cumsum(lengths)
    learn = int(np.searchsorted(reached, size)) + 1
    wanted = reached[min(learn, len(reached)) - 1] + protocol.get("test_positions", 1000)
    last = int(np.searchsorted(reached, wanted)) + 1
    train, test = (np.flatnonzero(ids.isin(part)) for part in (order[:learn], order[learn:last]))
    return data, train, test


@lru_cache(maxsize=1)
def _load(dataset: str) -> Dataset:
    return datasets.load(dataset)


def _ids(data: Dataset) -> Any:
    if data.groups is None:
        raise ValueError(f"the data set {data.name!r} has no column that says which rows are one sequence")
    return data.groups
