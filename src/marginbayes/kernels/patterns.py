"""Entropies and rates over many variables at once, from the patterns of values that occur.

Rows come sorted into *runs* of equal patterns over the variables chosen so far; a candidate splits each run, so that no
table of all patterns is needed. A run whose rows are all of one class has nothing left to tell, and may be left out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["entropy_sums", "pair_sums", "saturated_rates", "split_runs"]

Ints = NDArray[np.int64]
Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
Floats = NDArray[np.float64]


@njit(inline="always")
def _xlogx(x: float) -> float:
    return x * math.log(x) if x > 0.0 and x != 1.0 else 0.0


@njit(cache=True, nogil=True)
def split_runs(
    order: Ints, starts: Ints, codes: Codes, size: int, labels: Ints, n_classes: int, weights: Floats, mixed: bool
) -> tuple[Ints, Ints, float]:
    """Order and starts of the runs that one more variable makes of these, and sum of n log n over them less the same
    with the class; runs of one class are left out where only mixed ones are wanted.
    """
    new_order, new_starts = np.empty_like(order), np.empty(len(order) + 1, np.int64)
    place, parts = np.zeros(size + 1, np.int64), np.zeros(n_classes)
    end, runs, base = 0, 0, 0.0
    for g in range(len(starts) - 1):
        first, last = starts[g], starts[g + 1]
        place[:] = 0
        for t in range(first, last):
            place[np.int64(codes[order[t]]) + 1] += 1
        for x in range(size):
            place[x + 1] += place[x]
        for t in range(first, last):  # a counting sort, into what may still be thrown away
            code = np.int64(codes[order[t]])
            new_order[end + place[code]] = order[t]
            place[code] += 1
        begin = kept = end
        for x in range(size):
            length = end + place[x] - begin
            if length == 0:
                continue
            total, pure = 0.0, True
            for t in range(begin, begin + length):
                n = new_order[t]
                pure = pure and labels[n] == labels[new_order[begin]]
                parts[labels[n]] += weights[n]
                total += weights[n]
            base += _xlogx(total)
            for t in range(begin, begin + length):
                base -= _xlogx(parts[labels[new_order[t]]])
                parts[labels[new_order[t]]] = 0.0
            if not (mixed and pure):
                new_starts[runs] = kept
                runs += 1
                for t in range(length):
                    new_order[kept + t] = new_order[begin + t]
                kept += length
            begin += length
        end = kept
    new_starts[runs] = end
    return new_order[:end], new_starts[: runs + 1], base


@njit(inline="always")
def _long_run(
    order: Ints, first: int, last: int, codes: Codes, size: int, labels: Ints, n_classes: int, weights: Floats,
    full: Floats,
) -> tuple[float, int, int]:  # fmt: skip
    """The three sums of a run that has more rows than the candidate has levels: by going through all cells."""
    difference, seen, seen_full = 0.0, 0, 0
    for t in range(first, last):
        n = order[t]
        full[np.int64(codes[n]) * n_classes + labels[n]] += weights[n]
    for x in range(size):
        total = 0.0
        for c in range(n_classes):
            part = full[x * n_classes + c]
            full[x * n_classes + c] = 0.0
            total += part
            difference += _xlogx(part)
            seen_full += part > 0.0
        difference -= _xlogx(total)
        seen += total > 0.0
    return difference, seen, seen_full


@njit(inline="always")
def _short_run(
    order: Ints, first: int, last: int, codes: Codes, labels: Ints, n_classes: int, weights: Floats, cells: Floats,
    full: Floats,
) -> tuple[float, int, int]:  # fmt: skip
    """The three sums of a run: by going through its rows again."""
    difference, seen, seen_full = 0.0, 0, 0
    for t in range(first, last):
        n = order[t]
        cells[np.int64(codes[n])] += weights[n]
        full[np.int64(codes[n]) * n_classes + labels[n]] += weights[n]
    for t in range(first, last):
        n = order[t]
        x = np.int64(codes[n])
        at = x * n_classes + labels[n]
        difference += _xlogx(full[at]) - _xlogx(cells[x])
        seen_full += full[at] > 0.0
        seen += cells[x] > 0.0
        full[at] = cells[x] = 0.0
    return difference, seen, seen_full


@njit(cache=True, nogil=True)
def entropy_sums(
    order: Ints, starts: Ints, codes: Codes, sizes: Ints, features: Ints, labels: Ints, n_classes: int, weights: Floats
) -> tuple[Floats, Ints, Ints]:
    """For each feature: sum of n log n over the patterns with the class less the same without it; how many of each.

    The patterns are those of the runs `order[starts[g] : starts[g + 1]]`, extended by the code of the feature.
    """
    difference = np.zeros(len(features))
    seen, seen_full = np.zeros(len(features), np.int64), np.zeros(len(features), np.int64)
    for k in range(len(features)):
        i = features[k]
        size = sizes[i]
        cells, full = np.zeros(size), np.zeros(size * n_classes)
        for g in range(len(starts) - 1):
            first, last = starts[g], starts[g + 1]
            if last - first > size:
                found = _long_run(order, first, last, codes[i], size, labels, n_classes, weights, full)
            else:
                found = _short_run(order, first, last, codes[i], labels, n_classes, weights, cells, full)
            difference[k] += found[0]
            seen[k] += found[1]
            seen_full[k] += found[2]
    return difference, seen, seen_full


@njit(cache=True, nogil=True)
def pair_sums(codes: Codes, sizes: Ints, weights: Floats) -> Floats:
    """[i, j]: sum of n log n over the values of (i, j, class) less that over the values of (i, j), for all features.

    A missing cell is a value of its own. The first row and column, those of the class, stay zero.
    """
    d, n_classes = len(sizes), sizes[0]
    widest = np.sort(sizes[1:])[-2:]  # no pair has more cells than the two features of most values
    found, full = np.zeros((d, d)), np.zeros(np.prod(widest) * n_classes)
    for i in range(1, d):
        for j in range(i + 1, d):
            # Unsigned: without tests for negative positions counting takes half the time.
            by, classes = np.uint64(sizes[j] * n_classes), np.uint64(n_classes)
            for n in range(len(weights)):
                at = np.uint64(codes[i, n]) * by + np.uint64(codes[j, n]) * classes + np.uint64(codes[0, n])
                full[at] += weights[n]
            total = 0.0
            for cell in range(sizes[i] * sizes[j]):
                both = 0.0
                for c in range(n_classes):
                    part = full[cell * n_classes + c]
                    full[cell * n_classes + c] = 0.0
                    both += part
                    total += _xlogx(part)
                total -= _xlogx(both)
            found[i, j] = found[j, i] = total
    return found


@njit(cache=True, nogil=True)
def saturated_rates(
    order: Ints, starts: Ints, codes: Codes, sizes: Ints, features: Ints, labels: Ints, n_classes: int, weights: Floats
) -> Floats:
    """For each feature: weight of the rows that belong to the most frequent class of their extended pattern."""
    right = np.zeros(len(features))
    for k in range(len(features)):
        i = features[k]
        top, full = np.zeros(sizes[i]), np.zeros(sizes[i] * n_classes)
        for g in range(len(starts) - 1):
            for t in range(starts[g], starts[g + 1]):
                n = order[t]
                x = np.int64(codes[i, n])
                at = x * n_classes + labels[n]
                full[at] += weights[n]
                if full[at] > top[x]:
                    right[k] += full[at] - top[x]
                    top[x] = full[at]
            for t in range(starts[g], starts[g + 1]):
                n = order[t]
                x = np.int64(codes[i, n])
                top[x] = 0.0
                full[x * n_classes + labels[n]] = 0.0
    return right
