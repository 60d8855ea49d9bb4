"""What the learners with certificates over one-hot rows share: rows in an order anyone can recompute, and evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbayes import checks
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.graph.renormalize import unmarried_parents
from marginbayes.network import Network
from marginbayes.network.likeliest import likeliest
from marginbayes.network.renormalize import renormalize
from marginbayes.parameters.design import Design
from marginbayes.solvers.coordinate import MarginRows

__all__ = [
    "as_network",
    "check_married",
    "check_normalize",
    "distinct_rows",
    "graph_evidence",
    "sparse",
    "subnormalised",
]

Floats = NDArray[np.float64]
NORMALIZE = ("likeliest", "plain")
LARGEST = 1e6


def distinct_rows(design: Design) -> MarginRows:
    """Distinct (label, cells), their weights summed, in lexicographic order: a number names the same row for all.

    Rows of weight zero are left out.
    """
    weighty = design.row_weights > 0
    if not weighty.all():
        labels, cells, row_weights = design.labels[weighty], design.cells[weighty], design.row_weights[weighty]
        design = replace(design, labels=labels, cells=cells, row_weights=row_weights)
    keys = np.ascontiguousarray(np.column_stack([design.labels, design.cells + 1]), dtype=">u4")
    # Big-endian bytes compare as the numbers do.
    bytes_of_rows = keys.view(np.dtype((np.void, keys.shape[1] * keys.itemsize))).reshape(-1)
    _, first, inverse = np.unique(bytes_of_rows, return_index=True, return_inverse=True)
    weights = np.bincount(inverse.reshape(-1), design.row_weights, minlength=len(first)).astype(np.float64)
    return MarginRows(np.ascontiguousarray(design.cells[first]), design.labels[first], weights, design.shape)


def graph_evidence(dag: Dag, design: Design) -> dict[str, Any]:
    """Parents and numbers of levels: what says which cell a row uses."""
    return {"parents": [list(p) for p in dag.parents], "cardinalities": list(design.cardinalities)}


def sparse(labels: NDArray[np.int64], multipliers: Floats) -> dict[str, Any]:
    """The multipliers of pairs (row, rival class) that are not zero; `multipliers` has the rivals' negated."""
    rivals = -multipliers
    rivals[np.arange(len(labels)), labels] = 0.0
    at, classes = np.nonzero(rivals > 0)
    return {"rows": at, "classes": classes, "values": rivals[at, classes]}


def check_normalize(normalize: str, smoothing: float) -> None:
    """Refuse a way to normalise that is not known, or that the smoothing does not allow."""
    checks.one_of("normalize", normalize, NORMALIZE)
    checks.not_negative("smoothing", smoothing)
    if normalize == "likeliest" and not smoothing > 0:
        raise ValueError(f"normalize='likeliest' needs smoothing={smoothing!r} to be positive; use normalize='plain'")


def check_married(learner: str, dag: Dag, subnormal: bool) -> None:
    """Refuse a graph whose tables could not be renormalised, by the names of the parents, unless that is wanted."""
    bad = unmarried_parents(dag)
    if bad is not None and not subnormal:
        raise ValueError(
            f"{learner} cannot give a normalised network: {bad[0]!r} and {bad[1]!r} are parents of {bad[2]!r} but not "
            "joined by an edge; join them, or ask for tables whose rows sum to less than one with subnormal=True"
        )


def as_network(
    schema: Schema, design: Design, weights: Floats, reference: Network, normalize: str
) -> tuple[Network, str]:
    """Network that decides as the weights do, normalised where that is possible, else subnormalised; and a status.

    The status is ``"finished"``, or ``"interrupted"`` where Ctrl-C ended the search for the likeliest.

    Families without the class, which decide nothing, are those of the reference. Weights beyond 1e6, which only
    separable rows bring about, are always renormalised plainly: sums over the features would drown in them.
    """
    dag, tables = design.dag, design.tables(weights, reference.tables)
    if unmarried_parents(dag) is not None:
        lowered = design.tables(subnormalised(design, weights), reference.tables)
        return Network(schema, dag, tuple(np.array(t) for t in lowered)), "finished"
    if normalize == "plain" or float(np.abs(weights).max(initial=0.0)) > LARGEST:
        return Network(schema, dag, tuple(renormalize(dag, tables))), "finished"
    found = likeliest(reference, tables)
    return Network(schema, dag, tuple(found.tables)), "interrupted" if found.interrupted else "finished"


def subnormalised(design: Design, weights: Floats) -> Floats:
    """The weights with one number taken from each family, so that no row of a table sums to more than one.

    Every class of a row loses the same amount, so no margin changes.
    """
    zeros = [np.zeros(1)] * len(design.dag.names)
    tables = design.tables(weights, zeros)
    for i in design.families:
        excess = float(logsumexp(tables[i], axis=-1).max())
        tables[i] = tables[i] - max(0.0, excess + 1e-12 * max(1.0, abs(excess)))
    return design.flatten(tables)
