"""The arrays of an interior-point path that runs in compiled code, and the sums over rows that all of it needs.

What they mean is said in `solvers.entropic` and `solvers.entropic_interior`; this is the form for problems so small
that the calls of an array library would take most of the time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.deviations import absolute, relative
from marginbayes.kernels.margins_groups import group_logs, group_sums
from marginbayes.kernels.margins_rows import hinge_sum, shortfalls

__all__ = [
    "Change",
    "Given",
    "Local",
    "Point",
    "appraise",
    "class_sums",
    "class_totals",
    "differences",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cells = NDArray[np.int32]
Indices = NDArray[np.integer[Any]]


class Given(NamedTuple):
    """What stays the same: rows as deviations, counts, groups, caps and the target."""

    cells: Cells  # rows x blocks, -1 where a block adds nothing
    starts: Indices
    deviations: Indices
    families: Indices
    usual: Indices
    labels: Ints
    caps: Floats
    counts: Floats
    blocks: Ints
    chunks: Cells
    pooled: int
    target: float


class Point(NamedTuple):
    """Where the path is: weights (cells x classes), totals of the groups, and the variables of the rows."""

    weights: Floats
    totals: Floats
    eta: Floats
    room: Floats
    spare: Floats
    slack: Floats


class Local(NamedTuple):
    """What a step has to know of its point: what is wrong with the amounts, and the curvature."""

    excess: Floats
    missing: Floats
    surplus: Floats
    theta: Floats
    tau: Floats
    total: Floats
    h: Floats
    kappa: Floats


class Change(NamedTuple):
    """A direction: of weights, of the logs of the groups' totals, and of the variables of the rows."""

    weights: Floats
    logs: Floats
    eta: Floats
    room: Floats
    spare: Floats
    slack: Floats


@njit(cache=True, nogil=True)
def _gather(starts: Indices, cells: Indices, base: Floats, changes: Floats, scores: Floats) -> None:
    """Write the scores of all classes, for every row; sums of four classes at a time stay in registers."""
    n_classes = scores.shape[1]
    fours = n_classes - n_classes % 4
    for n in range(len(scores)):
        begin, end = starts[n], starts[n + 1]
        for c in range(0, fours, 4):
            s0, s1, s2, s3 = base[c], base[c + 1], base[c + 2], base[c + 3]
            for at in range(begin, end):
                cell = cells[at]
                s0 += changes[cell, c]
                s1 += changes[cell, c + 1]
                s2 += changes[cell, c + 2]
                s3 += changes[cell, c + 3]
            scores[n, c], scores[n, c + 1], scores[n, c + 2], scores[n, c + 3] = s0, s1, s2, s3
        for c in range(fours, n_classes):
            total = base[c]
            for at in range(begin, end):
                total += changes[cells[at], c]
            scores[n, c] = total


@njit(cache=True, nogil=True)
def _scatter(starts: Indices, cells: Indices, values: Floats, sums: Floats, total: Floats) -> None:
    """The transpose: add the values of each row to `total`, and to the sums of all cells by which it deviates."""
    n_classes = values.shape[1]
    fours = n_classes - n_classes % 4
    for n in range(len(values)):
        begin, end = starts[n], starts[n + 1]
        for c in range(n_classes):
            total[c] += values[n, c]
        for c in range(0, fours, 4):
            v0, v1, v2, v3 = values[n, c], values[n, c + 1], values[n, c + 2], values[n, c + 3]
            for at in range(begin, end):
                cell = cells[at]
                sums[cell, c] += v0
                sums[cell, c + 1] += v1
                sums[cell, c + 2] += v2
                sums[cell, c + 3] += v3
        for c in range(fours, n_classes):
            value = values[n, c]
            for at in range(begin, end):
                sums[cells[at], c] += value


@njit(cache=True, nogil=True)
def class_totals(g: Given, weights: Floats) -> Floats:
    """Scores of all classes in all rows."""
    n_cells, n_classes = weights.shape
    base, changes = np.zeros(n_classes), np.empty((n_cells + len(g.usual), n_classes))
    relative(weights, g.families, g.usual, changes, base)
    out = np.empty((len(g.labels), n_classes))
    _gather(g.starts, g.deviations, base, changes, out)
    return out


