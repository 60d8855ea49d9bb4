"""The path of the interior-point method over arrays, for problems of any size; see `entropic_interior`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.entropic import EntropicHinge
from marginbayes.solvers.entropic_best import Best, consider
from marginbayes.solvers.entropic_system import Curvature, System

__all__ = ["BOLD", "CAREFUL", "Pace", "Path"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pace:
    """How a path goes.

    Parameters
    ----------
    nearly : float
        Part of the way to the boundary that a step may go.
    held : float
        Part of the rows and weights that a step need not wait for: they go as far as they can.
    power : float
        The products aimed at are mu times this power of what the predictor leaves of them.
    share : float
        Part of the caps to begin with; it doubles with every good step.
    """

    nearly: float
    held: float
    power: float
    share: float = 1.0


BOLD, CAREFUL = Pace(0.98, 0.1, 2.0), Pace(0.95, 0.02, 3.0)
# An amount may grow to e times the larger of itself and mu in a step, and shrink about twice as far.
SHRINK = 2.0
# Squared error of the linear system, relative to what is missing and to mu.
RELATIVE, ABSOLUTE = 1e-2, 1e-2
# The caps grow by this factor a step, where they began with a share.
GROW = 2.0
# The most of mu that a step aims at: less after a full step, more after a short one. And the least.
TIMID, BOLDEST, LEAST = 0.9, 0.05, 1e-3
# Steps shorter than this get nowhere.
SHORTEST = 1e-9


class Path:
    """Where the method is, and how it goes on."""

    def __init__(
        self, problem: EntropicHinge, weights: Floats, mu: float, pace: Pace, check: Callable[[], None]
    ) -> None:
        from marginbayes.kernels.margins_rows import centre_rows

        self.problem, self.layout, self.check = problem, problem.layout, check
        self.weights, self.mu, self.stuck = weights.copy(), mu, False
        self.pace, self.share = pace, pace.share
        self.timid, self.boldest, self.iterations = TIMID, BOLDEST, 0
        rows, classes = len(problem.caps), weights.shape[1]
        self.eta, self.room = np.empty((rows, classes)), np.empty((rows, classes))
        self.spare, self.slack = np.empty(rows), np.empty(rows)
        self.change = (np.zeros((rows, classes)), np.zeros((rows, classes)), np.zeros(rows), np.zeros(rows))
        self.totals = self.layout.group_sums(self.layout.counts)
        centre_rows(
            problem.shortfalls(weights), self.layout.labels, self.share * problem.caps, mu * self.share, *self._rows
        )

    @property
    def _rows(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.eta, self.room, self.spare, self.slack

    def appraise(self, best: Best, tol: float) -> None:  # noqa: ARG002
        """Keep what is better at this point."""
        consider(self.problem, best, self.weights, self.eta, self.totals)

    def step(self) -> None:
        """One predictor, one corrector."""
        from marginbayes.kernels.margins_rows import advance, product_sum, products_ahead

        self.mu = product_sum(*self._rows) / self.eta.size
        self._linearise()
        change = self._newton(0.0, 0.0)
        reach = self._length(*change)
        ahead = products_ahead(reach, self.pace.nearly, *self._rows, *self.change) / self.eta.size / self.mu
        goal = min(self.timid, max(ahead**self.pace.power, LEAST)) * self.mu
        change = self._newton(goal, reach * reach)
        self.iterations = self.system.iterations
        length = self._length(*change)
        d_weights, d_logs = self._limit(length, *change)
        self.stuck = length < SHORTEST
        self.timid = max(self.boldest, 0.5 * self.timid) if length > 0.95 else min(TIMID, 1.5 * self.timid)
        self.weights = self.weights + length * d_weights
        self.totals = self.totals * np.exp(length * d_logs)
        advance(length, self.pace.nearly, self.layout.labels, *self._rows, *self.change)
        if self.share < 1.0 and length > 0.3:
            grown = min(1.0, GROW * self.share)
            self.spare += (grown - self.share) * self.problem.caps
            self.share = grown

    def _linearise(self) -> None:
        """Amounts at this point, what is wrong with them, and the linear system."""
        from marginbayes.kernels.margins_rows import curvature, smooth_logs

        layout, mu = self.layout, self.mu
        logs = self.weights + layout.spread(np.log(self.totals))
        amounts, self.excess = np.empty_like(logs), np.empty_like(logs)
        smooth_logs(logs.ravel(), mu, amounts.ravel(), self.excess.ravel())
        self.amounts = amounts
        self.missing = layout.counts + layout.differences(self.eta) - amounts
        self.surplus = layout.group_sums(amounts) - self.totals
        theta, tau, total = np.empty_like(self.eta), np.empty_like(self.spare), np.empty_like(self.spare)
        curvature(*self._rows, layout.labels, theta, tau, total)
        h = amounts / (1.0 + self.excess)
        kappa = np.maximum(layout.group_sums(mu / (1.0 + self.excess)), 1e-9 * self.totals)
        self.curvature = Curvature(theta, tau, total, h, kappa)
        self.system = System(layout, self.curvature, self.iterations)
        self.bar = max(RELATIVE * self.system.size(self.missing), ABSOLUTE * mu)

    def _newton(self, goal: float, scale: float) -> tuple[Floats, Floats]:
        """Changes of weights and of the groups' log totals towards products of `goal`."""
        from marginbayes.kernels.margins_rows import direction, right_side

        k, layout = self.curvature, self.layout
        coefficients = np.empty_like(self.eta)
        right_side(*self._rows, layout.labels, k.theta, k.total, goal, scale, self.mu, *self.change, coefficients)
        shift = (goal - self.mu) / (1.0 + self.excess)
        group = layout.group_sums(shift) + self.surplus
        right = layout.sums(coefficients) - shift + self.missing - k.h * layout.spread(group / k.kappa)
        d_weights = self.system.solve(right, self.bar, self.check)
        d_logs = (layout.group_sums(k.h * d_weights) + group) / k.kappa
        scores = layout.scores(d_weights)
        direction(*self._rows, layout.labels, k.theta, k.tau, k.total, goal, scale, self.mu, scores, *self.change)
        left = self.missing + layout.differences(self.change[0]) - shift
        left -= k.h * (d_weights + layout.spread(d_logs))
        self.system.correct(left, self.change[0], self.change[2])
        return d_weights, d_logs

    def _bounds(self, d_logs: Floats) -> tuple[Floats, Floats]:
        """Least and greatest change of a weight within which the linear model can tell its amount."""
        spread, reach = self.layout.spread(d_logs), 1.0 + self.excess
        return -SHRINK * reach - spread, reach - spread

    def _length(self, d_weights: Floats, d_logs: Floats) -> float:
        """A step that nearly all rows and weights can go along with."""
        from marginbayes.kernels.margins_rows import row_steps

        steps = np.empty(len(self.spare))
        row_steps(*self._rows, *self.change, steps)
        total = d_weights + self.layout.spread(d_logs)
        down, up = self._bounds(np.zeros_like(d_logs))
        rates = np.maximum(total / up, total / down).ravel()
        some = int(self.pace.held * len(steps)), int(self.pace.held * len(rates))
        rows = np.partition(steps, some[0])[some[0]]
        cells = 1.0 / max(1e-300, -np.partition(-rates, some[1])[some[1]])
        return float(min(1.0, self.pace.nearly * rows, cells))

    def _limit(self, length: float, d_weights: Floats, d_logs: Floats) -> tuple[Floats, Floats]:
        """The change with its few large entries cut; the rooms of the rows follow."""
        layout, labels = self.layout, self.layout.labels
        d_logs = np.clip(d_logs, -1.0 / length, 1.0 / length)
        down, up = self._bounds(length * d_logs)
        limited = np.clip(d_weights, down / length, up / length)
        self.cut = np.count_nonzero(limited != d_weights)
        if self.cut:
            scores = layout.scores(limited - d_weights)
            self.change[1][:] += scores[np.arange(len(labels)), labels][:, None] - scores
            self.change[1][np.arange(len(labels)), labels] = 0.0
        return limited, d_logs
