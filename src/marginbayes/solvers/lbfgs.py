"""Limited-memory BFGS for smooth functions without constraints, with a line search for the strong Wolfe conditions.

SciPy's solver keeps bounds, and spends most of a small problem's time in many threads of the matrix library; this one
adds vectors only.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.interrupt import kernel_interrupts

__all__ = ["Minimum", "lbfgs", "lbfgs_or_best"]

Floats = NDArray[np.float64]
Objective = Callable[[Floats], tuple[float, Floats]]

# A step must lower the value by this share of what the slope promises, and leave at most that share of the slope.
DECREASE, CURVATURE = 1e-4, 0.9
# What rounding may do to a value, relative to its size: below it only slopes are believed (Hager & Zhang 2005).
ROUNDING = 1e-14
LONGEST_SEARCH, SHORTEST = 40, 1e-12
# Steps that must together gain something.
PATIENCE = 10


@dataclass(frozen=True)
class Minimum:
    """The last point, its value, the number of steps, and why it ended.

    The status is ``"converged"``, ``"little gain"`` where ten steps gained less than was asked for, ``"iteration
    limit"``, or ``"no lower value"`` where the line search finds none: as low as rounding allows. From `lbfgs_or_best`
    it may be ``"interrupted"``.
    """

    point: Floats
    value: float
    iterations: int
    status: str


def lbfgs(
    objective: Objective,
    start: Floats,
    *,
    tol: float = 1e-6,
    least_gain: float = 0.0,
    max_iter: int = 500,
    memory: int = 20,
    precondition: Callable[[Floats], Floats] | None = None,
    watch: Callable[[Floats], object] | None = None,
) -> Minimum:
    """A point at which no component of the gradient exceeds `tol`, if it is reached.

    Parameters
    ----------
    objective : callable
        From a point to the value and the gradient.
    start : array
    tol : float, default=1e-6
    least_gain : float, default=0.0
        It also ends when ten steps together lower the value by less.
    max_iter : int, default=500
    memory : int, default=20
        Number of steps whose change of the gradient is remembered.
    precondition : callable, default=None
        A product with a symmetric positive definite matrix, about the inverse of the second derivative.
    watch : callable, default=None
        Given the point after each step.

    Examples
    --------
    >>> found = lbfgs(lambda x: (float(((x - 3.0) ** 2).sum()), 2.0 * (x - 3.0)), np.zeros(2))
    >>> found.point, found.status
    (array([3., 3.]), 'converged')
    """
    steered = precondition or _unchanged
    at = _Place(np.array(start, np.float64), *objective(start))
    at = at._replace(steered=steered(at.gradient))
    pairs: deque[_Pair] = deque(maxlen=memory)
    before: deque[float] = deque([at.value], maxlen=PATIENCE + 1)
    for done in range(max_iter):
        if _largest(at.gradient) <= tol:
            return Minimum(at.point, at.value, done, "converged")
        new = _search(objective, at, -_direction(at, pairs), 1.0 if pairs else _first_step(at))
        if new is None and pairs:
            pairs.clear()  # once more without memory
            new = _search(objective, at, -at.steered, _first_step(at))
        if new is None:
            return Minimum(at.point, at.value, done, "no lower value")
        new = new._replace(steered=steered(new.gradient))
        _remember(pairs, at, new)
        at = new
        before.append(at.value)
        if watch is not None:
            watch(at.point)
        if len(before) > PATIENCE and before[0] - at.value < least_gain:
            return Minimum(at.point, at.value, done + 1, "little gain")
    status = "converged" if _largest(at.gradient) <= tol else "iteration limit"
    return Minimum(at.point, at.value, max_iter, status)


def lbfgs_or_best(objective: Objective, start: Floats, **options: Any) -> Minimum:
    """The same, but Ctrl-C ends it with the best point so far, and the status ``"interrupted"``."""
    best, steps = Minimum(np.array(start, np.float64), math.inf, 0, "interrupted"), 0

    def watched(point: Floats) -> tuple[float, Floats]:
        nonlocal best
        value, gradient = objective(point)
        if value < best.value:
            best = Minimum(point.copy(), value, steps, "interrupted")
        return value, gradient

    def count(_: Floats) -> None:
        nonlocal steps
        steps += 1

    try:
        with kernel_interrupts():
            return lbfgs(watched, start, watch=count, **options)
    except KeyboardInterrupt:
        return best


class _Place(NamedTuple):
    point: Floats
    value: float
    gradient: Floats
    steered: Floats = np.zeros(0)  # the gradient, preconditioned


class _Pair(NamedTuple):
    """A step, the change of the gradient (also preconditioned), and one over their product."""

    moved: Floats
    changed: Floats
    steered: Floats
    inverse: float


class _Trial(NamedTuple):
    """A step along a direction: its length, the value there, and the slope along the direction."""

    step: float
    value: float
    slope: float


def _dot(a: Floats, b: Floats) -> float:
    return float(np.einsum("i,i", a, b))  # without the matrix library and its threads


def _largest(a: Floats) -> float:
    return float(np.abs(a).max(initial=0.0))


def _unchanged(gradient: Floats) -> Floats:
    return gradient


def _first_step(at: _Place) -> float:
    return min(1.0, 1.0 / math.sqrt(_dot(at.gradient, at.steered)))


def _remember(pairs: deque[_Pair], old: _Place, new: _Place) -> None:
    moved, changed = new.point - old.point, new.gradient - old.gradient
    product = _dot(moved, changed)
    if product > np.finfo(float).eps * _dot(changed, changed):
        steered = changed if new.steered is new.gradient else new.steered - old.steered
        pairs.append(_Pair(moved, changed, steered, 1.0 / product))


def _direction(at: _Place, pairs: deque[_Pair]) -> Floats:
    """The gradient times the remembered inverse of the second derivative (two loops, Nocedal 1980)."""
    gradient, result = at.gradient.copy(), at.steered.copy()
    shares = []
    for pair in reversed(pairs):
        shares.append(pair.inverse * _dot(pair.moved, gradient))
        gradient -= shares[-1] * pair.changed
        result -= shares[-1] * pair.steered
    if pairs:
        last = pairs[-1]
        result /= last.inverse * _dot(last.changed, last.steered)
    for pair, share in zip(pairs, reversed(shares), strict=True):
        result += (share - pair.inverse * _dot(pair.changed, result)) * pair.moved
    return result


def _search(objective: Objective, at: _Place, direction: Floats, step: float) -> _Place | None:
    """Where a step along the direction meets the Wolfe conditions, else the lowest place found; None if none is lower.

    `low` is the best step so far and `high` the other end of an interval that holds a good one; None: not yet.
    """
    first = _Trial(0.0, at.value, _dot(at.gradient, direction))
    low, high, best = first, None, None
    if not first.slope < 0:
        return None
    for _ in range(LONGEST_SEARCH):
        point = at.point + step * direction
        value, gradient = objective(point)
        trial = _Trial(step, value, _dot(gradient, direction))
        if not _lower(first, low, trial):
            high = trial
        elif abs(trial.slope) <= -CURVATURE * first.slope:
            return _Place(point, value, gradient)
        else:
            if trial.slope * (math.inf if high is None else high.step - low.step) >= 0:
                high = low
            low, best = trial, _Place(point, value, gradient)
        if high is not None and abs(high.step - low.step) <= SHORTEST * abs(low.step):
            break
        step = 4.0 * low.step if high is None else _between(low, high)
    return best if best is not None and best.value < at.value else None


def _lower(first: _Trial, low: _Trial, trial: _Trial) -> bool:
    if not math.isfinite(trial.value):
        return False
    enough = trial.value <= first.value + DECREASE * trial.step * first.slope
    if low.step > 0 and trial.value >= low.value:
        enough = False
    rounding = ROUNDING * max(1.0, abs(first.value))
    alike = trial.value <= first.value + rounding and trial.slope <= (2 * DECREASE - 1) * first.slope
    return enough or alike


def _between(low: _Trial, high: _Trial) -> float:
    """Where the cubic through both values and slopes is least, kept away from the ends."""
    width = high.step - low.step
    step = low.step + 0.5 * width
    if math.isfinite(high.value) and math.isfinite(high.slope):
        a = low.slope + high.slope - 3.0 * (low.value - high.value) / (low.step - high.step)
        square = a * a - low.slope * high.slope
        if square >= 0:
            root = math.copysign(math.sqrt(square), width)
            below = high.slope - low.slope + 2.0 * root
            if below != 0:
                step = high.step - width * (high.slope + root - a) / below
    ends = sorted((low.step + 0.1 * width, low.step + 0.9 * width))
    return min(max(step, ends[0]), ends[1])
