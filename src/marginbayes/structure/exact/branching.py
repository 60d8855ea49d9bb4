"""The best structure with at most one feature parent: Edmonds' algorithm, and the multipliers that prove it.

A cluster inequality says that in an acyclic graph some member of every set of variables has no parent inside it (7).
With multipliers m >= 0 of such sets no acyclic structure scores better than

    sum over variables of max over parent sets S of (score(S) + sum of m(cluster) over clusters that hold the variable
    and no member of S) - sum of all m.

Edmonds' contractions leave multipliers behind for which this is the score of the best branching itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.families import Families

__all__ = ["BranchingSearch", "ClusterProof", "arborescence", "best_forest"]

Floats = NDArray[np.float64]
Set = tuple[int, ...]


@dataclass(frozen=True)
class ClusterProof:
    """Clusters of variables and their multipliers."""

    clusters: tuple[Set, ...] = ()
    multipliers: tuple[float, ...] = ()

    def shifted(self, families: Families) -> list[Floats]:
        """For each variable the scores of its parent sets, raised by the clusters that they leave open."""
        raised = [np.array(own) for own in families.scores]
        for cluster, multiplier in zip(self.clusters, self.multipliers, strict=True):
            members = frozenset(cluster)
            for i in cluster:
                raised[i][[members.isdisjoint(s) for s in families.sets[i]]] += multiplier
        return raised

    @property
    def total(self) -> float:
        """Sum of the multipliers."""
        return math.fsum(self.multipliers)


def arborescence(values: Floats) -> tuple[list[int], ClusterProof] | None:
    """Parent of every node but node 0 in the spanning tree away from node 0 of greatest total value, and its proof.

    ``values[parent, child]``, minus infinity where there is no edge; None where there is no such tree. Chu & Liu's and
    Edmonds' algorithm, O(n^3); ties go to the smaller parent.
    """
    return _Contraction(values).solve()


class _Contraction:
    """Nodes that grow together: every node takes its best parent; a cycle becomes one node that looks for a parent."""

    def __init__(self, values: Floats) -> None:
        self.n = len(values)
        size = 2 * self.n
        self.gain = np.full((size, size), -np.inf)
        self.gain[: self.n, : self.n] = values
        np.fill_diagonal(self.gain, -np.inf)
        self.gain[:, 0] = -np.inf
        # The edge between two nodes as they were at the start.
        self.tail, self.head = (np.array(a) for a in np.indices((size, size)))
        self.members: dict[int, Set] = {v: (v,) for v in range(1, self.n)}
        self.inside: dict[int, list[int]] = {}
        self.parent = np.full(size, -1)
        self.clusters: list[Set] = []
        self.multipliers: list[float] = []

    def solve(self) -> tuple[list[int], ClusterProof] | None:
        alive, todo = list(range(self.n)), list(range(1, self.n))
        while todo:
            v = todo.pop(0)
            column = self.gain[alive, v]
            best = int(column.argmax())
            if column[best] == -math.inf:
                return None
            self.parent[v] = alive[best]
            if v >= self.n:
                self.clusters.append(self.members[v])
                self.multipliers.append(-float(column[best]))
            self.gain[alive, v] -= column[best]
            cycle = self._cycle(v)
            if cycle:
                alive = self._contract(cycle, alive)
                todo.append(alive[-1])
        proof = [(c, max(0.0, m)) for c, m in zip(self.clusters, self.multipliers, strict=True) if m > 0]
        return self._expanded(alive), ClusterProof(tuple(c for c, _ in proof), tuple(m for _, m in proof))

    def _cycle(self, start: int) -> list[int]:
        """The nodes on the way up from a node, if that leads back to it."""
        way, v = [start], self.parent[start]
        while v > 0 and v != start:
            way.append(int(v))
            v = self.parent[v]
        return way if v == start else []

    def _contract(self, cycle: list[int], alive: list[int]) -> list[int]:
        new = self.n + len(self.inside)
        self.inside[new] = cycle
        self.members[new] = tuple(sorted(m for v in cycle for m in self.members[v]))
        rest = [v for v in alive if v not in cycle]
        block = self.gain[np.ix_(rest, cycle)]
        entered = np.array(cycle)[block.argmax(axis=1)]
        self._adopt(rest, [new], block.max(axis=1)[:, None], rest, entered)
        block = self.gain[np.ix_(cycle, rest)]
        left = np.array(cycle)[block.argmax(axis=0)]
        self._adopt([new], rest, block.max(axis=0)[None, :], left, rest)
        for v in rest:  # whoever hung below a member hangs below the new node
            if self.parent[v] in cycle:
                self.parent[v] = new
        return [*rest, new]

    def _adopt(
        self, tails: Sequence[int], heads: Sequence[int], gain: Floats, old_tail: Sequence[int], old_head: Sequence[int]
    ) -> None:
        where = np.ix_(list(tails), list(heads))
        self.gain[where] = gain
        source = (np.asarray(old_tail), np.asarray(old_head))
        self.tail[where] = self.tail[source].reshape(gain.shape)
        self.head[where] = self.head[source].reshape(gain.shape)

    def _expanded(self, alive: list[int]) -> list[int]:
        """Open the contracted nodes: the edge that enters one replaces the edge inside that has the same head."""
        chosen = [-1] * self.n
        edges = [(int(self.tail[self.parent[v], v]), int(self.head[self.parent[v], v]), v) for v in alive if v]
        while edges:
            tail, head, v = edges.pop()
            if v < self.n:
                chosen[head] = tail
                continue
            for inner in self.inside[v]:
                own = self.parent[inner]
                kept = (int(self.tail[own, inner]), int(self.head[own, inner]), inner)
                edges.append((tail, head, inner) if head in self.members[inner] else kept)
        return chosen


def best_forest(families: Families) -> tuple[tuple[Set, ...], ClusterProof]:
    """Best structure, and its proof, where no parent set has more than one member: a forest over all variables."""
    n = families.n
    values = np.full((n + 1, n + 1), -np.inf)  # node 0 stands for no parent
    for child, own in enumerate(families.sets):
        for parents, score in zip(own, families.scores[child], strict=True):
            values[parents[0] + 1 if parents else 0, child + 1] = score
    found = arborescence(values)
    if found is None:
        raise ValueError("no acyclic graph obeys the constraints")
    tree, shifted = found
    proof = ClusterProof(tuple(tuple(i - 1 for i in c) for c in shifted.clusters), shifted.multipliers)
    return tuple(() if p == 0 else (p - 1,) for p in tree[1:]), proof


class BranchingSearch:
    """Best structure of a classifier with at most one feature parent: one branching for each parent set of the class.

    Parent sets of the class that the multipliers of earlier branchings rule out are passed over. The first branching is
    made at once, so there always is a structure.

    Attributes
    ----------
    parents, value : the best structure so far
    proofs : list of ClusterProof
        For each parent set of the class, one of them proves the bound.
    """

    def __init__(self, families: Families) -> None:
        self.families = families
        self.parents: tuple[Set, ...] = ()
        self.value = -math.inf
        self.proofs: list[ClusterProof] = []
        self._open = dict.fromkeys(families.sets[0], math.inf)
        self._done: list[float] = []
        while not self.parents:
            if not self._open:
                raise ValueError("no acyclic graph obeys the constraints")
            self._next()

    @property
    def bound(self) -> float:
        """No structure is better than this."""
        return max([*self._done, *self._open.values()])

    def run(self, stop: Callable[[], bool], tell: Callable[[BranchingSearch], None]) -> bool:
        """Whether all parent sets of the class were dealt with."""
        while self._open and max(self._open.values()) > self.value:
            if stop():
                return False
            self._next()
            tell(self)
        return True

    def _next(self) -> None:
        top = max(self._open, key=lambda s: (self._open[s], -len(s)))
        found = _below(self.families, top)
        if found is not None:
            parents, proof = found
            value = self.families.total(parents)
            if value > self.value:
                self.parents, self.value = parents, value
            known = bounds(self.families, proof, list(self._open))
            self._open = {s: min(b, known[s]) for s, b in self._open.items()}
            self.proofs.append(proof)
            self._done.append(self._open[top])
        del self._open[top]


def bounds(families: Families, proof: ClusterProof, tops: Sequence[Set]) -> dict[Set, float]:
    """For each parent set of the class the bound on structures that have it; its members are then no children of it."""
    shifted = proof.shifted(families)
    free = [float(own.max()) for own in shifted]
    apart = [
        float(own[[0 not in s for s in sets]].max(initial=-np.inf))
        for own, sets in zip(shifted, families.sets, strict=True)
    ]
    base = math.fsum([*free[1:], -proof.total])
    return {t: base + families.of(0, t) + sum(apart[i] - free[i] for i in t) for t in tops}


def _below(families: Families, top: Set) -> tuple[tuple[Set, ...], ClusterProof] | None:
    """The best branching below a class with these parents; its node 0 stands for no feature parent."""
    n = families.n
    values = np.full((n, n), -np.inf)
    choice: dict[tuple[int, int], Set] = {}
    for child in range(1, n):
        for parents, score in zip(families.sets[child], families.scores[child], strict=True):
            if child in top and 0 in parents:
                continue
            source = max(parents, default=0)
            if score > values[source, child]:
                values[source, child] = score
                choice[source, child] = parents
    found = arborescence(values)
    if found is None:
        return None
    tree, proof = found
    return (top, *(choice[p, i] for i, p in enumerate(tree) if i)), proof
