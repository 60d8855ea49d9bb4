"""One part of the search: relax it, take out options that cannot matter, and divide what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import Evaluated, Multipliers, branch_bound, evaluate, exact_multipliers
from marginbayes.structure.exact.incumbent import Incumbent, climb_from, objective_of
from marginbayes.structure.exact.instance import Instance
from marginbayes.structure.exact.proof import Fix
from marginbayes.structure.exact.relaxation import Effort, Relaxed, Start, relax, restricted
from marginbayes.structure.exact.working import Working

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

    feature: int
    allowed: Flags
    bound: float


@dataclass(eq=False)
class Expansion:
    """What became of a part: closed by its multipliers, or divided into children."""

    bound: float
    multipliers: Multipliers
    fixes: list[Fix] = field(default_factory=list)
    fixed_bound: float = -np.inf  # no option that was taken out leads above this
    children: list[Child] = field(default_factory=list)
    start: Start | None = None  # of the children
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
    if not _take_out(
        out, evaluate(instance, node.top, node.start.multipliers), node.start.multipliers, allowed, cutoff
    ):
        return out
    if (allowed.sum(axis=1) == 1).all():
        return _settle(instance, node, allowed, out)
    relaxed = relax(instance, node.top, allowed, node.start, cutoff, effort, in_time)
    out.bound, out.multipliers = relaxed.bound, relaxed.multipliers
    if relaxed.bound <= cutoff or not _take_out(out, relaxed.evaluated, relaxed.multipliers, allowed, cutoff):
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
    """Two children, by the feature whose division should lower the bound most."""
    feature, right = _division(instance, node.top, relaxed, allowed, effort)
    for side in (right, ~right):
        child = allowed.copy()
        child[feature] &= side
        out.children.append(Child(feature, child, branch_bound(relaxed.evaluated, child)))
    out.start = Start.of(restricted(relaxed.shares, allowed), relaxed.multipliers, relaxed.clusters)


def _division(instance: Instance, top: int, relaxed: Relaxed, allowed: Flags, effort: Effort) -> tuple[int, Flags]:
    """Feature to divide, and the options of one side."""
    from marginbayes.kernels.exact_split import division

    shares = restricted(relaxed.shares, allowed)
    work = Working(instance, top, allowed, shares, ())
    work.open_rows(relaxed.multipliers)
    work.select_rows(effort.band)
    right = np.zeros(instance.n_options, bool)
    feature, _ = division(
        instance.rows(work.rows),
        work.rows,
        work.start,
        instance.samples.weights[work.groups],
        instance.gamma,
        work.margins[work.rows],
        shares,
        allowed,
        right,
    )
    if feature < 0:  # every share is whole: one option against the rest of the feature with most options
        feature = int(np.argmax(allowed.sum(axis=1)))
        right = allowed[feature].copy()
        right[int(np.argmax(shares[feature]))] = False
    return feature, right
