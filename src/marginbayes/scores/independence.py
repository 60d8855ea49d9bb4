"""Conditional independence of two variables given any others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, xlogy

from marginbayes.data.rows import Rows
from marginbayes.scores.information import resolved

__all__ = ["Independence"]


class Independence:
    """Tests of I(X; Y | Z) over the rows in which all of these variables are observed.

    Two variables count as dependent where their information, in bits, exceeds the threshold, and is not what chance
    makes of independent variables (a chi-squared test of 2 n I at level alpha, its degrees of freedom those of the
    levels that occur; with ``alpha=None`` the threshold alone decides). Where a condition leaves less than `power` rows
    for each degree of freedom, hardly a slice holds two rows that differ, and the information is nothing whatever the
    variables are: such a test says nothing (`tells`), and does not make a pair independent.
    """

    def __init__(self, rows: Rows, threshold: float, alpha: float | None, power: float = 0.0) -> None:
        self.rows, self.threshold, self.alpha, self.power = rows, threshold, alpha, power
        self.known: dict[tuple[int, int, frozenset[int]], tuple[float, float, float]] = {}

    def information(self, x: int, y: int, given: Iterable[int] = ()) -> float:
        """I(X; Y | given) in bits, equal ones being equal whatever the order of the rows."""
        return self._tested(x, y, frozenset(given))[0]

    def dependent(self, x: int, y: int, given: Iterable[int] = ()) -> bool:
        """Whether the two are dependent, by threshold and test; also where nothing can be told."""
        information, chance, _ = self._tested(x, y, frozenset(given))
        found = information > self.threshold and (self.alpha is None or chance < self.alpha)
        return found or not self.tells(x, y, given)

    def tells(self, x: int, y: int, given: Iterable[int] = ()) -> bool:
        """Whether there are rows enough for a test; without a condition there always are."""
        condition = frozenset(given)
        return not condition or self._tested(x, y, condition)[2] >= self.power

    def _tested(self, x: int, y: int, given: frozenset[int]) -> tuple[float, float, float]:
        key = min(x, y), max(x, y), given
        if key not in self.known:
            self.known[key] = _test(self.rows, *key[:2], sorted(given))
        return self.known[key]


def _test(rows: Rows, x: int, y: int, given: list[int]) -> tuple[float, float, float]:
    """Information in bits, the chance of so much if the two are independent, and the rows for a degree of freedom."""
    cards, codes = rows.cardinalities, rows.codes
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    seen = weights > 0
    for v in (x, y, *given):
        seen &= codes[v] < cards[v]
    weights, total = weights[seen], float(weights[seen].sum())
    if not total:
        return 0.0, 1.0, 0.0
    slices = _patterns([codes[v][seen] for v in given], [cards[v] for v in given], len(weights))
    with_x = slices * cards[x] + codes[x][seen]
    with_y = slices * cards[y] + codes[y][seen]
    both = _patterns([with_x, codes[y][seen]], [int(with_x.max()) + 1, cards[y]], len(weights))
    nats = (_plogp(both, weights) + _plogp(slices, weights) - _plogp(with_x, weights) - _plogp(with_y, weights)) / total
    levels_x, levels_y = (_levels(pairs, card) for pairs, card in ((with_x, cards[x]), (with_y, cards[y])))
    freedom = int(((levels_x - 1) * (levels_y - 1)).sum())
    chance = float(chdtrc(freedom, 2 * total * max(0.0, float(nats)))) if freedom else 1.0
    # Of every slice as if all levels occurred in it: where rows are few, too few do.
    whole = (len(np.unique(codes[x][seen])) - 1) * (len(np.unique(codes[y][seen])) - 1) * len(levels_x)
    return float(resolved(np.array(nats))) / np.log(2), chance, len(weights) / whole if whole else np.inf


def _patterns(columns: list[NDArray[np.integer]], cards: list[int], n: int) -> NDArray[np.int64]:
    """Number of the pattern that each row shows, counting only patterns that occur."""
    pattern = np.zeros(n, np.int64)
    for column, card in zip(columns, cards, strict=True):
        pattern = pattern * card + column
        # There are at most as many patterns as rows, so a table of all that could follow is small: no sort is needed.
        pattern = (np.cumsum(np.bincount(pattern) > 0) - 1)[pattern]
    return pattern


def _plogp(pattern: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    counts = np.bincount(pattern, weights)
    return float(xlogy(counts, counts).sum())


def _levels(pairs: NDArray[np.int64], card: int) -> NDArray[np.int64]:
    """How many levels of a variable occur in each slice, from its pairs of slice and level."""
    return np.bincount(np.flatnonzero(np.bincount(pairs)) // card)
