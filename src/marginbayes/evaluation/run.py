"""Training and testing, one task after the other."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from marginbayes.evaluation.folds import Task
from marginbayes.solvers.interrupt import all_or_nothing

__all__ = ["Outcome", "run"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one classifier said about the test rows of one task.

    Parameters
    ----------
    name : str
        Of the classifier.
    repeat : int
        Of the task.
    fold : int
        Of the task.
    rows : array of int
        Numbers of the test rows.
    truth : array of int
        True class of each, as a position among the classes.
    log_proba : array of shape (n_rows, n_classes)
        log P(class | row); -inf for a class that the training rows lack.
    n_train : int
        Number of training rows.
    fit_seconds : float
        Wall-clock time of the fit.
    predict_seconds : float
        Wall-clock time of the predictions.
    """

    name: str
    repeat: int
    fold: int
    rows: NDArray[np.intp] = field(repr=False)
    truth: NDArray[np.intp] = field(repr=False)
    log_proba: Floats = field(repr=False)
    n_train: int
    fit_seconds: float
    predict_seconds: float

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the most probable class is the true one, for each row."""
        return np.asarray(self.log_proba.argmax(axis=1) == self.truth)


def run(estimators: Mapping[str, Any], tasks: Iterable[Task], classes: Any) -> Iterator[Outcome]:
    """Outcome of each classifier on each task, one at a time, so that whoever stops early keeps what is done.

    All classifiers finish a task before the next begins: what is done so far is always a fair comparison.

    Parameters
    ----------
    estimators : mapping from name to classifier
        Cloned before every fit.
    tasks : iterable of Task
        Training and test sets, such as `stratified_tasks` gives.
    classes : array-like
        All class labels, each once, sorted, those that only occur among the test rows included.
    """
    labels = np.asarray(classes)
    if labels.tolist() != sorted({*labels.tolist()}):
        raise ValueError(f"classes must be sorted, and each label there once, not {labels.tolist()}; see numpy.unique")
    for task in tasks:
        for name, estimator in estimators.items():
            yield _outcome(name, clone(estimator), task, labels)


def _outcome(name: str, estimator: Any, task: Task, classes: NDArray[Any]) -> Outcome:
    start = time.perf_counter()
    with all_or_nothing():
        if task.weights is None:  # which not every classifier takes
            estimator.fit(task.X_train, task.y_train)
        else:
            estimator.fit(task.X_train, task.y_train, sample_weight=task.weights)
    fitted = time.perf_counter()
    log_proba = np.full((len(task.y_test), len(classes)), -np.inf)
    log_proba[:, _places(estimator.classes_, classes)] = estimator.predict_log_proba(task.X_test)
    done = time.perf_counter()
    truth = _places(task.y_test, classes)
    return Outcome(
        name,
        task.repeat,
        task.fold,
        task.rows,
        truth,
        log_proba,
        len(task.y_train),
        fitted - start,
        done - fitted,
    )


def _places(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Position of each label among the classes."""
    place = {label: i for i, label in enumerate(classes.tolist())}
    found = np.asarray(labels).tolist()
    for label in found:
        if label not in place:
            raise ValueError(f"the label {label!r} is none of the classes {classes.tolist()}; name all labels there")
    return np.array([place[label] for label in found], np.intp)
