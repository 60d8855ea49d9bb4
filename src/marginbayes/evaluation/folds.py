"""Which rows train and which rows test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.frame import is_frame, read_frame

__all__ = ["Task", "holdout", "small_classes", "stratified_tasks", "task_of"]

Rows = NDArray[np.intp]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """One training set and one test set.

    Parameters
    ----------
    repeat : int
        Which repetition this is, from zero.
    fold : int
        Which fold of it, from zero.
    X_train : data frame or array
        Features to train with.
    y_train : array
        Their labels.
    X_test : data frame or array
        Features to test with.
    y_test : array
        Their labels.
    rows : array of int
        Numbers of the test rows in the table they come from.
    weights : array or None
        Of the training rows.
    """

    repeat: int
    fold: int
    X_train: Any = field(repr=False)
    y_train: NDArray[Any] = field(repr=False)
    X_test: Any = field(repr=False)
    y_test: NDArray[Any] = field(repr=False)
    rows: Rows = field(repr=False)
    weights: Floats | None = field(default=None, repr=False)


def holdout(X_train: Any, y_train: Any, X_test: Any, y_test: Any, sample_weight: Any = None) -> Task:
    """The one task of training on one table and testing on another."""
    truth, labels = np.asarray(y_test), np.asarray(y_train)
    return Task(0, 0, X_train, labels, X_test, truth, np.arange(len(truth)), _weights(sample_weight, len(labels)))


def stratified_tasks(
    X: Any,
    y: Any,
    n_folds: int = 5,
    n_repeats: int = 1,
    random_state: int | None = 0,
    sample_weight: Any = None,
) -> Iterator[Task]:
    """Tasks of a stratified cross-validation, one for each fold of each repetition.

    Every row is tested once in each repetition, with one exception: the row of a class that has no other
    row is always in the training set and never tested, since no classifier can know a class it never saw.

    Parameters
    ----------
    X : data frame or array of shape (n_samples, n_features)
        All rows.
    y : array-like of shape (n_samples,)
        Their classes.
    n_folds : int
        Of each class, the folds get the same number of rows or one more.
    n_repeats : int
        How often to deal the rows anew.
    random_state : int or None
        Seed; None draws one.
    sample_weight : array-like of shape (n_samples,) or None
        Weights to train with; folds and tests count rows.
    """
    labels = np.asarray(y)
    codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    _check(n_folds, n_repeats, int(sizes[sizes > 1].sum()))
    weights = _weights(sample_weight, len(labels))
    rng = np.random.default_rng(random_state)
    for repeat in range(n_repeats):
        dealt = _deal(codes, sizes, n_folds, rng)
        for fold in range(n_folds):
            test, train = np.flatnonzero(dealt == fold), np.flatnonzero(dealt != fold)
            yield task_of(X, labels, train, test, (repeat, fold), weights)


def task_of(
    X: Any, labels: NDArray[Any], train: Rows, test: Rows, place: tuple[int, int], sample_weight: Floats | None
) -> Task:
    """The task of training on some rows of a table and testing on others, as this repetition and fold."""
    weights = None if sample_weight is None else sample_weight[train]
    return Task(*place, _take(X, train), labels[train], _take(X, test), labels[test], test, weights)


def small_classes(y: Any, n_folds: int) -> dict[Any, int]:
    """Number of rows of each class that has fewer rows than there are folds."""
    labels, sizes = np.unique(np.asarray(y), return_counts=True)
    return {label: n for label, n in zip(labels.tolist(), sizes.tolist(), strict=True) if n < n_folds}


def _deal(codes: Rows, sizes: Rows, n_folds: int, rng: np.random.Generator) -> Rows:
    """Fold of each row, -1 if it is never tested: shuffled, sorted by class, dealt like cards."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    order = order[sizes[codes[order]] > 1]
    dealt = np.full(len(codes), -1, np.intp)
    dealt[order] = np.arange(len(order)) % n_folds
    return dealt


def _weights(sample_weight: Any, n: int) -> Floats | None:
    """Weights by position, as labels are taken."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has the shape {weights.shape}, but there are {n} rows to train with")
    return weights


def _take(X: Any, rows: Rows) -> Any:
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return read_frame(X).take(rows).source.to_native() if is_frame(X) else X[rows]


def _check(n_folds: int, n_repeats: int, n_rows: int) -> None:
    checks.whole("n_folds", n_folds, 2)
    checks.whole("n_repeats", n_repeats, 1)
    if n_rows < n_folds:
        raise ValueError(
            f"{n_folds} folds need at least {n_folds} rows of classes with two or more, there are {n_rows}"
        )
