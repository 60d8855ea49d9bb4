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
    order = np.random.default_rng(random_state).permutation(len(rows))
    order = order[np.argsort(rows.codes[0][order], kind="stable")]
    part = np.empty(len(rows), np.intp)
    part[order] = np.arange(len(rows)) % parts
    return part


def split(rows: Rows, cv: int | None, holdout: float | None, random_state: int | None) -> list[tuple[Rows, Rows]]:
    """(training rows, held-out rows) of each of `cv` folds, or of the one split that holds out this share.

    Rows whose class is missing are left out.
    """
    rows = rows.take(rows.codes[0] < rows.cardinalities[0])
    parts = cv if cv is not None else max(2, round(1.0 / float(holdout or 0.5)))
    if len(rows) < parts:
        raise ValueError(f"{len(rows)} rows cannot be dealt into {parts} parts; give more rows or fewer parts")
    part = deal(rows, parts, random_state)
    return [(rows.take(part != k), rows.take(part == k)) for k in range(parts if cv is not None else 1)]


def accuracy(scores: Floats, labels: NDArray[Any], weights: Floats | None) -> float:
    """Share (of the weight) of the rows whose own class scores highest."""
    found = (scores >= scores.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return float(np.average(found == labels, weights=weights))


def log_loss(scores: Floats, labels: NDArray[Any], weights: Floats | None) -> float:
    """Mean of -log P(class | row)."""
    return -float(np.average(log_softmax(scores, axis=1)[np.arange(len(labels)), labels], weights=weights))
