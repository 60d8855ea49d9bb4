"""Structure learners: from rows to a graph."""

from marginbayes.structure.base import Step, StructureLearner, StructureResult
from marginbayes.structure.classic import ChowLiuTAN, Fixed, NaiveBayes
from marginbayes.structure.constraints import Constraints
from marginbayes.structure.dependency import DependencyAnalysis
from marginbayes.structure.exact.learner import ExactMargin
from marginbayes.structure.exact.score import ExactScore
from marginbayes.structure.exact.tuning import TunedMargin, TunedMarginResult
from marginbayes.structure.greedy import Greedy, SuperParent
from marginbayes.structure.kdb import KDB
from marginbayes.structure.localsearch import LocalSearch
from marginbayes.structure.names import STRUCTURE_NAMES, named_structure
from marginbayes.structure.orderbased import OrderBased
from marginbayes.structure.wrappers import BackwardJoin, ForwardJoin, SelectiveNaiveBayes

__all__ = [
    "KDB",
    "STRUCTURE_NAMES",
    "BackwardJoin",
    "ChowLiuTAN",
    "Constraints",
    "DependencyAnalysis",
    "ExactMargin",
    "ExactScore",
    "Fixed",
    "ForwardJoin",
    "Greedy",
    "LocalSearch",
    "NaiveBayes",
    "OrderBased",
    "SelectiveNaiveBayes",
    "Step",
    "StructureLearner",
    "StructureResult",
    "SuperParent",
    "TunedMargin",
    "TunedMarginResult",
    "named_structure",
]
