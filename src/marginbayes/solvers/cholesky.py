"""A Newton system factorised in the memory it was written to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

__all__ = ["factorised", "solved"]

Floats = NDArray[np.float64]

# Of the largest diagonal entry, added to all of them: directions in which nothing moves have no curvature of their own.
RIDGES = (1e-14, 1e-12, 1e-10, 1e-8)


def factorised(memory: Floats, fill: Callable[[Floats], object]) -> Floats:
    """Cholesky factor of the matrix whose lower triangle `fill` adds to zeros; the matrix is overwritten.

    The ridge on the diagonal grows until rounding lets the factorisation pass.
    """
    for ridge in RIDGES:
        memory[:] = 0.0
        fill(memory)
        diagonal = np.einsum("ii->i", memory)
        diagonal += ridge * max(1e-300, float(diagonal.max(initial=0.0)))
        if memory.size == 0:
            return memory
        # Rows of the lower triangle are columns of the upper one, as LAPACK counts: nothing is copied.
        factor, failed = dpotrf(memory.T, lower=0, clean=0, overwrite_a=1)
        if not failed:
            return np.asarray(factor)
    raise FloatingPointError("the Newton matrix is not positive definite")


def solved(factor: Floats, right: Floats) -> Floats:
    """Solution for one or several right sides (columns)."""
    return np.asarray(dpotrs(factor, right, lower=0)[0]) if right.size else right
