"""Discriminative structure learning by the book: every structure is scored from scratch, by loops over the rows.

Pernkopf & Bilmes (2010), sections 4.4 and 5 and Algorithm 1; Peharz & Pernkopf (2012), equations 8-9 and 20-23. Numbers
nearer to each other than `CLOSE` count as equal, so that ties are seen to be ties. A missing cell is None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

from marginbayes.data import Rows, Schema, Variable
from marginbayes.datasets.synthetic import informative_edge
from marginbayes.graph import Dag
from marginbayes.structure.constraints import Rules

Row = tuple[int | None, ...]
Parents = tuple[int, ...] | None
Structure = dict[int, Parents]  # feature: its feature parents; None where it is dropped
Legal = Callable[[Structure], bool]  # bool itself forbids nothing
Way = list[tuple[Structure, float]]  # every structure a learner went through, with its score

CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of values, the class first, with their weights."""

    rows: tuple[Row, ...]
    weights: tuple[float, ...]
    cards: tuple[int, ...]


def sample_of(rows: Rows) -> Sample:
    """The rows whose class is known and whose weight is not zero."""
    weights = [1.0] * len(rows) if rows.weights is None else [float(w) for w in rows.weights]
    kept = [
        (tuple(None if x == card else int(x) for x, card in zip(row, rows.cardinalities, strict=True)), w)
        for row, w in zip(rows.codes.T, weights, strict=True)
        if row[0] != rows.cardinalities[0] and w > 0
    ]
    return Sample(tuple(r for r, _ in kept), tuple(w for _, w in kept), tuple(rows.cardinalities))


# -- data to learn from


