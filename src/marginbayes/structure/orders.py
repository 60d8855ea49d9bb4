"""Orders of the features, the first step of the order-based heuristics (Pernkopf & Bilmes 2010, section 5.1).

Mutual informations over many features come from the patterns of values that occur in the rows. Once every row has a
pattern of its own they are all zero, so ties matter: they go to the information given the best single earlier feature
(OMISP), then to the information about the class alone (the least of both for "mi_min"), then to the smaller index. A
missing cell is a value of its own here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbayes.structure.engine import Engine

__all__ = ["ORDERS", "best_pair", "feature_order", "pair_information"]

Floats = NDArray[np.float64]
Features = NDArray[np.int64]  # their indices, or those of rows
Key = Callable[[Features], Floats]

ORDERS = ("mi", "mi_sp", "cr", "random", "mi_min")
# Differences of entropies below this are rounding.
RESOLUTION = 1e-9
# Patterns that could occur are counted up to here, so that their number stays finite.
MOST_CELLS = 1e250


def feature_order(
    engine: Engine, order: str, epsilon: float = 0.0, seed: int | None = None, first: Sequence[int] = ()
) -> list[int]:
    """Indices of the features, first to last; those in `first` are in front.

    Parameters
    ----------
    order : {"mi", "mi_sp", "cr", "random", "mi_min"}
        OMI: most informative about the class given all earlier ones (eq. 2). OMISP: given the best single earlier one.
        OCR: best classification rate of the saturated model of it and all earlier ones. RO: at random. Least
        informative given all earlier ones (section 6.3).
    epsilon : float
        The paper's correction of an entropy for patterns that do not occur: each counts -epsilon log(epsilon). Their
        number soon exceeds all else, and the order becomes "fewest levels first".
    """
    if order == "random":
        drawn = [engine.active[int(i)] for i in np.random.default_rng(seed).permutation(len(engine.active))]
        return [*first, *(i for i in drawn if i not in first)]
    walk = _Walk(engine, epsilon)
    rule = {"mi": walk.conditional, "mi_min": walk.conditional, "mi_sp": walk.single, "cr": walk.rate}[order]
    sign = -1.0 if order == "mi_min" else 1.0
    for i in first:
        walk.append(i)
    while len(walk.chosen) < len(engine.active):
        walk.append(_greatest(walk.rest, (rule, walk.plain_single, walk.alone), sign))
    return walk.chosen


def _greatest(rest: Features, keys: Sequence[Key], sign: float) -> int:
    """The feature of the greatest first key; ties go to the next key, then to the smaller index."""
    for key in keys:
        if len(rest) > 1:
            values = np.rint(sign * key(rest) / RESOLUTION)
            rest = rest[values == values.max()]
    return int(rest[0])


def best_pair(engine: Engine, epsilon: float, may_join: Callable[[int, int], bool]) -> tuple[int, int] | None:
    """(parent, child): the two features that tell most about the class together, of those that may be joined.

    The one that tells more alone is the parent, if it may be; ties go to the smaller index.
    """
    walk = _Walk(engine, epsilon)
    alone, together = walk.alone_corrected, walk.pairs
    found, highest = None, -np.inf
    for a, b in combinations(engine.active, 2):
        ways = [(a, b), (b, a)] if alone[b] <= alone[a] + RESOLUTION else [(b, a), (a, b)]
        allowed = [way for way in ways if may_join(*way)]
        value = alone[a] + together[b, a]
        if allowed and value > highest + RESOLUTION:
            found, highest = allowed[0], value
    return found


class _Walk:
    """The features chosen so far, as the runs of rows that have equal values of them."""

    def __init__(self, engine: Engine, epsilon: float) -> None:
        self.engine, self.epsilon = engine, epsilon
        # The correction looks at all patterns, the rules themselves only at those that leave the class open.
        self.runs = _Runs.start(engine, mixed=not epsilon)
        self.chosen: list[int] = []
        self.rest: Features = np.array(engine.active, np.int64)
        every = np.array(engine.features, np.int64)
        self._alone = np.append(0.0, self.runs.information(engine, every))
        self.alone_corrected = np.append(0.0, self.conditional(every))
        self._plain_best, self._corrected_best = _Best(self._alone), _Best(self.alone_corrected)

    def append(self, i: int) -> None:
        """Take one more feature into the patterns."""
        self.runs = self.runs.split(self.engine, i)
        self.chosen.append(i)
        self.rest = self.rest[self.rest != i]

    def conditional(self, features: Features) -> Floats:
        """I(class; feature | all chosen ones), in nats."""
        return self.runs.information(self.engine, features, self.epsilon)

    def single(self, features: Features) -> Floats:
        """Greatest I(class; feature | one chosen feature)."""
        return self._corrected_best.over(self.pairs, self.chosen)[features]

    def rate(self, features: Features) -> Floats:
        """Classification rate on the rows of the saturated model of the chosen features and this one."""
        return self.runs.rates(self.engine, features)

    def plain_single(self, features: Features) -> Floats:
        """OMISP's measure without any correction, for ties."""
        return self._plain_best.over(self._plain_pairs, self.chosen)[features]

    def alone(self, features: Features) -> Floats:
        """Information about the class alone."""
        return self._alone[features]

    @cached_property
    def _plain_pairs(self) -> Floats:
        return pair_information(self.engine)

    @cached_property
    def pairs(self) -> Floats:
        """[i, j]: I(class; i | j), with the paper's correction."""
        e = self.engine
        if not self.epsilon:
            return self._plain_pairs
        found, whole = np.zeros_like(self._plain_pairs), _Runs.start(e, mixed=False)
        for j in e.features:
            others = np.array([i for i in e.features if i != j], np.int64)
            found[others, j] = whole.split(e, j).information(e, others, self.epsilon)
        return found


