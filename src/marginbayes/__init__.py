"""Bayesian network classifiers that are learned to classify.

Names are loaded at their first use, so that `import marginbayes` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginbayes import datasets, parameters, scores, structure
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
_MODULES = ("datasets", "parameters", "scores", "structure")

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
    return sorted({*globals(), *__all__})
