"""Counting: the tables of given families, and the tables of all pairs of features within each class.

A cell that is missing is counted nowhere: each table holds the rows in which all of its own variables are observed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from marginbayes.data.rows import BLOCK_ROWS, Block, Rows, code_type

__all__ = ["family_counts", "gram", "pair_tables", "pairs_by_class", "radices"]

Counts = NDArray[Any]  # int64 where every row counts once, float64 where rows have weights

# One-hot pieces of this many bytes stay near the processor while they are multiplied.
PIECE_BYTES = 1 << 22


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


def pairs_by_class(rows: Rows) -> Iterator[Counts]:
    """For each class the square matrix of counts of (feature, level) against (feature, level).

    Levels of all features stand behind each other; the diagonal holds the counts of single levels.
    """
    size = sum(rows.cardinalities[1:])
    # As many threads as `n_jobs` says, over blocks or inside the product: more would only wait for each other.
    threads = 1 if len(rows) > BLOCK_ROWS else effective_n_jobs(rows.n_jobs)
    with _matrix_library().limit(limits=threads, user_api="blas"):
        for label in range(rows.cardinalities[0]):
            yield rows.sum(gram, label) if len(rows) else np.zeros((size, size), np.int32)


@cache
def _matrix_library() -> ThreadpoolController:
    return ThreadpoolController()


def gram(block: Block, label: int | None = None) -> Counts:
    """Co-occurrence counts of all levels of all features (in one class): the one-hot matrix times itself.

    Single precision is exact here: a block has far fewer than 2^24 rows. Weights need double.
    """
    codes, weights, cards = block.codes[1:], block.weights, block.cardinalities[1:]
    if label is not None:
        members = np.flatnonzero(block.codes[0] == label)
        codes, weights = codes[:, members], None if weights is None else weights[members]
    size, kind = sum(cards), np.float32 if weights is None else np.float64
    piece = max(256, PIECE_BYTES // (size * np.dtype(kind).itemsize + 1))
    total: Any = 0.0
    for begin in range(0, max(codes.shape[1], 1), piece):
        hot = _one_hot(codes[:, begin : begin + piece], cards, kind)
        total = hot @ (hot if weights is None else hot * weights[begin : begin + piece]).T + total
    return np.asarray(total, np.int32 if weights is None else kind)


def _one_hot(codes: NDArray[Any], cards: Sequence[int], kind: type[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Levels x rows, 1 where the row has the level; a missing cell has none."""
    feature = np.repeat(np.arange(len(cards)), cards)
    level = np.arange(len(feature)) - np.repeat(np.cumsum([0, *cards[:-1]]), cards)
    return np.asarray(codes[feature] == level.astype(codes.dtype)[:, None], kind)
