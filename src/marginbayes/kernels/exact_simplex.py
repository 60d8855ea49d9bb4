"""The relaxation of a part by a simplex method on its dual, which goes on from any vertex of a larger part.

Where options are taken out of a part, its dual has fewer inequalities: a vertex of the larger part stays feasible, and
every step lowers the bound. A step lets go of a tight option whose share is negative, or is not allowed any more, or
lets a row in whose margin is below that of its sample's reference, until the next option or row is in the way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import inner, lent, njit
from marginbayes.kernels.exact_clusters import violated_clusters
from marginbayes.kernels.exact_lines import add_lines
from marginbayes.kernels.exact_near import Near, Room, margins_near
from marginbayes.kernels.exact_space import Space
from marginbayes.kernels.exact_steps import NOBODY, SMALL, let_go, let_in
from marginbayes.kernels.exact_vertex import CLUSTER, Sheet, Vertex, invert

__all__ = ["find_clusters", "improve", "settle"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Steps after which the inverse is computed anew.
FRESH = 120


@inner(cache=True, nogil=True)
def _shares_at(at: Vertex, room: Room) -> None:
    """Share of every tight option."""
    d = at.size[0]
    room.shares[:d] = 0.0
    add_lines(at.inverse, room.order, at.cost, d, d, room.shares)


@inner(cache=True, nogil=True)
def _choose_option(at: Vertex, open_columns: Flags, room: Room) -> tuple[int, float]:
    """The tight option that should go most, and how much so."""
    best, most, shares, weights, tight = -1, 0.0, room.shares, room.option_weight, at.tight
    for t in range(at.size[0]):
        share = shares[t]
        if abs(share) > SMALL and (share < 0.0 or not open_columns[tight[t]]):
            merit = share * share / weights[t]
            if merit > most:
                best, most = t, merit
    return best, most


@inner(cache=True, nogil=True)
def _choose_row(space: Space, at: Vertex, near: Near, room: Room, least: float) -> tuple[int, float]:
    """The row, of samples that are looked at, that should come in most, if more than the least; and how wrong it is."""
    rivals, margins, samples, references, gamma = space.rivals, room.margins, near.samples, at.reference, space.gamma
    best, most, wrong, row_weight, constant_weight = NOBODY, least, 0.0, room.row_weight, room.constant_weight
    for p in range(near.number[0]):
        m = samples[p]
        reference, low, row, weight = references[m], gamma, -1 - m, constant_weight[p]
        own = margins[p * rivals + reference - m * rivals] if reference >= 0 else gamma
        for r in range(rivals):
            if margins[p * rivals + r] < low:
                low, row, weight = margins[p * rivals + r], m * rivals + r, row_weight[p * rivals + r]
        if own - low > SMALL and row != reference and (own - low) ** 2 > most * weight:
            best, most, wrong = row, (own - low) ** 2 / weight, own - low
    return best, wrong


@lent(cache=True, nogil=True)
def _choose_cluster(sheet: Sheet, at: Vertex, room: Room, least: float) -> tuple[int, float]:
    """The cluster, of those known, that holds too much of its members' parents."""
    best, most = NOBODY, least
    for c in range(sheet.number[0]):
        inside, total = sheet.clusters[c], 1.0 - sheet.clusters[c].sum()
        for t in range(at.size[0]):
            column = at.tight[t]
            o = sheet.option[column]
            if o > 1 and inside[sheet.feature[column]] and inside[o - 2]:
                total += room.shares[t]
        if total > most:
            best, most = CLUSTER + c, total
    return best, most


@lent(cache=True, nogil=True)
def improve(
    space: Space,
    sheet: Sheet,
    n: int,
    at: Vertex,
    near: Near,
    room: Room,
    open_columns: Flags,
    cutoff: float,
    most: int,
) -> int:
    """Steps until the bound is at most the cutoff, or nothing that is looked at asks for one; how many there were.

    Minus that where the numbers do not allow to go on.
    """
    room.option_weight[:], room.row_weight[:], room.constant_weight[:] = 1.0, 1.0, 1.0
    since = FRESH  # steps after which shares and margins were computed anew; they follow the steps
    for steps in range(most):
        if at.objective[0] <= cutoff:
            return steps
        if at.size[1] >= FRESH:
            if not invert(at, sheet, n):
                return -steps - 1
            since = FRESH
        if since >= FRESH:
            _shares_at(at, room)
            margins_near(space, sheet, at, near, room)
            since = 0
        t, merit = _choose_option(at, open_columns, room)
        row, wrong = _choose_row(space, at, near, room, merit)
        if t < 0 and row == NOBODY and since > 0:  # look again
            since = FRESH
            continue
        if t < 0 and row == NOBODY:  # there are many clusters, and few matter
            row, wrong = _choose_cluster(sheet, at, room, SMALL)
        at.size[1] += 1
        since += 1
        if row != NOBODY:
            done = let_in(space, sheet, n, at, near, room, open_columns, row, wrong)
        elif t >= 0:
            done = let_go(space, sheet, n, at, near, room, open_columns, t)
        else:
            return steps
        if not done:
            if at.size[1] <= 1 or not invert(at, sheet, n):
                return -steps - 1
            since = FRESH
    return most


@njit(cache=True, nogil=True)
def settle(sheet: Sheet, at: Vertex, room: Room, shares: Floats) -> None:
    """Shares [feature, option] of a vertex, those below zero left out."""
    _shares_at(at, room)
    shares[:] = 0.0
    for t in range(at.size[0]):
        c = at.tight[t]
        shares[sheet.feature[c], sheet.option[c]] = max(room.shares[t], 0.0)
    for i in range(len(shares)):
        shares[i] /= shares[i].sum()


@njit(cache=True, nogil=True)
def find_clusters(sheet: Sheet, shares: Floats, tolerance: float) -> bool:
    """Note clusters that the shares violate, as many as there is room for; whether there are any."""
    found, before = violated_clusters(shares, tolerance), sheet.number[0]
    for f in range(len(found)):
        if sheet.number[0] < len(sheet.clusters):
            sheet.clusters[sheet.number[0]] = found[f]
            sheet.number[0] += 1
    return bool(sheet.number[0] > before)
