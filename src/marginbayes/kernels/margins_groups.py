"""Weights by cell and class, summed over the groups of a table.

All of it is a few operations for each weight, which small arrays would spend on the calls of an array library alone.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["base_inverse", "group_logs", "group_sums"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cells = NDArray[np.int32]

LOWEST = -1e300  # instead of minus infinity, from which nothing can be subtracted


@njit(cache=True, nogil=True)
def group_sums(x: Floats, chunks: Cells, pooled: int, out: Floats) -> None:
    """Sum over each group; the first `pooled` chunks are one group over all classes each."""
    for g in range(len(out)):
        for c in range(out.shape[1]):
            out[g, c] = 0.0
    for i in range(len(x)):
        for c in range(x.shape[1]):
            out[chunks[i], c] += x[i, c]
    for g in range(pooled):
        total = 0.0
        for c in range(out.shape[1]):
            total += out[g, c]
        for c in range(out.shape[1]):
            out[g, c] = total


@njit(cache=True, nogil=True)
def group_logs(x: Floats, chunks: Cells, pooled: int, out: Floats) -> None:
    """Log of the sum of exponentials of each group, whatever their size."""
    top = np.empty_like(out)
    for g in range(len(top)):
        for c in range(out.shape[1]):
            top[g, c] = LOWEST
    for i in range(len(x)):
        for c in range(x.shape[1]):
            top[chunks[i], c] = max(top[chunks[i], c], x[i, c])
    for g in range(pooled):
        highest = LOWEST
        for c in range(out.shape[1]):
            highest = max(highest, top[g, c])
        for c in range(out.shape[1]):
            top[g, c] = highest
    shifted = np.empty_like(x)
    for i in range(len(x)):
        for c in range(x.shape[1]):
            shifted[i, c] = np.exp(x[i, c] - top[chunks[i], c])
    group_sums(shifted, chunks, pooled, out)
    for g in range(len(out)):
        for c in range(out.shape[1]):
            out[g, c] = np.log(out[g, c]) + top[g, c]


@njit(cache=True, nogil=True)
def base_inverse(x: Floats, inverse: Floats, pull: Floats, chunks: Cells, pooled: int, sums: Floats) -> Floats:
    """x times a diagonal, less a term of rank one for each group."""
    scaled, out = pull * x, inverse * x
    group_sums(scaled, chunks, pooled, sums)
    for i in range(len(x)):
        for c in range(x.shape[1]):
            out[i, c] -= pull[i, c] * sums[chunks[i], c]
    return out
