"""Cells whose weights may be set to zero without loss: the reference level of every row of a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.parameters.design import Design

__all__ = ["redundant_cells"]


def redundant_cells(design: Design) -> NDArray[np.bool_]:
    """For each cell whether its weight may be zero: the others, jointly, can still give all scores of all rows.

    The cells of one assignment h of a child's parents (the class aside) add up to the indicator of h. Where an earlier
    family holds all these parents, its cells add up to the same indicator, so one cell of the child may go: its most
    frequent level, so that few cells are left in a row. Families in which some row lacks a member do not take part.
    """
    members = [[v for v in (*design.dag.parents[i], i) if v] for i in design.families]
    place = {v: k for k, v in enumerate(design.dag.order)}
    whole = np.array([(column >= 0).all() for column in design.cells.T])
    redundant = np.zeros(design.shape[0], bool)
    start = 0
    for f, i in enumerate(design.families):
        size = int(np.prod([design.cardinalities[v] for v in members[f]]))
        above = {v for v in design.dag.parents[i] if v}
        earlier = (
            g for g, j in enumerate(design.families) if place[j] < place[i] and whole[g] and above <= set(members[g])
        )
        if i and whole[f] and next(earlier, None) is not None:
            _drop(redundant[start : start + size], design.cells[:, f] - start, design.cardinalities[i])
        start += size
    return redundant


def _drop(redundant: NDArray[np.bool_], cells: NDArray[np.int32], levels: int) -> None:
    """Mark the most frequent level of the child for every assignment of its parents; the child's axis is the last."""
    counts = np.bincount(cells, minlength=len(redundant)).reshape(-1, levels)
    redundant.reshape(-1, levels)[np.arange(len(counts)), counts.argmax(axis=1)] = True
