"""Tables of any size made a proper network with the same answers for complete rows (Guo et al. 2005, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbayes.graph import Dag
from marginbayes.graph.renormalize import unmarried_parents

__all__ = ["aligned", "heir", "refuse_unmarried", "renormalize"]

Floats = NDArray[np.float64]


def renormalize(dag: Dag, tables: Sequence[Floats]) -> list[Floats]:
    """Normalised log tables with the same P(class | features) for every complete row.

    From the leaves up, every row is scaled to sum to one, and its factor moves into the family of the parent that comes
    last in the topological order. That family holds all the other parents, because parents are joined; where they are
    not, there is no such family, and it is refused. A factor that does not depend on the class is dropped.

    Many networks have these answers; `marginbayes.network.likeliest` finds the likeliest.

    Parameters
    ----------
    dag : Dag
    tables : sequence of arrays
        Log weights, shaped as the tables of a `Network`.
    """
    refuse_unmarried(dag)
    tables = [np.array(t, np.float64) for t in tables]
    for i in reversed(dag.order):
        factor = logsumexp(tables[i], axis=-1)
        tables[i] -= factor[..., None]
        left = logsumexp(tables[i], axis=-1)  # what rounding leaves of weights as large as 1e12
        tables[i] -= left[..., None]
        factor = factor + left
        if 0 in dag.parents[i]:
            to = heir(dag, i)
            tables[to] += aligned(factor, dag.parents[i], [*dag.parents[to], to])
    return tables


def refuse_unmarried(dag: Dag) -> None:
    """Raise unless the parents of each child of the class are joined."""
    bad = unmarried_parents(dag)
    if bad is not None:
        raise ValueError(
            f"{bad[0]!r} and {bad[1]!r} are parents of {bad[2]!r} but not joined by an edge, so the tables cannot be "
            "renormalised without changing decisions"
        )


def heir(dag: Dag, i: int) -> int:
    """The parent that comes last in the topological order; its family holds the other parents."""
    return max(dag.parents[i], key=dag.order.index)


def aligned(factor: Floats, own: tuple[int, ...], family: list[int]) -> Floats:
    """The factor's axes in the order of a family that holds them all, of length 1 elsewhere."""
    order = sorted(range(len(own)), key=lambda k: family.index(own[k]))
    lengths = dict(zip(own, factor.shape, strict=True))
    return factor.transpose(order).reshape([lengths.get(v, 1) for v in family])
