"""A 2-tree by conditional mutual information: the tree of TAN, and a second parent that is joined to the first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes import Dag
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph.tree import maximum_spanning_forest
from marginbayes.scores.information import conditional_mutual_information
from marginbayes.structure.base import StructureLearner, StructureResult

__all__ = ["TwoTree"]


class TwoTree(StructureLearner):
    """Graph in which each feature hangs on the class, its parent in the tree of TAN, and a feature joined to that.

    Features are placed column by column, parents before children; the second parent is, of those joined to the first
    and placed already, the one of greatest I(feature; second | class). As the parents of a feature are joined, tables
    of any size can be renormalised (Guo et al. 2005, Proposition 2), which k-dependence networks do not promise.
    """

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """2-tree for these rows."""
        return StructureResult(Dag(schema.names, ((), *_parents(conditional_mutual_information(rows)))))


def _parents(information: NDArray[np.float64]) -> list[tuple[int, ...]]:
    """Parents of each feature, as indices of variables (the class is 0)."""
    tree = maximum_spanning_forest(information, int(np.argmax(information.sum(axis=0))))
    joined: dict[int, list[int]] = {x: [] for x in range(len(tree))}
    parents: dict[int, tuple[int, ...]] = {}
    while len(parents) < len(tree):
        x = min(x for x, parent in enumerate(tree) if x not in parents and (parent < 0 or parent in parents))
        own = () if tree[x] < 0 else (tree[x],)
        if own and joined[own[0]]:
            own = (*own, max(joined[own[0]], key=lambda second: information[second, x]))
        for parent in own:
            joined[parent].append(x)
        joined[x] += own
        parents[x] = own
    return [(0, *(parent + 1 for parent in parents[x])) for x in range(len(tree))]
