"""One step of the path in compiled code: what its point is like, predictor, corrector, and where it leads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.margins_groups import group_sums
from marginbayes.kernels.margins_rows import (
    advance,
    curvature,
    direction,
    product_sum,
    products_ahead,
    right_side,
    row_steps,
    smooth_logs,
)
from marginbayes.kernels.path_modes import Modes, system_matrix
from marginbayes.kernels.path_solve import correct, solve
from marginbayes.kernels.path_values import (
    Change,
    Floats,
    Given,
    Local,
    Point,
    appraise,
    class_sums,
    class_totals,
    differences,
)

__all__ = ["Settings", "linearise", "move"]


# Squared error of the linear system, relative to its right side and to mu. A predictor has two conjugate gradients, or
# one where the steps before went so well that they may aim at less than this part of mu; a corrector at most so many.
RELATIVE, ABSOLUTE, SURE, MOST = 1e-2, 1e-2, 0.3, 3000


class Settings(NamedTuple):
    """What `solvers.entropic_interior` says of them."""

    nearly: float
    held: float
    shrink: float
    least_goal: float
    power: float


@njit(cache=True, nogil=True)
def _amounts_at(g: Given, p: Point, k: Local, mu: float) -> None:
    """Set what follows from the weights: excess, h, kappa, and what amounts and totals miss."""
    shape = p.weights.shape
    logs, amounts, flat = np.empty(p.weights.size), np.empty(p.weights.size), k.excess.ravel()
    at = 0
    for i in range(len(p.totals)):
        for c in range(shape[1]):
            k.surplus[i, c] = np.log(p.totals[i, c])
    for i in range(shape[0]):
        for c in range(shape[1]):
            logs[at] = p.weights[i, c] + k.surplus[g.chunks[i], c]
            at += 1
    smooth_logs(logs, mu, amounts, flat)
    change, at = differences(g, p.eta), 0
    for i in range(shape[0]):
        for c in range(shape[1]):
            k.h[i, c] = amounts[at] / (1.0 + k.excess[i, c])
            k.missing[i, c] = g.counts[i, c] + change[i, c] - amounts[at]
            change[i, c] = mu / (1.0 + k.excess[i, c])
            at += 1
    group_sums(amounts.reshape(shape), g.chunks, g.pooled, k.surplus)
    group_sums(change, g.chunks, g.pooled, k.kappa)
    for i in range(len(p.totals)):
        for c in range(shape[1]):
            k.surplus[i, c] -= p.totals[i, c]
            k.kappa[i, c] = max(k.kappa[i, c], 1e-9 * p.totals[i, c])


@njit(cache=True, nogil=True)
def linearise(
    given: Given, point: Point, local: Local, most: int, ridge: float, memory: Floats
) -> tuple[float, Modes, Floats]:
    """Set what a step has to know of its point; return mu, the strong modes and the matrix to be factorised.

    The named tuples are to be given as plain ones, with which a call takes a tenth of the time.
    """
    g, p, k = Given(*given), Point(*point), Local(*local)
    mu = product_sum(p.eta, p.room, p.spare, p.slack) / p.eta.size
    _amounts_at(g, p, k, mu)
    curvature(p.eta, p.room, p.spare, p.slack, g.labels, k.theta, k.tau, k.total)
    modes, matrix = system_matrix(g, k, most, ridge, memory)
    return mu, modes, matrix


@njit(cache=True, nogil=True)
def _newton(
    g: Given,
    p: Point,
    k: Local,
    modes: Modes,
    factor: Floats,
    mu: float,
    goal: float,
    scale: float,
    error: float,
    most: int,
    d: Change,
) -> int:
    """Set the change towards products of `goal`; return the iterations that it took."""
    coefficients, shift, group = np.empty_like(p.eta), np.empty_like(k.h), np.empty_like(k.kappa)
    rows, moves = (p.eta, p.room, p.spare, p.slack), (d.eta, d.room, d.spare, d.slack)
    n_cells, n_classes = k.h.shape
    right_side(*rows, g.labels, k.theta, k.total, goal, scale, mu, *moves, coefficients)
    for i in range(n_cells):
        for c in range(n_classes):
            shift[i, c] = (goal - mu) / (1.0 + k.excess[i, c])
    group_sums(shift, g.chunks, g.pooled, group)
    right = class_sums(g, coefficients)
    for i in range(n_cells):
        for c in range(n_classes):
            chunk = g.chunks[i]
            pulled = k.h[i, c] * (group[chunk, c] + k.surplus[chunk, c]) / k.kappa[chunk, c]
            right[i, c] += k.missing[i, c] - shift[i, c] - pulled
    iterations: int = solve(g, k, modes, factor, right, error, ABSOLUTE * mu, most, d.weights)
    for i in range(n_cells):
        for c in range(n_classes):
            right[i, c] = k.h[i, c] * d.weights[i, c]
    group_sums(right, g.chunks, g.pooled, d.logs)
    for i in range(len(group)):
        for c in range(n_classes):
            d.logs[i, c] = (d.logs[i, c] + group[i, c] + k.surplus[i, c]) / k.kappa[i, c]
    scores = class_totals(g, d.weights)
    direction(*rows, g.labels, k.theta, k.tau, k.total, goal, scale, mu, scores, *moves)
    if goal > 0.0:  # nobody goes where a predictor leads, so it need not be as exact
        left = differences(g, d.eta)
        for i in range(n_cells):
            for c in range(n_classes):
                curved = k.h[i, c] * (d.weights[i, c] + d.logs[g.chunks[i], c])
                left[i, c] += k.missing[i, c] - shift[i, c] - curved
        correct(g, k, modes, factor, left, d)
    return iterations


@njit(cache=True, nogil=True)
def _smallest(values: Floats, rank: int) -> float:
    """The value with so many below it; the values are put into another order."""
    begin, end = 0, len(values) - 1
    while begin < end:
        pivot = values[(begin + end) // 2]
        i, j = begin, end
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            end = j
        elif rank >= i:
            begin = i
        else:
            break
    return float(values[rank])


@njit(cache=True, nogil=True)
def _length(g: Given, p: Point, k: Local, d: Change, s: Settings) -> float:
    """A step that nearly all rows and weights can go along with."""
    steps, reaches = np.empty(len(p.spare)), np.empty(d.weights.size)
    row_steps(p.eta, p.room, p.spare, p.slack, d.eta, d.room, d.spare, d.slack, steps)
    at = 0
    for i in range(len(d.weights)):
        for c in range(d.weights.shape[1]):
            rate = (d.weights[i, c] + d.logs[g.chunks[i], c]) / (1.0 + k.excess[i, c])
            reaches[at] = 1.0 / max(1e-300, rate, -rate / s.shrink)
            at += 1
    longest = s.nearly * _smallest(steps, int(s.held * len(steps)))
    return float(min(1.0, longest, _smallest(reaches, int(s.held * len(reaches)))))


@njit(cache=True, nogil=True)
def _limit(g: Given, k: Local, length: float, shrink: float, d: Change) -> None:
    """Cut the few large entries of a change; the rooms of the rows follow."""
    cut, cuts = np.empty_like(d.weights), 0
    for i in range(len(d.logs)):
        for c in range(d.logs.shape[1]):
            d.logs[i, c] = min(1.0 / length, max(-1.0 / length, d.logs[i, c]))
    for i in range(len(cut)):
        for c in range(cut.shape[1]):
            reach, moved = (1.0 + k.excess[i, c]) / length, d.logs[g.chunks[i], c]
            limited = min(reach - moved, max(-shrink * reach - moved, d.weights[i, c]))
            cut[i, c] = limited - d.weights[i, c]
            if cut[i, c] != 0.0:
                cuts += 1
            d.weights[i, c] = limited
    if cuts:
        scores = class_totals(g, cut)
        for n in range(len(scores)):
            own = scores[n, g.labels[n]]
            for c in range(scores.shape[1]):
                d.room[n, c] += own - scores[n, c]


@njit(cache=True, nogil=True)
def _go(g: Given, p: Point, d: Change, length: float, nearly: float) -> None:
    """Move the point along a change."""
    for i in range(len(p.weights)):
        for c in range(p.weights.shape[1]):
            p.weights[i, c] += length * d.weights[i, c]
    for i in range(len(p.totals)):
        for c in range(p.totals.shape[1]):
            p.totals[i, c] *= np.exp(length * d.logs[i, c])
    advance(length, nearly, g.labels, p.eta, p.room, p.spare, p.slack, d.eta, d.room, d.spare, d.slack)


@njit(cache=True, nogil=True)
def move(
    given: Given,
    point: Point,
    local: Local,
    modes: Modes,
    factor: Floats,
    change: Change,
    mu: float,
    timid: float,
    settings: Settings,
    vanished: float,
    weights: Floats,
    eta: Floats,
) -> tuple[float, int, float, float, bool, bool]:
    """Take one step, by predictor and corrector.

    Returns its length, the iterations, and what `appraise` says of the point that it leads to. The named tuples are to
    be given as plain ones, as for `linearise`.
    """
    g, p, k, d, s = Given(*given), Point(*point), Local(*local), Change(*change), Settings(*settings)
    rows, moves = (p.eta, p.room, p.spare, p.slack), (d.eta, d.room, d.spare, d.slack)
    iterations = _newton(g, p, k, modes, factor, mu, 0.0, 0.0, 0.0, 1 if timid < SURE else 2, d)
    reach = _length(g, p, k, d, s)
    ahead = products_ahead(reach, s.nearly, *rows, *moves) / (p.eta.size * mu)
    goal = min(timid, max(ahead**s.power, s.least_goal)) * mu
    iterations += _newton(g, p, k, modes, factor, mu, goal, reach * reach, RELATIVE, MOST, d)
    length = _length(g, p, k, d, s)
    _limit(g, k, length, s.shrink, d)
    _go(g, p, d, length, s.nearly)
    objective, bound, overdrawn, vanishing = appraise(g, p, vanished, weights, eta)
    return length, iterations, objective, bound, overdrawn, vanishing
