"""Vertices of the dual of a part's relaxation, and how they change: one tight option for each variable that is free.

The relaxation gives every feature shares of its options; its dual has a price u of each feature, multipliers of margin
rows, and of clusters of features that must not hold a cycle:

    minimise   sum of u[i] + sum of multiplier * base
    subject to u[i] >= value of each option of feature i, the sum of multiplier * coefficient of the option

The multipliers of a sample's rows, one more row being the constant gamma, sum to its weight. So each sample has a
*reference* row, which takes what the others leave, and all numbers of the others are relative to it. A cluster is like
a sample without a limit, with a reference that is nothing. At a vertex all rows but the references have nothing, save
some that are free; and there is a tight option for every price and every free row. Matrix [tight option, variable]:
one for the price of the option's feature, minus the coefficient for a row. Its inverse is kept.

Whatever a vertex is worth numerically, its multipliers bound the part: nothing rests on the accuracy of the inverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import inner, njit
from marginbayes.kernels.exact_lines import take_line
from marginbayes.kernels.exact_space import Space

__all__ = [
    "CLUSTER",
    "Sheet",
    "Vertex",
    "copy_vertex",
    "drop",
    "exchange_option",
    "exchange_row",
    "grow",
    "invert",
    "line_of",
    "new_vertex",
    "sample_of",
    "switch_reference",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Rows are numbered: those of the problem from 0, the constant of sample m is -1 - m, and clusters begin here.
CLUSTER = 1 << 40


class Sheet(NamedTuple):
    """Options of a part, the columns of everything here, and the clusters in use."""

    slots: Ints  # feature * number of options + option
    first: Ints  # the column each feature begins with, and how many there are
    feature: Ints
    option: Ints
    base: Floats  # margin of each row by the class alone
    clusters: Flags  # [cluster, feature]
    number: Ints  # how many there are
    noise: Floats  # what the values of the columns have too much, lest ties let steps go in circles


class Vertex(NamedTuple):
    """A vertex. The first variables are the prices of the features, the others free rows."""

    size: Ints  # number of variables, changes since the inverse was computed
    objective: Floats  # one number
    tight: Ints  # column of each tight option
    is_tight: Flags  # of each column
    row: Ints  # of each variable
    amount: Floats  # price or multiplier
    cost: Floats  # of a variable in the objective
    inverse: Floats  # [variable, tight option]
    lines: Floats  # coefficients of the free rows, relative to their references [variable - features, column]
    values: Floats  # of each column
    reference: Ints  # row of each sample
    used: Floats  # sum of the free multipliers of each sample


@njit(cache=True, nogil=True)
def new_vertex(n: int, most: int, columns: int, samples: int) -> Vertex:
    """Room for a vertex with at most so many free rows."""
    size = n + most
    return Vertex(
        np.zeros(2, np.int64),
        np.zeros(1),
        np.zeros(size, np.int64),
        np.zeros(columns, np.bool_),
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros(size),
        np.empty((size, size)),
        np.empty((most, columns)),
        np.zeros(columns),
        np.zeros(samples, np.int64),
        np.zeros(samples),
    )


@njit(cache=True, nogil=True)
def copy_vertex(source: Vertex, n: int, into: Vertex) -> None:
    """The same vertex in another room."""
    d = source.size[0]
    into.size[:], into.objective[:] = source.size, source.objective
    into.tight[:d], into.row[:d] = source.tight[:d], source.row[:d]
    into.amount[:d], into.cost[:d] = source.amount[:d], source.cost[:d]
    into.is_tight[:], into.values[:] = source.is_tight, source.values
    into.reference[:], into.used[:] = source.reference, source.used
    for z in range(d):
        into.inverse[z, :d] = source.inverse[z, :d]
    for z in range(d - n):
        into.lines[z] = source.lines[z]


@inner(cache=True, nogil=True)
def _add_row(space: Space, sheet: Sheet, row: int, sign: float, out: Floats) -> None:
    """Add the coefficients of a row."""
    if row >= CLUSTER:
        inside, option, feature = sheet.clusters[row - CLUSTER], sheet.option, sheet.feature
        for c in range(len(out)):
            if inside[feature[c]] and option[c] > 1 and inside[option[c] - 2]:
                out[c] -= sign
    elif row >= 0:
        dense, slots = space.dense, sheet.slots
        for c in range(len(out)):
            out[c] += sign * dense[row, slots[c]]


@njit(inline="always")
def _base(space: Space, sheet: Sheet, row: int) -> float:
    if row >= CLUSTER:
        return float(sheet.clusters[row - CLUSTER].sum() - 1.0)
    return float(sheet.base[row] if row >= 0 else space.gamma)


@inner(cache=True, nogil=True)
def line_of(space: Space, sheet: Sheet, at: Vertex, row: int, out: Floats) -> float:
    """Coefficients of a row relative to its reference; its cost comes back."""
    out[:] = 0.0
    _add_row(space, sheet, row, 1.0, out)
    if row >= CLUSTER:
        return float(_base(space, sheet, row))
    reference = at.reference[row // space.rivals if row >= 0 else -1 - row]
    _add_row(space, sheet, reference, -1.0, out)
    return float(_base(space, sheet, row) - _base(space, sheet, reference))


# -- changes of the inverse


@inner(cache=True, nogil=True)
def _write(line: Floats, into: Floats) -> None:
    for k in range(len(into)):
        into[k] = line[k]


@inner(cache=True, nogil=True)
def _add(line: Floats, amount: float, into: Floats) -> None:
    for k in range(len(into)):
        into[k] += amount * line[k]


@inner(cache=True, nogil=True)
def exchange_option(at: Vertex, t: int, column: int, line: Floats) -> bool:
    """A tight option gives way to another, whose line times the inverse is given; whether the numbers allow it."""
    d, inverse, pivot = at.size[0], at.inverse, line[t]
    if abs(pivot) < 1e-9:
        return False
    line[t] = 0.0
    for z in range(d):
        share = inverse[z, t] / pivot
        if share != 0.0:
            for j in range(d):
                inverse[z, j] -= share * line[j]
            inverse[z, t] = share
    at.is_tight[at.tight[t]], at.is_tight[column], at.tight[t] = False, True, column
    return True


@inner(cache=True, nogil=True)
def exchange_row(at: Vertex, n: int, z: int, row: int, cost: float, line: Floats, by: Floats) -> bool:
    """A free row gives way to another one; `by` is how fast the variables fall as that one grows."""
    d, inverse, pivot = at.size[0], at.inverse, by[z]
    if abs(pivot) < 1e-9:
        return False
    for t in range(d):
        inverse[z, t] /= pivot
    by[z] = 0.0
    take_line(inverse, inverse[z], by, d)
    at.row[z], at.cost[z] = row, cost
    _write(line, at.lines[z - n])
    return True


@inner(cache=True, nogil=True)
def grow(
    at: Vertex, n: int, row: int, cost: float, line: Floats, column: int, by: Floats, pivot: float, own: Floats
) -> bool:
    """A row becomes free, and an option tight; `by` as in `exchange_row`, `own` the option's line times the inverse."""
    d, inverse = at.size[0], at.inverse
    if abs(pivot) < 1e-9:
        return False
    for z in range(d):
        by[z] /= -pivot
        inverse[z, d] = by[z]
    take_line(inverse, own, by, d)
    for t in range(d):
        inverse[d, t] = -own[t] / pivot
    inverse[d, d] = 1.0 / pivot
    at.row[d], at.cost[d], at.tight[d], at.is_tight[column] = row, cost, column, True
    _write(line, at.lines[d - n])
    at.size[0] += 1
    return True


