"""Multiclass margin with a squared norm, by dual coordinate descent with a running bound.

    minimise over U, s:  |U|^2 / 2 + penalty s^2 / 2 + sum_n cap_n max(0, 1 - margin_n(U + s base))

Each row's multipliers are solved for exactly (Crammer & Singer 2001). With the scale s held fixed this is a support
vector machine; over s a cutting-plane method in one dimension runs on top, every solution being one line below the
optimal value as a function of s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from marginbayes.solvers.interrupt import kernel_interrupts
from marginbayes.solvers.moment import Moment

__all__ = ["MarginRows", "MarginSolution", "solve_margin"]

Floats = NDArray[np.float64]
Callback = Callable[[Moment], object] | None

# Sweeps between two computations of the gap: it costs a sweep itself.
CHECK = 10
# A scale near zero may go four times this far beyond it in a step.
LEAST_REACH = 0.1


@dataclass(frozen=True)
class MarginRows:
    """Rows as the cells they use (-1: none) in each family, with label and weight; `shape` is cells x classes."""

    cells: NDArray[np.int32]
    labels: NDArray[np.int64]
    row_weights: Floats
    shape: tuple[int, int]

    def __len__(self) -> int:
        return len(self.labels)

    def scores(self, weights: Floats) -> Floats:
        """Score of every class in every row."""
        from marginbayes.kernels.margins import class_scores

        out = np.empty((len(self), self.shape[1]))
        class_scores(self.cells, weights, out)
        return out

    def hinges(self, weights: Floats) -> float:
        """Weighted sum over the rows of what their margin to the best rival lacks of 1."""
        from marginbayes.kernels.markov import hinge_sum

        none = np.zeros((len(self), self.shape[1]))
        return float(hinge_sum(self.cells, self.labels, self.row_weights, none, 0.0, 1.0, weights))

    def least_margin(self, weights: Floats) -> float:
        """Smallest margin of a row to its best rival; infinite without one."""
        from marginbayes.kernels.margins import rival_margins

        margins = np.empty(len(self))
        rival_margins(self.scores(weights), self.labels, margins)
        return float(margins.min())

    def gathered(self, multipliers: Floats) -> Floats:
        """Sum over the rows of their cells times their multipliers."""
        from marginbayes.kernels.margins import add_coefficients

        out = np.zeros(self.shape)
        add_coefficients(self.cells, multipliers, out)
        return out


@dataclass(frozen=True)
class MarginSolution:
    """Weights and scale, the multipliers that prove the bound, and the way there."""

    weights: Floats
    scale: float
    multipliers: Floats
    objective: float
    bound: float
    status: str
    seconds: float
    trace: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class Limits:
    """When to stop, and whom to tell."""

    tol: float
    max_sweeps: int
    callback: Callback = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started


def solve_margin(
    rows: MarginRows,
    caps: Floats,
    base: Floats | None = None,
    penalty: float = 0.0,
    *,
    scale: float | None = None,
    start: MarginSolution | None = None,
    tol: float = 1e-6,
    max_sweeps: int = 10_000,
    seed: int = 0,
    callback: Callback = None,
) -> MarginSolution:
    """Weights of a small objective with a bound that proves how small; Ctrl-C keeps the best so far.

    Parameters
    ----------
    rows : MarginRows
    caps : array of shape (rows,)
        What a unit of missing margin costs in each row (C times its weight).
    base : array of shape (rows, classes), default=None
        Scores whose multiple s is added; None leaves s out.
    penalty : float
        Of s: positive where s is a variable, 0 where it is given.
    scale : float, default=None
        s, where it is no variable.
    start : MarginSolution, default=None
        Solution for the same rows with other caps, whose multipliers and scale come first; that of others is not used.
    tol : float
        Wanted gap, relative to max(1, objective).
    """
    limits = Limits(tol, max_sweeps, callback)
    search = _Search(rows, caps, np.zeros((len(rows), rows.shape[1])) if base is None else base, penalty, limits, seed)
    if start is not None and start.multipliers.shape == search.multipliers.shape:
        search.resume(start)
    status = "interrupted"
    try:
        with kernel_interrupts():
            if base is None or scale is not None:
                search.scale = scale or 0.0
                status = search.descend(tol)
            else:
                status = search.over_scales()
    except KeyboardInterrupt:
        search.limits = replace(limits, callback=None)
        search.note()
    return search.solution(status)


@dataclass(frozen=True)
class _Cut:
    """height - slope * s lies below the optimal value at every s; from these multipliers."""

    height: float
    slope: float
    multipliers: Floats


class _Search:
    """The state of the descent: multipliers and weights at the present scale, best objective and bound so far."""

    def __init__(self, rows: MarginRows, caps: Floats, base: Floats, penalty: float, limits: Limits, seed: int) -> None:
        self.rows, self.caps, self.base, self.penalty, self.limits = rows, caps, base, penalty, limits
        self.random = np.random.default_rng(seed)
        self.multipliers = np.zeros((len(rows), rows.shape[1]))
        self.weights = np.zeros(rows.shape)
        self.asleep, self.patience = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int32)
        self.scale, self.sweeps = 0.0, 0
        self.best = MarginSolution(self.weights, 0.0, self.multipliers, np.inf, -np.inf, "", 0.0, ())
        self.trace: list[tuple[float, float, float]] = []

    def resume(self, start: MarginSolution) -> None:
        """Take over multipliers, as far as the caps allow, and the scale."""
        self.multipliers = self._capped(start.multipliers)
        self.weights = self.rows.gathered(self.multipliers)
        self.scale = start.scale

    def _capped(self, multipliers: Floats) -> Floats:
        """A copy in which no row's rivals have more than its cap, be it by rounding."""
        every = np.arange(len(self.rows))
        out = np.minimum(multipliers, 0.0)
        out[every, self.rows.labels] = 0.0
        taken = -out.sum(axis=1)
        out *= (self.caps / np.maximum(taken, self.caps))[:, None]
        out[every, self.rows.labels] = -out.sum(axis=1)
        return out

    # -- a fixed scale

    def descend(self, tol: float) -> str:
        """Sweep until the gap at this scale is below tol, relative to the objective."""
        from marginbayes.kernels.markov import sweep

        self.asleep[:], self.patience[:] = 0, 0
        fixed = self.rows.cells, self.rows.labels, self.caps, self.base
        while self.sweeps < self.limits.max_sweeps:
            count = min(CHECK, self.limits.max_sweeps - self.sweeps)
            for _ in range(count):
                order = self.random.permutation(len(self.rows))
                sweep(*fixed, self.scale, order, self.multipliers, self.weights, self.asleep, self.patience)
            self.sweeps += count
            objective, bound = self.note()
            if objective - bound <= tol * max(1.0, abs(objective)):
                return "optimal"
        return "iteration limit"

    def note(self) -> tuple[float, float]:
        """Objective and bound at the present scale; the best of all scales are kept and reported."""
        objective = self.objective(self.weights, self.scale)
        cut = self.cut()
        fixed = self.penalty * self.scale**2 / 2
        if objective < self.best.objective:
            self.best = replace(self.best, weights=self.weights.copy(), scale=self.scale, objective=objective)
        self.raise_bound(cut)
        moment = Moment(self.limits.seconds, self.best.objective, self.best.bound, f"{self.sweeps} sweeps")
        self.trace.append((moment.seconds, moment.objective, moment.bound))
        if self.limits.callback is not None:
            self.limits.callback(moment)
        return objective, cut.height - cut.slope * self.scale + fixed

    def objective(self, weights: Floats, scale: float) -> float:
        """Value of the problem."""
        from marginbayes.kernels.markov import hinge_sum

        rows = self.rows
        loss = hinge_sum(rows.cells, rows.labels, self.caps, self.base, scale, 1.0, weights)
        return float(loss) + float(np.vdot(weights, weights)) / 2 + self.penalty * scale**2 / 2

    def cut(self) -> _Cut:
        """The line below the optimal value that the present multipliers give."""
        own = self.multipliers[np.arange(len(self.rows)), self.rows.labels].sum()
        height = float(own) - float(np.vdot(self.weights, self.weights)) / 2
        return _Cut(height, float(np.vdot(self.multipliers, self.base)), self.multipliers)

    def raise_bound(self, cut: _Cut) -> None:
        """Keep the multipliers if what they prove for all scales is more than what was proved before."""
        proved = self.proved(cut.height, cut.slope)
        if proved > self.best.bound:
            self.best = replace(self.best, bound=proved, multipliers=self._capped(cut.multipliers))

    def proved(self, height: float, slope: float) -> float:
        """What a line says about every scale there is: its least value, penalty included."""
        return height - slope * self.scale if self.penalty == 0 else height - slope**2 / (2 * self.penalty)

    # -- all scales

    def over_scales(self) -> str:
        """Cutting planes over the scale."""
        cuts: list[_Cut] = []
        inner = 1e-2
        self.scale = self.scale or self.first_scale()
        while True:
            status = self.descend(inner)
            cuts.append(replace(self.cut(), multipliers=self.multipliers.copy()))
            cuts, share, scale = _lowest(cuts, self.penalty)
            self.mix(cuts, share)
            self.scale = _near(scale, self.best.scale)
            gap = (self.best.objective - self.best.bound) / max(1.0, abs(self.best.objective))
            if gap <= self.limits.tol:
                return "optimal"
            if status != "optimal":
                return status
            inner = max(self.limits.tol / 4, min(inner, gap / 4))

    def first_scale(self) -> float:
        """The best scale while the weights are zero."""
        zero = np.zeros(self.rows.shape)
        found = minimize_scalar(lambda power: self.objective(zero, 10.0**power), bounds=(-4.0, 3.0), method="bounded")
        return float(10.0**found.x)

    def mix(self, cuts: list[_Cut], share: float) -> None:
        """Bound, and perhaps a better point, from the mixture of the two lines that meet where the model is lowest."""
        mixed = share * cuts[0].multipliers + (1 - share) * cuts[-1].multipliers
        weights = self.rows.gathered(mixed)
        own = float(mixed[np.arange(len(self.rows)), self.rows.labels].sum())
        height, slope = own - float(np.vdot(weights, weights)) / 2, float(np.vdot(mixed, self.base))
        self.raise_bound(_Cut(height, slope, mixed))
        objective = self.objective(weights, slope / self.penalty)
        if objective < self.best.objective:
            self.best = replace(self.best, weights=weights, scale=slope / self.penalty, objective=objective)

    def solution(self, status: str) -> MarginSolution:
        """What was found, with objective and bound of exactly the arrays that are returned."""
        best = self.best
        own = float(best.multipliers[np.arange(len(self.rows)), self.rows.labels].sum())
        gathered = self.rows.gathered(best.multipliers)
        slope = float(np.vdot(best.multipliers, self.base))
        bound = self.proved(own - float(np.vdot(gathered, gathered)) / 2, slope)
        return replace(best, bound=bound, status=status, seconds=self.limits.seconds, trace=tuple(self.trace))


