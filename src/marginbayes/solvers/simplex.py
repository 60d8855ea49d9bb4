"""The simplex: points that are not negative and sum to one; what is nearest, and what is least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

__all__ = ["best_pull", "nearest_in_level_set", "project_on_simplex"]

Floats = NDArray[np.float64]


def project_on_simplex(point: Floats) -> Floats:
    """The nearest point that is not negative and sums to one."""
    falling = np.sort(point)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(point) + 1)
    shift = excess[np.flatnonzero(falling > excess)[-1]]
    return np.asarray(np.maximum(point - shift, 0.0))


def best_pull(slope: Floats, weight: float) -> Floats:
    """The vector q of sum zero, no longer than `weight`, for which min_j (slope + q)_j is greatest.

    That value is the least one of ``slope . x + weight * ||x - 1/n||`` over the simplex; for any other such q it is a
    bound below it, since q . x = q . (x - 1/n) <= weight * ||x - 1/n||.
    """
    centre = np.full(len(slope), 1.0 / len(slope))
    free = slope - slope.mean()
    if np.linalg.norm(free) <= weight:
        return np.asarray(-free)
    if weight == 0:
        return np.zeros(len(slope))
    # The minimiser is the projection of centre - t * slope for the t at which its distance from the centre, over t, is
    # the weight; that ratio falls as t grows.
    low, high = 0.0, 2.0 / weight
    for _ in range(100):
        t = 0.5 * (low + high)
        way = project_on_simplex(centre - t * free) - centre
        low, high = (t, high) if np.linalg.norm(way) > weight * t else (low, t)
    length = np.linalg.norm(way)
    return np.asarray(weight / length * way)


def nearest_in_level_set(centre: Floats, slopes: Floats, limits: Floats) -> Floats:
    """The point of the simplex nearest to `centre` with ``slopes @ x <= limits``, to some digits.

    Evaluating the function elsewhere than at the exact projection costs a little progress and nothing else.
    """
    # On the simplex a constant added to a slope only shifts its limit: without it more digits are left.
    level = slopes.mean(axis=1)
    lengths = np.maximum(np.linalg.norm(slopes - level[:, None], axis=1), 1e-300)
    rows = np.vstack([(slopes - level[:, None]) / lengths[:, None], -np.eye(len(centre))])
    sides = np.concatenate([(limits - level) / lengths, np.zeros(len(centre))]) - rows @ centre
    # The centre has to move at least as far as it violates an inequality: that is the unit of length.
    unit = -float(sides.min())
    if unit <= 0:
        return centre
    return project_on_simplex(centre + unit * _shortest_move(rows, sides / unit))


@dataclass(frozen=True)
class _Iterate:
    """A point with positive slacks and multipliers on the way to the shortest x with rows @ x <= sides, sum(x) = 0."""

    rows: Floats
    sides: Floats
    x: Floats
    shift: float  # multiplier of sum(x) = 0
    slack: Floats
    dual: Floats

    @property
    def stationary(self) -> Floats:
        return self.x + self.rows.T @ self.dual + self.shift

    @property
    def infeasible(self) -> Floats:
        return self.rows @ self.x + self.slack - self.sides

    @property
    def gap(self) -> float:
        return float((self.slack * self.dual).mean())

    def solved(self, tol: float) -> bool:
        return self.gap < tol and max(np.abs(self.infeasible).max(), np.abs(self.stationary).max()) < tol

    def factor(self) -> Any:
        return cho_factor(np.eye(len(self.x)) + (self.rows.T * (self.dual / self.slack)) @ self.rows)

    def direction(self, factor: Any, target: Floats) -> tuple[Floats, float, Floats, Floats]:
        """Newton's step towards slack * dual = target."""
        weight, wanted = self.dual / self.slack, (target - self.slack * self.dual) / self.slack
        free = cho_solve(factor, -self.stationary - self.rows.T @ (weight * self.infeasible + wanted))
        ones = cho_solve(factor, np.ones(len(self.x)))
        turn = float(free.sum() + self.x.sum()) / float(ones.sum())
        opened = -self.infeasible - self.rows @ (free - turn * ones)
        return free - turn * ones, turn, opened, wanted - weight * opened

    def moved(self, step: tuple[Floats, float, Floats, Floats], share: float) -> _Iterate:
        """The iterate after the longest step, at most one, that keeps slacks and multipliers positive."""
        move, turn, opened, lifted = step
        reach = share * min(_longest(self.slack, opened), _longest(self.dual, lifted))
        return _Iterate(
            self.rows,
            self.sides,
            self.x + reach * move,
            self.shift + reach * turn,
            self.slack + reach * opened,
            self.dual + reach * lifted,
        )


def _shortest_move(rows: Floats, sides: Floats, steps: int = 50, tol: float = 1e-9) -> Floats:
    """The shortest x that sums to zero with ``rows @ x <= sides``, by Mehrotra's interior point method."""
    at = _Iterate(rows, sides, np.zeros(rows.shape[1]), 0.0, np.maximum(sides, 1.0), np.ones(len(sides)))
    for _ in range(steps):
        # Multipliers without end: but for rounding no point satisfies all inequalities.
        if at.solved(tol) or at.dual.max() > 1e20:
            break
        try:
            factor = at.factor()
        except LinAlgError:  # no more digits in it
            break
        predicted = at.direction(factor, np.zeros_like(sides))
        centring = (at.moved(predicted, 1.0).gap / at.gap) ** 3 * at.gap
        at = at.moved(at.direction(factor, centring - predicted[2] * predicted[3]), 0.995)
    return at.x


def _longest(value: Floats, move: Floats) -> float:
    """The longest step, at most one, that keeps all values positive."""
    falling = move < 0
    return float(min(1.0, (-value[falling] / move[falling]).min(initial=np.inf)))
