"""Maximum-weight branchings: the best forest in which every edge has a direction and every node at most one parent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["maximum_branching"]

Floats = NDArray[np.float64]


def maximum_branching(weights: Floats) -> list[int]:
    """Parent of each node (-1: none) in the branching of greatest weight; ``weights[parent, child]``.

    Chu & Liu's and Edmonds' algorithm on a dense matrix: every node takes its best parent, a cycle is contracted to
    one node, and what was chosen for the contracted graph says where the cycle is opened. Edges whose weight is not
    positive are never used. O(n^3) at worst; ties go to the smaller parent.
    """
    weights = np.array(weights, np.float64)
    np.fill_diagonal(weights, -np.inf)
    return _branching(weights)


def _branching(weights: Floats) -> list[int]:
    parents = [int(p) if w > 0 else -1 for p, w in zip(weights.argmax(axis=0), weights.max(axis=0), strict=True)]
    cycle = _cycle(parents)
    if not cycle:
        return parents
    inside = np.zeros(len(parents), bool)
    inside[cycle] = True
    outside = np.flatnonzero(~inside)
    members = np.array(cycle)
    own = weights[[parents[v] for v in cycle], cycle]  # weight of each edge of the cycle
    # An edge into the cycle replaces one of its edges; taking none means leaving out the lightest.
    entering = weights[np.ix_(outside, members)] - own + own.min()
    leaving = weights[np.ix_(members, outside)]
    smaller = np.full((len(outside) + 1, len(outside) + 1), -np.inf)
    smaller[:-1, :-1] = weights[np.ix_(outside, outside)]
    smaller[:-1, -1] = entering.max(axis=1)
    smaller[-1, :-1] = leaving.max(axis=0)
    found = _branching(smaller)
    for child, parent in zip(outside, found[:-1], strict=True):
        if parent < 0:
            parents[child] = -1
        elif parent < len(outside):
            parents[child] = int(outside[parent])
        else:
            parents[child] = int(members[leaving[:, np.flatnonzero(outside == child)[0]].argmax()])
    if found[-1] < 0:
        parents[cycle[int(own.argmin())]] = -1
    else:
        parents[cycle[int(entering[found[-1]].argmax())]] = int(outside[found[-1]])
    return parents


def _cycle(parents: list[int]) -> list[int]:
    """The nodes of one cycle, or nothing."""
    state = [0] * len(parents)  # 0: not visited, k: visited on the k-th walk
    for start in range(len(parents)):
        node = start
        while node >= 0 and not state[node]:
            state[node] = start + 1
            node = parents[node]
        if node >= 0 and state[node] == start + 1:
            cycle, step = [node], parents[node]
            while step != node:
                cycle.append(step)
                step = parents[step]
            return cycle
    return []
