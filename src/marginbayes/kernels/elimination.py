"""Variable elimination row by row: exact sums over whatever is missing in each row, and their derivatives.

A row's *factors* are the tables of its families with the observed cells put in. Missing variables are summed out in a
fixed order; each sum makes a message, which is a factor of its own. Every factor is read through strides into one flat
array, tables first and messages behind them, and the target's axis is never summed: all functions work on vectors over
the target's levels. Small functions are inlined, since passing so many arrays would cost more than their work.

Products run in plain probabilities where a lower bound on the factors proves that nothing can underflow, and in log
space otherwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["SAFE_LOG", "Plan", "expected_counts"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# A product whose factors are proved to stay above exp(-600) cannot underflow a float64 (smallest normal: exp(-708)).
SAFE_LOG = -600.0


class Plan(NamedTuple):
    """A network laid out flat for one target. Family f is that of variable f; the target is never among its members."""

    cards: Ints  # levels of each variable
    target: int
    order: Ints  # in which missing variables are summed out
    topo: Ints  # parents before children
    child_at: Ints  # children of i: child[child_at[i] : child_at[i + 1]]
    child: Ints
    member_at: Ints  # members of family f: member[member_at[f] : member_at[f + 1]]
    member: Ints
    stride: Ints  # of each member in the family's table
    tstride: Ints  # of the target in it: 1, or 0 where the family does not hold the target
    base: Ints  # where the table starts
    low: Floats  # log of its smallest positive entry
    logs: Floats  # all tables
    probs: Floats  # exp(logs)
    prune: bool  # whether rows of every table sum to one, so that unobserved leaves drop out
    width: int  # largest scope a factor may have
    capacity: int  # cells for the messages of one row


class Work(NamedTuple):
    """Buffers for one row at a time. Factors are numbered: first the families, then the messages."""

    needed: Flags
    alive: Flags
    size: Ints  # number of free variables of a factor, -1 where it is no factor of this row
    scope: Ints  # its free variables
    stride: Ints  # their strides
    base: Ints
    tstride: Ints
    low: Floats
    at: Ints  # position of each used factor for one cell of a message
    vstride: Ints  # stride in it of the variable that is summed out
    term: Floats  # one product, and a sum of them, for all levels of the target
    total: Floats
    logs: Floats  # all tables, then the messages
    probs: Floats  # exp(logs)
    used: Ints  # factors in the order in which they are used up; step s uses used[used_at[s] : used_at[s + 1]]
    used_at: Ints
    summed: Ints  # the variable of each step
    message: Ints  # where its message starts
    message_scope: Ints
    message_size: Ints  # number of variables in its scope
    counters: Ints  # steps, message cells


@njit(cache=True, nogil=True)
def _new_work(plan: Plan) -> Work:
    d, levels = len(plan.cards), plan.cards[plan.target]
    m = 2 * d
    return Work(
        np.zeros(d, np.bool_),
        np.zeros(m, np.bool_),
        np.zeros(m, np.int64),
        np.zeros((m, plan.width), np.int64),
        np.zeros((m, plan.width), np.int64),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
        np.zeros(m),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
        np.zeros(levels),
        np.zeros(levels),
        np.concatenate((plan.logs, np.zeros(plan.capacity))),
        np.concatenate((plan.probs, np.zeros(plan.capacity))),
        np.zeros(m, np.int64),
        np.zeros(d + 1, np.int64),
        np.zeros(d, np.int64),
        np.zeros(d, np.int64),
        np.zeros((d, plan.width), np.int64),
        np.zeros(d, np.int64),
        np.zeros(2, np.int64),
    )


@njit(inline="always")
def _mark_needed(row: NDArray[np.int32], plan: Plan, needed: Flags) -> None:
    """needed[i]: i is observed, is the target, or has a needed child. The others sum to one and drop out."""
    for k in range(len(plan.topo) - 1, -1, -1):
        i = plan.topo[k]
        needed[i] = row[i] < plan.cards[i] or i == plan.target
        for j in range(plan.child_at[i], plan.child_at[i + 1]):
            if needed[plan.child[j]]:
                needed[i] = True


@njit(inline="always")
def _restrict(row: NDArray[np.int32], plan: Plan, work: Work) -> None:
    """Put the observed cells of a row into every family; what stays free is the factor's scope."""
    for f in range(len(plan.base)):
        work.size[f] = -1
        if not work.needed[f]:
            continue
        n, base = 0, plan.base[f]
        for m in range(plan.member_at[f], plan.member_at[f + 1]):
            v = plan.member[m]
            if row[v] < plan.cards[v]:
                base += plan.stride[m] * row[v]
            else:
                work.scope[f, n] = v
                work.stride[f, n] = plan.stride[m]
                n += 1
        work.size[f], work.base[f] = n, base
        work.tstride[f], work.low[f] = plan.tstride[f], plan.low[f]


