"""Conditional mutual information of all pairs of features given the class.

Where cells are missing, an information is that of the rows that have the cells, times their share of all rows with a
class: what the edge between the two would add to the likelihood of a row. From that of a pair is taken what it costs to
estimate its table from fewer rows than there are: half a nat for each cell, and for each time that the rows which have
both would fit into those which do not. Else the emptiest column would seem to tell most, for the fewer rows there are,
the more chance alone makes of them, and everything would hang on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbayes.data.counts import (
    PIECE_BYTES,
    Counts,
    Strip,
    family_counts,
    gram,
    limited_products,
    pair_tables,
    radices,
    strips,
)
from marginbayes.data.rows import Rows

__all__ = ["conditional_mutual_information", "information_of_pairs", "mutual_information", "resolved"]

# Informations are multiples of this, in nats: far above the rounding of a sum of logarithms, far below what rows tell.
# A power of two, so that sums and differences of informations are exact, too.
RESOLUTION = 2.0**-34

Floats = NDArray[np.float64]
XLogX = Callable[[Any], Any]

# Counts of the levels of one strip of features against those of another, in one class.
BlockCounts = Callable[[int, Strip, Strip], Counts]

# Levels of a strip, at least and where memory does not matter, and bytes that each cell of a block takes on its way.
LEAST_LEVELS, WIDTH, CELL_BYTES = 64, 256, 28


def mutual_information(rows: Rows) -> Floats:
    """I(feature; class) for each feature, in nats, a row without the feature telling nothing.

    As in `conditional_mutual_information`, entries are multiples of 2^-34.
    """
    tables = family_counts(rows, [(0, i) for i in range(1, len(rows.cardinalities))])
    return resolved(np.array([_table_sum(table[None]) for table in tables]) / max(_labelled(rows).sum(), 1e-300))


def conditional_mutual_information(rows: Rows) -> Floats:
    """I(X_i; X_j | C) for every pair of features, in nats: a symmetric matrix with a zero diagonal.

    Rows in which one of the two is missing tell nothing, and lower an information (see the module). Costs one pass over
    the data for all pairs: as a matrix product of the one-hot rows where features have few levels, else by counting
    pair after pair.

    Entries are multiples of 2^-34, about 6e-11: so equal ones are equal whatever the order of rows, levels and batches.
    """
    if not len(rows):
        return np.zeros((len(rows.cardinalities) - 1,) * 2)
    radix = radices(rows)
    if not _matrix_product_pays(rows):
        return _pair_by_pair(rows, radix)
    piece, width = _within(_spare_bytes(rows))
    classes = _labelled(rows)
    xlogx = _lookup(int(classes.max())) if rows.weights is None else _xlogx
    parts = strips(rows.cardinalities, width)

    def counts(label: int, first: Strip, second: Strip) -> Counts:
        return np.asarray(rows.sum(gram, label, first, second, piece))

    with limited_products(rows):
        if radix == rows.cardinalities:
            return _of_complete(counts, parts, classes, xlogx)
        return _of_any(counts, parts, rows.cardinalities[1:], classes, xlogx)


def _labelled(rows: Rows) -> Counts:
    """Weight of each class."""
    return np.asarray(np.bincount(rows.codes[0], rows.weights, rows.cardinalities[0])[: rows.cardinalities[0]])


def _spare_bytes(rows: Rows) -> int:
    """What the rows take and, about, the tables of a TAN will, less the matrix of informations; 0 if it is more."""
    classes, cards = rows.cardinalities[0], rows.cardinalities[1:]
    tables = int(8 * classes * sum(cards) * np.mean(cards))
    return max(0, rows.codes.nbytes + tables - 8 * len(cards) ** 2)


def _within(spare: int) -> tuple[int, int]:
    """Bytes of one-hot matrices and levels of a strip that fit into so many bytes; too few cost more than they save."""
    return min(PIECE_BYTES, spare // 3), max(LEAST_LEVELS, math.isqrt(spare // (3 * CELL_BYTES)))


def _matrix_product_pays(rows: Rows) -> bool:
    """Compare the two ways by their measured cost in seconds (one core; only the ratio matters)."""
    n, classes, cards = len(rows), rows.cardinalities[0], np.array(rows.cardinalities[1:], np.float64)
    d, levels = len(cards), cards.sum()
    cells = classes * (levels**2 - (cards**2).sum()) / 2
    product = 1.1e-11 * n * levels**2 + 2e-9 * n * levels + classes * (2.8e-9 * levels**2 + 3e-6 * d + 6.5e-5)
    counting = d * (d - 1) / 2 * (6e-6 + 1.8e-9 * n) + 2.1e-9 * cells
    return bool(product < counting)


def information_of_pairs(pairs: Sequence[Counts] | Counts, cardinalities: Sequence[int], classes: Counts) -> Floats:
    """The same from the matrices of level-against-level counts of each class, as `pairs_by_class` yields them.

    `classes` is the weight of each class.
    """
    parts = strips((len(pairs), *cardinalities), WIDTH)
    return _of_any(lambda label, a, b: pairs[label][a.levels, b.levels], parts, cardinalities, classes, _xlogx)


def _of_complete(counts: BlockCounts, parts: Sequence[Strip], classes: Counts, xlogx: XLogX) -> Floats:
    """Information of all pairs where no cell is missing, so that margins are the same for all pairs.

    It takes one block of counts after the other: those of two strips of features, in one class after the other.
    `classes` is the weight of each class.
    """
    d = parts[-1].place.stop
    total = np.zeros((d, d))
    for first, second in combinations_with_replacement(parts, 2):
        total[first.place, second.place] = _sums(counts, len(classes), first, second, xlogx)
    alone = total.diagonal().copy()  # a feature and itself have one count for each level
    total -= alone[:, None]
    total -= alone
    total += xlogx(classes).sum()
    return _finish(total, float(classes.sum()))


def _of_any(
    counts: BlockCounts, parts: Sequence[Strip], cardinalities: Sequence[int], classes: Counts, xlogx: XLogX
) -> Floats:
    """Information of all pairs, each from the rows that have both features."""
    d, weight = parts[-1].place.stop, float(classes.sum())
    total, observed = np.zeros((d, d)), np.zeros((d, d))
    for first, second in combinations_with_replacement(parts, 2):
        here = first.place, second.place
        total[here], observed[here] = _sums_and_weight(counts, len(classes), first, second, xlogx)
    cells = len(classes) * np.multiply.outer(np.array(cardinalities, float), np.array(cardinalities, float))
    return _finish(np.maximum(total - _cost(cells, observed, weight), 0.0), weight)


def _cost(cells: Floats | float, observed: Floats | float, weight: float) -> Floats:
    """What estimating tables of so many cells from the observed rows instead of all costs all of them, in nats."""
    return np.asarray(cells / 2 * (weight / np.maximum(observed, 1e-300) - 1.0))


def _sums(counts: BlockCounts, n_classes: int, first: Strip, second: Strip, xlogx: XLogX) -> Floats:
    """For each pair of features the sum of n log n over classes and levels of both."""
    cells = np.zeros((len(first), len(second)))
    for label in range(n_classes):
        cells += xlogx(counts(label, first, second))
    return _by_feature(cells, first, second)


def _sums_and_weight(
    counts: BlockCounts, n_classes: int, first: Strip, second: Strip, xlogx: XLogX
) -> tuple[Floats, Floats]:
    """For each pair the sum of n log n less that of its margins among the rows that have both, and their weight."""
    cells = np.zeros((len(first), len(second)))
    total = np.zeros((len(first.starts), len(second.starts)))
    weight = np.zeros_like(total)
    for label in range(n_classes):
        block = counts(label, first, second)
        cells += xlogx(block)
        left = np.add.reduceat(block, second.starts, axis=1)  # a level of the first, where the second is observed
        right = np.add.reduceat(block, first.starts, axis=0)
        both = np.add.reduceat(left, first.starts, axis=0)
        total -= np.add.reduceat(xlogx(left), first.starts, axis=0)
        total -= np.add.reduceat(xlogx(right), second.starts, axis=1)
        total += xlogx(both)
        weight += both
    return total + _by_feature(cells, first, second), weight


def _by_feature(cells: Floats, first: Strip, second: Strip) -> Floats:
    return np.asarray(np.add.reduceat(np.add.reduceat(cells, first.starts, axis=0), second.starts, axis=1))


def _pair_by_pair(rows: Rows, radix: Sequence[int]) -> Floats:
    d = len(rows.cardinalities) - 1
    total = np.zeros((d, d))
    xlogx = _lookup(len(rows)) if rows.weights is None else _xlogx
    whole = [r == c for r, c in zip(radix, rows.cardinalities, strict=True)]
    weight = float(_labelled(rows).sum())
    single: dict[int, float] = {}  # sum of n log n over (class, level), for features without missing cells
    for first in range(1, d):
        for second, table in pair_tables(rows, first, radix):
            if not (whole[0] and whole[first] and whole[second]):
                observed = tuple(slice(rows.cardinalities[v]) for v in (0, first, second))
                known = table[observed]
                cost = float(_cost(float(known.size), float(known.sum()), weight))
                total[first - 1, second - 1] = max(0.0, _table_sum(known, xlogx) - cost)
                continue
            for v, axis in ((first, 2), (second, 1)):
                if v not in single:
                    single[v] = float(xlogx(table.sum(axis=axis)).sum())
            if 0 not in single:
                single[0] = float(xlogx(table.sum(axis=(1, 2))).sum())
            value = float(xlogx(table).sum()) - single[first] - single[second] + single[0]
            total[first - 1, second - 1] = value
    return _finish(total, weight)


def _table_sum(table: Counts, xlogx: XLogX | None = None) -> float:
    """I(second axis; third axis | first axis) of a table of counts, times its weight."""
    f = xlogx or _xlogx
    first, second = table.sum(axis=2), table.sum(axis=1)
    return float(f(table).sum() - f(first).sum() - f(second).sum() + f(first.sum(axis=1)).sum())


def _finish(information: Floats, weight: float) -> Floats:
    """Divide what is above the diagonal by the weight, in place, and mirror it."""
    information /= max(weight, 1e-300)
    resolved(information)
    for i in range(len(information)):
        information[i:, i] = information[i, i:]
        information[i, i] = 0.0
    return information


def resolved(information: Floats) -> Floats:
    """The same array, its entries set to the nearest multiple of the resolution, so that rounding decides no tie."""
    information /= RESOLUTION
    np.rint(information, out=information)
    np.maximum(information, 0.0, out=information)
    information *= RESOLUTION
    return information


def _xlogx(counts: Any) -> Any:
    counts = np.asarray(counts, np.float64)
    return xlogy(counts, counts)


def _lookup(largest: int) -> XLogX:
    """x log x by looking it up, where counts are whole numbers: several times faster than a logarithm."""
    if largest > 1 << 18:
        return _xlogx
    values = np.arange(largest + 1, dtype=np.float64)
    values[1:] *= np.log(values[1:])
    return values.take
