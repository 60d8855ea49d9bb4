"""Long columns of numbers, and many sets of multipliers, in little memory.

In a text of a column, numbers are differences to the one before, with the sign in the lowest bit; then come all their
first bytes, all second bytes and so on, which mostly makes runs of zeros; then zlib. Shares of multipliers that are
whole are many, and only marked; the others are as good as random, but for their first bits.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.bound import Multipliers

__all__ = ["Column", "MultiplierBlocks", "texts"]

Array = NDArray[Any]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]

# A share is so many parts of this.
WHOLE = 1 << 24
# Entries of a column in one text.
LINES = 1 << 18
# Sets of multipliers in one block. Few, as a block is unpacked whole for any of them.
SETS = 256
# Level of compression: there is much to write, and a better one makes it hardly shorter.
QUICK = 1
# By how much a column that is full grows, and how many single entries wait.
GROWTH, WAITING = 1.5, 1024


class Column:
    """An array that grows at its end; single entries wait in a list until there are many, or all are asked for."""

    def __init__(self, values: Array) -> None:
        self._room, self._used = values, len(values)
        self._loose: list[Any] = []

    def __len__(self) -> int:
        return self._used + len(self._loose)

    def __getitem__(self, place: int) -> Any:
        return self._room[place] if place < self._used else self._loose[place - self._used]

    def __setitem__(self, place: int, value: Any) -> None:
        if place < self._used:
            self._room[place] = value
        else:
            self._loose[place - self._used] = value

    @property
    def array(self) -> Array:
        """All entries; they can be changed in it until the column grows."""
        if self._loose:
            loose, self._loose = np.array(self._loose, self._room.dtype), []
            self.extend(loose)
        return self._room[: self._used]

    @property
    def nbytes(self) -> int:
        """Memory in use, but for the entries that wait."""
        return int(self._room.nbytes)

    def extend(self, values: Array) -> None:
        """Entries at the end."""
        before = self.array
        end = len(before) + len(values)
        if end > len(self._room):
            self._room = np.empty((max(64, end, int(GROWTH * len(self._room))), *values.shape[1:]), before.dtype)
            self._room[: len(before)] = before
        self._room[len(before) : end] = values
        self._used = end

    def append(self, value: Any) -> None:
        """One entry at the end."""
        self._loose.append(value)
        if len(self._loose) == WAITING:
            _ = self.array


class MultiplierBlocks:
    """Sets of multipliers in the order in which they came, all but the last few packed."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self._weighed = 0, 0  # how many blocks were counted, and their bytes
        self._last: tuple[int, tuple[Int32s, Int32s, Int32s]] | None = None
        self.clear()

    def clear(self) -> None:
        """Forget those that are not packed."""
        self.sizes, self.rows, self.shares = (Column(np.empty(0, np.int32)) for _ in range(3))

    def __len__(self) -> int:
        return SETS * len(self.blocks) + len(self.sizes)

    def __getitem__(self, place: int) -> Multipliers:
        block, own = divmod(place, SETS)
        sizes, rows, shares = self._block(block)
        end = int(sizes[: own + 1].sum())
        there = slice(end - int(sizes[own]), end)
        return Multipliers(rows[there].copy(), shares[there].copy())

    def _block(self, number: int) -> tuple[Int32s, Int32s, Int32s]:
        """Sizes, rows and shares; the block that was asked for last is at hand."""
        if number == len(self.blocks):
            return self.sizes.array, self.rows.array, self.shares.array
        if self._last is None or self._last[0] != number:
            self._last = number, _unpacked_sets(self.blocks[number])
        return self._last[1]

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        seen, total = self._weighed
        self._weighed = len(self.blocks), total + sum(len(block) for block in self.blocks[seen:])
        return self._weighed[1] + sum(column.nbytes for column in (self.sizes, self.rows, self.shares))

    def append(self, multipliers: Multipliers) -> None:
        """One more set."""
        self.sizes.append(len(multipliers.rows))
        self.rows.extend(multipliers.rows)
        self.shares.extend(multipliers.shares)
        self._pack_if_full()

    def extend(self, start: Int64s, rows: Int32s, shares: Int32s) -> None:
        """More sets, the k-th from start[k] to start[k + 1]; blocks do not depend on how many come at a time."""
        begin, count = 0, len(start) - 1
        while begin < count:
            end = min(count, begin + SETS - len(self.sizes))
            own = slice(start[begin], start[end])
            self.sizes.extend(np.diff(start[begin : end + 1]))
            self.rows.extend(rows[own])
            self.shares.extend(shares[own])
            self._pack_if_full()
            begin = end

    def _pack_if_full(self) -> None:
        if len(self.sizes) == SETS:
            self.blocks.append(self._packed())
            self.clear()

    def texts(self) -> list[str]:
        """All blocks for JSON."""
        loose = [self._packed()] if len(self.sizes) else []
        return [base64.b64encode(block).decode("ascii") for block in (*self.blocks, *loose)]

    def _packed(self) -> bytes:
        sizes, rows, shares = self.sizes.array, self.rows.array, self.shares.array
        gaps = _changes(rows)
        first = (np.cumsum(sizes) - sizes)[sizes > 0]
        gaps[first] = rows[first]
        is_whole = shares == WHOLE
        parts = (sizes, gaps, np.packbits(is_whole, bitorder="little"), shares[~is_whole])
        return zlib.compress(b"".join(_planes(part) for part in parts), QUICK)


def _unpacked_sets(block: bytes) -> tuple[Int32s, Int32s, Int32s]:
    raw = zlib.decompress(block)
    sizes = _from_planes(raw[: 4 * SETS])
    total = int(sizes.sum())
    middle, end = 4 * SETS + 4 * total, 4 * SETS + 4 * total + -(-total // 8)
    gaps = _from_planes(raw[4 * SETS : middle])
    is_whole = np.unpackbits(np.frombuffer(raw[middle:end], np.uint8), count=total, bitorder="little").astype(bool)
    shares = np.full(total, WHOLE, np.int32)
    shares[~is_whole] = _from_planes(raw[end:])
    rows = np.cumsum(gaps, dtype=np.int64)
    first = (np.cumsum(sizes) - sizes)[sizes > 0]
    rows -= np.repeat(rows[first] - gaps[first], sizes[sizes > 0])
    return sizes, rows.astype(np.int32), shares


def texts(column: Array) -> list[str]:
    """A column for JSON: numbers of 32 bits as differences, lines of bytes as they are."""
    return [base64.b64encode(zlib.compress(part, QUICK)).decode("ascii") for part in _parts(column)]


def _parts(column: Array) -> Iterator[bytes]:
    for begin in range(0, len(column), LINES):
        part = column[begin : begin + LINES]
        if part.dtype == np.int32:
            change = _changes(part)
            part = (change << 1) ^ (change >> 31)
        yield _planes(part)


def _changes(numbers: Int32s) -> Int32s:
    """The first number, and each other one less the one before."""
    change = numbers.copy()
    change[1:] -= numbers[:-1]
    return change


def _planes(part: Array) -> bytes:
    """All first bytes of the entries, all second ones, and so on."""
    lines = np.ascontiguousarray(part, part.dtype.newbyteorder("<")).view(np.uint8)
    return lines.reshape(len(part), -1).T.tobytes() if len(part) else b""


def _from_planes(raw: Any) -> Int32s:
    return np.ascontiguousarray(np.frombuffer(raw, np.uint8).reshape(4, -1).T).view("<i4").reshape(-1).astype(np.int32)
