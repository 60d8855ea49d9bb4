"""Best graphs by the book: every order of the variables, or every graph; scores from counts in dictionaries.

A graph is acyclic exactly when its variables can be ordered with parents before children, so the best graph of all is
the best over all orders of: every variable takes its best admitted parents among those before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations, product

from marginbayes.data import Rows

Set = tuple[int, ...]
Admits = Callable[[int, Set], bool]


def complete(rows: Rows) -> list[tuple[tuple[int, ...], float]]:
    """Rows without a missing cell, and their weights."""
    weights = [1.0] * len(rows) if rows.weights is None else rows.weights.tolist()
    lines = [tuple(int(x) for x in line) for line in rows.codes.T]
    return [
        (line, w)
        for line, w in zip(lines, weights, strict=True)
        if w > 0 and all(x < c for x, c in zip(line, rows.cardinalities, strict=True))
    ]


def family_score(rows: Rows, child: int, parents: Set, score: str, ess: float = 1.0) -> float:
    """Score of one family; greater is better."""
    cells: Counter[tuple[Set, int]] = Counter()
    groups: Counter[Set] = Counter()
    data = complete(rows)
    for line, w in data:
        given = tuple(line[p] for p in parents)
        cells[given, line[child]] += w  # type: ignore[assignment]
        groups[given] += w  # type: ignore[assignment]
    levels = rows.cardinalities[child]
    configurations = math.prod(rows.cardinalities[p] for p in parents)
    if score == "bdeu":
        value = 0.0
        for given, total in groups.items():
            value += math.lgamma(ess / configurations) - math.lgamma(ess / configurations + total)
            for x in range(levels):
                each = ess / configurations / levels
                value += math.lgamma(each + cells[given, x]) - math.lgamma(each)
        return value
    value = sum(n * math.log(n / groups[given]) for (given, _), n in cells.items())
    each = {"ll": 0.0, "aic": 1.0}.get(score, 0.5 * math.log(sum(w for _, w in data)))
    return value - each * configurations * (levels - 1)


def subsets(variables: Sequence[int]) -> Iterator[Set]:
    """All subsets."""
    for size in range(len(variables) + 1):
        yield from combinations(variables, size)


def classifier_sets(k: int, class_parents: int) -> Admits:
    """The parent sets of a classifier."""

    def admits(child: int, parents: Set) -> bool:
        if child == 0:
            return len(parents) <= class_parents
        return not parents or (0 in parents and len(parents) <= k + 1)

    return admits


def best_over_orders(rows: Rows, admits: Admits, score: str, ess: float = 1.0) -> float:
    """Greatest score of an acyclic graph of admitted parent sets; minus infinity where there is none."""
    n = len(rows.cardinalities)
    scores = {
        (i, s): family_score(rows, i, s, score, ess)
        for i in range(n)
        for s in subsets([v for v in range(n) if v != i])
        if admits(i, s)
    }
    best = -math.inf
    for order in permutations(range(n)):
        total = 0.0
        for place, i in enumerate(order):
            earlier = set(order[:place])
            total += max((v for (j, s), v in scores.items() if j == i and earlier.issuperset(s)), default=-math.inf)
        best = max(best, total)
    return best


def is_acyclic(parents: Sequence[Set]) -> bool:
    """Whether variables can be taken away one by one, each without parents left."""
    left = dict(enumerate(map(set, parents)))
    while left:
        free = [i for i, own in left.items() if not own & left.keys()]
        if not free:
            return False
        for i in free:
            del left[i]
    return True


def all_graphs(sets: Sequence[Sequence[Set]]) -> Iterator[tuple[Set, ...]]:
    """Every acyclic choice of one parent set for each variable."""
    return (choice for choice in product(*sets) if is_acyclic(choice))
