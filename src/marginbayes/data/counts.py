"""Counting: the tables of given families, and the tables of all pairs of features within each class.

A cell that is missing is counted nowhere: each table holds the rows in which all of its own variables are observed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from marginbayes.data.blas import matrix_threads
from marginbayes.data.rows import BLOCK_ROWS, Block, Rows, code_type

__all__ = [
    "Strip",
    "family_counts",
    "gram",
    "limited_products",
    "pair_tables",
    "pairs_by_class",
    "radices",
    "strips",
]

Counts = NDArray[Any]  # int64 where every row counts once, float64 where rows have weights

# One-hot pieces of this many bytes stay near the processor while they are multiplied.
PIECE_BYTES = 1 << 22
# Fewer rows at a time are not worth a product.
LEAST_ROWS = 192


class Tables(list[Counts]):
    """Tables that add one by one."""

    def __add__(self, other: Tables) -> Tables:  # type: ignore[override]
        return Tables(a + b for a, b in zip(self, other, strict=True))


def family_counts(rows: Rows, families: Sequence[Sequence[int]]) -> list[Counts]:
    """For each family the number (weight) of rows in each cell of its table, axes in the order of the family."""
    counted = rows.sum(_family_statistic, families)
    shapes = [[rows.cardinalities[v] + 1 for v in family] for family in families]
    return [_without_missing(table.reshape(shape)) for table, shape in zip(counted, shapes, strict=True)]


def _family_statistic(block: Block, families: Sequence[Sequence[int]]) -> Tables:
    counted = Tables()
    for family in families:
        shape = [block.cardinalities[v] + 1 for v in family]
        counted.append(np.bincount(_mixed_radix(block, family, shape), block.weights, math.prod(shape)))
    return counted


def _mixed_radix(block: Block, family: Sequence[int], shape: Sequence[int]) -> NDArray[np.unsignedinteger[Any]]:
    """Position of each row in the flattened table of a family, in the smallest type: most of the time is memory's."""
    index: NDArray[np.unsignedinteger[Any]] = block.codes[family[0]].astype(code_type(math.prod(shape)))
    for v, radix in zip(family[1:], shape[1:], strict=True):
        index *= index.dtype.type(radix)
        index += block.codes[v]
    return index


def _without_missing(table: Counts) -> Counts:
    return table[tuple(slice(-1) for _ in range(table.ndim))]


def radices(rows: Rows) -> tuple[int, ...]:
    """Codes in use of each variable: its levels, and one more where some cell is missing."""
    if not len(rows):
        return rows.cardinalities
    return tuple(c + int(line.max() == c) for c, line in zip(rows.cardinalities, rows.codes, strict=True))


def pair_tables(rows: Rows, first: int, radix: Sequence[int] | None = None) -> Iterator[tuple[int, Counts]]:
    """(second, table over class x first x second) for every feature behind `first`, one pass for all of them.

    With the rows' `radices` tables keep the entries of missing cells, where there are any.
    """
    wide = [c + 1 for c in rows.cardinalities] if radix is None else radix
    counted = rows.sum(_pair_statistic, first, wide)
    for second, flat in enumerate(counted, first + 1):
        table = flat.reshape(wide[0], wide[first], wide[second])
        yield second, _without_missing(table) if radix is None else table


def _pair_statistic(block: Block, first: int, radix: Sequence[int]) -> Tables:
    kind = code_type(radix[0] * radix[first] * max(radix))
    index = block.codes[0] * kind.type(radix[first]) + block.codes[first]
    scaled = {r: index * kind.type(r) for r in {*radix[first + 1 :]}}
    buffer = np.empty_like(index)
    counted = Tables()
    for second in range(first + 1, len(radix)):
        np.add(scaled[radix[second]], block.codes[second], out=buffer)
        counted.append(np.bincount(buffer, block.weights, radix[0] * radix[first] * radix[second]))
    return counted


