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
from marginbayes.kernels.exact_point import Point, blank, move, products, step_lengths
from marginbayes.kernels.small_matrices import add_times, add_transposed, factorise, gram, solve

__all__ = ["Best", "Linear", "Program", "interior_run", "interior_step", "starting_point"]

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


class Work(NamedTuple):
    """Room for the numbers of a step, taken once for many steps."""

    mean: Floats  # of the rows of a group, weighted by their slopes
    total: Floats  # of the slopes of each group
    slope: Floats
    share: Floats  # of each slope in that sum
    lines: Floats
    matrix: Floats
    missing: Floats  # what the equations of x still lack
    gap: Floats  # and those of the cuts
    push: Floats
    first: Point
    second: Point


@njit(cache=True, nogil=True)
def _room(at: Point) -> Work:
    p, groups, rows, cuts = len(at.x), len(at.top), len(at.slack), len(at.cut)
    return Work(
        np.empty(p),
        np.empty(groups),
        np.empty(rows),
        np.empty(rows),
        np.empty((rows + groups + cuts, p)),
        np.empty((p, p)),
        np.empty(p),
        np.empty(cuts),
        np.empty(groups),
        blank(at),
        blank(at),
    )


@njit(cache=True, nogil=True)
def _gradient(program: Program, dual: Floats, cut_dual: Floats, out: Floats) -> None:
    """What the multipliers of rows and cuts make of each entry of x."""
    out[:] = program.linear
    for c in range(len(cut_dual)):
        for k in range(len(out)):
            out[k] -= program.cuts[c, k] * cut_dual[c]
    add_transposed(program.rows, dual, out)


@njit(cache=True, nogil=True)
def starting_point(program: Program, x: Floats, dual: Floats, n_blocks: int, spread: float) -> Point:
    """An interior point of everything, from x and dual that are strictly inside their own borders.

    `spread` is how far each level starts below its hinge.
    """
    n_groups = len(program.weight)
    margins = program.base.copy()
    add_times(program.rows, x, margins)
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
    filled, cut = np.zeros(len(program.room)), np.empty(len(program.room))
    add_times(program.cuts, x, filled)
    for c in range(len(cut)):
        cut[c] = max(program.room[c] - filled[c], 0.1)
    cut_dual, gradient = mu / cut, np.empty(len(x))
    _gradient(program, dual, cut_dual, gradient)
    rest, rest_price, price = np.ones(n_blocks), np.zeros(n_blocks), np.empty(len(x))
    for k in range(len(x)):
        i = program.block[k]
        rest[i] -= x[k]
        rest_price[i] = max(rest_price[i], gradient[k])
    rest_price += 3.0 * mu
    for k in range(len(x)):
        price[k] = rest_price[program.block[k]] - gradient[k]
    return Point(x, price, rest, rest_price, slack, dual, top, top_dual, cut, cut_dual, level)


@njit(cache=True, nogil=True)
def _largest_bend(program: Program, at: Point, work: Work) -> float:
    """The greatest weight of a line of the normal matrix; slopes, their sums and shares are filled."""
    largest, start = 0.0, program.start
    for g in range(len(work.total)):
        total = at.top_dual[g] / at.top[g]
        for r in range(start[g], start[g + 1]):
            work.slope[r] = at.dual[r] / at.slack[r]
            total += work.slope[r]
        work.total[g] = total
        for r in range(start[g], start[g + 1]):
            work.share[r] = work.slope[r] / total
            largest = max(largest, work.slope[r] * ((total - work.slope[r]) / total))
    return largest


