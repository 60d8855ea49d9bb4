"""Layered drawings of graphs (Sugiyama, Tagawa & Toda 1981): layers, stand-ins, few crossings, coordinates."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from marginbayes.graph.boxes import ASPECT, GAP, LANE, ROW, WIDE, Edge, Part, Place, Point
from marginbayes.graph.dag import Dag

MOST_STANDINS = 4000  # beyond, long edges run straight: such a picture is dense in any case


def layered(nodes: Sequence[int], dag: Dag, parents: Sequence[Sequence[int]], widths: Sequence[float]) -> Part:
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
    effort = sum(len(side[v]) ** 2 for side in (net.ups, net.downs) for v in side)  # of one round of exchanges
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


def _coordinates(net: Net, layers: Sequence[Sequence[int]], gaps: Sequence[Sequence[float]]) -> dict[int, float]:
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
    return (sum(p * x[u] for p, u in zip(pulls, neighbours, strict=True)) / total, total) if pulls else (x[v], 0.1)


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
