"""Interior point for the concave relaxation of a soft margin: hinges over a product of simplices, with cluster cuts.

    maximise   sum_g weight[g] * level[g] + linear . x
    subject to level[g] <= gamma,   level[g] <= base[r] + rows[r] . x   for the rows r of group g,
               x >= 0,  the entries of x in a block sum to at most 1,  cuts x <= room

Each block stands for one feature; what its entries leave of 1 belongs to a reference option, to which all numbers are
relative. A group's rows are consecutive, from ``start[g]`` to ``start[g + 1]``. The iterates keep all equations of
the dual but those of x: ``0 <= dual[r]`` and ``sum of dual over a group <= weight`` hold throughout, and that is all
that a bound needs. Mehrotra's predictor and corrector; one Cholesky factor of size (entries of x)^2 a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.branching import option_bound
from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_margins import weighted_rows

__all__ = ["Best", "Linear", "Point", "Program", "interior_run", "interior_step", "starting_point"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rows of the normal matrix whose weight is this much below the greatest are left out of it: they hardly bend anything.
NEGLIGIBLE = 1e-9
# How far towards the border a step may go.
DAMPING = 0.995


class Program(NamedTuple):
    """The numbers of the problem at the top of this module."""

    rows: Floats
    base: Floats
    start: Ints
    weight: Floats
    gamma: float
    linear: Floats
    block: Ints
    cuts: Floats
    room: Floats


class Point(NamedTuple):
    """An iterate, or a direction: every slack beside its multiplier; `level` alone has none."""

    x: Floats
    price: Floats
    rest: Floats  # of each block, what x leaves to the reference option
    rest_price: Floats
    slack: Floats
    dual: Floats
    top: Floats  # gamma - level
    top_dual: Floats
    cut: Floats
    cut_dual: Floats
    level: Floats


class Linear(NamedTuple):
    """What multipliers make of the whole problem, all options included: a constant and a value for each option."""

    dense: Floats
    rows: Ints  # the open ones, in dense
    fixed: Floats  # values of the options by settled multipliers
    constant: float
    slope: Floats  # what an open multiplier adds to the constant
    allowed: NDArray[np.bool_]


class Best(NamedTuple):
    """The least bound so far (one number), its multipliers, and values of the options."""

    bound: Floats
    dual: Floats
    values: Floats


class Aims(NamedTuple):
    """By how much each product of a slack and its multiplier should change."""

    x: Floats
    rest: Floats
    slack: Floats
    top: Floats
    cut: Floats


@njit(cache=True, nogil=True)
def _gradient(program: Program, dual: Floats, cut_dual: Floats) -> Floats:
    """What the multipliers of rows and cuts make of each entry of x."""
    out: Floats = program.linear + np.dot(program.rows.T, dual)
    for c in range(len(cut_dual)):
        for k in range(len(out)):
            out[k] -= program.cuts[c, k] * cut_dual[c]
    return out


@njit(cache=True, nogil=True)
def starting_point(program: Program, x: Floats, dual: Floats, n_blocks: int, spread: float) -> Point:
    """An interior point of everything, from x and dual that are strictly inside their own borders.

    `spread` is how far each level starts below its hinge.
    """
    n_groups = len(program.weight)
    margins = program.base + np.dot(program.rows, x)
    level, top, top_dual, slack = np.empty(n_groups), np.empty(n_groups), np.empty(n_groups), np.empty(len(margins))
    mu = 1e-300
    for g in range(n_groups):
        low, used = program.gamma, 0.0
        for r in range(program.start[g], program.start[g + 1]):
            low = min(low, margins[r])
            used += dual[r]
        level[g] = low - spread
        top[g], top_dual[g] = program.gamma - level[g], program.weight[g] - used
        mu += top[g] * top_dual[g]
        for r in range(program.start[g], program.start[g + 1]):
            slack[r] = margins[r] - level[g]
            mu += slack[r] * dual[r]
    mu /= len(margins) + n_groups + 1
    cut = np.maximum(program.room - np.dot(program.cuts, x), 0.1)
    cut_dual = mu / cut
    gradient = _gradient(program, dual, cut_dual)
    rest, rest_price, price = np.ones(n_blocks), np.zeros(n_blocks), np.empty(len(x))
    for k in range(len(x)):
        i = program.block[k]
        rest[i] -= x[k]
        rest_price[i] = max(rest_price[i], gradient[k])
    rest_price += 3.0 * mu * np.ones(n_blocks)
    for k in range(len(x)):
        price[k] = rest_price[program.block[k]] - gradient[k]
    return Point(x, price, rest, rest_price, slack, dual, top, top_dual, cut, cut_dual, level)


@njit(cache=True, nogil=True)
def _largest_bend(start: Ints, slope: Floats, top_slope: Floats, total: Floats) -> float:
    """The greatest weight of a line of the normal matrix; `total` receives the sums of slopes of the groups."""
    largest = 0.0
    for g in range(len(total)):
        total[g] = top_slope[g]
        for r in range(start[g], start[g + 1]):
            total[g] += slope[r]
        for r in range(start[g], start[g + 1]):
            largest = max(largest, slope[r] * ((total[g] - slope[r]) / total[g]))
    return largest


@njit(cache=True, nogil=True)
def _bending(program: Program, point: Point, mean: Floats, total: Floats) -> Floats:
    """Lines whose Gram matrix is the second derivative by x of the hinges, and what the cuts add to it.

    With weights d on the rows of a group and d0 on the constant gamma, it is the scatter of the rows around their mean:
    sum of d (a - mean)(a - mean)' + d0 mean mean'. Written so, nothing cancels.
    """
    rows, start, cuts = program.rows, program.start, program.cuts
    slope, top_slope = point.dual / point.slack, point.top_dual / point.top
    least = NEGLIGIBLE * _largest_bend(start, slope, top_slope, total)
    out = np.empty((len(rows) + len(total) + len(cuts), rows.shape[1]))
    n = 0
    for g in range(len(total)):
        first, last = start[g], start[g + 1]
        for r in range(first, last):
            mean[g] += (slope[r] / total[g]) * rows[r]
        if last == first + 1:  # one row against the constant
            weight = slope[first] * (top_slope[g] / total[g])
            if weight > least:
                out[n] = np.sqrt(weight) * rows[first]
                n += 1
            continue
        for r in range(first, last):
            if slope[r] * ((total[g] - slope[r]) / total[g]) > least:
                out[n] = np.sqrt(slope[r]) * (rows[r] - mean[g])
                n += 1
        if top_slope[g] * ((total[g] - top_slope[g]) / total[g]) > least:
            out[n] = np.sqrt(top_slope[g]) * mean[g]
            n += 1
    for c in range(len(cuts)):
        out[n] = np.sqrt(point.cut_dual[c] / point.cut[c]) * cuts[c]
        n += 1
    return out[:n]


@njit(cache=True, nogil=True)
def _gram(lines: Floats) -> Floats:
    """lines' lines, by two halves of the columns: one quarter is the mirror of another."""
    p = lines.shape[1]
    if p < 32:
        whole: Floats = np.dot(lines.T, lines)
        return whole
    half = p // 2
    left, right = np.ascontiguousarray(lines[:, :half]), np.ascontiguousarray(lines[:, half:])
    out = np.empty((p, p))
    cross = np.dot(right.T, left)
    out[:half, :half] = np.dot(left.T, left)
    out[half:, half:] = np.dot(right.T, right)
    out[half:, :half] = cross
    out[:half, half:] = cross.T
    return out


