"""Branch and bound over edges, with a relaxation that knows cluster inequalities: for parent sets of any size."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.clusters import RelaxedFamilies, bound_of, violated_clusters
from marginbayes.structure.exact.families import Families

__all__ = ["ClusterTree", "Decision", "EdgeFix", "Leaf", "Relaxation", "everything", "tree_evidence"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Set = tuple[int, ...]
Decision = tuple[int, int, bool]  # parent, child, whether the edge is there

# Below the root, cuts go on while the bound falls by this share of what is left to prove, or nothing is fractional.
PROGRESS = 0.01


class Relaxation(Protocol):
    """What the tree needs to know of a problem."""

    families: Families
    nothing: Any  # the proof that says least

    def solve(self, allowed: Sequence[Mask], clusters: Sequence[Set]) -> RelaxedFamilies | None:
        """Solution of the relaxation; None where a variable has no parent set left."""

    def raised(self, proof: Any) -> tuple[list[Floats], float]:
        """For each variable and parent set a number, and a constant, whose sum over a structure bounds its value."""

    def value(self, parents: Sequence[Set]) -> float:
        """Value of a structure."""


@dataclass(frozen=True)
class Leaf:
    """A part of the search space, by the decisions about edges that define it, and the bound that is proved for it."""

    decisions: tuple[Decision, ...]
    bound: float
    proof: Any


@dataclass(frozen=True)
class EdgeFix:
    """Within a part, parent sets of no use: with any of them, the proof bounds the value by the threshold."""

    decisions: tuple[Decision, ...]
    threshold: float
    proof: Any


@dataclass(order=True)
class _Node:
    rank: tuple[float, int]
    leaf: Leaf = field(compare=False)
    allowed: list[Mask] = field(compare=False)
    clusters: tuple[Set, ...] = field(compare=False)


def everything(families: Families) -> list[Mask]:
    """All parent sets allowed."""
    return [np.ones(len(own), bool) for own in families.sets]


def after(families: Families, allowed: Sequence[Mask], decision: Decision) -> list[Mask]:
    """The parent sets that agree with one more decision; an edge that is there excludes its reverse."""
    parent, child, there = decision
    new = list(allowed)
    new[child] = new[child] & np.array([(parent in s) == there for s in families.sets[child]], bool)
    if there:
        new[parent] = new[parent] & np.array([child not in s for s in families.sets[parent]], bool)
    return new


class ClusterTree:
    """Best-first search; `run` goes on until the gap is closed or `stop` says so, and can be called again.

    Attributes
    ----------
    parents, value : the best structure so far
    fixes : list of EdgeFix
        Parent sets that were left out, in the order in which that was seen.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        parents: tuple[Set, ...],
        suggest: Callable[[RelaxedFamilies], Sequence[tuple[Set, ...]]],
        gap: float = 1e-6,
    ) -> None:
        self.relaxation, self.suggest, self.gap = relaxation, suggest, gap
        self.parents, self.value = parents, relaxation.value(parents)
        self.closed: list[Leaf] = []
        self.fixes: list[EdgeFix] = []
        self.nodes = 0
        self._heap: list[_Node] = []
        self._at_work: _Node | None = None
        self._numbers = iter(range(1 << 62))
        allowed = everything(relaxation.families)
        bound = bound_of(*relaxation.raised(relaxation.nothing), allowed)
        heapq.heappush(self._heap, self._node(Leaf((), bound, relaxation.nothing), allowed, ()))

    @property
    def bound(self) -> float:
        """No structure is better than this."""
        return max([self.value, *(leaf.bound for leaf in self.leaves)])

    @property
    def leaves(self) -> list[Leaf]:
        """The parts into which the space was split, proved or still open."""
        at_work = [] if self._at_work is None else [self._at_work.leaf]
        return [*self.closed, *at_work, *(node.leaf for node in self._heap)]

    @property
    def _cutoff(self) -> float:
        # Half of what is asked for: the other half is for rounding.
        return self.value + 0.5 * self.gap * max(1.0, abs(self.value))

    def offer(self, parents: tuple[Set, ...] | None) -> None:
        """Keep a structure, if there is one, that is better than the best so far."""
        if parents is not None and (value := self.relaxation.value(parents)) > self.value:
            self.parents, self.value = parents, value

    def run(self, stop: Callable[[], bool], tell: Callable[[ClusterTree], None]) -> bool:
        """Whether the gap was closed."""
        while self._heap:
            if -self._heap[0].rank[0] <= self._cutoff:
                return True
            if stop():
                return False
            self._at_work = heapq.heappop(self._heap)
            try:
                self._visit(self._at_work, stop, tell)
            except BaseException:
                self._take_back()
                raise
            self.nodes += 1
            tell(self)
        return True

    def _take_back(self) -> None:
        """Open the part that was at work again, and forget what it was split into: nothing is lost, nothing double."""
        if self._at_work is None:
            return
        decisions = self._at_work.leaf.decisions
        self.closed = [leaf for leaf in self.closed if leaf.decisions[: len(decisions)] != decisions]
        self._heap = [node for node in self._heap if node.leaf.decisions[: len(decisions)] != decisions]
        heapq.heapify(self._heap)
        heapq.heappush(self._heap, self._at_work)
        self._at_work = None

    def _node(self, leaf: Leaf, allowed: list[Mask], clusters: Sequence[Set]) -> _Node:
        return _Node((-leaf.bound, next(self._numbers)), leaf, allowed, tuple(clusters))

    def _visit(self, node: _Node, stop: Callable[[], bool], tell: Callable[[ClusterTree], None]) -> None:
        """Bound a part; close it, or split it in two."""
        leaf, clusters, edge, going = node.leaf, list(node.clusters), None, True
        while going:
            found = self.relaxation.solve(node.allowed, clusters)
            if found is None:
                leaf, edge = Leaf(leaf.decisions, -math.inf, self.relaxation.nothing), None
                break
            gained = leaf.bound - found.bound
            if gained > 0:
                leaf = node.leaf = Leaf(leaf.decisions, found.bound, found.proof)
            for parents in self.suggest(found):
                self.offer(parents)
            if not leaf.decisions:  # the root takes longest
                tell(self)
            self._fix(node, found.proof)
            fraction, edge = _edge_to_split(self.relaxation.families, node.allowed, found.shares)
            # At the root every inequality pays; below it, splitting is the faster way to exclude a fraction.
            thorough = not leaf.decisions
            new = [c for c in violated_clusters(self._sets, found.shares, thorough=thorough) if c not in clusters]
            clusters += new
            slow = fraction > 0 and leaf.decisions and gained < PROGRESS * (leaf.bound - self.value)
            going = bool(new) and not slow and leaf.bound > self._cutoff and not stop()
        if edge is None:
            self._offer_last(node.allowed)
            left = bound_of(*self.relaxation.raised(leaf.proof), node.allowed)
            leaf = Leaf(leaf.decisions, min(leaf.bound, left), leaf.proof)
        if leaf.bound <= self._cutoff or edge is None:
            self.closed.append(leaf)
        else:
            self._split(node, edge, clusters)
        self._at_work = None

    def _fix(self, node: _Node, proof: Any) -> None:
        """Leave out the parent sets with which nothing better than the best structure so far is possible."""
        raised, constant = self.relaxation.raised(proof)
        total = bound_of(raised, constant, node.allowed)
        kept = []
        for own, ok in zip(raised, node.allowed, strict=True):
            with_each = total - own[ok].max(initial=-np.inf) + own
            kept.append(ok & (with_each > self.value))
        if any((new != old).any() for new, old in zip(kept, node.allowed, strict=True)):
            self.fixes.append(EdgeFix(node.leaf.decisions, self.value, proof))
            node.allowed = kept

    def _split(self, node: _Node, edge: tuple[int, int], clusters: Sequence[Set]) -> None:
        raised, constant = self.relaxation.raised(node.leaf.proof)
        for there in (True, False):
            allowed = after(self.relaxation.families, node.allowed, (*edge, there))
            bound = bound_of(raised, constant, allowed)
            leaf = Leaf((*node.leaf.decisions, (*edge, there)), bound, node.leaf.proof)
            heapq.heappush(self._heap, self._node(leaf, allowed, clusters))

    def _offer_last(self, allowed: Sequence[Mask]) -> None:
        """Consider the structure of a part in which every variable has one parent set left, or none."""
        left = [[s for s, ok in zip(*both, strict=True) if ok] for both in zip(self._sets, allowed, strict=True)]
        if all(left):
            parents = tuple(own[0] for own in left)
            with suppress(CycleError):
                TopologicalSorter(dict(enumerate(parents))).prepare()
                self.offer(parents)

    @property
    def _sets(self) -> tuple[tuple[Set, ...], ...]:
        return self.relaxation.families.sets


