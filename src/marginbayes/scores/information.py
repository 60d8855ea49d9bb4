"""Conditional mutual information of all pairs of features given the class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbayes.data.counts import Counts, family_counts, pair_tables, pairs_by_class
from marginbayes.data.rows import Rows

__all__ = ["conditional_mutual_information", "information_of_pairs", "mutual_information"]

Floats = NDArray[np.float64]


def mutual_information(rows: Rows) -> Floats:
    """I(feature; class) for each feature, in nats, over the rows in which the feature is observed."""
    tables = family_counts(rows, [(0, i) for i in range(1, len(rows.cardinalities))])
    return np.array([_table_information(table[None]) for table in tables])


def conditional_mutual_information(rows: Rows) -> Floats:
    """I(X_i; X_j | C) for every pair of features, in nats: a symmetric matrix with a zero diagonal.

    Each entry is taken over the rows in which both features are observed. Costs one pass over the data for all pairs:
    as a matrix product of the one-hot rows where features have few levels, else by counting pair after pair.
    """
    if _matrix_product_pays(rows):
        return information_of_pairs(pairs_by_class(rows), rows.cardinalities[1:])
    return _pair_by_pair(rows)


def _matrix_product_pays(rows: Rows) -> bool:
    """Compare the two ways by their measured cost in seconds (one core; only the ratio matters)."""
    n, d, levels, classes = len(rows), len(rows.cardinalities) - 1, sum(rows.cardinalities[1:]), rows.cardinalities[0]
    product = 1.6e-11 * n * levels**2 + 5e-9 * n * d + 4e-9 * classes * levels**2
    counting = d * (d - 1) / 2 * (1e-5 + 2.2e-9 * n)
    return product < counting


def information_of_pairs(pairs: Iterable[NDArray[np.floating[Any]]], cardinalities: Sequence[int]) -> Floats:
    """The same from the matrices of level-against-level counts of each class, as `pairs_by_class` yields them."""
    starts = np.cumsum([0, *cardinalities[:-1]])
    total = np.zeros((len(cardinalities), len(cardinalities)))
    weight = np.zeros_like(total)
    for counts in pairs:
        margins = np.add.reduceat(counts, starts, axis=1)  # level x feature: the level, where the feature is observed
        both = np.add.reduceat(margins, starts, axis=0).astype(np.float64)
        ones = np.add.reduceat(_xlogx(margins), starts, axis=0)
        cells = np.add.reduceat(np.add.reduceat(_xlogx(counts), starts, axis=1), starts, axis=0)
        total += cells - ones - ones.T + _xlogx(both)
        weight += both
    return _finish(total, weight)


def _pair_by_pair(rows: Rows) -> Floats:
    d = len(rows.cardinalities) - 1
    total = np.zeros((d, d))
    xlogx = _xlogx_of_integers(len(rows)) if rows.weights is None else _xlogx
    for first in range(1, d):
        for second, table in pair_tables(rows, first):
            total[first - 1, second - 1] = _table_information(table, xlogx)
    return total + total.T


def _table_information(table: Counts, xlogx: Callable[[Any], Any] | None = None) -> float:
    """I(second axis; third axis | first axis) of a table of counts."""
    f = xlogx or _xlogx
    first, second = table.sum(axis=2), table.sum(axis=1)
    both = first.sum(axis=1)
    value = f(table).sum() - f(first).sum() - f(second).sum() + f(both).sum()
    return max(0.0, float(value) / max(float(both.sum()), 1e-300))


def _finish(total: Floats, weight: Floats) -> Floats:
    information = np.maximum(total, 0.0) / np.maximum(weight, 1e-300)
    np.fill_diagonal(information, 0.0)
    return np.asarray(information)


def _xlogx(counts: Any) -> Any:
    counts = np.asarray(counts, np.float64)
    return xlogy(counts, counts)


def _xlogx_of_integers(largest: int) -> Callable[[Any], Any]:
    """x log x by looking it up, where counts are whole numbers: several times faster than a logarithm."""
    if largest > 1 << 18:
        return _xlogx
    return _xlogx(np.arange(largest + 1)).take  # type: ignore[no-any-return]
