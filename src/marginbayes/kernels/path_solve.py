"""Conjugate gradients behind the strong modes of the rows, in compiled code.

The same system as in `solvers.entropic_system`, for few rows and one thread.
"""

from __future__ import annotations

import numpy as np

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.deviations import absolute, relative
from marginbayes.kernels.margins_groups import base_inverse, group_sums
from marginbayes.kernels.margins_system import mode_scores, mode_sums, move_modes
from marginbayes.kernels.path_modes import Modes
from marginbayes.kernels.path_values import Change, Floats, Given, Local, add_spread, class_sums, class_totals

__all__ = ["correct", "solve"]

MOST_ITERATIONS = 3000


@njit(cache=True, nogil=True)
def _substitute(factor: Floats, x: Floats) -> None:
    """Solve with a lower Cholesky factor, in place."""
    for i in range(len(x)):
        x[i] = (x[i] - np.dot(factor[i, :i], x[:i])) / factor[i, i]
    for i in range(len(x) - 1, -1, -1):
        x[i] /= factor[i, i]
        own = x[i]
        line = factor[i]
        for j in range(i):
            x[j] -= own * line[j]


@njit(cache=True, nogil=True)
def _base(g: Given, modes: Modes, x: Floats) -> Floats:
    return base_inverse(x, modes.inverse, modes.pull, g.chunks, g.pooled, np.empty((g.chunks[-1] + 1, x.shape[1])))


@njit(cache=True, nogil=True)
def _amounts(g: Given, modes: Modes, factor: Floats, y: Floats) -> Floats:
    """Amounts of the modes for the inverse without them times a right side."""
    base, changes = np.zeros(y.shape[1]), np.empty((len(y) + len(g.usual), y.shape[1]))
    relative(y, g.families, g.usual, changes, base)
    scores = np.empty(len(modes.rows))
    mode_scores(g.starts, g.deviations, modes.rows, modes.first, modes.second, changes, base, scores)
    scores *= modes.scale
    _substitute(factor, scores)
    scores *= modes.scale
    return scores


@njit(cache=True, nogil=True)
def _precondition(g: Given, modes: Modes, factor: Floats, x: Floats) -> Floats:
    """The inverse of diagonal, groups and strong modes times x."""
    y = _base(g, modes, x)
    if len(modes.rows) == 0:
        return y
    amounts = _amounts(g, modes, factor, y)
    sums, total = np.zeros((len(x) + len(g.usual), x.shape[1])), np.zeros(x.shape[1])
    mode_sums(g.starts, g.deviations, modes.rows, modes.first, modes.second, amounts, sums, total)
    absolute(sums, total, g.families, g.usual)
    return y - _base(g, modes, sums[: len(x)])


@njit(cache=True, nogil=True)
def _product(g: Given, k: Local, x: Floats) -> Floats:
    """The matrix of the system times x."""
    scores = class_totals(g, x)
    n_classes = x.shape[1]
    for n in range(len(scores)):
        own, mean = scores[n, g.labels[n]], 0.0
        for c in range(n_classes):
            mean += k.theta[n, c] * (own - scores[n, c])
        mean /= k.total[n]
        for c in range(n_classes):
            scores[n, c] = k.theta[n, c] * (mean - own + scores[n, c])
        scores[n, g.labels[n]] = mean * k.tau[n]
    out = class_sums(g, scores)
    by_group = np.empty_like(k.kappa)
    group_sums(k.h * x, g.chunks, g.pooled, by_group)
    by_group /= k.kappa
    for i in range(len(x)):
        for c in range(n_classes):
            out[i, c] += k.h[i, c] * (x[i, c] + by_group[g.chunks[i], c])
    return out


@njit(cache=True, nogil=True)
def solve(
    g: Given, k: Local, modes: Modes, factor: Floats, right: Floats, part: float, least: float
) -> tuple[Floats, int]:
    """Solution by conjugate gradients, and their number.

    They end where the squared norm of the residual is below this part of that of the right side, or below the least.
    """
    x, residual = np.zeros_like(right), right.copy()
    way = _precondition(g, modes, factor, residual)
    size = (residual * way).sum()
    bar, iterations = max(part * size, least), 0
    while size > bar and iterations < MOST_ITERATIONS:
        image = _product(g, k, way)
        step = size / (way * image).sum()
        x += step * way
        residual -= step * image
        y = _precondition(g, modes, factor, residual)
        before = size
        size = (residual * y).sum()
        way *= size / before
        way += y
        iterations += 1
    return x, iterations


@njit(cache=True, nogil=True)
def correct(g: Given, k: Local, modes: Modes, factor: Floats, residual: Floats, change: Change) -> None:
    """Take the strong modes' part of a residual out of the change of the multipliers."""
    if len(modes.rows):
        amounts = _amounts(g, modes, factor, _base(g, modes, residual))
        pairs = (modes.starts, modes.rows, modes.first, modes.second)
        move_modes(*pairs, g.labels, k.theta, k.tau, amounts, change.eta, change.spare)
