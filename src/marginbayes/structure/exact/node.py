"""One part of the search: relax it, take out options that cannot matter, and divide what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import Evaluated, Multipliers, branch_bound, evaluate, exact_multipliers
from marginbayes.structure.exact.division import division
from marginbayes.structure.exact.incumbent import Incumbent, climb_from, objective_of
from marginbayes.structure.exact.instance import Instance
from marginbayes.structure.exact.proof import Fix
from marginbayes.structure.exact.relaxation import Effort, Relaxed, Start, relax, restricted

__all__ = ["Child", "Expansion", "Node", "expand"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOISE = 1e-3  # between shares that round to the same structure


@dataclass(frozen=True, eq=False)
class Node:
    """A part that is still open; its options are packed, eight to a byte."""

    part: int
    top: int
    packed: NDArray[np.uint8]
    bound: float
    start: Start

    @classmethod
    def of(cls, part: int, top: int, allowed: Flags, bound: float, start: Start) -> Node:
        """The node with these options."""
        return cls(part, top, np.packbits(allowed), bound, start)

    def allowed(self, shape: tuple[int, ...]) -> Flags:
        """Its options [feature, option]."""
        return np.unpackbits(self.packed, count=shape[0] * shape[1]).astype(bool).reshape(shape)


@dataclass(frozen=True, eq=False)
class Child:
    """A piece of a divided part, and its bound by the multipliers of the whole."""

    taken: bool  # whether the divided feature takes one of the slots of the division, or none
    allowed: Flags
    bound: float


@dataclass(eq=False)
class Expansion:
    """What became of a part: closed by its multipliers, or divided into children."""

    bound: float
    multipliers: Multipliers
    fixes: list[Fix] = field(default_factory=list)
    fixed_bound: float = -np.inf  # no option that was taken out leads above this
    slots: tuple[int, ...] = ()  # of the division
    children: list[Child] = field(default_factory=list)
    start: Start | None = None  # of the children
    left: Flags | None = None  # options of a part that stays open, with a better bound, for lack of time
    found: Incumbent | None = None


def expand(
    instance: Instance,
    node: Node,
    cutoff: float,
    effort: Effort,
    climbs: bool,
    in_time: Callable[[], bool],
) -> Expansion:
    """Relax a part and divide it, unless it holds nothing above the cutoff. Depends on its arguments alone."""
    allowed = node.allowed(instance.allowed.shape)
    out = Expansion(node.bound, node.start.multipliers)
    found = evaluate(instance, node.top, node.start.multipliers)
    if not _take_out(out, found, node.start.multipliers, allowed, cutoff):
        return out
    if (allowed.sum(axis=1) == 1).all():
        return _settle(instance, node, allowed, out)
    relaxed = relax(instance, node.top, allowed, node.start, found, cutoff, effort, in_time)
    out.bound, out.multipliers = relaxed.bound, relaxed.multipliers
    assert relaxed.multipliers.text  # made here, where other threads can work meanwhile
    if relaxed.bound <= cutoff:
        return out
    if not in_time():
        out.start, out.left = Start.of(relaxed.shares, relaxed.multipliers, relaxed.clusters), allowed
        return out
    if not _take_out(out, relaxed.evaluated, relaxed.multipliers, allowed, cutoff):
        return out
    rng = np.random.default_rng([node.part, instance.seed])
    if climbs:
        out.found = _rounded(instance, node.top, relaxed.shares, allowed, rng)
    if (allowed.sum(axis=1) == 1).all():
        return _settle(instance, node, allowed, out)
    _divide(instance, node, relaxed, allowed, effort, out)
    return out


def _take_out(out: Expansion, found: Evaluated, multipliers: Multipliers, allowed: Flags, cutoff: float) -> bool:
    """Take options out whose choice cannot lead above the cutoff, in place; whether anything is left above it."""
    from marginbayes.kernels.branching import forced_bounds

    forced = np.empty_like(found.values)
    best = found.constant + forced_bounds(found.values, allowed, cutoff - found.constant, forced)
    if best <= cutoff:
        out.bound, out.multipliers = best, multipliers
        return False
    gone = allowed & (found.constant + forced <= cutoff)
    if gone.any():
        out.fixed_bound = max(out.fixed_bound, found.constant + float(forced[gone].max()))
        out.fixes += [Fix(i, gone[i].copy(), multipliers) for i in np.flatnonzero(gone.any(axis=1)).tolist()]
        allowed &= ~gone
        if not allowed.any(axis=1).all():
            out.bound, out.multipliers = -np.inf, multipliers
            return False
    return True


def _settle(instance: Instance, node: Node, allowed: Flags, out: Expansion) -> Expansion:
    """One structure is left: its own multipliers bound it by its objective."""
    choice = np.argmax(allowed, axis=1)
    out.multipliers = exact_multipliers(instance, node.top, choice)
    out.bound = branch_bound(evaluate(instance, node.top, out.multipliers), allowed)
    out.children, out.start = [], None
    if out.bound > -np.inf:
        out.found = Incumbent(node.top, choice, objective_of(instance, node.top, choice))
    return out


def _rounded(
    instance: Instance, top: int, shares: Floats, allowed: Flags, rng: np.random.Generator
) -> Incumbent | None:
    """The structure nearest to the shares, after a climb."""
    from marginbayes.kernels.branching import option_bound

    choice = np.empty(len(shares), np.int64)
    weights = shares + NOISE * rng.random(shares.shape)
    if option_bound(weights, allowed, choice, np.empty((0, shares.shape[1]))) == -np.inf:
        return None
    return climb_from(instance, top, instance.root(top), choice, rng)


def _divide(instance: Instance, node: Node, relaxed: Relaxed, allowed: Flags, effort: Effort, out: Expansion) -> None:
    """Two children: one feature takes one of some options, or none of them."""
    feature, inside = division(instance, node.top, relaxed, allowed, effort.band)
    out.slots = tuple((feature * instance.n_options + np.flatnonzero(inside)).tolist())
    without, within = allowed.copy(), allowed.copy()
    without[feature] &= ~inside
    within[feature] &= inside
    out.children = [
        Child(True, within, branch_bound(relaxed.evaluated, within)),
        Child(False, without, branch_bound(relaxed.evaluated, without)),
    ]
    out.start = Start.of(restricted(relaxed.shares, allowed), relaxed.multipliers, relaxed.clusters)
