"""The best choice of an option for each feature without a cycle: a maximum-weight branching (Edmonds), and its costs.

Let the root and the features be nodes, and subtract from all edges that enter a node the value of the best of them;
where the best edges close a cycle, take its nodes as one and do so again, until they close none. Every structure enters
each feature once, and each set of several at least once, for which what was subtracted is not positive. So the sum of
all that was subtracted is the best sum, and what is left of the value of an edge is, with the sign changed, what it
costs at least.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_branching", "option_costs"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
# What was subtracted from the edges into each node, and into each set of nodes that was taken as one.
Entered = tuple[Floats, list[tuple[list[int], float]]]


def best_branching(values: Floats, options: Flags) -> float:
    """Greatest sum of values, one option for each feature, without a cycle; minus infinity where there is none."""
    found = _entered(_edges(np.where(options, values, -np.inf)))
    return -np.inf if found is None else _total(found)


def option_costs(values: Floats, options: Flags) -> tuple[float, Floats]:
    """Greatest sum of values over acyclic choices of options, and what each option [feature, option] costs at least."""
    n, chosen = len(values), np.where(options, values, -np.inf)
    left = _edges(chosen)
    best_alone = left[n, :n].copy()
    found = _entered(left.copy())
    if found is None:
        return -np.inf, np.full(values.shape, np.inf)
    left[:, :n] -= found[0]
    for inside, best in found[1]:
        outside = np.ones(n + 1, bool)
        outside[inside] = False
        left[np.ix_(outside, np.array(inside))] -= best
    costs = np.full(values.shape, np.inf)
    with np.errstate(invalid="ignore"):
        alone = left[n, :n, None] + chosen[:, :2] - best_alone[:, None]
    costs[:, 2:], costs[:, :2] = -left[:n, :n].T, -alone
    costs[~options] = np.inf
    return _total(found), costs


def _total(found: Entered) -> float:
    return float(found[0].sum()) + sum(best for _, best in found[1])


def _edges(chosen: Floats) -> Floats:
    """Values of edges [parent, child]; the last node is the root."""
    n = len(chosen)
    weights = np.full((n + 1, n + 1), -np.inf)
    weights[n, :n] = chosen[:, :2].max(axis=1)
    weights[:n, :n] = chosen[:, 2:].T
    np.fill_diagonal(weights, -np.inf)
    return weights


def _entered(weights: Floats) -> Entered | None:
    """Take best edges, contract cycles in place, repeat; None where there is no branching."""
    root = len(weights) - 1
    members, fresh = [[v] for v in range(root)], list[int]()
    alone, sets = None, list[tuple[list[int], float]]()
    while True:
        above = weights[:, :root].argmax(axis=0)
        top = weights[above, np.arange(root)]
        if not np.isfinite(top).all():
            return None
        alone = top if alone is None else alone
        sets += [(members[v], float(top[v])) for v in fresh]
        cycles = _cycles(above)
        if not cycles:
            return alone, sets
        for cycle in cycles:
            members[cycle[0]] = [v for node in cycle for v in members[node]]
            _contract(weights, cycle, top[cycle])
        fresh = [cycle[0] for cycle in cycles]


def _contract(weights: Floats, cycle: list[int], top: Floats) -> None:
    """The nodes of a cycle become its first one; to enter one of them costs its best edge."""
    first, others = cycle[0], cycle[1:]
    entering, leaving = (weights[:, cycle] - top).max(axis=1), weights[cycle].max(axis=0)
    weights[:, first], weights[first] = entering, leaving
    weights[cycle, first] = -np.inf
    # The others hang from the root for nothing, with nothing below them.
    weights[others], weights[:, others] = -np.inf, -np.inf
    weights[-1, others] = 0.0


def _cycles(above: Ints) -> list[list[int]]:
    """All cycles of nodes, each of which has one above it; that after the last has none."""
    after = np.append(above, len(above))
    for _ in range(len(after).bit_length()):  # so many steps, twice as far each time, that only cycles are left
        after = after[after]
    found, seen = [], {len(above)}
    for start in sorted(set(after.tolist())):
        if start not in seen:
            cycle = [start]
            while above[cycle[-1]] != start:
                cycle.append(int(above[cycle[-1]]))
            found.append(cycle)
            seen.update(cycle)
    return found
