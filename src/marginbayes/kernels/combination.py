"""Margins of all rows against all rivals under many weight matrices at once, by index arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["member_margins"]

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def member_margins(cells: NDArray[np.int32], weights: Floats, labels: NDArray[np.int64], margins: Floats) -> None:
    """Score of the label minus score of the rival, for each row, rival and member, into `margins`.

    `cells[n, f]` is the cell of family f in row n, -1 where the family adds nothing; `weights[cell, class, member]`;
    the rivals of a row are the classes other than its label, in order.
    """
    n_classes, n_members = weights.shape[1], weights.shape[2]
    scores = np.empty((n_classes, n_members))
    for n in range(len(cells)):
        scores[:] = 0.0
        for f in range(cells.shape[1]):
            if cells[n, f] >= 0:
                _add(scores, weights[cells[n, f]])
        label = labels[n]
        for c in range(n_classes):
            if c != label:
                rival = c if c < label else c - 1
                for m in range(n_members):
                    margins[n, rival, m] = scores[label, m] - scores[c, m]


@njit(cache=True, nogil=True)
def _add(total: Floats, part: Floats) -> None:
    for c in range(total.shape[0]):
        for m in range(total.shape[1]):
            total[c, m] += part[c, m]
