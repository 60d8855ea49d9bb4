"""Tables of any size made a proper network with the same answers for complete rows (Guo et al. 2005, section 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbayes.graph import Dag
from marginbayes.graph.renormalize import unmarried_parents

__all__ = ["renormalize"]

Floats = NDArray[np.float64]


def renormalize(dag: Dag, tables: list[Floats]) -> list[Floats]:
    """Normalised log tables with the same P(class | features) for every complete row.

    From the leaves up, every row is scaled to sum to one, and its factor moves into the family of the parent that comes
    last in the topological order. That family holds all the other parents, because parents are joined; where they are
    not, there is no such family, and it is refused. A factor that does not depend on the class is dropped.

    Parameters
    ----------
    dag : Dag
    tables : list of arrays
        Log weights, shaped as the tables of a `Network`.
    """
    bad = unmarried_parents(dag)
    if bad is not None:
        raise ValueError(
            f"{bad[0]!r} and {bad[1]!r} are parents of {bad[2]!r} but not joined by an edge, so the tables cannot be "
            "renormalised without changing decisions"
        )
    tables = [np.array(t, np.float64) for t in tables]
    place = {v: k for k, v in enumerate(dag.order)}
    for i in reversed(dag.order):
        parents = dag.parents[i]
        factor = logsumexp(tables[i], axis=-1)
        tables[i] -= factor[..., None]
        if 0 in parents:
            heir = max(parents, key=lambda p: place[p])
            tables[heir] += _aligned(factor, parents, [*dag.parents[heir], heir])
    return tables


def _aligned(factor: Floats, own: tuple[int, ...], family: list[int]) -> Floats:
    """The factor's axes in the order of a family that holds them all, of length 1 elsewhere."""
    order = sorted(range(len(own)), key=lambda k: family.index(own[k]))
    lengths = dict(zip(own, factor.shape, strict=True))
    return factor.transpose(order).reshape([lengths.get(v, 1) for v in family])
