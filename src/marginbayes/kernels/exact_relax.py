"""The relaxation of a part: an interior point over the rows and options that matter, and multipliers from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.branching import option_bound
from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_interior import Best, interior_run, starting_point
from marginbayes.kernels.exact_margins import hinges
from marginbayes.kernels.exact_space import UNIT, WHOLE, Multipliers, Space, evaluate, fill, rounded
from marginbayes.kernels.exact_working import (
    Frame,
    Seen,
    choose_rows,
    grow_clusters,
    grow_options,
    make_frame,
    open_flipped,
    taken_shares,
    tight_clusters,
    use_options,
)

__all__ = ["INSIDE", "ROOT", "Effort", "Part", "Relaxed", "firm_rows", "relax"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# The interior point begins this share of the way from the given point to the middle.
MIDDLE = 0.1
# How far each level starts below its hinge.
SPREAD = 1.0


class Effort(NamedTuple):
    """How much work a relaxation is worth."""

    rounds: int  # of rows, options and clusters being added
    options: int  # of each feature, to begin with
    tolerance: float  # of the distance between bound and cutoff
    steps: int = 40  # of the interior point, in each round
    band: float = 1.0  # how near to its hinge a margin must be for its multiplier to be open


ROOT = Effort(rounds=30, options=6, tolerance=1e-3)
INSIDE = Effort(rounds=3, options=4, tolerance=0.02)


class Part(NamedTuple):
    """Structures with some options, where their relaxation begins, and what its multipliers make of every option."""

    allowed: Flags  # [feature, option]
    shares: Floats
    clusters: Flags  # [cluster, feature]
    multipliers: Multipliers
    constant: float
    values: Floats


class Relaxed(NamedTuple):
    """What a relaxation found: a bound, the multipliers that prove it and their linear function, and shares there."""

    fits: bool  # whether memory was enough
    bound: float
    multipliers: Multipliers
    constant: float
    values: Floats
    shares: Floats
    clusters: Flags


@njit(cache=True, nogil=True)
def firm_rows(space: Space, by: Multipliers) -> Flags:
    """Rows that carry a part of their sample only."""
    firm = np.zeros(len(space.filled), np.bool_)
    for k in range(len(by.rows)):
        firm[by.rows[k]] = by.shares[k] < WHOLE
    return firm


@njit(cache=True, nogil=True)
def _amounts(space: Space, seen: Seen, guess: Multipliers) -> Floats:
    """Multipliers of the open rows to begin with, on the way from a guess to the middle."""
    known = np.zeros(len(space.filled))
    for k in range(len(guess.rows)):
        known[guess.rows[k]] = guess.shares[k] * UNIT
    dual = np.empty(len(seen.rows))
    for g in range(len(seen.groups)):
        weight, count = space.data.weights[seen.groups[g]], seen.start[g + 1] - seen.start[g]
        for r in range(seen.start[g], seen.start[g + 1]):
            dual[r] = weight * ((1.0 - MIDDLE) * known[seen.rows[r]] + MIDDLE / (count + 1))
    return dual


@njit(cache=True, nogil=True)
def _entries(frame: Frame, used: Flags, shares: Floats) -> Floats:
    """Shares of the program's options to begin with, on the way to the middle."""
    x = np.empty(len(frame.feature))
    for e in range(len(x)):
        i = frame.feature[e]
        x[e] = (1.0 - MIDDLE) * shares[i, frame.option[e]] + MIDDLE / used[i].sum()
    return x


@njit(cache=True, nogil=True)
def relax(space: Space, base: Floats, part: Part, cutoff: float, effort: Effort, stop: Ints) -> Relaxed:
    """Bound of a part; ends early once that is at most the cutoff, or when ``stop[0]`` is set."""
    allowed, clusters, shares = part.allowed, part.clusters, part.shares.copy()
    chosen, nothing = np.empty(len(allowed), np.int64), np.empty((0, allowed.shape[1]))
    bound = part.constant + option_bound(part.values, allowed, chosen, nothing)
    best, constant, values, fits = part.multipliers, part.constant, part.values, True
    used = allowed & (shares > 0.0)
    use_options(values, allowed, used, effort.options)
    firm = firm_rows(space, best)
    side = np.full(len(space.data.weights), -2)
    seen = choose_rows(space, base, shares, effort.band, firm)
    for _ in range(effort.rounds):
        fits = fill(space, seen.rows) and fill(space, seen.alone)
        if not fits:
            break
        frame = make_frame(space, base, allowed, used, shares, clusters, seen)
        dual = _amounts(space, seen, best)
        point = starting_point(frame.program, _entries(frame, used, shares), dual, len(frame.active), SPREAD)
        found = Best(np.array([np.inf]), dual.copy(), np.zeros(allowed.shape))
        interior_run(frame.program, point, frame.linear, found, cutoff, effort.tolerance, effort.steps, stop)
        model = taken_shares(frame, point, shares)
        grown = False
        if cutoff < found.bound[0] < np.inf:
            small = effort.tolerance * (found.bound[0] - cutoff)
            grown = grow_options(frame, point, found.values, clusters, allowed, used, small)
            before = len(clusters)
            clusters = grow_clusters(clusters, shares)
            grown = grown or len(clusters) > before
        new, new_values = rounded(space, seen.rows, found.dual, seen.alone), np.empty(allowed.shape)
        new_constant = evaluate(space, base, new, new_values)
        new_bound = new_constant + option_bound(new_values, allowed, chosen, nothing)
        if new_bound < bound:
            bound, best, constant, values = new_bound, new, new_constant, new_values
        if bound <= cutoff or stop[0]:
            break
        firm[seen.rows] = True
        seen = choose_rows(space, base, shares, effort.band, firm)
        if open_flipped(space, seen, side, firm):
            seen = choose_rows(space, base, shares, effort.band, firm)
        true = hinges(space.data.weights, space.rivals, space.gamma, seen.margins)
        if not grown and model - true <= effort.tolerance * (bound - cutoff):
            break
    return Relaxed(fits, bound, best, constant, values, shares, tight_clusters(clusters, shares))
