"""Spanning trees."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["maximum_spanning_forest"]


def maximum_spanning_forest(weights: NDArray[np.float64], root: int = 0) -> list[int]:
    """Parent of each node (-1: none) in the spanning forest of greatest weight over the positive weights.

    Prim's algorithm on a dense symmetric matrix, O(n^2). The tree of `root` is directed away from it, every other tree
    away from its smallest node; ties go to the smaller index.
    """
    n = len(weights)
    parents = np.full(n, -1)
    best = np.zeros(n)  # weight of the best edge from the tree to each node outside
    source = np.full(n, -1)
    outside = np.ones(n, bool)
    node = root
    for _ in range(n):
        outside[node] = False
        parents[node] = source[node]
        better = outside & (weights[node] > best)
        best[better] = weights[node][better]
        source[better] = node
        candidates = np.where(outside, best, -1.0)
        node = int(np.argmax(candidates))
        if candidates[node] <= 0.0 and outside.any():
            node = int(np.argmax(outside))  # no edge leads outside: a new tree
    return [int(p) for p in parents]
