"""Axes of a chart: from data to places, with round numbers at the ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["BOTTOM", "HEIGHT", "TOP", "WIDTH", "Axes", "Points", "wide"]

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 14, 44
CHARACTER = 7.2  # width of one at 12 px, in a wide font
Points = Sequence[tuple[float, float]]


class Axes:
    """From data to places, with round numbers at the ticks and room for them; no point is nearer to the edges than the
    inset.
    """

    def __init__(self, points: Points, log_x: bool, inset: float = 0.0) -> None:
        self.log, self.inset = log_x, inset
        self.smallest = min((a for a, _ in points if a > 0), default=1.0)
        xs, ys = [self._scaled(a) for a, _ in points], [b for _, b in points]
        self.x_low, self.x_high = _apart(min(xs), max(xs))
        y_ticks = _ticks(*_apart(min(ys), max(ys)))
        self.y_low, self.y_high = min(*ys, y_ticks[0]), max(*ys, y_ticks[-1])
        self.x_ticks, self.y_ticks = _labelled(self._x_ticks()), _labelled(y_ticks)
        self.left = max(LEFT, 32 + wide(*self.y_ticks))
        self.right = WIDTH - max(RIGHT, wide(*self.x_ticks) // 2)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, self.smallest)) if self.log else value

    def x(self, value: float) -> float:
        share = (self._scaled(value) - self.x_low) / (self.x_high - self.x_low)
        return self.left + self.inset + share * (self.right - self.left - 2 * self.inset)

    def y(self, value: float) -> float:
        share = (value - self.y_low) / (self.y_high - self.y_low)
        return HEIGHT - BOTTOM - self.inset - share * (HEIGHT - TOP - BOTTOM - 2 * self.inset)

    def _x_ticks(self) -> list[float]:
        """Powers of ten along a logarithmic axis; on a short one 1, 2 and 5 times them, or those of a plain one."""
        if not self.log:
            return _inside(_ticks(self.x_low, self.x_high), self.x_low, self.x_high)
        ends = 10.0**self.x_low, 10.0**self.x_high
        powers = [10.0**p for p in range(math.floor(self.x_low), math.ceil(self.x_high) + 1)]
        if len(found := _inside(powers, *ends)) > 2:
            return found
        if len(found := _inside([f * p for p in powers for f in (1, 2, 5)], *ends)) > 1:
            return found
        return _inside(_ticks(*ends), *ends)


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _inside(ticks: Sequence[float], low: float, high: float) -> list[float]:
    """Ticks between the ends, which count although they are rounded."""
    room = 1e-9 * (high - low)
    return [t for t in ticks if low - room <= t <= high + room]


def _ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * f for f in (1, 2, 5, 10) if unit * f >= raw)
    return [step * i for i in range(math.floor(low / step), math.ceil(high / step) + 1)]


def _labelled(ticks: Sequence[float]) -> dict[str, float]:
    """Ticks by the numbers that are written at them."""
    return {f"{tick:.9g}": tick for tick in ticks}


def wide(*texts: str) -> int:
    """Room that the longest of these texts needs."""
    return math.ceil(CHARACTER * max(map(len, texts), default=0))