def _near(wanted: float, present: float) -> float:
    """The wanted scale, or as near to it as one step goes: four times the present one, or a quarter of it.

    Few lines are a poor model far away, where a solution would be a bad start for those to come. A scale may have
    either sign; on the way from one to the other zero is in reach.
    """
    if wanted * present > 0:
        return float(np.copysign(np.clip(abs(wanted), abs(present) / 4, abs(present) * 4), wanted))
    reach = 4 * max(abs(present), LEAST_REACH)
    return float(np.clip(wanted, -reach, reach))


def _lowest(cuts: list[_Cut], penalty: float) -> tuple[list[_Cut], float, float]:
    """The lines (one or two) that meet where the largest of all, plus the penalty, is lowest; first's share; the scale.

    What a mixture of two lines proves is concave in the share; the best pair of all is taken.
    """
    pairs = list(combinations_with_replacement(cuts, 2))
    heights = [_height(a, b, penalty) for a, b in pairs]
    at = max(range(len(pairs)), key=lambda k: heights[k][0])
    (first, second), share = pairs[at], heights[at][1]
    slope = share * first.slope + (1 - share) * second.slope
    kept = [first] if share == 1.0 else [second] if share == 0.0 else [first, second]
    return kept, share if len(kept) == 2 else 1.0, slope / penalty


def _height(a: _Cut, b: _Cut, penalty: float) -> tuple[float, float]:
    """What the best mixture of two lines proves for all scales, and the share of the first in it."""
    rise, turn = a.height - b.height, a.slope - b.slope
    share = 0.5 if turn == 0 else (rise * penalty / turn - b.slope) / turn
    share = min(1.0, max(0.0, share))
    slope = share * a.slope + (1 - share) * b.slope
    return share * a.height + (1 - share) * b.height - slope**2 / (2 * penalty), share
