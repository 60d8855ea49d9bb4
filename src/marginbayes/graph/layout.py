"""Where to draw the boxes and edges of a graph: tidy trees, layered graphs and grids, the class on top."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from marginbayes.graph.boxes import (
    GAP,
    MARGIN,
    ROW,
    WIDE,
    Box,
    Layout,
    Part,
    Place,
    Point,
    Route,
    box_width,
    single,
)
from marginbayes.graph.dag import Dag
from marginbayes.graph.labels import shorten_all
from marginbayes.graph.layered import layered
from marginbayes.graph.routes import routes, shared_lines
from marginbayes.graph.tidy import forest
from marginbayes.graph.walks import components

__all__ = ["Box", "Layout", "Route", "lay_out"]


def lay_out(dag: Dag) -> Layout:
    """Layout of a graph in which every parent is above its children and no two boxes overlap.

    Trees become tidy trees, other graphs layers with few crossings, lone variables a grid; what would be too
    wide is wrapped into several rows. The edges of a class with many children are gathered on rails.

    Examples
    --------
    >>> picture = lay_out(Dag.naive(["class", "a", "b"]))
    >>> picture.boxes[0].y < picture.boxes[1].y == picture.boxes[2].y
    True
    """
    labels = shorten_all(dag.names)
    widths = [box_width(label, len(dag.parents[i]), bold=i == 0) for i, label in enumerate(labels)]
    railed = _wants_rails(dag, widths)
    part = _arranged(dag, widths, railed)
    boxes = {i: Box(float(round(p.centre)), p.row * ROW, p.width) for i, p in part.places.items()}
    lines = routes(dag, part, boxes, railed)
    return _framed(labels, [boxes[i] for i in range(len(labels))], lines, shared_lines(lines))


def _wants_rails(dag: Dag, widths: Sequence[float]) -> bool:
    """Whether the class has more than three children, or more than eight where it is the only parent."""
    if not dag.names:
        return False
    alone = not any(dag.children[1:]) and sum(widths) < WIDE
    return len(dag.children[0]) > (8 if alone else 3)


def _arranged(dag: Dag, widths: Sequence[float], railed: bool) -> Part:
    """All boxes: the class and what is above it, trees and layered pieces side by side, lone variables."""
    drawn = [tuple(p for p in parents if not (railed and p == 0)) for parents in dag.parents]
    pieces = components(drawn)
    heads = [piece for piece in pieces if railed and 0 in piece]
    rest = [piece for piece in pieces if piece not in heads and len(piece) > 1]
    lone = [piece[0] for piece in pieces if piece not in heads and len(piece) == 1]
    trees = [piece for piece in rest if all(len(drawn[i]) < 2 for i in piece)]
    parts = [forest([i for piece in trees for i in piece], dag, drawn, widths)] if trees else []
    parts += [layered(piece, dag, drawn, widths) for piece in rest if piece not in trees]
    body = _shelves(parts)
    if lone:
        body = _stacked(body, _grid(lone, widths, body.width), 1)
    return _below_class(layered(heads[0], dag, drawn, widths), body, grid=not parts) if heads else body


def _below_class(head: Part, body: Part, grid: bool) -> Part:
    """The class with what is above it, over the middle of the first row below or over a gap of a grid."""
    if not body.places:
        return head
    first = [place for place in body.places.values() if place.row == 0]
    aim = _corridor(body) if grid else _middle(first)
    return head.moved(-head.places[0].centre).joined(body.moved(-aim, head.rows + 1))


def _middle(places: Sequence[Place]) -> float:
    return (min(p.left for p in places) + max(p.right for p in places)) / 2


def _corridor(grid: Part) -> float:
    """The middle of a grid's only row, or of the gap between two columns nearest to it."""
    middle = (grid.left + grid.right) / 2
    gaps = sorted({place.left - GAP / 2 for place in grid.places.values()})
    return middle if grid.rows == 1 else min(gaps, key=lambda x: abs(x - middle))


def _shelves(parts: Iterable[Part]) -> Part:
    """Parts side by side, on as many shelves as the width asks for."""
    shelves: list[Part] = []
    for part in parts:
        if shelves and shelves[-1].width + 2 * GAP + part.width <= WIDE:
            shelves[-1] = shelves[-1].joined(part.moved(shelves[-1].right + 2 * GAP - part.left))
        else:
            shelves.append(part)
    done = Part()
    for shelf in shelves:
        done = _stacked(done, shelf, 1)
    return done


def _stacked(above: Part, below: Part, skip: int) -> Part:
    """One part centred under another, so many empty rows apart."""
    dx = (above.left + above.right - below.left - below.right) / 2
    return above.joined(below.moved(dx, above.rows + skip)) if above.places else below


def _grid(nodes: Sequence[int], widths: Sequence[float], space: float) -> Part:
    """Boxes of one width in rows; an even number of columns leaves the middle free for the class's edges."""
    width = max(widths[i] for i in nodes)
    pitch = width + GAP
    across = max(space, math.sqrt(2.2 * len(nodes) * pitch * ROW), min(WIDE / 2, len(nodes) * pitch))
    columns = max(1, int((across + GAP) / pitch))
    if columns < len(nodes):
        columns = math.ceil(len(nodes) / math.ceil(len(nodes) / columns))
        columns += columns % 2
    done = Part()
    for k, i in enumerate(nodes):
        done = done.joined(single(i, width, (k % columns) * pitch, k // columns))
    return done


def _framed(
    labels: tuple[str, ...], boxes: Sequence[Box], lines: Sequence[Route], rails: Sequence[tuple[Point, ...]]
) -> Layout:
    """The layout, moved so that everything is inside the picture."""
    points = [point for line in lines for point in line.points]
    xs = [x for b in boxes for x in (b.left, b.right)] + [x for x, _ in points]
    ys = [y for b in boxes for y in (b.top, b.bottom)] + [y for _, y in points]
    dx, dy = MARGIN - min(xs, default=0.0), MARGIN - min(ys, default=0.0)

    def moved(line: Iterable[Point]) -> tuple[Point, ...]:
        return tuple((x + dx, y + dy) for x, y in line)

    return Layout(
        width=max(xs, default=0.0) + dx + MARGIN,
        height=max(ys, default=0.0) + dy + MARGIN,
        labels=labels,
        boxes=tuple(replace(b, x=b.x + dx, y=b.y + dy) for b in boxes),
        routes=tuple(replace(line, points=moved(line.points)) for line in lines),
        rails=tuple(map(moved, rails)),
    )