@njit(cache=True, nogil=True)
def _bending(program: Program, at: Point, work: Work) -> int:
    """Lines whose Gram matrix is the second derivative by x of the hinges, and what the cuts add to it; their number.

    With weights d on the rows of a group and d0 on the constant gamma, it is the scatter of the rows around their mean:
    sum of d (a - mean)(a - mean)' + d0 mean mean'. Written so, nothing cancels.
    """
    rows, start, mean, lines, n = program.rows, program.start, work.mean, work.lines, 0
    least = NEGLIGIBLE * _largest_bend(program, at, work)
    for g in range(len(work.total)):
        first, last, total, top_slope = start[g], start[g + 1], work.total[g], at.top_dual[g] / at.top[g]
        if last == first + 1:  # one row against the constant
            weight = work.slope[first] * (top_slope / total)
            if weight > least:
                root = np.sqrt(weight)
                for k in range(lines.shape[1]):
                    lines[n, k] = root * rows[first, k]
                n += 1
            continue
        mean[:] = 0.0
        for r in range(first, last):
            for k in range(len(mean)):
                mean[k] += work.share[r] * rows[r, k]
        for r in range(first, last):
            if work.slope[r] * ((total - work.slope[r]) / total) > least:
                root = np.sqrt(work.slope[r])
                for k in range(lines.shape[1]):
                    lines[n, k] = root * (rows[r, k] - mean[k])
                n += 1
        if top_slope * ((total - top_slope) / total) > least:
            root = np.sqrt(top_slope)
            for k in range(lines.shape[1]):
                lines[n, k] = root * mean[k]
            n += 1
    for c in range(len(program.cuts)):
        root = np.sqrt(at.cut_dual[c] / at.cut[c])
        for k in range(lines.shape[1]):
            lines[n, k] = root * program.cuts[c, k]
        n += 1
    return n


@njit(cache=True, nogil=True)
def _newton_factor(program: Program, at: Point, work: Work) -> bool:
    """Factor of the matrix of the Newton system by x: hinges and cuts, and the borders of the simplices."""
    n, matrix, block = _bending(program, at, work), work.matrix, program.block
    gram(work.lines[:n], matrix)
    for k in range(len(at.x)):
        i = block[k]
        for j in range(k + 1):
            if block[j] == i:
                matrix[k, j] += at.rest_price[i] / at.rest[i]
        matrix[k, k] += at.price[k] / at.x[k]
        matrix[k, k] *= 1.0 + 1e-12
    return bool(factorise(matrix))


@njit(inline="always")
def _aim(centre: float, value: float, dual: float, by: float, dual_by: float) -> float:
    """By how much a product should change: back to the centre, less the product of an earlier direction's changes."""
    return centre - value * dual - by * dual_by


@njit(cache=True, nogil=True)
def _direction(program: Program, at: Point, work: Work, centre: float, before: Point, out: Point) -> None:
    """The Newton direction to the centre, made up for what the direction before does to the products."""
    p, block, start, dx = len(at.x), program.block, program.start, out.x
    for k in range(p):
        i = block[k]
        rest = _aim(centre, at.rest[i], at.rest_price[i], before.rest[i], before.rest_price[i])
        own = _aim(centre, at.x[k], at.price[k], before.x[k], before.price[k])
        dx[k] = work.missing[k] + own / at.x[k] - rest / at.rest[i]
    for g in range(len(at.top)):
        work.push[g] = _aim(centre, at.top[g], at.top_dual[g], before.top[g], before.top_dual[g]) / at.top[g]
        for r in range(start[g], start[g + 1]):
            out.slack[r] = _aim(centre, at.slack[r], at.dual[r], before.slack[r], before.dual[r]) / at.slack[r]
            work.push[g] += out.slack[r]
        for r in range(
            start[g], start[g + 1]
        ):  # for a while, what forces the row, less its part of what moves the level
            out.slack[r] -= work.share[r] * work.push[g]
    add_transposed(program.rows, out.slack, dx)
    for c in range(len(at.cut)):
        aim = _aim(centre, at.cut[c], at.cut_dual[c], before.cut[c], before.cut_dual[c])
        out.cut[c] = (at.cut_dual[c] * work.gap[c] - aim) / at.cut[c]
    add_transposed(program.cuts, out.cut, dx)
    solve(work.matrix, dx)
    _follow(program, at, work, centre, before, out)


