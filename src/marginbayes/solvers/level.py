"""The level method: a convex function over the simplex, minimised between an objective and a proved bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from marginbayes.solvers.interrupt import kernel_interrupts
from marginbayes.solvers.moment import Moment
from marginbayes.solvers.simplex import best_pull, nearest_in_level_set

__all__ = ["LevelResult", "minimise_on_simplex"]

Floats = NDArray[np.float64]
Oracle = Callable[[Floats], tuple[float, Floats]]

# The level lies at this share between bound and objective (Lemarechal, Nemirovskii & Nesterov 1995).
LEVEL = 1.0 / (2.0 + np.sqrt(2.0))
# Gaps below this, relative to the value, are rounding.
ROUNDING = 1e-12
# Corners may be far above the optimum, so the linear program has to see small differences.
PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class LevelResult:
    """The best point, a bound below the objective of every point, and the cuts that prove it.

    Parameters
    ----------
    point : array of shape (n,)
        Not negative, sums to one.
    value, bound : float
    status : str
        ``"optimal"``, ``"iteration limit"``, ``"time limit"`` or ``"interrupted"``.
    points, multipliers : arrays
        The bound is the least value over the simplex of the sum of tangents at these points, with these multipliers
        (positive, sum one), plus the pull.
    trace : tuple of (seconds, value, bound)
    """

    point: Floats
    value: float
    bound: float
    status: str
    points: Floats
    multipliers: Floats
    trace: tuple[tuple[float, float, float], ...]


def minimise_on_simplex(
    oracle: Oracle,
    n: int,
    *,
    pull: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 1000,
    time_limit: float | None = None,
    callback: Callable[[Moment], object] | None = None,
) -> LevelResult:
    """Least value of ``f(x) + pull * ||x - 1/n||`` over the simplex.

    Each evaluation adds a tangent of f. The least value of all tangents together with the pull is a bound; the next
    point is the one nearest to the best so far at which the tangents promise a value some way below the best. Centre
    and corners of the simplex come first, so the result is never worse than any of them.

    Parameters
    ----------
    oracle : callable
        From a point of the simplex to the value of a convex f there and one of its subgradients.
    n : int
        Number of coordinates.
    pull : float, default=0.0
        Weight of the distance from the centre.
    tol : float, default=1e-6
        Gap at which the result is called optimal, relative to max(1, |value|).
    max_iter : int, default=1000
        Most evaluations after the first n + 1.
    time_limit : float or None, default=None
        Seconds.
    callback : callable or None
        Is given a `Moment` after each evaluation.
    """
    bundle = _Bundle(oracle, n, pull)
    start, trace, status = time.perf_counter(), [], "iteration limit"
    try:
        for call in range(max_iter + n + 1):
            with kernel_interrupts():
                bundle.evaluate(bundle.suggest())
            seconds = time.perf_counter() - start
            trace.append((seconds, bundle.value, bundle.bound))
            if callback is not None:
                callback(Moment(*trace[-1], f"{call + 1} evaluations"))
            if bundle.value - bundle.bound <= max(tol, ROUNDING) * max(1.0, abs(bundle.value)):
                status = "optimal"
                break
            if time_limit is not None and seconds > time_limit:
                status = "time limit"
                break
    except KeyboardInterrupt:
        if not bundle.best.size:
            raise
        status = "interrupted"
    used = np.flatnonzero(bundle.multipliers > 0)
    points = np.array(bundle.points)[used]
    value, bound = bundle.value, bundle.bound
    return LevelResult(bundle.best, value, bound, status, points, bundle.multipliers[used], tuple(trace))


@dataclass
class _Bundle:
    """Tangents so far, and the best value and bound."""

    oracle: Oracle
    n: int
    pull: float
    points: list[Floats] = field(default_factory=list)
    offsets: list[float] = field(default_factory=list)  # tangent k is offsets[k] + slopes[k] . x
    slopes: list[Floats] = field(default_factory=list)
    pulls: list[Floats] = field(default_factory=list)  # slopes of the pull at the points
    best: Floats = field(default_factory=lambda: np.empty(0))
    value: float = np.inf
    bound: float = -np.inf
    multipliers: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def centre(self) -> Floats:
        return np.full(self.n, 1.0 / self.n)

    def suggest(self) -> Floats:
        """Where to evaluate next: the centre, the corners, then points of the level set."""
        k = len(self.points)
        if k <= self.n:
            return self.centre if k == 0 else np.eye(self.n)[k - 1]
        # Of the pull only its tangents are in the level set: what they promise may be too good, never too bad.
        level = self.bound + LEVEL * (self.value - self.bound)
        return nearest_in_level_set(self.best, self._steepness(), level - np.array(self.offsets))

    def _steepness(self) -> Floats:
        # The pull is at least q . (x - centre) = q . x: its slopes q sum to zero.
        return np.array(self.slopes) + np.array(self.pulls)

    def evaluate(self, point: Floats) -> None:
        """Add the tangent at a point, and improve value and bound."""
        value, slope = self.oracle(point)
        distance = float(np.linalg.norm(point - self.centre))
        self.points.append(point)
        self.offsets.append(value - float(slope @ point))
        self.slopes.append(slope)
        self.pulls.append(self.pull / distance * (point - self.centre) if distance > 0 else np.zeros(self.n))
        if value + self.pull * distance < self.value:
            self.best, self.value = point, value + self.pull * distance
        self._improve_bound()

    def _improve_bound(self) -> None:
        """Multipliers by linear programming; any that are not negative and sum to one prove a bound."""
        slopes, offsets = np.array(self.slopes), np.array(self.offsets)
        multipliers = _best_multipliers(self._steepness(), offsets)
        slope = multipliers @ slopes
        bound = float(multipliers @ offsets + (slope + best_pull(slope, self.pull)).min())
        self.multipliers = np.append(self.multipliers, 0.0)
        if bound > self.bound:
            self.bound, self.multipliers = bound, multipliers


def _best_multipliers(slopes: Floats, offsets: Floats) -> Floats:
    """Weights of the tangents whose weighted sum has the greatest least value over the simplex.

    The least value over the simplex of a tangent is its least value at a corner, so this is a matrix game.
    """
    corners = slopes + offsets[:, None]
    low = corners.max(axis=0).min()
    scale = max(1e-300, float(np.abs(corners - low).max()))
    k, n = corners.shape
    # Greatest v with v <= multipliers . corners[:, j] for every corner j.
    table = np.hstack([-(corners.T - low) / scale, np.ones((n, 1))])
    sums = np.append(np.ones(k), 0.0)[None, :]
    cost = np.append(np.zeros(k), -1.0)
    limits = [(0, None)] * k + [(None, None)]
    for options in (PRECISE, {}):
        found = linprog(cost, table, np.zeros(n), sums, [1.0], limits, method="highs", options=options)
        if found.x is not None:
            weights = np.maximum(found.x[:k], 0.0)
            return np.asarray(weights / weights.sum())
    # There is a solution, but rounding hides it from the solver: the best of the tangents proves a bound as well.
    return np.asarray(np.eye(k)[corners.min(axis=1).argmax()])
