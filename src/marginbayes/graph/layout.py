"""Where to draw the boxes and edges of a graph: tidy trees, layered graphs and grids, the class on top."""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import NamedTuple

from marginbayes.graph.dag import Dag

__all__ = ["Box", "Layout", "Route", "lay_out", "shorten", "text_width"]


Point = tuple[float, float]
Edge = tuple[int, int]

# Every length is in CSS pixels.
FONT = 13.0
LABEL = 180.0  # longer names are shortened to this width
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


# Widths of characters in a wide sans serif, in font sizes; all others are between these.
_WIDTHS = {"iljtfrI.,:;'|!()[]/\\ -": 0.42, "#&+<=>~^": 0.85, "mwMW@%…": 1.0}


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


def text_width(text: str, size: float = FONT) -> float:
    """Width of a text in pixels, rather too large than too small, without asking for the font."""
    return size * sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    for characters, width in _WIDTHS.items():
        if character in characters:
            return width
    return 0.80 if character.isupper() else 0.64


def shorten(name: str, limit: float = LABEL) -> str:
    """The name, or as much of its beginning and end as fits into the limit, in printable characters."""
    name = "".join(c if c.isprintable() else " " for c in name)
    if text_width(name) <= limit:
        return name
    keep = min(len(name) - 1, int(limit / (0.3 * FONT)))
    while keep > 2 and text_width(_middle_cut(name, keep)) > limit:
        keep -= 1
    return _middle_cut(name, keep)


def _middle_cut(name: str, keep: int) -> str:
    return f"{name[: keep - keep // 2]}…{name[len(name) - keep // 2 :]}"


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


# -- tidy trees: every parent centred above its children, branches as close as their outlines allow


Parents = Sequence[Sequence[int]]


