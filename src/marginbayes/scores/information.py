"""Conditional mutual information of all pairs of features given the class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbayes.data.counts import Counts, family_counts, pair_tables, pairs_by_class, radices
from marginbayes.data.rows import Rows

__all__ = ["conditional_mutual_information", "information_of_pairs", "mutual_information"]

# Less than this, in nats, is the rounding of a sum of logarithms.
NOTHING = 1e-12

Floats = NDArray[np.float64]
XLogX = Callable[[Any], Any]

# Rows of a matrix of counts whose logarithms are added up at a time.
STRIP = 128


def mutual_information(rows: Rows) -> Floats:
    """I(feature; class) for each feature, in nats, over the rows in which the feature is observed."""
    tables = family_counts(rows, [(0, i) for i in range(1, len(rows.cardinalities))])
    return np.array([_table_information(table[None]) for table in tables])


def conditional_mutual_information(rows: Rows) -> Floats:
    """I(X_i; X_j | C) for every pair of features, in nats: a symmetric matrix with a zero diagonal.

    Each entry is taken over the rows in which both features are observed. Costs one pass over the data for all pairs:
    as a matrix product of the one-hot rows where features have few levels, else by counting pair after pair.
    """
    radix = radices(rows)
    if _matrix_product_pays(rows):
        complete = radix == rows.cardinalities
        return information_of_pairs(pairs_by_class(rows), rows.cardinalities[1:], complete=complete)
    return _pair_by_pair(rows, radix)


def _matrix_product_pays(rows: Rows) -> bool:
    """Compare the two ways by their measured cost in seconds (one core; only the ratio matters)."""
    n, classes, cards = len(rows), rows.cardinalities[0], np.array(rows.cardinalities[1:], np.float64)
    d, levels = len(cards), cards.sum()
    cells = classes * (levels**2 - (cards**2).sum()) / 2
    product = 1.1e-11 * n * levels**2 + 2e-9 * n * levels + classes * (2.8e-9 * levels**2 + 3e-6 * d + 6.5e-5)
    counting = d * (d - 1) / 2 * (6e-6 + 1.8e-9 * n) + 2.1e-9 * cells
    return bool(product < counting)


def information_of_pairs(pairs: Iterable[Counts], cardinalities: Sequence[int], *, complete: bool = False) -> Floats:
    """The same from the matrices of level-against-level counts of each class, as `pairs_by_class` yields them.

    `complete` says that no cell is missing, which spares the margins of every pair.
    """
    starts = np.cumsum([0, *cardinalities[:-1]])
    total = np.zeros((len(cardinalities), len(cardinalities)))
    weight, cells = np.zeros_like(total), np.zeros((sum(cardinalities), sum(cardinalities)))
    for counts in pairs:
        xlogx = _xlogx_for(counts, starts)
        both, ones = _margins(counts, starts, xlogx, complete)
        _add_upper(cells, counts, xlogx)
        total += xlogx(both) - ones - ones.T
        weight += both
    upper = np.triu(np.add.reduceat(np.add.reduceat(cells, starts, axis=0), starts, axis=1), 1)
    return _finish(total + upper + upper.T, weight)


def _add_upper(cells: Floats, counts: Counts, xlogx: XLogX) -> None:
    """Add n log n of the counts above the diagonal, some rows at a time, which stay near the processor."""
    for start in range(0, len(counts), STRIP):
        cells[start : start + STRIP, start:] += xlogx(counts[start : start + STRIP, start:])


def _margins(counts: Counts, starts: Counts, xlogx: XLogX, complete: bool) -> tuple[Counts, Counts]:
    """For each pair the rows that have both, and the sum of n log n over the levels of the first among them."""
    if complete:
        single = counts.diagonal()
        each = np.add.reduceat(xlogx(single), starts)
        rows = np.add.reduceat(single, starts)
        return np.broadcast_to(rows, (len(rows), len(rows))), each[:, None]
    margins = np.add.reduceat(counts, starts, axis=0)  # feature x level: the level, where the feature is observed
    both = np.add.reduceat(margins, starts, axis=1)
    return both, np.add.reduceat(xlogx(margins), starts, axis=1).T


def _pair_by_pair(rows: Rows, radix: Sequence[int]) -> Floats:
    d = len(rows.cardinalities) - 1
    total = np.zeros((d, d))
    xlogx = _lookup(len(rows)) if rows.weights is None else _xlogx
    whole = [r == c for r, c in zip(radix, rows.cardinalities, strict=True)]
    weight = max(rows.total, 1e-300)
    single: dict[int, float] = {}  # sum of n log n over (class, level), for features without missing cells
    for first in range(1, d):
        for second, table in pair_tables(rows, first, radix):
            if not (whole[0] and whole[first] and whole[second]):
                observed = tuple(slice(rows.cardinalities[v]) for v in (0, first, second))
                total[first - 1, second - 1] = _table_information(table[observed], xlogx)
                continue
            for v, axis in ((first, 2), (second, 1)):
                if v not in single:
                    single[v] = float(xlogx(table.sum(axis=axis)).sum())
            if 0 not in single:
                single[0] = float(xlogx(table.sum(axis=(1, 2))).sum())
            value = float(xlogx(table).sum()) - single[first] - single[second] + single[0]
            total[first - 1, second - 1] = value / weight
    return _finish(total + total.T, np.ones_like(total))


def _table_information(table: Counts, xlogx: XLogX | None = None) -> float:
    """I(second axis; third axis | first axis) of a table of counts."""
    f = xlogx or _xlogx
    first, second = table.sum(axis=2), table.sum(axis=1)
    both = first.sum(axis=1)
    value = f(table).sum() - f(first).sum() - f(second).sum() + f(both).sum()
    return max(0.0, float(value) / max(float(both.sum()), 1e-300))


def _finish(total: Floats, weight: Floats) -> Floats:
    information = np.asarray(total / np.maximum(weight, 1e-300))
    information[information < NOTHING] = 0.0
    np.fill_diagonal(information, 0.0)
    return information


def _xlogx(counts: Any) -> Any:
    counts = np.asarray(counts, np.float64)
    return xlogy(counts, counts)


def _xlogx_for(counts: Counts, starts: Counts) -> XLogX:
    """x log x for the counts of one class and their sums, the greatest of which is the rows that have some feature."""
    if counts.dtype.kind != "i":
        return _xlogx
    return _lookup(int(np.add.reduceat(counts.diagonal(), starts).max()))


def _lookup(largest: int) -> XLogX:
    """x log x by looking it up, where counts are whole numbers: several times faster than a logarithm."""
    if largest > 1 << 18:
        return _xlogx
    values = np.arange(largest + 1, dtype=np.float64)
    values[1:] *= np.log(values[1:])
    return values.take
