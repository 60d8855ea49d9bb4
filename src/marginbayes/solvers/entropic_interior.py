"""Interior-point method for `EntropicHinge`: a primal-dual path in the rows, a smoothed logarithm in the weights.

On the path every product of a row is mu (see `kernels.margins_rows`), and the amount v of a weight w in a group with
the total V obeys v (log(v / V) - w) = mu. That is the central path of the problem written with exponential cones. The
amount is a smooth function of w, about V exp(w) + mu where that is large and mu / |w| where it is not; so weights may
run to minus infinity without harm, and a group may vanish (V = 0). A step is a predictor and a corrector with one
linear system; w is the only free variable of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.entropic import EntropicHinge
from marginbayes.solvers.entropic_system import Curvature, System
from marginbayes.solvers.interrupt import kernel_interrupts
from marginbayes.solvers.moment import Moment

__all__ = ["Solution", "minimise"]

Floats = NDArray[np.float64]
Watch = Callable[[Moment], None]

# Part of the way to the boundary that a step may go.
NEARLY = 0.95
# An amount may grow to e times the larger of itself and mu in a step, and shrink about twice as far.
SHRINK = 2.0
# Squared error of the linear system, relative to what is missing and to mu.
RELATIVE, ABSOLUTE = 1e-2, 1e-2
# Part of the rows and weights that a step need not wait for: they go as far as they can.
HELD = 0.02
# The caps begin at this part of the counts in all, and grow by this factor a step.
SMALL, GROW = 0.1, 2.0
# The most of mu that a step aims at: less after a full step, more after a short one.
TIMID, BOLD = 0.9, 0.05
# After so many steps without a tenth of the gap closed, steps become less bold for good.
PATIENCE = 8
# Where the products are below this part of what the gap would make them, rows that were held are lost from the path.
LOST = 1e-3
# Steps shorter than this get nowhere.
SHORTEST = 1e-9
# Products that add up to less than this part of the objective are rounding: there is nothing left to gain. Neither is
# there where the gap itself is below such a part and does not close.
SMALLEST, ROUNDING = 1e-14, 1e-12
# A group that has lost all but this part of its counts may be about to vanish.
VANISHED = 1e-2
# Other groups that sum to less than one are taken only where that closes so much of the gap; else they need not.
MUCH = 0.9
# Rounding by less than this part of a cell's count needs no room.
TINY = 1e-10


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights that keep the constraint, multipliers, what both are worth, and why the solver stopped."""

    weights: Floats
    eta: Floats
    objective: float
    bound: float
    status: str
    seconds: float
    trace: tuple[tuple[float, float, float], ...] = ()
    iterations: int = 0


@dataclass(eq=False)
class _Best:
    """The best weights and the best multipliers so far."""

    began: float
    weights: Floats
    eta: Floats
    objective: float = np.inf
    bound: float = -np.inf
    gap: float = np.inf
    waited: int = 0
    below: bool = False  # whether groups that sum to less than one have been worth it
    trace: list[tuple[float, float, float]] = field(default_factory=list)

    def note(self) -> None:
        self.trace.append((time.perf_counter() - self.began, self.objective, self.bound))

    def stagnates(self) -> bool:
        """Whether the gap has hardly closed for some steps; these count once."""
        self.waited += 1
        if self.objective - self.bound < 0.9 * self.gap:
            self.gap, self.waited = self.objective - self.bound, 0
        elif self.waited == PATIENCE:
            self.waited = 0
            return True
        return False

    def within(self, tol: float) -> bool:
        return self.objective - self.bound <= tol * max(1.0, abs(self.objective))


class _TimeIsUp(Exception):
    pass


