"""Tidy drawings of trees: every parent centred above its children, branches as close as their outlines allow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from marginbayes.graph.boxes import ASPECT, GAP, INDENT, ROW, SPINE, TALL, WIDE, Part, single
from marginbayes.graph.dag import Dag

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
