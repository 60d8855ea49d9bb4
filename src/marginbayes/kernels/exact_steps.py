"""Steps of a simplex method between vertices: what changes, how far a step can go, and what takes whose place.

Of all that could be let go or in, the steps with the greatest fall for their length are taken; lengths are estimated by
Devex weights (Forrest & Goldfarb 1992).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import inner
from marginbayes.kernels.exact_lines import add_lines, along_lines
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


@inner(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _blocking(
    whole: Floats, sheet: Sheet, n: int, at: Vertex, room: Room, open_columns: Flags
) -> tuple[float, int, int]:
    """How far a step can go, and what is in the way: kind and number. Of several as near, what changes most."""
    d, by, step, kind, number, largest = at.size[0], room.by, np.inf, FREE, -1, 0.0
    amounts, values, change, is_tight = at.amount, at.values, room.change, at.is_tight
    first, feature = sheet.first, sheet.feature
    limits, least = room.limits, np.inf
    for i in range(n):
        price, own = amounts[i], by[i]
        for c in range(np.uint64(first[i]), np.uint64(first[i + 1])):  # without branches: many at a time
            fall, slack = -(own + change[c]), max(price - values[c], 0.0)
            falls = (fall > SMALL) & open_columns[c] & ~is_tight[c]
            limits[c] = (slack if falls else np.inf) / (fall if falls else 1.0)
    for c in range(len(limits)):
        least = min(least, limits[c])
    if least < np.inf:
        for c in range(len(limits)):
            if limits[c] < least + EDGE:
                fall = -(by[feature[c]] + change[c])
                if fall > largest:
                    step, kind, number, largest = least, OPTION, c, fall
    for z in range(n, d):
        if by[z] < -SMALL:
            limit = max(amounts[z], 0.0) / -by[z]
            if limit < step - EDGE or (limit < step + EDGE and -by[z] > largest):
                step, kind, number, largest = min(step, limit), ROW, z, -by[z]
    group, used, owner = room.group, at.used, room.owner
    for z in range(n, d + 1):
        m = owner[z]
        if m >= 0 and group[m] > SMALL:
            limit = max(whole[m] - used[m], 0.0) / group[m]
            if limit < step - EDGE or (limit < step + EDGE and group[m] > largest):
                step, kind, number, largest = min(step, limit), REFERENCE, m, group[m]
    return step, kind, number


@inner(cache=True, nogil=True)
def _times_line(at: Vertex, room: Room) -> None:
    """The inverse times the entering row's coefficients of the tight options."""
    d, amounts, line, tight = at.size[0], room.amounts, room.line, at.tight
    for t in range(d):
        amounts[t] = line[tight[t]]
    along_lines(at.inverse, amounts, d, room.by)


@inner(cache=True, nogil=True)
def _option_line(at: Vertex, sheet: Sheet, column: int, n: int, room: Room) -> None:
    """The line of an option in the matrix, times the inverse."""
    d, i, amounts, spare, inverse, lines = (
        at.size[0],
        sheet.feature[column],
        room.amounts,
        room.spare,
        at.inverse,
        at.lines,
    )
    for t in range(d):
        spare[t] = inverse[i, t]
    for z in range(d - n):
        amounts[z] = -lines[z, column]
    add_lines(inverse, room.order[n:], amounts, d - n, d, spare)


@inner(cache=True, nogil=True)
def _direction(rivals: int, n: int, at: Vertex, room: Room, leaving: int, sign: float, row: int) -> None:
    """How the variables, the sums of samples and the values change in a step."""
    d, by, change, line, inverse = at.size[0], room.by, room.change, room.line, at.inverse
    if leaving >= 0:
        change[:] = 0.0
        for z in range(d):
            by[z] = sign * inverse[z, leaving]
    else:
        for c in range(len(change)):
            change[c] = -line[c]
        _times_line(at, room)
    amounts, rows, group, owner = room.amounts, at.row, room.group, room.owner
    for z in range(n, d):
        amounts[z - n] = -by[z]
    add_lines(at.lines, room.order, amounts, d - n, len(change), change)
    for z in range(n, d):
        owner[z] = sample_of(rivals, rows[z]) if rows[z] < CLUSTER else -1
        if owner[z] >= 0:
            group[owner[z]] = 0.0
    owner[d] = sample_of(rivals, row) if row != NOBODY and row < CLUSTER else -1
    if owner[d] >= 0:
        group[owner[d]] = 1.0
    for z in range(n, d):
        if owner[z] >= 0:
            group[owner[z]] += by[z]