@njit(cache=True, nogil=True)
def _follow(program: Program, at: Point, work: Work, centre: float, before: Point, out: Point) -> None:
    """Everything else of a direction, once it is known for x."""
    dx, block, start = out.x, program.block, program.start
    out.rest[:], out.slack[:], out.cut[:] = 0.0, 0.0, 0.0
    for k in range(len(dx)):
        out.rest[block[k]] -= dx[k]
        out.price[k] = (_aim(centre, at.x[k], at.price[k], before.x[k], before.price[k]) - at.price[k] * dx[k]) / at.x[
            k
        ]
    for i in range(len(at.rest)):
        aim = _aim(centre, at.rest[i], at.rest_price[i], before.rest[i], before.rest_price[i])
        out.rest_price[i] = (aim - at.rest_price[i] * out.rest[i]) / at.rest[i]
    add_times(program.rows, dx, out.slack)
    for g in range(len(at.top)):
        out.level[g] = -work.push[g] / work.total[g]
        for r in range(start[g], start[g + 1]):
            out.level[g] += work.share[r] * out.slack[r]
        out.top[g] = -out.level[g]
        aim = _aim(centre, at.top[g], at.top_dual[g], before.top[g], before.top_dual[g])
        out.top_dual[g] = (aim + at.top_dual[g] * out.level[g]) / at.top[g]
        for r in range(start[g], start[g + 1]):
            out.slack[r] -= out.level[g]
            aim = _aim(centre, at.slack[r], at.dual[r], before.slack[r], before.dual[r])
            out.dual[r] = (aim - at.dual[r] * out.slack[r]) / at.slack[r]
    add_times(program.cuts, dx, out.cut)
    for c in range(len(at.cut)):
        out.cut[c] = work.gap[c] - out.cut[c]
        aim = _aim(centre, at.cut[c], at.cut_dual[c], before.cut[c], before.cut_dual[c])
        out.cut_dual[c] = (aim - at.cut_dual[c] * out.cut[c]) / at.cut[c]


@njit(cache=True, nogil=True)
def interior_step(program: Program, point: Point, work: Work, nowhere: Point) -> float:
    """One step of Mehrotra's method, in place; the sum of all products of slack and multiplier before it.

    -1 where the matrix is singular: the border is reached as nearly as the numbers allow.
    """
    if not _newton_factor(program, point, work):
        return -1.0
    _gradient(program, point.dual, point.cut_dual, work.missing)
    for k in range(len(point.x)):
        work.missing[k] += point.price[k] - point.rest_price[program.block[k]]
    work.gap[:] = 0.0
    add_times(program.cuts, point.x, work.gap)
    for c in range(len(work.gap)):
        work.gap[c] = program.room[c] - point.cut[c] - work.gap[c]
    count = len(point.slack) + len(point.top) + len(point.x) + len(point.rest) + len(point.cut)
    before = products(point, nowhere, 0.0, 0.0)
    _direction(program, point, work, 0.0, nowhere, work.first)
    step, dual = step_lengths(point, work.first)
    share = min(1.0, max(0.0, products(point, work.first, step, dual) / before))
    _direction(program, point, work, before / count * share**3, work.first, work.second)
    step, dual = step_lengths(point, work.second)
    move(point, work.second, min(1.0, DAMPING * step), min(1.0, DAMPING * dual))
    return float(before)


@njit(cache=True, nogil=True)
def interior_run(
    program: Program, point: Point, linear: Linear, best: Best, cutoff: float, tolerance: float, steps: int, stop: Ints
) -> None:
    """Up to so many steps, each followed by the bound that its multipliers prove, unless ``stop[0]`` is set.

    It ends when the bound is at most the cutoff, or what it can still gain is a small part of the distance to it.
    """
    chosen, none = np.empty(len(linear.allowed), np.int64), np.empty((0, linear.allowed.shape[1]))
    work, nowhere = _room(point), blank(point)
    flat = np.empty(len(linear.fixed))
    values = flat.reshape(linear.allowed.shape)
    for _ in range(steps):
        left = interior_step(program, point, work, nowhere)
        if left < 0.0:
            break
        flat[:] = linear.fixed
        weighted_rows(linear.dense, linear.rows, point.dual, flat)
        bound = linear.constant + option_bound(values, linear.allowed, chosen, none)
        for r in range(len(linear.slope)):
            bound += linear.slope[r] * point.dual[r]
        if bound < best.bound[0]:
            best.bound[0], best.dual[:], best.values[:] = bound, point.dual, values
        if best.bound[0] <= cutoff or left < tolerance * (best.bound[0] - cutoff) or stop[0]:
            break
