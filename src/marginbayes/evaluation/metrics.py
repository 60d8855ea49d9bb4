"""Metrics of predictions: true classes as codes, and log P(class | row) for each class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import rankdata

__all__ = ["accuracy", "area_under_curve", "brier_score", "confusion_matrix", "log_loss"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


def accuracy(truth: Codes, log_proba: Floats) -> float:
    """Share of rows whose most probable class is the true one."""
    return float(np.mean(log_proba.argmax(axis=1) == truth))


def log_loss(truth: Codes, log_proba: Floats) -> float:
    """Mean of -log P(true class), in nats; computed from logs, so nothing is clipped."""
    return float(-np.mean(log_proba[np.arange(len(truth)), truth]))


def brier_score(truth: Codes, log_proba: Floats) -> float:
    """Mean squared distance between the probabilities and the truth, between 0 and 1 for two classes.

    With two classes it is the mean of (P(class) - [it is that class])^2, the same for both; with more
    classes these squares are summed over the classes, so that it is at most 2.
    """
    distance = np.exp(log_proba)
    distance[np.arange(len(truth)), truth] -= 1
    total = float(np.mean((distance**2).sum(axis=1)))
    return total / 2 if log_proba.shape[1] == 2 else total


def area_under_curve(truth: Codes, log_proba: Floats) -> float:
    """Area under the ROC curve; with several classes the mean over the classes of one against the rest.

    Classes that no row, or every row, belongs to are left out; NaN if none is left. Rows are ranked by
    log-odds, which still tell apart probabilities that are all rounded to one.
    """
    n_classes = log_proba.shape[1]
    columns = range(n_classes) if n_classes > 2 else range(1, n_classes)
    areas = [_area(truth == k, _log_odds(log_proba, k)) for k in columns]
    known = [a for a in areas if not np.isnan(a)]
    return float(np.mean(known)) if known else float("nan")


def confusion_matrix(truth: Codes, log_proba: Floats) -> NDArray[np.int64]:
    """Number of rows for each true class (row) and predicted class (column)."""
    n = log_proba.shape[1]
    return np.bincount(truth * n + log_proba.argmax(axis=1), minlength=n * n).reshape(n, n)


def _log_odds(log_proba: Floats, k: int) -> Floats:
    rest = logsumexp(np.delete(log_proba, k, axis=1), axis=1)
    return np.asarray(log_proba[:, k] - rest)


def _area(positive: NDArray[np.bool_], score: Floats) -> float:
    """Chance that a positive row ranks above a negative one, ties counting half (Mann & Whitney)."""
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return float("nan")
    # Rounded: the same probability gives odds that differ in their last digits, which are ties.
    return float((rankdata(np.round(score, 10))[positive].sum() - n * (n + 1) / 2) / (n * m))
