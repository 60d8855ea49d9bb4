"""Who is above, below and linked, in a graph given by lists of parents; None is the list of a variable left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["above", "below", "components"]

Parents = Sequence[Iterable[int] | None]


def above(parents: Parents, nodes: Iterable[int]) -> set[int]:
    """The nodes and all their ancestors."""
    found, todo = set(), list(nodes)
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo.extend(parents[node] or ())
    return found


def below(parents: Parents, node: int) -> set[int]:
    """The node and all its descendants."""
    found, new = {node}, {node}
    while new:
        new = {c for c, own in enumerate(parents) if own and c not in found and not new.isdisjoint(own)}
        found |= new
    return found


def components(parents: Parents) -> list[list[int]]:
    """What edges link, whichever way they point: each part ascending, in the order of their first nodes."""
    home = list(range(len(parents)))
    for child, own in enumerate(parents):
        for parent in own or ():
            old, new = sorted((home[parent], home[child]), reverse=True)
            home = [new if h == old else h for h in home] if old != new else home
    parts: dict[int, list[int]] = {}
    for node, h in enumerate(home):
        parts.setdefault(h, []).append(node)
    return list(parts.values())
