"""A graph and rows as index arrays: which cell of which family each row uses, the class left open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.graph import Dag
from marginbayes.parameters.rowloss import CONDITIONAL, RowLoss
from marginbayes.solvers.deviations import Deviations

__all__ = ["Design"]

Floats = NDArray[np.float64]

# Cells of so many rows times families are found at a time: of small tables all, which saves calls, of large ones a few
# megabytes.
AT_A_TIME = 2**20


@dataclass(frozen=True)
class Design:
    """The families that hold the class, as one matrix of weights (cells x classes), and the cells that each row uses.

    The score of class c in row n is the sum of ``weights[cells[n, f], c]`` over the families f. A family with a missing
    member adds nothing to that row. Rows that are equal are merged.
    """

    dag: Dag
    cardinalities: tuple[int, ...]
    families: tuple[int, ...]  # the variables whose family holds the class, the class itself first
    cells: NDArray[np.int32]
    labels: NDArray[np.int64]
    row_weights: Floats
    n_jobs: int | None = None

    @classmethod
    def of(cls, dag: Dag, rows: Rows, n_jobs: int | None = None) -> Design:
        """Design of the rows whose class is known."""
        known = rows.take(np.flatnonzero(rows.codes[0] < rows.cardinalities[0])).merged()[0]
        families = tuple(i for i, parents in enumerate(dag.parents) if i == 0 or 0 in parents)
        members = [_others(dag, i) for i in families]
        starts = np.cumsum([0, *(math.prod(rows.cardinalities[v] for v in of) for of in members)])
        lines = np.empty((len(families), len(known)), np.int32)
        step = max(1, AT_A_TIME // max(1, len(known)))
        for part in (slice(first, first + step) for first in range(0, len(families), step)):
            lines[part] = _cells(known, members[part], starts[:-1][part])
        weights = np.ones(len(known)) if known.weights is None else known.weights
        return cls(
            dag,
            rows.cardinalities,
            families,
            np.ascontiguousarray(lines.T),
            known.codes[0].astype(np.int64),
            weights,
            n_jobs,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Cells and classes."""
        return sum(self.sizes), self.cardinalities[0]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of cells of each family."""
        return tuple(math.prod(self.cardinalities[v] for v in _others(self.dag, i)) for i in self.families)

    @cached_property
    def deviations(self) -> Deviations:
        """The cells of each row that differ from the usual ones."""
        return Deviations.of(self.cells, self.sizes)

    def some(self, most: int) -> Design:
        """At most so many of the rows, evenly spread."""
        step = max(1, -(-len(self.labels) // most))
        if step == 1:
            return self
        kept = slice(None, None, step)
        return replace(
            self, cells=self.cells[kept], labels=self.labels[kept].copy(), row_weights=self.row_weights[kept].copy()
        )

    def flatten(self, tables: Sequence[Floats]) -> Floats:
        """Weights from the tables of a network."""
        parts = []
        for i in self.families:
            family = [*self.dag.parents[i], i]
            parts.append(np.moveaxis(tables[i], family.index(0), -1).reshape(-1, self.cardinalities[0]))
        return np.concatenate(parts)

    def tables(self, weights: Floats, others: Sequence[Floats]) -> list[Floats]:
        """Tables from weights; those of families without the class come from `others`."""
        tables, start = list(others), 0
        for i, size in zip(self.families, self.sizes, strict=True):
            members = _others(self.dag, i)
            part = weights[start : start + size].reshape(*(self.cardinalities[v] for v in members), -1)
            axes = list(range(len(members)))
            axes.insert([*self.dag.parents[i], i].index(0), len(members))
            tables[i] = part.transpose(axes)
            start += size
        return tables

    def loss(self, weights: Floats, row_loss: RowLoss = CONDITIONAL) -> tuple[float, Floats]:
        """Sum of the rows' losses, by default -log P(class | row), and its gradient by the weights."""
        return self.deviations.loss(row_loss.kernel(), weights, self.labels, self.row_weights, self.n_jobs)

    def add_up(self, values: Floats) -> Floats:
        """For each cell and class the weighted sum of values (rows x classes) over the rows that have the cell."""
        return self.deviations.add_up(values * self.row_weights[:, None])

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.row_weights.sum())

    def scores(self, weights: Floats) -> Floats:
        """Score of each class in each row."""
        return self.deviations.scores(weights)


def _others(dag: Dag, i: int) -> list[int]:
    """The members of a family besides the class, in the order of its table."""
    return [v for v in (*dag.parents[i], i) if v]


def _cells(rows: Rows, members: Sequence[Sequence[int]], starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """The cell of each row in each family with these members (families x rows), -1 where one is missing.

    `starts` are the families' first cells.
    """
    levels = np.array(rows.cardinalities, np.int32)
    cells = np.zeros((len(members), len(rows)), np.int32)
    missing = np.zeros(cells.shape, bool)
    for place in range(max(map(len, members))):
        has = [f for f, of in enumerate(members) if len(of) > place]
        which = [members[f][place] for f in has]
        codes, most = rows.codes[which], levels[which, None]
        cells[has] = cells[has] * most + codes
        missing[has] |= codes == most
    cells += starts[:, None]
    cells[missing] = -1
    return cells
