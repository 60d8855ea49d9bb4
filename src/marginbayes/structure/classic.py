"""Structures that need no search: naive Bayes, the tree-augmented network, and one that is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.graph.branching import maximum_branching
from marginbayes.graph.tree import maximum_spanning_forest
from marginbayes.scores.information import conditional_mutual_information
from marginbayes.structure.base import StructureLearner, StructureResult
from marginbayes.structure.constraints import Constraints, Rules

__all__ = ["ChowLiuTAN", "Fixed", "NaiveBayes"]


class NaiveBayes(StructureLearner):
    """The class is the only parent of every feature.

    Parameters
    ----------
    constraints : Constraints or None, default=None
        Only features that must be dropped can make a difference.
    """

    def __init__(self, constraints: Constraints | None = None) -> None:
        self.constraints = constraints

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:  # noqa: ARG002
        """Naive Bayes over the schema's names."""
        rules = Constraints.given(self.constraints).compile(schema.names, k=0)
        return StructureResult(_with_class(schema, rules, [-1] * (len(schema.names) - 1)))


class ChowLiuTAN(StructureLearner):
    """Tree-augmented naive Bayes by conditional mutual information (Friedman, Geiger & Goldszmidt 1997).

    The maximum-weight spanning tree over I(X_i; X_j | C), directed away from a root, and the class on top of every
    feature. An edge without any information is left out, so constant features stay alone. Ties go to the smaller index.

    Cost: one pass over the rows for all d(d-1)/2 pairs, then O(d^2).

    Parameters
    ----------
    root : str or None, default=None
        Name of the feature that has no feature as parent; the first one by default. Constraints may not say otherwise.
    constraints : Constraints or None, default=None
        With constraints the tree is the best directed forest that obeys them (Edmonds), and the root follows from it.
    """

    counts_pairs = True

    def __init__(self, root: str | None = None, constraints: Constraints | None = None) -> None:
        self.root = root
        self.constraints = constraints

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """TAN for these rows."""
        return StructureResult(self.from_information(schema, conditional_mutual_information(rows)))

    def from_information(self, schema: Schema, information: NDArray[np.float64]) -> Dag:
        """TAN from the matrix of conditional mutual information."""
        rules = Constraints.given(self.constraints).compile(schema.names, k=1)
        root = self._root(schema.names, rules)
        if self.constraints is None:
            parents = maximum_spanning_forest(information, root or 0)
        else:
            parents = _best_forest(information, rules, root)
        return _with_class(schema, rules, parents)

    def _root(self, names: tuple[str, ...], rules: Rules) -> int | None:
        """Place of the root among the features, if there is one to obey."""
        if self.root is None:
            return None
        if str(self.root) not in names[1:]:
            listed = ", ".join(map(repr, names[1:]))
            raise ValueError(f"root={self.root!r} is not a feature; the features are {listed}")
        root = names.index(str(self.root))
        if root in rules.dropped:
            raise ValueError(f"root={self.root!r} takes no part: the constraints forbid its edge from the class")
        for parent in rules.required[root]:
            raise ValueError(
                f"root={self.root!r} has no feature as parent, but the constraints require "
                f"{names[parent]!r} -> {self.root!r}; leave out one of them"
            )
        return root - 1


def _with_class(schema: Schema, rules: Rules, parents: Sequence[int]) -> Dag:
    """The graph with at most one feature parent each (-1: none) and the class on top of all that are not dropped."""
    own: list[tuple[int, ...]] = [(0,) if p < 0 else (0, p + 1) for p in parents]
    return Dag(schema.names, ((), *(() if i in rules.dropped else pa for i, pa in enumerate(own, start=1))))


def _best_forest(information: NDArray[np.float64], rules: Rules, root: int | None) -> list[int]:
    """Directed forest of greatest information that obeys the rules."""
    weights = np.where(rules.allowed[1:, 1:], information, -np.inf)
    gone = [i - 1 for i in rules.dropped]
    weights[gone, :] = weights[:, gone] = -np.inf
    if root is not None:
        weights[:, root] = -np.inf
    for child, required in enumerate(rules.required[1:]):
        for parent in required:
            # More than all else together: such an edge is never given up, and excludes the child's other parents.
            weights[parent - 1, child] = 1.0 + 2.0 * information.sum()
    return maximum_branching(weights)


class Fixed(StructureLearner):
    """A structure that is given: only its parameters are learned.

    Parameters
    ----------
    dag : Dag
        Over the class and the features, by name, in any order; y must be called as the class is, or have no name. Naive
        Bayes over fewer features (selective naive Bayes) is a graph in which the others have no edge: they are ignored.
    """

    def __init__(self, dag: Dag) -> None:
        self.dag = dag

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:  # noqa: ARG002
        """The given graph, in the order of the schema."""
        try:
            return StructureResult(self.dag.reindexed(schema.names))
        except ValueError as error:
            target = schema.target.name
            if target in self.dag.names:
                raise
            raise ValueError(f"{error}; y, called {target!r}, must have the name of the class in the graph") from None
