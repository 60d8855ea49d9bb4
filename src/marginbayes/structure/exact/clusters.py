"""Cluster inequalities (7): which of them fractional choices of parent sets violate, and linear programs with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from marginbayes.structure.exact.branching import ClusterProof
from marginbayes.structure.exact.families import Families

__all__ = ["LinearRelaxation", "RelaxedFamilies", "bound_of", "choice_matrix", "cluster_matrix", "violated_clusters"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Set = tuple[int, ...]

# A cluster that is violated by less than this is left alone.
VIOLATION = 1e-4
# Inequalities that are added at a time.
MOST_CUTS = 40


@dataclass(frozen=True)
class RelaxedFamilies:
    """Solution of a relaxation: the share of each parent set of each variable, a proved bound, and what proves it."""

    shares: list[Floats]
    bound: float
    proof: Any


def bound_of(raised: Sequence[Floats], constant: float, allowed: Sequence[Mask]) -> float:
    """No structure of allowed parent sets has a greater value."""
    return constant + math.fsum(float(own[ok].max(initial=-np.inf)) for own, ok in zip(raised, allowed, strict=True))


class LinearRelaxation:
    """The linear program over parent sets with cluster inequalities, for scores that are sums over families."""

    nothing = ClusterProof()

    def __init__(self, families: Families) -> None:
        self.families = families
        # To violate a cluster costs more than any two structures differ, so that no program is without solution.
        self.price = 1.0 + sum(float(own.max() - own.min()) for own in families.scores)

    def solve(self, allowed: Sequence[Mask], clusters: Sequence[Set]) -> RelaxedFamilies | None:
        """Solution over the parent sets that are allowed; None where a variable has none."""
        from scipy.optimize import linprog

        sets, scores = restricted(self.families, allowed)
        if not all(sets):
            return None
        width, cuts = sum(map(len, sets)), len(clusters)
        choose = sparse.hstack([choice_matrix(sets), sparse.csr_matrix((len(sets), cuts))])
        more = {}
        if cuts:
            more = {"A_ub": -sparse.hstack([cluster_matrix(sets, clusters), sparse.eye(cuts)]), "b_ub": -np.ones(cuts)}
        cost = np.concatenate([*(-own for own in scores), np.full(cuts, self.price)])
        found = linprog(cost, A_eq=choose.tocsr(), b_eq=np.ones(len(sets)), method="highs", **more)
        if found.x is None:
            raise RuntimeError(f"the linear program was not solved: {found.message}")
        multipliers = np.maximum(0.0, -found.ineqlin.marginals)
        proof = weighty(clusters, multipliers)
        return RelaxedFamilies(spread(found.x[:width], allowed), bound_of(*self.raised(proof), allowed), proof)

    def raised(self, proof: ClusterProof) -> tuple[list[Floats], float]:
        """Scores with what the clusters add, and what is taken off for it."""
        return proof.shifted(self.families), -proof.total

    def value(self, parents: Sequence[Set]) -> float:
        """Score of a structure."""
        return self.families.total(parents)


def weighty(clusters: Sequence[Set], multipliers: Floats) -> ClusterProof:
    """The proof of the clusters that have a multiplier."""
    some = [(c, float(m)) for c, m in zip(clusters, multipliers, strict=True) if m > 0]
    return ClusterProof(tuple(c for c, _ in some), tuple(m for _, m in some))


def choice_matrix(sets: Sequence[Sequence[Set]]) -> sparse.csr_matrix:
    """One line for each variable: 1 at its own parent sets."""
    owner = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    return sparse.csr_matrix((np.ones(len(owner)), (owner, np.arange(len(owner)))), shape=(len(sets), len(owner)))


def restricted(families: Families, allowed: Sequence[Mask]) -> tuple[list[list[Set]], list[Floats]]:
    """Parent sets and scores that are allowed."""
    sets = [
        [s for s, ok in zip(own, mask, strict=True) if ok] for own, mask in zip(families.sets, allowed, strict=True)
    ]
    return sets, [own[mask] for own, mask in zip(families.scores, allowed, strict=True)]


def spread(shares: Floats, allowed: Sequence[Mask]) -> list[Floats]:
    """Shares of the allowed parent sets, put back among all of them."""
    found, start = [], 0
    for mask in allowed:
        own = np.zeros(len(mask))
        own[mask] = shares[start : start + int(mask.sum())]
        start += int(mask.sum())
        found.append(own)
    return found


def cluster_matrix(sets: Sequence[Sequence[Set]], clusters: Sequence[Set]) -> sparse.csr_matrix:
    """One line for each cluster: 1 where a parent set of a member has no parent inside."""
    member = np.zeros((len(clusters), len(sets)), bool)
    for line, cluster in enumerate(clusters):
        member[line, list(cluster)] = True
    blocks = []
    for child, own in enumerate(sets):
        parent = np.zeros((len(sets), len(own)))
        for place, parents in enumerate(own):
            parent[list(parents), place] = 1.0
        blocks.append(member[:, [child]] & ~((member @ parent) > 0))
    return sparse.csr_matrix(np.concatenate(blocks, axis=1).astype(np.float64))


# -- separation


def violated_clusters(sets: Sequence[Sequence[Set]], shares: Sequence[Floats], *, thorough: bool = True) -> list[Set]:
    """Clusters whose inequality these shares violate: pairs, triples, cycles of heavy edges; the most violated first.

    Where there is none of these, the most violated of all clusters, if `thorough`; that takes an integer program. A
    whole solution with a cycle violates the cluster of that cycle, so none of those is overlooked.
    """
    chosen = [
        [(s, float(x)) for s, x in zip(own, part, strict=True) if x > 1e-9]
        for own, part in zip(sets, shares, strict=True)
    ]
    found = {c: _open_share(chosen, c) for c in (*_small(chosen), *_cycles(chosen))}
    violated = sorted((share, c) for c, share in found.items() if share < 1.0 - VIOLATION)
    if violated:
        return [c for _, c in violated[:MOST_CUTS]]
    worst = _most_violated(chosen) if thorough else None
    return [] if worst is None or _open_share(chosen, worst) >= 1.0 - VIOLATION else [worst]


def _open_share(chosen: Sequence[Sequence[tuple[Set, float]]], cluster: Set) -> float:
    """Left side of (7)."""
    members = frozenset(cluster)
    return sum(x for i in cluster for s, x in chosen[i] if members.isdisjoint(s))


def _edges(chosen: Sequence[Sequence[tuple[Set, float]]]) -> tuple[Floats, Floats]:
    """Share of each edge (parent, child), and of each pair of parents (parent, parent, child)."""
    n = len(chosen)
    pairs = np.zeros((n, n, n))
    for child, own in enumerate(chosen):
        for parents, share in own:
            pairs[np.ix_(list(parents), list(parents), [child])] += share
    return np.array(pairs[np.arange(n), np.arange(n)]), pairs


def _small(chosen: Sequence[Sequence[tuple[Set, float]]]) -> list[Set]:
    """The violated clusters of two, else those of three: the shares of parents inside sum to more than all but one."""
    edges, both = _edges(chosen)
    inside = edges + edges.T
    pairs = np.argwhere(np.triu(inside, 1) > 1.0 + VIOLATION)
    if len(pairs):
        return [(int(i), int(j)) for i, j in pairs]
    # Of i, j, k: each has a share of parents among the other two, counted once where it has both.
    each = edges[:, None, :] + edges[None, :, :] - both  # [j, k, i]
    inside = each + each.transpose(2, 0, 1) + each.transpose(1, 2, 0)
    triples = np.argwhere(inside > 2.0 + VIOLATION)
    return [(int(i), int(j), int(k)) for i, j, k in triples if i < j < k]


def _cycles(chosen: Sequence[Sequence[tuple[Set, float]]]) -> list[Set]:
    """The strongly connected groups of variables by edges of at least some share, for several shares."""
    from scipy.sparse.csgraph import connected_components

    edges, _ = _edges(chosen)
    found: list[Set] = []
    for least in (0.9, 0.7, 0.5, 0.3):
        _, label = connected_components(edges >= least, directed=True, connection="strong")
        groups = [np.flatnonzero(label == g) for g in np.unique(label)]
        found += [tuple(int(v) for v in group) for group in groups if len(group) > 1]
    return found


def _most_violated(chosen: Sequence[Sequence[tuple[Set, float]]]) -> Set | None:
    """The cluster of least left side in (7), by a small integer program (Bartlett & Cussens 2013).

    Binary for each variable: it is in the cluster. For each parent set of positive share, a number that can be one only
    if its variable and one of the parents are in the cluster. Maximise the shares of the latter less the former.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = len(chosen)
    columns = [(i, s, x) for i, own in enumerate(chosen) for s, x in own if s]
    if not columns:
        return None
    rows: list[int] = []
    places: list[int] = []
    values: list[float] = []
    for c, (child, parents, _) in enumerate(columns):
        for line, members in ((2 * c, (child,)), (2 * c + 1, parents)):
            rows += [line] * (1 + len(members))
            places += [n + c, *members]
            values += [1.0] + [-1.0] * len(members)
    matrix = sparse.csr_matrix((values, (rows, places)), shape=(2 * len(columns), n + len(columns)))
    gain = np.concatenate([np.ones(n), [-x for _, _, x in columns]])
    whole = np.concatenate([np.ones(n), np.zeros(len(columns))])
    some = LinearConstraint(np.concatenate([np.ones(n), np.zeros(len(columns))])[None, :], 2.0, np.inf)
    found = milp(
        gain, constraints=[LinearConstraint(matrix, -np.inf, 0.0), some], integrality=whole, bounds=Bounds(0, 1)
    )
    if found.x is None or found.fun > 1.0 - VIOLATION:
        return None
    return tuple(int(v) for v in np.flatnonzero(found.x[:n] > 0.5))
