"""How the rows of a data set are dealt into training and test sets.

A protocol is a mapping:

- ``folds = 5``: stratified cross-validation, the same folds for every method;
- ``test = {chess = "split", car = 575}``: for these sets a test set instead, the one the set comes with, or a seeded
  one of this many rows;
- ``sizes = [10, 20], repeats = 5``: training sets of these sizes, drawn anew, the rest being the test set; a set that
  a rule generates is generated anew, with the arguments ``generate = {...}``;
- ``complete``: whether rows with missing cells are left out (yes), ``keep = [...]``: not of these sets;
- ``first = 10000``: the training set is a stratified sample of this size;
- ``levels = "all"``: numbers are discretised beforehand, by all rows, where training sets are too small to do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes import MDLPDiscretizer, datasets
from marginbayes.datasets import synthetic
from marginbayes.datasets.dataset import Dataset
from marginbayes.evaluation.folds import Task as Rows
from marginbayes.evaluation.folds import holdout, stratified_tasks

__all__ = ["known_rows", "known_size", "split", "split_names", "validation_folds", "whole"]

Protocol = Mapping[str, Any]

# What a rule makes of a size: rows to learn from, or the number of features where that is what the experiment varies.
GENERATORS: Mapping[str, Callable[..., Dataset]] = {
    "informative-edge": lambda size, **options: synthetic.informative_edge(size, **options),
    "skewed-moral": lambda size, **options: synthetic.skewed_network(synthetic.MORAL, n_train=size, **options),
    "skewed-immoral": lambda size, **options: synthetic.skewed_network(synthetic.IMMORAL, n_train=size, **options),
    "random-distribution": lambda size, **options: synthetic.random_distribution(size, **options),
    "class-trees": lambda size, **options: synthetic.class_trees(size, **options),
}


def split_names(protocol: Protocol, dataset: str) -> list[str]:
    """Names of the splits of a data set; nothing is loaded."""
    if "sizes" in protocol:
        return [f"{size}-{repeat}" for size in protocol["sizes"] for repeat in range(protocol.get("repeats", 1))]
    if "repeats" in protocol:
        raise ValueError(f"a protocol with repeats = {protocol['repeats']!r} says in sizes what is drawn repeatedly")
    if protocol.get("whole"):
        return ["all"]
    if dataset in protocol.get("test", {}):
        return ["test"]
    return [f"fold{i}" for i in range(protocol.get("folds", 5))]


def split(protocol: Protocol, dataset: str, name: str, seed: int) -> Rows:
    """Training and test rows of one split."""
    if "sizes" in protocol:
        size, repeat = map(int, name.split("-"))
        if dataset in GENERATORS:
            return _generated(protocol, dataset, size, seed + repeat)
        return _sampled(whole(protocol, dataset), size, repeat, seed)
    data = whole(protocol, dataset)
    if name == "all":
        return holdout(data.X, data.y, data.X, data.y)
    if name == "test":
        return _shortened(_test_set(data, protocol["test"][dataset], seed), protocol, seed)
    folds = stratified_tasks(data.X, data.y.to_numpy(), protocol.get("folds", 5), random_state=seed)
    return next(rows for rows in folds if f"fold{rows.fold}" == name)


def whole(protocol: Protocol, dataset: str) -> Dataset:
    """All rows of a data set that take part."""
    complete = bool(protocol.get("complete", True)) and dataset not in protocol.get("keep", ())
    return _load(dataset, complete, protocol.get("levels") == "all")


def validation_folds(labels: Any, seed: int, large: int = 1000) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows to learn from and rows to choose by: five folds, or one of them where there are more than `large` rows."""
    numbers = np.arange(len(labels))
    folds = [(np.setdiff1d(numbers, t.rows), t.rows) for t in stratified_tasks(numbers, labels, 5, random_state=seed)]
    return folds[:1] if len(labels) > large else folds


def known_size(dataset: str) -> int:
    """Cells of a data set, as far as its catalogue knows them; 0 elsewhere."""
    return next(((r.rows or 0) * (r.features or 0) for r in _catalogue() if r.name == dataset), 0)


def known_rows(dataset: str) -> int | None:
    """Rows of a data set, those with missing cells among them, if its catalogue knows; None elsewhere."""
    return next((record.rows for record in _catalogue() if record.name == dataset), None)


@lru_cache(maxsize=1)
def _catalogue() -> tuple[datasets.Record, ...]:
    return tuple(datasets.available())


@lru_cache(maxsize=2)
def _load(dataset: str, complete: bool, levels: bool) -> Dataset:
    data = datasets.load(dataset, complete=complete)
    return replace(data, X=_discretised(data)) if levels else data


def _discretised(data: Dataset) -> Any:
    """The features with intervals instead of numbers."""
    X = data.X.copy()
    for name, kind in data.kinds.items():
        if kind == "numeric":
            column = MDLPDiscretizer().fit(X[[name]], data.y).transform(X[[name]])
            X[name] = np.asarray(column).reshape(-1)
            X[name] = X[name].astype("Int64").astype("category")
    return X


def _test_set(data: Dataset, choice: str | int, seed: int) -> Rows:
    if choice == "split":
        return holdout(*data.split())
    order = np.random.default_rng(seed).permutation(len(data.y))
    test, train = np.sort(order[: int(choice)]), np.sort(order[int(choice) :])
    return holdout(data.X.iloc[train], data.y.iloc[train], data.X.iloc[test], data.y.iloc[test])


def _shortened(rows: Rows, protocol: Protocol, seed: int) -> Rows:
    """The same test rows with a stratified sample of the training rows, where the protocol wants that."""
    first = protocol.get("first")
    if first is None or first >= len(rows.y_train):
        return rows
    chosen = _stratified_sample(rows.y_train, int(first), np.random.default_rng(seed))
    return holdout(rows.X_train.iloc[chosen], rows.y_train[chosen], rows.X_test, rows.y_test)


def _stratified_sample(labels: NDArray[Any], size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows in which every class has its share: each class is shuffled and spread evenly over the unit interval."""
    place = np.empty(len(labels))
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        place[rng.permutation(own)] = (np.arange(len(own)) + rng.random()) / len(own)
    return np.sort(np.argsort(place, kind="stable")[:size])


def _generated(protocol: Protocol, dataset: str, size: int, seed: int) -> Rows:
    data = GENERATORS[dataset](size, random_state=seed, **protocol.get("generate", {}))
    return holdout(*data.split())


def _sampled(data: Dataset, size: int, repeat: int, seed: int) -> Rows:
    """Training rows number `repeat`: parts of the shuffled rows, which are shuffled anew once all had their turn."""
    turn, place = divmod(repeat, max(1, len(data.y) // size))
    order = np.random.default_rng([seed, turn] if turn else seed).permutation(len(data.y))
    train = np.sort(order[place * size : (place + 1) * size])
    test = np.setdiff1d(np.arange(len(order)), train)
    return holdout(data.X.iloc[train], data.y.iloc[train], data.X.iloc[test], data.y.iloc[test])
