"""Whether the tables of a model fit into memory: said before they are made, by the name of the column to blame."""

from __future__ import annotations

import math
from collections.abc import Sequence

from marginbayes.data.schema import Schema
from marginbayes.graph import Dag

__all__ = ["check_all_pairs", "check_pairs", "check_tables"]

# Cells of all tables together: two gigabytes.
MOST_CELLS = 2**28


def check_tables(schema: Schema, dag: Dag) -> None:
    """Refuse the tables of a graph that fill the memory."""
    families = [(*parents, child) for child, parents in enumerate(dag.parents)]
    cells = [_cells(schema, family) for family in families]
    _check(schema, sum(cells), families[max(range(len(cells)), key=cells.__getitem__)])


def check_pairs(schema: Schema) -> None:
    """Refuse columns of which a table of two, in each class, fills the memory."""
    largest = sorted(range(1, len(schema.names)), key=schema.cardinalities.__getitem__)[-2:]
    _check(schema, _cells(schema, (0, *largest)), largest)


def check_all_pairs(schema: Schema) -> None:
    """Refuse columns whose levels, each against each in every class, fill the memory."""
    levels = sum(schema.cardinalities[1:])
    _check(schema, schema.cardinalities[0] * levels**2, range(1, len(schema.names)))


def _cells(schema: Schema, variables: Sequence[int]) -> int:
    return math.prod(schema.cardinalities[v] for v in variables)


def _check(schema: Schema, cells: int, variables: Sequence[int]) -> None:
    if cells > MOST_CELLS:
        worst = max(variables, key=schema.cardinalities.__getitem__)
        raise ValueError(
            f"the tables would have {cells:.2g} cells, because {schema.names[worst]!r} has "
            f"{schema.cardinalities[worst]} levels; leave it out if it is an identifier, else merge its levels, or use "
            "naive Bayes (structure='nb')"
        )
