"""Bayesian network classifiers that are learned to classify.

Names are loaded at their first use, so that `import marginbayes` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginbayes import data as data
    from marginbayes import datasets, parameters, scores, structure
    from marginbayes import estimators as estimators
    from marginbayes import evaluation as evaluation
    from marginbayes import graph as graph
    from marginbayes import network as network
    from marginbayes import plotting as plotting
    from marginbayes import report as report
    from marginbayes import sequence as sequence
    from marginbayes import solvers as solvers
    from marginbayes import study as study
    from marginbayes import verification as verification
    from marginbayes.data.discretize import MDLPDiscretizer
    from marginbayes.data.schema import Schema
    from marginbayes.estimators import AODEClassifier, BayesNetClassifier
    from marginbayes.graph import Dag
    from marginbayes.network import Network
    from marginbayes.sequence import MultiLabelClassifier, SequenceLabeler

__version__ = "0.1.0"

_HOME = {
    "AODEClassifier": "marginbayes.estimators",
    "BayesNetClassifier": "marginbayes.estimators",
    "Dag": "marginbayes.graph",
    "MDLPDiscretizer": "marginbayes.data.discretize",
    "MultiLabelClassifier": "marginbayes.sequence",
    "Network": "marginbayes.network",
    "Schema": "marginbayes.data.schema",
    "SequenceLabeler": "marginbayes.sequence",
}
# Everything that the reference describes; those that `from marginbayes import *` brings are in `__all__`.
_MODULES = (
    "data",
    "datasets",
    "estimators",
    "evaluation",
    "graph",
    "network",
    "parameters",
    "plotting",
    "report",
    "scores",
    "sequence",
    "solvers",
    "structure",
    "study",
    "verification",
)

__all__ = [
    "AODEClassifier",
    "BayesNetClassifier",
    "Dag",
    "MDLPDiscretizer",
    "MultiLabelClassifier",
    "Network",
    "Schema",
    "SequenceLabeler",
    "datasets",
    "parameters",
    "scores",
    "structure",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"marginbayes.{name}")
    else:
        raise AttributeError(f"module 'marginbayes' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
