"""A point of the interior point for soft margins: every slack beside its multiplier, and how far it may go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["Point", "blank", "move", "products", "step_lengths"]

Floats = NDArray[np.float64]


class Point(NamedTuple):
    """An iterate, or a direction: every slack beside its multiplier; `level` alone has none."""

    x: Floats
    price: Floats
    rest: Floats  # of each block, what x leaves to the reference option
    rest_price: Floats
    slack: Floats
    dual: Floats
    top: Floats  # gamma - level
    top_dual: Floats
    cut: Floats
    cut_dual: Floats
    level: Floats


@njit(cache=True, nogil=True)
def blank(at: Point) -> Point:
    """A direction that leads nowhere."""
    return Point(
        np.zeros_like(at.x),
        np.zeros_like(at.x),
        np.zeros_like(at.rest),
        np.zeros_like(at.rest),
        np.zeros_like(at.slack),
        np.zeros_like(at.slack),
        np.zeros_like(at.top),
        np.zeros_like(at.top),
        np.zeros_like(at.cut),
        np.zeros_like(at.cut),
        np.zeros_like(at.level),
    )


@njit(cache=True, nogil=True)
def _longest(values: Floats, steps: Floats, limit: float) -> float:
    """The longest step, up to the limit, that keeps all values from becoming negative."""
    for k in range(len(values)):
        if steps[k] < 0.0 and -values[k] > limit * steps[k]:
            limit = -values[k] / steps[k]
    return limit


@njit(cache=True, nogil=True)
def step_lengths(at: Point, by: Point) -> tuple[float, float]:
    """How far slacks, and how far multipliers, may go in this direction."""
    step = _longest(at.rest, by.rest, _longest(at.x, by.x, 1.0))
    step = _longest(at.cut, by.cut, _longest(at.top, by.top, _longest(at.slack, by.slack, step)))
    dual = _longest(at.rest_price, by.rest_price, _longest(at.price, by.price, 1.0))
    dual = _longest(at.top_dual, by.top_dual, _longest(at.dual, by.dual, dual))
    return step, _longest(at.cut_dual, by.cut_dual, dual)


@njit(cache=True, nogil=True)
def _product(value: Floats, dual: Floats, by: Floats, dual_by: Floats, step: float, dual_step: float) -> float:
    total = 0.0
    for k in range(len(value)):
        total += (value[k] + step * by[k]) * (dual[k] + dual_step * dual_by[k])
    return total


@njit(cache=True, nogil=True)
def products(at: Point, by: Point, step: float, dual: float) -> float:
    """Sum of slack times multiplier after a step."""
    total = _product(at.x, at.price, by.x, by.price, step, dual)
    total += _product(at.rest, at.rest_price, by.rest, by.rest_price, step, dual)
    total += _product(at.slack, at.dual, by.slack, by.dual, step, dual)
    total += _product(at.top, at.top_dual, by.top, by.top_dual, step, dual)
    return float(total + _product(at.cut, at.cut_dual, by.cut, by.cut_dual, step, dual))


@njit(cache=True, nogil=True)
def _add(values: Floats, by: Floats, step: float) -> None:
    for k in range(len(values)):
        values[k] += step * by[k]


@njit(cache=True, nogil=True)
def move(at: Point, by: Point, step: float, dual: float) -> None:
    _add(at.x, by.x, step)
    _add(at.rest, by.rest, step)
    _add(at.slack, by.slack, step)
    _add(at.top, by.top, step)
    _add(at.cut, by.cut, step)
    _add(at.level, by.level, step)
    _add(at.price, by.price, dual)
    _add(at.rest_price, by.rest_price, dual)
    _add(at.dual, by.dual, dual)
    _add(at.top_dual, by.top_dual, dual)
    _add(at.cut_dual, by.cut_dual, dual)
