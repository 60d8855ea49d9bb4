"""k-dependence Bayesian classifiers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.scores.information import conditional_mutual_information, mutual_information
from marginbayes.structure.base import StructureLearner, StructureResult
from marginbayes.structure.constraints import Constraints, Rules
from marginbayes.structure.engine import structure_dag

__all__ = ["KDB"]

Floats = NDArray[np.float64]


class KDB(StructureLearner):
    """k-dependence Bayesian classifier (Sahami 1996).

    The features are ordered by I(feature; class), the most informative first. Each has the class as parent and the k
    earlier features of greatest I(feature; earlier one | class); one without any such information is no parent. A
    required parent is placed before its children and counts as one of the k. Ties go to the smaller index.

    Cost: one pass over the rows for all d(d-1)/2 pairs, then O(d^2 log d). Nothing is searched, and no score is given.

    Parameters
    ----------
    k : int, default=2
        Most feature parents of a feature; 0 is naive Bayes.
    constraints : Constraints or None, default=None
        Edges that are required or forbidden.

    Examples
    --------
    >>> import numpy as np
    >>> from marginbayes.data import Rows, Schema, Variable
    >>> schema = Schema((Variable("y", (0, 1)), Variable("a", (0, 1)), Variable("b", (0, 1))))
    >>> codes = np.array([[0, 0, 1, 1, 1], [0, 1, 1, 1, 0], [0, 1, 1, 1, 0]], np.uint8)
    >>> KDB(k=1).learn(schema, Rows(codes, (2, 2, 2))).dag.edges
    (('y', 'a'), ('y', 'b'), ('a', 'b'))
    """

    counts_pairs = True

    def __init__(self, k: int = 2, constraints: Constraints | None = None) -> None:
        self.k = k
        self.constraints = constraints

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """k-dependence structure for these rows."""
        checks.whole("k", self.k)
        rules = Constraints.given(self.constraints).compile(schema.names, self.k)
        parents: list[tuple[int, ...] | None] = [(), *([None] * (len(schema.names) - 1))]
        order = _order(mutual_information(rows), rules)
        information = np.pad(conditional_mutual_information(rows), (1, 0))  # by index of the variables
        for place, child in enumerate(order):
            parents[child] = _chosen(child, order[:place], information[child], rules)
        return StructureResult(structure_dag(schema.names, parents))


def _order(alone: Floats, rules: Rules) -> list[int]:
    """The features that are not dropped, the most informative first, required parents before their children."""
    order = (np.argsort(-alone, kind="stable") + 1).tolist()
    return rules.parents_first([i for i in order if i not in rules.dropped])


def _chosen(child: int, earlier: list[int], information: Floats, rules: Rules) -> tuple[int, ...]:
    """The required parents, and the most informative earlier features up to k in all."""
    required = rules.required[child]
    allowed = [j for j in sorted(earlier) if rules.allowed[j, child] and j not in required and information[j] > 0]
    ranked = sorted(allowed, key=lambda j: -information[j])
    return (*required, *ranked[: rules.k - len(required)])
