"""One part of the search: relax it, take out options that cannot matter, finish it off or divide it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.branching import forced_bounds, option_bound
from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_climb import climb, drawn
from marginbayes.kernels.exact_list import best_listed
from marginbayes.kernels.exact_margins import soft_margin
from marginbayes.kernels.exact_relax import Effort, Part, Relaxed, firm_rows, relax
from marginbayes.kernels.exact_space import Multipliers, Space, evaluate, fill, rounding
from marginbayes.kernels.exact_split import division_by_options
from marginbayes.kernels.exact_working import choose_rows

__all__ = [
    "CLOSED",
    "DIVIDED",
    "FULL",
    "LAST",
    "LEFT",
    "LISTED",
    "Expanded",
    "Given",
    "Problem",
    "expand",
    "restricted",
    "rounded_climb",
    "single",
    "take_out",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOISE = 1e-3  # between shares that round to the same structure
# What became of a part: its multipliers close it, all structures that they do not bound were looked at, it is divided,
# one structure is left of it, it stays open with a better bound because time is over, or memory is.
CLOSED, LISTED, DIVIDED, LAST, LEFT, FULL = 0, 1, 2, 3, 4, 5
# A relaxation of more rounds is worth a look for a list after the first of them, which may be shorter by this factor.
BRIEF, MUCH = 3, 50
# So many structures, cycles among them, are looked at one by one sooner than relaxed once.
TINY = 1000


class Problem(NamedTuple):
    """A set of class parents: margins and scores by the class alone, the options of the features, and what is enough.

    Only soft margins above the cutoff are of interest; losses nearer than the tolerance are equal in a climb.
    """

    base: Floats  # [row]
    state: Floats  # [sample, class], or one column for the binary margin
    whole: Flags
    cutoff: float
    tolerance: float


class Given(NamedTuple):
    """A part as it waits: options, shares of some slots, clusters of features that held cycles, and multipliers."""

    allowed: Flags
    slots: NDArray[np.int32]  # feature * number of options + option
    values: NDArray[np.float32]
    clusters: Flags
    multipliers: Multipliers


class Found(NamedTuple):
    """A structure and its soft margin, minus infinity for none."""

    choice: Ints
    objective: float


class Split(NamedTuple):
    """A division: the feature, those of its options that make one side, and bounds of both sides."""

    feature: int
    inside: Flags
    within: float
    without: float


class Expanded(NamedTuple):
    """What became of a part."""

    status: int
    bound: float
    relaxed: bool  # whether there are multipliers other than those given
    multipliers: Multipliers
    allowed: Flags  # options that are left
    early: Flags  # options that the given multipliers took out
    late: Flags  # options that the new multipliers took out
    fixed_bound: float  # no option that was taken out leads above this
    shares: Floats
    clusters: Flags
    split: Split
    found: Found


@njit(cache=True, nogil=True)
def restricted(shares: Floats, allowed: Flags) -> Floats:
    """The shares of allowed options alone, to a sum of one; equal ones where none is left."""
    n, k = allowed.shape
    out = np.zeros((n, k))
    for i in range(n):
        total = 0.0
        for o in range(k):
            if allowed[i, o]:
                total += shares[i, o]
        count = allowed[i].sum()
        for o in range(k):
            if allowed[i, o]:
                out[i, o] = shares[i, o] / total if total > 0.0 else 1.0 / count
    return out


@njit(cache=True, nogil=True)
def take_out(constant: float, values: Floats, allowed: Flags, cutoff: float, gone: Flags) -> tuple[float, float]:
    """Take options out whose choice cannot lead above the cutoff, in place; a bound on what is left, and on those.

    ``gone`` receives the options. Minus infinity where nothing is left, or nothing was taken out.
    """
    forced = np.empty(values.shape)
    best, fixed = constant + forced_bounds(values, allowed, cutoff - constant, forced), -np.inf
    if best <= cutoff:
        return best, fixed
    for i in range(len(values)):
        for o in range(values.shape[1]):
            if allowed[i, o] and constant + forced[i, o] <= cutoff:
                gone[i, o], allowed[i, o] = True, False
                fixed = max(fixed, constant + forced[i, o])
        if not allowed[i].any():
            best = -np.inf
    return best, fixed


@njit(cache=True, nogil=True)
def single(allowed: Flags) -> bool:
    """Whether one structure is left, where every feature has an option."""
    return bool(allowed.sum() == len(allowed))


@njit(cache=True, nogil=True)
def rounded_climb(space: Space, of: Problem, shares: Floats, allowed: Flags, seed: int, stop: Ints) -> Found:
    """The structure nearest to the shares, after a climb among all options."""
    choice, noisy, seeds = np.empty(len(shares), np.int64), shares.copy(), np.array([seed])
    for i in range(len(shares)):
        for o in range(shares.shape[1]):
            noisy[i, o] += NOISE * drawn(seeds, 1 << 20) / (1 << 20)
    if option_bound(noisy, allowed, choice, np.empty((0, shares.shape[1]))) == -np.inf:
        return Found(choice, -np.inf)
    climb(space.data, of.state, space.gamma, of.whole, choice, seeds, of.tolerance, stop)
    return Found(choice, soft_margin(space.data, space.gamma, of.base, choice))


@njit(cache=True, nogil=True)
def _listed(space: Space, of: Problem, by: Relaxed, allowed: Flags, most: int) -> tuple[bool, Found]:
    """Whether few structures are above the cutoff by these multipliers; then the best of them that truly is."""
    choice, reduced = np.zeros(len(allowed), np.int64), np.empty(allowed.shape)
    best = by.constant + option_bound(by.values, allowed, choice, reduced)
    limit = space.gamma * space.total - of.cutoff
    loss = best_listed(space.data, of.state, space.gamma, reduced, best - of.cutoff, limit, most, choice)
    if not 0.0 <= loss < np.inf:
        return loss > 0.0, Found(choice, -np.inf)
    return True, Found(choice, soft_margin(space.data, space.gamma, of.base, choice))


@njit(cache=True, nogil=True)
def _choices(allowed: Flags) -> float:
    """How often every feature can choose one of its options, whether that makes a cycle or not."""
    count = 1.0
    for own in allowed:
        count *= own.sum()
    return count


@njit(cache=True, nogil=True)
def _relaxed(
    space: Space, of: Problem, part: Part, effort: Effort, most: int, stop: Ints
) -> tuple[Relaxed, bool, Found]:
    """The relaxation of a part; if that takes many rounds, whether few structures are above the cutoff after one.

    Where they are few from the beginning, nothing is relaxed.
    """
    found = Found(np.zeros(len(part.allowed), np.int64), -np.inf)
    if effort.rounds <= BRIEF:
        return relax(space, of.base, part, of.cutoff, effort, stop), False, found
    if _choices(part.allowed) <= TINY:
        given = Relaxed(True, np.inf, part.multipliers, part.constant, part.values, part.shares, part.clusters)
        few, found = _listed(space, of, given, part.allowed, most // MUCH)
        if few:
            return given, few, found
    brief = Effort(1, effort.options, effort.tolerance, effort.steps, effort.band)
    new, few = relax(space, of.base, part, of.cutoff, brief, stop), False
    if new.fits and new.bound > of.cutoff:
        few, found = _listed(space, of, new, part.allowed, most // MUCH)
    if new.fits and new.bound > of.cutoff and not few and not stop[0]:
        part = Part(part.allowed, new.shares, new.clusters, new.multipliers, new.constant, new.values)
        new = relax(space, of.base, part, of.cutoff, effort, stop)
    return new, few, found


@njit(cache=True, nogil=True)
def _side(by: Relaxed, allowed: Flags, feature: int, inside: Flags, taken: bool) -> float:
    """Bound of the structures whose divided feature takes one of the options inside, or none of them."""
    options, none = allowed.copy(), np.empty((0, allowed.shape[1]))
    options[feature] &= inside if taken else ~inside
    return float(by.constant + option_bound(by.values, options, np.empty(len(options), np.int64), none))


@njit(cache=True, nogil=True)
def _division(space: Space, base: Floats, by: Relaxed, shares: Floats, allowed: Flags, band: float) -> Split:
    """The division that should lower the relaxation most; of feature -1 if memory is over.

    Options are parted where they differ most in what they do to margins near the hinge.
    """
    inside = np.zeros(allowed.shape[1], np.bool_)
    seen = choose_rows(space, base, shares, band, firm_rows(space, by.multipliers))
    if not fill(space, seen.rows):
        return Split(-1, inside, -np.inf, -np.inf)
    weights, margins = space.data.weights[seen.groups], seen.margins[seen.rows]
    feature, _ = division_by_options(
        space.dense, seen.rows, seen.start, weights, space.gamma, margins, shares, allowed, inside
    )
    if feature < 0:  # every share is whole: one option against the rest of the feature with most options
        for i in range(len(allowed)):
            if feature < 0 or allowed[i].sum() > allowed[feature].sum():
                feature = i
        inside[:] = False
        inside[np.argmax(shares[feature])] = True
    inside &= allowed[feature]
    within, without = _side(by, allowed, feature, inside, True), _side(by, allowed, feature, inside, False)
    return Split(feature, inside, within, without)


@njit(cache=True, nogil=True)
def expand(
    space: Space, of: Problem, given: Given, effort: Effort, most: int, climbs: bool, seed: int, stop: Ints
) -> Expanded:
    """Relax a part and divide it, unless it holds nothing above the cutoff. Depends on its arguments alone.

    It is finished off where at most so many structures are to be looked at, one by one.
    """
    allowed, by, (n, k) = given.allowed.copy(), given.multipliers, given.allowed.shape
    early, late = np.zeros((n, k), np.bool_), np.zeros((n, k), np.bool_)
    shares, values = np.zeros((n, k)), np.zeros((n, k))
    split, none = Split(-1, np.zeros(k, np.bool_), -np.inf, -np.inf), Found(np.zeros(n, np.int64), -np.inf)
    if not fill(space, by.rows.astype(np.int64)):
        return Expanded(FULL, np.inf, False, by, allowed, early, late, -np.inf, shares, given.clusters, split, none)
    constant = evaluate(space, of.base, by, values)
    bound, fixed = take_out(constant, values, allowed, of.cutoff, early)
    if bound <= of.cutoff or single(allowed):
        status = CLOSED if bound <= of.cutoff else LAST
        return Expanded(status, bound, False, by, allowed, early, late, fixed, shares, given.clusters, split, none)
    for e in range(len(given.slots)):
        shares[given.slots[e] // k, given.slots[e] % k] = given.values[e]
    part = Part(allowed, restricted(shares, allowed), given.clusters, by, constant, values)
    new, few, found = _relaxed(space, of, part, effort, most, stop)
    status, bound = CLOSED, new.bound
    if not new.fits:
        status = FULL
    elif bound > of.cutoff and stop[0]:
        status = LEFT
    elif few:
        status, bound = LISTED, max(of.cutoff, found.objective) + rounding(space, of.base)
    elif bound > of.cutoff:
        bound, more = take_out(new.constant, new.values, allowed, of.cutoff, late)
        fixed = max(fixed, more)
        if bound > of.cutoff:
            few, found = _listed(space, of, new, allowed, most)
            if few:
                status, bound = LISTED, max(of.cutoff, found.objective) + rounding(space, of.base)
            elif single(allowed):
                status = LAST
            else:
                shares = restricted(new.shares, allowed)
                if climbs:
                    found = rounded_climb(space, of, shares, allowed, seed, stop)
                split = _division(space, of.base, new, shares, allowed, effort.band)
                status = DIVIDED if split.feature >= 0 else FULL
    if status != DIVIDED:
        shares = new.shares
    return Expanded(
        status, bound, True, new.multipliers, allowed, early, late, fixed, shares, new.clusters, split, found
    )
