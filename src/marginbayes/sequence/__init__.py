"""Labels of whole sequences, and several labels per row: maximum-margin networks over label vectors."""

from marginbayes.sequence.labeler import SequenceLabeler
from marginbayes.sequence.learners import (
    StructuredConditional,
    StructuredConvex,
    StructuredHybrid,
    StructuredLikelihood,
    StructuredMarkov,
    WeightLearner,
    WeightResult,
)
from marginbayes.sequence.metrics import sequence_accuracy, whole_sequence_scorer
from marginbayes.sequence.model import ChainExamples, ChainModel
from marginbayes.sequence.multilabel import MultiLabelClassifier
from marginbayes.sequence.tree import TreeExamples, TreeModel

__all__ = [
    "ChainExamples",
    "ChainModel",
    "MultiLabelClassifier",
    "SequenceLabeler",
    "StructuredConditional",
    "StructuredConvex",
    "StructuredHybrid",
    "StructuredLikelihood",
    "StructuredMarkov",
    "TreeExamples",
    "TreeModel",
    "WeightLearner",
    "WeightResult",
    "sequence_accuracy",
    "whole_sequence_scorer",
]
