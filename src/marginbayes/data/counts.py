"""Counting: the tables of given families, and the tables of all pairs of features within each class.

A cell that is missing is counted nowhere: each table holds the rows in which all of its own variables are observed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Block, Rows

__all__ = ["family_counts", "gram", "pair_tables", "pairs_by_class"]

Counts = NDArray[Any]  # int64 where every row counts once, float64 where rows have weights

# One-hot pieces of this many bytes stay near the processor while they are multiplied.
PIECE_BYTES = 1 << 22


def family_counts(rows: Rows, families: Sequence[Sequence[int]]) -> list[Counts]:
    """For each family the number (weight) of rows in each cell of its table, axes in the order of the family."""
    flat = rows.sum(_family_statistic, families)
    tables, start = [], 0
    for family in families:
        shape = [rows.cardinalities[v] + 1 for v in family]
        size = math.prod(shape)
        tables.append(_without_missing(flat[start : start + size].reshape(shape)))
        start += size
    return tables


def _family_statistic(block: Block, families: Sequence[Sequence[int]]) -> Counts:
    counted = []
    for family in families:
        shape = [block.cardinalities[v] + 1 for v in family]
        counted.append(np.bincount(_mixed_radix(block, family, shape), block.weights, math.prod(shape)))
    return np.concatenate(counted)


def _mixed_radix(block: Block, family: Sequence[int], shape: Sequence[int]) -> NDArray[np.intp]:
    """Position of each row in the flattened table of a family."""
    index: NDArray[np.intp] = block.codes[family[0]].astype(np.intp)
    for v, radix in zip(family[1:], shape[1:], strict=True):
        index *= radix
        index += block.codes[v]
    return index


def _without_missing(table: Counts) -> Counts:
    return table[tuple(slice(-1) for _ in range(table.ndim))]


def pair_tables(rows: Rows, first: int) -> Iterator[tuple[int, Counts]]:
    """(second, table over class x first x second) for every feature behind `first`, one pass for all of them."""
    flat = rows.sum(_pair_statistic, first)
    cards, start = rows.cardinalities, 0
    for second in range(first + 1, len(cards)):
        shape = (cards[0] + 1, cards[first] + 1, cards[second] + 1)
        yield second, _without_missing(flat[start : start + math.prod(shape)].reshape(shape))
        start += math.prod(shape)


def _pair_statistic(block: Block, first: int) -> Counts:
    cards = block.cardinalities
    index = block.codes[0] * np.intp(cards[first] + 1) + block.codes[first]
    buffer = np.empty_like(index)
    counted = []
    for second in range(first + 1, len(cards)):
        np.multiply(index, cards[second] + 1, out=buffer)
        np.add(buffer, block.codes[second], out=buffer)
        size = (cards[0] + 1) * (cards[first] + 1) * (cards[second] + 1)
        counted.append(np.bincount(buffer, block.weights, size))
    return np.concatenate(counted) if counted else np.zeros(0)


def pairs_by_class(rows: Rows) -> Iterator[NDArray[np.floating[Any]]]:
    """For each class the square matrix of counts of (feature, level) against (feature, level).

    Levels of all features stand behind each other; the diagonal holds the counts of single levels.
    """
    order = np.argsort(rows.codes[0], kind="stable")
    ends = np.cumsum(np.bincount(rows.codes[0], minlength=rows.cardinalities[0]))
    for begin, end in zip([0, *ends[:-1]], ends[: rows.cardinalities[0]], strict=False):
        members = rows.take(order[begin:end])
        if len(members):
            yield members.sum(gram)
        else:
            size = sum(rows.cardinalities[1:])
            yield np.zeros((size, size), np.float32)


def gram(block: Block) -> NDArray[np.floating[Any]]:
    """Co-occurrence counts of all levels of all features: one matrix product of the one-hot matrix with itself.

    Single precision is exact here: a block has far fewer than 2^24 rows. Weights need double.
    """
    cards = block.cardinalities[1:]
    size, kind = sum(cards), np.float32 if block.weights is None else np.float64
    total = np.zeros((size, size), kind)
    piece = max(256, PIECE_BYTES // (size * np.dtype(kind).itemsize + 1))
    for begin in range(0, len(block), piece):
        onehot = _one_hot(block.codes[1:, begin : begin + piece], cards, kind)
        right = onehot if block.weights is None else onehot * block.weights[begin : begin + piece, None]
        total += onehot.T @ right
    return total


def _one_hot(codes: NDArray[Any], cards: Sequence[int], kind: type[np.floating[Any]]) -> NDArray[np.floating[Any]]:
    """Rows x levels, 1 where the row has the level; a missing cell has none."""
    starts = np.cumsum([0, *cards])
    hot = np.zeros((codes.shape[1], starts[-1]), kind)
    row, column = np.nonzero(np.array(cards) > codes.T)
    hot[row, codes.T[row, column] + starts[column]] = 1.0
    return hot
