"""Pieces of the linear program of hinges: presolve, products with pairs (row, rival class), and the Newton matrix.

`cells[n, f]` is the cell that row n uses in family f, -1 where it uses none; `weights[cell, class]`. The margin of a
pair is the score of the row's own class less that of the rival.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["cascade", "gather_pairs", "lower_level", "newton_matrix", "pair_margins"]

Floats = NDArray[np.float64]
Cells = NDArray[np.int32]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True)
def cascade(cells: Cells, labels: Integers, levels: NDArray[np.int32], killed: NDArray[np.int32]) -> int:
    """Satisfy pairs by weights that nobody needs, level by level; the number of levels.

    A weight (cell, class) that no live row of that class uses can be lowered as far as one likes: it satisfies every
    pair with this rival whose row uses the cell. A row with all its pairs satisfied lives no more, which frees weights
    of the next level, lowered by far less. `levels` and `killed` (both zero at the start) get the level of each weight
    that is lowered and of each pair that is satisfied by it; `killed` of the own class is -1.
    """
    n_rows, n_classes = killed.shape
    used = np.zeros(levels.shape, np.int64)
    left = np.full(n_rows, n_classes - 1)
    for n in range(n_rows):
        killed[n, labels[n]] = -1
        for f in range(cells.shape[1]):
            if cells[n, f] >= 0:
                used[cells[n, f], labels[n]] += 1
    level, found = 0, True
    while found:
        level += 1
        found = False
        for n in range(n_rows):
            if left[n] > 0 and _kill(cells[n], used, level, levels, killed[n]):
                found = True
        for n in range(n_rows):
            if left[n] > 0:
                left[n] = 0
                for c in range(n_classes):
                    left[n] += killed[n, c] == 0
                if left[n] == 0:
                    for f in range(cells.shape[1]):
                        if cells[n, f] >= 0:
                            used[cells[n, f], labels[n]] -= 1
    return level - 1


@njit(cache=True, nogil=True)
def _kill(cells: Cells, used: Integers, level: int, levels: NDArray[np.int32], killed: NDArray[np.int32]) -> bool:
    """Satisfy the live pairs of one row by weights that nobody uses; whether there was one."""
    found = False
    for c in range(len(killed)):
        if killed[c] != 0:
            continue
        for f in range(len(cells)):
            if cells[f] >= 0 and used[cells[f], c] == 0:
                killed[c] = level
                found = True
                if levels[cells[f], c] == 0:
                    levels[cells[f], c] = level
    return found


@njit(cache=True, nogil=True)
def lower_level(
    cells: Cells,
    labels: Integers,
    levels: NDArray[np.int32],
    killed: NDArray[np.int32],
    level: int,
    weights: Floats,
) -> float:
    """How far the weights of a level must go down so that each pair which they satisfy has margin 1."""
    depth = 0.0
    for n in range(len(cells)):
        for c in range(killed.shape[1]):
            if killed[n, c] != level:
                continue
            margin, count = 0.0, 0
            for f in range(cells.shape[1]):
                if cells[n, f] >= 0:
                    margin += weights[cells[n, f], labels[n]] - weights[cells[n, f], c]
                    count += levels[cells[n, f], c] == level
            depth = max(depth, (1.0 - margin) / count)
    return depth


@njit(cache=True, nogil=True)
def pair_margins(
    cells: Cells, labels: Integers, start: Integers, rivals: Integers, weights: Floats, out: Floats
) -> None:
    """Margins of pairs, written to `out`: those of row n are start[n] .. start[n + 1] - 1."""
    score = np.empty(weights.shape[1])
    for n in range(len(cells)):
        for c in range(len(score)):
            score[c] = 0.0
        for f in range(cells.shape[1]):
            if cells[n, f] >= 0:
                for c in range(len(score)):
                    score[c] += weights[cells[n, f], c]
        for p in range(start[n], start[n + 1]):
            out[p] = score[labels[n]] - score[rivals[p]]


@njit(cache=True, nogil=True)
def gather_pairs(
    cells: Cells, labels: Integers, start: Integers, rivals: Integers, values: Floats, out: Floats
) -> None:
    """Add each pair's value to its row's cells at the own class, and take it from them at the rival."""
    for n in range(len(cells)):
        for f in range(cells.shape[1]):
            cell = cells[n, f]
            if cell >= 0:
                for p in range(start[n], start[n + 1]):
                    out[cell, labels[n]] += values[p]
                    out[cell, rivals[p]] -= values[p]


@njit(cache=True, nogil=True)
def newton_matrix(
    cells: Cells,
    labels: Integers,
    start: Integers,
    rivals: Integers,
    curvature: Floats,
    slack_curvature: Floats,
    total: Floats,
    classes: int,
    out: Floats,
) -> None:
    """Lower triangle of the sum over rows of (cells x cells) times the matrix of its pairs, added to `out`.

    With d the pairs' curvatures, e the slack's and t = e + sum(d) the total, that matrix is diag(d) - d d'/t over the
    rivals, and what makes rows and columns sum to zero at the own class. Its diagonal is d_c (e + sum of the other d) /
    t: the same as d_c - d_c^2 / t but without the cancellation. Variable (cell, class) is number
    cell * classes + class; a class from `classes` on has weights zero and is no variable.
    """
    most = 1
    for n in range(len(cells)):
        most = max(most, start[n + 1] - start[n] + 1)
    block = np.zeros((most, most))
    where = np.empty(most, np.int64)
    mine = np.empty(cells.shape[1], np.int64)
    for n in range(len(cells)):
        size = _block(curvature[start[n] : start[n + 1]], slack_curvature[n], total[n], block)
        where[0] = labels[n]
        for a in range(1, size):
            where[a] = rivals[start[n] + a - 1]
        used = 0
        for f in range(cells.shape[1]):
            if cells[n, f] >= 0:
                mine[used] = cells[n, f]
                used += 1
        for i in range(used):
            for j in range(used):
                if mine[j] > mine[i]:
                    continue
                for a in range(size):
                    if where[a] >= classes:
                        continue
                    line = out[mine[i] * classes + where[a]]
                    base = mine[j] * classes
                    for b in range(size):
                        if where[b] < classes:
                            line[base + where[b]] += block[a, b]


@njit(cache=True, nogil=True)
def _block(d: Floats, e: float, total: float, out: Floats) -> int:
    """Matrix of one row's own class and rivals; its size."""
    own = 0.0
    for a in range(len(d)):
        others = e
        for b in range(len(d)):
            if b != a:
                others += d[b]
                out[a + 1, b + 1] = -d[a] * d[b] / total
        out[a + 1, a + 1] = d[a] * others / total
        out[0, a + 1] = out[a + 1, 0] = -d[a] * e / total
        own += d[a] * e / total
    out[0, 0] = own
    return len(d) + 1
