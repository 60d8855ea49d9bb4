"""A graph and rows as index arrays: which cell of which family each row uses, the class left open."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.graph import Dag

__all__ = ["Design"]

Floats = NDArray[np.float64]


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
        columns, start = [], 0
        for i in families:
            members = _others(dag, i)
            columns.append(_cells(known, members, start))
            start += math.prod(rows.cardinalities[v] for v in members)
        weights = np.ones(len(known)) if known.weights is None else known.weights
        return cls(
            dag,
            rows.cardinalities,
            families,
            np.ascontiguousarray(np.stack(columns, axis=1)),
            known.codes[0].astype(np.int64),
            weights,
            n_jobs,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Cells and classes."""
        cells = sum(math.prod(self.cardinalities[v] for v in _others(self.dag, i)) for i in self.families)
        return cells, self.cardinalities[0]

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
        for i in self.families:
            members = _others(self.dag, i)
            size = math.prod(self.cardinalities[v] for v in members)
            part = weights[start : start + size].reshape(*(self.cardinalities[v] for v in members), -1)
            tables[i] = np.moveaxis(part, -1, [*self.dag.parents[i], i].index(0))
            start += size
        return tables

    def loss(self, weights: Floats) -> tuple[float, Floats]:
        """-log P(classes | rows), summed, and its gradient by the weights."""
        from marginbayes.kernels.discriminative import conditional_loss

        def part(rows: slice) -> tuple[float, Floats]:
            gradient = np.zeros_like(weights)
            value = conditional_loss(self.cells[rows], weights, self.labels[rows], self.row_weights[rows], gradient)
            return value, gradient

        # The number of parts is fixed, so that the sum does not depend on the number of threads.
        step = max(1, -(-len(self.labels) // 4)) if len(self.labels) > 20_000 else max(1, len(self.labels))
        parts = [slice(start, start + step) for start in range(0, len(self.labels), step)]
        workers = min(effective_n_jobs(self.n_jobs), len(parts))
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                done = list(pool.map(part, parts))
        else:
            done = [part(p) for p in parts]
        return sum(value for value, _ in done), sum((g for _, g in done), np.zeros_like(weights))


def _others(dag: Dag, i: int) -> list[int]:
    """The members of a family besides the class, in the order of its table."""
    return [v for v in (*dag.parents[i], i) if v]


def _cells(rows: Rows, members: Sequence[int], start: int) -> NDArray[np.int32]:
    index = np.zeros(len(rows), np.int64)
    missing = np.zeros(len(rows), bool)
    for v in members:
        index = index * rows.cardinalities[v] + rows.codes[v]
        missing |= rows.codes[v] == rows.cardinalities[v]
    return np.where(missing, -1, index + start).astype(np.int32)
