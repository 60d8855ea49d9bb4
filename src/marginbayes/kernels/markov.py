"""Dual coordinate descent for the multiclass margin, by index arrays instead of one-hot rows.

`cells[n, f]` is the cell that row n uses in family f, -1 where it uses none; `weights[cell, class]`. The score of a
class is the sum of the weights of the row's cells, plus `scale * base[n, class]`. The multipliers of a row, one for
each class, sum to zero: that of its own class is positive, the others are not.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["hinge_sum", "project", "sweep"]

Floats = NDArray[np.float64]
Cells = NDArray[np.int32]
Labels = NDArray[np.int64]

# Columns of a row's habits: sweeps to sleep through; how long it slept before, as a power of two; visits before all
# classes are looked at again; number of classes that are looked at until then.
ASLEEP, PATIENCE, BRIEF, NEAR, N_HABITS = 0, 1, 2, 3, 4
# A row whose multipliers stay the same is left alone for longer and longer, up to 2^MOST_PATIENCE sweeps.
MOST_PATIENCE = 5
# Rivals that are further than this from having a multiplier are left out of a row's next visits, this many of them.
FAR, BRIEF_VISITS = 0.1, 8


@njit(cache=True, nogil=True)
def _score(cells: Cells, weights: Floats, out: Floats) -> int:
    """Scores of all classes in one row, written to `out`; how many cells the row has."""
    used = 0
    for c in range(len(out)):
        out[c] = 0.0
    for f in range(len(cells)):
        if cells[f] >= 0:
            used += 1
            for c in range(len(out)):
                out[c] += weights[cells[f], c]
    return used


@njit(cache=True, nogil=True)
def _score_some(cells: Cells, weights: Floats, classes: NDArray[np.int16], out: Floats) -> int:
    """The same for some classes only."""
    used = 0
    for a in range(len(classes)):
        out[a] = 0.0
    for f in range(len(cells)):
        if cells[f] >= 0:
            used += 1
            line = weights[cells[f]]
            for a in range(len(classes)):
                out[a] += line[classes[a]]
    return used


@njit(cache=True, nogil=True)
def project(linear: Floats, curvature: float, label: int, cap: float, out: Floats) -> float:
    """Minimiser of curvature/2 |x|^2 + linear.x over x that sum to zero, x[label] <= cap and the others <= 0.

    It is x_c = min(bound_c, (level - linear_c) / curvature), the level such that they sum to zero (Crammer & Singer
    2001, section 6). The level is returned.
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
    return level


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
    habits: NDArray[np.int32],
    near: NDArray[np.int16],
) -> int:
    """Solve the subproblem of each row that is awake exactly, in this order; the number of rows that were visited.

    `multipliers` and `weights` (the sum over rows of their cells times their multipliers) are changed in place, and so
    are the `habits` of each row (all zero at the start) and the classes that are `near`, the own one first.
    """
    n_classes = weights.shape[1]
    score, linear, new = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    visited = 0
    for k in range(len(order)):
        n = order[k]
        habit, mine = habits[n], near[n]
        if habit[ASLEEP] > 0:
            habit[ASLEEP] -= 1
            continue
        visited += 1
        whole = habit[BRIEF] == 0
        if whole:
            _all_near(labels[n], mine)
            habit[NEAR] = n_classes
            used = _score(cells[n], weights, new)
            for a in range(n_classes):
                score[a] = new[mine[a]]
        else:
            habit[BRIEF] -= 1
            used = _score_some(cells[n], weights, mine[: habit[NEAR]], score)
        if used == 0:
            continue
        size = habit[NEAR]
        for a in range(size):
            c = mine[a]
            linear[a] = score[a] + scale * base[n, c] - used * multipliers[n, c] + (a > 0)
        level = project(linear[:size], float(used), 0, caps[n], new[:size])
        change = 0.0
        for a in range(size):
            score[a] = new[a] - multipliers[n, mine[a]]
            change = max(change, abs(score[a]))
        if change <= 1e-12 * caps[n]:
            habit[BRIEF] = 0
            if whole:
                habit[ASLEEP] = (1 << habit[PATIENCE]) - 1
                habit[PATIENCE] = min(MOST_PATIENCE, habit[PATIENCE] + 1)
            continue
        habit[PATIENCE] = 0
        for a in range(size):
            multipliers[n, mine[a]] = new[a]
        for f in range(cells.shape[1]):
            if cells[n, f] >= 0:
                line = weights[cells[n, f]]
                for a in range(size):
                    line[mine[a]] += score[a]
        if whole:
            habit[NEAR] = _keep_near(linear, level, mine)
            habit[BRIEF] = BRIEF_VISITS if habit[NEAR] < n_classes else 0
    return visited


@njit(cache=True, nogil=True)
def _all_near(own: int, near: NDArray[np.int16]) -> None:
    """All classes, the own one first."""
    for a in range(len(near)):
        near[a] = a
    near[0], near[own] = own, 0


@njit(cache=True, nogil=True)
def _keep_near(linear: Floats, level: float, near: NDArray[np.int16]) -> int:
    """Move the classes that have a multiplier, or nearly so, to the front; how many they are."""
    kept = 1
    for a in range(1, len(near)):
        if linear[a] > level - FAR:
            near[kept], near[a] = near[a], near[kept]
            kept += 1
    return kept


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
