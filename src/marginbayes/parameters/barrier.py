"""The published barrier path: damped Newton steps on problem (18) of Guo, Wilkinson & Schuurmans (2005).

    1/(2 gamma^2) - mu log gamma - mu sum_rows-of-tables log(1 - sum exp w)
    + sum_n weight_n [B eps_n - mu log eps_n - mu sum_c log(margin_nc(w) - gamma + eps_n)]

This function has no minimiser: an entry of a table that no row of its class uses sends it to minus infinity, for every
mu > 0, and lowering all weights together always lowers it. Where the path ends is therefore set by its start and by the
number of steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.parameters.barrier_system import BarrierSystem, Curvature
from marginbayes.solvers import Moment
from marginbayes.solvers.coordinate import MarginRows
from marginbayes.solvers.interior import PairProblem
from marginbayes.solvers.interrupt import kernel_interrupts

__all__ = ["BarrierPath", "barrier_path"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Newton steps for one mu end when they promise less than this share of the value.
CLOSE = 1e-9
ARMIJO = 1e-2
# The path is left when gamma exceeds this.
RUNAWAY = 1e4


@dataclass(frozen=True)
class BarrierPath:
    """Where the path ended, the objective (14) there, and the same after each step."""

    weights: Floats
    gamma: float
    objective: float
    values: tuple[float, ...]
    status: str
    seconds: float
    trace: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True)
class _Point:
    weights: Floats
    gamma: float
    slack: Floats

    def moved(self, step: _Point, share: float) -> _Point:
        return _Point(
            self.weights + share * step.weights, self.gamma + share * step.gamma, self.slack + share * step.slack
        )


def barrier_path(
    rows: MarginRows,
    groups: Integers,
    start: Floats,
    cost: float,
    outer_steps: int,
    inner_steps: int,
    max_bytes: float,
    callback: Callable[[Moment], object] | None = None,
) -> BarrierPath:
    """End of the path that starts at these weights, with mu = 1, 1/10, ...; Ctrl-C ends it early.

    Parameters
    ----------
    groups : array of shape (cells, classes)
        Number of the row of a table that each weight belongs to.
    start : array of shape (cells, classes)
        Weights with sums of exponentials below one.
    cost : float
        B.
    """
    return _Path(rows, groups, cost, max_bytes, callback).run(start, outer_steps, inner_steps)


class _Path:
    def __init__(
        self,
        rows: MarginRows,
        groups: Integers,
        cost: float,
        max_bytes: float,
        callback: Callable[[Moment], object] | None,
    ) -> None:
        self.began = time.perf_counter()
        self.cost, self.callback, self.shape = cost, callback, rows.shape
        rivals = np.tile(np.arange(rows.shape[1]), (len(rows), 1))
        rivals = rivals[rivals != rows.labels[:, None]]
        begin = np.arange(len(rows) + 1) * (rows.shape[1] - 1)
        self.pairs = PairProblem(rows.cells, rows.labels, rows.row_weights, begin, rivals, rows.shape)
        self.row_of = self.pairs.row_of
        self.groups = groups.reshape(-1)
        self.system = BarrierSystem(self.pairs, self.groups, max_bytes)

    def run(self, start: Floats, outer_steps: int, inner_steps: int) -> BarrierPath:
        """All values of mu in turn."""
        slack = np.maximum(0.0, 1.0 - self._least(start)) + 1.0
        point = _Point(start, 1.0, slack)
        values: list[float] = []
        trace: list[tuple[float, float, float]] = []
        status = "interrupted"
        try:
            for k in range(outer_steps):
                close, steps = False, 0
                while not close and steps < inner_steps and point.gamma <= RUNAWAY:
                    with kernel_interrupts():
                        point, close = self._newton(point, 10.0**-k)
                    steps += 1
                    values.append(self.objective(point))
                    trace.append(self._note(values, f"mu = 1e-{k}"))
            status = f"end of the path of {outer_steps} values of mu, {len(values)} Newton steps"
            if point.gamma > RUNAWAY:
                status = f"gamma ran away, as it does for separable rows; stopped after {len(values)} Newton steps"
        except KeyboardInterrupt:
            pass
        seconds = time.perf_counter() - self.began
        return BarrierPath(
            point.weights, point.gamma, self.objective(point), tuple(values), status, seconds, tuple(trace)
        )

    def objective(self, point: _Point) -> float:
        """Value of (14) at these weights and this gamma, the slacks as small as they may be."""
        missed = np.maximum(0.0, point.gamma - self._least(point.weights))
        return float(1 / (2 * point.gamma**2) + self.cost * (self.pairs.row_weights @ missed))

    def value(self, point: _Point, mu: float) -> float:
        """Value of (18), infinite outside its domain."""
        room = self.pairs.margins(point.weights) - point.gamma + point.slack[self.row_of]
        left = 1.0 - self._sums(np.exp(np.minimum(1.0, point.weights.reshape(-1))))  # above 0 it is outside anyway
        if point.gamma <= 0 or min(room.min(initial=1.0), point.slack.min(), left.min()) <= 0:
            return np.inf
        logs = np.log(point.slack) + np.bincount(self.row_of, np.log(room), minlength=len(point.slack))
        rows = self.pairs.row_weights @ (self.cost * point.slack - mu * logs)
        return float(1 / (2 * point.gamma**2) - mu * np.log(point.gamma) - mu * np.log(left).sum() + rows)

    def _least(self, weights: Floats) -> Floats:
        """Least margin of each row; infinite without a rival."""
        margins = self.pairs.margins(weights).reshape(len(self.pairs.labels), -1)
        return np.asarray(margins.min(axis=1, initial=np.inf))

    def _sums(self, chances: Floats) -> Floats:
        return np.bincount(self.groups, chances).astype(np.float64)

    # -- one step

    def _newton(self, point: _Point, mu: float) -> tuple[_Point, bool]:
        """The next point, and whether the step promised next to nothing."""
        step, promise = self._direction(point, mu)
        value = self.value(point, mu)
        share = self._room(point, step)
        while share > 1e-12:
            ahead = point.moved(step, share)
            if self.value(ahead, mu) <= value - ARMIJO * share * promise:
                return ahead, promise <= CLOSE * max(1.0, abs(value))
            share /= 2
        return point, True

    def _room(self, point: _Point, step: _Point) -> float:
        """Longest share of a step for which gamma and slacks stay positive, 1 at most."""
        at, by = np.append(point.slack, point.gamma), np.append(step.slack, step.gamma)
        falling = by < -1e-9 * at
        return float(min(1.0, 0.99 * (-at[falling] / by[falling]).min(initial=np.inf)))

    def _direction(self, point: _Point, mu: float) -> tuple[_Point, float]:
        """Newton step in weights, gamma and slacks, the slacks eliminated, and the decrease that it promises."""
        pairs, row_of = self.pairs, self.row_of
        room = pairs.margins(point.weights) - point.gamma + point.slack[row_of]
        weight = pairs.row_weights[row_of]
        pull, curvature = -mu * weight / room, mu * weight / room**2
        slack_curvature = mu * pairs.row_weights / point.slack**2
        total = slack_curvature + self._row_sums(curvature)
        slack_pull = pairs.row_weights * (self.cost - mu / point.slack) + self._row_sums(pull)
        reduced = pull - curvature * (slack_pull / total)[row_of]
        coupling = curvature * (slack_curvature / total)[row_of]

        chances = np.exp(point.weights.reshape(-1))
        odds = chances / (1.0 - self._sums(chances))[self.groups]
        right = -(pairs.gathered(reduced).reshape(-1) + mu * odds)
        gamma_right = point.gamma**-3 + mu / point.gamma + float(reduced.sum())
        gamma_curvature = 3 * point.gamma**-4 + mu / point.gamma**2 + float(coupling.sum())
        bend = -pairs.gathered(coupling).reshape(-1)

        at = Curvature(curvature, slack_curvature, total, odds, mu)
        found = self.system.solve(at, np.column_stack([right, bend]))
        gamma = (gamma_right - bend @ found[:, 0]) / (gamma_curvature - bend @ found[:, 1])
        weights = (found[:, 0] - gamma * found[:, 1]).reshape(self.shape)
        shift = pairs.margins(weights) - gamma
        slack = -(slack_pull + self._row_sums(curvature * shift)) / total
        slope = pull @ shift + slack_pull @ slack
        slope += mu * odds @ weights.reshape(-1)
        slope += -(point.gamma**-3 + mu / point.gamma) * gamma
        return _Point(weights, float(gamma), slack), float(-slope)

    def _row_sums(self, values: Floats) -> Floats:
        return np.bincount(self.row_of, values, minlength=len(self.pairs.labels)).astype(np.float64)

    def _note(self, values: list[float], text: str) -> tuple[float, float, float]:
        seconds, best = time.perf_counter() - self.began, min(values)
        if self.callback is not None:
            self.callback(Moment(seconds, best, 0.0, text))
        return seconds, best, 0.0
