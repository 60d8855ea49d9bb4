"""Parameter learners: from a graph and rows to a network."""

from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.combination import CombinationResult, ConvexCombination
from marginbayes.parameters.conditional import ConditionalLikelihood
from marginbayes.parameters.convex import ConvexResult, MarginConvex
from marginbayes.parameters.discriminative import DescentResult
from marginbayes.parameters.gradient import MarginGradient
from marginbayes.parameters.hybrid import MarginHybrid
from marginbayes.parameters.likelihood import MaximumLikelihood
from marginbayes.parameters.markov import MarginMarkov, MarkovResult
from marginbayes.parameters.names import PARAMETER_NAMES, named_parameters
from marginbayes.parameters.tuning import Tuned, TunedResult

__all__ = [
    "PARAMETER_NAMES",
    "CombinationResult",
    "ConditionalLikelihood",
    "ConvexCombination",
    "ConvexResult",
    "DescentResult",
    "MarginConvex",
    "MarginGradient",
    "MarginHybrid",
    "MarginMarkov",
    "MarkovResult",
    "MaximumLikelihood",
    "ParameterLearner",
    "ParameterResult",
    "Tuned",
    "TunedResult",
    "named_parameters",
]
