"""Learners of weights: they know a model only by its features, inference, loss-augmented inference and loss."""

from marginbayes.sequence.learners.base import WeightLearner, WeightResult
from marginbayes.sequence.learners.conditional import StructuredConditional
from marginbayes.sequence.learners.likelihood import StructuredLikelihood
from marginbayes.sequence.learners.literal import StructuredConvex
from marginbayes.sequence.learners.margin import StructuredHybrid, StructuredMarkov
from marginbayes.sequence.learners.names import named_learner

__all__ = [
    "StructuredConditional",
    "StructuredConvex",
    "StructuredHybrid",
    "StructuredLikelihood",
    "StructuredMarkov",
    "WeightLearner",
    "WeightResult",
    "named_learner",
]
