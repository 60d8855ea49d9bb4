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
Key = tuple[float, ...]

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
        rest = [i for i in engine.active if i not in walk.chosen]
        keys = [(round(sign * rule(i) / RESOLUTION), *(sign * key for key in walk.tie_break(i)), -i) for i in rest]
        walk.append(rest[keys.index(max(keys))])
    return walk.chosen


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
        from marginbayes.kernels import patterns

        self._kernels, self.engine, self.epsilon = patterns, engine, epsilon
        self.runs = _Runs.of(engine, np.zeros(len(engine.labels), np.int64), 1.0)
        self.chosen: list[int] = []
        self.alone = np.array([0.0, *(self.runs.information(engine, i) for i in engine.features)])
        self.alone_corrected = np.array([0.0, *(self.conditional(i) for i in engine.features)])
        # The greatest information given one chosen feature, as it is (for ties) and corrected.
        self.best_single, self.best_corrected = self.alone, self.alone_corrected

    def append(self, i: int) -> None:
        """Take one more feature into the patterns."""
        e, levels = self.engine, int(self.engine.cards[i])
        cells = min(self.runs.cells * levels, MOST_CELLS)
        self.runs = _Runs.of(e, self.runs.group * (levels + 1) + e.codes[i], cells)
        plain, corrected = self._plain_pairs[:, i], self.pairs[:, i]
        self.best_single = np.maximum(self.best_single, plain) if self.chosen else plain
        self.best_corrected = np.maximum(self.best_corrected, corrected) if self.chosen else corrected
        self.chosen.append(i)

    def conditional(self, i: int) -> float:
        """I(class; feature | all chosen ones), in nats."""
        return self.runs.information(self.engine, i, self.epsilon)

    def single(self, i: int) -> float:
        """Greatest I(class; feature | one chosen feature)."""
        return float(self.best_corrected[i])

    def rate(self, i: int) -> float:
        """Classification rate on the rows of the saturated model of the chosen features and this one."""
        e = self.engine
        size = int(e.cards[i]) + 1
        right = self._kernels.saturated_rate(
            self.runs.order, self.runs.starts, e.codes[i], size, e.labels, int(e.cards[0]), e.weights
        )
        return float(right / e.total)

    def tie_break(self, i: int) -> Key:
        """OMISP's measure, then the information about the class alone."""
        return round(self.best_single[i] / RESOLUTION), round(self.alone[i] / RESOLUTION)

    @cached_property
    def _plain_pairs(self) -> Floats:
        return pair_information(self.engine)

    @cached_property
    def pairs(self) -> Floats:
        """[i, j]: I(class; i | j), with the paper's correction."""
        e = self.engine
        if not self.epsilon:
            return self._plain_pairs
        found = np.zeros_like(self._plain_pairs)
        for j in e.features:
            runs = _Runs.of(e, e.codes[j].astype(np.int64), float(e.cards[j]))
            found[1:, j] = [runs.information(e, i, self.epsilon) if i != j else 0.0 for i in e.features]
        return found


@dataclass(frozen=True)
class _Runs:
    """Rows sorted by their pattern over some features."""

    group: NDArray[np.int64]  # number of the pattern of each row
    order: NDArray[np.int64]  # rows, those with equal patterns behind each other
    starts: NDArray[np.int64]  # where each run begins, and the end
    base: float  # sum of n log n over the patterns less the same with the class
    cells: float  # how many patterns there could be

    @classmethod
    def of(cls, engine: Engine, pattern: NDArray[np.int64], cells: float) -> _Runs:
        order = np.argsort(pattern, kind="stable")
        new = np.concatenate([[True], np.diff(pattern[order]) > 0])
        starts = np.append(np.flatnonzero(new), len(order))
        group = np.empty(len(order), np.int64)
        group[order] = np.cumsum(new) - 1
        return cls(group, order, starts, _base(engine, group), cells)

    def information(self, engine: Engine, i: int, epsilon: float = 0.0) -> float:
        """I(class; feature | pattern) in nats; with an epsilon, corrected for patterns that do not occur."""
        from marginbayes.kernels import patterns

        if not epsilon and len(self.starts) == len(self.order) + 1:
            return 0.0  # every row has a pattern of its own: nothing is left to know
        size, classes = int(engine.cards[i]) + 1, int(engine.cards[0])
        difference, seen, seen_with_class = patterns.entropy_sums(
            self.order, self.starts, engine.codes[i], size, engine.labels, classes, engine.weights
        )
        value = float(difference + self.base) / engine.total
        return value if not epsilon else value + self._correction(engine, i, epsilon, seen, seen_with_class)

    def _correction(self, engine: Engine, i: int, epsilon: float, seen: int, seen_with_class: int) -> float:
        """What patterns of probability epsilon that do not occur add to the four entropies."""
        levels, classes = int(engine.cards[i]), int(engine.cards[0])
        runs = len(self.starts) - 1
        runs_with_class = len(np.unique(self.group * classes + engine.labels))
        missing = (self.cells * levels - seen) - (self.cells * levels * classes - seen_with_class)
        missing += (self.cells * classes - runs_with_class) - (self.cells - runs)
        return -missing * epsilon * math.log(epsilon)


def _base(engine: Engine, group: NDArray[np.int64]) -> float:
    """Sum of n log n over the groups less the same over groups and classes."""
    alone = np.bincount(group, engine.weights)
    both = np.bincount(group * int(engine.cards[0]) + engine.labels, engine.weights)
    return float(xlogy(alone, alone).sum() - xlogy(both, both).sum())


def pair_information(engine: Engine) -> Floats:
    """[i, j]: I(class; i | j) for all pairs of features, in nats; a missing cell is a value of its own."""
    from marginbayes.kernels import patterns

    sums = patterns.pair_sums(engine.codes, engine.cards, engine.labels, engine.weights)
    bases = [0.0, *(_base(engine, engine.codes[j].astype(np.int64)) for j in engine.features)]
    found = (sums + np.array(bases)) / engine.total
    found[0] = found[:, 0] = 0.0
    np.fill_diagonal(found, 0.0)
    return np.asarray(found)
