"""The record of a search from which its bound can be checked: how the structures were divided, and why parts closed.

Every part of the search has a set of options for each feature. A part is divided by some options of one feature, its
slots (feature * number of options + option): one piece takes none of them, the other one. Options may also be taken out
of a part (a "fix") with multipliers whose bound, with that feature confined to those options, shows that nothing good
is lost. A part that is not divided is closed by multipliers too; if it is listed, structures that they do not bound
were looked at one by one. The largest bound over all fixes and all parts that are not divided is the bound of the
whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import Multipliers

__all__ = ["Fix", "Proof", "bits"]

Flags = NDArray[np.bool_]

# Rough size in memory of an entry of the record besides its multipliers.
ENTRY_BYTES = 200


@dataclass(frozen=True, eq=False)
class Fix:
    """Options of a feature that are taken out, and the multipliers that allow it."""

    feature: int
    options: Flags
    multipliers: Multipliers


@dataclass(eq=False)
class Proof:
    """Parts in the order in which they were made; part p came from `parent[p]` (-1: a whole problem)."""

    parent: list[int] = field(default_factory=list)
    slots: list[tuple[int, ...]] = field(default_factory=list)  # of a whole problem: the position of its class parents
    taken: list[bool] = field(default_factory=list)  # whether one of the slots is taken, or none
    fixes: list[list[tuple[int, int, int]]] = field(default_factory=list)  # (feature, options, multipliers)
    closed: list[int] = field(default_factory=list)  # multipliers of a part that is not divided, else -1
    listed: list[int] = field(default_factory=list)  # parts
    multipliers: list[Multipliers] = field(default_factory=list)
    bytes: int = 0
    _known: dict[int, int] = field(default_factory=dict)

    def add(self, parent: int, slots: tuple[int, ...], taken: bool) -> int:
        """A new part; its number comes back."""
        self.parent.append(parent)
        self.slots.append(slots)
        self.taken.append(taken)
        self.fixes.append([])
        self.closed.append(-1)
        self.bytes += ENTRY_BYTES
        return len(self.parent) - 1

    def fix(self, part: int, fixes: Iterable[Fix]) -> None:
        """Options are taken out of a part, one feature after the other."""
        for entry in fixes:
            self.fixes[part].append((entry.feature, bits(entry.options), self.position(entry.multipliers)))
            self.bytes += ENTRY_BYTES

    def close(self, part: int, multipliers: Multipliers, listed: bool = False) -> None:
        """These multipliers bound what the part holds, or all but a few structures that were looked at."""
        self.closed[part] = self.position(multipliers)
        if listed:
            self.listed.append(part)

    def adopt(self, multipliers: Iterable[Multipliers]) -> None:
        """Take over multipliers, in the order in which an earlier record had them."""
        for entry in multipliers:
            self.position(entry)
        self.bytes += ENTRY_BYTES * (len(self.parent) + sum(map(len, self.fixes)))

    def position(self, multipliers: Multipliers) -> int:
        """Place of multipliers in the record; they are kept once."""
        known = self._known.get(id(multipliers))
        if known is None:
            known = self._known[id(multipliers)] = len(self.multipliers)
            self.multipliers.append(multipliers)
            self.bytes += multipliers.bytes
        return known

    def evidence(self) -> dict[str, Any]:
        """The record as JSON values."""
        return {
            "parent": self.parent,
            "slots": [list(slots) for slots in self.slots],
            "taken": self.taken,
            "fixes": [[[f, hex(m), k] for f, m, k in part] for part in self.fixes],
            "closed": self.closed,
            "listed": self.listed,
            "multipliers": [m.text for m in self.multipliers],
        }


def bits(options: Flags) -> int:
    """A set of options as a number, option o being worth 2^o."""
    return int.from_bytes(np.packbits(options, bitorder="little").tobytes(), "little")
