"""Averaged one-dependence estimators: the log joint of each row, averaged over the features as parents."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["average_joint"]

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True)
def average_joint(
    rows: NDArray[np.int64],
    cards: NDArray[np.int64],
    start: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    base: Floats,
    pair: Floats,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Log of the mean over the parents i of P(c, x_i) prod_j P(x_j | c, x_i), and which rows had a parent at all.

    `start[j]` numbers the first level of feature j among all levels; `allowed[l]` says whether level l may be a parent;
    `base[l, c]` is log P(c, level l), `pair[l, m, c]` log P(level m | c, level l). Missing cells are left out.
    """
    n_features, n_classes = len(cards), base.shape[1]
    joint = np.full((len(rows), n_classes), -np.inf)
    served = np.zeros(len(rows), np.bool_)
    present = np.empty(n_features, np.int64)
    one = np.empty(n_classes)
    sums = np.empty(n_classes)
    for n in range(len(rows)):
        count, parents = 0, 0
        for j in range(n_features):
            if rows[n, j] < cards[j]:
                present[count] = start[j] + rows[n, j]
                count += 1
        sums[:] = 0.0
        for i in range(count):
            level = present[i]
            if not allowed[level]:
                continue
            parents += 1
            for c in range(n_classes):
                one[c] = base[level, c]
            for j in range(count):
                if j != i:
                    other = present[j]
                    for c in range(n_classes):
                        one[c] += pair[level, other, c]
            # Log-sum-exp over the parents, one after the other, with a running maximum for each class.
            for c in range(n_classes):
                if one[c] > joint[n, c]:
                    sums[c] = sums[c] * math.exp(joint[n, c] - one[c]) + 1.0
                    joint[n, c] = one[c]
                elif one[c] > -np.inf:
                    sums[c] += math.exp(one[c] - joint[n, c])
        if parents:
            served[n] = True
            for c in range(n_classes):
                if sums[c] > 0.0:
                    joint[n, c] += math.log(sums[c] / parents)
    return joint, served
