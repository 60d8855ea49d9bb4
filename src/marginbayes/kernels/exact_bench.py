"""Where parts with some columns are worked on: their vertex, the samples near their hinge, and room."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_climb import drawn
from marginbayes.kernels.exact_near import Near, Room, look_at, make_near, new_room
from marginbayes.kernels.exact_simplex import find_clusters, improve, settle
from marginbayes.kernels.exact_space import EPSILON, UNIT, WHOLE, Multipliers, Space, quick_margins
from marginbayes.kernels.exact_vertex import CLUSTER, Sheet, Vertex, new_vertex

__all__ = [
    "Bench",
    "linear_by",
    "make_sheet",
    "new_bench",
    "relax_part",
    "smaller",
    "snapshot",
    "use_clusters",
    "vertex_multipliers",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Free rows of a vertex, samples that are looked at, and clusters, at most.
MOST_FREE, MOST_NEAR, MOST_CLUSTERS = 300, 1000, 400
# Steps and rounds of a relaxation, and how much of the distance to the cutoff it may leave.
STEPS, ROUNDS, TOLERANCE = 3000, 30, 0.02
# Samples that come to be looked at in a round, at most; they no longer are when columns are made fewer, and they are so
# far from their hinge.
MORE, AWAY = 60, 1.0
# How far shares may violate a cluster.
VIOLATION = 0.02
# Relative to the greatest soft margin, and where its random numbers begin.
NOISE, SEED = 1e-9, 1
# Margins below that of their reference by less are as they should be; they are computed to six digits.
LEAST = 1e-4


class Bench(NamedTuple):
    """What the parts with some columns are worked on with."""

    sheet: Sheet
    at: Vertex
    near: Near
    room: Room


@njit(cache=True, nogil=True)
def make_sheet(base: Floats, ceiling: float, allowed: Flags, clusters: Flags) -> Sheet:
    """The options of a part as columns, and clusters to begin with. An option's noise is always the same."""
    (n, k), slots = allowed.shape, np.flatnonzero(allowed.reshape(allowed.size))
    feature, room = slots // k, np.zeros((MOST_CLUSTERS, len(allowed)), np.bool_)
    count = min(len(clusters), MOST_CLUSTERS // 2)
    room[:count] = clusters[:count]
    seed, noise = np.array([SEED]), np.empty(allowed.size)
    for s in range(len(noise)):
        noise[s] = NOISE * ceiling * (0.5 + drawn(seed, 1 << 20) / (1 << 20))
    first = np.searchsorted(feature, np.arange(n + 1))
    return Sheet(slots, first, feature, slots % k, base, room, np.array([count]), noise[slots])


@njit(cache=True, nogil=True)
def new_bench(sheet: Sheet, n: int, samples: int, rivals: int) -> Bench:
    columns, near = len(sheet.slots), min(MOST_NEAR, samples)
    return Bench(
        sheet,
        new_vertex(n, MOST_FREE, columns, samples),
        make_near(columns, samples, near, rivals),
        new_room(n + MOST_FREE, columns, near * rivals, samples),
    )


@njit(cache=True, nogil=True)
def _take_columns(source: Vertex, n: int, columns: Ints, into: Vertex) -> None:
    """The same vertex with some of the columns."""
    d, place = source.size[0], np.full(len(source.values), -1)
    place[columns] = np.arange(len(columns))
    into.size[:], into.objective[:] = source.size, source.objective
    into.tight[:d], into.row[:d] = place[source.tight[:d]], source.row[:d]
    into.amount[:d], into.cost[:d] = source.amount[:d], source.cost[:d]
    into.is_tight[:], into.values[:] = source.is_tight[columns], source.values[columns]
    into.reference[:], into.used[:] = source.reference, source.used
    for z in range(d):
        into.inverse[z, :d] = source.inverse[z, :d]
    for z in range(d - n):
        for c in range(len(columns)):
            into.lines[z, c] = source.lines[z, columns[c]]


@njit(cache=True, nogil=True)
def _still_near(space: Space, bench: Bench, into: Near) -> Ints:
    """Places of samples that are near their hinge, or have free rows, which are taken over."""
    near, rivals = bench.near, space.rivals
    kept = np.zeros(near.number[0], np.bool_)
    for p in range(near.number[0]):
        low = bench.room.margins[p * rivals : (p + 1) * rivals].min()
        kept[p] = abs(low - space.gamma) < AWAY or bench.at.used[near.samples[p]] > 0.0
    places = np.flatnonzero(kept)
    into.number[0] = len(places)
    for p in range(len(places)):
        into.samples[p] = near.samples[places[p]]
        into.place[into.samples[p]] = p
    return places


@njit(cache=True, nogil=True)
def smaller(space: Space, bench: Bench, allowed: Flags) -> Bench:
    """The same with those columns alone that are allowed, or tight."""
    n, sheet, near, rivals = len(allowed), bench.sheet, bench.near, space.rivals
    kept = bench.at.is_tight.copy()
    for c in range(len(kept)):
        kept[c] |= allowed[sheet.feature[c], sheet.option[c]]
    columns = np.flatnonzero(kept)
    feature = sheet.feature[columns]
    new = Sheet(
        sheet.slots[columns],
        np.searchsorted(feature, np.arange(n + 1)),
        feature,
        sheet.option[columns],
        sheet.base,
        sheet.clusters,
        sheet.number,
        sheet.noise[columns],
    )
    out = new_bench(new, n, len(space.data.weights), rivals)
    _take_columns(bench.at, n, columns, out.at)
    order = _still_near(space, bench, out.near)
    for c in range(len(columns)):
        source, into = near.columns[columns[c]], out.near.columns[c]
        for p in range(len(order)):
            for r in range(rivals):
                into[p * rivals + r] = source[order[p] * rivals + r]
    return Bench(out.sheet, out.at, out.near, out.room)


@njit(cache=True, nogil=True)
def snapshot(at: Vertex, n: int) -> Vertex:
    """A copy of a vertex, as small as can be."""
    d = at.size[0]
    return Vertex(
        at.size.copy(),
        at.objective.copy(),
        at.tight[:d].copy(),
        at.is_tight.copy(),
        at.row[:d].copy(),
        at.amount[:d].copy(),
        at.cost[:d].copy(),
        at.inverse[:d, :d].copy(),
        at.lines[: d - n].copy(),
        at.values.copy(),
        at.reference.copy(),
        at.used.copy(),
    )


@njit(cache=True, nogil=True)
def use_clusters(at: Vertex, n: int, used: Flags) -> None:
    """Mark the clusters that have a multiplier."""
    for z in range(n, at.size[0]):
        if at.row[z] >= CLUSTER:
            used[at.row[z] - CLUSTER] = True


@njit(cache=True, nogil=True)
def _wanting(space: Space, bench: Bench, margins: NDArray[np.float32]) -> tuple[Ints, float]:
    """Samples that are not looked at, and whose reference is not their lowest row; what that amounts to in all."""
    rivals, weights, gamma, total = space.rivals, space.data.weights, np.float32(space.gamma), 0.0
    wrong = np.zeros(len(weights))
    for m in range(len(weights)):
        low, reference = gamma, bench.at.reference[m]
        for r in range(m * rivals, (m + 1) * rivals):
            low = min(low, margins[r])
        own = margins[reference] if reference >= 0 else gamma
        if own - low > LEAST and bench.near.place[m] < 0:
            wrong[m] = weights[m] * (own - low)
            total += wrong[m]
    found = np.flatnonzero(wrong)
    if len(found) > MORE:
        found = found[np.argsort(-wrong[found], kind="mergesort")[:MORE]]
    return found, total


@njit(cache=True, nogil=True)
def relax_part(
    space: Space, bench: Bench, allowed: Flags, cutoff: float, shares: Floats, margins: NDArray[np.float32]
) -> tuple[bool, int]:
    """Bring the vertex to the optimum of a part, or below the cutoff; whether memory is enough, and the steps taken."""
    sheet, at, near, room, n = bench.sheet, bench.at, bench.near, bench.room, len(allowed)
    open_columns, total = np.empty(len(sheet.slots), np.bool_), 0
    for c in range(len(sheet.slots)):
        open_columns[c] = allowed[sheet.feature[c], sheet.option[c]]
    for _ in range(ROUNDS):
        steps = improve(space, sheet, n, at, near, room, open_columns, cutoff, STEPS)
        total += abs(steps)
        settle(sheet, at, room, shares)
        if at.objective[0] <= cutoff or steps < 0:
            break
        d = at.size[0]
        quick_margins(space, sheet.base, sheet.slots[at.tight[:d]], room.shares[:d], margins)
        found, wrong = _wanting(space, bench, margins)
        if wrong > TOLERANCE * (at.objective[0] - cutoff):
            if not look_at(space, sheet, near, found):
                return False, total
        elif not find_clusters(sheet, shares, VIOLATION):
            break
    return True, total


@njit(cache=True, nogil=True)
def vertex_multipliers(space: Space, n: int, at: Vertex, grain: int, share: Ints) -> Multipliers:
    """Multipliers of a vertex, rounded; `share` is room for a number of each row, all zero, and so again."""
    weights, rivals, count = space.data.weights, space.rivals, 0
    left = np.full(len(weights), WHOLE)
    for z in range(n, at.size[0]):
        row = at.row[z]
        if row < CLUSTER:
            m = row // rivals if row >= 0 else -1 - row
            amount = min(max(int(at.amount[z] / weights[m] * WHOLE) // grain * grain, 0), left[m])
            left[m] -= amount
            if row >= 0:
                share[row] = amount
    rows, shares = np.empty(len(weights) + at.size[0], np.int32), np.empty(len(weights) + at.size[0], np.int32)
    for m in range(len(weights)):
        if at.reference[m] >= 0:
            share[at.reference[m]] = left[m]
    for r in range(len(share)):
        if share[r] > 0:
            rows[count], shares[count] = r, share[r]
            count += 1
            share[r] = 0
    return Multipliers(rows[:count].copy(), shares[:count].copy())


@njit(cache=True, nogil=True)
def linear_by(space: Space, sheet: Sheet, n: int, at: Vertex, by: Multipliers, share: Ints, values: Floats) -> float:
    """What rounded multipliers of a vertex make of the options; the constant, padded by all that rounding can lose."""
    weights, rivals, flat = space.data.weights, space.rivals, at.values - sheet.noise
    for k in range(len(by.rows)):
        share[by.rows[k]] = by.shares[k]
    for z in range(n, at.size[0]):
        row, now = at.row[z], 0.0
        if row < CLUSTER:
            m = row // rivals if row >= 0 else -1 - row
            part = share[row] if row >= 0 else WHOLE - share[m * rivals : (m + 1) * rivals].sum()
            now = weights[m] * (part * UNIT)
        change = now - at.amount[z]
        if change != 0.0:
            line = at.lines[z - n]
            for c in range(len(flat)):
                flat[c] += change * line[c]
    left, inside, used, highest = np.full(len(weights), WHOLE), 0.0, 0.0, 0.0
    for k in range(len(by.rows)):
        m = by.rows[k] // rivals
        amount = weights[m] * (by.shares[k] * UNIT)
        left[m] -= by.shares[k]
        inside += amount * sheet.base[by.rows[k]]
        used += amount
        highest = max(highest, abs(sheet.base[by.rows[k]]))
        share[by.rows[k]] = 0
    at_most = space.gamma * (weights * (left * UNIT)).sum()
    values[:] = 0.0
    for c in range(len(flat)):
        values[sheet.feature[c], sheet.option[c]] = flat[c]
    size = at_most + used * (highest + n * space.largest)
    # The values are the sum of many steps: they may lose some more.
    return float(at_most + inside + 8.0 * EPSILON * (len(by.rows) + len(weights) + n + 16) * size)