class _Best:
    """The greatest of some columns of a matrix, in each row, while columns are added one by one."""

    def __init__(self, without_any: Floats) -> None:
        self._values, self._seen = without_any, 0

    def over(self, matrix: Floats, columns: Sequence[int]) -> Floats:
        """Over these columns, which continue those of the last call; the value given at first if there is none."""
        for j in columns[self._seen :]:
            self._values = np.maximum(self._values, matrix[:, j]) if self._seen else matrix[:, j]
            self._seen += 1
        return self._values


@dataclass(frozen=True)
class _Runs:
    """Rows sorted by their pattern over some features; where only mixed runs are kept, those of one class are left out.

    They change neither an information nor what is left to gain for a classification rate.
    """

    order: Features  # rows, those with equal patterns behind each other
    starts: Features  # where each run begins, and the end
    base: float  # sum of n log n over the patterns less the same with the class
    cells: float  # how many patterns there could be
    mixed: bool

    @classmethod
    def start(cls, engine: Engine, mixed: bool) -> _Runs:
        """One run of all rows: nothing is chosen."""
        parts = np.bincount(engine.labels, engine.weights)
        base = float(xlogy(engine.total, engine.total) - xlogy(parts, parts).sum())
        return cls(np.arange(len(engine.labels)), np.array([0, len(engine.labels)]), base, 1.0, mixed)

    def split(self, e: Engine, i: int) -> _Runs:
        """The runs that one more feature makes of these."""
        from marginbayes.kernels import patterns

        classes = int(e.cards[0])
        order, starts, base = patterns.split_runs(
            self.order, self.starts, e.codes[i], int(e.radix[i]), e.labels, classes, e.weights, self.mixed
        )
        return _Runs(order, starts, base, min(self.cells * int(e.cards[i]), MOST_CELLS), self.mixed)

    def information(self, e: Engine, features: Features, epsilon: float = 0.0) -> Floats:
        """I(class; feature | pattern) in nats; with an epsilon, corrected for patterns that do not occur."""
        from marginbayes.kernels import patterns

        if not epsilon and not len(self.order):
            return np.zeros(len(features))  # nothing is left to know
        difference, seen, seen_with_class = patterns.entropy_sums(
            self.order, self.starts, e.codes, e.radix, features, e.labels, int(e.cards[0]), e.weights
        )
        value: Floats = (difference + self.base) / e.total
        return value if not epsilon else value + self._correction(e, features, epsilon, seen, seen_with_class)

    def _correction(
        self, e: Engine, features: Features, epsilon: float, seen: Features, with_class: Features
    ) -> Floats:
        """What patterns of probability epsilon that do not occur add to the four entropies."""
        levels, classes, runs = e.cards[features].astype(np.float64), int(e.cards[0]), len(self.starts) - 1
        lengths = np.diff(self.starts)
        pairs = np.repeat(np.arange(runs), lengths) * classes + e.labels[self.order]
        missing = (self.cells * levels - seen) - (self.cells * levels * classes - with_class)
        missing += (self.cells * classes - len(np.unique(pairs))) - (self.cells - runs)
        return np.asarray(-missing * epsilon * math.log(epsilon))

    def rates(self, e: Engine, features: Features) -> Floats:
        """Share of the rows that the most frequent class of each pattern with the feature classifies correctly."""
        from marginbayes.kernels import patterns

        right = patterns.saturated_rates(
            self.order, self.starts, e.codes, e.radix, features, e.labels, int(e.cards[0]), e.weights
        )
        return np.asarray((right + e.total - e.weights[self.order].sum()) / e.total)


def pair_information(engine: Engine) -> Floats:
    """[i, j]: I(class; i | j) for all pairs of features, in nats; a missing cell is a value of its own."""
    from marginbayes.kernels import patterns

    sums = patterns.pair_sums(engine.codes, engine.radix, engine.weights)
    bases = [0.0, *(_base(engine, j) for j in engine.features)]
    found = (sums + np.array(bases)) / engine.total
    found[0] = found[:, 0] = 0.0
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)


def _base(engine: Engine, j: int) -> float:
    """Sum of n log n over the values of a feature less the same over values and classes."""
    classes = int(engine.cards[0])
    both = np.bincount(engine.codes[j] * np.int64(classes) + engine.labels, engine.weights, engine.radix[j] * classes)
    alone = both.reshape(-1, classes).sum(axis=1)
    return float(xlogy(alone, alone).sum() - xlogy(both, both).sum())
