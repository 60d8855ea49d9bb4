"""Conjugate gradients behind the strong modes of the rows, in compiled code.

The same system as in `solvers.entropic_system`, for few rows and one thread.
"""

from __future__ import annotations

import numpy as np

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.deviations import absolute, relative
from marginbayes.kernels.margins_groups import group_sums
from marginbayes.kernels.margins_system import mode_scores, mode_sums, move_modes, move_rows
from marginbayes.kernels.path_modes import Modes
from marginbayes.kernels.path_values import Change, Floats, Given, Local, class_sums, class_totals

__all__ = ["correct", "solve"]


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
def _base(g: Given, modes: Modes, x: Floats, factor: float, out: Floats) -> None:
    """Add a multiple of the inverse of diagonal and groups, without modes, times x."""
    scaled, sums = np.empty_like(x), np.empty((g.chunks[-1] + 1, x.shape[1]))
    for i in range(len(x)):
        for c in range(x.shape[1]):
            scaled[i, c] = modes.pull[i, c] * x[i, c]
    group_sums(scaled, g.chunks, g.pooled, sums)
    for i in range(len(x)):
        for c in range(x.shape[1]):
            out[i, c] += factor * (modes.inverse[i, c] * x[i, c] - modes.pull[i, c] * sums[g.chunks[i], c])


@njit(cache=True, nogil=True)
def _amounts(g: Given, modes: Modes, factor: Floats, y: Floats) -> Floats:
    """Amounts of the modes for the inverse without them times a right side."""
    base, changes = np.zeros(y.shape[1]), np.empty((len(y) + len(g.usual), y.shape[1]))
    relative(y, g.families, g.usual, changes, base)
    scores = np.empty(len(modes.rows))
    mode_scores(g.starts, g.deviations, modes.rows, modes.first, modes.second, changes, base, scores)
    for i in range(len(scores)):
        scores[i] *= modes.scale[i]
    _substitute(factor, scores)
    for i in range(len(scores)):
        scores[i] *= modes.scale[i]
    return scores


@njit(cache=True, nogil=True)
def _whole_inverse(modes: Modes, factor: Floats, x: Floats, out: Floats) -> None:
    """Write the inverse of the matrix of all weights times x."""
    flat, n_classes = np.empty(x.size), x.shape[1]
    for i in range(x.size):
        flat[i] = modes.scale[i] * x[i // n_classes, i % n_classes]
    _substitute(factor, flat)
    for i in range(x.size):
        out[i // n_classes, i % n_classes] = modes.scale[i] * flat[i]


@njit(cache=True, nogil=True)
def _precondition(g: Given, modes: Modes, factor: Floats, x: Floats) -> tuple[Floats, float]:
    """The inverse of diagonal, groups and strong modes, or of all of it, times x; and the product of both."""
    y = np.zeros_like(x)
    if len(factor) > len(modes.rows):
        _whole_inverse(modes, factor, x, y)
        return y, _product_of(x, y)
    _base(g, modes, x, 1.0, y)
    if len(modes.rows):
        amounts = _amounts(g, modes, factor, y)
        sums, total = np.zeros((len(x) + len(g.usual), x.shape[1])), np.zeros(x.shape[1])
        mode_sums(g.starts, g.deviations, modes.rows, modes.first, modes.second, amounts, sums, total)
        absolute(sums, total, g.families, g.usual)
        _base(g, modes, sums[: len(x)], -1.0, y)
    return y, _product_of(x, y)


@njit(cache=True, nogil=True)
def _product_of(x: Floats, y: Floats) -> float:
    total = 0.0
    for i in range(len(x)):
        for c in range(x.shape[1]):
            total += x[i, c] * y[i, c]
    return total


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
    out: Floats = class_sums(g, scores)
    curved, by_group = np.empty_like(x), np.empty_like(k.kappa)
    for i in range(len(x)):
        for c in range(n_classes):
            curved[i, c] = k.h[i, c] * x[i, c]
    group_sums(curved, g.chunks, g.pooled, by_group)
    for i in range(len(x)):
        for c in range(n_classes):
            chunk = g.chunks[i]
            out[i, c] += curved[i, c] + k.h[i, c] * by_group[chunk, c] / k.kappa[chunk, c]
    return out


@njit(cache=True, nogil=True)
def solve(
    g: Given, k: Local, modes: Modes, factor: Floats, right: Floats, part: float, least: float, most: int, x: Floats
) -> int:
    """Write the solution by conjugate gradients, and return their number; the right side is overwritten.

    They end where the squared norm of the residual is below this part of that of the right side, or below the least,
    or after so many.
    """
    way, size = _precondition(g, modes, factor, right)
    for i in range(len(x)):
        for c in range(x.shape[1]):
            x[i, c] = 0.0
    bar, iterations = max(part * size, least), 0
    while size > bar:
        image = _product(g, k, way)
        step = size / _product_of(way, image)
        for i in range(len(x)):
            for c in range(x.shape[1]):
                x[i, c] += step * way[i, c]
                right[i, c] -= step * image[i, c]
        iterations += 1
        if iterations == most:
            break
        y, new = _precondition(g, modes, factor, right)
        for i in range(len(x)):
            for c in range(x.shape[1]):
                way[i, c] = new / size * way[i, c] + y[i, c]
        size = new
    return iterations


@njit(cache=True, nogil=True)
def correct(g: Given, k: Local, modes: Modes, factor: Floats, residual: Floats, d: Change) -> None:
    """Take a residual, or the strong modes' part of it, out of the change of the multipliers.

    A stiff row turns a tiny error of the weights into a large one of its multipliers.
    """
    y = np.zeros_like(residual)
    if len(factor) > len(modes.rows):
        _whole_inverse(modes, factor, residual, y)
        move_rows(g.labels, k.theta, k.tau, k.total, class_totals(g, y), d.eta, d.spare)
    elif len(modes.rows):
        _base(g, modes, residual, 1.0, y)
        amounts = _amounts(g, modes, factor, y)
        pairs = (modes.starts, modes.rows, modes.first, modes.second)
        move_modes(*pairs, g.labels, k.theta, k.tau, amounts, d.eta, d.spare)
