"""A table of a network as rows that are looked up by the cells of its members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Lookup"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lookup:
    """A table as (assignments of its members x target levels), and the stride of each member in its rows."""

    members: tuple[int, ...]
    strides: tuple[int, ...]
    table: Floats

    @classmethod
    def of(cls, members: Sequence[int], table: Floats, cardinalities: Sequence[int]) -> Lookup:
        """From a table with one axis for each member and the target's last; a level 0 for missing cells is added."""
        return cls._arranged(members, np.pad(table, [(0, 1)] * len(members) + [(0, 0)]), cardinalities)

    @classmethod
    def _arranged(cls, members: Sequence[int], table: Floats, cardinalities: Sequence[int]) -> Lookup:
        strides = np.cumprod([1, *(cardinalities[m] + 1 for m in members[:0:-1])])[::-1]
        return cls(tuple(members), tuple(map(int, strides)), np.ascontiguousarray(table.reshape(-1, table.shape[-1])))

    def index(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Row of the table for each row of the data."""
        index: NDArray[np.intp] = codes[self.members[0]].astype(np.intp)
        if self.strides[0] != 1:
            index *= self.strides[0]
        for member, stride in zip(self.members[1:], self.strides[1:], strict=True):
            index += codes[member] if stride == 1 else codes[member].astype(np.intp) * stride
        return index

    def cells_with(self, other: Lookup, cardinalities: Sequence[int]) -> float:
        """Assignments of the members of both."""
        return math.prod(float(cardinalities[m] + 1) for m in {*self.members, *other.members})

    def with_other(self, other: Lookup, cardinalities: Sequence[int]) -> Lookup:
        """The sum of both tables, over the members of both."""
        members = [*self.members, *(m for m in other.members if m not in self.members)]
        total = self._spread(members, cardinalities) + other._spread(members, cardinalities)
        return self._arranged(members, total, cardinalities)

    def _spread(self, members: Sequence[int], cardinalities: Sequence[int]) -> Floats:
        table = self.table.reshape(*(cardinalities[m] + 1 for m in self.members), -1)
        own = [m for m in members if m in self.members]
        table = table.transpose([*(self.members.index(m) for m in own), len(own)])
        return table.reshape(*(cardinalities[m] + 1 if m in self.members else 1 for m in members), -1)
