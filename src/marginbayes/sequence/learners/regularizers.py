"""The two well-posed ways to hold the weights of a margin problem: likelihood with proper tables, and a ball.

A margin problem is: minimise regulariser(w) + strength * sum of structured hinge losses(w). A point of its dual is a
distribution over the labellings of each example; the pull of the margins is u = strength * sum over the examples of
(features of the truth - expected features), and the bound it proves is strength * margin * (expected loss) -
conjugate(u).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from marginbayes.sequence.examples import TableRows

__all__ = ["Ball", "LikelihoodTables", "Regularizer"]

Floats = NDArray[np.float64]


class Regularizer(ABC):
    """A convex function of the weights, its conjugate, and coordinates in which a solver moves."""

    name: str
    bounds: list[tuple[float | None, float | None]] | None = None

    @abstractmethod
    def start(self) -> Floats:
        """Coordinates to start from."""

    @abstractmethod
    def coordinates(self, weights: Floats) -> Floats:
        """Coordinates of weights that satisfy every constraint."""

    @abstractmethod
    def weights(self, point: Floats) -> Floats:
        """Weights at these coordinates; they satisfy every constraint."""

    @abstractmethod
    def slope(self, point: Floats, weights: Floats, pull: Floats) -> Floats:
        """Gradient by the coordinates of regulariser(weights) - pull . weights."""

    @abstractmethod
    def value(self, weights: Floats) -> float:
        """The regulariser."""

    @abstractmethod
    def conjugate(self, pull: Floats) -> float:
        """Largest value of pull . w - regulariser(w); infinite where there is none."""

    @abstractmethod
    def best_weights(self, pull: Floats) -> Floats:
        """The weights at which the conjugate is attained; they satisfy every constraint."""

    @abstractmethod
    def largest_share(self, pull: Floats, gain: float) -> float:
        """A share t in [0, 1] for which t * gain - conjugate(t * pull) is large, and finite."""


class Ball(Regularizer):
    """Half the squared length of the weights: the maximum-margin Markov network of Taskar, Guestrin & Koller (2003)."""

    name = "ball"

    def __init__(self, counts: Floats, strength: float) -> None:
        # Weights of frequent features have the larger curvature; the factor only affects speed.
        self.scale = 1.0 / np.sqrt(1.0 + 0.2 * strength * counts)

    def start(self) -> Floats:
        return np.zeros(len(self.scale))

    def coordinates(self, weights: Floats) -> Floats:
        return np.asarray(weights / self.scale)

    def weights(self, point: Floats) -> Floats:
        return np.asarray(point * self.scale)

    def slope(self, point: Floats, weights: Floats, pull: Floats) -> Floats:
        del point
        return np.asarray((weights - pull) * self.scale)

    def value(self, weights: Floats) -> float:
        return 0.5 * float((weights * weights).sum())

    def conjugate(self, pull: Floats) -> float:
        return 0.5 * float((pull * pull).sum())

    def best_weights(self, pull: Floats) -> Floats:
        return pull

    def largest_share(self, pull: Floats, gain: float) -> float:
        size = float((pull * pull).sum())
        return 1.0 if size <= gain else max(0.0, gain / size)


class LikelihoodTables(Regularizer):
    """Minus the log-likelihood of smoothed counts, with every row of every table summing to at most one.

    Its conjugate at u is the sum over the rows of v log(v / V), where v = counts + u (which must not be negative) and V
    is the row's sum; it is attained at w = log(v / V), proper tables of re-weighted counts. A row whose V vanishes may
    stay subnormal. The coordinates are for each row how far it falls short of one, and then logarithms of free table
    entries, each scaled by the square root of its count.
    """

    name = "tables"

    def __init__(self, counts: Floats, rows: TableRows) -> None:
        self.counts, self.rows = counts, rows
        self.scale = 1.0 / np.sqrt(counts)
        self.bounds = [(0.0, None)] * rows.count + [(None, None)] * len(counts)

    def start(self) -> Floats:
        return self.coordinates(self.rows.normalised(np.log(self.counts)))

    def coordinates(self, weights: Floats) -> Floats:
        short = np.maximum(0.0, -self.rows.log_sums(weights))
        return np.concatenate([short, weights / self.scale])

    def _tables(self, point: Floats) -> Floats:
        return self.rows.normalised(point[self.rows.count :] * self.scale)

    def weights(self, point: Floats) -> Floats:
        return np.asarray(self._tables(point) - point[: self.rows.count][self.rows.row_of])

    def slope(self, point: Floats, weights: Floats, pull: Floats) -> Floats:
        del weights
        mass = self.counts + pull
        totals = self.rows.sums(mass)
        entries = totals[self.rows.row_of] * np.exp(self._tables(point)) - mass
        return np.concatenate([totals, entries * self.scale])

    def value(self, weights: Floats) -> float:
        return -float((self.counts * weights).sum())

    def conjugate(self, pull: Floats) -> float:
        mass = self.counts + pull
        if mass.min() < 0:
            return np.inf
        totals = self.rows.sums(mass)
        return float(xlogy(mass, mass).sum() - xlogy(totals, totals).sum())

    def best_weights(self, pull: Floats) -> Floats:
        # The least count keeps logarithms finite; after normalisation the tables are proper whatever it is.
        return self.rows.normalised(np.log(np.maximum(self.counts + pull, 1e-300)))

    def largest_share(self, pull: Floats, gain: float) -> float:
        del gain
        overdrawn = float((-pull / self.counts).max())
        return 1.0 if overdrawn <= 1.0 else (1.0 - 1e-9) / overdrawn
