"""What a learner of weights takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from marginbayes import checks
from marginbayes.sequence.examples import Examples
from marginbayes.solvers import Certificate, Learned, Moment

__all__ = ["Callback", "WeightLearner", "WeightResult", "smoothed_counts"]

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
    checks.not_negative("smoothing", smoothing)
    return examples.true_features + float(smoothing)