@inner(cache=True, nogil=True)
def drop(at: Vertex, n: int, z: int, t: int, amounts: Floats) -> bool:
    """A free row and a tight option leave; the last ones take their places. `amounts` is room for numbers."""
    last, inverse, pivot = at.size[0] - 1, at.inverse, at.inverse[z, t]
    if abs(pivot) < 1e-9:
        return False
    for other in range(last + 1):
        amounts[other] = inverse[other, t] / pivot
    amounts[z] = 0.0  # its line goes
    take_line(inverse, inverse[z], amounts, last + 1)
    at.is_tight[at.tight[t]] = False
    at.tight[t] = at.tight[last]
    for other in range(last + 1):
        inverse[other, t] = inverse[other, last]
    if z != last:
        _write(inverse[last, :last], inverse[z, :last])
        at.row[z], at.amount[z], at.cost[z] = at.row[last], at.amount[last], at.cost[last]
        _write(at.lines[last - n], at.lines[z - n])
    at.size[0] = last
    return True


@inner(cache=True, nogil=True)
def switch_reference(space: Space, at: Vertex, n: int, z: int) -> None:
    """The free row of variable z becomes the reference of its sample, and the reference that variable."""
    d, sample = at.size[0], sample_of(space.rivals, at.row[z])
    total = 0.0
    for other in range(n, d):
        if other != z and at.row[other] < CLUSTER and sample_of(space.rivals, at.row[other]) == sample:
            _add(at.inverse[other, :d], 1.0, at.inverse[z, :d])
            _add(at.lines[z - n], -1.0, at.lines[other - n])
            at.cost[other] -= at.cost[z]
            total += at.amount[other]
    _add(at.inverse[z, :d], -2.0, at.inverse[z, :d])
    _add(at.lines[z - n], -2.0, at.lines[z - n])
    at.cost[z] *= -1.0
    at.amount[z] = space.data.weights[sample] - total - at.amount[z]
    at.used[sample] = total + at.amount[z]
    at.row[z], at.reference[sample] = at.reference[sample], at.row[z]


@njit(inline="always")
def sample_of(rivals: int, row: int) -> int:
    """The sample that a row belongs to, which is no cluster."""
    return row // rivals if row >= 0 else -1 - row


@njit(cache=True, nogil=True, _nrt=True)  # else it would take over what `lent` says
def invert(at: Vertex, sheet: Sheet, n: int) -> bool:
    """Compute the inverse anew; whether there is one."""
    d = at.size[0]
    matrix = np.zeros((d, d))
    for t in range(d):
        matrix[t, sheet.feature[at.tight[t]]] = 1.0
        for z in range(n, d):
            matrix[t, z] = -at.lines[z - n, at.tight[t]]
    at.size[1] = 0
    try:
        found = np.linalg.inv(matrix)
    except Exception:  # noqa: BLE001 - compiled code knows no other
        return False
    at.inverse[:d, :d] = found
    return bool(np.isfinite(found).all())