@njit(cache=True, nogil=True)
def class_sums(g: Given, values: Floats) -> Floats:
    """The transpose of `class_totals`."""
    n_cells, n_classes = g.counts.shape
    sums, total = np.zeros((n_cells + len(g.usual), n_classes)), np.zeros(n_classes)
    _scatter(g.starts, g.deviations, values, sums, total)
    absolute(sums, total, g.families, g.usual)
    return sums[:n_cells]


@njit(cache=True, nogil=True)
def differences(g: Given, eta: Floats) -> Floats:
    """What multipliers of rivals give to the own class's cells and take from the rivals'."""
    coefficients = np.empty_like(eta)
    for n in range(len(eta)):
        own = 0.0
        for c in range(eta.shape[1]):
            own += eta[n, c]
            coefficients[n, c] = -eta[n, c]
        coefficients[n, g.labels[n]] = own
    out: Floats = class_sums(g, coefficients)
    return out


@njit(cache=True, nogil=True)
def _fitting(g: Given, given: Floats, eta: Floats) -> tuple[Floats, bool]:
    """Write multipliers that fit caps and counts; return their amounts, and whether all had to shrink for that.

    Rounding may have led a row away from its cap. Where a cell is overdrawn, all multipliers shrink alike.
    """
    for n in range(len(eta)):
        total = 0.0
        for c in range(eta.shape[1]):
            total += given[n, c]
        part = g.caps[n] / max(g.caps[n], total)
        for c in range(eta.shape[1]):
            eta[n, c] = given[n, c] * part
    change = differences(g, eta)
    share = 1.0
    for i in range(len(change)):
        for c in range(change.shape[1]):
            if g.counts[i, c] + change[i, c] < 0.0:
                share = min(share, (1.0 - 1e-12) * g.counts[i, c] / -change[i, c])
    if share < 1.0:
        for n in range(len(eta)):
            for c in range(eta.shape[1]):
                eta[n, c] *= share
    for i in range(len(change)):
        for c in range(change.shape[1]):
            change[i, c] = g.counts[i, c] + share * change[i, c]
    return change, share < 1.0


@njit(cache=True, nogil=True)
def _dual(g: Given, eta: Floats, amounts: Floats, totals: Floats) -> float:
    """Bound of multipliers with these amounts; the totals of their groups are written."""
    group_sums(amounts, g.chunks, g.pooled, totals)
    value = 0.0
    for n in range(len(eta)):
        part = 0.0
        for c in range(eta.shape[1]):
            part += eta[n, c]
        value += g.target * part
    for i in range(len(amounts)):
        for c in range(amounts.shape[1]):
            if amounts[i, c] > 0.0:
                value -= amounts[i, c] * np.log(amounts[i, c] / totals[g.chunks[i], c])
    return value


@njit(cache=True, nogil=True)
def _vanishes(g: Given, totals: Floats, logs: Floats, part: float) -> bool:
    """Whether a group that sums to less than one has lost all but this part of its counts."""
    whole = np.empty_like(totals)
    group_sums(g.counts, g.chunks, g.pooled, whole)
    for i in range(len(totals)):
        for c in range(totals.shape[1]):
            if logs[i, c] < 0.0 and totals[i, c] < part * whole[i, c]:
                return True
    return False


@njit(cache=True, nogil=True)
def appraise(g: Given, p: Point, part: float, weights: Floats, eta: Floats) -> tuple[float, float, bool, bool]:
    """Objective of the point's weights, normalised, and a bound from its multipliers, made to fit; both are written.

    Says, too, where better ones are to be had: whether a cell was overdrawn, and whether a group is about to vanish.
    """
    logs = np.empty_like(p.totals)
    group_logs(p.weights, g.chunks, g.pooled, logs)
    likelihood = 0.0
    for i in range(len(weights)):
        for c in range(weights.shape[1]):
            weights[i, c] = p.weights[i, c] - logs[g.chunks[i], c]
            likelihood += g.counts[i, c] * weights[i, c]
    short = class_totals(g, weights)
    shortfalls(short, g.labels, g.target, short)
    objective = hinge_sum(short, g.caps) - likelihood
    vanishing = _vanishes(g, p.totals, logs, part)
    amounts, overdrawn = _fitting(g, p.eta, eta)
    return objective, _dual(g, eta, amounts, logs), overdrawn, vanishing
