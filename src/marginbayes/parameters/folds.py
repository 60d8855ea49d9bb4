"""Rows dealt into parts for training and judging, and what held-out rows say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from marginbayes.data.rows import Rows

__all__ = ["accuracy", "deal", "log_loss", "split"]

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


def split(rows: Rows, cv: int | None, holdout: float | None, random_state: int | None) -> list[tuple[Rows, Rows]]:
    """(training rows, held-out rows) of each of `cv` folds, or of the one split that holds out this share.

    Rows whose class is missing and rows of weight zero are left out.
    """
    rows = rows.labelled()
    parts = 2 if cv is None else cv
    if len(rows) < parts:
        raise ValueError(f"{len(rows)} rows cannot be dealt into {parts} parts; give more rows or fewer parts")
    if cv is None:
        out = _held_out(rows, 0.5 if holdout is None else holdout, random_state)
        return [(rows.take(~out), rows.take(out))]
    part = deal(rows, parts, random_state)
    return [(rows.take(part != k), rows.take(part == k)) for k in range(parts)]


def accuracy(scores: Floats, labels: NDArray[Any], weights: Floats | None) -> float:
    """Share (of the weight) of the rows whose own class scores highest."""
    found = (scores >= scores.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return float(np.average(found == labels, weights=weights))


def log_loss(scores: Floats, labels: NDArray[Any], weights: Floats | None) -> float:
    """Mean of -log P(class | row); no number where every class of a row is impossible."""
    with np.errstate(invalid="ignore"):
        own = log_softmax(scores, axis=1)[np.arange(len(labels)), labels]
    return -float(np.average(own, weights=weights))