@njit(cache=True, nogil=True)
def _normal_matrix(lines: Floats, program: Program, point: Point) -> Floats:
    """The matrix of the Newton system by x: hinges and cuts (the lines), and the borders of the simplices."""
    matrix: Floats = _gram(lines)
    p, block = len(point.x), program.block
    for k in range(p):
        i = block[k]
        for j in range(p):
            if block[j] == i:
                matrix[k, j] += point.rest_price[i] / point.rest[i]
        matrix[k, k] += point.price[k] / point.x[k]
        matrix[k, k] *= 1.0 + 1e-12
    return matrix


@njit(cache=True, nogil=True)
def _solve(factor: Floats, right: Floats) -> None:
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


@njit(cache=True, nogil=True)
def _direction(
    program: Program, at: Point, aims: Aims, factor: Floats, mean: Floats, total: Floats, missing: Floats, gap: Floats
) -> Point:
    """The Newton direction; `missing` and `gap` are what the equations of x and of the cuts still lack."""
    p, n_groups, block, start = len(at.x), len(total), program.block, program.start
    forced = aims.slack / at.slack
    push = aims.top / at.top
    for g in range(n_groups):
        for r in range(start[g], start[g + 1]):
            push[g] += forced[r]
    dx = missing + np.dot(program.rows.T, forced) - np.dot(mean.T, push)
    dx += np.dot(program.cuts.T, (at.cut_dual * gap - aims.cut) / at.cut)
    for k in range(p):
        dx[k] += aims.x[k] / at.x[k] - aims.rest[block[k]] / at.rest[block[k]]
    _solve(factor, dx)
    drest = np.zeros(len(at.rest))
    for k in range(p):
        drest[block[k]] -= dx[k]
    dslack, dlevel = np.dot(program.rows, dx), np.dot(mean, dx) - push / total
    for g in range(n_groups):
        for r in range(start[g], start[g + 1]):
            dslack[r] -= dlevel[g]
    dcut = gap - np.dot(program.cuts, dx)
    return Point(
        dx,
        (aims.x - at.price * dx) / at.x,
        drest,
        (aims.rest - at.rest_price * drest) / at.rest,
        dslack,
        (aims.slack - at.dual * dslack) / at.slack,
        -dlevel,
        (aims.top + at.top_dual * dlevel) / at.top,
        dcut,
        (aims.cut - at.cut_dual * dcut) / at.cut,
        dlevel,
    )


@njit(cache=True, nogil=True)
def _longest(values: Floats, steps: Floats, limit: float) -> float:
    """The longest step, up to the limit, that keeps all values from becoming negative."""
    for k in range(len(values)):
        if steps[k] < 0.0 and -values[k] > limit * steps[k]:
            limit = -values[k] / steps[k]
    return limit


