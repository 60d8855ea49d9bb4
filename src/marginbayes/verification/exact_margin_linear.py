"""What multipliers of a record make of the objective, computed when it is asked for and kept for a while.

Nearby parts of a record use the same few multipliers, and multipliers that were made together are used together. So
once several of a block were asked for, all of the block are evaluated in one product of matrices.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError
from marginbayes.verification.exact_margin_bound import Margins
from marginbayes.verification.exact_margin_packed import SETS, WHOLE, Record, Shares

__all__ = ["LinearFunctions"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
Top = tuple[int, ...]

# Bytes of blocks, and of values, that are kept.
BLOCK_BYTES, VALUE_BYTES = 1 << 29, 1 << 29
CONSTANTS = 1 << 16
# Multipliers of a block that are evaluated one by one before all are at once, which takes as long as two or three.
ALONE = 2
# Numbers of a matrix of multipliers that is made at a time.
AT_ONCE = 1 << 22


class LinearFunctions:
    """For multipliers and class parents: a constant, and a value for each feature and option."""

    def __init__(self, record: Record, margins: Margins) -> None:
        self.record, self.margins = record, margins
        self._blocks = _Recent(BLOCK_BYTES)
        self._values = _Recent(VALUE_BYTES)
        self._constants: dict[tuple[int, Top], float] = {}
        self._alone: dict[int, int] = {}
        self._unread = set(range(-(-record.sets // SETS)))

    def of(self, position: int, top: Top) -> tuple[float, Floats]:
        """Constant and values, of multipliers that the record has."""
        values, constant = self._values_of(position), self._constants.get((position, top))
        if constant is None:
            constant = self._constant(*self._multipliers(position), top)
            if len(self._constants) >= CONSTANTS:
                self._constants.clear()
            self._constants[position, top] = constant
        return constant, values

    def read_all(self) -> None:
        """Read what nobody asked for, too: a damaged record is refused."""
        for number in sorted(self._unread):
            self._block(number)

    def _values_of(self, position: int) -> Floats:
        number, own = divmod(position, SETS)
        together = self._values.get((number, None))
        if together is not None:
            return np.asarray(together[own])
        alone = self._values.get((number, own))
        if alone is not None:
            return np.asarray(alone)
        self._alone[number] = self._alone.get(number, 0) + 1
        if self._alone[number] >= ALONE:
            del self._alone[number]
            found = self._evaluated(self._block(number))
            self._values.put((number, None), found, found.nbytes)
            return np.asarray(found[own])
        values = self._finite(self.margins.values(*self._multipliers(position)))
        self._values.put((number, own), values, values.nbytes)
        return values

    def _evaluated(self, block: Shares) -> Floats:
        """Values of all multipliers of a block: the first, and what the others differ by, which is mostly few rows."""
        amounts = self._amounts(block)
        rows, column = np.unique(block.rows, return_inverse=True)
        line = np.repeat(np.arange(len(block.sizes)), block.sizes)
        total = np.zeros((len(block.sizes), self.margins.n, self.margins.n + 2))
        step = max(1, AT_ONCE // len(block.sizes))
        for begin in range(0, len(rows), step):
            here = (column >= begin) & (column < begin + step)
            own = rows[begin : begin + step]
            matrix = np.zeros((len(block.sizes), len(own)))
            matrix[line[here], column[here] - begin] = amounts[here]
            first = matrix[0].copy()
            matrix -= first
            total += self.margins.values(own[first != 0.0], first[first != 0.0])
            differs = matrix.any(axis=0)
            total += self.margins.values(own[differs], matrix[:, differs])
        return self._finite(total)

    def _finite(self, values: Floats) -> Floats:
        if not np.isfinite(values).all():
            raise CertificateError("the multipliers of a part of the record bound nothing")
        return values

    def _constant(self, rows: Ints, multipliers: Floats, top: Top) -> float:
        margins = self.margins
        used = np.bincount(rows // max(margins.rivals, 1), multipliers, len(margins.weights))
        unused = float(np.maximum(0.0, margins.weights - used).sum())
        return margins.gamma * unused + float(multipliers @ margins.base(top)[rows])

    def _multipliers(self, position: int) -> tuple[Ints, Floats]:
        """Rows and multipliers."""
        number, own = divmod(position, SETS)
        block = self._block(number)
        end = int(block.sizes[: own + 1].sum())
        there = slice(end - int(block.sizes[own]), end)
        one = Shares(block.sizes[own : own + 1], block.rows[there], block.shares[there])
        return one.rows, self._amounts(one)

    def _amounts(self, block: Shares) -> Floats:
        return np.asarray(self.margins.weights[block.rows // max(self.margins.rivals, 1)] * (block.shares / WHOLE))

    def _block(self, number: int) -> Shares:
        found: Shares | None = self._blocks.get(number)
        if found is None:
            sizes, rows, shares = read = self.record.block(number)
            _check_shares(read, self.margins)
            found = Shares(sizes, rows.astype(np.int32), shares.astype(np.int32))
            self._blocks.put(number, found, found.rows.nbytes + found.shares.nbytes)
            self._unread.discard(number)
        return found


def _check_shares(block: Shares, margins: Margins) -> None:
    """Multipliers must not be negative, nor exceed the weight of a sample."""
    rows, shares = block.rows, block.shares
    if not len(rows):
        return
    if not 0 <= rows.min() <= rows.max() < margins.n_rows:
        raise CertificateError("multipliers belong to rows that there are not")
    line = np.repeat(np.arange(len(block.sizes)), block.sizes)
    place = line * margins.n_rows + rows
    if (shares < 0).any() or (np.diff(place) <= 0).any():
        raise CertificateError("multipliers are negative, or a row has two, or rows are out of order")
    sample = place // margins.rivals
    first = np.flatnonzero(np.diff(sample, prepend=-1))
    if (np.add.reduceat(shares, first) > WHOLE).any():
        raise CertificateError("multipliers exceed the weight of their sample")


class _Recent:
    """What was used last, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self.most, self.bytes = most, 0
        self._kept: OrderedDict[Any, tuple[Any, int]] = OrderedDict()

    def get(self, key: Any) -> Any:
        if key not in self._kept:
            return None
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def put(self, key: Any, value: Any, size: int) -> None:
        self._kept[key] = value, size
        self.bytes += size
        while self.bytes > self.most and len(self._kept) > 1:
            self.bytes -= self._kept.popitem(last=False)[1][1]
