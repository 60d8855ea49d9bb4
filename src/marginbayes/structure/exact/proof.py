"""The record of a search from which its bound can be checked: how the structures were divided, and why parts closed.

Every part of the search has a set of options for each feature. A part is divided by some options of one feature: one
piece takes one of them, the other none. Options may also be taken out of a part (a "fix") with multipliers whose bound,
with that feature confined to those options, shows that nothing good is lost. A part that is not divided is closed by
multipliers too; if it is listed, structures that they do not bound were looked at one by one. The largest bound over
all fixes and all parts that are not divided is the bound of the whole.

Searches have millions of parts, so that the record is made of columns, not of objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import Multipliers
from marginbayes.structure.exact.packing import Column, MultiplierBlocks, texts

__all__ = ["Proof", "Subtree"]

Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

FORMAT = "packed-1"
COLUMNS = (
    "parent", "taken", "feature", "inside", "closed", "listed", "fix_part", "fix_feature", "fix_options", "fix_by",
)  # fmt: skip
# Rough size in memory of what is remembered about multipliers that somebody holds.
KNOWN_BYTES = 300


class Subtree(NamedTuple):
    """What a search below a part made. Its own parts and multipliers count from 0.

    -1 is the part that it began with, or the multipliers that were given for that.
    """

    parent: Int32s
    taken: Flags
    feature: Int32s
    inside: Flags  # [part, option]: those that the division is by
    fix_part: Int32s
    fix_feature: Int32s
    fix_options: Flags  # [fix, option]
    fix_by: Int32s
    closed_part: Int32s
    closed_by: Int32s
    closed_listed: Flags
    start: Int64s  # of the rows of each multipliers, and the end
    rows: Int32s
    shares: Int32s


class Proof:
    """Parts in the order in which they were made; part p came from `parent[p]` (-1: a whole problem).

    A division is by the options `inside` of a `feature`, which `taken` says is confined to them, or loses them. Of a
    whole problem, `feature` is the position of its class parents. `closed` are the multipliers of a part that is not
    divided, else -1. Sets of options are packed, eight to a byte.
    """

    def __init__(self, n_options: int = 0) -> None:
        self._n_options = n_options
        self.parent, self.feature, self.closed, self.listed = (_numbers() for _ in range(4))
        self.fix_part, self.fix_feature, self.fix_by = (_numbers() for _ in range(3))
        self.taken = Column(np.empty(0, bool))
        self.inside, self.fix_options = (Column(np.empty((0, -(-n_options // 8)), np.uint8)) for _ in range(2))
        self.multipliers = MultiplierBlocks()
        self._known: WeakKeyDictionary[Multipliers, int] = WeakKeyDictionary()

    @property
    def bytes(self) -> int:
        """Memory in use, roughly."""
        columns: int = sum(getattr(self, name).nbytes for name in COLUMNS)
        return columns + self.multipliers.nbytes + KNOWN_BYTES * len(self._known)

    def add(self, parent: int, slots: tuple[int, ...], taken: bool) -> int:
        """A new part, by slots (feature * number of options + option); its number comes back."""
        inside = np.zeros(self._n_options, bool)
        if parent < 0:
            [feature] = slots
        else:
            feature, options = slots[0] // self._n_options, [slot % self._n_options for slot in slots]
            inside[options] = True
        self.parent.append(parent)
        self.taken.append(taken)
        self.feature.append(feature)
        self.inside.append(_packed(inside))
        self.closed.append(-1)
        return len(self.parent) - 1

    def fix(self, part: int, gone: Flags, multipliers: Multipliers) -> None:
        """Options [feature, option] are taken out of a part, which these multipliers allow."""
        features = np.flatnonzero(gone.any(axis=1))
        by = self.position(multipliers) if len(features) else -1
        for feature, options in zip(features.tolist(), _packed(gone[features]), strict=True):
            self.fix_part.append(part)
            self.fix_feature.append(feature)
            self.fix_options.append(options)
            self.fix_by.append(by)

    def close(self, part: int, multipliers: Multipliers, listed: bool = False) -> None:
        """These multipliers bound what the part holds, or all but a few structures that were looked at."""
        self.closed[part] = self.position(multipliers)
        if listed:
            self.listed.append(part)

    def extend(self, part: int, given: Multipliers, subtree: Subtree) -> int:
        """Take over all that a search below a part made; the number of its first own part comes back."""
        new = subtree
        begun_with = min(new.fix_by.min(initial=0), new.closed_by.min(initial=0)) < 0
        given_place = self.position(given) if begun_with else -1
        first, place = len(self.parent), len(self.multipliers)

        def numbered(own: Int32s, begin: int, outer: int) -> Int32s:
            return np.where(own < 0, outer, own + begin).astype(np.int32)

        self.parent.extend(numbered(new.parent, first, part))
        self.taken.extend(new.taken)
        self.feature.extend(new.feature)
        self.inside.extend(_packed(new.inside))
        self.closed.extend(np.full(len(new.parent), -1, np.int32))
        self.fix_part.extend(numbered(new.fix_part, first, part))
        self.fix_feature.extend(new.fix_feature)
        self.fix_options.extend(_packed(new.fix_options))
        self.fix_by.extend(numbered(new.fix_by, place, given_place))
        closed = numbered(new.closed_part, first, part)
        self.closed.array[closed] = numbered(new.closed_by, place, given_place)
        self.listed.extend(closed[new.closed_listed])
        self.multipliers.extend(new.start, new.rows, new.shares)
        return first

    def position(self, multipliers: Multipliers) -> int:
        """Place of multipliers in the record; while somebody holds them, they are kept once."""
        known = self._known.get(multipliers)
        if known is None:
            known = self._known[multipliers] = len(self.multipliers)
            self.multipliers.append(multipliers)
        return known

    def known(self, multipliers: Multipliers) -> int:
        """Place of multipliers in the record, or -1 where it has none."""
        return self._known.get(multipliers, -1)

    def remember(self, multipliers: Multipliers, place: int) -> None:
        """These multipliers are in the record, there."""
        self._known[multipliers] = place

    def at(self, place: int) -> Multipliers:
        """The multipliers there, from now on known to be there."""
        found = self.multipliers[place]
        self.remember(found, place)
        return found

    def evidence(self) -> Mapping[str, Any]:
        """The record as JSON values."""
        return _Evidence(self)

    # -- in a file

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The record as arrays."""
        blocks = self.multipliers.blocks
        columns = {name: getattr(self, name).array for name in COLUMNS}
        loose = {f"loose_{name}": getattr(self.multipliers, name).array for name in ("sizes", "rows", "shares")}
        return {
            **columns,
            **loose,
            "n_options": np.array(self._n_options),
            "blocks": np.frombuffer(b"".join(blocks), np.uint8),
            "block_sizes": np.array([len(block) for block in blocks], np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Proof:
        """The record that gave these arrays."""
        proof = cls(int(arrays["n_options"]))
        for name in COLUMNS:
            setattr(proof, name, Column(arrays[name]))
        for name in ("sizes", "rows", "shares"):
            setattr(proof.multipliers, name, Column(arrays[f"loose_{name}"]))
        ends = np.cumsum(arrays["block_sizes"])
        whole = arrays["blocks"].tobytes()
        proof.multipliers.blocks = [
            whole[end - size : end] for size, end in zip(arrays["block_sizes"].tolist(), ends.tolist(), strict=True)
        ]
        return proof


class _Evidence(Mapping[str, Any]):
    """A record as JSON values, which are made when somebody asks: packing a small one takes as long as its search."""

    def __init__(self, proof: Proof) -> None:
        self._proof = proof

    @cached_property
    def _values(self) -> dict[str, Any]:
        kept = self._proof.multipliers
        columns = {name: texts(getattr(self._proof, name).array) for name in COLUMNS}
        sets = {"sets": len(kept), "multipliers": kept.texts()}
        return {"format": FORMAT, **columns, **sets}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._values,)


def _numbers() -> Column:
    return Column(np.empty(0, np.int32))


def _packed(options: Flags) -> Bytes:
    """Sets of options, eight to a byte, option o being bit o."""
    return np.packbits(options, axis=-1, bitorder="little")
