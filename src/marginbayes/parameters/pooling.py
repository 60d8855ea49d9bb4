"""Deviations of tables that cells have of their own, and that they have in common with their neighbours in a table.

The weights of the cell (parents a and b, child x) under a class deviate by u(a, b, x) + v(x) + v(a, x) + v(b, x), and
the penalty is on all parts alike. So what many cells need costs little, and what one cell needs costs what it did. The
sum is a table like any other: nothing but the metric of the penalty changes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from marginbayes.parameters.design import Design

__all__ = ["Pooling"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pooling:
    """From parts, in one vector, to the deviations of all weights (cells x classes), and back.

    The first parts are those that the cells have of their own; the pools come behind them.
    """

    members: sparse.csr_array  # cells x pools: 1 where the cell is in the pool
    pools: sparse.csr_array  # the same, transposed
    n_classes: int

    @classmethod
    def of(cls, design: Design, wanted: bool = True) -> Pooling:
        """Pools of a design: for each family that has feature parents, all smaller tables that hold the child."""
        n_cells, n_classes = design.shape
        cells, pools, count = [np.empty(0, np.intp)], [np.empty(0, np.intp)], 0
        for first, shape in _families(design) if wanted else ():
            for axes in _smaller(len(shape)):
                local = _positions(shape, axes)
                cells.append(first + np.arange(len(local)))
                pools.append(count + local)
                count += math.prod(shape[k] for k in axes)
        where = np.concatenate(cells), np.concatenate(pools)
        members = sparse.csr_array((np.ones(len(where[0])), where), shape=(n_cells, count))
        return cls(members, members.T.tocsr(), n_classes)

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


def _families(design: Design) -> Iterator[tuple[int, tuple[int, ...]]]:
    """First cell, and numbers of levels of the members without the class, the child last."""
    first = 0
    for i, size in zip(design.families, design.sizes, strict=True):
        if i:
            yield first, tuple(design.cardinalities[v] for v in (*design.dag.parents[i], i) if v)
        first += size


def _smaller(members: int) -> Iterator[tuple[int, ...]]:
    """Choices of members, not all, the child (the last) among them."""
    for count in range(members - 1):
        for parents in combinations(range(members - 1), count):
            yield (*parents, members - 1)


def _positions(shape: tuple[int, ...], axes: tuple[int, ...]) -> NDArray[np.intp]:
    """For each cell of a table its position in the smaller table of some of the axes."""
    levels = np.indices(shape).reshape(len(shape), -1)
    return np.asarray(np.ravel_multi_index(tuple(levels[list(axes)]), tuple(shape[k] for k in axes)))
