"""Problems with a likelihood, a hinge over rivals, and groups of weights whose exponentials sum to at most one.

    minimise over w   - counts . w + sum over rows n of cap_n max(0, target - min over rivals c of margin_nc(w))
    such that         the sum of exp(w) over each group is at most 1

The score of class c in row n is the sum of ``w[cell, c]`` over the row's cells, a margin the own class's score less a
rival's. The dual: with D the matrix of score differences,

    maximise over eta   target sum(eta) - sum over groups of sum_i v_i log(v_i / V), v = counts + D' eta >= 0, V = sum v
    such that           eta >= 0, the sum of eta over the rivals of row n is at most cap_n

and w = log(v / V). A group with V = 0 adds nothing to the dual (0 log 0 = 0); only there may the exponentials of an
optimal w sum to less than one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.deviations import Deviations
from marginbayes.solvers.threads import in_threads, row_parts

__all__ = ["EntropicHinge", "Layout"]

Floats = NDArray[np.float64]
Cells = NDArray[np.int32]

# Parts of many rows: each has sums of its own.
PARTS = 4
# Part of what flows into and out of a cell that the order of summation may change.
LOST = 1e-13


@dataclass(frozen=True, eq=False)
class Layout:
    """Which cells every row uses, and which weights form a group.

    Parameters
    ----------
    cells : array of shape (rows, blocks)
        Cell of each block, -1 where the block adds nothing. Cells of a block are consecutive.
    labels : array of shape (rows,)
        Own class of each row.
    counts : array of shape (cells, classes), positive
    blocks : array of shape (cells,)
        Block of each cell, ascending.
    chunks : array of shape (cells,)
        Ascending from 0. A chunk is a group for each class, but the chunks of block 0 have one cell each and are one
        group over all classes.
    n_jobs : int or None
        Threads over rows.
    """

    cells: Cells
    labels: NDArray[np.int64]
    counts: Floats
    blocks: NDArray[np.int64]
    chunks: Cells
    n_jobs: int | None = None

    @cached_property
    def deviations(self) -> Deviations:
        """The cells of each row that differ from the usual ones."""
        return Deviations.of(self.cells, np.bincount(self.blocks, minlength=self.cells.shape[1]).tolist())

    # -- sums over rows

    def each(self, work: Callable[[slice], None], n: int) -> None:
        """Do the work for every part of n rows, on threads where that pays."""
        in_threads(work, row_parts(n, PARTS), self.n_jobs)

    def summed(self, work: Callable[[slice, Floats, Floats], None], n: int) -> Floats:
        """Sum over parts of n rows of what the work adds to deviations and to the total, by cell."""
        parts = row_parts(n, PARTS) or [slice(0, 0)]
        sums = [self.deviations.no_sums(self.counts.shape[1]) for _ in parts]
        in_threads(lambda part: work(part, *sums[parts.index(part)]), parts, self.n_jobs)
        (whole, total), *others = sums
        for more, more_total in others:
            whole += more
            total += more_total
        return self.deviations.absolute(whole, total)

    def scores(self, weights: Floats) -> Floats:
        """Scores of all classes in all rows."""
        from marginbayes.kernels.deviations import gather

        rows, (base, changes) = self.deviations, self.deviations.relative(weights)
        out = np.empty((len(self.labels), weights.shape[1]))
        self.each(lambda p: gather(rows.starts_of(p), rows.cells, base, changes, out[p]), len(out))
        return out

    def sums(self, coefficients: Floats) -> Floats:
        """The transpose of `scores`."""
        from marginbayes.kernels.deviations import scatter

        rows = self.deviations
        return self.summed(
            lambda p, sums, total: scatter(rows.starts_of(p), rows.cells, coefficients[p], sums, total),
            len(self.labels),
        )

    def differences(self, eta: Floats) -> Floats:
        """D' eta: what multipliers of rivals give to the own class's cells and take from the rivals'."""
        coefficients = -eta
        coefficients[np.arange(len(eta)), self.labels] = eta.sum(axis=1)
        return self.sums(coefficients)

    # -- groups

    @cached_property
    def n_chunks(self) -> int:
        """Number of chunks."""
        return int(self.chunks.max(initial=-1)) + 1

    @cached_property
    def pooled(self) -> int:
        """Number of chunks that are one group over all classes; they come first."""
        return int((self.blocks == 0).sum())

    def group_sums(self, x: Floats) -> Floats:
        """Sum over each group, by chunk and class; a group over all classes has its sum in each of them."""
        from marginbayes.kernels.margins_groups import group_sums

        out = np.empty((self.n_chunks, x.shape[1]))
        group_sums(x, self.chunks, self.pooled, out)
        return out

    def spread(self, sums: Floats) -> Floats:
        """One number for each group to all of its weights."""
        return sums.take(self.chunks, axis=0)

    def log_sums(self, weights: Floats) -> Floats:
        """Log of the sum of exponentials of each group."""
        from marginbayes.kernels.margins_groups import group_logs

        out = np.empty((self.n_chunks, weights.shape[1]))
        group_logs(weights, self.chunks, self.pooled, out)
        return out

    def normalised(self, weights: Floats) -> Floats:
        """Weights shifted so that the exponentials of each group sum to one."""
        return weights - self.spread(self.log_sums(weights))


