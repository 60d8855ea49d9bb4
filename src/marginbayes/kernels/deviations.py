"""Rows as deviations from the usual row: scores from weights, and sums by cell.

Of each family the usual cell is left out and its weight put into a base score: `cells[starts[n] : starts[n + 1]]` are
the cells that row n has instead of the usual ones, and its scores are `base` plus `changes[cell]` for each of them; one
column for each class. Behind the cells of all families each family has one for rows in which it adds nothing. Columns
behind the classes fill a row up to what the processor adds at once; they are zero and stay zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["absolute", "gather", "relative", "scatter"]

Floats = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]


@njit(cache=True, nogil=True)
def relative(weights: Floats, families: Indices, usual: Indices, changes: Floats, base: Floats) -> None:
    """Weights less that of the usual cell of their family, behind them minus the latter, and its sum over families.

    All are written in the columns of the classes; the base is added to.
    """
    n, n_classes = weights.shape
    for f in range(len(usual)):
        at = usual[f]
        for c in range(n_classes):
            own = weights[at, c] if at < n else 0.0
            changes[n + f, c] = -own
            base[c] += own
    for i in range(n):
        nothing = n + families[i]
        for c in range(n_classes):
            changes[i, c] = weights[i, c] + changes[nothing, c]


@njit(cache=True, nogil=True)
def absolute(sums: Floats, total: Floats, families: Indices, usual: Indices) -> None:
    """The transpose, in place: a usual cell has what its family's other cells leave of the total over all rows."""
    n = len(families)
    for f in range(len(usual)):
        at, nothing = usual[f], n + f
        for c in range(len(total)):
            sums[at, c] = total[c] if at == nothing else total[c] - sums[nothing, c]
    for i in range(n):
        at = usual[families[i]]
        if i != at:
            for c in range(len(total)):
                sums[at, c] -= sums[i, c]


@njit(cache=True, nogil=True)
def gather(starts: Indices, cells: Indices, base: Floats, changes: Floats, scores: Floats) -> None:
    """Write the scores of all classes, for every row."""
    width = changes.shape[1]
    for n in range(len(scores)):
        score = scores[n]
        for k in range(width):
            score[k] = base[k]
        at, end = starts[n], starts[n + 1]
        while at + 4 <= end:  # four at once: the sum waits for itself less often
            a, b, c, d = changes[cells[at]], changes[cells[at + 1]], changes[cells[at + 2]], changes[cells[at + 3]]
            for k in range(width):
                score[k] += (a[k] + b[k]) + (c[k] + d[k])
            at += 4
        while at < end:
            a = changes[cells[at]]
            for k in range(width):
                score[k] += a[k]
            at += 1


@njit(cache=True, nogil=True)
def scatter(starts: Indices, cells: Indices, values: Floats, sums: Floats, total: Floats) -> None:
    """The transpose: add the values of each row to `total`, and to the sums of all cells by which it deviates."""
    width = sums.shape[1]
    for n in range(len(values)):
        value = values[n]
        for k in range(width):
            total[k] += value[k]
        for at in range(starts[n], starts[n + 1]):
            cell = sums[cells[at]]
            for k in range(width):
                cell[k] += value[k]
