"""Scores of all classes and the gradient of the conditional likelihood, by index arrays instead of one-hot rows."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["conditional_loss"]

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def conditional_loss(
    cells: NDArray[np.int32], weights: Floats, labels: NDArray[np.int64], row_weights: Floats, gradient: Floats
) -> float:
    """Sum over the rows of -log P(label | row), and its gradient by every weight, added to `gradient`.

    `cells[n, f]` is the cell of family f in row n, -1 where the family adds nothing; `weights[cell, class]`.
    """
    n_classes = weights.shape[1]
    score = np.empty(n_classes)
    loss = 0.0
    for n in range(len(cells)):
        for c in range(n_classes):
            score[c] = 0.0
        for f in range(cells.shape[1]):
            cell = cells[n, f]
            if cell >= 0:
                for c in range(n_classes):
                    score[c] += weights[cell, c]
        top = score[0]
        for c in range(1, n_classes):
            top = max(top, score[c])
        total = 0.0
        own = score[labels[n]] - top
        for c in range(n_classes):
            score[c] = math.exp(score[c] - top)
            total += score[c]
        loss += row_weights[n] * (math.log(total) - own)
        scale = row_weights[n] / total
        for c in range(n_classes):
            score[c] *= scale
        score[labels[n]] -= row_weights[n]
        for f in range(cells.shape[1]):
            cell = cells[n, f]
            if cell >= 0:
                for c in range(n_classes):
                    gradient[cell, c] += score[c]
    return loss
