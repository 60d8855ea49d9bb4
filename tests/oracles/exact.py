"""Slow answers to questions about exact structures: every structure is written down and scored from the definition."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema, Variable
from marginbayes.structure import Constraints

__all__ = ["acyclic_choices", "all_structures", "best_structure", "random_problem", "soft_margin"]

Parents = tuple[tuple[int, ...], ...]


def random_problem(
    seed: int, cards: Sequence[int], n: int, *, weights: bool = False, missing: float = 0.0
) -> tuple[Schema, Rows]:
    """Rows in which features depend on the class and on each other, and their schema."""
    rng = np.random.default_rng(seed)
    codes = np.zeros((len(cards), n), np.int64)
    for v, card in enumerate(cards):
        drift = codes[: max(v, 1)].sum(axis=0) if v % 2 else codes[0] + (codes[v - 1] if v > 1 else 0)
        codes[v] = np.where(rng.random(n) < 0.6, drift, rng.integers(0, card, n)) % card
    codes[0] = rng.permutation(codes[0]) if seed % 5 == 4 else codes[0]
    codes[0, : cards[0]] = np.arange(cards[0])
    gone = rng.random((len(cards) - 1, n)) < missing
    codes[1:] = np.where(gone, np.array(cards[1:])[:, None], codes[1:])
    schema = Schema(tuple(Variable(f"v{i}", tuple(range(c))) for i, c in enumerate(cards)))
    return schema, Rows(codes.astype(np.uint8), tuple(cards), rng.integers(1, 8, n) / 4 if weights else None)


def all_structures(n: int, k: int = 1, class_parents: int = 0) -> Iterator[Parents]:
    """Every acyclic choice of parents: for features none, the class, or the class and up to k features."""
    tops = [a for m in range(class_parents + 1) for a in combinations(range(1, n + 1), m)]
    own = [
        [(), *((0, *c) for m in range(k + 1) for c in combinations([j for j in range(1, n + 1) if j != i], m))]
        for i in range(1, n + 1)
    ]
    for parents in product(tops, *own):
        if _is_acyclic(parents):
            yield parents


def _is_acyclic(parents: Parents) -> bool:
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if not left & set(parents[v])}
        if not free:
            return False
        left -= free
    return True


def obeys(parents: Parents, names: Sequence[str], constraints: Constraints) -> bool:
    """Whether a structure has what the constraints require and nothing that they forbid."""
    edges = {(names[p], names[c]) for c, own in enumerate(parents) for p in own}
    top = names[0]
    for a, b in constraints.required:
        # A required edge between features also keeps both of them in.
        if (a, b) not in edges or (top not in (a, b) and not {(top, a), (top, b)} <= edges):
            return False
    if any((top, name) not in edges for name in constraints.keep) or edges & set(constraints.forbidden):
        return False
    dropped = {b for a, b in constraints.forbidden if a == top}
    if any(dropped & {a, b} for a, b in edges):
        return False
    return not any((a, b) in edges for early, late in combinations(constraints.tiers, 2) for a in late for b in early)


def soft_margin(rows: Rows, parents: Parents, margin: str, gamma: float, smoothing: float = 1.0) -> float:
    """Equation (9), or its binary counterpart, row by row with tables of counts in dictionaries."""
    return Scorer(rows, margin, gamma, smoothing).score(parents)


class Scorer:
    """Scores of many structures; what a family adds to every row is remembered."""

    def __init__(self, rows: Rows, margin: str, gamma: float, smoothing: float = 1.0) -> None:
        known = rows.codes[0] < rows.cardinalities[0]
        self.table = [tuple(int(c) for c in row) for row in rows.codes.T[known]]
        self.weights = [1.0] * len(self.table) if rows.weights is None else rows.weights[known].tolist()
        self.cards, self.binary, self.gamma, self.smoothing = rows.cardinalities, margin == "sbm", gamma, smoothing
        self.known: dict[tuple[int, tuple[int, ...]], Any] = {}

    def score(self, parents: Parents) -> float:
        """Soft margin of a structure."""
        total = sum(self._family(v, own) for v, own in enumerate(parents))
        return float(np.dot(self.weights, np.minimum(self.gamma, total.min(axis=1)))) if total.shape[1] else math.inf

    def _family(self, v: int, own: tuple[int, ...]) -> Any:
        if (v, own) not in self.known:
            self.known[v, own] = np.array([self._differences(row, v, own) for row in self.table])
        return self.known[v, own]

    def _differences(self, row: tuple[int, ...], v: int, own: tuple[int, ...]) -> list[float]:
        """Log-ratio of the row's class against each rival, by this family alone; one rival for the binary margin."""
        label = row[0]
        if row[v] == self.cards[v]:
            return [0.0] * (1 if self.binary else self.cards[0] - 1)
        if self.binary:
            side: Callable[[int], int] = lambda c: int(c == label)  # noqa: E731
            return [self._log(row, v, own, 1, side, 2) - self._log(row, v, own, 0, side, 2)]
        same: Callable[[int], int] = lambda c: c  # noqa: E731
        here = self._log(row, v, own, label, same, self.cards[0])
        rivals = [c for c in range(self.cards[0]) if c != label]
        return [here - self._log(row, v, own, c, same, self.cards[0]) for c in rivals]

    def _log(self, row: tuple[int, ...], v: int, own: tuple[int, ...], label: int, side: Any, classes: int) -> float:
        """Log of the smoothed share of the row's value, its class replaced, among rows that agree on the parents."""
        counts: dict[int, float] = defaultdict(float)
        seen = [p for p in own if p and row[p] < self.cards[p]]  # a missing parent is any value
        for other, weight in zip(self.table, self.weights, strict=True):
            fits = all(other[p] == row[p] for p in seen) and (0 not in own or side(other[0]) == label)
            if fits and (v == 0 or other[v] < self.cards[v]):
                counts[side(other[0]) if v == 0 else other[v]] += weight
        levels = classes if v == 0 else self.cards[v]
        value = label if v == 0 else row[v]
        return math.log((counts[value] + self.smoothing) / (sum(counts.values()) + self.smoothing * levels))


def best_structure(
    schema: Schema,
    rows: Rows,
    margin: str,
    gamma: float,
    k: int = 1,
    class_parents: int = 0,
    constraints: Constraints | None = None,
) -> float:
    """The greatest soft margin of all structures."""
    scorer = Scorer(rows, margin, gamma)
    return max(
        scorer.score(parents)
        for parents in all_structures(len(schema.names) - 1, k, class_parents)
        if constraints is None or obeys(parents, schema.names, constraints)
    )


def acyclic_choices(options: Any) -> Iterator[tuple[int, ...]]:
    """All acyclic choices of one option for each feature."""
    for choice in product(*(np.flatnonzero(own).tolist() for own in options)):
        if all(not _returns(choice, i) for i in range(len(choice))):
            yield choice


def _returns(choice: Sequence[int], i: int) -> bool:
    node, steps = choice[i] - 2, 0
    while node >= 0 and node != i and steps <= len(choice):
        node, steps = choice[node] - 2, steps + 1
    return node >= 0
