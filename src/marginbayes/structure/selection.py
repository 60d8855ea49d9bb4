"""How well nested structures classify rows that they were not learned from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.counts import family_counts
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.network.smoothing import log_table
from marginbayes.parameters.folds import accuracy

__all__ = ["held_out_rates"]


def held_out_rates(
    schema: Schema, dags: Sequence[Dag], train: Rows, test: Rows, smoothing: float, kind: str
) -> NDArray[np.float64]:
    """Share of the test rows that each graph classifies correctly, with tables from the training rows."""
    test = test.take(test.codes[0] < test.cardinalities[0])
    rates, tables = [], {}
    for dag in dags:
        families = [(*parents, child) for child, parents in enumerate(dag.parents)]
        new = [family for family in families if family not in tables]
        for family, counts in zip(new, family_counts(train, new) if new else [], strict=True):
            tables[family] = log_table(counts, kind, smoothing)
        network = Network(schema, dag, tuple(tables[family] for family in families))
        rates.append(accuracy(network.log_joint(test), test.codes[0], test.weights))
    return np.array(rates)
