"""Clusters of features in which shares of options hold a cycle: minimum cuts between the root and each feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["violated_clusters"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def _augment(room: Floats, near: Ints, degree: Ints, sink: int, seen: Flags, came: Ints, queue: Ints) -> float:
    """Push flow from the root, the last node, to the sink along a shortest path; how much, 0 if there is none.

    `near` holds the nodes that each node shares an arc with, ascending, and `degree` how many they are.
    """
    root = len(room) - 1
    seen[:] = False
    seen[root], queue[0], head, tail = True, root, 0, 1
    while head < tail and not seen[sink]:
        u = queue[head]
        head += 1
        for k in range(degree[u]):
            v = near[u, k]
            if not seen[v] and room[u, v] > 1e-9:
                seen[v], came[v], queue[tail] = True, u, v
                tail += 1
    if not seen[sink]:
        return 0.0
    least, v = np.inf, sink
    while v != root:
        least = min(least, room[came[v], v])
        v = came[v]
    v = sink
    while v != root:
        room[came[v], v] -= least
        room[v, came[v]] += least
        v = came[v]
    return least


@njit(cache=True, nogil=True)
def violated_clusters(shares: Floats, tolerance: float) -> Flags:
    """Clusters, one line each, whose members have less than 1 - tolerance of their parents outside the cluster.

    ``shares[i, 2 + j]`` is how much feature j is the parent of feature i; what remains of 1 comes from the root.
    """
    n = len(shares)
    found, count = np.zeros((n, n), np.bool_), 0
    covered = np.zeros(n, np.bool_)
    capacity = np.zeros((n + 1, n + 1))
    for i in range(n):
        capacity[n, i] = shares[i, 0] + shares[i, 1]
        for j in range(n):
            capacity[j, i] = shares[i, 2 + j]
    near, degree = np.empty((n + 1, n + 1), np.int64), np.zeros(n + 1, np.int64)
    for u in range(n + 1):
        for v in range(n + 1):
            if capacity[u, v] > 1e-9 or capacity[v, u] > 1e-9:
                near[u, degree[u]] = v
                degree[u] += 1
    seen, came, queue = np.zeros(n + 1, np.bool_), np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for sink in range(n):
        if covered[sink] or capacity[n, sink] > 1.0 - tolerance:
            continue
        room, flow = capacity.copy(), 0.0
        while flow <= 1.0 - tolerance:
            more = _augment(room, near, degree, sink, seen, came, queue)
            if more == 0.0:
                break
            flow += more
        if flow <= 1.0 - tolerance:  # what the root no longer reaches
            for v in range(n):
                found[count, v] = not seen[v]
                covered[v] = covered[v] or not seen[v]
            count += 1
    return found[:count]