@njit(inline="always")
def _stride_of(v: int, f: int, work: Work) -> int:
    for k in range(work.size[f]):
        if work.scope[f, k] == v:
            return int(work.stride[f, k])
    return 0


@njit(inline="always")
def _use_up(v: int, step: int, n_factors: int, plan: Plan, work: Work) -> int:
    """Take the living factors that hold v; their other variables are the scope of the message. Returns its cells."""
    last, n = work.used_at[step], 0
    for f in range(n_factors):
        if not work.alive[f] or _stride_of(v, f, work) == 0:
            continue
        work.used[last] = f
        work.alive[f] = False
        last += 1
        for k in range(work.size[f]):
            u = work.scope[f, k]
            known = u == v
            for j in range(n):
                known = known or work.message_scope[step, j] == u
            if not known:
                work.message_scope[step, n] = u
                n += 1
    work.used_at[step + 1], work.message_size[step], work.summed[step] = last, n, v
    cells = 1
    for j in range(n):
        cells *= plan.cards[work.message_scope[step, j]]
    return cells


@njit(inline="always")
def _locate(cell: int, step: int, plan: Plan, work: Work) -> None:
    """at[k]: where factor k stands for the cell-th assignment of the message's scope (last variable fastest)."""
    first, last = work.used_at[step], work.used_at[step + 1]
    for k in range(first, last):
        work.at[k] = work.base[work.used[k]]
    rest = cell
    for j in range(work.message_size[step] - 1, -1, -1):
        u = work.message_scope[step, j]
        x = rest % plan.cards[u]
        rest //= plan.cards[u]
        if x:
            for k in range(first, last):
                work.at[k] += x * _stride_of(u, work.used[k], work)


@njit(inline="always")
def _log_product(x: int, step: int, work: Work) -> None:
    """term[c]: sum of the logs of a step's factors at level x of the variable that is summed out."""
    levels = np.uint64(len(work.term))  # unsigned: without tests for negative positions the loops are vectorised
    for c in range(levels):
        work.term[c] = 0.0
    for k in range(work.used_at[step], work.used_at[step + 1]):
        start = np.uint64(work.at[k] + x * work.vstride[k])
        if work.tstride[work.used[k]] == 1:
            for c in range(levels):
                work.term[c] += work.logs[start + c]
        else:
            for c in range(levels):
                work.term[c] += work.logs[start]


@njit(inline="always")
def _sum_plain(card: int, step: int, work: Work, here: int) -> None:
    """Sum of products: all factors but the last are multiplied into `term`, the last on the way into the sum."""
    levels, out = np.uint64(len(work.term)), np.uint64(here)
    first, last = work.used_at[step], work.used_at[step + 1] - 1
    for c in range(levels):
        work.total[c] = 0.0
    for x in range(card):
        for c in range(levels):
            work.term[c] = 1.0
        for k in range(first, last):
            start = np.uint64(work.at[k] + x * work.vstride[k])
            if work.tstride[work.used[k]] == 1:
                for c in range(levels):
                    work.term[c] *= work.probs[start + c]
            else:
                for c in range(levels):
                    work.term[c] *= work.probs[start]
        start = np.uint64(work.at[last] + x * work.vstride[last])
        if work.tstride[work.used[last]] == 1:
            for c in range(levels):
                work.total[c] += work.term[c] * work.probs[start + c]
        else:
            for c in range(levels):
                work.total[c] += work.term[c] * work.probs[start]
    for c in range(levels):
        total = work.total[c]
        work.probs[out + c] = total
        work.logs[out + c] = math.log(total) if total > 0.0 else -np.inf


@njit(inline="always")
def _sum_logs(card: int, step: int, work: Work, here: int) -> None:
    """Log-sum-exp in one pass, with a running maximum for each level of the target."""
    levels = len(work.term)
    for c in range(levels):
        work.logs[here + c] = -np.inf
        work.probs[here + c] = 0.0
    for x in range(card):
        _log_product(x, step, work)
        for c in range(levels):
            top, value = work.logs[here + c], work.term[c]
            if value > top:
                work.probs[here + c] = work.probs[here + c] * math.exp(top - value) + 1.0
                work.logs[here + c] = value
            elif value > -np.inf:
                work.probs[here + c] += math.exp(value - top)
    for c in range(levels):
        if work.probs[here + c] > 0.0:
            work.logs[here + c] += math.log(work.probs[here + c])
        work.probs[here + c] = math.exp(work.logs[here + c])


