"""Orders of the features, the first step of the order-based heuristics (Pernkopf & Bilmes 2010, section 5.1).

Mutual informations over many features come from the patterns of values that occur in the rows. Once every row has a
pattern of its own they are all zero, so ties matter: they go to the information given the best single earlier feature
(OMISP), then to the information about the class alone, then to the smaller index. A missing cell is a value of its own
here.
"""

from __future__ import annotations

import math

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
    """The features chosen so far, as the pattern that each row has over them."""

    def __init__(self, engine: Engine, epsilon: float) -> None:
        from marginbayes.kernels import patterns

        self._kernels, self.engine, self.epsilon = patterns, engine, epsilon
        self.group = np.zeros(len(engine.labels), np.int64)
        self.n_groups = 1
        self.cells = 1.0  # how many patterns there could be
        self.alone = np.array([0.0, *(self.conditional(i) for i in engine.features)])
        self.best_single = self.alone.copy()
        self._pairs: Floats | None = None
        self.chosen: list[int] = []

    def append(self, i: int) -> None:
        """Take one more feature into the patterns."""
        size = int(self.engine.cards[i]) + 1
        _, self.group = np.unique(self.group * size + self.engine.codes[i], return_inverse=True)
        self.n_groups = int(self.group.max()) + 1
        self.cells *= int(self.engine.cards[i])
        pairs = self._pair_matrix()
        self.best_single = pairs[:, i] if not self.chosen else np.maximum(self.best_single, pairs[:, i])
        self.chosen.append(i)

    def conditional(self, i: int) -> float:
        """I(class; feature | all chosen ones), in nats."""
        e = self.engine
        size, classes = int(e.cards[i]) + 1, int(e.cards[0])
        without, full, seen, seen_full = self._kernels.entropy_sums(
            self.group, self.n_groups, e.codes[i], size, e.labels, classes, e.weights
        )
        group_only, group_class = self._group_sums()
        value = (full - without - group_class + group_only) / e.total
        if self.epsilon:
            levels = int(e.cards[i])
            value += self._unseen(seen, self.cells * levels) - self._unseen(seen_full, self.cells * levels * classes)
        return float(value)

    def _unseen(self, seen: int, possible: float) -> float:
        """The paper's correction of an entropy, negated: (possible - seen) patterns of probability epsilon."""
        return -(possible - seen) * self.epsilon * math.log(self.epsilon)

    def _group_sums(self) -> tuple[float, float]:
        e = self.engine
        both = np.bincount(self.group * int(e.cards[0]) + e.labels, e.weights)
        alone = np.bincount(self.group, e.weights)
        return float(xlogy(alone, alone).sum()), float(xlogy(both, both).sum())

    def single(self, i: int) -> float:
        """Greatest I(class; feature | one chosen feature)."""
        return float(self.best_single[i])

    def rate(self, i: int) -> float:
        """Classification rate on the rows of the saturated model of the chosen features and this one."""
        e = self.engine
        size = int(e.cards[i]) + 1
        right = self._kernels.saturated_rate(
            self.group, self.n_groups, e.codes[i], size, e.labels, int(e.cards[0]), e.weights
        )
        return float(right / e.total)

    def tie_break(self, i: int) -> Key:
        """OMISP's measure, then the information about the class alone."""
        return round(self.best_single[i] / RESOLUTION), round(self.alone[i] / RESOLUTION)

    def _pair_matrix(self) -> Floats:
        if self._pairs is None:
            self._pairs = pair_information(self.engine)
        return self._pairs


def pair_information(engine: Engine) -> Floats:
    """[i, j]: I(class; i | j) for all pairs of features, in nats; a missing cell is a value of its own."""
    from marginbayes.kernels import patterns

    d, classes = len(engine.cards), int(engine.cards[0])
    found = np.zeros((d, d))
    for j in engine.features:
        group, n_groups = engine.codes[j].astype(np.int64), int(engine.cards[j]) + 1
        both = np.bincount(group * classes + engine.labels, engine.weights, n_groups * classes)
        alone = np.bincount(group, engine.weights, n_groups)
        base = xlogy(alone, alone).sum() - xlogy(both, both).sum()
        for i in engine.features:
            if i != j:
                without, full, _, _ = patterns.entropy_sums(
                    group, n_groups, engine.codes[i], int(engine.cards[i]) + 1, engine.labels, classes, engine.weights
                )
                found[i, j] = (full - without + base) / engine.total
    return found
