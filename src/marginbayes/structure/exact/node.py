"""Parts of the search: how they wait, and what becomes of one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import Multipliers, branch_bound, evaluate, exact_multipliers
from marginbayes.structure.exact.incumbent import Incumbent, climb_tolerance, objective_of
from marginbayes.structure.exact.instance import Instance

if TYPE_CHECKING:
    from marginbayes.kernels.exact_dive import Dived
    from marginbayes.kernels.exact_part import Expanded, Problem

__all__ = ["Basis", "Child", "Expansion", "Node", "Start", "Task", "bases_of", "divided", "expand", "plunge"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
# Structures that are looked at one by one rather than by dividing a part further: of a whole problem as many as take no
# longer than its relaxation, of a part fewer.
MANY, WORK, FEW = 100_000, 2e7, 1000
# The same deep below, where a relaxation takes no longer than so many structures.
LITTLE = 100


@dataclass(frozen=True, eq=False)
class Basis:
    """What the vertex of a simplex method follows from, see `kernels.exact_begin`; empty where there is none."""

    tight: NDArray[np.int32]
    free: NDArray[np.int32]
    references: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self.tight.nbytes + self.free.nbytes + self.references.nbytes


NO_BASIS = Basis(*(np.empty(0, np.int32) for _ in range(3)))


@dataclass(frozen=True, eq=False)
class Start:
    """Where a relaxation begins: shares of some options, multipliers, and clusters of features that held cycles.

    Depth first there are no shares, but the basis of a vertex.
    """

    slots: NDArray[np.int32]  # feature * number of options + option
    values: NDArray[np.float32]
    multipliers: Multipliers
    clusters: Flags  # [cluster, feature]
    basis: Basis = NO_BASIS

    @classmethod
    def of(cls, shares: Floats, multipliers: Multipliers, clusters: Flags | None = None) -> Start:
        """The start with these shares [feature, option]."""
        slots = np.flatnonzero(shares).astype(np.int32)
        clusters = np.zeros((0, len(shares)), bool) if clusters is None else clusters
        return cls(slots, shares.reshape(-1)[slots].astype(np.float32), multipliers, clusters)

    @property
    def bytes(self) -> int:
        """Memory in use; two parts share it as a rule."""
        shared = self.slots, self.values, self.clusters, self.basis, self.multipliers.rows, self.multipliers.shares
        return sum(one.nbytes for one in shared) // 2


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


@dataclass(frozen=True)
class Task:
    """A part that is worked on depth first; nothing that is found meanwhile changes how."""

    node: Node
    cutoff: float
    parts: int  # to work on at most
    climbs: bool  # whether to climb from its rounded shares


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
    listed: bool = False  # whether structures that they do not bound were looked at one by one
    fixes: list[tuple[Flags, Multipliers]] = field(default_factory=list)  # options taken out, and what allows it
    fixed_bound: float = -np.inf  # no option that was taken out leads above this
    slots: tuple[int, ...] = ()  # of the division
    children: list[Child] = field(default_factory=list)
    start: Start | None = None  # of the children
    left: Flags | None = None  # options of a part that stays open, with a better bound, for lack of time
    found: Incumbent | None = None


def expand(instance: Instance, node: Node, cutoff: float, is_root: bool, climbs: bool, stop: Ints) -> Expansion:
    """Relax a part and divide it, unless it holds nothing above the cutoff. Depends on its arguments alone."""
    from marginbayes.kernels import exact_part as kernels
    from marginbayes.kernels.exact_relax import INSIDE, ROOT
    from marginbayes.kernels.exact_space import Multipliers as Pair

    start, top = node.start, node.top
    pair = Pair(start.multipliers.rows, start.multipliers.shares)
    problem = _problem(instance, top, cutoff)
    given = kernels.Given(node.allowed(instance.allowed.shape), start.slots, start.values, start.clusters, pair)
    effort, most = (ROOT, _most(instance)) if is_root else (INSIDE, FEW)
    seed = node.part * 1_000_003 + instance.seed
    done = kernels.expand(instance.space, problem, given, effort, most, climbs, seed, stop)
    if done.status == kernels.FULL:
        raise instance.memory_limit()
    multipliers = Multipliers(*done.multipliers) if done.relaxed else start.multipliers
    fixes = [(done.early, start.multipliers), (done.late, multipliers)]
    out = Expansion(done.bound, multipliers, done.status == kernels.LISTED, fixes, done.fixed_bound)
    if done.found.objective > -np.inf:
        out.found = Incumbent(top, done.found.choice, done.found.objective)
    if done.status == kernels.LAST:
        _settle(instance, top, done.allowed, out)
    elif done.status in (kernels.LEFT, kernels.DIVIDED):
        out.start = Start.of(done.shares, multipliers, done.clusters)
        out.left = done.allowed if done.status == kernels.LEFT else None
    if done.status == kernels.DIVIDED:
        _divide(instance, done, out)
    return out


def plunge(instance: Instance, task: Task, stop: Ints) -> Dived:
    """Work on a part, and on what it is divided into, depth first. Depends on its arguments alone."""
    from marginbayes.kernels.exact_begin import Basis as Known
    from marginbayes.kernels.exact_dive import dive
    from marginbayes.kernels.exact_space import Multipliers as Pair

    node, start = task.node, task.node.start
    allowed, given = node.allowed(instance.allowed.shape), Pair(start.multipliers.rows, start.multipliers.shares)
    known = Known(start.basis.tight, start.basis.free, start.basis.references)
    seed = (node.part * 1_000_003 + instance.seed) % (1 << 32)
    problem = _problem(instance, node.top, task.cutoff)
    how = task.parts, LITTLE, task.climbs, seed
    found: Dived = dive(instance.space, problem, allowed, start.clusters, given, known, *how, stop)
    return found


def bases_of(out: Dived) -> list[Basis]:
    """The basis of each part that a dive leaves open."""
    tight = np.cumsum(out.open_size)
    free = np.cumsum(np.maximum(out.open_size - out.open_allowed.shape[1], 0))
    own = divided(out.open_tight, tight), divided(out.open_free, free), divided(out.open_references, free)
    # Copies, as all of it is kept as long as one part is.
    return [Basis(*(array.copy() for array in one)) for one in zip(*own, strict=True)]


def divided(array: NDArray[Any], ends: Ints) -> list[NDArray[Any]]:
    """Arrays of different lengths that stand behind each other, and where each ends."""
    return np.split(array, ends[:-1]) if len(ends) else []


def _problem(instance: Instance, top: int, cutoff: float) -> Problem:
    from marginbayes.kernels.exact_part import Problem

    whole, tolerance = instance.root(top), climb_tolerance(instance)
    return Problem(instance.base(top), instance.state(top), whole, cutoff, tolerance)


def _divide(instance: Instance, done: Expanded, out: Expansion) -> None:
    """Two children: one feature takes one of some options, or none of them."""
    split = done.split
    out.slots = tuple((split.feature * instance.n_options + np.flatnonzero(split.inside)).tolist())
    within, without = done.allowed.copy(), done.allowed
    within[split.feature] &= split.inside
    without[split.feature] &= ~split.inside
    out.children = [Child(True, within, split.within), Child(False, without, split.without)]


def _most(instance: Instance) -> int:
    """Structures of a whole problem that are looked at one by one at most."""
    return int(min(MANY, max(FEW, WORK / len(instance.samples.weights))))


def _settle(instance: Instance, top: int, allowed: Flags, out: Expansion) -> None:
    """One structure is left: its own multipliers bound it by its objective."""
    choice = np.argmax(allowed, axis=1)
    out.multipliers = exact_multipliers(instance, top, choice)
    out.bound = branch_bound(evaluate(instance, top, out.multipliers), allowed)
    if out.bound > -np.inf:
        out.found = Incumbent(top, choice, objective_of(instance, top, choice))
