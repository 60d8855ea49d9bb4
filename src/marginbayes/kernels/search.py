"""Scoring candidate parents of one feature by what they do to the classification of every row.

The state of a search is one vector for each row: log P(class, row) for every class, or, for the binary margin, the one
log-ratio of the row's own class against all others. A family adds one entry of its table to it, so a candidate costs
one pass over the rows, and fewer where it is given up: every score is turned into a loss that is never negative, rows
with the greatest loss come first, and a candidate is left as soon as its loss exceeds the limit.

Tables are laid out child, parents, class. Every member has one level more, for a missing cell: a missing child adds
nothing, a missing parent is summed over.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["add_family", "losses", "score_candidates", "table_of"]

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

# Scores, each as a loss: an error, minus the log posterior, how much the margin lacks; the last for the binary margin.
RATE, LIKELIHOOD, MARGIN, BINARY = 0, 1, 2, 3
# Smoothing: an amount for every cell, a floor under zero probabilities, or an amount that all cells share.
ADD, FLOOR, SPREAD = 0, 1, 2
# The log of an impossible event: finite, so that it can be taken away again, and beyond any sum of possible ones.
LOG_ZERO = -1e5
# Log joints that differ by less are equal but for rounding.
TIE = 1e-9


@njit(inline="always")
def _rate_loss(row: Floats, label: int) -> float:
    for c in range(len(row)):
        if row[c] > row[label] + TIE or (c < label and row[c] > row[label] - TIE):
            return 1.0
    return 0.0


@njit(inline="always")
def _likelihood_loss(row: Floats, label: int) -> float:
    top = row[0]
    for c in range(1, len(row)):
        top = max(top, row[c])
    total = 0.0
    for c in range(len(row)):
        total += math.exp(row[c] - top)
    return float(top + math.log(total) - row[label])


@njit(inline="always")
def _margin_loss(row: Floats, label: int, gamma: float) -> float:
    rival = -np.inf
    for c in range(len(row)):
        if c != label:
            rival = max(rival, row[c])
    return float(max(0.0, gamma - (row[label] - rival)))


@njit(inline="always")
def _loss(kind: int, row: Floats, label: int, gamma: float) -> float:
    if kind == RATE:
        return float(_rate_loss(row, label))
    if kind == LIKELIHOOD:
        return float(_likelihood_loss(row, label))
    if kind == MARGIN:
        return float(_margin_loss(row, label, gamma))
    return float(max(0.0, gamma - row[0]))


@njit(cache=True, nogil=True)
def losses(kind: int, state: Floats, labels: Ints, gamma: float) -> Floats:
    """Loss of every row, before its weight."""
    out = np.empty(len(state))
    for n in range(len(state)):
        out[n] = _loss(kind, state[n], labels[n], gamma)
    return out


@njit(cache=True, nogil=True)
def _count(index: Ints, codes: Codes, radix: int, labels: Ints, weights: Floats, n_classes: int, out: Floats) -> None:
    """out[cell, class]: weight of the rows whose index is extended by one more member's code."""
    out[:] = 0.0
    for n in range(len(index)):
        out[(index[n] * radix + codes[n]) * n_classes + labels[n]] += weights[n]


@njit(inline="always")
def _sum_missing(table: Floats, outer: int, size: int, inner: int) -> None:
    """Fill the last of `size` levels, that of a missing parent, with the sum over all of them."""
    for o in range(outer):
        for i in range(inner):
            total = 0.0
            for x in range(size):
                total += table[(o * size + x) * inner + i]
            table[(o * size + size - 1) * inner + i] = total


@njit(inline="always")
def _smoothed(part: float, total: float, levels: int, smoothing: int, amount: float, zeros: float) -> float:
    """Log of a smoothed share; `zeros` is how many of the levels have none, for the floor."""
    if total + amount <= 0.0 or (smoothing == FLOOR and total <= 0.0):
        return -math.log(levels)
    if smoothing != FLOOR:
        return math.log((part + amount) / (total + amount * levels)) if part + amount > 0.0 else LOG_ZERO
    share = part / total if part > 0.0 else amount
    return math.log(share / (1.0 + zeros * amount)) if share > 0.0 else LOG_ZERO


@njit(inline="always")
def _amount(at: int, sizes: Ints, n_classes: int, binary: bool, smoothing: int, amount: float) -> float:
    """The smoothing of one cell at this place of parents and class; a missing parent is none of the table."""
    if smoothing != SPREAD:
        return amount
    cells = (sizes[0] - 1) * (2 if binary else n_classes)
    rest = at // n_classes
    for k in range(len(sizes) - 1, 0, -1):
        if rest % sizes[k] < sizes[k] - 1:
            cells *= sizes[k] - 1
        rest //= sizes[k]
    return float(amount / cells)