def _edge_to_split(
    families: Families, allowed: Sequence[Mask], shares: Sequence[NDArray[np.float64]]
) -> tuple[float, tuple[int, int] | None]:
    """The edge whose share is nearest to a half, and how far that is from whole; None where nothing is undecided."""
    best: tuple[float, tuple[int, int] | None] = (-1.0, None)
    for child, (sets, ok, own) in enumerate(zip(families.sets, allowed, shares, strict=True)):
        weight = np.zeros((families.n, 2))
        for s, open_, x in zip(sets, ok, own, strict=True):
            if open_:
                weight[list(s)] += (1.0, x)
        undecided = np.flatnonzero((weight[:, 0] > 0) & (weight[:, 0] < ok.sum()))
        for parent in undecided.tolist():
            fraction = 0.5 - abs(0.5 - float(weight[parent, 1]))
            if fraction > best[0] + 1e-9:
                best = (fraction if fraction > 1e-6 else 0.0, (parent, child))
    return best


def tree_evidence(
    leaves: Sequence[Leaf], fixes: Sequence[EdgeFix], plain: Callable[[Any], dict[str, Any]]
) -> dict[str, Any]:
    """Leaves, fixes and proofs as numbers and lists; parts that were split from one another share a proof."""
    numbers: dict[int, int] = {}
    proofs: list[dict[str, Any]] = []
    everyone: list[Leaf | EdgeFix] = [*leaves, *fixes]
    for item in everyone:
        if id(item.proof) not in numbers:
            numbers[id(item.proof)] = len(proofs)
            proofs.append(plain(item.proof))

    def entry(item: Leaf | EdgeFix) -> dict[str, Any]:
        return {"decisions": [[p, c, int(t)] for p, c, t in item.decisions], "proof": numbers[id(item.proof)]}

    return {
        "proofs": proofs,
        "leaves": [entry(leaf) for leaf in leaves],
        "fixes": [{**entry(fix), "threshold": fix.threshold} for fix in fixes],
    }