def random_rows(seed: int, n: int = 40, features: int = 5, missing: float = 0.0) -> tuple[Schema, Rows]:
    """Variables of two or three levels, many of which depend on two earlier ones."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, features + 1)
    codes = rng.integers(0, cards[:, None], (features + 1, n))
    for i in range(1, features + 1):
        sources = rng.integers(0, i, 2)
        codes[i] = np.where(rng.random(n) < 0.6, codes[sources].sum(axis=0) % cards[i], codes[i])
    gone = rng.random(codes.shape) < missing
    gone[0] = False
    return as_rows(np.where(gone, cards[:, None], codes), cards)


def bundled(name: str, columns: Sequence[int], n: int = 120) -> tuple[Schema, Rows]:
    """Rows of a data set that comes with scikit-learn, each column cut at its terciles."""
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(y))[:n]
    cuts = [np.searchsorted(np.quantile(X[:, j], [1 / 3, 2 / 3]), X[some, j]) for j in columns]
    return as_rows(np.array([y[some], *cuts]), [int(y.max()) + 1, *((3,) * len(columns))])


@cache
def informative(seed: int) -> tuple[Schema, Rows]:
    """A thousand rows of the example of section 3, in which v1 - v3 is the only dependence that tells the classes."""
    data = informative_edge(1000, 1, random_state=seed)
    labels = np.asarray(data.y) == np.unique(data.y)[1]
    return as_rows(np.array([labels, *(data.X[c] for c in ("X1", "X2", "X3"))]).astype(int)[:, :1000], (2, 2, 2, 2))


def as_rows(codes: NDArray[Any], cards: Sequence[int] | NDArray[Any]) -> tuple[Schema, Rows]:
    """Rows over v0 (the class), v1, v2 and so on."""
    variables = tuple(Variable(f"v{i}", tuple(range(c))) for i, c in enumerate(cards))
    return Schema(variables), Rows(codes.astype(np.uint8), tuple(int(c) for c in cards))


# -- scores


def chances(counts: Sequence[float], kind: str, amount: float) -> list[float]:
    """Smoothed probabilities of the levels of one variable."""
    total = sum(counts)
    shares = [n / total if n > 0 else amount for n in counts] if kind == "floor" else [n + amount for n in counts]
    return [s / sum(shares) for s in shares] if sum(shares) > 0 else [1 / len(counts) for _ in counts]


class Oracle:
    """Scores structures on a sample; remembers what it was asked before, but never builds one answer on another."""

    def __init__(
        self, rows: Rows, score: str = "cr", gamma: float | None = None, smoothing: float = 1.0, kind: str = "laplace"
    ) -> None:
        self.sample, self.name, self.smoothing, self.kind = sample_of(rows), score, smoothing, kind
        self.gamma = math.log(9.0) if gamma is None else gamma
        self.total = sum(self.sample.weights)
        self.features = tuple(range(1, len(self.sample.cards)))
        self._one_against_rest = [_against_rest(self.sample, c) for c in range(self.sample.cards[0])]
        self.score = lambda structure: self._remembered(tuple(sorted(structure.items())))
        self._remembered = cache(self._score)
        self._terms = cache(lambda *family: [self._log_chances(*family, row) for row in family[0].rows])
        self._table = cache(self._log_table)

    def _score(self, structure: tuple[tuple[int, Parents], ...]) -> float:
        """The score of a structure, with smoothed maximum-likelihood tables."""
        each = {"cr": _right, "cl": _likelihood, "sm": self._margin, "sbm": self._margin}[self.name]
        terms = []
        for m, (row, weight) in enumerate(zip(self.sample.rows, self.sample.weights, strict=True)):
            sample, label = (self._one_against_rest[row[0]], 0) if self.name == "sbm" else (self.sample, row[0])
            families = [(0, ()), *((child, parents) for child, parents in structure if parents is not None)]
            factors = [self._terms(sample, child, parents)[m] for child, parents in families]
            terms.append(weight * each([sum(logs) for logs in zip(*factors, strict=True)], label))
        return math.fsum(terms) / (self.total if self.name == "cr" else 1.0)

    def _log_chances(self, sample: Sample, child: int, parents: tuple[int, ...], row: Row) -> list[float]:
        """For every class the log of P(child | those parents that are known, class) of a row; 0 for a missing child."""
        if child == 0:
            return self._table(sample, 0, ())
        if row[child] is None:
            return [0.0] * sample.cards[0]
        known = [(p, row[p]) for p in parents if row[p] is not None]
        return [self._table(sample, child, ((0, c), *known))[row[child]] for c in range(sample.cards[0])]

    def _log_table(self, sample: Sample, child: int, given: tuple[tuple[int, int], ...]) -> list[float]:
        """log P(level | given values) for every level of the child."""
        counts = [0.0] * sample.cards[child]
        for row, weight in zip(sample.rows, sample.weights, strict=True):
            if row[child] is not None and all(row[v] == x for v, x in given):
                counts[row[child]] += weight
        cells = sample.cards[child] * math.prod(sample.cards[v] for v, _ in given)
        found = chances(counts, self.kind, self.smoothing / (cells if self.kind == "ess" else 1))
        return [math.log(chance) if chance > 0 else -math.inf for chance in found]

    def predict(self, structure: Structure, row: Row) -> int:
        """The class of greatest probability for a row that may be new, the first of those that are equal."""
        factors = [self._log_chances(self.sample, i, p, row) for i, p in [(0, ()), *structure.items()] if p is not None]
        return _first([sum(logs) for logs in zip(*factors, strict=True)])

    def _margin(self, joint: list[float], label: int) -> float:
        return min(joint[label] - max(v for c, v in enumerate(joint) if c != label), self.gamma)


def _first(joint: list[float]) -> int:
    return next(c for c, v in enumerate(joint) if v >= max(joint) - CLOSE)


def _right(joint: list[float], label: int) -> float:
    return float(_first(joint) == label)


def _likelihood(joint: list[float], label: int) -> float:
    top = max(joint)
    return joint[label] - top - math.log(math.fsum(math.exp(v - top) for v in joint))


def _against_rest(sample: Sample, c: int) -> Sample:
    """The sample with class c as class 0 and all others as class 1 (text below equation 20)."""
    rows = tuple((int(row[0] != c), *row[1:]) for row in sample.rows)
    return Sample(rows, sample.weights, (2, *sample.cards[1:]))


def better(new: float, old: float) -> bool:
    """Whether a score exceeds another by more than rounding."""
    return new > old + CLOSE * max(1.0, abs(old))


# -- graphs


def naive(oracle: Oracle) -> Structure:
    """No feature has a feature parent."""
    return dict.fromkeys(oracle.features, ())


def with_edges(structure: Structure, edges: Iterable[tuple[int, int]]) -> Structure:
    """The structure with more (parent, child) edges."""
    new = dict(structure)
    for parent, child in edges:
        new[child] = (*(new[child] or ()), parent)
    return new


def is_sound(structure: Structure, k: int) -> bool:
    """Whether there is no cycle, no dropped or double parent, and no feature has more than k."""
    left = {i: set(p) for i, p in structure.items() if p is not None}
    if any(len(p) > k or len(p) < len(structure[i] or ()) or not p <= left.keys() for i, p in left.items()):
        return False
    while left:
        roots = [i for i, p in left.items() if not p & left.keys()]
        if not roots:
            return False
        for i in roots:
            del left[i]
    return True


def width(structure: Structure) -> int:
    """Treewidth of the moralised graph of the features."""
    families = [(i, *p) for i, p in structure.items() if p is not None]
    return treewidth(frozenset(frozenset(pair) for family in families for pair in combinations(family, 2)))


@cache
def treewidth(edges: frozenset[frozenset[int]]) -> int:
    """The smallest, over all elimination orders, of the greatest number of neighbours at elimination."""
    return min(_width_along(order, edges) for order in permutations({v for e in edges for v in e}))


def _width_along(order: Sequence[int], edges: Iterable[frozenset[int]]) -> int:
    neighbours: dict[int, set[int]] = {v: {u for e in edges if v in e for u in e if u != v} for v in order}
    width = 0
    for v in order:
        others = neighbours.pop(v)
        width = max(width, len(others))
        for u in others:
            neighbours[u] = (neighbours[u] | others) - {u, v}
    return width


def dag_of(names: Sequence[str], structure: Structure) -> Dag:
    """The graph with the class on top of every feature that is not dropped."""
    return Dag(tuple(names), ((), *(() if p is None else (0, *p) for _, p in sorted(structure.items()))))


# -- learners


def greedy(oracle: Oracle, k: int, legal: Legal = bool, start: Structure | None = None) -> Way:
    """Section 4.4.1: add the best edge while it improves; ties go to the first child, then to the first parent."""
    way = _begin(oracle, start)
    while True:
        edges = [(parent, child) for child in oracle.features for parent in oracle.features]
        best = _best(oracle, [new for edge in edges for new in _added(way[-1][0], [edge], k, legal)])
        if best is None or not better(best[1], way[-1][1]):
            return way
        way.append(best)


def superparent(oracle: Oracle, k: int, legal: Legal = bool, start: Structure | None = None) -> Way:
    """Section 4.4.2: the best parent of all that may have one more, then its best children, at most k of them."""
    way = _begin(oracle, start)
    while True:
        present, chosen = way[-1][0], None
        for parent in oracle.features:
            edges = [(parent, i) for i in oracle.features if _added(present, [(parent, i)], k, legal)]
            value = oracle.score(with_edges(present, edges))
            if edges and (chosen is None or better(value, chosen[1])):
                chosen = edges, value
        sets = [some for size in range(1, k + 1) for some in combinations(chosen[0] if chosen else [], size)]
        best = _best(oracle, [new for some in sets for new in _added(present, some, k, legal)])
        if best is None or not better(best[1], way[-1][1]):
            return way
        way.append(best)


def along(oracle: Oracle, order: Sequence[int], k: int, legal: Legal = bool, start: Structure | None = None) -> Way:
    """Section 5.2: the best at most k parents among the earlier features, one feature after the other."""
    way = _begin(oracle, start)
    for place, child in enumerate(order):
        best = _best_parents(oracle, way[-1][0], child, order[:place], k, legal)
        if best is not None and better(best[1], way[-1][1]):
            way.append(best)
    return way


def algorithm_1(
    oracle: Oracle, rule: Rule, k: int, legal: Legal = bool, start: Structure | None = None, epsilon: float = 0.0
) -> Way:
    """Algorithm 1 as printed: the best pair is joined, then CR_old = 0; the rule chooses the features behind it."""
    way = _begin(oracle, start)
    pair = best_pair(oracle, epsilon, lambda a, b: bool(_added(way[0][0], [(a, b)], k, legal)))
    if pair is None:
        return along(oracle, order_by(oracle, rule), k, legal, start)
    first = with_edges(way[0][0], [pair])
    way.append((first, oracle.score(first)))
    order, to_beat = order_by(oracle, rule, pair), None
    for place in range(2, len(order)):
        best = _best_parents(oracle, way[-1][0], order[place], order[:place], k, legal)
        if best is not None and (to_beat is None or better(best[1], to_beat)):
            way.append(best)
            to_beat = best[1]
    return way


def _best_parents(
    oracle: Oracle, present: Structure, child: int, earlier: Sequence[int], k: int, legal: Legal
) -> tuple[Structure, float] | None:
    sets = [some for size in range(1, k + 1) for some in combinations(earlier, size)]
    return _best(oracle, [new for some in sets for new in _added(present, [(p, child) for p in some], k, legal)])


def _best(oracle: Oracle, structures: Iterable[Structure]) -> tuple[Structure, float] | None:
    """The first of those with the greatest score."""
    best: tuple[Structure, float] | None = None
    for structure in structures:
        if best is None or better(oracle.score(structure), best[1]):
            best = structure, oracle.score(structure)
    return best


def _begin(oracle: Oracle, start: Structure | None) -> Way:
    return [(start or naive(oracle), oracle.score(start or naive(oracle)))]


def _added(present: Structure, edges: Sequence[tuple[int, int]], k: int, legal: Legal) -> list[Structure]:
    """The structure with more edges, if it is allowed, as a list of one or none."""
    if any(present[a] is None or present[b] is None for a, b in edges):
        return []
    new = with_edges(present, edges)
    return [new] if is_sound(new, k) and legal(new) else []


# -- orders

# The rule measures a feature given those already chosen; the greatest comes next.
Rule = Callable[[int, Sequence[int]], float]


def entropy(sample: Sample, variables: Sequence[int], epsilon: float = 0.0) -> float:
    """H of these variables together, with the correction of section 5.1 for patterns that do not occur."""
    total, counts = sum(sample.weights), Counter[tuple[int | None, ...]]()
    for row, weight in zip(sample.rows, sample.weights, strict=True):
        counts[tuple(row[v] for v in variables)] += weight  # type: ignore[assignment]
    value = -sum(n / total * math.log(n / total) for n in counts.values())
    if epsilon:
        value -= (math.prod(sample.cards[v] for v in variables) - len(counts)) * epsilon * math.log(epsilon)
    return value


def information(sample: Sample, some: Sequence[int], given: Sequence[int] = (), epsilon: float = 0.0) -> float:
    """I(class; some | given) as a sum of entropies."""
    return (
        entropy(sample, [*some, *given], epsilon)
        - entropy(sample, [0, *some, *given], epsilon)
        + entropy(sample, [0, *given], epsilon)
        - (entropy(sample, given, epsilon) if given else 0.0)
    )


def rules(oracle: Oracle, epsilon: float = 0.0) -> dict[str, Rule]:
    """OMI, OMISP, OCR and the least informative first."""
    sample = oracle.sample

    def all_earlier(i: int, chosen: Sequence[int]) -> float:
        return information(sample, [i], chosen, epsilon)

    def best_single(i: int, chosen: Sequence[int]) -> float:
        return max(information(sample, [i], given, epsilon) for given in [[j] for j in chosen] or [[]])

    def saturated(i: int, chosen: Sequence[int]) -> float:
        votes = Counter[tuple[object, ...]]()
        for row, weight in zip(sample.rows, sample.weights, strict=True):
            votes[(tuple(row[v] for v in [*chosen, i]), row[0])] += weight  # type: ignore[assignment]
        best: dict[object, float] = {}
        for (pattern, _), weight in votes.items():
            best[pattern] = max(weight, best.get(pattern, 0.0))
        return sum(best.values()) / oracle.total

    def least(i: int, chosen: Sequence[int]) -> float:
        return -all_earlier(i, chosen)

    return {"mi": all_earlier, "mi_sp": best_single, "cr": saturated, "mi_min": least}


def order_by(oracle: Oracle, rule: Rule, first: Sequence[int] = ()) -> list[int]:
    """All features, the given ones in front; ties by OMISP, by information about the class alone, by index.

    Where the least informative feature comes first, it does so in ties too.
    """
    chosen = list(first)
    sign = -1 if rule.__name__ == "least" else 1
    single = rules(oracle)["mi_sp"]
    measures = [
        rule,
        lambda i, chosen: sign * single(i, chosen),
        lambda i, _: sign * information(oracle.sample, [i]),
    ]
    while len(chosen) < len(oracle.features):
        rest = [i for i in oracle.features if i not in chosen]
        for measure in measures:
            values = {i: measure(i, chosen) for i in rest}
            rest = [i for i in rest if not better(max(values.values()), values[i])]
        chosen.append(rest[0])
    return chosen


def best_pair(oracle: Oracle, epsilon: float, may_join: Callable[[int, int], bool]) -> tuple[int, int] | None:
    """The two features that are most informative together, the more informative one in front where that is allowed."""
    alone = {i: information(oracle.sample, [i], (), epsilon) for i in oracle.features}
    best: tuple[tuple[int, int], float] | None = None
    for a, b in combinations(oracle.features, 2):
        ways = [(a, b), (b, a)] if not better(alone[b], alone[a]) else [(b, a), (a, b)]
        allowed = [way for way in ways if may_join(*way)]
        value = information(oracle.sample, [a, b], (), epsilon)
        if allowed and (best is None or better(value, best[1])):
            best = allowed[0], value
    return None if best is None else best[0]


def violates(rules: Rules, parents: Sequence[Iterable[int] | None]) -> bool:
    """Whether a structure (feature parents for each variable, None: dropped) breaks a rule."""
    for child, own in enumerate(parents):
        if own is None:
            if child in rules.keep:
                return True
            continue
        chosen = set(own)
        if not set(rules.required[child]) <= chosen or len(chosen) > rules.k:
            return True
        if child in rules.dropped or any(not rules.allowed[p, child] for p in chosen):
            return True
    return False
