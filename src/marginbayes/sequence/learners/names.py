"""Short names of the learners."""

from __future__ import annotations

from collections.abc import Callable

from marginbayes import checks
from marginbayes.sequence.learners.base import WeightLearner
from marginbayes.sequence.learners.conditional import StructuredConditional
from marginbayes.sequence.learners.likelihood import StructuredLikelihood
from marginbayes.sequence.learners.literal import StructuredConvex
from marginbayes.sequence.learners.margin import StructuredHybrid, StructuredMarkov

__all__ = ["NAMES", "named_learner"]

NAMES = ("ml", "cl", "mm-hybrid", "mm-convex", "m3n")


def named_learner(parameters: str | WeightLearner, smoothing: float) -> WeightLearner:
    """The learner of this name, or the learner itself."""
    if isinstance(parameters, WeightLearner):
        return parameters
    makers: dict[str, Callable[[], WeightLearner]] = {
        "ml": lambda: StructuredLikelihood(smoothing),
        "cl": lambda: StructuredConditional(smoothing=smoothing),
        "mm-hybrid": lambda: StructuredHybrid(smoothing=smoothing),
        "mm-convex": StructuredConvex,
        "m3n": StructuredMarkov,
    }
    checks.one_of("parameters", parameters, NAMES, note=", or give a WeightLearner")
    return makers[parameters]()