@inner(cache=True, nogil=True)
def _move(n: int, at: Vertex, room: Room, step: float, rate: float) -> None:
    """Go so far."""
    d, amounts, by, owner, used, values, change = (
        at.size[0],
        at.amount,
        room.by,
        room.owner,
        at.used,
        at.values,
        room.change,
    )
    for z in range(d):
        amounts[z] += step * by[z]
    for z in range(n, d):
        if owner[z] >= 0:
            used[owner[z]] += step * by[z]
    if owner[d] >= 0:
        used[owner[d]] += step
    for c in range(len(values)):
        values[c] -= step * change[c]
    at.objective[0] -= step * rate


@inner(cache=True, nogil=True)
def _free_of(rivals: int, n: int, at: Vertex, sample: int) -> int:
    """The free row of a sample that grows most, -1 if there is none."""
    best = -1
    for z in range(n, at.size[0]):
        same = at.row[z] < CLUSTER and sample_of(rivals, at.row[z]) == sample
        if same and (best < 0 or at.amount[z] > at.amount[best]):
            best = z
    return best


@inner(cache=True, nogil=True)
def _follow(
    rivals: int, at: Vertex, near: Near, room: Room, line: Floats, column: int, amount: float, factor: float
) -> None:
    """Shares, margins and Devex weights after a step; to be called before the inverse changes.

    `line` is what each tight option makes of the one that leaves, of which so much goes; `factor` is the weight of what
    enters, over the square of the pivot. If what becomes tight is an option, `column` is its number, else it is
    negative.
    """
    d, out, size = at.size[0], room.pivots, near.number[0] * rivals
    shares, weights, margins, columns = room.shares, room.option_weight, room.margins, near.columns
    for t in range(d):
        shares[t] -= amount * line[t]
        weights[t] = max(weights[t], line[t] * line[t] * factor)
    for k in range(size):
        out[k] = -columns[column, k] if column >= 0 else 0.0
    add_lines(columns, at.tight, line, d, size, out)
    for k in range(size):
        margins[k] -= amount * out[k]
    row_weight, constant_weight, samples, references = room.row_weight, room.constant_weight, near.samples, at.reference
    for p in range(near.number[0]):
        m = samples[p]
        reference = references[m]
        origin = out[p * rivals + reference - m * rivals] if reference >= 0 else 0.0
        constant_weight[p] = max(constant_weight[p], origin * origin * factor)
        for r in range(p * rivals, (p + 1) * rivals):
            row_weight[r] = max(row_weight[r], (out[r] - origin) ** 2 * factor)


@inner(cache=True, nogil=True)
def _weight_of(rivals: int, near: Near, room: Room, row: int) -> float:
    if row >= CLUSTER:
        return 1.0
    m = sample_of(rivals, row)
    p = near.place[m]
    return float(room.row_weight[p * rivals + row - m * rivals] if row >= 0 else room.constant_weight[p])


@inner(cache=True, nogil=True)
def _set_weight(rivals: int, near: Near, room: Room, row: int, weight: float) -> None:
    if row < CLUSTER and near.place[sample_of(rivals, row)] >= 0:
        m = sample_of(rivals, row)
        p = near.place[m]
        if row >= 0:
            room.row_weight[p * rivals + row - m * rivals] = weight
        else:
            room.constant_weight[p] = weight


