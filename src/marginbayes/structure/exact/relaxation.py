"""The relaxation of a node: which rows and options matter, an interior point over those, and multipliers from it.

Only margins near their hinge bend the objective, and only a few options of each feature have a share in the relaxed
optimum, so the interior point sees those alone (sifting). Whatever it leaves out costs tightness, never validity: the
bound is computed from the multipliers over all rows and options.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import UNIT, Evaluated, Multipliers, branch_bound, evaluate, rounded
from marginbayes.structure.exact.instance import Instance
from marginbayes.structure.exact.working import Working

__all__ = ["Effort", "Relaxed", "Start", "relax"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# The interior point begins this share of the way from the given point to the middle.
MIDDLE = 0.1
# Shares of options below this are nothing.
LEAST_SHARE = 1e-4
# How far each level starts below its hinge.
SPREAD = 1.0
# Clusters whose inequality is further away than this are not handed on.
LOOSE = 0.5
# Products of numbers between two looks at the clock.
STEP_WORK = 3e8


@dataclass(frozen=True)
class Effort:
    """How much work a relaxation is worth."""

    rounds: int = 3  # of rows, options and clusters being added
    steps: int = 40  # of the interior point, in each round
    options: int = 6  # of each feature, to begin with
    band: float = 1.0  # how near to its hinge a margin must be for its multiplier to be open
    tolerance: float = 0.02  # of the distance between bound and cutoff


@dataclass(frozen=True, eq=False)
class Start:
    """Where a relaxation begins: shares of some options, multipliers, and clusters of features that held cycles."""

    slots: NDArray[np.int32]  # feature * number of options + option
    values: NDArray[np.float32]
    multipliers: Multipliers
    clusters: tuple[frozenset[int], ...] = ()

    @classmethod
    def of(cls, shares: Floats, multipliers: Multipliers, clusters: tuple[frozenset[int], ...] = ()) -> Start:
        """The start with these shares [feature, option]."""
        slots = np.flatnonzero(shares).astype(np.int32)
        return cls(slots, shares.reshape(-1)[slots].astype(np.float32), multipliers, clusters)

    @property
    def bytes(self) -> int:
        """Memory in use, without the multipliers."""
        return int(self.slots.nbytes + self.values.nbytes) + 64 * len(self.clusters)

    def shares(self, allowed: Flags) -> Floats:
        """Shares of the allowed options, to a sum of one for each feature."""
        flat = np.zeros(allowed.size)
        flat[self.slots] = self.values
        return restricted(flat.reshape(allowed.shape), allowed)


@dataclass(frozen=True, eq=False)
class Relaxed:
    """What a relaxation found: a bound, the multipliers that prove it, and the shares of the options there."""

    bound: float
    multipliers: Multipliers
    evaluated: Evaluated
    shares: Floats
    clusters: tuple[frozenset[int], ...]


def relax(
    instance: Instance,
    top: int,
    allowed: Flags,
    start: Start,
    found: Evaluated,
    cutoff: float,
    effort: Effort,
    in_time: Callable[[], bool],
) -> Relaxed:
    """Bound of a node by multipliers from an interior point; stops early once the bound is at most the cutoff.

    `found` is what the multipliers of the start make of every option.
    """
    best = branch_bound(found, allowed), start.multipliers, found
    work = Working(instance, top, allowed, start.shares(allowed), start.clusters)
    work.open_rows(start.multipliers)
    work.use_options(found, effort.options)
    work.select_rows(effort.band)
    for _ in range(effort.rounds):
        multipliers, grown = _round(work, best[1], cutoff, effort, in_time)
        found = evaluate(instance, top, multipliers)
        bound = branch_bound(found, allowed)
        if bound < best[0]:
            best = bound, multipliers, found
        model = work.model_value
        work.keep_rows()
        work.select_rows(effort.band)
        work.open_flipped(effort.band)
        small = effort.tolerance * (best[0] - cutoff)
        if best[0] <= cutoff or not in_time() or not (grown or model - work.true_value() > small):
            break
    return Relaxed(*best, work.shares, work.tight_clusters(LOOSE))


def restricted(shares: Floats, allowed: Flags) -> Floats:
    """The shares of allowed options alone, to a sum of one; equal ones where none is left."""
    shares = np.where(allowed, shares, 0.0)
    empty = shares.sum(axis=1) <= 0.0
    shares[empty] = allowed[empty]
    return np.asarray(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300))


def _round(
    work: Working, guess: Multipliers, cutoff: float, effort: Effort, in_time: Callable[[], bool]
) -> tuple[Multipliers, bool]:
    """Multipliers from one run of the interior point, and whether options or clusters were added after it."""
    from marginbayes.kernels.exact_interior import Best, interior_run, starting_point

    instance = work.instance
    program = work.program()
    known = np.zeros(instance.n_rows)
    known[guess.rows] = guess.shares * UNIT
    counts = np.diff(program.start)
    spread = MIDDLE / np.repeat(counts + 1, counts)
    dual = np.repeat(program.weight, counts) * ((1.0 - MIDDLE) * known[work.rows] + spread)
    x = (1.0 - MIDDLE) * work.shares[work.feature, work.option] + MIDDLE / work.used.sum(axis=1)[work.feature]
    point = starting_point(program, x, dual, len(work.active), SPREAD)
    best = Best(np.array([np.inf]), dual.copy(), np.zeros(work.allowed.shape))
    linear = work.linear()
    at_once = max(1, int(STEP_WORK / (1.0 + program.rows.size * len(x))))
    for _ in range(0, effort.steps, at_once):
        try:
            done = interior_run(program, point, linear, best, cutoff, effort.tolerance, at_once)
        except np.linalg.LinAlgError:  # the point is as near to the border as the numbers allow
            break
        if done or not in_time():
            break
    work.take_shares(program, point, LEAST_SHARE)
    bound = float(best.bound[0])
    grown = cutoff < bound < np.inf and work.grow(point, best.values, effort.tolerance * (bound - cutoff))
    alone = instance.samples.weights[work.alone // instance.rivals]
    rows, values = np.concatenate([work.rows, work.alone]), np.concatenate([best.dual, alone])
    return rounded(instance, rows, values), grown
