"""Values of a drawing: boxes, routes, labels, and parts of a picture that are moved as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from marginbayes.graph.labels import text_width

Point = tuple[float, float]
Edge = tuple[int, int]

# Every length is in CSS pixels.
BOX = 26.0  # height of a box
ROW = 46.0  # from one row of boxes to the next; parents and children are two rows apart where there is room
GAP = 16.0  # between two boxes of a row
PORT = 16.0  # between two edges that enter a box
LANE = 9.0  # kept free around an edge that passes between two boxes
RAIL = 13.0  # a rail of class edges runs this far above its boxes
INDENT, SPINE = 30.0, 12.0  # of a child in a list under its parent, and of the line it hangs from
MARGIN = 14.5  # boxes are placed at whole pixels; the half makes thin lines crisp
WIDE, TALL = 940.0, 700.0  # a picture this narrow is never wrapped, one this low never tightened
ASPECT = 1.7  # nor is one wrapped whose width is at most this many heights


@dataclass(frozen=True)
class Box:
    """Rectangle of a node, given by its centre."""

    x: float
    y: float
    width: float
    height: float = BOX

    @property
    def left(self) -> float:
        """Where the box begins."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """Where the box ends."""
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        """Upper side."""
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        """Lower side."""
        return self.y + self.height / 2


@dataclass(frozen=True)
class Route:
    """Path of one edge as cubic Bezier curves.

    Parameters
    ----------
    parent, child : int
        The edge.
    points : tuple of (x, y)
        The start, then two control points and the end of each curve. The last one is the tip of the arrow.
    shared : int
        So many leading curves run along the rails that the edges of the class have in common.
    """

    parent: int
    child: int
    points: tuple[Point, ...]
    shared: int = 0


@dataclass(frozen=True)
class Layout:
    """Positions of all boxes and routes of all edges, in pixels from the top left corner.

    Parameters
    ----------
    width, height : float
        Size of the picture.
    labels : tuple of str
        Text of each box: the variable's name, shortened where it is long.
    boxes : tuple of Box
        One for each variable, in the order of the graph.
    routes : tuple of Route
        One for each edge, in the order of `Dag.edges`.
    rails : tuple of tuples of (x, y)
        What the routes share, each piece once, as curves like those of a route.
    """

    width: float
    height: float
    labels: tuple[str, ...]
    boxes: tuple[Box, ...]
    routes: tuple[Route, ...]
    rails: tuple[tuple[Point, ...], ...]


def box_width(label: str, edges: int, bold: bool) -> float:
    """Room for the label and the edges that enter; an even number, so that the middle is a whole pixel."""
    text = text_width(label) * (1.15 if bold else 1.0) + 20.0
    ports = min(PORT * edges + 8.0, max(120.0, 7.0 * edges))
    return 2.0 * math.ceil(max(36.0, text, ports) / 2)


class Place(NamedTuple):
    """Where a box stands inside its part: horizontally in pixels, vertically in rows."""

    left: float
    row: int
    width: float
    spine: float | None = None  # where the line runs that this box hangs from; None: entered from above

    @property
    def right(self) -> float:
        """Where the box ends."""
        return self.left + self.width

    @property
    def centre(self) -> float:
        """The middle of the box."""
        return self.left + self.width / 2

    def moved(self, dx: float, rows: int) -> Place:
        """The same box elsewhere."""
        spine = None if self.spine is None else self.spine + dx
        return Place(self.left + dx, self.row + rows, self.width, spine)


@dataclass(frozen=True)
class Part:
    """Boxes placed relative to one another, what they take of each row, and the bends of long edges."""

    places: Mapping[int, Place] = field(default_factory=dict)
    spans: Mapping[int, Point] = field(default_factory=dict)  # row: from, to
    bends: Mapping[Edge, tuple[tuple[float, int], ...]] = field(default_factory=dict)  # x and row on the way

    @property
    def left(self) -> float:
        """Where the part begins."""
        return min((low for low, _ in self.spans.values()), default=0.0)

    @property
    def right(self) -> float:
        """Where the part ends."""
        return max((high for _, high in self.spans.values()), default=0.0)

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def rows(self) -> int:
        """Number of rows."""
        return max(self.spans, default=-1) + 1

    def moved(self, dx: float, rows: int = 0) -> Part:
        """The same part elsewhere."""
        if dx == 0 and rows == 0:
            return self
        places = {i: place.moved(dx, rows) for i, place in self.places.items()}
        spans = {row + rows: (low + dx, high + dx) for row, (low, high) in self.spans.items()}
        bends = {edge: tuple((x + dx, row + rows) for x, row in bend) for edge, bend in self.bends.items()}
        return Part(places, spans, bends)

    def joined(self, other: Part) -> Part:
        """Both parts as one, where they are."""
        fewer, more = sorted((self.spans, other.spans), key=len)
        spans = dict(more)
        for row, (low, high) in fewer.items():
            mine = spans.get(row, (low, high))
            spans[row] = (min(low, mine[0]), max(high, mine[1]))
        return Part({**self.places, **other.places}, spans, {**self.bends, **other.bends})

    def hung(self, node: int, spine: float) -> Part:
        """The same part, but one of its boxes hangs from a line."""
        return replace(self, places={**self.places, node: self.places[node]._replace(spine=spine)})

    def clearance(self, other: Part) -> float:
        """How far another part must move to the right to stand beside this one."""
        both = self.spans.keys() & other.spans.keys()
        return max((self.spans[row][1] - other.spans[row][0] + GAP for row in both), default=0.0)


def single(node: int, width: float, left: float = 0.0, row: int = 0) -> Part:
    """Part of one box."""
    return Part({node: Place(left, row, width)}, {row: (left, left + width)})
