"""Whether a graph is a partial k-tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    while neighbours:
        v = min(neighbours, key=lambda u: (len(neighbours[u]), u))
        others = neighbours.pop(v)
        if len(others) > k:
            return False
        for u in others:
            neighbours[u].discard(v)
            neighbours[u].update(others - {u})
    return True
