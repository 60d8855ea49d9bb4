"""Rows as deviations from the usual row: what a sum over rows and families has to visit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

__all__ = ["Deviations"]

Floats = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]

# A row of classes is filled up to a multiple of this: as many doubles as common processors add at once.
LANES = 4
# Rows below which threads cost more than they save; above, the number of parts is fixed, so that sums do not depend on
# the number of threads.
WORTH_THREADS, PARTS = 20_000, 8


@dataclass(frozen=True)
class Deviations:
    """For each family the cell that most rows have, and for each row the cells that it has instead.

    In data of many levels half of the families or more are usually as usual, in pictures three quarters. A family with
    a missing member has a cell of its own, behind the others, whose weight is zero.
    """

    usual: Indices  # the usual cell of each family
    bounds: Indices  # where the cells of each family begin, and where the last one ends
    starts: Indices  # where the deviations of each row begin, and where the last one's end
    cells: Indices

    @classmethod
    def of(cls, cells: NDArray[np.int32], sizes: Sequence[int]) -> Deviations:
        """Deviations of rows x families of cells, -1 where something is missing; `sizes` are the families' cells."""
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        missing = bounds[-1] + np.arange(len(sizes), dtype=np.int32)
        counts = np.zeros(bounds[-1] + len(sizes), np.int64)
        step = max(1, 2**20 // max(1, len(sizes)))  # a few megabytes at a time
        parts = [slice(first, first + step) for first in range(0, len(cells), step)]
        for rows in parts:
            counts += np.bincount(np.where(cells[rows] < 0, missing, cells[rows]).ravel(), minlength=len(counts))
        usual = np.array([_usual(counts, *of) for of in zip(bounds, bounds[1:], missing, strict=False)], np.int32)
        found, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
        for rows in parts:
            part = np.where(cells[rows] < 0, missing, cells[rows])
            differs = part != usual
            found.append(part[differs])
            lengths.append(np.count_nonzero(differs, axis=1))
        return cls(usual, bounds, np.cumsum(np.concatenate(lengths)), np.concatenate(found))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def loss(
        self, kernel: Callable[..., float], weights: Floats, labels: Indices, row_weights: Floats, n_jobs: int | None
    ) -> tuple[float, Floats]:
        """Sum over the rows of a kernel's loss, and its gradient by the weights (cells x classes)."""
        base, changes = self._relative(weights)

        def part(rows: slice) -> tuple[float, Floats, Floats]:
            gradient, total = np.zeros_like(changes), np.zeros_like(base)
            starts = self.starts[rows.start : rows.stop + 1]
            chosen = labels[rows], row_weights[rows]
            value = kernel(starts, self.cells, base, changes, weights.shape[1], *chosen, gradient, total)
            return value, gradient, total

        done = _in_threads(part, self._parts(), n_jobs)
        gradient = sum((g for _, g, _ in done), np.zeros_like(changes))
        total = sum((t for _, _, t in done), np.zeros_like(base))
        return float(sum(v for v, _, _ in done)), self._absolute(gradient, total)[:, : weights.shape[1]]

    def add_up(self, values: Floats) -> Floats:
        """Sum of values (rows x classes) over the rows that have a cell, for each cell and class."""
        from marginbayes.kernels.discriminative import add_up

        gradient = np.zeros((self.bounds[-1] + len(self.usual), values.shape[1]))
        total = np.zeros(values.shape[1])
        add_up(self.starts, self.cells, np.ascontiguousarray(values), gradient, total)
        return self._absolute(gradient, total)

    def scores(self, weights: Floats) -> Floats:
        """Score of each class in each row."""
        from marginbayes.kernels.discriminative import row_scores

        base, changes = self._relative(weights)
        scores = np.empty((len(self), len(base)))
        row_scores(self.starts, self.cells, base, changes, scores)
        return scores[:, : weights.shape[1]]

    def _relative(self, weights: Floats) -> tuple[Floats, Floats]:
        """Scores of the usual row, and what each cell changes; rows of zero for what is missing, columns as filling."""
        families, classes = len(self.usual), weights.shape[1]
        changes = np.zeros((len(weights) + families, -(-classes // LANES) * LANES))
        changes[: len(weights), :classes] = weights
        usual = changes[self.usual]
        changes[: len(weights)] -= np.repeat(usual, np.diff(self.bounds), axis=0)
        changes[len(weights) :] -= usual
        return usual.sum(axis=0), changes

    def _absolute(self, gradient: Floats, total: Floats) -> Floats:
        """Gradient by the weights from that by the changes: a usual cell has what its family's other cells leave."""
        n_cells = self.bounds[-1]
        others = np.add.reduceat(gradient[:n_cells], self.bounds[:-1], axis=0) + gradient[n_cells:]
        gradient[self.usual] = total - others
        return np.asarray(gradient[:n_cells])

    def _parts(self) -> list[slice]:
        n = len(self)
        step = max(1, n if n < WORTH_THREADS else -(-n // PARTS))
        return [slice(first, min(first + step, n)) for first in range(0, n, step)]


def _usual(counts: Indices, first: int, end: int, missing: int) -> int:
    """The cell of a family that most rows have; that of missing members only if it has more rows than any other."""
    best = first + int(counts[first:end].argmax())
    return int(missing) if counts[missing] > counts[best] else best


def _in_threads(function: Callable[[slice], Any], parts: list[slice], n_jobs: int | None) -> list[Any]:
    workers = min(effective_n_jobs(n_jobs), len(parts))
    if workers <= 1:
        return [function(p) for p in parts]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(function, parts))