@dataclass(frozen=True, eq=False)
class EntropicHinge:
    """One problem over a layout: the caps of the rows (positive), and the target of the margins."""

    layout: Layout
    caps: Floats
    target: float

    def shortfalls(self, weights: Floats) -> Floats:
        """Target less margin for each row and rival."""
        from marginbayes.kernels.margins_rows import shortfalls

        scores = self.layout.scores(weights)
        shortfalls(scores, self.layout.labels, self.target, scores)
        return scores

    def primal(self, weights: Floats) -> float:
        """Objective of weights that keep the constraint."""
        from marginbayes.kernels.margins_rows import hinge_sum

        return float(hinge_sum(self.shortfalls(weights), self.caps) - (self.layout.counts * weights).sum())

    def dual(self, eta: Floats, amounts: Floats) -> float:
        """Bound of multipliers, with their amounts v = counts + D' eta, none of them negative."""
        totals = self.layout.spread(self.layout.group_sums(amounts))
        logs = np.zeros_like(amounts)
        np.divide(amounts, totals, out=logs, where=amounts > 0.0)
        np.log(logs, out=logs, where=amounts > 0.0)
        return float(self.target * eta.sum() - (amounts * logs).sum())

    def rounding(self, eta: Floats) -> Floats:
        """How far the amount of each cell may be from what another order of summation gives.

        Sums of a table's usual cell are what its other cells leave of the sum over all rows, so that counts, too.
        """
        through, totals = eta.copy(), eta.sum(axis=1)
        through[np.arange(len(eta)), self.layout.labels] += totals
        return np.asarray(LOST * (self.layout.sums(through) + 1e-2 * totals.sum()))

    def repaired(self, eta: Floats, room: Floats | float = 0.0, rounds: int = 10) -> tuple[Floats, Floats]:
        """Multipliers whose amounts are not below the room: those that overdraw a cell are made smaller."""
        from marginbayes.kernels.margins_system import shrink_takers

        counts = self.layout.counts - room
        for _ in range(rounds):
            amounts = counts + self.layout.differences(eta)
            short = amounts < 0.0
            if not short.any():
                return eta, amounts + room
            taken = self.layout.sums(eta)
            factors = np.ones_like(amounts)
            factors[short] = np.maximum(0.0, 1.0 + amounts[short] / np.maximum(taken[short], 1e-300) - 1e-12)
            eta = eta.copy()
            shrink_takers(self.layout.cells, self.layout.labels, factors, eta)
        change = self.layout.differences(eta)
        down = change < 0.0
        share = min(1.0, float((np.maximum(0.0, counts[down]) / -change[down]).min(initial=1.0))) * (1.0 - 1e-12)
        return share * eta, self.layout.counts + share * change
