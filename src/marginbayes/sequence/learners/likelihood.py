"""Maximum likelihood: smoothed relative frequencies of the tied tables."""

from __future__ import annotations

import numpy as np

from marginbayes.sequence.examples import Examples
from marginbayes.sequence.learners.base import WeightLearner, WeightResult, smoothed_counts

__all__ = ["StructuredLikelihood"]


class StructuredLikelihood(WeightLearner):
    """Tables of greatest likelihood.

    Parameters
    ----------
    smoothing : float, default=1.0
        Added to every count (Laplace). A row that is never used is uniform.
    """

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def learn(self, examples: Examples) -> WeightResult:
        """Normalised log tables."""
        counts = smoothed_counts(examples, self.smoothing)
        empty = examples.rows.sums(counts)[examples.rows.row_of] <= 0.0
        with np.errstate(divide="ignore"):
            return WeightResult(examples.rows.normalised(np.log(np.where(empty, 1.0, counts))))
