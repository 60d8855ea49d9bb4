"""Rows, options and clusters in use while a part is relaxed, and the program that the interior point makes of them.

Only margins near their hinge bend the objective, and only a few options of each feature have a share in the relaxed
optimum, so the interior point sees those alone (sifting). Whatever is left out costs tightness, never validity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.branching import option_bound
from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_clusters import violated_clusters
from marginbayes.kernels.exact_interior import Linear, Program
from marginbayes.kernels.exact_margins import gather, near_hinge, weighted_rows
from marginbayes.kernels.exact_point import Point
from marginbayes.kernels.exact_space import Space, shared_margins

__all__ = [
    "Frame",
    "Seen",
    "choose_rows",
    "grow_clusters",
    "grow_options",
    "make_frame",
    "open_flipped",
    "taken_shares",
    "tight_clusters",
    "use_options",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# New options of each feature in a round, at most, and how far a cluster must be violated to be used.
NEW_OPTIONS, VIOLATION = 4, 0.02
# Rows that are opened in a round because they went to the other side of the hinge, at most.
MOST_FLIPPED = 400
# Where a sample stands: its multipliers are open, or it has none. Otherwise its row that carries all is noted.
OPEN, NONE = -2, -1
# Shares of options below this are nothing.
LEAST_SHARE = 1e-4
# Clusters whose inequality is further away than this are not handed on.
LOOSE = 0.5


class Seen(NamedTuple):
    """Margins of all rows, those whose multipliers are open, by groups of a sample, and rows that carry all of one."""

    margins: Floats
    rows: Ints
    groups: Ints
    start: Ints
    alone: Ints


class Frame(NamedTuple):
    """The program of a round, what its multipliers make of the whole problem, and where its numbers come from."""

    program: Program
    linear: Linear
    feature: Ints  # of each entry
    option: Ints
    reference: Ints  # of each feature
    active: Ints  # features that have a block


@njit(cache=True, nogil=True)
def choose_rows(space: Space, base: Floats, shares: Floats, band: float, firm: Flags) -> Seen:
    """Rows near the hinge at these shares, and those that are firm."""
    margins = shared_margins(space, base, shares)
    rows, counts, alone = near_hinge(margins, space.rivals, space.gamma, band, firm)
    groups = np.flatnonzero(counts)
    start = np.zeros(len(groups) + 1, np.int64)
    for g in range(len(groups)):
        start[g + 1] = start[g] + counts[groups[g]]
    return Seen(margins, rows, groups, start, alone)


@njit(cache=True, nogil=True)
def open_flipped(space: Space, seen: Seen, side: Ints, firm: Flags) -> bool:
    """Make rows firm whose sample went from one side of the hinge to the other since the last round; whether any did.

    Their multipliers were settled, on either side, so that rounds could go back and forth between the two. `side`
    holds where each sample stood, and receives where it stands; it begins with all samples open.
    """
    now = np.full(len(side), NONE)
    now[seen.alone // space.rivals] = seen.alone
    now[seen.groups] = OPEN
    rows, count = np.empty(2 * len(side), np.int64), 0
    for m in range(len(side)):
        if side[m] != now[m] and side[m] != OPEN and now[m] != OPEN:
            for row in (side[m], now[m]):
                if row >= 0:
                    rows[count] = row
                    count += 1
    side[:] = now
    if count > MOST_FLIPPED:
        far = np.argsort(-np.abs(seen.margins[rows[:count]] - space.gamma), kind="mergesort")
        firm[rows[:count][far[:MOST_FLIPPED]]] = True
    else:
        firm[rows[:count]] = True
    return count > 0


@njit(cache=True, nogil=True)
def _use_best(score: Floats, most: int, least: float, used: Flags) -> bool:
    """Use the options of greatest score of each feature, at most so many, above the least; whether there are any."""
    found = False
    for i in range(len(score)):
        for _ in range(most):
            best, top = -1, least
            for o in range(score.shape[1]):
                if score[i, o] > top:
                    best, top = o, score[i, o]
            if best < 0:
                break
            used[i, best], found, score[i, best] = True, True, -np.inf
    return found


@njit(cache=True, nogil=True)
def use_options(values: Floats, allowed: Flags, used: Flags, most: int) -> None:
    """Use, of each feature, the options whose choice would cost least."""
    reduced = np.empty(values.shape)
    option_bound(values, allowed, np.empty(len(values), np.int64), reduced)
    _use_best(reduced, most, -np.inf, used)


@njit(cache=True, nogil=True)
def _inside(clusters: Flags, c: int, i: int, o: int) -> bool:
    """Whether a cluster holds both a feature and the parent of this option."""
    return bool(o > 1 and clusters[c, i] and clusters[c, o - 2])


@njit(cache=True, nogil=True)
def grow_options(
    frame: Frame, point: Point, values: Floats, clusters: Flags, allowed: Flags, used: Flags, small: float
) -> bool:
    """Use options that would enter the relaxation; whether there are any."""
    gain = values.copy()
    # A share of an option costs its value the duals of all clusters that hold both the feature and its parent.
    for c in range(len(clusters)):
        members = np.flatnonzero(clusters[c])
        for a in members:
            for b in members:
                gain[a, 2 + b] -= point.cut_dual[c]
    for i in range(len(gain)):
        gain[i] -= gain[i, frame.reference[i]]
    for k in range(len(frame.active)):
        gain[frame.active[k]] -= point.rest_price[k]
    for i in range(len(gain)):
        for o in range(gain.shape[1]):
            if used[i, o] or not allowed[i, o]:
                gain[i, o] = -np.inf
    return bool(_use_best(gain, NEW_OPTIONS, small / len(gain), used))


@njit(cache=True, nogil=True)
def grow_clusters(clusters: Flags, shares: Floats) -> Flags:
    """The clusters, and behind them those that the shares violate."""
    found = violated_clusters(shares, VIOLATION)
    out = np.zeros((len(clusters) + len(found), len(shares)), np.bool_)
    out[: len(clusters)] = clusters
    count = len(clusters)
    for f in range(len(found)):
        known = False
        for c in range(len(clusters)):
            known = known or bool((clusters[c] == found[f]).all())
        if not known:
            out[count] = found[f]
            count += 1
    return out[:count].copy()


@njit(cache=True, nogil=True)
def tight_clusters(clusters: Flags, shares: Floats) -> Flags:
    """Clusters whose inequality the shares come near to, or violate."""
    near = np.zeros(len(clusters), np.bool_)
    for c in range(len(clusters)):
        room = clusters[c].sum() - 1.0
        for i in np.flatnonzero(clusters[c]):
            for j in np.flatnonzero(clusters[c]):
                room -= shares[i, 2 + j]
        near[c] = room < LOOSE
    return clusters[near].copy()


@njit(cache=True, nogil=True)
def make_frame(
    space: Space, base: Floats, allowed: Flags, used: Flags, shares: Floats, clusters: Flags, seen: Seen
) -> Frame:
    """The program over the rows and options in use, relative to the option with the greatest share of each feature."""
    (n, k), weights = allowed.shape, space.data.weights
    reference = np.empty(n, np.int64)
    feature, option, block = np.empty(n * k, np.int64), np.empty(n * k, np.int64), np.empty(n * k, np.int64)
    active, entries, blocks = np.empty(n, np.int64), 0, 0
    for i in range(n):
        reference[i] = np.argmax(np.where(used[i], shares[i], -1.0))
        before = entries
        for o in range(k):
            if used[i, o] and o != reference[i]:
                feature[entries], option[entries], block[entries] = i, o, blocks
                entries += 1
        if entries > before:
            active[blocks] = i
            blocks += 1
    feature, option, block = feature[:entries].copy(), option[:entries].copy(), block[:entries].copy()
    slots, at = feature * k + option, np.arange(n) * k + reference
    rows, row_base = gather(space.dense, base, seen.rows, slots, feature, at)
    own, carried = weights[seen.alone // space.rivals], base[seen.alone]
    fixed = np.zeros(n * k)  # what the samples add whose multipliers are settled
    weighted_rows(space.dense, seen.alone, own, fixed)
    constant = space.gamma * (space.total - own.sum()) + (own * carried).sum()
    cuts, room = _cuts(clusters, feature, option, reference)
    linear = fixed[slots] - fixed[at][feature]
    program = Program(rows, row_base, seen.start, weights[seen.groups], space.gamma, linear, block, cuts, room)
    whole = Linear(space.dense, seen.rows, fixed, constant, base[seen.rows] - space.gamma, allowed)
    return Frame(program, whole, feature, option, reference, active[:blocks].copy())


@njit(cache=True, nogil=True)
def _cuts(clusters: Flags, feature: Ints, option: Ints, reference: Ints) -> tuple[Floats, Floats]:
    """Within a cluster some feature has no parent from it; relative to the references."""
    cuts, room = np.zeros((len(clusters), len(feature))), np.empty(len(clusters))
    for c in range(len(clusters)):
        room[c] = clusters[c].sum() - 1.0
        for i in range(len(reference)):
            room[c] -= _inside(clusters, c, i, reference[i])
        for e in range(len(feature)):
            own = _inside(clusters, c, feature[e], reference[feature[e]])
            cuts[c, e] = 1.0 * _inside(clusters, c, feature[e], option[e]) - own
    return cuts, room


@njit(cache=True, nogil=True)
def taken_shares(frame: Frame, point: Point, shares: Floats) -> float:
    """Go to the shares of the interior point, in place; what the rows in use say the soft margin is there."""
    program, linear = frame.program, frame.linear
    shares[:] = 0.0
    for i in range(len(shares)):
        shares[i, frame.reference[i]] = 1.0
    for e in range(len(point.x)):
        i = frame.feature[e]
        shares[i, frame.reference[i]] -= point.x[e]
        shares[i, frame.option[e]] = point.x[e]
    value = linear.constant + (linear.fixed * shares.reshape(shares.size)).sum()
    margins = program.base + np.dot(program.rows, point.x)
    for g in range(len(program.weight)):
        low = program.gamma
        for r in range(program.start[g], program.start[g + 1]):
            low = min(low, margins[r])
        value += program.weight[g] * (low - program.gamma)
    for i in range(len(shares)):
        shares[i] = np.where(shares[i] < LEAST_SHARE, 0.0, shares[i])
        shares[i] /= shares[i].sum()
    return float(value)
