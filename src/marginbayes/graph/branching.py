"""Maximum-weight branchings: the best forest in which every edge has a direction and every node at most one parent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["maximum_branching"]

Floats = NDArray[np.float64]


def maximum_branching(weights: Floats) -> list[int]:
    """Parent of each node (-1: none) in the branching of greatest weight; ``weights[parent, child]``.

    Edmonds' algorithm on a dense matrix, O(n^2). Edges whose weight is not positive are never used. Ties go to the
    smaller parent.
    """
    from marginbayes.kernels.branching import maximum_arborescence

    n = len(weights)
    edges = np.full((n + 1, n), -np.inf)
    edges[:n] = np.where(np.asarray(weights) > 0, weights, -np.inf)
    np.fill_diagonal(edges, -np.inf)
    edges[n] = 0.0  # a root above all nodes: to hang below it is to have no parent
    parents = np.empty(n, np.int64)
    maximum_arborescence(edges, parents, np.empty((0, n)))
    return [-1 if p == n else int(p) for p in parents]
