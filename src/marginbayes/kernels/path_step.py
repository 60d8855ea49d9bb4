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
from marginbayes.kernels.path_modes import Modes, mode_matrix
from marginbayes.kernels.path_solve import correct, solve
from marginbayes.kernels.path_values import (
    Change,
    Floats,
    Given,
    Local,
    Point,
    add_spread,
    appraise,
    class_sums,
    class_totals,
    differences,
)

__all__ = ["Settings", "linearise", "move"]


class Settings(NamedTuple):
    """What `solvers.entropic_interior` says of them."""

    nearly: float
    held: float
    shrink: float
    least_goal: float
    power: float
    predictor_error: float
    relative_error: float
    absolute_error: float


@njit(cache=True, nogil=True)
def linearise(
    g: Given, p: Point, k: Local, most: int, ridge: float, memory: Floats
) -> tuple[float, Modes, Floats]:
    """Set what a step has to know of its point; return mu, the strong modes and their matrix."""
    mu = product_sum(p.eta, p.room, p.spare, p.slack) / p.eta.size
    logs = p.weights.copy()
    add_spread(g, 1.0, np.log(p.totals), logs)
    amounts = np.empty_like(logs)
    smooth_logs(logs.ravel(), mu, amounts.ravel(), k.excess.ravel())
    k.missing[:] = g.counts + differences(g, p.eta) - amounts
    group_sums(amounts, g.chunks, g.pooled, k.surplus)
    k.surplus[:] -= p.totals
    curvature(p.eta, p.room, p.spare, p.slack, g.labels, k.theta, k.tau, k.total)
    k.h[:] = amounts / (1.0 + k.excess)
    group_sums(mu / (1.0 + k.excess), g.chunks, g.pooled, k.kappa)
    k.kappa[:] = np.maximum(k.kappa, 1e-9 * p.totals)
    modes, matrix = mode_matrix(g, k, most, ridge, memory)
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
    errors: tuple[float, float],
    d: Change,
) -> int:
    """Set the change towards products of `goal`; return the iterations that it took."""
    coefficients = np.empty_like(p.eta)
    rows, moves = (p.eta, p.room, p.spare, p.slack), (d.eta, d.room, d.spare, d.slack)
    right_side(*rows, g.labels, k.theta, k.total, goal, scale, mu, *moves, coefficients)
    shift = (goal - mu) / (1.0 + k.excess)
    group = np.empty_like(k.kappa)
    group_sums(shift, g.chunks, g.pooled, group)
    group += k.surplus
    pulled = np.zeros_like(shift)
    add_spread(g, -1.0, group / k.kappa, pulled)
    right = class_sums(g, coefficients) - shift + k.missing + k.h * pulled
    d_weights, iterations = solve(g, k, modes, factor, right, *errors)
    d.weights[:] = d_weights
    group_sums(k.h * d_weights, g.chunks, g.pooled, d.logs)
    d.logs[:] = (d.logs + group) / k.kappa
    scores = class_totals(g, d_weights)
    direction(*rows, g.labels, k.theta, k.tau, k.total, goal, scale, mu, scores, *moves)
    if goal > 0.0:  # a predictor is not gone, and need not be as exact
        add_spread(g, 1.0, d.logs, d_weights)
        correct(g, k, modes, factor, k.missing + differences(g, d.eta) - shift - k.h * d_weights, d)
    return iterations


@njit(cache=True, nogil=True)
def _length(g: Given, p: Point, k: Local, d: Change, s: Settings) -> float:
    """A step that nearly all rows and weights can go along with."""
    steps = np.empty(len(p.spare))
    row_steps(p.eta, p.room, p.spare, p.slack, d.eta, d.room, d.spare, d.slack, steps)
    rates = d.weights.copy()
    add_spread(g, 1.0, d.logs, rates)
    for i in range(len(rates)):
        for c in range(rates.shape[1]):
            rate = rates[i, c] / (1.0 + k.excess[i, c])
            rates[i, c] = -max(rate, -rate / s.shrink)
    few, some = int(s.held * len(steps)), int(s.held * rates.size)
    longest = np.partition(steps, few)[few]
    return min(1.0, s.nearly * longest, 1.0 / max(1e-300, -np.partition(rates.ravel(), some)[some]))


@njit(cache=True, nogil=True)
def _limit(g: Given, k: Local, length: float, shrink: float, d: Change) -> None:
    """Cut the few large entries of a change; the rooms of the rows follow."""
    cut = np.zeros_like(d.weights)
    for i in range(len(d.logs)):
        for c in range(d.logs.shape[1]):
            d.logs[i, c] = min(1.0 / length, max(-1.0 / length, d.logs[i, c]))
    for i in range(len(cut)):
        for c in range(cut.shape[1]):
            reach, moved = (1.0 + k.excess[i, c]) / length, d.logs[g.chunks[i], c]
            limited = min(reach - moved, max(-shrink * reach - moved, d.weights[i, c]))
            cut[i, c] = limited - d.weights[i, c]
            d.weights[i, c] = limited
    if np.any(cut != 0.0):
        scores = class_totals(g, cut)
        for n in range(len(scores)):
            own = scores[n, g.labels[n]]
            for c in range(scores.shape[1]):
                d.room[n, c] += own - scores[n, c]


@njit(cache=True, nogil=True)
def move(
    g: Given,
    p: Point,
    k: Local,
    modes: Modes,
    factor: Floats,
    d: Change,
    mu: float,
    timid: float,
    s: Settings,
    vanished: float,
    weights: Floats,
    eta: Floats,
) -> tuple[float, int, float, float, bool, bool]:
    """Take one step, by predictor and corrector.

    Returns its length, the iterations, and what `appraise` says of the point that it leads to.
    """
    rows, moves = (p.eta, p.room, p.spare, p.slack), (d.eta, d.room, d.spare, d.slack)
    errors = (s.predictor_error, s.absolute_error * mu)
    iterations = _newton(g, p, k, modes, factor, mu, 0.0, 0.0, errors, d)
    reach = _length(g, p, k, d, s)
    ahead = products_ahead(reach, s.nearly, *rows, *moves) / (p.eta.size * mu)
    goal = min(timid, max(ahead**s.power, s.least_goal)) * mu
    errors = (s.relative_error, s.absolute_error * mu)
    iterations += _newton(g, p, k, modes, factor, mu, goal, reach * reach, errors, d)
    length = _length(g, p, k, d, s)
    _limit(g, k, length, s.shrink, d)
    p.weights[:] += length * d.weights
    p.totals[:] *= np.exp(length * d.logs)
    advance(length, s.nearly, g.labels, *rows, *moves)
    objective, bound, overdrawn, vanishing = appraise(g, p, vanished, weights, eta)
    return length, iterations, objective, bound, overdrawn, vanishing