def forest(nodes: Sequence[int], dag: Dag, parents: Parents, widths: Sequence[float]) -> Part:
    """Trees side by side.

    Small branches hang as indented lists where that would be too wide; chains are tight where it is too tall.
    """
    order = [i for i in dag.order if i in set(nodes)]
    tallest, part = 1, _tidy(order, parents, widths, 1, tight=False)
    while part.width > max(WIDE, ASPECT * ROW * part.rows) and tallest < len(nodes):
        tallest += max(1, tallest // 3)
        part = _tidy(order, parents, widths, tallest, tight=False)
    if part.rows * ROW > max(TALL, part.width):
        part = _tidy(order, parents, widths, tallest, tight=True)
    return part


def _tidy(order: Sequence[int], parents: Parents, widths: Sequence[float], tallest: int, tight: bool) -> Part:
    """Trees in which branches of at most this many nodes are lists; built from the leaves up."""
    waiting: dict[int, list[Part]] = {i: [] for i in (*order, -1)}
    for node in reversed(order):
        branches, box = waiting.pop(node)[::-1], single(node, widths[node])
        small = sum(map(_size, branches)) < tallest
        done = _listed(box, branches) if small else _above(box, branches, tallest, tight)
        waiting[parents[node][0] if parents[node] else -1].append(done)
    return _row(_columns(waiting[-1][::-1], tallest, 0.0, tight))[0]


def _size(branch: Part) -> int:
    return len(branch.places)


def _root(branch: Part) -> int:
    return min(branch.places, key=lambda i: branch.places[i].row)


def _listed(box: Part, branches: Sequence[Part]) -> Part:
    """A box with its branches in a list below it."""
    return box.joined(_hung(branches, INDENT, SPINE).moved(0.0, 1))


def _hung(branches: Sequence[Part], indent: float, spine: float) -> Part:
    """Branches below one another, hanging from one line."""
    done = Part()
    for branch in branches:
        lower = branch.moved(indent, done.rows).hung(_root(branch), spine)
        done = done.joined(Part(lower.places, {row: (0.0, high) for row, (_, high) in lower.spans.items()}))
    return done


def _above(box: Part, branches: Sequence[Part], tallest: int, tight: bool) -> Part:
    """A box centred above the entries of its branches; the row between them belongs to the edges."""
    below, entries = _row(_columns(branches, tallest, INDENT - SPINE, tight))
    top = box.moved((entries[0] + entries[-1] - box.width) / 2)
    if tight and len(branches) == 1:
        return top.joined(below.moved(0.0, 1))
    fan = Part(spans={1: (entries[0] - GAP / 2, entries[-1] + GAP / 2)})
    return top.joined(fan).joined(below.moved(0.0, 2))


def _columns(branches: Sequence[Part], tallest: int, indent: float, tight: bool) -> list[tuple[Part, float]]:
    """Branches with the point where each is entered: the largest in the middle, small ones share columns."""
    small = _filled([b for b in branches if _size(b) <= tallest], tallest)
    large = sorted(([b] for b in branches if _size(b) > tallest), key=lambda column: _size(column[0]))
    half = len(small) // 2
    order = [*small[:half], *large[::2], *large[1::2][::-1], *small[half:]]
    return [_column(column, indent, tight) for column in order]


def _filled(branches: Sequence[Part], tallest: int) -> list[list[Part]]:
    """Small branches in columns of about the same height, none above the tallest."""
    total = sum(map(_size, branches))
    even = math.ceil(total / math.ceil(total / tallest)) if total else 0
    height = max([even, *map(_size, branches)])
    columns: list[list[Part]] = []
    for branch in branches:
        if columns and sum(map(_size, columns[-1])) + _size(branch) <= height:
            columns[-1].append(branch)
        else:
            columns.append([branch])
    return columns


def _column(branches: Sequence[Part], indent: float, tight: bool) -> tuple[Part, float]:
    if len(branches) > 1:
        return _hung(branches, indent, 0.0), 0.0
    branch = _upright(branches[0], 1 if tight else 2)
    return branch, branch.places[_root(branch)].centre


def _upright(branch: Part, step: int) -> Part:
    """A list without forks as a chain of boxes straight below one another; any other branch as it is."""
    line = sorted(branch.places.items(), key=lambda item: item[1].row)
    if any(place.spine != line[k][1].left + SPINE for k, (_, place) in enumerate(line[1:])):
        return branch
    done = Part()
    for k, (node, place) in enumerate(line):
        done = done.joined(single(node, place.width, -place.width / 2, k * step))
    return done


def _row(columns: Sequence[tuple[Part, float]]) -> tuple[Part, list[float]]:
    """Columns beside one another, as close as their outlines allow, and where each is entered."""
    done, entries = Part(), []
    for part, entry in columns:
        dx = done.clearance(part)
        done = done.joined(part.moved(dx))
        entries.append(entry + dx)
    return done, entries


# -- layered graphs (Sugiyama, Tagawa & Toda 1981): layers, stand-ins, few crossings, coordinates


MOST_STANDINS = 4000  # beyond, long edges run straight: such a picture is dense in any case


def layered(
    nodes: Sequence[int], dag: Dag, parents: Sequence[Sequence[int]], widths: Sequence[float]
) -> Part:
    """Nodes in layers, all parents of the graph above their children; only edges from `parents` are drawn."""
    rank = _ranks(nodes, dag, widths)
    edges = [(p, c) for c in nodes for p in parents[c]]
    chains = _chains(edges, rank, first=len(dag.names))
    rank |= {d: rank[p] + 1 + k for (p, _), chain in chains.items() for k, d in enumerate(chain)}
    net = Net.of(rank, edges, chains)
    layers = uncrossed(net)
    gaps = _gaps(net, layers, widths)
    x = _coordinates(net, layers, gaps)
    _straighten(chains.values(), x, layers, gaps)
    rows = _row_numbers(net, layers, x)
    places = {i: Place(x[i] - widths[i] / 2, rows[rank[i]], widths[i]) for i in nodes}
    bends = {e: tuple((float(round(x[d])), rows[rank[d]]) for d in chains.get(e, ())) for e in edges}
    low = min([p.left for p in places.values()] + [x[d] - LANE for d in net.standins])
    high = max([p.right for p in places.values()] + [x[d] + LANE for d in net.standins])
    return Part(places, dict.fromkeys(range(rows[-1] + 1), (low, high)), bends)


def _ranks(nodes: Sequence[int], dag: Dag, widths: Sequence[float]) -> dict[int, int]:
    """Layer of each node: the length of the longest path to it, more where a layer is full."""
    members = set(nodes)
    up = {i: [p for p in dag.parents[i] if p in members] for i in nodes}
    limit = max(WIDE, math.sqrt(ASPECT * 2 * ROW * sum(widths[i] + GAP for i in nodes)))
    depth: dict[int, int] = {}
    for i in (i for i in dag.order if i in members):
        depth[i] = max((depth[p] + 1 for p in up[i]), default=0)
    rank: dict[int, int] = {}
    taken: dict[int, float] = {}
    for i in sorted(nodes, key=lambda i: (depth[i], i)):
        rank[i] = max((rank[p] + 1 for p in up[i]), default=0)
        while 0 < taken.get(rank[i], 0.0) > limit - widths[i]:
            rank[i] += 1
        taken[rank[i]] = taken.get(rank[i], 0.0) + widths[i] + GAP
    _lower_sources([i for i in nodes if not up[i]], dag, rank, taken, widths, limit)
    used = {layer: k for k, layer in enumerate(sorted(set(rank.values())))}
    return {i: used[layer] for i, layer in rank.items()}


def _lower_sources(
    sources: Sequence[int],
    dag: Dag,
    rank: dict[int, int],
    taken: dict[int, float],
    widths: Sequence[float],
    limit: float,
) -> None:
    """Moves each node without parents down towards its children, as far as there is room."""
    for i in sources:
        lowest = min((rank[c] for c in dag.children[i] if c in rank), default=rank[i] + 1) - 1
        free = [k for k in range(lowest, rank[i], -1) if taken.get(k, 0.0) + widths[i] <= limit]
        if free:
            taken[rank[i]] -= widths[i] + GAP
            taken[free[0]] = taken.get(free[0], 0.0) + widths[i] + GAP
            rank[i] = free[0]


def _chains(edges: Iterable[Edge], rank: Mapping[int, int], first: int) -> dict[Edge, list[int]]:
    """Stand-ins for each long edge in the layers it crosses."""
    long = {(p, c): rank[c] - rank[p] - 1 for p, c in edges if rank[c] - rank[p] > 1}
    if sum(long.values()) > MOST_STANDINS:
        return {}
    chains = {}
    for edge, count in long.items():
        chains[edge] = list(range(first, first + count))
        first += count
    return chains


@dataclass(frozen=True)
class Net:
    """Nodes and stand-ins in layers, with their neighbours above and below."""

    layers: list[list[int]]
    ups: dict[int, list[int]]
    downs: dict[int, list[int]]
    standins: set[int]

    @classmethod
    def of(cls, rank: Mapping[int, int], edges: Iterable[Edge], chains: Mapping[Edge, list[int]]) -> Net:
        """Net of vertices with their layers; each long edge goes through its stand-ins."""
        layers: list[list[int]] = [[] for _ in range(max(rank.values()) + 1)]
        ups: dict[int, list[int]] = {v: [] for v in rank}
        downs: dict[int, list[int]] = {v: [] for v in rank}
        for v, layer in rank.items():
            layers[layer].append(v)
        for p, c in edges:
            for a, b in pairwise([p, *chains.get((p, c), []), c]):
                ups[b].append(a)
                downs[a].append(b)
        return cls(layers, ups, downs, {d for chain in chains.values() for d in chain})


def uncrossed(net: Net) -> list[list[int]]:
    """Layers ordered by barycentre sweeps and exchanges of neighbours: the best order that was met."""
    size = sum(map(len, net.layers))
    effort = sum(
        len(side[v]) ** 2 for side in (net.ups, net.downs) for v in side
    )  # of one round of exchanges
    best = layers = net.layers
    fewest = crossings(net, layers)
    for sweep in range(max(2, min(16, 12_000 // size))):
        if fewest == 0:
            break
        layers = [list(layer) for layer in layers]
        _sweep(net, layers, down=sweep % 2 == 0)
        _exchange(net, layers, rounds=min(6, 50_000 // max(1, effort)))
        found = crossings(net, layers)
        if found < fewest:
            best, fewest = layers, found
    return best


def _sweep(net: Net, layers: list[list[int]], down: bool) -> None:
    """Sorts each layer by the mean place of the neighbours in the layer before."""
    neighbours = net.ups if down else net.downs
    place = {v: float(k) for layer in layers for k, v in enumerate(layer)}
    for layer in layers if down else reversed(layers):
        wish = {v: _mean([place[u] for u in neighbours[v]], place[v]) for v in layer}
        layer.sort(key=wish.__getitem__)
        place.update((v, float(k)) for k, v in enumerate(layer))


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _exchange(net: Net, layers: list[list[int]], rounds: int) -> None:
    """Exchanges two neighbours of a layer wherever that removes crossings."""
    place = {v: k for layer in layers for k, v in enumerate(layer)}
    for _ in range(rounds):
        changed = False
        for layer in layers:
            for k in range(len(layer) - 1):
                u, v = layer[k], layer[k + 1]
                if sum(_excess(side[u], side[v], place) for side in (net.ups, net.downs)) > 0:
                    layer[k], layer[k + 1] = v, u
                    place[u], place[v] = k + 1, k
                    changed = True
        if not changed:
            return


def _excess(of_left: Sequence[int], of_right: Sequence[int], place: Mapping[int, int]) -> int:
    """Number of crossings that the edges of two neighbours would lose by an exchange."""
    return sum((place[a] > place[b]) - (place[a] < place[b]) for a in of_left for b in of_right)


def crossings(net: Net, layers: Sequence[Sequence[int]]) -> int:
    """Number of pairs of edges between the same two layers that cross."""
    place = {v: k for layer in layers for k, v in enumerate(layer)}
    total = 0
    for layer in layers:
        seen: list[int] = []
        for v in layer:
            ends = sorted(place[c] for c in net.downs[v])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _gaps(net: Net, layers: Sequence[Sequence[int]], widths: Sequence[float]) -> list[list[float]]:
    """Least distances between the neighbours of each layer."""
    half = {v: LANE / 2 if v in net.standins else widths[v] / 2 for layer in layers for v in layer}
    free = [[LANE if {a, b} & net.standins else GAP for a, b in pairwise(layer)] for layer in layers]
    return [
        [half[a] + half[b] + f for (a, b), f in zip(pairwise(layer), fs, strict=True)]
        for layer, fs in zip(layers, free, strict=True)
    ]


def _coordinates(
    net: Net, layers: Sequence[Sequence[int]], gaps: Sequence[Sequence[float]]
) -> dict[int, float]:
    """Horizontal positions: near the neighbours, nothing closer than allowed; layer by layer, down and up."""
    x: dict[int, float] = {}
    for layer, gap in zip(layers, gaps, strict=True):
        x.update(zip(layer, accumulate([-sum(gap) / 2, *gap]), strict=False))
    for sweep in range(24):
        sides = [net.ups, net.downs] if sweep >= 12 else [(net.ups, net.downs)[sweep % 2]]
        for k in range(len(layers))[:: 1 if sweep % 2 == 0 else -1]:
            wishes = [_wish(v, [u for side in sides for u in side[v]], x, net) for v in layers[k]]
            found = nearest_apart([w for w, _ in wishes], [pull for _, pull in wishes], gaps[k])
            x.update(zip(layers[k], found, strict=True))
    return x


def _wish(v: int, neighbours: Sequence[int], x: Mapping[int, float], net: Net) -> tuple[float, float]:
    """Where a vertex wants to be, and how much; an edge between two stand-ins pulls most, to be straight."""
    pulls = [8.0 if {u, v} <= net.standins else 1.0 for u in neighbours]
    total = sum(pulls)
    return (
        (sum(p * x[u] for p, u in zip(pulls, neighbours, strict=True)) / total, total)
        if pulls
        else (x[v], 0.1)
    )


def nearest_apart(wishes: Sequence[float], weights: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """Positions nearest to the wishes in weighted least squares among those in order and at least gaps apart.

    Subtracting the gaps leaves an isotonic regression, which pooling adjacent violators solves exactly.
    """
    offsets = list(accumulate([0.0, *gaps]))[: len(wishes)]
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, heavy, count = wish - offset, weight, 1
        while pools and pools[-1][0] >= mean:
            other, more, members = pools.pop()
            mean = (mean * heavy + other * more) / (heavy + more)
            heavy, count = heavy + more, count + members
        pools.append((mean, heavy, count))
    levels = [mean for mean, _, count in pools for _ in range(count)]
    return [level + offset for level, offset in zip(levels, offsets, strict=True)]


def _straighten(
    chains: Iterable[Sequence[int]],
    x: dict[int, float],
    layers: Sequence[Sequence[int]],
    gaps: Sequence[Sequence[float]],
) -> None:
    """Moves the stand-ins of each long edge onto as few upright lines as their neighbours allow."""
    room = {v: (layer, gap, k) for layer, gap in zip(layers, gaps, strict=True) for k, v in enumerate(layer)}
    for chain in chains:
        run: list[int] = []
        low, high = -math.inf, math.inf
        for v in chain:
            least, most = _limits(*room[v], x)
            if run and max(low, least) > min(high, most):
                _align(run, low, high, x)
                run, low, high = [], -math.inf, math.inf
            run.append(v)
            low, high = max(low, least), min(high, most)
        _align(run, low, high, x)


def _limits(layer: Sequence[int], gap: Sequence[float], k: int, x: Mapping[int, float]) -> Point:
    """Between which positions a vertex may move while its neighbours stay."""
    low = x[layer[k - 1]] + gap[k - 1] if k else -math.inf
    return low, x[layer[k + 1]] - gap[k] if k + 1 < len(layer) else math.inf


def _align(run: Sequence[int], low: float, high: float, x: dict[int, float]) -> None:
    middle = sorted(x[v] for v in run)[len(run) // 2]
    x.update(dict.fromkeys(run, min(max(middle, low), high)))


def _row_numbers(net: Net, layers: Sequence[Sequence[int]], x: Mapping[int, float]) -> list[int]:
    """Row of each layer: two below the one above it, more where edges have far to go sideways."""
    rows = [0]
    for layer in layers[:-1]:
        far = max((abs(x[c] - x[v]) for v in layer for c in net.downs[v]), default=0.0)
        rows.append(rows[-1] + 2 + (far > 250) + (far > 600))
    return rows


# -- routes: cubic curves that leave boxes downwards and arrive upright or from the left


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
    trunk = _trunk(part, boxes, bool(own))
    return [
        Route(*e, lines[e]) if e in lines else _rail(e[1], part, boxes, trunk, busy.get(e[1])) for e in edges
    ]


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


def _trunk(part: Part, boxes: Mapping[int, Box], busy: bool) -> float:
    """Where the edges of the class go down: in the middle of a grid, else along the left side."""
    if busy or not boxes:
        return round(part.left) - RAIL
    x = boxes[0].x
    blocked = any(b.left <= x <= b.right for b in boxes.values() if b.y > boxes[0].y)
    return round(part.left) - RAIL if blocked else x


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
                runs.setdefault((axis, a[1 - axis]), []).append(
                    (min(a[axis], d[axis]), max(a[axis], d[axis]))
                )
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


# -- the whole picture


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
    labels = tuple(shorten(name) for name in dag.names)
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
    pieces = _pieces(drawn)
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


def _pieces(parents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Connected components, each ascending, in the order of their first nodes."""
    home = list(range(len(parents)))
    for child, ps in enumerate(parents):
        for p in ps:
            old, new = home[child], home[p]
            home = [new if h == old else h for h in home] if old != new else home
    pieces: dict[int, list[int]] = {}
    for i, h in enumerate(home):
        pieces.setdefault(h, []).append(i)
    return list(pieces.values())


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
