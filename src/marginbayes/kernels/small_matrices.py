"""Products, Gram matrices and Cholesky factors of small matrices by plain loops, of others by the matrix library."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["FEW", "add_times", "add_transposed", "factorise", "gram", "solve"]

Floats = NDArray[np.float64]

# With fewer columns than this plain loops are faster than the matrix library.
FEW = 48


@njit(cache=True, nogil=True)
def add_times(matrix: Floats, x: Floats, out: Floats) -> None:
    """Add matrix x to `out`."""
    if len(x) >= FEW:
        out += np.dot(matrix, x)
        return
    for r in range(len(matrix)):
        # Four sums, so that none has to wait for the one before it.
        one, two, three, four, k = 0.0, 0.0, 0.0, 0.0, 0
        while k + 3 < len(x):
            one += matrix[r, k] * x[k]
            two += matrix[r, k + 1] * x[k + 1]
            three += matrix[r, k + 2] * x[k + 2]
            four += matrix[r, k + 3] * x[k + 3]
            k += 4
        while k < len(x):
            one += matrix[r, k] * x[k]
            k += 1
        out[r] += (one + two) + (three + four)


@njit(cache=True, nogil=True)
def add_transposed(matrix: Floats, y: Floats, out: Floats) -> None:
    """Add matrix' y to `out`."""
    if len(out) >= FEW:
        out += np.dot(matrix.T, y)
        return
    for r in range(len(matrix)):
        for k in range(len(out)):
            out[k] += matrix[r, k] * y[r]


@njit(cache=True, nogil=True)
def gram(lines: Floats, out: Floats) -> None:
    """The lower half of lines' lines; of many columns by halves, for one quarter is the mirror of another."""
    p = lines.shape[1]
    if p >= FEW:
        half = p // 2
        left, right = np.ascontiguousarray(lines[:, :half]), np.ascontiguousarray(lines[:, half:])
        out[:half, :half] = np.dot(left.T, left)
        out[half:, half:] = np.dot(right.T, right)
        out[half:, :half] = np.dot(right.T, left)
        return
    out[:] = 0.0
    for n in range(0, len(lines) - 3, 4):  # four at once: the entries are read and written a quarter as often
        for k in range(p):
            one, two, three, four = lines[n, k], lines[n + 1, k], lines[n + 2, k], lines[n + 3, k]
            for j in range(p):
                out[k, j] += (one * lines[n, j] + two * lines[n + 1, j]) + (
                    three * lines[n + 2, j] + four * lines[n + 3, j]
                )
    for n in range(len(lines) - len(lines) % 4, len(lines)):
        for k in range(p):
            for j in range(p):
                out[k, j] += lines[n, k] * lines[n, j]


@njit(cache=True, nogil=True)
def factorise(matrix: Floats) -> bool:
    """Make the lower half a Cholesky factor; whether the matrix is positive definite to working precision."""
    p = len(matrix)
    if p >= FEW:
        try:
            matrix[:] = np.linalg.cholesky(matrix)
        except Exception:  # noqa: BLE001 - compiled code knows no other
            return False
        return True
    for k in range(p):
        for j in range(k + 1):
            total = matrix[k, j]
            for i in range(j):
                total -= matrix[k, i] * matrix[j, i]
            if j < k:
                matrix[k, j] = total / matrix[j, j]
            elif total > 0.0:
                matrix[k, k] = np.sqrt(total)
            else:
                return False
    return True


@njit(cache=True, nogil=True)
def solve(factor: Floats, right: Floats) -> None:
    """Solve factor factor' y = right in place."""
    n = len(right)
    for i in range(n):
        total = right[i]
        for k in range(i):
            total -= factor[i, k] * right[k]
        right[i] = total / factor[i, i]
    for i in range(n - 1, -1, -1):
        right[i] /= factor[i, i]
        for k in range(i):
            right[k] -= factor[i, k] * right[i]