@inner(cache=True, nogil=True)
def let_go(space: Space, sheet: Sheet, n: int, at: Vertex, near: Near, room: Room, open_columns: Flags, t: int) -> bool:
    """A tight option goes; whether that was possible."""
    rivals, share, weight = space.rivals, room.shares[t], room.option_weight[t]
    _direction(rivals, n, at, room, t, 1.0 if share < 0.0 else -1.0, NOBODY)
    step, kind, number = _blocking(space.data.weights, sheet, n, at, room, open_columns)
    if kind == FREE:
        return False
    _move(n, at, room, step, abs(share))
    if kind == OPTION:
        _option_line(at, sheet, number, n, room)
        pivot = room.spare[t]
        _follow(rivals, at, near, room, room.spare, number, share / pivot, weight / (pivot * pivot))
        room.shares[t], room.option_weight[t] = share / pivot, max(weight / (pivot * pivot), 1.0)
        return bool(exchange_option(at, t, number, room.spare))
    z = number if kind == ROW else _free_of(rivals, n, at, number)
    if kind == REFERENCE:
        switch_reference(space, at, n, z)
    if at.row[z] < CLUSTER:
        at.used[sample_of(rivals, at.row[z])] -= at.amount[z]
    pivot, row, last = at.inverse[z, t], at.row[z], at.size[0] - 1
    _follow(rivals, at, near, room, at.inverse[z], -1, share / pivot, weight / (pivot * pivot))
    _set_weight(rivals, near, room, row, max(weight / (pivot * pivot), 1.0))
    room.shares[t], room.option_weight[t] = room.shares[last], room.option_weight[last]
    return bool(drop(at, n, z, t, room.amounts))


@inner(cache=True, nogil=True)
def _resum(rivals: int, n: int, at: Vertex, sample: int, more: float) -> None:
    """The sum of a sample's free multipliers, and more."""
    at.used[sample] = more
    for z in range(n, at.size[0]):
        if at.row[z] < CLUSTER and sample_of(rivals, at.row[z]) == sample:
            at.used[sample] += at.amount[z]


@inner(cache=True, nogil=True)
def let_in(
    space: Space, sheet: Sheet, n: int, at: Vertex, near: Near, room: Room, open_columns: Flags, row: int, rate: float
) -> bool:
    """A row gets a multiplier; whether that was possible."""
    rivals, cost = space.rivals, line_of(space, sheet, at, row, room.line)
    weight = _weight_of(rivals, near, room, row)
    _direction(rivals, n, at, room, -1, 0.0, row)
    step, kind, number = _blocking(space.data.weights, sheet, n, at, room, open_columns)
    if kind == FREE:
        return False
    _move(n, at, room, step, rate)
    d, amount = at.size[0], step
    if kind == OPTION:
        if d == len(at.tight):
            return False
        pivot = room.by[sheet.feature[number]] + room.change[number]
        _option_line(at, sheet, number, n, room)
        _follow(rivals, at, near, room, room.spare, number, -rate / pivot, weight / (pivot * pivot))
        room.shares[d], room.option_weight[d] = -rate / pivot, max(weight / (pivot * pivot), 1.0)
        for k in range(d):
            room.by[k] = -room.by[k]
        done = grow(at, n, row, cost, room.line, number, room.by, pivot, room.spare)
        if done:
            at.amount[d] = amount
        return bool(done)
    z = number if kind == ROW else _free_of(rivals, n, at, number)
    if kind == REFERENCE:
        same = row < CLUSTER and number == sample_of(rivals, row)
        if same and z < 0:  # the row takes all of its sample
            at.reference[number], at.used[number] = row, 0.0
            return True
        if same:
            for c in range(len(room.line)):
                room.line[c] -= at.lines[z - n, c]
            cost -= at.cost[z]
            # The sum of the free multipliers holds the entering one; the switch does not know it.
            switch_reference(space, at, n, z)
            at.amount[z] = 0.0
            _resum(rivals, n, at, number, amount)
        else:
            switch_reference(space, at, n, z)
        _times_line(at, room)
    for k in range(d):
        room.by[k] = -room.by[k]
    if at.row[z] < CLUSTER:
        at.used[sample_of(rivals, at.row[z])] -= at.amount[z]
    pivot = room.by[z]
    if abs(pivot) < EDGE:
        return False
    _follow(rivals, at, near, room, at.inverse[z], -1, rate / pivot, weight / (pivot * pivot))
    _set_weight(rivals, near, room, at.row[z], max(weight / (pivot * pivot), 1.0))
    if not exchange_row(at, n, z, row, cost, room.line, room.by):
        return False
    at.amount[z] = amount
    return True