@njit(inline="always")
def _fill(
    counts: Floats, at: int, step: int, levels: int, smoothing: int, amount: float, out: Floats, sign: float
) -> None:
    """Add the log of the smoothed shares of the child's levels at counts[at], counts[at + step], ... to out."""
    total, zeros = 0.0, 0.0
    for x in range(levels):
        total += counts[at + x * step]
        zeros += counts[at + x * step] <= 0.0
    for x in range(levels):
        out[at + x * step] += sign * _smoothed(counts[at + x * step], total, levels, smoothing, amount, zeros)


@njit(cache=True, nogil=True)
def table_of(
    counts: Floats, sizes: Ints, n_classes: int, binary: bool, smoothing: int, amount: float, out: Floats
) -> None:
    """Log tables from counts laid out child, parents, class; sizes include the level of a missing cell.

    `binary` makes log P(child | parents, own class) - log P(child | parents, all other classes) of it, for each class.
    The counts are used up.
    """
    levels, step = sizes[0] - 1, n_classes
    for k in range(1, len(sizes)):
        step *= sizes[k]
    outer, inner = sizes[0], step
    for k in range(1, len(sizes)):
        inner //= sizes[k]
        _sum_missing(counts, outer, sizes[k], inner)
        outer *= sizes[k]
    out[: sizes[0] * step] = 0.0
    for at in range(step):
        own = _amount(at, sizes, n_classes, binary, smoothing, amount)
        _fill(counts, at, step, levels, smoothing, own, out, 1.0)
    if binary:
        for start in range(0, sizes[0] * step, n_classes):
            total = 0.0
            for c in range(n_classes):
                total += counts[start + c]
            for c in range(n_classes):
                counts[start + c] = max(0.0, total - counts[start + c])
        for at in range(step):
            own = _amount(at, sizes, n_classes, binary, smoothing, amount)
            _fill(counts, at, step, levels, smoothing, own, out, -1.0)


@njit(cache=True, nogil=True)
def add_family(
    state: Floats,
    index: Ints,
    sizes: Ints,
    labels: Ints,
    weights: Floats,
    n_classes: int,
    binary: bool,
    smoothing: int,
    amount: float,
    sign: float,
) -> None:
    """Add what a family contributes to the vector of every row, times the sign, in place."""
    cells = n_classes
    for k in range(len(sizes)):
        cells *= sizes[k]
    counts, table = np.zeros(cells), np.empty(cells)
    for n in range(len(index)):
        counts[index[n] * n_classes + labels[n]] += weights[n]
    table_of(counts, sizes, n_classes, binary, smoothing, amount, table)
    for n in range(len(index)):
        at = index[n] * n_classes
        if binary:
            state[n, 0] += sign * table[at + labels[n]]
        else:
            for c in range(n_classes):
                state[n, c] += sign * table[at + c]


@njit(cache=True, nogil=True)
def score_candidates(
    kind: int,
    gamma: float,
    state: Floats,
    labels: Ints,
    weights: Floats,
    order: Ints,
    codes: Codes,
    cards: Ints,
    index: Ints,
    sizes: Ints,
    candidates: Ints,
    smoothing: int,
    amount: float,
    limit: float,
    slack: float,
) -> Floats:
    """Loss of the whole data for each candidate as one more parent; infinite where it certainly exceeds the limit.

    `state` is that of all other families; `index` and `sizes` lay out the child with the parents it keeps. The limit
    falls to the best loss found on the way plus the slack, so only candidates that are strictly worse than another one,
    and not just by rounding, are given up.
    """
    n_classes = cards[0]
    found = np.full(len(candidates), np.inf)
    cells = n_classes
    for k in range(len(sizes)):
        cells *= sizes[k]
    largest = 0
    for k in range(len(candidates)):
        largest = max(largest, cards[candidates[k]] + 1)
    counts, table = np.empty(cells * largest), np.empty(cells * largest)
    new_sizes = np.empty(len(sizes) + 1, np.int64)
    new_sizes[: len(sizes)] = sizes
    row = np.empty(state.shape[1])
    for k in range(len(candidates)):
        j = candidates[k]
        radix = cards[j] + 1
        new_sizes[len(sizes)] = radix
        size = cells * radix
        _count(index, codes[j], radix, labels, weights, n_classes, counts[:size])
        table_of(counts[:size], new_sizes, n_classes, kind == BINARY, smoothing, amount, table[:size])
        total = 0.0
        for t in range(len(order)):
            n = order[t]
            at = (index[n] * radix + codes[j, n]) * n_classes
            if kind == BINARY:
                row[0] = state[n, 0] + table[at + labels[n]]
            else:
                for c in range(n_classes):
                    row[c] = state[n, c] + table[at + c]
            total += weights[n] * _loss(kind, row, labels[n], gamma)
            if total > limit:
                break
        else:
            found[k] = total
            limit = min(limit, total + slack)
    return found