@dataclass(frozen=True)
class Strip:
    """Consecutive features, laid out level by level: where each feature starts, and the feature and level of a line."""

    features: slice  # among the variables
    place: slice  # among the features
    levels: slice  # among the levels of all features
    starts: NDArray[np.intp]
    feature: NDArray[np.intp]
    level: NDArray[np.unsignedinteger[Any]]

    @classmethod
    def of(cls, cardinalities: Sequence[int], first: int, last: int) -> Strip:
        """The features first .. last - 1 of variables with these cardinalities."""
        cards = cardinalities[first:last]
        starts = np.cumsum([0, *cards[:-1]], dtype=np.intp)
        before, size = sum(cardinalities[1:first]), sum(cards)
        feature = np.repeat(np.arange(len(cards)), cards)
        level = np.arange(size) - starts[feature]
        kind = code_type(max(cardinalities))
        return cls(
            slice(first, last),
            slice(first - 1, last - 1),
            slice(before, before + size),
            starts,
            feature,
            level.astype(kind)[:, None],
        )

    def __len__(self) -> int:
        return len(self.feature)

    def one_hot(self, codes: Counts, rows: Counts, kind: type[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """Levels x rows, 1 where the row has the level; a missing cell has none."""
        own = codes[self.features].take(rows, axis=1)
        return np.asarray(own.take(self.feature, axis=0) == self.level, kind)


def strips(cardinalities: Sequence[int], width: int | None = None) -> list[Strip]:
    """All features in strips of about equally many levels, `width` or fewer where features allow it; one by default."""
    ends = np.cumsum(cardinalities[1:])
    count = 1 if width is None else min(len(ends), math.ceil(ends[-1] / width))
    cuts = {int(np.abs(ends - ends[-1] * k / count).argmin()) + 2 for k in range(1, count)}
    return [Strip.of(cardinalities, a, b) for a, b in pairwise(sorted({1, *cuts, len(cardinalities)}))]


def pairs_by_class(rows: Rows) -> Iterator[Counts]:
    """For each class the square matrix of counts of (feature, level) against (feature, level).

    Levels of all features stand behind each other; the diagonal holds the counts of single levels.
    """
    (whole,) = strips(rows.cardinalities)
    for label in range(rows.cardinalities[0]):
        if not len(rows):
            yield np.zeros((len(whole), len(whole)), np.int32)
            continue
        with limited_products(rows):  # not around the yield: whoever asks may never come back
            found = rows.sum(gram, label, whole, whole)
        yield found


def limited_products(rows: Rows) -> AbstractContextManager[object]:
    """While this is open, matrix products use as many threads as `n_jobs` says, or one where blocks have threads.

    More would only wait for each other.
    """
    threads = 1 if len(rows) > BLOCK_ROWS else int(effective_n_jobs(rows.n_jobs))
    return matrix_threads(threads)


def gram(block: Block, label: int, first: Strip, second: Strip, piece_bytes: int = PIECE_BYTES) -> Counts:
    """Co-occurrence counts of the levels of two strips of features in one class: a product of one-hot matrices.

    They are made for some rows at a time, `piece_bytes` at most. Single precision is exact here: a block has far fewer
    than 2^24 rows. Weights need double.
    """
    kind = np.float32 if block.weights is None else np.float64
    members = (block.codes[0] == label).nonzero()[0]
    piece = max(LEAST_ROWS, piece_bytes // (np.dtype(kind).itemsize * (len(first) + len(second)) + 1))
    total: Any = None
    for begin in range(0, max(len(members), 1), piece):
        some = members[begin : begin + piece]
        left = first.one_hot(block.codes, some, kind)
        right = left if second is first else second.one_hot(block.codes, some, kind)
        product = left @ (right if block.weights is None else right * block.weights[some]).T
        total = product if total is None else np.add(total, product, out=total)
    return total.astype(np.int32) if block.weights is None else np.asarray(total)
