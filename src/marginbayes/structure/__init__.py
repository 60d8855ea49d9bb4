"""Structure learners: from rows to a graph."""

from marginbayes.structure.base import Step, StructureLearner, StructureResult
from marginbayes.structure.classic import ChowLiuTAN, Fixed, NaiveBayes
from marginbayes.structure.constraints import Constraints
from marginbayes.structure.greedy import Greedy, SuperParent
from marginbayes.structure.names import STRUCTURE_NAMES, named_structure
from marginbayes.structure.orderbased import OrderBased

__all__ = [
    "STRUCTURE_NAMES",
    "ChowLiuTAN",
    "Constraints",
    "Fixed",
    "Greedy",
    "NaiveBayes",
    "OrderBased",
    "Step",
    "StructureLearner",
    "StructureResult",
    "SuperParent",
    "named_structure",
]
