"""Grids of numbers: what a report shows, before it is written as HTML or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from marginbayes.study.records import Record

__all__ = ["APART", "MARKS", "Entry", "Grid", "Row", "entry"]

# Beyond which our number and a published one are marked as different.
APART = "the root of the sum of both squared half-widths (of ours alone where the paper prints none)"
# How a mark is written: on paper, and for some eyes, a colour says nothing.
MARKS = {"": "", "above": " ↑", "below": " ↓"}


@dataclass(frozen=True)
class Entry:
    """Our number in a place of a grid, the published one, and the records behind ours.

    Parameters
    ----------
    text, published : str
        As they are shown; nothing where there is none.
    records : sequence of sequences of Record
        What our number comes from; for a pair of methods, the records of each.
    value : float or None
        By which a column is sorted, where the text does not begin with it.
    difference : str
        Ours minus the published number.
    mark : str
        Whether ours is above or below a published number, by more than their intervals explain.
    """

    text: str = ""
    published: str = ""
    records: Sequence[Sequence[Record]] = ()
    value: float | None = None
    difference: str = ""
    mark: Literal["", "above", "below"] = ""


@dataclass(frozen=True)
class Row:
    """Entries with the names before them; `mean` where the row sums up others."""

    names: tuple[str, ...]
    entries: tuple[Entry, ...]
    mean: bool = False


@dataclass(frozen=True)
class Grid:
    """Rows under a head, with a title (or none) and a sentence that says what the numbers are."""

    title: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def entries(self) -> list[Entry]:
        """All entries, row by row."""
        return [e for row in self.rows for e in row.entries]


def entry(text: str, records: Iterable[Record], published: str = "", value: float | None = None) -> Entry:
    """An entry whose number comes from these records."""
    return Entry(text, published, (tuple(records),), value)
