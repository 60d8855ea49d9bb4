"""Steps of a simplex method between vertices: what changes, how far a step can go, and what takes whose place.

Of all that could be let go or in, the steps with the greatest fall for their length are taken; lengths are estimated by
Devex weights (Forrest & Goldfarb 1992).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_near import Near, Room
from marginbayes.kernels.exact_space import Space
from marginbayes.kernels.exact_vertex import (
    CLUSTER,
    Sheet,
    Vertex,
    drop,
    exchange_option,
    exchange_row,
    grow,
    line_of,
    option_line,
    sample_of,
    switch_reference,
)

__all__ = ["NOBODY", "SMALL", "let_go", "let_in"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Shares and margins that are wrong by less are right; multipliers and slacks by less are at their border.
SMALL, EDGE = 1e-7, 1e-10
# What is in the way of a step: nothing, an option that becomes tight, a free multiplier that comes to nothing, or a
# sample whose reference has nothing left.
FREE, OPTION, ROW, REFERENCE = 0, 1, 2, 3
# In place of a row where there is none.
NOBODY = -CLUSTER


@njit(cache=True, nogil=True)
def _blocking(
    space: Space, sheet: Sheet, n: int, at: Vertex, room: Room, open_columns: Flags, row: int
) -> tuple[float, int, int]:
    """How far a step can go, and what is in the way: kind and number. Of several as near, what changes most."""
    d, by, step, kind, number, largest = at.size[0], room.by, np.inf, FREE, -1, 0.0
    for c in range(len(sheet.slots)):
        fall = -(by[sheet.feature[c]] + room.change[c])
        if fall > SMALL and open_columns[c] and not at.is_tight[c]:
            slack = at.amount[sheet.feature[c]] - at.values[c]
            limit = max(slack, 0.0) / fall
            if limit < step - EDGE or (limit < step + EDGE and fall > largest):
                step, kind, number, largest = min(step, limit), OPTION, c, fall
    for z in range(n, d):
        if by[z] < -SMALL:
            limit = max(at.amount[z], 0.0) / -by[z]
            if limit < step - EDGE or (limit < step + EDGE and -by[z] > largest):
                step, kind, number, largest = min(step, limit), ROW, z, -by[z]
    for z in range(n, d + 1):
        own = row if z == d else at.row[z]
        if own == NOBODY or own >= CLUSTER:
            continue
        m = sample_of(space, own)
        if room.group[m] > SMALL:
            limit = max(space.data.weights[m] - at.used[m], 0.0) / room.group[m]
            if limit < step - EDGE or (limit < step + EDGE and room.group[m] > largest):
                step, kind, number, largest = min(step, limit), REFERENCE, m, room.group[m]
    return step, kind, number


@njit(cache=True, nogil=True)
def _direction(space: Space, n: int, at: Vertex, room: Room, leaving: int, sign: float, row: int) -> None:
    """How the variables, the sums of samples and the values change in a step."""
    d, by = at.size[0], room.by
    if leaving >= 0:
        for z in range(d):
            by[z] = sign * at.inverse[z, leaving]
    else:
        for z in range(d):
            total, line = 0.0, at.inverse[z]
            for t in range(d):
                total += line[t] * room.line[at.tight[t]]
            by[z] = total
    room.change[:] = 0.0
    if leaving < 0:
        room.change[:] = -room.line
    for z in range(n, d):
        amount = by[z]
        if amount != 0.0:
            line = at.lines[z - n]
            for c in range(len(line)):
                room.change[c] -= amount * line[c]
    for z in range(n, d):
        if at.row[z] < CLUSTER:
            room.group[sample_of(space, at.row[z])] = 0.0
    if row != NOBODY and row < CLUSTER:
        room.group[sample_of(space, row)] = 1.0
    for z in range(n, d):
        if at.row[z] < CLUSTER:
            room.group[sample_of(space, at.row[z])] += by[z]


@njit(cache=True, nogil=True)
def _move(space: Space, n: int, at: Vertex, room: Room, step: float, rate: float, row: int) -> None:
    """Go so far."""
    d = at.size[0]
    for z in range(d):
        at.amount[z] += step * room.by[z]
        if z >= n and at.row[z] < CLUSTER:
            at.used[sample_of(space, at.row[z])] += step * room.by[z]
    if row != NOBODY and row < CLUSTER:
        at.used[sample_of(space, row)] += step
    for c in range(len(at.values)):
        at.values[c] -= step * room.change[c]
    at.objective[0] -= step * rate


@njit(cache=True, nogil=True)
def _free_of(space: Space, n: int, at: Vertex, sample: int) -> int:
    """The free row of a sample that grows most, -1 if there is none."""
    best = -1
    for z in range(n, at.size[0]):
        same = at.row[z] < CLUSTER and sample_of(space, at.row[z]) == sample
        if same and (best < 0 or at.amount[z] > at.amount[best]):
            best = z
    return best


@njit(cache=True, nogil=True)
def _reweigh(
    space: Space, at: Vertex, near: Near, room: Room, line: Floats, column: int, pivot: float, own: float
) -> None:
    """Devex weights after a step: `line` is what each tight option makes of the one that leaves, `own` the weight.

    If what leaves is an option, that becomes tight, `column` is its number, else it is negative.
    """
    rivals, count, d, out = space.rivals, near.number[0], at.size[0], room.pivots
    factor = own / (pivot * pivot)
    for t in range(d):
        room.option_weight[t] = max(room.option_weight[t], line[t] * line[t] * factor)
    for k in range(count * rivals):
        out[k] = 0.0
    if column >= 0:
        out[: count * rivals] = -near.columns[column, : count * rivals]
    for t in range(d):
        share, values = line[t], near.columns[at.tight[t]]
        if share != 0.0:
            for k in range(count * rivals):
                out[k] += share * values[k]
    for p in range(count):
        m = near.samples[p]
        reference = at.reference[m]
        origin = out[p * rivals + reference - m * rivals] if reference >= 0 else 0.0
        room.constant_weight[p] = max(room.constant_weight[p], origin * origin * factor)
        for r in range(p * rivals, (p + 1) * rivals):
            room.row_weight[r] = max(room.row_weight[r], (out[r] - origin) ** 2 * factor)


@njit(cache=True, nogil=True)
def _weight_of(space: Space, near: Near, room: Room, row: int) -> float:
    if row >= CLUSTER:
        return 1.0
    m = sample_of(space, row)
    p = near.place[m]
    return float(room.row_weight[p * space.rivals + row - m * space.rivals] if row >= 0 else room.constant_weight[p])


@njit(cache=True, nogil=True)
def _set_weight(space: Space, near: Near, room: Room, row: int, weight: float) -> None:
    if row < CLUSTER and near.place[sample_of(space, row)] >= 0:
        m = sample_of(space, row)
        p = near.place[m]
        if row >= 0:
            room.row_weight[p * space.rivals + row - m * space.rivals] = weight
        else:
            room.constant_weight[p] = weight


@njit(cache=True, nogil=True)
def let_go(space: Space, sheet: Sheet, n: int, at: Vertex, near: Near, room: Room, open_columns: Flags, t: int) -> bool:
    """A tight option goes; whether that was possible."""
    sign, weight = 1.0 if room.shares[t] < 0.0 else -1.0, room.option_weight[t]
    _direction(space, n, at, room, t, sign, NOBODY)
    step, kind, number = _blocking(space, sheet, n, at, room, open_columns, NOBODY)
    if kind == FREE:
        return False
    _move(space, n, at, room, step, abs(room.shares[t]), NOBODY)
    if kind == OPTION:
        option_line(at, sheet, number, n, room.spare)
        pivot = room.spare[t]
        _reweigh(space, at, near, room, room.spare, number, pivot, weight)
        room.option_weight[t] = max(weight / (pivot * pivot), 1.0)
        return bool(exchange_option(at, sheet, n, t, number, room.spare))
    z = number if kind == ROW else _free_of(space, n, at, number)
    if kind == REFERENCE:
        switch_reference(space, at, n, z)
    if at.row[z] < CLUSTER:
        at.used[sample_of(space, at.row[z])] -= at.amount[z]
    pivot, row = at.inverse[z, t], at.row[z]
    _reweigh(space, at, near, room, at.inverse[z], -1, pivot, weight)
    _set_weight(space, near, room, row, max(weight / (pivot * pivot), 1.0))
    room.option_weight[t] = room.option_weight[at.size[0] - 1]
    return bool(drop(at, n, z, t))


@njit(cache=True, nogil=True)
def _resum(space: Space, n: int, at: Vertex, sample: int, more: float) -> None:
    """The sum of a sample's free multipliers, and more."""
    at.used[sample] = more
    for z in range(n, at.size[0]):
        if at.row[z] < CLUSTER and sample_of(space, at.row[z]) == sample:
            at.used[sample] += at.amount[z]


