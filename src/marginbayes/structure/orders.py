"""Orders of the features, the first step of the order-based heuristics (Pernkopf & Bilmes 2010, section 5.1).

Mutual informations over many features come from the patterns of values that occur in the rows. Once every row has a
pattern of its own they are all zero, so ties matter: they go to the information given the best single earlier feature
(OMISP), then to the information about the class alone, then to the smaller index. A missing cell is a value of its own
here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbayes.structure.engine import Engine

__all__ = ["ORDERS", "feature_order", "pair_information"]

Floats = NDArray[np.float64]
Key = tuple[float, ...]

ORDERS = ("mi", "mi_sp", "cr", "random", "mi_min")
# Differences of entropies below this are rounding.
RESOLUTION = 1e-9


def feature_order(engine: Engine, order: str, epsilon: float = 0.0, seed: int | None = None) -> list[int]:
    """Indices of the features, first to last.

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
        return [int(i) + 1 for i in np.random.default_rng(seed).permutation(len(engine.cards) - 1)]
    walk = _Walk(engine, epsilon)
    rule = {"mi": walk.conditional, "mi_min": walk.conditional, "mi_sp": walk.single, "cr": walk.rate}[order]
    sign = -1.0 if order == "mi_min" else 1.0
    chosen: list[int] = []
    while len(chosen) < len(engine.cards) - 1:
        rest = [i for i in engine.features if i not in chosen]
        ties = [round(sign * rule(i) / RESOLUTION) for i in rest]
        best = max(range(len(rest)), key=lambda t: (ties[t], *walk.tie_break(rest[t]), -rest[t]))
        chosen.append(rest[best])
        walk.append(rest[best])
    return chosen


class _Walk:
    """The features chosen so far, as the runs of rows that have equal values of them."""

    def __init__(self, engine: Engine, epsilon: float) -> None:
        from marginbayes.kernels import patterns

        self._kernels, self.engine, self.epsilon = patterns, engine, epsilon
        self.runs = _Runs.of(engine, np.zeros(len(engine.labels), np.int64))
        self.cells = 1.0  # how many patterns there could be
        self.alone = np.array([0.0, *(self.conditional(i) for i in engine.features)])
        self.best_single = self.alone.copy()
        self._pairs: Floats | None = None
        self.chosen: list[int] = []

    def append(self, i: int) -> None:
        """Take one more feature into the patterns."""
        e = self.engine
        self.runs = _Runs.of(e, self.runs.group * (int(e.cards[i]) + 1) + e.codes[i])
        self.cells *= int(e.cards[i])
        pairs = self._pair_matrix()
        self.best_single = pairs[:, i] if not self.chosen else np.maximum(self.best_single, pairs[:, i])
        self.chosen.append(i)

    def conditional(self, i: int) -> float:
        """I(class; feature | all chosen ones), in nats."""
        value, seen, seen_full = self.runs.information(self.engine, i)
        if self.epsilon:
            cells = self.cells * int(self.engine.cards[i])
            value += self._unseen(seen, cells) - self._unseen(seen_full, cells * int(self.engine.cards[0]))
        return value

    def _unseen(self, seen: int, possible: float) -> float:
        """The paper's correction of an entropy: (possible - seen) patterns of probability epsilon."""
        return -(possible - seen) * self.epsilon * math.log(self.epsilon)

    def single(self, i: int) -> float:
        """Greatest I(class; feature | one chosen feature)."""
        return float(self.best_single[i])

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

    def _pair_matrix(self) -> Floats:
        if self._pairs is None:
            self._pairs = pair_information(self.engine)
        return self._pairs


@dataclass(frozen=True)
class _Runs:
    """Rows sorted by their pattern."""

    group: NDArray[np.int64]  # number of the pattern of each row
    order: NDArray[np.int64]  # rows, those with equal patterns behind each other
    starts: NDArray[np.int64]  # where each run begins, and the end
    base: float  # sum of n log n over the patterns less the same with the class

    @classmethod
    def of(cls, engine: Engine, pattern: NDArray[np.int64]) -> _Runs:
        _, group = np.unique(pattern, return_inverse=True)
        order = np.argsort(group, kind="stable")
        sizes = np.bincount(group)
        alone = np.bincount(group, engine.weights)
        both = np.bincount(group * int(engine.cards[0]) + engine.labels, engine.weights)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return cls(group, order, starts, float(xlogy(alone, alone).sum() - xlogy(both, both).sum()))

    def information(self, engine: Engine, i: int) -> tuple[float, int, int]:
        """I(class; feature | pattern) in nats, and how many extended patterns occur without and with the class."""
        from marginbayes.kernels import patterns

        if len(self.starts) == len(self.order) + 1:  # every row has a pattern of its own: nothing is left to know
            return 0.0, len(self.order), len(self.order)
        size, classes = int(engine.cards[i]) + 1, int(engine.cards[0])
        difference, seen, seen_full = patterns.entropy_sums(
            self.order, self.starts, engine.codes[i], size, engine.labels, classes, engine.weights
        )
        return (difference + self.base) / engine.total, seen, seen_full


def pair_information(engine: Engine) -> Floats:
    """[i, j]: I(class; i | j) for all pairs of features, in nats; a missing cell is a value of its own."""
    found = np.zeros((len(engine.cards), len(engine.cards)))
    for j in engine.features:
        runs = _Runs.of(engine, engine.codes[j].astype(np.int64))
        for i in engine.features:
            if i != j:
                found[i, j] = runs.information(engine, i)[0]
    return found
