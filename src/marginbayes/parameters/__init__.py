"""Parameter learners: from a graph and rows to a network."""

from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.likelihood import MaximumLikelihood

__all__ = ["MaximumLikelihood", "ParameterLearner", "ParameterResult"]
