"""Small charts as SVG that follow the colours of the page, on screen, on paper and in the dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from marginbayes.report.axes import BOTTOM, HEIGHT, TOP, WIDTH, Axes, Points, wide

__all__ = ["critical_difference", "lines", "scatter"]

COLOURS = 8
MARKER = 10  # room around a point, so that it covers no number of an axis
# For each group of as many curves or points as there are colours, a dash or a shape around (0, 0).
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "10 4")
SHAPES = (
    "",  # a circle
    "M-4.5,-4.5H4.5V4.5H-4.5Z",
    "M0,-5.5L5.5,4.5H-5.5Z",
    "M0,-6.5L6.5,0L0,6.5L-6.5,0Z",
    "M0,5.5L5.5,-4.5H-5.5Z",
    "M-5,-5L5,5M-5,5L5,-5",
)


def lines(
    series: Mapping[str, Points],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    steps: bool = False,
    title: str = "",
) -> str:
    """Curves, each with a colour, a dash and its name in a legend; as steps where a value holds until the next one."""
    points = [p for curve in series.values() for p in curve]
    if not points:
        return ""
    axes = Axes(points, log_x)
    drawn, keys = [], []
    for i, (name, curve) in enumerate(series.items()):
        path = " ".join(f"{axes.x(a):.1f},{axes.y(b):.1f}" for a, b in (_stepped(curve) if steps else curve))
        style = f'class="c{i % COLOURS}" stroke-dasharray="{_of_group(DASHES, i)}"'
        drawn.append(f'<polyline points="{path}" fill="none" {style}><title>{escape(name)}</title></polyline>')
        alone = len(curve) == 1  # a line of one point is not to be seen
        if alone:
            drawn.append(_marker(i, axes.x(curve[0][0]), axes.y(curve[0][1]), name))
        keys.append(_key(name, _marker(i, 14, 7) if alone else _dash(i)))
    return _frame(axes, "".join(drawn), x_label, y_label, keys, title)


def scatter(points: Mapping[str, tuple[float, float]], x_label: str, y_label: str, title: str = "") -> str:
    """Named points over a logarithmic horizontal axis, each with a colour and a shape."""
    if not points:
        return ""
    axes = Axes(list(points.values()), log_x=True, inset=MARKER)
    drawn, keys = [], []
    for i, (name, (a, b)) in enumerate(points.items()):
        drawn.append(_marker(i, axes.x(a), axes.y(b), f"{name}: {a:.3g}, {b:.2f}"))
        keys.append(_key(name, _marker(i, 14, 7)))
    return _frame(axes, "".join(drawn), x_label, y_label, keys, title)


def critical_difference(ranks: Mapping[str, float], critical: float, groups: Sequence[Sequence[str]]) -> str:
    """Mean ranks on a line, the best on the left; a bar joins methods that do not differ significantly."""
    order = sorted(ranks, key=lambda name: ranks[name])
    last = max(2, math.ceil(max(ranks.values())))
    half = (len(order) + 1) // 2
    height = 70 + 12 * len(groups) + 20 * half
    texts = {name: f"{name} ({ranks[name]:.2f})" for name in order}
    note = f"critical difference {critical:.2f}"
    start, span = 20 + wide(*(texts[name] for name in order[:half])), max(300, 20 * last)
    right = start + span
    width = right + 20 + wide(note, *(texts[name] for name in order[half:]))

    def x(rank: float) -> float:
        return start + (rank - 1) / (last - 1) * span

    parts = [f'<line x1="{x(1)}" x2="{x(last)}" y1="40" y2="40" class="axis"/>']
    parts += [
        f'<line x1="{x(r)}" x2="{x(r)}" y1="35" y2="40" class="axis"/><text x="{x(r)}" y="30" class="mid">{r}</text>'
        for r in range(1, last + 1)
    ]
    end = x(1 + min(critical, last - 1))
    parts.append(f'<line x1="{x(1)}" x2="{end:.1f}" y1="10" y2="10" class="bar"/>')
    parts.append(f'<text x="{end + 6:.1f}" y="14">{note}</text>')
    for i, group in enumerate(groups):
        y = 50 + 12 * i
        low, high = x(ranks[group[0]]) - 3, x(ranks[group[-1]]) + 3
        parts.append(f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" class="bar"/>')
    for i, name in enumerate(order):
        left = i < half
        y = 60 + 12 * len(groups) + 20 * (i if left else len(order) - 1 - i)
        a, edge = x(ranks[name]), start - 10 if left else right + 10
        parts.append(f'<polyline points="{a:.1f},40 {a:.1f},{y} {edge},{y}" class="axis" fill="none"/>')
        side, place = ("end", edge - 6) if left else ("start", edge + 6)
        parts.append(f'<text x="{place}" y="{y + 4}" text-anchor="{side}">{escape(texts[name])}</text>')
    label = "Mean ranks; methods under one bar do not differ significantly"
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _stepped(curve: Points) -> list[tuple[float, float]]:
    """The corners of a curve that keeps each value until the next one."""
    corners = [point for (_, b), (c, d) in pairwise(curve) for point in ((c, b), (c, d))]
    return [*curve[:1], *corners]


def _of_group(choices: Sequence[str], i: int) -> str:
    return choices[i // COLOURS % len(choices)]


def _marker(i: int, x: float, y: float, label: str = "") -> str:
    shape, style = _of_group(SHAPES, i), f'class="c{i % COLOURS} dot"'
    said = f"<title>{escape(label)}</title>" if label else ""
    if not shape:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" {style}>{said}</circle>'
    return f'<path d="{shape}" transform="translate({x:.1f} {y:.1f})" {style}>{said}</path>'


def _dash(i: int) -> str:
    return f'<line x1="0" x2="28" y1="7" y2="7" class="c{i % COLOURS}" stroke-dasharray="{_of_group(DASHES, i)}"/>'


def _key(name: str, drawn: str) -> str:
    return f'<li><svg class="key" viewBox="0 0 28 14">{drawn}</svg>{escape(name)}</li>'


def _frame(axes: Axes, drawn: str, x_label: str, y_label: str, keys: Sequence[str], title: str) -> str:
    parts = []
    for text, tick in axes.y_ticks.items():
        y = axes.y(tick)
        parts.append(f'<line x1="{axes.left}" x2="{axes.right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(f'<text x="{axes.left - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    below = HEIGHT - BOTTOM + 16
    parts += [f'<text x="{axes.x(t):.1f}" y="{below}" class="mid">{text}</text>' for text, t in axes.x_ticks.items()]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(f'<text x="{(axes.left + axes.right) / 2}" y="{HEIGHT - 8}" class="mid">{escape(x_label)}</text>')
    parts.append(f'<text transform="translate(14 {middle}) rotate(-90)" class="mid">{escape(y_label)}</text>')
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}{drawn}</svg>'
    caption = f"<figcaption>{escape(title)}</figcaption>" if title else ""
    return f'<figure>{svg}<ul class="legend">{"".join(keys)}</ul>{caption}</figure>'
