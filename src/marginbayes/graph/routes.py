"""Routes of edges around placed boxes, as cubic curves that leave downwards and arrive upright or from the left."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from marginbayes.graph.boxes import BOX, PORT, RAIL, ROW, SPINE, Box, Edge, Part, Point, Route
from marginbayes.graph.dag import Dag

Curve = tuple[Point, Point, Point, Point]


def routes(dag: Dag, part: Part, boxes: Mapping[int, Box], railed: bool) -> list[Route]:
    """A route for each edge, in the order of the graph's edges."""
    edges = [(p, c) for c, parents in enumerate(dag.parents) for p in parents]
    own = [(p, c) for p, c in edges if not (railed and p == 0)]
    falling = [(p, c) for p, c in own if part.places[c].spine is None]
    starts = _ports(falling, 0, part, boxes, set())
    ends = _ports(falling, 1, part, boxes, set(dag.children[0]) if railed else set())
    lines = {e: _falling(e, starts[e], ends[e], part, boxes) for e in falling}
    lines |= {e: _hanging(e, part, boxes) for e in set(own) - set(falling)}
    busy: dict[int, float] = {}
    for p, c in falling:
        busy[c] = min(lines[p, c][-1][0], busy.get(c, math.inf))
    # The edges of the class go down along the left side, or in the gap of a grid that the class stands above.
    trunk = round(part.left) - RAIL if own or not boxes else boxes[0].x
    return [Route(*e, lines[e]) if e in lines else _rail(e[1], part, boxes, trunk, busy.get(e[1])) for e in edges]


def _ports(
    edges: Iterable[Edge], end: int, part: Part, boxes: Mapping[int, Box], dropped: set[int]
) -> dict[Edge, float]:
    """Where each edge touches the box at one of its ends: in layers side by side, in trees in the middle."""
    groups: dict[int, list[Edge]] = {}
    for edge in edges:
        groups.setdefault(edge[end], []).append(edge)
    ports: dict[Edge, float] = {}
    for node, group in groups.items():
        far = {e: part.bends[e][-end][0] if part.bends.get(e) else boxes[e[1 - end]].x for e in group}
        spread = group[0] in part.bends
        slots = len(group) + (node in dropped)  # the leftmost is for the edge of the class
        step = min(PORT, (boxes[node].width - 12.0) / slots) if spread else 0.0
        right = boxes[node].x + step * (slots - 1) / 2
        ports |= {e: right - step * k for k, e in enumerate(sorted(group, key=far.__getitem__, reverse=True))}
    return ports


def _falling(edge: Edge, start: float, end: float, part: Part, boxes: Mapping[int, Box]) -> tuple[Point, ...]:
    """From the bottom of one box to the top of another, upright wherever it passes a row."""
    bends = part.bends.get(edge, ())
    if bends and abs(start - bends[0][0]) <= PORT / 3:  # a line that is almost straight shall be straight
        start = bends[0][0]
    last = bends[-1][0] if bends else start
    end = last if abs(end - last) <= PORT / 3 else end
    path: list[Point] = [(start, boxes[edge[0]].bottom)]
    for x, row in bends:
        above, below = (x, row * ROW - BOX / 2), (x, row * ROW + BOX / 2)
        path += [*_bent(path[-1], above), *_straight(above, below)]
    return (*path, *_bent(path[-1], (end, boxes[edge[1]].top)))


def _hanging(edge: Edge, part: Part, boxes: Mapping[int, Box]) -> tuple[Point, ...]:
    """From the bottom of a box down the line that siblings hang from, into the left side of another box."""
    above, below = boxes[edge[0]], boxes[edge[1]]
    spine = float(round(part.places[edge[1]].spine or 0.0))
    end = [(spine, below.y), (below.left, below.y)]
    if min(abs(spine - above.left - SPINE), abs(spine - above.x)) < 2:
        return tuple(_rounded([(spine, above.bottom), *end]))
    knee = (spine, above.bottom + 2 * ROW - BOX - RAIL)
    return ((above.x, above.bottom), *_bent((above.x, above.bottom), knee), *_rounded([knee, *end])[1:])


def _rail(child: int, part: Part, boxes: Mapping[int, Box], trunk: float, busy: float | None) -> Route:
    """From the class along the rail above the child's row, then down into the child."""
    top, box, row = boxes[0], boxes[child], part.places[0].row
    first = min(place.row for place in part.places.values() if place.row > row)
    start = first * ROW - BOX / 2 - RAIL
    x = box.x if busy is None else max(box.left + 8.0, busy - PORT)
    points = [(top.x, top.bottom), (top.x, start)]
    if part.places[child].row > first:
        points += [(trunk, start), (trunk, box.top - RAIL)]
    path = _rounded([*points, (x, box.top - RAIL), (x, box.top)])
    return Route(0, child, tuple(path), shared=(len(path) - 1) // 3 - 1)


def shared_lines(routes: Iterable[Route]) -> list[tuple[Point, ...]]:
    """What routes have in common, each piece once, so that no stretch is painted twice."""
    corners: dict[Curve, None] = {}
    runs: dict[tuple[int, float], list[Point]] = {}
    for route in routes:
        for k in range(route.shared):
            a, b, c, d = route.points[3 * k : 3 * k + 4]
            axis = 0 if a[1] == d[1] else 1
            if a[1 - axis] == d[1 - axis]:
                runs.setdefault((axis, a[1 - axis]), []).append((min(a[axis], d[axis]), max(a[axis], d[axis])))
            else:
                corners[a, b, c, d] = None
    straight = [_line(axis, at, *piece) for (axis, at), pieces in runs.items() for piece in united(pieces)]
    return [*straight, *corners]


def united(pieces: Iterable[Point]) -> list[Point]:
    """Disjoint intervals, ascending, that cover the same numbers as the given intervals."""
    done: list[Point] = []
    for low, high in sorted(pieces):
        if done and low <= done[-1][1]:
            done[-1] = (done[-1][0], max(high, done[-1][1]))
        else:
            done.append((low, high))
    return done


def _line(axis: int, at: float, low: float, high: float) -> tuple[Point, ...]:
    start, end = ((low, at), (high, at)) if axis == 0 else ((at, low), (at, high))
    return start, *_straight(start, end)


def _bent(start: Point, end: Point) -> tuple[Point, Point, Point]:
    """The rest of a curve that leaves and arrives upright."""
    middle = (start[1] + end[1]) / 2
    return (start[0], middle), (end[0], middle), end


def _straight(start: Point, end: Point) -> tuple[Point, Point, Point]:
    return start, end, end


def _rounded(points: Sequence[Point], radius: float = 5.0) -> list[Point]:
    """A line through the points with its corners rounded off."""
    corners = [points[0], *(b for a, b in pairwise(points) if math.dist(a, b) > 0.01)]
    path = [corners[0]]
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        enter = _towards(corner, before, min(radius, math.dist(before, corner) / 2))
        leave = _towards(corner, after, min(radius, math.dist(corner, after) / 2))
        path += [*_straight(path[-1], enter), corner, corner, leave]
    return [*path, *_straight(path[-1], corners[-1])]


def _towards(start: Point, end: Point, length: float) -> Point:
    share = length / math.dist(start, end)
    return start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1])
