"""When unnormalised tables can be made a Bayesian network without changing any decision (Guo et al. 2005, Prop. 2)."""

from __future__ import annotations

from itertools import combinations

from marginbayes.graph.dag import Dag

__all__ = ["is_renormalizable", "unmarried_parents"]


def unmarried_parents(dag: Dag) -> tuple[str, str, str] | None:
    """(parent, parent, child) where two parents of a child of the class are not joined; None if all are.

    Other families do not matter: what is left over when they are normalised does not depend on the class.
    """
    edges = {(p, c) for c, parents in enumerate(dag.parents) for p in parents}
    for child, parents in enumerate(dag.parents):
        if 0 not in parents:
            continue
        for a, b in combinations(parents, 2):
            if (a, b) not in edges and (b, a) not in edges:
                return dag.names[a], dag.names[b], dag.names[child]
    return None


def is_renormalizable(dag: Dag) -> bool:
    """Whether the parents of each child of the class are all joined to each other."""
    return unmarried_parents(dag) is None
