"""Whether a graph is a partial k-tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

__all__ = ["has_treewidth_at_most"]


def has_treewidth_at_most(cliques: Iterable[Sequence[int]], k: int) -> bool:
    """Whether eliminating vertices of degree at most k, smallest degree first, uses up the graph of these cliques.

    True proves that the treewidth is at most k. For k <= 2 False proves that it is not: removing a vertex of degree at
    most 2 after joining its neighbours never changes whether the treewidth is at most 2.
    """
    neighbours: dict[int, set[int]] = {}
    for clique in cliques:
        for v in clique:
            neighbours.setdefault(v, set()).update(u for u in clique if u != v)
    waiting = [(len(near), v) for v, near in neighbours.items()]
    heapify(waiting)
    while neighbours:
        degree, v = heappop(waiting)
        if v not in neighbours or degree != len(neighbours[v]):
            continue  # it is gone, or has another entry by now
        if degree > k:
            return False
        others = neighbours.pop(v)
        for u in others:
            neighbours[u].discard(v)
            neighbours[u].update(others - {u})
            heappush(waiting, (len(neighbours[u]), u))
    return True
