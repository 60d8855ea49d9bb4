"""Structure learners: from rows to a graph."""

from marginbayes.structure.base import StructureLearner, StructureResult
from marginbayes.structure.classic import ChowLiuTAN, Fixed, NaiveBayes

__all__ = ["ChowLiuTAN", "Fixed", "NaiveBayes", "StructureLearner", "StructureResult"]