@njit(inline="always")
def _sum_out(v: int, step: int, cells: int, room: int, plan: Plan, work: Work) -> float:
    """Fill the message of a step; returns the log of a lower bound on its positive entries."""
    bound = 0.0
    for k in range(work.used_at[step], work.used_at[step + 1]):
        work.vstride[k] = _stride_of(v, work.used[k], work)
        bound += work.low[work.used[k]]
    levels = plan.cards[plan.target]
    for cell in range(cells):
        _locate(cell, step, plan, work)
        if bound > SAFE_LOG:
            _sum_plain(plan.cards[v], step, work, room + cell * levels)
        else:
            _sum_logs(plan.cards[v], step, work, room + cell * levels)
    return bound


@njit(inline="always")
def _add_message(f: int, step: int, room: int, bound: float, plan: Plan, work: Work) -> None:
    """Make the message of a step the factor f."""
    n, by = work.message_size[step], plan.cards[plan.target]
    work.size[f], work.base[f], work.tstride[f], work.low[f], work.alive[f] = n, room, 1, bound, True
    for j in range(n - 1, -1, -1):
        work.scope[f, j], work.stride[f, j] = work.message_scope[step, j], by
        by *= plan.cards[work.message_scope[step, j]]


@njit(cache=True, nogil=True)
def _forward(row: NDArray[np.int32], plan: Plan, work: Work, joint: Floats) -> int:
    """Log joint of one row over the target's levels; returns 0, or the number of message cells it lacked."""
    levels, n_factors = len(joint), len(plan.base)
    work.needed[:] = True
    if plan.prune:
        _mark_needed(row, plan, work.needed)
    _restrict(row, plan, work)
    joint[:] = 0.0
    for f in range(n_factors):
        work.alive[f] = work.size[f] > 0
        if work.size[f] == 0:
            for c in range(levels):
                joint[c] += work.logs[work.base[f] + c * work.tstride[f]]
    room, step = len(plan.logs), 0
    for v in plan.order:
        if row[v] < plan.cards[v] or not work.needed[v]:
            continue
        cells = _use_up(v, step, n_factors, plan, work)
        if room + cells * levels > len(work.logs):
            return int(room + cells * levels - len(plan.logs))
        bound = _sum_out(v, step, cells, room, plan, work)
        if work.message_size[step] == 0:
            for c in range(levels):
                joint[c] += work.logs[room + c]
        else:
            _add_message(n_factors, step, room, bound, plan, work)
            n_factors += 1
        work.message[step] = room
        room += cells * levels
        step += 1
    work.counters[0], work.counters[1] = step, room
    return 0


@njit(inline="always")
def _share_out(cell: int, step: int, weight: Floats, adjoint: Floats, plan: Plan, work: Work) -> None:
    """Hand the weight on one cell of a message down to the factors it was made of."""
    levels = len(weight)
    here = work.message[step] + cell * levels
    for x in range(plan.cards[work.summed[step]]):
        _log_product(x, step, work)
        for c in range(levels):
            share = weight[c] if work.message_size[step] == 0 else adjoint[here + c]
            if share == 0.0 or work.term[c] == -np.inf:
                continue
            share *= math.exp(work.term[c] - work.logs[here + c])
            for k in range(work.used_at[step], work.used_at[step + 1]):
                adjoint[work.at[k] + x * work.vstride[k] + c * work.tstride[work.used[k]]] += share


@njit(inline="always")
def _backward(weight: Floats, adjoint: Floats, plan: Plan, work: Work) -> None:
    """Add the derivative of sum_c weight[c] * joint[c] by every log table entry, which is its expected count."""
    for i in range(len(plan.logs), work.counters[1]):
        adjoint[i] = 0.0
    for f in range(len(plan.base)):
        if work.size[f] == 0:
            for c in range(len(weight)):
                adjoint[work.base[f] + c * work.tstride[f]] += weight[c]
    for step in range(work.counters[0] - 1, -1, -1):
        cells = 1
        for j in range(work.message_size[step]):
            cells *= plan.cards[work.message_scope[step, j]]
        for cell in range(cells):
            _locate(cell, step, plan, work)
            _share_out(cell, step, weight, adjoint, plan, work)


@njit(cache=True, nogil=True)
def expected_counts(rows: NDArray[np.int32], weights: Floats, plan: Plan) -> tuple[Floats, float, int]:
    """Expected counts of every table entry summed over the rows, and the weighted log-likelihood.

    `weights` (rows x target levels) says how much each row speaks for each level of the target. The third value is 0,
    or the message cells that the failing row lacks.
    """
    joint = np.zeros(plan.cards[plan.target])
    adjoint = np.zeros(len(plan.logs) + plan.capacity)
    work = _new_work(plan)
    likelihood = 0.0
    for n in range(len(rows)):
        lacking = _forward(rows[n], plan, work, joint)
        if lacking:
            return adjoint, likelihood, lacking
        for c in range(len(joint)):
            if weights[n, c] > 0.0:
                likelihood += weights[n, c] * joint[c]
        _backward(weights[n], adjoint, plan, work)
    return adjoint[: len(plan.logs)], likelihood, 0
