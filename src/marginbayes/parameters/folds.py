"""Rows dealt into parts for training and judging, and what held-out rows say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from marginbayes import checks
from marginbayes.data.rows import Rows

__all__ = ["accuracy", "check_split", "deal", "in_folds", "log_loss", "usual_split"]

Floats = NDArray[np.float64]

# Scores that differ by less are equal but for rounding; the first class wins.
TIE = 1e-9


def deal(rows: Rows, parts: int, random_state: int | None = None) -> NDArray[np.intp]:
    """For each row its part, 0 to parts - 1: shuffled, then dealt out class by class."""
    part = np.empty(len(rows), np.intp)
    part[_shuffled_by_class(rows, random_state)] = np.arange(len(rows)) % parts
    return part


def _held_out(rows: Rows, share: float, random_state: int | None) -> NDArray[np.bool_]:
    """The rows of a share of every class: of the shuffled rows the first, and one whenever the share is full again."""
    full = np.floor(np.arange(-1, len(rows)) * share + 1e-9)
    out = np.empty(len(rows), bool)
    out[_shuffled_by_class(rows, random_state)] = np.diff(full) > 0
    return out


def _shuffled_by_class(rows: Rows, random_state: int | None) -> NDArray[np.intp]:
    order = np.random.default_rng(random_state).permutation(len(rows))
    return np.asarray(order[np.argsort(rows.codes[0][order], kind="stable")])


def check_split(cv: Any, holdout: Any) -> None:
    """Refuse settings of folds, or of a held-out share, that make no sense."""
    if cv is not None and holdout is not None:
        raise ValueError(f"cv={cv!r} and holdout={holdout!r} exclude each other; give one of them")
    checks.whole("cv", cv, 2, none=True)
    checks.number("holdout", holdout, lambda share: 0 < share <= 0.5, "above 0 and at most a half", none=True)


def usual_split(
    rows: Rows, cv: int | None, holdout: float | None, random_state: int | None, few: int
) -> list[tuple[Rows, Rows]]:
    """(training rows, held-out rows): of each of `cv` folds, or of the one split that holds out this share.

    By default of five folds where there are up to so many rows; of more a fifth is held out. Rows whose class is
    missing and rows of weight zero are left out.
    """
    folds = 5 if cv is None and holdout is None and len(rows) <= few else cv
    if folds is not None:
        return in_folds(rows, folds, random_state)
    known = _enough(rows, 2)
    out = _held_out(known, holdout or 0.2, random_state)
    return [(known.take(~out), known.take(out))]


def in_folds(rows: Rows, folds: int, random_state: int | None) -> list[tuple[Rows, Rows]]:
    """(training rows, held-out rows) of each fold; rows without a class or of weight zero are left out."""
    known = _enough(rows, folds)
    part = deal(known, folds, random_state)
    return [(known.take(part != k), known.take(part == k)) for k in range(folds)]


def _enough(rows: Rows, parts: int) -> Rows:
    known = rows.labelled()
    if len(known) < parts:
        raise ValueError(f"{len(known)} rows cannot be dealt into {parts} parts; give more rows or fewer parts")
    return known


def accuracy(scores: Floats, labels: NDArray[Any], weights: Floats | None) -> float:
    """Share (of the weight) of the rows whose own class scores highest."""
    found = (scores >= scores.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return float(np.average(found == labels, weights=weights))


def log_loss(scores: Floats, labels: NDArray[Any], weights: Floats | None) -> float:
    """Mean of -log P(class | row); no number where every class of a row is impossible."""
    with np.errstate(invalid="ignore"):
        own = log_softmax(scores, axis=1)[np.arange(len(labels)), labels]
    return -float(np.average(own, weights=weights))
