"""Rows as deviations from the usual row: what a sum over rows and families has to visit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.threads import in_threads, row_parts

__all__ = ["Deviations"]

Floats = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]

# A row of classes is filled up to a multiple of this: as many doubles as common processors add at once.
LANES = 4
# Parts of many rows.
PARTS = 8


@dataclass(frozen=True)
class Deviations:
    """For each family the cell that most rows have, and for each row the cells that it has instead.

    In data of many levels half of the families or more are usually as usual, in pictures three quarters. A family with
    a missing member has a cell of its own, behind the others, whose weight is zero.
    """

    usual: Indices  # the usual cell of each family
    families: Indices  # the family of each cell
    starts: Indices  # where the deviations of each row begin, and where the last one's end
    cells: Indices

    @classmethod
    def of(cls, cells: NDArray[np.int32], sizes: Sequence[int]) -> Deviations:
        """Deviations of rows x families of cells, -1 where something is missing; `sizes` are the families' cells."""
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        missing = (bounds[-1] + np.arange(len(sizes))).astype(np.int32)
        counts = np.zeros(bounds[-1] + len(sizes), np.int64)
        step = max(1, 2**20 // max(1, len(sizes)))  # a few megabytes at a time
        parts = [slice(first, first + step) for first in range(0, len(cells), step)]
        for rows in parts:
            counts += np.bincount(np.where(cells[rows] < 0, missing, cells[rows]).ravel(), minlength=len(counts))
        families = np.repeat(np.arange(len(sizes)), sizes)
        usual = _usual(counts, families, bounds[:-1], missing)
        found, lengths = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
        for rows in parts:
            part = np.where(cells[rows] < 0, missing, cells[rows])
            differs = part != usual
            found.append(part[differs])
            lengths.append(np.count_nonzero(differs, axis=1))
        return cls(usual, families, np.cumsum(np.concatenate(lengths)), np.concatenate(found))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def loss(
        self, kernel: Callable[..., float], weights: Floats, labels: Indices, row_weights: Floats, n_jobs: int | None
    ) -> tuple[float, Floats]:
        """Sum over the rows of a kernel's loss, and its gradient by the weights (cells x classes)."""
        n_classes = weights.shape[1]
        base, changes = self.relative(weights, -(-n_classes // LANES) * LANES)

        def part(rows: slice) -> tuple[float, Floats, Floats]:
            gradient, total = np.zeros_like(changes), np.zeros_like(base)
            chosen = labels[rows], row_weights[rows]
            value = kernel(self.starts_of(rows), self.cells, base, changes, n_classes, *chosen, gradient, total)
            return value, gradient, total

        done = in_threads(part, row_parts(len(self), PARTS), n_jobs)
        gradient = sum((g for _, g, _ in done), np.zeros_like(changes))
        total = sum((t for _, _, t in done), np.zeros_like(base))
        return float(sum(v for v, _, _ in done)), self.absolute(gradient, total)[:, :n_classes]

    def add_up(self, values: Floats) -> Floats:
        """Sum of values (rows x classes) over the rows that have a cell, for each cell and class."""
        from marginbayes.kernels.deviations import scatter

        sums, total = self.no_sums(values.shape[1])
        scatter(self.starts, self.cells, np.ascontiguousarray(values), sums, total)
        return self.absolute(sums, total)

    def scores(self, weights: Floats) -> Floats:
        """Score of each class in each row."""
        from marginbayes.kernels.deviations import gather

        base, changes = self.relative(weights)
        scores = np.empty((len(self), len(base)))
        gather(self.starts, self.cells, base, changes, scores)
        return scores

    # -- for kernels over rows

    def starts_of(self, rows: slice) -> Indices:
        """Where the deviations of these rows begin, and where the last one's end."""
        return self.starts[rows.start : rows.stop + 1]

    def relative(self, weights: Floats, width: int | None = None) -> tuple[Floats, Floats]:
        """Scores of the usual row, and what each cell changes; columns of zeros behind the classes up to the width."""
        from marginbayes.kernels.deviations import relative

        width = weights.shape[1] if width is None else width
        base, changes = np.zeros(width), np.zeros((len(weights) + len(self.usual), width))
        relative(weights, self.families, self.usual, changes, base)
        return base, changes

    def no_sums(self, width: int) -> tuple[Floats, Floats]:
        """Zeros, to which sums over the rows with each deviation, and over all rows, can be added."""
        return np.zeros((len(self.families) + len(self.usual), width)), np.zeros(width)

    def absolute(self, sums: Floats, total: Floats) -> Floats:
        """Sums by cell from those by deviation, which are overwritten."""
        from marginbayes.kernels.deviations import absolute

        absolute(sums, total, self.families, self.usual)
        return sums[: len(self.families)]


def _usual(counts: Indices, families: Indices, begins: Indices, missing: NDArray[np.int32]) -> NDArray[np.int32]:
    """The cell of each family that most rows have; that of missing members only if it has more rows than any other."""
    if not len(begins):
        return missing
    present = counts[: len(families)]
    most = np.maximum.reduceat(present, begins)
    best = np.flatnonzero(present == most[families])
    first = best[np.searchsorted(families[best], np.arange(len(begins)))]
    return np.where(counts[missing] > most, missing, first).astype(np.int32)
