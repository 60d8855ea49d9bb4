"""Parameter learners: from a graph and rows to a network."""

from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.conditional import ConditionalLikelihood
from marginbayes.parameters.likelihood import MaximumLikelihood

__all__ = ["ConditionalLikelihood", "MaximumLikelihood", "ParameterLearner", "ParameterResult"]
