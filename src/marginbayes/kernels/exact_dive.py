"""Depth first below a part: relax, take options out, finish off or divide, in compiled code for many parts at a time.

A relaxation goes on from the vertex of the part above (`exact_simplex`), and most take few steps. What becomes of the
parts is noted for the record; parts that are still open when the budget is used up are handed back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.branching import option_bound
from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_begin import Basis, basis_of, begin, first_samples
from marginbayes.kernels.exact_bench import (
    Bench,
    linear_by,
    make_sheet,
    new_bench,
    relax_part,
    smaller,
    snapshot,
    use_clusters,
    vertex_multipliers,
)
from marginbayes.kernels.exact_divide import divide
from marginbayes.kernels.exact_list import best_listed
from marginbayes.kernels.exact_margins import hinges, row_margins, soft_margin
from marginbayes.kernels.exact_near import look_at
from marginbayes.kernels.exact_part import Problem, restricted, rounded_climb, single, take_out
from marginbayes.kernels.exact_record import (
    NODES,
    STEPS,
    Dived,
    Log,
    Waiting,
    new_log,
    note_closed,
    note_fixes,
    note_part,
    note_structure,
    result,
)
from marginbayes.kernels.exact_space import WHOLE, Multipliers, Space, evaluate, fill, rounding
from marginbayes.kernels.exact_vertex import Vertex, copy_vertex, new_vertex

__all__ = ["Dived", "dive"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# The columns are made fewer where so many of them, or less, are still allowed.
FEWER = 0.6
# Shares of multipliers are rounded to so many parts of the whole, which makes the record short and costs little.
GRAIN = WHOLE >> 12


class Desk(NamedTuple):
    """Room for what is computed about a part."""

    gone: Flags
    shares: Floats
    inside: Flags
    margins: NDArray[np.float32]  # of every row
    parts: Ints  # of every row's sample, zero when not in use
    chosen: Ints


@njit(cache=True, nogil=True)
def _new_desk(n: int, k: int, rows: int) -> Desk:
    return Desk(
        np.zeros((n, k), np.bool_),
        np.zeros((n, k)),
        np.zeros(k, np.bool_),
        np.empty(rows, np.float32),
        np.zeros(rows, np.int64),
        np.empty(n, np.int64),
    )


class Bounded(NamedTuple):
    """What multipliers, and which, make of a part."""

    by: int
    bound: float
    constant: float
    values: Floats


@njit(cache=True, nogil=True)
def _last(space: Space, of: Problem, allowed: Flags, log: Log) -> tuple[Multipliers, float]:
    """One structure is left: multipliers that bound it by its soft margin, and that, with all that rounding loses."""
    n, choice = len(allowed), np.empty(len(allowed), np.int64)
    for i in range(n):
        choice[i] = np.argmax(allowed[i])
    margins = row_margins(space.data, of.base, np.arange(n), choice, np.ones(n))
    rows, count = np.empty(len(space.data.weights), np.int32), 0
    for m in range(len(rows)):
        low = m * space.rivals
        for r in range(low + 1, (m + 1) * space.rivals):
            if margins[r] < margins[low]:
                low = r
        if margins[low] < space.gamma:
            rows[count] = low
            count += 1
    objective = hinges(space.data.weights, space.rivals, space.gamma, margins)
    if _is_acyclic(choice):
        note_structure(log, choice, objective)
    return Multipliers(rows[:count].copy(), np.full(count, WHOLE, np.int32)), objective + rounding(space, of.base)


@njit(cache=True, nogil=True)
def _is_acyclic(choice: Ints) -> bool:
    for i in range(len(choice)):
        node = i
        for _ in range(len(choice)):
            node = choice[node] - 2
            if node < 0:
                break
        if node >= 0:
            return False
    return True


@njit(cache=True, nogil=True)
def _few(space: Space, of: Problem, constant: float, values: Floats, allowed: Flags, most: int, log: Log) -> bool:
    """Whether few structures are above the cutoff by these multipliers; the best of them that truly is, is noted."""
    choice, reduced = np.zeros(len(allowed), np.int64), np.empty(allowed.shape)
    best = constant + option_bound(values, allowed, choice, reduced)
    limit = space.gamma * space.total - of.cutoff
    loss = best_listed(space.data, of.state, space.gamma, reduced, best - of.cutoff, limit, most, choice)
    if loss < 0.0:
        return False
    if loss < np.inf:
        note_structure(log, choice, soft_margin(space.data, space.gamma, of.base, choice))
    return True


@njit(cache=True, nogil=True)
def _take_out(of: Problem, now: Waiting, by: int, constant: float, values: Floats, desk: Desk, log: Log) -> float:
    """Take options out of a part whose choice cannot lead above the cutoff; a bound on what is left."""
    desk.gone[:] = False
    bound, fixed = take_out(constant, values, now.allowed, of.cutoff, desk.gone)
    note_fixes(log, now.part, desk.gone, by)
    log.pruned[0] = max(log.pruned[0], fixed)
    return float(bound)


@njit(cache=True, nogil=True)
def _bounded(
    space: Space, of: Problem, bench: Bench, now: Waiting, desk: Desk, kept: list[Multipliers], log: Log
) -> Bounded:
    """Bound a relaxed part by multipliers, which are kept, and take options out by them."""
    n, values, none = len(now.allowed), np.empty(now.allowed.shape), np.empty((0, now.allowed.shape[1]))
    found = vertex_multipliers(space, n, bench.at, GRAIN, desk.parts)
    constant = linear_by(space, bench.sheet, n, bench.at, found, desk.parts, values)
    bound, level = constant + option_bound(values, now.allowed, desk.chosen, none), bench.at.objective[0]
    if bound > of.cutoff and level - of.cutoff < bound - level:  # rounding is what is in the way
        found = vertex_multipliers(space, n, bench.at, 1, desk.parts)
        constant = linear_by(space, bench.sheet, n, bench.at, found, desk.parts, values)
    kept.append(found)
    by = len(kept) - 1
    return Bounded(by, _take_out(of, now, by, constant, values, desk, log), constant, values)


@njit(cache=True, nogil=True)
def _finished(
    space: Space, of: Problem, now: Waiting, by: Bounded, most: int, kept: list[Multipliers], log: Log
) -> bool:
    """Whether a part is done: by its bound, or because one structure is left of it, or few that are looked at."""
    if by.bound <= of.cutoff:
        note_closed(log, now.part, by.by, by.bound, False)
        return True
    if single(now.allowed):
        last, bound = _last(space, of, now.allowed, log)
        kept.append(last)
        note_closed(log, now.part, by.by + 1, bound, False)
        return True
    few = _few(space, of, by.constant, by.values, now.allowed, most, log)
    if few:
        note_closed(log, now.part, by.by, max(of.cutoff, log.objective[0]) + rounding(space, of.base), True)
    return bool(few)


@njit(cache=True, nogil=True)
def _division(space: Space, bench: Bench, allowed: Flags, desk: Desk) -> int:
    """The feature to divide; `desk.inside` receives the options of one side."""
    shares, inside = desk.shares, desk.inside
    feature = divide(space, bench.sheet, bench.near, bench.room.margins, shares, allowed, inside)
    if feature < 0:  # every share is whole: one option against the rest of the feature with most options
        for i in range(len(allowed)):
            if feature < 0 or allowed[i].sum() > allowed[feature].sum():
                feature = i
        inside[:] = False
        inside[np.argmax(np.where(allowed[feature], shares[feature], -1.0))] = True
    return int(feature)


@njit(cache=True, nogil=True)
def _pieces(
    space: Space, of: Problem, bench: Bench, now: Waiting, by: Bounded, place: int, desk: Desk, log: Log
) -> list[Waiting]:
    """Divide a part; the pieces that are open, the one with the greater bound last."""
    n, none, feature = len(now.allowed), np.empty((0, now.allowed.shape[1])), _division(space, bench, now.allowed, desk)
    within, without = now.allowed.copy(), now.allowed.copy()
    within[feature] &= desk.inside
    without[feature] &= ~desk.inside
    bounds = (
        by.constant + option_bound(by.values, without, desk.chosen, none),
        by.constant + option_bound(by.values, within, desk.chosen, none),
    )
    # Of two, one waits, while the vertex goes on with the other.
    vertex, out = now.vertex, [now]
    if min(bounds) > of.cutoff:
        vertex = snapshot(bench.at, n)
    for turn in range(2):
        taken = (bounds[0] < bounds[1]) == (turn == 1)
        part, bound = note_part(log, now.part, taken, feature, desk.inside), bounds[1] if taken else bounds[0]
        if bound <= of.cutoff:
            note_closed(log, part, by.by, bound, False)
        else:
            chosen = within if taken else without
            out.append(Waiting(part, by.by, bound, by.constant, by.values, chosen, place, vertex))
    return out[1:]


@njit(cache=True, nogil=True)
def _nothing(n: int) -> Vertex:
    """In place of a vertex that nobody will ask for."""
    found: Vertex = snapshot(new_vertex(n, 0, 0, 0), n)
    return found


@njit(cache=True, nogil=True)
def _first_bench(
    space: Space, of: Problem, allowed: Flags, clusters: Flags, given: Multipliers, known: Basis
) -> tuple[Bench, bool]:
    """Where the part that is given is worked on, and whether memory is enough."""
    n, k = allowed.shape
    columns = allowed.copy()
    columns.reshape(n * k)[known.tight] = True
    sheet = make_sheet(of.base, space.gamma * space.total, columns, clusters)
    bench = new_bench(sheet, n, len(space.data.weights), space.rivals)
    fits = bool(fill(space, given.rows.astype(np.int64)) and begin(space, sheet, n, given, known, allowed, bench.at))
    if fits:
        fits = bool(look_at(space, sheet, bench.near, first_samples(space, sheet, n, given, bench.at)))
    return bench, fits


@njit(cache=True, nogil=True)
def _bases(space: Space, benches: list[Bench], waiting: list[Waiting], here: bool, n: int) -> tuple[list[Basis], Flags]:
    """The basis of every part that waits, and the clusters that occur in one."""
    sheet, vertices = benches[0].sheet, [piece.vertex for piece in waiting]
    if here:
        vertices[-1] = snapshot(benches[-1].at, n)
    used = np.zeros(sheet.number[0], np.bool_)
    for vertex in vertices:
        use_clusters(vertex, n, used)
    places = np.cumsum(used) - 1
    bases = [basis_of(space, benches[0].sheet, _nothing(n), n, places)]
    bases.pop()
    for piece, vertex in zip(waiting, vertices):  # noqa: B905 - compiled code knows no `strict`
        bases.append(basis_of(space, benches[piece.bench].sheet, vertex, n, places))
    return bases, sheet.clusters[: len(used)][used]


@njit(cache=True, nogil=True)
def dive(
    space: Space,
    of: Problem,
    allowed: Flags,
    clusters: Flags,
    given: Multipliers,
    known: Basis,
    budget: int,
    most: int,
    climbs: bool,
    seed: int,
    stop: Ints,
) -> Dived:
    """Work on a part and what it is divided into, depth first, for so many parts, or until ``stop[0]`` is set.

    `given` are multipliers that bound the part, `known` the basis of the vertex that they come from. A part is finished
    off where at most so many structures are to be looked at, one by one. Depends on its arguments alone.
    """
    (n, k), rows = allowed.shape, len(space.filled)
    log, values, constant = new_log(budget, n, k), np.zeros((n, k)), np.inf
    desk = _new_desk(n, k, rows)
    bench, fits = _first_bench(space, of, allowed, clusters, given, known)
    benches = [bench]
    if fits:
        constant = evaluate(space, of.base, given, values)
    bound = constant + option_bound(values, allowed, desk.chosen, np.empty((0, k)))
    waiting, kept = [Waiting(-1, -1, bound, constant, values, allowed.copy(), 0, _nothing(n))], [given]
    kept.pop()
    here = True  # whether the part that comes next has its vertex on its bench
    while waiting and fits and log.counts[NODES] < budget and not stop[0]:
        now = waiting[-1]
        while len(benches) > now.bench + 1:
            benches.pop()
        if not here:
            copy_vertex(now.vertex, n, benches[-1].at)
        here, bound = False, _take_out(of, now, now.by, now.constant, now.values, desk, log)
        if bound <= of.cutoff:
            note_closed(log, now.part, now.by, bound, False)
            log.counts[NODES] += 1
            waiting.pop()
            continue
        if now.allowed.sum() <= FEWER * len(benches[-1].sheet.slots):
            benches.append(smaller(space, benches[-1], now.allowed))
        bench = benches[-1]
        fits, steps = relax_part(space, bench, now.allowed, of.cutoff, desk.shares, desk.margins)
        log.counts[STEPS] += steps
        if not fits:
            break
        waiting.pop()
        log.counts[NODES] += 1
        by = _bounded(space, of, bench, now, desk, kept, log)
        if _finished(space, of, now, by, most, kept, log):
            continue
        if climbs:  # once
            climbs, shares = False, restricted(desk.shares, now.allowed)
            climbed = rounded_climb(space, of, shares, now.allowed, seed, stop)
            note_structure(log, climbed.choice, climbed.objective)
        for piece in _pieces(space, of, bench, now, by, len(benches) - 1, desk, log):
            waiting.append(piece)
            here = True
    bases, used = _bases(space, benches, waiting, here, n)
    found: Dived = result(fits, log, kept, waiting, bases, used)
    return found
