"""What a learner of weights takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from marginbayes.sequence.examples import Examples
from marginbayes.solvers import Certificate, Learned, Moment

__all__ = ["Callback", "WeightLearner", "WeightResult", "check_amount", "smoothed_counts"]

Floats = NDArray[np.float64]
Callback = Callable[[Moment], None]


@dataclass(frozen=True, eq=False)
class WeightResult(Learned):
    """Weights, how good they are where that is certified, the objective step by step, and how it ended."""

    weights: Floats
    certificate: Certificate | None = None
    path: tuple[float, ...] = ()
    status: str = "finished"


class WeightLearner(BaseEstimator, ABC):  # type: ignore[misc]
    """Turns labelled examples into weights; knows the model only through `Examples`."""

    @abstractmethod
    def learn(self, examples: Examples) -> WeightResult:
        """Weights for these examples."""


def smoothed_counts(examples: Examples, smoothing: float) -> Floats:
    """Counts of every table entry under the true labels, plus the smoothing."""
    return examples.true_features + check_amount("smoothing", smoothing, zero=True)


def check_amount(name: str, value: float, *, zero: bool = False) -> float:
    """The number, if it is positive (or zero where that makes sense)."""
    if not (isinstance(value, (int, float, np.number)) and np.isfinite(value) and (value > 0 or (zero and value == 0))):
        raise ValueError(f"{name}={value!r} must be a {'number that is not negative' if zero else 'positive number'}")
    return float(value)
