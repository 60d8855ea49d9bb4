"""What a learner knows of a structured model: features, inference, loss-augmented inference and loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Examples", "Expectation", "TableRows"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Logs of sums of rows that are proper tables are this near to zero.
PROPER = 1e-9


@dataclass(frozen=True, eq=False)
class TableRows:
    """Which weights are one row of a table: the logarithms of one conditional distribution.

    Examples
    --------
    >>> rows = TableRows(np.array([0, 0, 1, 1]))
    >>> rows.sums(np.array([1.0, 2.0, 3.0, 4.0]))
    array([3., 7.])
    """

    row_of: Integers

    @cached_property
    def count(self) -> int:
        """Number of rows."""
        return int(self.row_of.max(initial=-1)) + 1

    def sums(self, values: Floats) -> Floats:
        """Sum of the values in each row."""
        return np.bincount(self.row_of, values, self.count).astype(np.float64, copy=False)

    def log_sums(self, weights: Floats) -> Floats:
        """log sum exp of the weights in each row."""
        top = np.full(self.count, -np.inf)
        np.maximum.at(top, self.row_of, weights)
        with np.errstate(divide="ignore"):
            return np.asarray(top + np.log(self.sums(np.exp(weights - top[self.row_of]))))

    def are_proper(self, weights: Floats) -> bool:
        """Whether the exponentials of each row sum to one, up to rounding."""
        return bool(np.abs(self.log_sums(weights)).max() <= PROPER)

    def normalised(self, weights: Floats) -> Floats:
        """The weights shifted so that the exponentials of each row sum to one."""
        return np.asarray(weights - self.log_sums(weights)[self.row_of])


class Expectation(NamedTuple):
    """Log partition of each example, and weighted sums over the examples of expected features and expected loss."""

    log_partition: Floats
    features: Floats
    loss: float


class Examples(ABC):
    """Labelled examples seen through a model whose score is linear: weights times joint features.

    Labels are a flat array of codes, one for each labelled variable of each example. Every example counts with its
    weight. The loss of a labelling is its Hamming distance from the truth, equation (19) of Guo, Wilkinson &
    Schuurmans (2005).
    """

    rows: TableRows
    labels: Integers
    weights: Floats

    @property
    def n_weights(self) -> int:
        """Length of a vector of weights."""
        return len(self.rows.row_of)

    @cached_property
    def true_features(self) -> Floats:
        """Weighted sum of the features of the true labels: the counts of all tables."""
        return self.joint_features(self.labels)

    @abstractmethod
    def joint_features(self, labels: Integers) -> Floats:
        """Weighted sum over the examples of the features of a labelling."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Model and examples as JSON values, for the evidence of a certificate; without what the data say."""

    @abstractmethod
    def each_features(self, labels: Integers) -> Any:
        """Features of each example under a labelling, not weighted: a sparse matrix (examples x weights)."""

    @abstractmethod
    def labels_of(self, labels: Integers, example: int) -> Integers:
        """The part of a labelling that belongs to one example."""

    @abstractmethod
    def loss(self, labels: Integers) -> Floats:
        """Number of wrong labels in each example."""

    @abstractmethod
    def decode(self, weights: Floats, margin: float = 0.0) -> tuple[Integers, Floats]:
        """The labelling of greatest score plus `margin` times loss, equation (20), and that value for each example."""

    @abstractmethod
    def expect(self, weights: Floats, margin: float = 0.0) -> Expectation:
        """Log partition and expectations under P(labels) proportional to exp(score + margin * loss)."""

    def hinge(self, weights: Floats, margin: float) -> float:
        """Weighted sum of the structured hinge losses: how far the truth falls short of leading by the margin."""
        labels, _ = self.decode(weights, margin)
        # The difference of two scores, each as large as an example is long, would keep fewer digits.
        lead = self.true_features - self.joint_features(labels)
        return float(margin * (self.weights @ self.loss(labels)) - weights @ lead)
