"""What multipliers of a record make of the objective, computed for many parts of it at a time.

Parts that are near each other in a record use multipliers that are near each other, which differ by few rows, and have
few options left. So what they ask for is computed together: one product of matrices for a block and class parents.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError
from marginbayes.verification.exact_margin_bound import Margins
from marginbayes.verification.exact_margin_packed import SETS, WHOLE, Record, Shares

__all__ = ["Linear", "LinearFunctions"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Top = tuple[int, ...]

# Bytes of blocks, of values of their first multipliers, and of what class parents add to all rows, that are kept.
BLOCK_BYTES, FIRST_BYTES, BASE_BYTES = 1 << 29, 1 << 27, 1 << 28
# Numbers of a matrix of multipliers that is made at a time.
AT_ONCE = 1 << 22


class Linear(NamedTuple):
    """Sums over options that bound soft margins: a constant, and a value [feature, option], for each that was asked."""

    constants: Floats
    values: Floats

    def only(self, which: Ints | list[int]) -> Linear:
        """Some of them."""
        return Linear(self.constants[which], self.values[which])


class LinearFunctions:
    """For multipliers and class parents: a constant, and a value for each feature and option."""

    def __init__(self, record: Record, margins: Margins, tops: Sequence[Top]) -> None:
        self.record, self.margins, self.tops = record, margins, tops
        self._weight = float(margins.weights.sum())
        self._blocks, self._firsts, self._bases = (_Recent(most) for most in (BLOCK_BYTES, FIRST_BYTES, BASE_BYTES))
        self._unread = set(range(-(-record.sets // SETS)))

    def of(self, positions: Ints, problems: Ints, options: Flags) -> Linear:
        """For multipliers that the record has and problems; values are right for options that are there."""
        out = Linear(np.empty(len(positions)), np.zeros(options.shape))
        order = np.lexsort((positions, problems, positions // SETS))
        changes = (np.diff(positions[order] // SETS) != 0) | (np.diff(problems[order]) != 0)
        for own in np.split(order, np.flatnonzero(changes) + 1):
            number = int(positions[own[0]] // SETS)
            which, line = np.unique(positions[own] - SETS * number, return_inverse=True)
            block, columns = self._block(number), np.flatnonzero(options[own].any(axis=0))
            out.constants[own] = self._constants(_some(block, which), int(problems[own[0]]))[line]
            first, others = self._first(number), _some(block, np.union1d(which, [0]))
            values = first[columns] + self._differences(others, columns)[-len(which) :]
            out.values.reshape(len(positions), -1)[own[:, None], columns] = values[line]
        if not (np.isfinite(out.constants).all() and np.isfinite(out.values).all()):
            raise CertificateError("the multipliers of a part of the record bound nothing")
        return out

    def read_all(self) -> None:
        """Read what nobody asked for, too: a damaged record is refused."""
        for number in sorted(self._unread):
            self._block(number)

    def _first(self, number: int) -> Floats:
        """Values of the first multipliers of a block."""
        found: Floats | None = self._firsts.get(number)
        if found is None:
            one, margins = _some(self._block(number), np.zeros(1, np.int64)), self.margins
            found = margins.values(one.rows, self._amounts(one), np.arange(margins.n * (margins.n + 2)))
            self._firsts.put(number, found, found.nbytes)
        return found

    def _differences(self, shares: Shares, columns: Ints) -> Floats:
        """By how much values of sets of multipliers differ from those of the first, with which few rows differ."""
        amounts, count = self._amounts(shares), len(shares.sizes)
        there = np.zeros(self.margins.n_rows, bool)
        there[shares.rows] = True
        rows, column = np.flatnonzero(there), (np.cumsum(there) - 1)[shares.rows]
        line = np.repeat(np.arange(count), shares.sizes)
        total = np.zeros((count, len(columns)))
        step = max(1, AT_ONCE // count)
        for begin in range(0, len(rows), step):
            here = slice(None) if step >= len(rows) else np.flatnonzero((column >= begin) & (column < begin + step))
            own = rows[begin : begin + step]
            matrix = np.zeros((count, len(own)))
            matrix[line[here], column[here] - begin] = amounts[here]
            matrix -= matrix[0].copy()
            differs = np.flatnonzero(matrix.any(axis=0))
            total += self.margins.values(own[differs], matrix[:, differs], columns)
        return total

    def _constants(self, shares: Shares, problem: int) -> Floats:
        """What is not used of the weights, all of which shares leave something of, and what class parents add."""
        base = self._bases.get(problem)
        if base is None:
            base = self.margins.base(self.tops[problem])
            self._bases.put(problem, base, base.nbytes)
        amounts, line = self._amounts(shares), np.repeat(np.arange(len(shares.sizes)), shares.sizes)
        used, added = (np.bincount(line, amounts * each, len(shares.sizes)) for each in (1.0, base[shares.rows]))
        return np.asarray(self.margins.gamma * (self._weight - used) + added)

    def _amounts(self, shares: Shares) -> Floats:
        return np.asarray(self.margins.weights[shares.rows // max(self.margins.rivals, 1)] * (shares.shares / WHOLE))

    def _block(self, number: int) -> Shares:
        found: Shares | None = self._blocks.get(number)
        if found is None:
            sizes, rows, shares = read = self.record.block(number)
            _check_shares(read, self.margins)
            found = Shares(sizes, rows.astype(np.int32), shares.astype(np.int32))
            self._blocks.put(number, found, found.rows.nbytes + found.shares.nbytes)
            self._unread.discard(number)
        return found


def _some(block: Shares, which: Ints) -> Shares:
    """Some of the sets of a block, in ascending order."""
    if len(which) == len(block.sizes):
        return block
    asked = np.zeros(len(block.sizes), bool)
    asked[which] = True
    entries = np.repeat(asked, block.sizes)
    return Shares(block.sizes[which], block.rows[entries], block.shares[entries])


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