@njit(cache=True, nogil=True)
def let_in(
    space: Space, sheet: Sheet, n: int, at: Vertex, near: Near, room: Room, open_columns: Flags, row: int, rate: float
) -> bool:
    """A row gets a multiplier; whether that was possible."""
    cost, weight = line_of(space, sheet, at, row, room.line), _weight_of(space, near, room, row)
    _direction(space, n, at, room, -1, 0.0, row)
    step, kind, number = _blocking(space, sheet, n, at, room, open_columns, row)
    if kind == FREE:
        return False
    _move(space, n, at, room, step, rate, row)
    d, amount = at.size[0], step
    if kind == OPTION:
        if d == len(at.tight):
            return False
        pivot = room.by[sheet.feature[number]] + room.change[number]
        option_line(at, sheet, number, n, room.spare)
        _reweigh(space, at, near, room, room.spare, number, pivot, weight)
        room.option_weight[d] = max(weight / (pivot * pivot), 1.0)
        room.by[:d] *= -1.0
        done = grow(at, sheet, n, row, cost, room.line, number, room.by, room.spare)
        if done:
            at.amount[d] = amount
        return bool(done)
    z = number if kind == ROW else _free_of(space, n, at, number)
    if kind == REFERENCE:
        same = row < CLUSTER and number == sample_of(space, row)
        if same and z < 0:  # the row takes all of its sample
            at.reference[number], at.used[number] = row, 0.0
            return True
        if same:
            room.line[:] -= at.lines[z - n]
            cost -= at.cost[z]
            # The sum of the free multipliers holds the entering one; the switch does not know it.
            switch_reference(space, at, n, z)
            at.amount[z] = 0.0
            _resum(space, n, at, number, amount)
        else:
            switch_reference(space, at, n, z)
        for k in range(d):
            total, line = 0.0, at.inverse[k]
            for t in range(d):
                total -= line[t] * room.line[at.tight[t]]
            room.by[k] = total
    else:
        room.by[:d] *= -1.0
    if at.row[z] < CLUSTER:
        at.used[sample_of(space, at.row[z])] -= at.amount[z]
    pivot = room.by[z]
    if abs(pivot) < EDGE:
        return False
    _reweigh(space, at, near, room, at.inverse[z], -1, pivot, weight)
    _set_weight(space, near, room, at.row[z], max(weight / (pivot * pivot), 1.0))
    if not exchange_row(at, n, z, row, cost, room.line, room.by):
        return False
    at.amount[z] = amount
    return True
