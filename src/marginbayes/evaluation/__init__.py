"""Evaluation of classifiers: folds, metrics with intervals, and paired comparisons, all as values."""

from marginbayes.evaluation.compare import Comparison, compare
from marginbayes.evaluation.folds import Task, holdout, small_classes, stratified_tasks
from marginbayes.evaluation.run import Outcome, run
from marginbayes.evaluation.summary import Evaluation, Interval, summarise

__all__ = [
    "Comparison",
    "Evaluation",
    "Interval",
    "Outcome",
    "Task",
    "compare",
    "holdout",
    "run",
    "small_classes",
    "stratified_tasks",
    "summarise",
]
