"""Structures that need no search: naive Bayes, the tree-augmented network, and one that is given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.graph.tree import maximum_spanning_forest
from marginbayes.scores.information import conditional_mutual_information
from marginbayes.structure.base import StructureLearner, StructureResult

__all__ = ["ChowLiuTAN", "Fixed", "NaiveBayes"]


class NaiveBayes(StructureLearner):
    """The class is the only parent of every feature."""

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:  # noqa: ARG002
        """Naive Bayes over the schema's names."""
        return StructureResult(Dag.naive(schema.names))


class ChowLiuTAN(StructureLearner):
    """Tree-augmented naive Bayes by conditional mutual information (Friedman, Geiger & Goldszmidt 1997).

    The maximum-weight spanning tree over I(X_i; X_j | C), directed away from a root, and the class on top of every
    feature. An edge without any information is left out, so constant features stay alone. Ties go to the smaller index.

    Cost: one pass over the rows for all d(d-1)/2 pairs, then O(d^2).

    Parameters
    ----------
    root : str or None, default=None
        Name of the feature that has no feature as parent; the first one by default.
    """

    def __init__(self, root: str | None = None) -> None:
        self.root = root

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """TAN for these rows."""
        return StructureResult(self.from_information(schema, conditional_mutual_information(rows)))

    def from_information(self, schema: Schema, information: NDArray[np.float64]) -> Dag:
        """TAN from the matrix of conditional mutual information."""
        names = schema.names[1:]
        if self.root is not None and self.root not in names:
            raise ValueError(f"root={self.root!r} is not a feature; the features are {', '.join(map(repr, names))}")
        parents = maximum_spanning_forest(information, 0 if self.root is None else names.index(self.root))
        return Dag(schema.names, ((), *((0,) if p < 0 else (0, p + 1) for p in parents)))


class Fixed(StructureLearner):
    """A structure that is given: only its parameters are learned.

    Parameters
    ----------
    dag : Dag
        Over the class and the features, by name, in any order. Naive Bayes over fewer features (selective naive Bayes)
        is a graph in which the others have no edge: they are ignored.
    """

    def __init__(self, dag: Dag) -> None:
        self.dag = dag

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:  # noqa: ARG002
        """The given graph, in the order of the schema."""
        return StructureResult(self.dag.reindexed(schema.names))
