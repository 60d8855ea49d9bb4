"""Small charts as SVG that follow the colours of the page, on screen, on paper and in the dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["critical_difference", "lines", "scatter"]

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 14, 44
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4")
Points = Sequence[tuple[float, float]]


def lines(series: Mapping[str, Points], x_label: str, y_label: str, *, log_x: bool = False, title: str = "") -> str:
    """Curves, each with a colour, a dash and its name in a legend."""
    points = [p for curve in series.values() for p in curve]
    if not points:
        return ""
    axes = _Axes(points, log_x)
    drawn, keys = [], []
    for i, (name, curve) in enumerate(series.items()):
        path = " ".join(f"{axes.x(a):.1f},{axes.y(b):.1f}" for a, b in curve)
        style = f'class="c{i % 8}" stroke-dasharray="{DASHES[i // 8 % len(DASHES)]}"'
        drawn.append(f'<polyline points="{path}" fill="none" {style}><title>{escape(name)}</title></polyline>')
        if len(curve) == 1:  # a line of one point is not to be seen
            place = f'cx="{axes.x(curve[0][0]):.1f}" cy="{axes.y(curve[0][1]):.1f}" r="4"'
            drawn.append(f'<circle {place} class="c{i % 8} dot"><title>{escape(name)}</title></circle>')
        keys.append(_key(i, name))
    return _frame(axes, "".join(drawn), x_label, y_label, keys, title)


def scatter(points: Mapping[str, tuple[float, float]], x_label: str, y_label: str, title: str = "") -> str:
    """Named points over a logarithmic horizontal axis."""
    if not points:
        return ""
    axes = _Axes(list(points.values()), log_x=True)
    drawn, keys = [], []
    for i, (name, (a, b)) in enumerate(points.items()):
        label = escape(f"{name}: {a:.3g}, {b:.2f}")
        place = f'cx="{axes.x(a):.1f}" cy="{axes.y(b):.1f}" r="5"'
        drawn.append(f'<circle {place} class="c{i % 8} dot"><title>{label}</title></circle>')
        keys.append(_key(i, name))
    return _frame(axes, "".join(drawn), x_label, y_label, keys, title)


def critical_difference(ranks: Mapping[str, float], critical: float, groups: Sequence[Sequence[str]]) -> str:
    """Mean ranks on a line, the best on the left; a bar joins methods that do not differ significantly."""
    order = sorted(ranks, key=lambda name: ranks[name])
    last = max(2, math.ceil(max(ranks.values())))
    half = (len(order) + 1) // 2
    height = 70 + 12 * len(groups) + 20 * half

    def x(rank: float) -> float:
        return 170 + (rank - 1) / (last - 1) * 300

    parts = [f'<line x1="{x(1)}" x2="{x(last)}" y1="40" y2="40" class="axis"/>']
    parts += [
        f'<line x1="{x(r)}" x2="{x(r)}" y1="35" y2="40" class="axis"/><text x="{x(r)}" y="30" class="mid">{r}</text>'
        for r in range(1, last + 1)
    ]
    end = x(1 + min(critical, last - 1))
    parts.append(f'<line x1="{x(1)}" x2="{end:.1f}" y1="10" y2="10" class="bar"/>')
    parts.append(f'<text x="{end + 6:.1f}" y="14">critical difference {critical:.2f}</text>')
    for i, group in enumerate(groups):
        y = 50 + 12 * i
        low, high = x(ranks[group[0]]) - 3, x(ranks[group[-1]]) + 3
        parts.append(f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" class="bar"/>')
    for i, name in enumerate(order):
        left = i < half
        y = 60 + 12 * len(groups) + 20 * (i if left else len(order) - 1 - i)
        a, edge = x(ranks[name]), 160 if left else 480
        parts.append(f'<polyline points="{a:.1f},40 {a:.1f},{y} {edge},{y}" class="axis" fill="none"/>')
        side, place = ("end", edge - 6) if left else ("start", edge + 6)
        text = f"{escape(name)} ({ranks[name]:.2f})"
        parts.append(f'<text x="{place}" y="{y + 4}" text-anchor="{side}">{text}</text>')
    label = "Mean ranks; methods under one bar do not differ significantly"
    return f'<svg viewBox="0 0 640 {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


class _Axes:
    """From data to places, with round numbers at the ticks."""

    def __init__(self, points: Points, log_x: bool) -> None:
        self.log = log_x
        self.smallest = min((a for a, _ in points if a > 0), default=1.0)
        xs, ys = [self._scaled(a) for a, _ in points], [b for _, b in points]
        self.x_low, self.x_high = _apart(min(xs), max(xs))
        self.y_ticks = _ticks(*_apart(min(ys), max(ys)))
        self.y_low, self.y_high = min(*ys, self.y_ticks[0]), max(*ys, self.y_ticks[-1])

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, self.smallest)) if self.log else value

    def x(self, value: float) -> float:
        share = (self._scaled(value) - self.x_low) / (self.x_high - self.x_low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y_low) / (self.y_high - self.y_low) * (HEIGHT - TOP - BOTTOM)

    @property
    def x_ticks(self) -> list[float]:
        if not self.log:
            return [t for t in _ticks(self.x_low, self.x_high) if self.x_low <= t <= self.x_high]
        powers = range(math.ceil(self.x_low), math.floor(self.x_high) + 1)
        return [10.0**p for p in powers] or [10.0**self.x_low, 10.0**self.x_high]


def _apart(low: float, high: float) -> tuple[float, float]:
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _ticks(low: float, high: float) -> list[float]:
    raw = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * f for f in (1, 2, 5, 10) if unit * f >= raw)
    return [step * i for i in range(math.floor(low / step), math.ceil(high / step) + 1)]


def _key(i: int, name: str) -> str:
    dash = DASHES[i // 8 % len(DASHES)]
    line = f'<line x1="0" x2="28" y1="4" y2="4" class="c{i % 8}" stroke-dasharray="{dash}"/>'
    return f'<li><svg class="key" viewBox="0 0 28 8">{line}</svg>{escape(name)}</li>'


def _frame(axes: _Axes, drawn: str, x_label: str, y_label: str, keys: Sequence[str], title: str) -> str:
    parts = []
    for tick in axes.y_ticks:
        y = axes.y(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.6g}</text>')
    below = HEIGHT - BOTTOM + 16
    parts += [f'<text x="{axes.x(tick):.1f}" y="{below}" class="mid">{tick:.6g}</text>' for tick in axes.x_ticks]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" class="mid">{escape(x_label)}</text>')
    parts.append(f'<text transform="translate(14 {middle}) rotate(-90)" class="mid">{escape(y_label)}</text>')
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}{drawn}</svg>'
    caption = f"<figcaption>{escape(title)}</figcaption>" if title else ""
    return f'<figure>{svg}<ul class="legend">{"".join(keys)}</ul>{caption}</figure>'
