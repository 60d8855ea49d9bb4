"""Dual coordinate descent for the multiclass margin, by index arrays instead of one-hot rows.

`cells[n, f]` is the cell that row n uses in family f, -1 where it uses none; `weights[cell, class]`. The score of a
class is the sum of the weights of the row's cells, plus `scale * base[n, class]`. The multipliers of a row, one for
each class, sum to zero: that of its own class is positive, the others are not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["hinge_sum", "project", "sweep"]

Floats = NDArray[np.float64]
Cells = NDArray[np.int32]
Labels = NDArray[np.int64]

# A row whose multipliers stay the same is left alone for longer and longer, up to 2^PATIENCE sweeps.
PATIENCE = 5


@njit(cache=True, nogil=True)
def _score(cells: Cells, weights: Floats, out: Floats) -> None:
    """Scores of all classes in one row, written to `out`."""
    for c in range(len(out)):
        out[c] = 0.0
    for f in range(len(cells)):
        if cells[f] >= 0:
            for c in range(len(out)):
                out[c] += weights[cells[f], c]


@njit(cache=True, nogil=True)
def project(linear: Floats, curvature: float, label: int, cap: float, out: Floats) -> None:
    """Minimiser of curvature/2 |x|^2 + linear.x over x that sum to zero, x[label] <= cap and the others <= 0.

    It is x_c = min(bound_c, (level - linear_c) / curvature), the level such that they sum to zero (Crammer & Singer
    2001, section 6).
    """
    n = len(out)
    for c in range(n):
        out[c] = linear[c]
    out[label] += curvature * cap
    for i in range(1, n):  # insertion sort, largest first
        value, k = out[i], i
        while k > 0 and out[k - 1] < value:
            out[k] = out[k - 1]
            k -= 1
        out[k] = value
    level, free = out[0] - curvature * cap, 1
    while free < n and level < free * out[free]:
        level += out[free]
        free += 1
    level /= free
    for c in range(n):
        out[c] = min(cap if c == label else 0.0, (level - linear[c]) / curvature)


@njit(cache=True, nogil=True)
def sweep(
    cells: Cells,
    labels: Labels,
    caps: Floats,
    base: Floats,
    scale: float,
    order: NDArray[np.int64],
    multipliers: Floats,
    weights: Floats,
    asleep: NDArray[np.int32],
    patience: NDArray[np.int32],
) -> int:
    """Solve the subproblem of each row that is awake exactly, in this order; the number of rows that were visited.

    `multipliers` and `weights` (the sum over rows of their cells times their multipliers) are changed in place, and so
    is how long each row may sleep.
    """
    n_classes = weights.shape[1]
    score, linear, new = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    visited = 0
    for k in range(len(order)):
        n = order[k]
        if asleep[n] > 0:
            asleep[n] -= 1
            continue
        visited += 1
        _score(cells[n], weights, score)
        used = 0
        for f in range(cells.shape[1]):
            used += cells[n, f] >= 0
        own = labels[n]
        if used == 0:  # no weight can help: all of its cost goes to its worst rival
            worst = own
            for c in range(n_classes):
                multipliers[n, c] = 0.0
                if c != own and (worst == own or base[n, c] > base[n, worst]):
                    worst = c
            if worst != own and scale * (base[n, worst] - base[n, own]) + 1.0 > 0.0:
                multipliers[n, own], multipliers[n, worst] = caps[n], -caps[n]
            continue
        for c in range(n_classes):
            linear[c] = score[c] + scale * base[n, c] - used * multipliers[n, c] + (c != own)
        project(linear, float(used), own, caps[n], new)
        change = 0.0
        for c in range(n_classes):
            score[c] = new[c] - multipliers[n, c]
            change = max(change, abs(score[c]))
        if change <= 1e-12 * caps[n]:
            asleep[n] = (1 << patience[n]) - 1
            patience[n] = min(PATIENCE, patience[n] + 1)
            continue
        patience[n] = 0
        for c in range(n_classes):
            multipliers[n, c] = new[c]
        for f in range(cells.shape[1]):
            if cells[n, f] >= 0:
                for c in range(n_classes):
                    weights[cells[n, f], c] += score[c]
    return visited


@njit(cache=True, nogil=True)
def hinge_sum(
    cells: Cells, labels: Labels, row_weights: Floats, base: Floats, scale: float, target: float, weights: Floats
) -> float:
    """Weighted sum over the rows of max(0, target - margin), the margin being to the best rival."""
    n_classes = weights.shape[1]
    score = np.empty(n_classes)
    loss = 0.0
    for n in range(len(cells)):
        _score(cells[n], weights, score)
        own = score[labels[n]] + scale * base[n, labels[n]]
        worst = 0.0
        for c in range(n_classes):
            if c != labels[n]:
                worst = max(worst, target - own + score[c] + scale * base[n, c])
        loss += row_weights[n] * worst
    return loss
