"""Sums of lines of a matrix, and products with them: most of what a step of the simplex method costs.

Four lines at a time, so that what they are added to is read and written a quarter as often; and with sums in any order,
so that a processor can keep many of them going.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import lent

__all__ = ["add_lines", "along_lines", "take_line"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@lent(cache=True, nogil=True, fastmath={"contract"})
def add_lines(matrix: Floats, which: Ints, amounts: Floats, number: int, size: int, out: Floats) -> None:
    """Add the first so many of these lines to `out`, each times its amount; of each line so many numbers."""
    whole = number - number % 4
    for q in range(0, whole, 4):
        i, j, k, m = which[q], which[q + 1], which[q + 2], which[q + 3]
        a, b, c, d = amounts[q], amounts[q + 1], amounts[q + 2], amounts[q + 3]
        for t in range(size):
            out[t] += a * matrix[i, t] + b * matrix[j, t] + c * matrix[k, t] + d * matrix[m, t]
    for q in range(whole, number):
        i, a = which[q], amounts[q]
        for t in range(size):
            out[t] += a * matrix[i, t]


@lent(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def along_lines(matrix: Floats, by: Floats, size: int, out: Floats) -> None:
    """The product of the first lines of a square matrix, so many numbers of each, with a vector."""
    for z in range(size):
        total = 0.0
        for t in range(size):
            total += matrix[z, t] * by[t]
        out[z] = total


@lent(cache=True, nogil=True, fastmath={"contract"})
def take_line(matrix: Floats, own: Floats, amounts: Floats, size: int) -> None:
    """Take a line, times its amount, from each of the first lines of a square matrix."""
    for z in range(size):
        share = amounts[z]
        if share != 0.0:
            for t in range(size):
                matrix[z, t] -= share * own[t]
