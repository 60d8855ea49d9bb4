"""Deviations of tables that cells have of their own, and that they have in common with their neighbours in a table.

The weights of the cell (parents a and b, child x) under a class deviate by u(a, b, x) + v(x) + v(a, x) + v(b, x), and
the penalty is on all parts alike. So what many cells need costs little, and what one cell needs costs what it did. The
sum is a table like any other: nothing but the metric of the penalty changes.

The levels of a discretised number are ordered, and neighbours are alike: cells also have parts in common with those
whose numbers are in the same interval of two, and of four, levels. Intervals of the same width overlap by half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from marginbayes.parameters.design import Design

__all__ = ["Pooling"]

Floats = NDArray[np.float64]
Levels = NDArray[np.intp]

# Intervals of neighbouring levels: how many, and where the first one ends.
INTERVALS = ((2, 0), (2, 1), (4, 0), (4, 2))


@dataclass(frozen=True)
class Pooling:
    """From parts, in one vector, to the deviations of all weights (cells x classes), and back.

    The first parts are those that the cells have of their own; the pools come behind them.
    """

    members: sparse.csr_array  # cells x pools: 1 where the cell is in the pool
    pools: sparse.csr_array  # the same, transposed
    n_classes: int

    @classmethod
    def of(cls, design: Design, ordered: Sequence[bool]) -> Pooling:
        """Pools of a design: for each family with feature parents all smaller tables that hold the child, and tables of
        intervals for each family with ordered members.
        """
        families = [part for f in _families(design) for part in _pools(*f, ordered)]
        return cls._joined(design, families)

    @classmethod
    def none(cls, design: Design) -> Pooling:
        """Every cell for itself."""
        return cls._joined(design, [])

    @classmethod
    def _joined(cls, design: Design, pools: Sequence[tuple[int, Levels]]) -> Pooling:
        """From the first cell of a family, and the pool of each of its cells, for each way to pool."""
        cells, numbers, count = [np.empty(0, np.intp)], [np.empty(0, np.intp)], 0
        for first, pool in pools:
            cells.append(first + np.arange(len(pool)))
            numbers.append(count + pool)
            count += int(pool.max()) + 1
        where = np.concatenate(cells), np.concatenate(numbers)
        members = sparse.csr_array((np.ones(len(where[0])), where), shape=(design.shape[0], count))
        return cls(members, members.T.tocsr(), design.shape[1])

    @property
    def size(self) -> int:
        """Number of parts."""
        return int(sum(self.members.shape)) * self.n_classes

    def total(self, parts: Floats) -> Floats:
        """Deviations of all weights."""
        own, shared = self._split(parts)
        return own + self.members @ shared if len(shared) else own

    def back(self, slopes: Floats) -> Floats:
        """Slopes by the parts from those by the weights."""
        return np.concatenate([slopes.ravel(), np.asarray(self.pools @ slopes).ravel()])

    def parts(self, total: Floats) -> Floats:
        """Parts that add up to these deviations; what the cells of a pool have in common is put there."""
        sizes = 1.0 + np.asarray(self.pools.sum(axis=1))[:, None]
        shared = self.pools @ (total / (1.0 + np.asarray(self.members.sum(axis=1))[:, None])) / sizes
        return np.concatenate([(total - self.members @ shared).ravel(), shared.ravel()])

    def _split(self, parts: Floats) -> tuple[Floats, Floats]:
        own = self.members.shape[0] * self.n_classes
        return parts[:own].reshape(-1, self.n_classes), parts[own:].reshape(-1, self.n_classes)


def _families(design: Design) -> Iterator[tuple[int, list[int], Levels]]:
    """First cell of each feature's family, its members without the class, the child last, and their levels by cell."""
    first = 0
    for i, size in zip(design.families, design.sizes, strict=True):
        if i:
            members = [v for v in (*design.dag.parents[i], i) if v]
            levels = np.indices([design.cardinalities[v] for v in members]).reshape(len(members), size)
            yield first, members, levels
        first += size


def _pools(first: int, members: list[int], levels: Levels, ordered: Sequence[bool]) -> Iterator[tuple[int, Levels]]:
    """All ways to pool the cells of a family."""
    for axes in _smaller(len(members)):
        yield first, _numbered(levels[list(axes)])
    numbers = np.array([ordered[v] for v in members])
    for width, shift in INTERVALS if numbers.any() else ():
        coarse = np.where(numbers[:, None], (levels + shift) // width, levels)
        pool = _numbered(coarse)
        # An interval of all levels says nothing about the child, and cells that stay alone have nothing in common.
        if coarse[-1].any() and pool.max() + 1 < len(pool):
            yield first, pool


def _smaller(members: int) -> Iterator[tuple[int, ...]]:
    """Choices of members, not all, the child (the last) among them."""
    for count in range(members - 1):
        for parents in combinations(range(members - 1), count):
            yield (*parents, members - 1)


def _numbered(levels: Levels) -> Levels:
    """Equal columns by one number each, from 0 on."""
    return np.unique(levels, axis=1, return_inverse=True)[1].ravel()
