"""Parameter learners: from a graph and rows to a network."""

from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.combination import ConvexCombination
from marginbayes.parameters.conditional import ConditionalLikelihood
from marginbayes.parameters.convex import MarginConvex
from marginbayes.parameters.gradient import MarginGradient
from marginbayes.parameters.hybrid import MarginHybrid
from marginbayes.parameters.likelihood import MaximumLikelihood
from marginbayes.parameters.markov import MarginMarkov

__all__ = [
    "ConditionalLikelihood",
    "ConvexCombination",
    "MarginConvex",
    "MarginGradient",
    "MarginHybrid",
    "MarginMarkov",
    "MaximumLikelihood",
    "ParameterLearner",
    "ParameterResult",
]
