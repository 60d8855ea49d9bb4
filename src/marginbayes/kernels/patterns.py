"""Entropies and rates over many variables at once, from the patterns of values that occur.

Rows come sorted by the pattern they have over the variables chosen so far; a candidate splits each run of equal
patterns, so counting needs no table of all patterns, and a run of one row needs no counting at all.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["entropy_sums", "pair_sums", "saturated_rate"]

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]


@njit(inline="always")
def _xlogx(x: float) -> float:
    return x * math.log(x) if x != 1.0 else 0.0


@njit(cache=True, nogil=True)
def entropy_sums(
    order: Ints, starts: Ints, codes: Codes, size: int, labels: Ints, n_classes: int, weights: Floats
) -> tuple[float, int, int]:
    """sum of n log n over the patterns with the class less the same without it, and how many of each occur.

    The patterns are those of the runs `order[starts[g] : starts[g + 1]]`, extended by the candidate's code.
    """
    cells, full = np.zeros(size), np.zeros(size * n_classes)
    difference, seen, seen_full = 0.0, 0, 0
    for g in range(len(starts) - 1):
        first, last = starts[g], starts[g + 1]
        if last - first == 1:  # the two sums agree
            seen += 1
            seen_full += 1
            continue
        for t in range(first, last):
            n = order[t]
            cells[codes[n]] += weights[n]
            full[codes[n] * n_classes + labels[n]] += weights[n]
        for t in range(first, last):
            n = order[t]
            at = codes[n] * n_classes + labels[n]
            if full[at] > 0.0:
                difference += _xlogx(full[at])
                seen_full += 1
                full[at] = 0.0
            if cells[codes[n]] > 0.0:
                difference -= _xlogx(cells[codes[n]])
                seen += 1
                cells[codes[n]] = 0.0
    return difference, seen, seen_full


@njit(cache=True, nogil=True)
def pair_sums(codes: Codes, cards: Ints, labels: Ints, weights: Floats) -> Floats:
    """[i, j]: sum of n log n over the values of (i, j, class) less that over the values of (i, j), for all features.

    A missing cell is a value of its own. The first row and column, those of the class, stay zero.
    """
    d, n_classes = len(cards), cards[0]
    widest = np.sort(cards[1:] + 1)[-2:]  # no pair has more cells than the two features of most levels
    found = np.zeros((d, d))
    full = np.zeros(np.prod(widest) * n_classes)
    for i in range(1, d):
        for j in range(i + 1, d):
            cells = (cards[i] + 1) * (cards[j] + 1)
            for n in range(len(labels)):
                full[(codes[i, n] * (cards[j] + 1) + codes[j, n]) * n_classes + labels[n]] += weights[n]
            total = 0.0
            for cell in range(cells):
                both = 0.0
                for c in range(n_classes):
                    part = full[cell * n_classes + c]
                    full[cell * n_classes + c] = 0.0
                    if part > 0.0:
                        both += part
                        total += _xlogx(part)
                if both > 0.0:
                    total -= _xlogx(both)
            found[i, j] = found[j, i] = total
    return found


@njit(cache=True, nogil=True)
def saturated_rate(
    order: Ints, starts: Ints, codes: Codes, size: int, labels: Ints, n_classes: int, weights: Floats
) -> float:
    """Weight of the rows that the most frequent class of their extended pattern classifies correctly."""
    top, full = np.zeros(size), np.zeros(size * n_classes)
    right = 0.0
    for g in range(len(starts) - 1):
        first, last = starts[g], starts[g + 1]
        for t in range(first, last):
            n = order[t]
            at = codes[n] * n_classes + labels[n]
            full[at] += weights[n]
            if full[at] > top[codes[n]]:
                right += full[at] - top[codes[n]]
                top[codes[n]] = full[at]
        for t in range(first, last):
            n = order[t]
            top[codes[n]] = 0.0
            full[codes[n] * n_classes + labels[n]] = 0.0
    return right
