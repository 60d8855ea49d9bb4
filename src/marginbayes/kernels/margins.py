"""Scores of all classes from index arrays, and the way back: the pair of sums that every margin learner is made of.

`cells[n, f]` is the cell that row n uses in block f, -1 where the block adds nothing; `weights[cell, class]`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["add_coefficients", "add_weights", "class_scores", "rival_margins"]

Floats = NDArray[np.float64]
Cells = NDArray[np.int32]


@njit(cache=True, nogil=True)
def class_scores(cells: Cells, weights: Floats, scores: Floats) -> None:
    """Set `scores[n, c]` to the sum of `weights[cells[n, f], c]` over the blocks f.

    Sums of four classes at a time stay in registers.
    """
    n_classes = weights.shape[1]
    fours = n_classes - n_classes % 4
    for n in range(len(cells)):
        for c in range(0, fours, 4):
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for f in range(cells.shape[1]):
                cell = cells[n, f]
                if cell >= 0:
                    s0 += weights[cell, c]
                    s1 += weights[cell, c + 1]
                    s2 += weights[cell, c + 2]
                    s3 += weights[cell, c + 3]
            scores[n, c], scores[n, c + 1], scores[n, c + 2], scores[n, c + 3] = s0, s1, s2, s3
        for c in range(fours, n_classes):
            total = 0.0
            for f in range(cells.shape[1]):
                if cells[n, f] >= 0:
                    total += weights[cells[n, f], c]
            scores[n, c] = total


@njit(cache=True, nogil=True)
def add_coefficients(cells: Cells, coefficients: Floats, out: Floats) -> None:
    """Add `coefficients[n, c]` to `out[cells[n, f], c]` for every row and block: the transpose of `class_scores`.

    With the multipliers of the rivals negated and their sum in the place of the row's own class this is the product
    of the transposed matrix of score differences with the multipliers.
    """
    n_classes = out.shape[1]
    for n in range(len(cells)):
        idle = True
        for c in range(n_classes):
            if coefficients[n, c] != 0.0:
                idle = False
                break
        if idle:
            continue
        for f in range(cells.shape[1]):
            cell = cells[n, f]
            if cell >= 0:
                for c in range(n_classes):
                    out[cell, c] += coefficients[n, c]


@njit(cache=True, nogil=True)
def add_weights(cells: Cells, labels: NDArray[np.int64], weights: Floats, out: Floats) -> None:
    """Add the weight of each row to its own class in all of its cells."""
    for n in range(len(cells)):
        for f in range(cells.shape[1]):
            if cells[n, f] >= 0:
                out[cells[n, f], labels[n]] += weights[n]


@njit(cache=True, nogil=True)
def rival_margins(scores: Floats, labels: NDArray[np.int64], margins: Floats) -> None:
    """Set `margins[n]` to the score of the row's own class less that of the best other class; infinite without one."""
    for n in range(len(scores)):
        best = -np.inf
        for c in range(scores.shape[1]):
            if c != labels[n]:
                best = max(best, scores[n, c])
        margins[n] = scores[n, labels[n]] - best
