"""The parent sets that a variable may have, and those among them that can be in a best structure, with their scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.graph import Dag
from marginbayes.scores.decomposable import FamilyScore
from marginbayes.structure.constraints import Constraints

__all__ = ["Families", "ParentSpace", "complete_rows", "score_families"]

Floats = NDArray[np.float64]
Set = tuple[int, ...]

# Scores nearer than this, relative to their size, are equal but for rounding; the smaller parent set is then as good.
RESOLUTION = 1e-12
# More families than this are not scored: it would take hours.
MOST_FAMILIES = 5_000_000


@dataclass(frozen=True)
class ParentSpace:
    """Which parent sets are admitted; variables by index, the class is 0.

    Without `max_parents`, those of a classifier: a feature has no parent, or the class and at most `k` features; the
    class has at most `class_parents` features. With it, any set of at most so many variables.
    """

    n: int
    k: int
    class_parents: int
    max_parents: int | None
    required: tuple[frozenset[int], ...]
    forbidden: tuple[frozenset[int], ...]

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        constraints: Constraints | None,
        k: int = 1,
        class_parents: int = 0,
        max_parents: int | None = None,
    ) -> ParentSpace:
        """The space that obeys the constraints; in a classifier, a feature that is dropped has no edge at all."""
        known = Constraints.given(constraints)
        most_features = k if max_parents is None else max_parents
        rules, above, never = known.compile_below(names, most_features, drops=max_parents is None)
        n, index = len(names), {name: i for i, name in enumerate(names)}
        required = [set(own) for own in rules.required]
        forbidden = [{p for p in range(n) if p != i and not rules.allowed[p, i]} for i in range(n)]
        required[0], forbidden[0] = above, never
        kept = {index[v] for v in known.keep} | {index[b] for a, b in known.required if a == names[0]}
        if max_parents is None:
            kept |= rules.keep
            forbidden = [own | (rules.dropped - {i}) for i, own in enumerate(forbidden)]
            forbidden[0] |= kept - required[0]  # a child of the class is no parent of it
        for i in kept - {0}:
            required[i].add(0)
        most = [k + 1 if max_parents is None else max_parents] * n
        most[0] = class_parents if max_parents is None else max_parents
        _check(names, required, forbidden, most)
        return cls(n, k, class_parents, max_parents, tuple(map(frozenset, required)), tuple(map(frozenset, forbidden)))

    def admits(self, child: int, parents: Set) -> bool:
        """Whether a variable may have exactly these parents."""
        if not self.required[child].issubset(parents) or not self.forbidden[child].isdisjoint(parents):
            return False
        if self.max_parents is not None:
            return len(parents) <= self.max_parents
        if child == 0:
            return len(parents) <= self.class_parents
        return not parents or (0 in parents and len(parents) <= self.k + 1)

    @property
    def largest(self) -> int:
        """Size of the largest parent set."""
        most = max(self.k + 1, self.class_parents) if self.max_parents is None else self.max_parents
        return min(most, self.n - 1)

    @property
    def size(self) -> int:
        """About how many parent sets are admitted."""
        if self.max_parents is not None:
            return self.n * sum(math.comb(self.n - 1, s) for s in range(self.largest + 1))
        features = self.n - 1
        own = 1 + sum(math.comb(features - 1, s) for s in range(self.k + 1))
        return features * own + sum(math.comb(features, s) for s in range(self.class_parents + 1))

    def sets(self, size: int) -> Iterator[Set]:
        """The sets of this size that some variable may have, ascending."""
        everything = self.max_parents is not None or size <= self.class_parents
        if everything or size == 0:
            return combinations(range(self.n), size)
        return ((0, *rest) for rest in combinations(range(1, self.n), size - 1))

    def to_evidence(self) -> dict[str, Any]:
        """Numbers and lists that say the same."""
        return {
            "k": self.k,
            "class_parents": self.class_parents,
            "max_parents": self.max_parents,
            "required": [[p, child] for child, own in enumerate(self.required) for p in sorted(own)],
            "forbidden": [[p, child] for child, own in enumerate(self.forbidden) for p in sorted(own)],
        }


def _check(names: Sequence[str], required: Sequence[set[int]], forbidden: Sequence[set[int]], most: list[int]) -> None:
    Dag(tuple(names), tuple(tuple(sorted(own)) for own in required))  # names the cycle, if there is one
    for i, own in enumerate(required):
        for p in own & forbidden[i]:
            raise ValueError(
                f"the edge {names[p]!r} -> {names[i]!r} is required, but it is forbidden, or one of its ends takes no "
                "part, its edge from the class being forbidden"
            )
        if len(own) > most[i]:
            listed = ", ".join(repr(names[p]) for p in sorted(own))
            raise ValueError(f"{listed} must be parents of {names[i]!r}, which may have at most {most[i]}")


@dataclass(frozen=True)
class Families:
    """For each variable its parent sets, the best first, and their scores."""

    sets: tuple[tuple[Set, ...], ...]
    scores: tuple[Floats, ...]

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.sets)

    @property
    def size(self) -> int:
        """Number of parent sets in all."""
        return sum(map(len, self.sets))

    def of(self, child: int, parents: Set) -> float:
        """Score of one family."""
        return float(self.scores[child][self._places[child][parents]])

    @cached_property
    def _places(self) -> list[dict[Set, int]]:
        return [{s: i for i, s in enumerate(own)} for own in self.sets]

    def total(self, parents: Sequence[Set]) -> float:
        """Score of a structure."""
        return math.fsum(self.of(child, own) for child, own in enumerate(parents))


def complete_rows(rows: Rows) -> Rows:
    """The distinct rows that have a weight and no missing cell, with their weights.

    Scores of families are only comparable over the same rows.
    """
    whole = np.asarray(~rows.is_missing().any(axis=0))
    if rows.weights is not None:
        whole &= rows.weights > 0
    if not whole.any():
        raise ValueError("no row is without a missing cell, so families cannot be compared; fill in cells first")
    return rows.take(whole).merged()[0]


def score_families(rows: Rows, space: ParentSpace, score: FamilyScore, *, prune: bool = True) -> Families:
    """The parent sets that can be in a best structure, for complete rows.

    A set that scores no better than an admitted subset of its own is never needed: the subset can take its place in any
    graph. Sets whose score cannot be better, whatever the counts, are not even counted.
    """
    if space.size > MOST_FAMILIES:
        raise ValueError(
            f"there are {space.size:,} parent sets, and at most {MOST_FAMILIES:,} can be scored; allow fewer parents"
        )
    counter = _Counter(rows)
    found: list[dict[Set, float]] = [{} for _ in range(space.n)]
    reach: list[dict[Set, float]] = [{} for _ in range(space.n)]  # best of a set and its subsets
    for parents in chain.from_iterable(space.sets(size) for size in range(space.largest + 1)):
        members, configurations, index = set(parents), math.prod(rows.cardinalities[p] for p in parents), None
        subsets = list(combinations(parents, len(parents) - 1)) if parents else []
        for child in range(space.n):
            if child in members or not space.admits(child, parents):
                continue
            below = max((reach[child].get(s, -math.inf) for s in subsets), default=-math.inf)
            reach[child][parents] = below
            if index is None:
                index = counter.index(parents)
            if prune and score.most(rows.cardinalities[child], configurations, index[1]) <= below:
                continue
            value = score.value(counter.table(child, *index), configurations)
            if not prune or value > below + RESOLUTION * max(1.0, abs(below)) or below == -math.inf:
                found[child][parents] = value
                reach[child][parents] = max(below, value)
    return _ranked(found)


def _ranked(found: Sequence[dict[Set, float]]) -> Families:
    orders = [sorted(own, key=lambda s, own=own: (-own[s], len(s), s)) for own in found]  # type: ignore[misc]
    scores = tuple(np.array([own[s] for s in order]) for own, order in zip(found, orders, strict=True))
    return Families(tuple(map(tuple, orders)), scores)


class _Counter:
    """Tables of families over the configurations of the parents that occur."""

    def __init__(self, rows: Rows) -> None:
        self.codes, self.cards = rows.codes.astype(np.int64), rows.cardinalities
        self.weights = np.ones(len(rows)) if rows.weights is None else rows.weights

    def index(self, parents: Set) -> tuple[NDArray[np.int64], int]:
        """For each row the number of its configuration of these variables, and how many occur."""
        index, size = np.zeros(self.codes.shape[1], np.int64), 1
        for p in parents:
            index = index * self.cards[p] + self.codes[p]
            size *= self.cards[p]
            if p == parents[-1] or size > 4 * len(index) + 64:
                index, size = _dense(index, size)
        return index, size

    def table(self, child: int, index: NDArray[np.int64], size: int) -> Floats:
        """Counts of the levels of a variable within each configuration."""
        levels = self.cards[child]
        flat = np.bincount(index * levels + self.codes[child], self.weights, size * levels)
        return np.asarray(flat, np.float64).reshape(size, levels)


def _dense(index: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], int]:
    """The same numbering without the numbers that do not occur."""
    if size > 4 * len(index) + 64:
        distinct, dense = np.unique(index, return_inverse=True)
        return dense.reshape(-1).astype(np.int64), len(distinct)
    occurs = np.bincount(index, minlength=size) > 0
    return (np.cumsum(occurs) - 1)[index], int(occurs.sum())
