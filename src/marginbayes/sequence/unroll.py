"""A chain as an ordinary Bayesian network: as many slices as wanted, the same tables in each.

A label has one more level, the end, from the second slice on; after the end comes the end, and its observed children
have a level of their own for it. So every row of every table is proper, and a sequence of n positions is evidence on n
slices and the end in the label behind them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.schema import Schema, Variable
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.sequence.model import ChainModel

__all__ = ["END", "OUTSIDE", "unroll"]

Floats = NDArray[np.float64]

END, OUTSIDE = "(end)", "(outside)"


def unroll(model: ChainModel, weights: Floats, schema: Schema, length: int) -> Network:
    """Network of `length` slices, and the label behind them, whose end says that the sequence has that length."""
    checks.whole("length", length, 1)
    slices = _Slices(model, weights, schema)
    for t in range(1, length + 1):
        slices.add_label(t)
        for j in range(len(model.children)):
            slices.add_child(t, j)
    slices.add_label(length + 1)
    return slices.network()


class _Slices:
    """Variables, parents and tables, slice by slice."""

    def __init__(self, model: ChainModel, weights: Floats, schema: Schema) -> None:
        self.model, self.schema = model, schema
        self.start, self.steps, self.emission = model.tables(weights)
        self.variables: list[Variable] = []
        self.parents: list[tuple[int, ...]] = []
        self.tables: list[Floats] = []
        self.place: dict[int, int] = {}

    def add_label(self, t: int) -> None:
        """The label of slice t, with the end among its levels unless it is the first."""
        target, before = self.schema.target, range(max(1, t - self.model.order), t)
        levels = target.levels if t == 1 else (*target.levels, _unused(END, target.levels))
        self.place[t] = len(self.variables)
        self._add(f"{target.name}[{t}]", levels, tuple(self.place[k] for k in before), self._label_table(t))

    def _label_table(self, t: int) -> Floats:
        """P(label | labels before it); the end is followed by the end."""
        n = self.model.n_labels
        if t == 1:
            return self.start
        if t == 2 or self.model.order == 1:
            return self.steps[:n] if t == 2 else _with_end_row(self.steps[:n])
        table = np.stack([_with_end_row(pairs) for pairs in self.steps[n:].reshape(n, n, n + 1)])
        return table if t == 3 else np.concatenate([table, _only_last((1, *table.shape[1:]))])

    def add_child(self, t: int, j: int) -> None:
        """Child j of the label of slice t."""
        feature, shift = self.model.children[j]
        variable, first = self.schema.features[feature], self.model.first_cells[j]
        levels = tuple(variable.levels)
        levels = (*levels, _unused(OUTSIDE, levels)) if shift else levels
        table = self.emission[first : first + len(levels)].T
        if t > 1:
            levels = (*levels, _unused(END, levels))
            table = _with_end_row(np.column_stack([table, np.full(len(table), -np.inf)]))
        at = f"{t}{shift:+d}" if shift else f"{t}"
        self._add(f"{variable.name}[{at}]", levels, (self.place[t],), table)

    def _add(self, name: str, levels: tuple[Hashable, ...], parents: tuple[int, ...], table: Floats) -> None:
        self.variables.append(Variable(name, levels, origin="slice of a chain"))
        self.parents.append(parents)
        self.tables.append(table)

    def network(self) -> Network:
        """All slices as one network."""
        names = tuple(v.name for v in self.variables)
        return Network(Schema(tuple(self.variables)), Dag(names, tuple(self.parents)), tuple(self.tables))


def _with_end_row(table: Floats) -> Floats:
    return np.concatenate([table, _only_last((1, table.shape[1]))])


def _only_last(shape: tuple[int, ...]) -> Floats:
    """Log table in which the last level is certain."""
    table = np.full(shape, -np.inf)
    table[..., -1] = 0.0
    return table


def _unused(name: str, levels: Iterable[Hashable]) -> str:
    taken = set(levels)
    while name in taken:
        name += "_"
    return name
