"""Entropies and rates over many variables at once, from the patterns of values that occur."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["entropy_sums", "saturated_rate"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@njit(inline="always")
def _xlogx(x: float) -> float:
    return x * math.log(x) if x > 0.0 else 0.0


@njit(cache=True, nogil=True)
def entropy_sums(
    group: Ints, n_groups: int, codes: NDArray[np.int32], size: int, labels: Ints, n_classes: int, weights: Floats
) -> tuple[float, float, int, int]:
    """sum of n log n over the patterns (group, code) and (group, code, class), and how many of each occur.

    One pass: a cell that grows from a to b changes the sum by b log b - a log a.
    """
    both = np.zeros(n_groups * size)
    full = np.zeros(n_groups * size * n_classes)
    without_class, with_class, seen, seen_full = 0.0, 0.0, 0, 0
    for n in range(len(group)):
        cell = group[n] * size + codes[n]
        old = both[cell]
        seen += old == 0.0
        both[cell] = old + weights[n]
        without_class += _xlogx(both[cell]) - _xlogx(old)
        cell = cell * n_classes + labels[n]
        old = full[cell]
        seen_full += old == 0.0
        full[cell] = old + weights[n]
        with_class += _xlogx(full[cell]) - _xlogx(old)
    return without_class, with_class, seen, seen_full


@njit(cache=True, nogil=True)
def saturated_rate(
    group: Ints, n_groups: int, codes: NDArray[np.int32], size: int, labels: Ints, n_classes: int, weights: Floats
) -> float:
    """Weight of the rows that the most frequent class of their pattern (group, code) classifies correctly."""
    full = np.zeros(n_groups * size * n_classes)
    top = np.zeros(n_groups * size)
    right = 0.0
    for n in range(len(group)):
        cell = group[n] * size + codes[n]
        at = cell * n_classes + labels[n]
        full[at] += weights[n]
        if full[at] > top[cell]:
            right += full[at] - top[cell]
            top[cell] = full[at]
    return right
