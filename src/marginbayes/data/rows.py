"""Encoded data, and the one operation over it: a sum over blocks of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from operator import add
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

__all__ = ["Block", "Rows", "code_type"]

T = TypeVar("T")

# Large enough that a block's arithmetic outweighs its Python overhead, small enough that its buffers stay in cache.
BLOCK_ROWS = 32768


def code_type(cardinality: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds the codes 0 .. cardinality; the last one means missing."""
    return np.min_scalar_type(cardinality)


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive rows: codes (variables x rows), weights or None where every row counts once."""

    codes: NDArray[np.unsignedinteger[Any]]
    weights: NDArray[np.float64] | None
    cardinalities: tuple[int, ...]

    def __len__(self) -> int:
        return int(self.codes.shape[1])


@dataclass(frozen=True, eq=False)
class Rows:
    """Encoded rows: one line of codes for each variable, the class first.

    Parameters
    ----------
    codes : array of shape (variables, rows), unsigned
        Code of each cell; the code of a missing cell is the variable's cardinality.
    cardinalities : tuple of int
        Number of levels of each variable; also the code of its missing cells.
    weights : array of shape (rows,) or None
        None where every row counts once.
    n_jobs : int or None
        Threads over blocks, as joblib counts them.
    """

    codes: NDArray[np.unsignedinteger[Any]]
    cardinalities: tuple[int, ...]
    weights: NDArray[np.float64] | None = None
    n_jobs: int | None = None

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(len(self)) if self.weights is None else float(self.weights.sum())

    def blocks(self, size: int | None = None) -> Iterator[Block]:
        """Consecutive blocks of at most `size` rows; none for no rows."""
        size = BLOCK_ROWS if size is None else size
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            weights = None if self.weights is None else self.weights[part]
            yield Block(self.codes[:, part], weights, self.cardinalities)

    def map(self, function: Callable[..., T], *args: Any) -> list[T]:
        """`function(block, *args)` for each block, in order, on `n_jobs` threads."""
        return list(self._each(function, args))

    def sum(self, statistic: Callable[..., Any], *args: Any) -> Any:
        """Sum over the blocks of `statistic(block, *args)`: arrays, numbers, or anything that adds.

        All counts are made by this. The blocks and the order of their sum are fixed, so the result does not depend on
        the number of threads.
        """
        if len(self) <= BLOCK_ROWS:  # also where there are no rows, of which the sum has a shape too
            return statistic(Block(self.codes, self.weights, self.cardinalities), *args)
        return reduce(add, self._each(statistic, args))

    def fill(self, out: NDArray[Any], function: Callable[..., None], *args: Any) -> None:
        """Let `function(block, part, *args)` write what it finds for each block into its part of `out`."""
        parts = (out[start : start + BLOCK_ROWS] for start in range(0, len(self), BLOCK_ROWS))
        for _ in self._over(zip(self.blocks(), parts, strict=True), function, args):
            pass

    def _each(self, function: Callable[..., T], args: tuple[Any, ...]) -> Iterator[T]:
        return self._over(((block,) for block in self.blocks()), function, args)

    def _over(self, items: Iterator[tuple[Any, ...]], function: Callable[..., T], args: tuple[Any, ...]) -> Iterator[T]:
        workers = 1 if len(self) <= BLOCK_ROWS else effective_n_jobs(self.n_jobs)
        if workers <= 1:
            yield from (function(*item, *args) for item in items)
            return
        with ThreadPoolExecutor(workers) as pool:
            # A window at a time: at most `workers` results wait in memory.
            while window := list(islice(items, workers)):
                yield from pool.map(lambda item: function(*item, *args), window)

    def take(self, index: NDArray[Any]) -> Rows:
        """The rows at these positions, or where this mask is true."""
        weights = None if self.weights is None else self.weights[index]
        # Not `codes[:, index]`, which lays the result out row by row: then every later pass is several times slower.
        codes = self.codes.take(np.arange(len(self))[index], axis=1)
        return Rows(codes, self.cardinalities, weights, self.n_jobs)

    def labelled(self) -> Rows:
        """The rows that count for a classifier: their class is known, and their weight is above zero."""
        counts = self.codes[0] < self.cardinalities[0]
        if self.weights is not None:
            counts &= self.weights > 0
        return self if counts.all() else self.take(counts)

    def reweighted(self, weights: NDArray[np.float64] | None) -> Rows:
        """The same rows with other weights."""
        return Rows(self.codes, self.cardinalities, weights, self.n_jobs)

    def is_missing(self) -> NDArray[np.bool_]:
        """For each variable and row, whether the cell is missing."""
        cards = np.array(self.cardinalities)[:, None]
        return np.asarray(self.codes == cards)

    def merged(self) -> tuple[Rows, NDArray[np.intp]]:
        """Distinct rows with summed weights, and for each old row the position of its distinct one.

        Worth its sort where a learner passes over the data many times, not before a single pass.
        """
        packed = _pack(self.codes, self.cardinalities)
        _, first, inverse = np.unique(packed, return_index=True, return_inverse=True)
        inverse = inverse.reshape(-1)
        weights = np.bincount(inverse, self.weights, minlength=len(first)).astype(np.float64)
        return Rows(self.codes.take(first, axis=1), self.cardinalities, weights, self.n_jobs), inverse


def _pack(codes: NDArray[Any], cardinalities: Sequence[int]) -> NDArray[Any]:
    """One comparable key for each row: a mixed-radix integer if it fits 64 bits, else the row's bytes."""
    if math.prod(c + 1 for c in cardinalities) < 2**63:
        key = np.zeros(codes.shape[1], np.int64)
        for line, card in zip(codes, cardinalities, strict=True):
            key *= card + 1
            key += line
        return key
    rows = np.ascontiguousarray(codes.T)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)