@njit(cache=True, nogil=True)
def _step_lengths(at: Point, by: Point) -> tuple[float, float]:
    """How far slacks, and how far multipliers, may go in this direction."""
    step = _longest(at.rest, by.rest, _longest(at.x, by.x, 1.0))
    step = _longest(at.cut, by.cut, _longest(at.top, by.top, _longest(at.slack, by.slack, step)))
    dual = _longest(at.rest_price, by.rest_price, _longest(at.price, by.price, 1.0))
    dual = _longest(at.top_dual, by.top_dual, _longest(at.dual, by.dual, dual))
    return step, _longest(at.cut_dual, by.cut_dual, dual)


@njit(cache=True, nogil=True)
def _products(at: Point, by: Point, step: float, dual: float) -> float:
    """Sum of slack times multiplier after a step."""
    total = np.dot(at.x + step * by.x, at.price + dual * by.price)
    total += np.dot(at.rest + step * by.rest, at.rest_price + dual * by.rest_price)
    total += np.dot(at.slack + step * by.slack, at.dual + dual * by.dual)
    total += np.dot(at.top + step * by.top, at.top_dual + dual * by.top_dual)
    total += np.dot(at.cut + step * by.cut, at.cut_dual + dual * by.cut_dual)
    return float(total)


@njit(cache=True, nogil=True)
def _corrected(at: Point, by: Point, centre: float) -> Aims:
    """Aims that lead back to the middle and make up for the product of the first direction's changes."""
    return Aims(
        centre - at.x * at.price - by.x * by.price,
        centre - at.rest * at.rest_price - by.rest * by.rest_price,
        centre - at.slack * at.dual - by.slack * by.dual,
        centre - at.top * at.top_dual - by.top * by.top_dual,
        centre - at.cut * at.cut_dual - by.cut * by.cut_dual,
    )


@njit(cache=True, nogil=True)
def _move(at: Point, by: Point, step: float, dual: float) -> None:
    at.x[:] += step * by.x
    at.rest[:] += step * by.rest
    at.slack[:] += step * by.slack
    at.top[:] += step * by.top
    at.cut[:] += step * by.cut
    at.level[:] += step * by.level
    at.price[:] += dual * by.price
    at.rest_price[:] += dual * by.rest_price
    at.dual[:] += dual * by.dual
    at.top_dual[:] += dual * by.top_dual
    at.cut_dual[:] += dual * by.cut_dual


@njit(cache=True, nogil=True)
def interior_step(program: Program, point: Point) -> float:
    """One step of Mehrotra's method, in place; the sum of all products of slack and multiplier before it."""
    rows, n_groups, p = program.rows, len(program.weight), len(point.x)
    mean, total = np.zeros((n_groups, p)), np.empty(n_groups)
    lines = _bending(program, point, mean, total)
    factor = np.linalg.cholesky(_normal_matrix(lines, program, point))
    missing = _gradient(program, point.dual, point.cut_dual) + point.price
    for k in range(p):
        missing[k] -= point.rest_price[program.block[k]]
    gap = program.room - point.cut - np.dot(program.cuts, point.x)
    count = len(rows) + n_groups + p + len(point.rest) + len(point.cut)
    aims = Aims(
        -point.x * point.price,
        -point.rest * point.rest_price,
        -point.slack * point.dual,
        -point.top * point.top_dual,
        -point.cut * point.cut_dual,
    )
    before = -(aims.x.sum() + aims.rest.sum() + aims.slack.sum() + aims.top.sum() + aims.cut.sum())
    first = _direction(program, point, aims, factor, mean, total, missing, gap)
    step, dual = _step_lengths(point, first)
    share = min(1.0, max(0.0, _products(point, first, step, dual) / before))
    second = _direction(
        program, point, _corrected(point, first, before / count * share**3), factor, mean, total, missing, gap
    )
    step, dual = _step_lengths(point, second)
    _move(point, second, min(1.0, DAMPING * step), min(1.0, DAMPING * dual))
    return float(before)


@njit(cache=True, nogil=True)
def interior_run(
    program: Program, point: Point, linear: Linear, best: Best, cutoff: float, tolerance: float, steps: int
) -> bool:
    """Some steps, each followed by the bound that its multipliers prove; whether it is time to stop.

    That is when the bound is at most the cutoff, or what it can still gain is a small part of the distance to it.
    """
    chosen, none = np.empty(len(linear.allowed), np.int64), np.empty((0, linear.allowed.shape[1]))
    for _ in range(steps):
        left = interior_step(program, point)
        flat = linear.fixed.copy()
        weighted_rows(linear.dense, linear.rows, point.dual, flat)
        values = flat.reshape(linear.allowed.shape)
        bound = linear.constant + np.dot(linear.slope, point.dual)
        bound += option_bound(values, linear.allowed, chosen, none)
        if bound < best.bound[0]:
            best.bound[0], best.dual[:], best.values[:] = bound, point.dual, values
        if best.bound[0] <= cutoff or left < tolerance * (best.bound[0] - cutoff):
            return True
    return False
