"""The path of the interior-point method in compiled code, for problems of some thousand rows and one thread.

The same steps as those of `entropic_path`, which spends as much time on a thousand calls for each of them as small
arrays take to be worked on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf

from marginbayes.solvers.cholesky import RIDGES
from marginbayes.solvers.entropic import EntropicHinge
from marginbayes.solvers.entropic_best import VANISHED, Best, consider
from marginbayes.solvers.entropic_path import BOLDEST, GROW, LEAST, SHORTEST, SHRINK, TIMID, Pace

__all__ = ["SmallPath"]

Floats = NDArray[np.float64]

# Most deviations of rows times classes.
MOST_ENTRIES = 5_000_000
# So many modes may be factorised in any case, or half as many as there are rows, up to a limit; and half as many more
# wherever conjugate gradients took longer, up to another one (half a gigabyte).
FEW_MODES, MANY_MODES, MORE, MOST_MODES = 250, 4000, 1.5, 8000
# The matrix of all weights may be factorised up to so many.
MANY_WEIGHTS = 2000
# A product of the matrix takes so many times the time of an entry of a factor, for each entry of the rows.
ENTRY = 10.0
# Steps without a gain after which every point is looked at from all sides; and the part of the objective below which
# the products add up to where an overdrawn cell should not be in the way of a bound.
IDLE, NEAR = 2, 1e-4


class SmallPath:
    """Where the method is, and how it goes on."""

    def __init__(self, problem: EntropicHinge, weights: Floats, mu: float, pace: Pace) -> None:
        from marginbayes.kernels.margins_rows import centre_rows
        from marginbayes.kernels.path_step import Settings
        from marginbayes.kernels.path_values import Change, Given, Local, Point

        layout, rows = problem.layout, problem.layout.deviations
        (n, classes), groups = (len(problem.caps), weights.shape[1]), (layout.n_chunks, weights.shape[1])
        self.problem, self.mu, self.share = problem, mu, pace.share
        self.timid, self.boldest, self.stuck = TIMID, BOLDEST, False
        self.settings = Settings(pace.nearly, pace.held, SHRINK, LEAST, pace.power)
        self.given = Given(
            layout.cells,
            rows.starts,
            rows.cells,
            rows.families,
            rows.usual,
            layout.labels,
            problem.caps,
            layout.counts,
            layout.blocks,
            layout.chunks,
            layout.pooled,
            problem.target,
        )
        by_row, by_cell = [np.zeros((n, classes)) for _ in range(6)], [np.empty(weights.shape) for _ in range(5)]
        alone, by_group = [np.zeros(n) for _ in range(6)], [np.empty(groups) for _ in range(3)]
        self.totals = layout.group_sums(layout.counts)
        self.point = Point(weights.copy(), self.totals, by_row[0], by_row[1], alone[0], alone[1])
        self.local = Local(by_cell[0], by_cell[1], by_group[0], by_row[2], alone[2], alone[3], by_cell[2], by_group[1])
        self.change = Change(by_cell[3], by_group[2], by_row[3], by_row[4], *alone[4:])
        self.normalised, self.fitting = by_cell[4], by_row[5]
        self.values = np.inf, -np.inf, False, False
        self.most = max(FEW_MODES, min(MANY_MODES, n // 2))
        self.memory = np.empty(max(self.most, weights.size if weights.size <= MANY_WEIGHTS else 0) ** 2)
        self._plain = tuple(map(tuple, (self.given, self.point, self.local, self.change, self.settings)))
        short = problem.shortfalls(weights)
        centre_rows(short, layout.labels, self.share * problem.caps, mu * self.share, *self.point[2:])

    @staticmethod
    def suits(problem: EntropicHinge) -> bool:
        """Whether a problem is small."""
        layout = problem.layout
        return bool(len(layout.deviations.cells) * layout.counts.shape[1] <= MOST_ENTRIES)

    @property
    def eta(self) -> Floats:
        """Multipliers at this point."""
        return self.point.eta

    def step(self) -> None:
        """One predictor, one corrector."""
        from marginbayes.kernels.path_step import move

        modes, factor = self._factorised()
        given, point, local, change, settings = self._plain
        written = self.normalised, self.fitting
        length, iterations, *values = move(
            given, point, local, modes, factor, change, self.mu, self.timid, settings, VANISHED, *written
        )
        self.values = values
        self.stuck = length < SHORTEST
        self.timid = max(self.boldest, 0.5 * self.timid) if length > 0.95 else min(TIMID, 1.5 * self.timid)
        self._allow_modes(iterations, len(factor))
        if self.share < 1.0 and length > 0.3:
            grown = min(1.0, GROW * self.share)
            self.point.spare[:] += (grown - self.share) * self.problem.caps
            self.share = grown

    def _factorised(self) -> tuple[tuple[NDArray[np.generic], ...], Floats]:
        """The strong modes at this point and the factor of their matrix; the ridge grows until there is one."""
        from marginbayes.kernels.path_step import linearise

        for ridge in RIDGES:
            self.mu, modes, matrix = linearise(*self._plain[:3], self.most, ridge, self.memory)
            # Rows of the lower triangle are columns of the upper one, as LAPACK counts: nothing is copied.
            if not len(matrix) or not dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)[1]:
                return modes, matrix
        raise FloatingPointError("the Newton matrix is not positive definite")

    def _allow_modes(self, iterations: int, modes: int) -> None:
        """Allow for more modes where iterations took longer than the factor."""
        entries, more = len(self.given.deviations) * self.given.counts.shape[1], int(MORE * self.most)
        iterating = iterations * (ENTRY * entries + modes**2)
        if more <= MOST_MODES and iterating > more**2 * (self.given.cells.shape[1] + more / ENTRY):
            self.most = more
            self.memory = np.empty(max(more**2, self.memory.size))

    def appraise(self, best: Best, tol: float) -> None:
        """Keep what is better at this point; look at it from all sides where that may help, and is needed yet."""
        objective, bound, overdrawn, vanishing = self.values
        if objective < best.objective:
            best.objective, best.weights = objective, self.normalised.copy()
        if bound > best.bound:
            best.bound, best.eta = bound, self.fitting.copy()
        near = self.mu * self.eta.size < NEAR * abs(best.objective)
        if best.within(tol):
            return
        if vanishing or best.below or best.waited > IDLE or (overdrawn and near):
            consider(self.problem, best, self.point.weights, self.eta, self.totals)
