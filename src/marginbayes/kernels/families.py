"""Counts and log tables of families: a child, its parents and the class.

Tables are laid out child, parents, class. A member has one level more where a cell of it is missing: a missing child
adds nothing, a missing parent is summed over.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["ADD", "FLOOR", "SPREAD", "Usual", "add_family", "count", "count_more", "count_unusual", "table_of"]

Ints = NDArray[np.int64]
Cells = NDArray[np.uint32]
Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
Floats = NDArray[np.float64]

# Smoothing: an amount for every cell, a floor under zero probabilities, or an amount that all cells share.
ADD, FLOOR, SPREAD = 0, 1, 2
# The log of an impossible event: finite, so that it can be taken away again, and beyond any sum of possible ones.
LOG_ZERO = -1e5


class Usual(NamedTuple):
    """The code that most rows have, for each variable, and the rows that have another one.

    Their number is what counting costs where the counts without the variable are known. -1: all rows are to be counted,
    because too few have the usual code, or because differences of weights would not be exact.
    """

    code: Ints
    other_at: Ints  # rows with another code than the usual one of j: other[other_at[j] : other_at[j + 1]]
    other: Cells


@njit(inline="always")
def count(index: Cells, labels: Codes, weights: Floats, n_classes: int, out: Floats) -> None:
    """out[cell, class]: weight of the rows with this index; no weights: all are one."""
    out[:] = 0.0
    classes = np.uint64(n_classes)
    for n in range(len(index)):
        out[np.uint64(index[n]) * classes + np.uint64(labels[n])] += 1.0 if len(weights) == 0 else weights[n]


@njit(inline="always")
def count_more(
    index: Cells, codes: Codes, radix: int, labels: Codes, weights: Floats, n_classes: int, out: Floats
) -> None:
    """The same with the index extended by one more member's code.

    Positions are unsigned: without tests for negative ones the loops take half the time.
    """
    out[:] = 0.0
    by, classes = np.uint64(radix * n_classes), np.uint64(n_classes)
    if len(weights) == 0:
        for n in range(len(index)):
            out[np.uint64(index[n]) * by + np.uint64(codes[n]) * classes + np.uint64(labels[n])] += 1.0
    for n in range(len(weights)):
        out[np.uint64(index[n]) * by + np.uint64(codes[n]) * classes + np.uint64(labels[n])] += weights[n]


@njit(inline="always")
def count_unusual(
    index: Cells, codes: Codes, radix: int, labels: Codes, weights: Floats, n_classes: int, rows: Cells, usual: int,
    without: Floats, out: Floats,
) -> None:  # fmt: skip
    """The same from the rows that have another code than the usual one; `without` are the counts without the member."""
    out[:] = 0.0
    by, classes = np.uint64(radix * n_classes), np.uint64(n_classes)
    for n in rows:
        at = np.uint64(index[n]) * by + np.uint64(codes[n]) * classes + np.uint64(labels[n])
        out[at] += 1.0 if len(weights) == 0 else weights[n]
    for cell in range(len(without) // n_classes):
        for c in range(n_classes):
            left = without[cell * n_classes + c]
            for x in range(radix):
                left -= out[(cell * radix + x) * n_classes + c]
            out[(cell * radix + usual) * n_classes + c] = left


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
def _amount(at: int, cards: Ints, sizes: Ints, n_classes: int, binary: bool, smoothing: int, amount: float) -> float:
    """The smoothing of one cell at this place of parents and class; a missing parent is none of the table."""
    if smoothing != SPREAD:
        return amount
    cells = cards[0] * (2 if binary else n_classes)
    rest = at // n_classes
    for k in range(len(sizes) - 1, 0, -1):
        if rest % sizes[k] < cards[k]:
            cells *= cards[k]
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
    nothing = _smoothed(0.0, total, levels, smoothing, amount, zeros)  # most cells of a large table are empty
    for x in range(levels):
        part = counts[at + x * step]
        value = nothing if part <= 0.0 else _smoothed(part, total, levels, smoothing, amount, zeros)
        out[at + x * step] += sign * value


@njit(cache=True, nogil=True)
def table_of(
    counts: Floats, cards: Ints, sizes: Ints, n_classes: int, binary: bool, smoothing: int, amount: float, out: Floats
) -> None:
    """Log tables from counts laid out child, parents, class; sizes are cards, and one more where a cell is missing.

    `binary` makes log P(child | parents, own class) - log P(child | parents, all other classes) of it, for each class.
    The counts are used up.
    """
    levels, step = cards[0], n_classes
    for k in range(1, len(sizes)):
        step *= sizes[k]
    outer, inner = sizes[0], step
    for k in range(1, len(sizes)):
        inner //= sizes[k]
        if sizes[k] > cards[k]:
            _sum_missing(counts, outer, sizes[k], inner)
        outer *= sizes[k]
    out[: sizes[0] * step] = 0.0
    for side in range(2 if binary else 1):
        if side == 1:
            _others(counts, n_classes)
        for at in range(step):
            own = _amount(at, cards, sizes, n_classes, binary, smoothing, amount)
            _fill(counts, at, step, levels, smoothing, own, out, 1.0 - 2.0 * side)


@njit(inline="always")
def _others(counts: Floats, n_classes: int) -> None:
    """Replace the count of each class by that of all others."""
    for start in range(0, len(counts), n_classes):
        total = 0.0
        for c in range(n_classes):
            total += counts[start + c]
        for c in range(n_classes):
            counts[start + c] = max(0.0, total - counts[start + c])


@njit(cache=True, nogil=True)
def family_table(
    index: Cells,
    cards: Ints,
    sizes: Ints,
    labels: Ints,
    weights: Floats,
    n_classes: int,
    binary: bool,
    smoothing: int,
    amount: float,
) -> Floats:
    """Log table of a family, as `table_of` lays it out, from the rows."""
    cells = n_classes
    for k in range(len(sizes)):
        cells *= sizes[k]
    counts, table = np.empty(cells), np.empty(cells)
    count(index, labels, weights, n_classes, counts)
    table_of(counts, cards, sizes, n_classes, binary, smoothing, amount, table)
    return table


@njit(cache=True, nogil=True)
def add_family(
    state: Floats,
    index: Cells,
    cards: Ints,
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
    table = family_table(index, cards, sizes, labels, weights, n_classes, binary, smoothing, amount)
    for n in range(len(index)):
        at = np.int64(index[n]) * n_classes
        if binary:
            state[n, 0] += sign * table[at + labels[n]]
        else:
            for c in range(n_classes):
                state[n, c] += sign * table[at + c]