def minimise(
    problem: EntropicHinge,
    start: Floats | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> Solution:
    """Best weights and bound; Ctrl-C and the limits keep the best so far, and so does rounding (``"stalled"``).

    Parameters
    ----------
    start : array of shape (cells, classes) or None
        Weights near the solution; without, the logarithms of the counts.
    tol : float
        Relative gap at which to stop.
    """
    began = time.perf_counter()
    first = problem.layout.normalised(np.log(problem.layout.counts) if start is None else start)
    best = _Best(began, first, np.zeros((len(problem.caps), first.shape[1])))
    _consider_weights(problem, best, first)
    _consider_multipliers(problem, best, best.eta)
    best.note()

    def check() -> None:
        if time_limit is not None and time.perf_counter() - began > time_limit:
            raise _TimeIsUp

    path, status, steps = None, "optimal", 0
    try:
        while not best.within(tol):
            if steps == max_iter:
                status = "iteration limit"
                break
            if path is None:
                share = _first_share(problem) if start is None else 1.0
                path = _Path(problem, first, _first_mu(problem, best), share, check)
            with kernel_interrupts():
                path.step()
            steps += 1
            if path.stuck and path.mu < SMALLEST * abs(best.objective) / path.eta.size:
                status = "stalled"
                break
            if path.stuck:
                path = _Path(problem, best.weights, 10.0 * path.mu, 1.0, check)
            _consider(problem, best, path)
            best.note()
            if best.stagnates():
                if best.within(ROUNDING):
                    status = "stalled"
                    break
                path = _less_bold(problem, best, path)
            if watch is not None:
                watch(Moment(best.trace[-1][0], best.objective, best.bound, f"step {steps}"))
    except KeyboardInterrupt:
        status = "interrupted"
    except _TimeIsUp:
        status = "time limit"
    except FloatingPointError:  # rounding leaves no factor of the system, and no better point to be found
        status = "stalled"
    _leave_room(problem, best)
    if status == "optimal" and not best.within(tol):
        status = "stalled"
    seconds = time.perf_counter() - began
    return Solution(best.weights, best.eta, best.objective, best.bound, status, seconds, tuple(best.trace), steps)


def _less_bold(problem: EntropicHinge, best: _Best, path: _Path) -> _Path:
    """The path with shorter aims from now on; begun anew at the best weights where it has lost its rows."""
    boldest = min(0.8, 3.0 * path.boldest)
    if path.mu < LOST * _first_mu(problem, best):
        path = _Path(problem, best.weights, _first_mu(problem, best), 1.0, path.check)
    path.boldest = boldest
    return path


# -- what is best


def _consider(problem: EntropicHinge, best: _Best, path: _Path) -> None:
    """Look at the point of the path: its weights, normalised or made to keep the constraint, and its multipliers."""
    layout = problem.layout
    logs = layout.log_sums(path.weights)
    _consider_weights(problem, best, path.weights - layout.spread(logs))
    below = logs < 0.0
    vanishes = below & (path.totals < VANISHED * layout.group_sums(layout.counts))
    if vanishes.any():  # such a group may want to sum to less than one
        _consider_weights(problem, best, path.weights - layout.spread(np.where(vanishes, 0.0, logs)))
    if (best.below or best.waited) and below.any():  # and so may one that is about to vanish, where little else helps
        best.below |= _consider_weights(problem, best, path.weights - layout.spread(np.maximum(logs, 0.0)), MUCH)
    _consider_multipliers(problem, best, path.eta)


def _consider_weights(problem: EntropicHinge, best: _Best, weights: Floats, least: float = 0.0) -> bool:
    """Keep weights that are better by at least a part of the gap; whether they are."""
    value = problem.primal(weights)
    better = value < best.objective - (least * (best.objective - best.bound) if least else 0.0)
    if better:
        best.objective, best.weights = value, weights
    return better


def _consider_multipliers(problem: EntropicHinge, best: _Best, eta: Floats) -> None:
    eta, amounts = problem.repaired(_fitting(problem, eta))
    value = problem.dual(eta, amounts)
    if value > best.bound:
        best.bound, best.eta = value, eta


def _leave_room(problem: EntropicHinge, best: _Best) -> None:
    """Change the best multipliers so that they are within the counts however they are summed."""
    room = problem.rounding(best.eta)
    if (room > TINY * problem.layout.counts).any():
        best.eta, amounts = problem.repaired(best.eta, room)
        best.bound = problem.dual(best.eta, amounts)


def _fitting(problem: EntropicHinge, eta: Floats) -> Floats:
    """Multipliers scaled down to the caps, from which rounding may have led them away."""
    sums = eta.sum(axis=1)
    return np.asarray(eta * (problem.caps / np.maximum(sums, problem.caps))[:, None])


def _first_mu(problem: EntropicHinge, best: _Best) -> float:
    """Products at the start: a part of the gap for each row and class."""
    return float((best.objective - best.bound) / (len(problem.caps) * problem.layout.counts.shape[1]))


def _first_share(problem: EntropicHinge) -> float:
    """Part of the caps to begin with, where the weights know nothing of margins."""
    total = problem.layout.counts[problem.layout.blocks == 0].sum()
    return min(1.0, SMALL * float(total / problem.caps.sum()))


# -- the path


class _Path:
    """Where the method is, and how it goes on."""

    def __init__(
        self, problem: EntropicHinge, weights: Floats, mu: float, share: float, check: Callable[[], None]
    ) -> None:
        from marginbayes.kernels.margins_rows import centre_rows

        self.problem, self.layout, self.check = problem, problem.layout, check
        self.weights, self.mu, self.stuck = weights.copy(), mu, False
        self.share = share
        self.timid, self.boldest, self.iterations = TIMID, BOLD, 0
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

    def step(self) -> None:
        """One predictor, one corrector."""
        from marginbayes.kernels.margins_rows import advance, product_sum, products_ahead

        self.mu = product_sum(*self._rows) / self.eta.size
        self._linearise()
        change = self._newton(0.0, 0.0)
        reach = self._length(*change)
        ahead = products_ahead(reach, NEARLY, *self._rows, *self.change) / self.eta.size / self.mu
        goal = min(self.timid, max(ahead**3, 1e-3)) * self.mu
        change = self._newton(goal, reach * reach)
        self.iterations = self.system.iterations
        length = self._length(*change)
        d_weights, d_logs = self._limit(length, *change)
        self.stuck = length < SHORTEST
        self.timid = max(self.boldest, 0.5 * self.timid) if length > 0.95 else min(TIMID, 1.5 * self.timid)
        self.weights = self.weights + length * d_weights
        self.totals = self.totals * np.exp(length * d_logs)
        advance(length, NEARLY, self.layout.labels, *self._rows, *self.change)
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
        some = int(HELD * len(steps)), int(HELD * len(rates))
        rows = np.partition(steps, some[0])[some[0]]
        cells = 1.0 / max(1e-300, -np.partition(-rates, some[1])[some[1]])
        return float(min(1.0, NEARLY * rows, cells))

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
