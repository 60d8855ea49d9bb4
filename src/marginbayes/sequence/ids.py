"""Which rows are one sequence: ids, row by row, of any type; the rows of a sequence keep their order in the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.frame import Column, Frame, LevelColumn, as_array, read_frame

__all__ = ["Chains", "chains_of", "id_column", "separate_ids"]

Integers = NDArray[np.int64]
# Whole numbers from here on are not all different as floats.
EXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class Chains:
    """Rows arranged by sequence: `order` takes rows of the table, `offsets` bound the sequences.

    Examples
    --------
    >>> chains = chains_of(np.array(["b", "a", "b"]), 3)
    >>> chains.order.tolist(), chains.offsets.tolist()
    ([1, 0, 2], [0, 1, 3])
    """

    order: Integers
    offsets: Integers

    def back(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the arranged rows, in the order of the table."""
        result = np.empty_like(values)
        result[self.order] = values
        return result

    @property
    def chain_of_row(self) -> Integers:
        """Number of the sequence of each row of the table."""
        return self.back(np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets)))


def chains_of(ids: Any, n_rows: int) -> Chains:
    """Rows with equal ids together, sequences in the order of their ids; without ids every row is its own sequence."""
    if ids is None:
        return Chains(np.arange(n_rows), np.arange(n_rows + 1))
    named = f"column {ids.name!r}, " if isinstance(ids, Column) else ""
    codes = _codes(ids if isinstance(ids, Column) else _as_column(ids), n_rows, named)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return Chains(order, np.append(starts, n_rows))


def _codes(column: Column, n_rows: int, named: str) -> NDArray[np.intp]:
    if isinstance(column, LevelColumn):
        codes = column.codes
    else:
        if (np.abs(column.values) >= EXACT).any():
            raise ValueError(
                f"{named}sequence ids of {EXACT:.0f} or more are not told apart as numbers; turn them into strings"
            )
        codes = np.unique(column.values, return_inverse=True)[1]
        codes[np.isnan(column.values)] = -1
    if len(codes) != n_rows:
        raise ValueError(f"sequence has {len(codes)} ids, but there are {n_rows} rows; give one id for each row")
    if (codes < 0).any():
        raise ValueError(f"{named}row {int(np.argmax(codes < 0))} (from 0) has no sequence id; give every row one")
    return codes


def _as_column(ids: Any) -> Column:
    array = as_array(ids) if isinstance(ids, Sequence) else np.asarray(ids)
    if array.ndim != 1:
        raise ValueError(f"sequence has the shape {array.shape}; give one id for each row")
    if array.dtype.kind in "iu":
        levels, codes = np.unique(array, return_inverse=True)
        return LevelColumn("sequence", tuple(levels.tolist()), codes)
    return read_frame(array[:, None]).column(0)


def id_column(sequence: Any, names: tuple[str, ...]) -> int | None:
    """Position of the column that holds the ids; None where there is none."""
    if sequence is None:
        return None
    if isinstance(sequence, str):
        if sequence not in names:
            raise ValueError(
                f"sequence={sequence!r} is no column of the table; it has {', '.join(map(repr, names[:8]))}"
            )
        return names.index(sequence)
    if isinstance(sequence, (int, np.integer)) and not isinstance(sequence, bool) and 0 <= sequence < len(names):
        return int(sequence)
    raise ValueError(f"sequence={sequence!r} must name a column of the table, or be its position")


def separate_ids(frame: Frame, sequence: Any) -> tuple[Frame, Column | None]:
    """The table without the column of ids, and that column."""
    at = id_column(sequence, frame.names)
    if at is None:
        return frame, None
    rest = [name for i, name in enumerate(frame.names) if i != at]
    if not rest:
        raise ValueError("the table has no column but that of the sequence ids; there is nothing to learn from")
    return frame.select(rest), frame.column(at)
