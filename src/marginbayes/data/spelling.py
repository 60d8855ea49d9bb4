"""Columns that may be categories only because of how their numbers are written."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.frame import as_float

__all__ = ["CODE", "Doubt", "doubt_of", "fault_of"]

# What programs do not write for a number: zeros in front, or a whole number before an exponent without a sign.
CODE = r"\s*(?:0\d+|\d+[eE]\d+)\s*"
# A number that is known to lie beyond a limit only, such as <0.5, >=100 or 90+.
BELOW, ABOVE = r"\s*(?:<|≤|=<)=?\s*(.+)", r"\s*(?:>|≥|=>)=?\s*(.+)|(.+?)\s*\+\s*"
MARKS = {".": "point", ",": "comma"}
# A column of fewer levels is a category; one is nearly numeric with at most such a share of other cells.
MANY_LEVELS, FEW_TEXTS = 5, 0.3


@dataclass(frozen=True)
class Doubt:
    """Why a column that looks like numbers is a category, what to do about it, and the decimal point it has, if so.

    `besides` is what has to be done whichever way the numbers become readable, `share` that of the cells which are no
    numbers in any way, and `unread` are the levels that are none as they are.
    """

    reason: str
    remedy: str
    decimal: str | None = None
    besides: str = ""
    share: float = 0.0
    unread: tuple[int, ...] = ()

    def sentence(self, name: str, *other: str) -> str:
        """What to tell of the column of this name; `other` remedies come first."""
        remedies = self.remedies(*other)
        return f"{name!r} is taken for a category because {self.reason}; {remedies}, and it is cut like a number"

    def remedies(self, *other: str) -> str:
        """All that has to be done, `other` ways first."""
        return " or ".join((*other, self.remedy)) + (f", and {self.besides}" if self.besides else "")


@dataclass(frozen=True)
class _Writing:
    """A way to write numbers: their decimal point, and whether the other mark stands between thousands."""

    decimal: str
    grouped: bool = False

    @property
    def other(self) -> str:
        return "," if self.decimal == "." else "."

    def number(self, level: Any) -> float | None:
        """The number that a level is or spells; None where it is none, as infinity and NaN."""
        if isinstance(level, (bool, np.bool_)) or not isinstance(level, (str, Real)):
            return None
        try:
            value = as_float(self._plain(level) if isinstance(level, str) else level)
        except ValueError:
            return None
        return value if np.isfinite(value) else None

    def odd(self, levels: Sequence[Hashable]) -> list[int]:
        """The levels that are no numbers."""
        return [k for k, level in enumerate(levels) if self.number(level) is None]

    def remedy(self, texts: Sequence[Hashable], n_cells: int) -> str:
        """What to do about so many cells of these texts, which are no numbers."""
        beyond = {text: number for text in texts if (number := self._beyond(text)) is not None}
        others = len(texts) - len(beyond)
        text, number = next(iter(beyond.items()), ("", 0.0))
        shown = f"{number:.12g}".replace(".", self.decimal)
        parts = [f"write a number beyond the limit, such as {shown} for {text!r}"] if beyond else []
        mended = "it, or make it missing" if n_cells == 1 else "them, or make them missing"
        parts += [f"mend {'the others, or make them missing' if beyond else mended}"] if others else []
        return ", and ".join(parts)

    def _plain(self, text: str) -> str:
        """The text with a point before the fraction and nothing between thousands."""
        if self.other not in text:
            return text.replace(self.decimal, ".")
        thousands = rf"\s*[-+]?[1-9]\d{{0,2}}(?:{re.escape(self.other)}\d{{3}})+(?:{re.escape(self.decimal)}\d*)?\s*"
        if not self.grouped or not re.fullmatch(thousands, text):
            raise ValueError(f"{text!r} is no number")
        return text.replace(self.other, "").replace(self.decimal, ".")

    def _beyond(self, text: Hashable) -> float | None:
        """A number beyond the limit that a text names; None where it names none."""
        for pattern in (BELOW, ABOVE):
            found = re.fullmatch(pattern, text) if isinstance(text, str) else None
            limit = None if found is None else self.number(next(filter(None, found.groups())))
            if limit is not None and pattern == ABOVE:
                return limit + 1
            if limit is not None:
                return limit / 2 if limit > 0 else limit - 1
        return None


def doubt_of(
    levels: Sequence[Hashable], codes: NDArray[Any], *, whole: bool = False, decimal: str = "."
) -> Doubt | None:
    """The doubt about a column of these levels, None where there is none; `codes` say the level of each cell.

    Texts of whole numbers may well be codes: they are doubted where `whole` says so, and never with zeros in front.
    `decimal` is the decimal point with which the column was read.
    """
    if len(levels) < MANY_LEVELS or any(isinstance(v, str) and re.fullmatch(CODE, v) for v in levels):
        return None
    fault = fault_of(levels, codes, decimal)
    if fault is None:
        return _of_texts([v for v in levels if isinstance(v, str)], whole)
    return None if fault.share > FEW_TEXTS else fault


def fault_of(levels: Sequence[Hashable], codes: NDArray[Any], decimal: str = ".") -> Doubt | None:
    """What keeps a column of these levels from being numbers; None where all of them are."""
    usual = _Writing(decimal)
    if not (unread := usual.odd(levels)):
        return None
    counts = np.bincount(codes[(codes >= 0) & (codes < len(levels))], minlength=len(levels))
    writings = [usual]
    if all(isinstance(v, str) for v in levels):
        writings += [_Writing(decimal, True), _Writing(usual.other), _Writing(usual.other, True)]
    odds = [unread, *(writing.odd(levels) for writing in writings[1:])]
    sums = [int(counts[odd].sum()) for odd in odds]
    writing, odd, n_odd = min(
        zip(writings, odds, sums, strict=True), key=lambda found: found[2]
    )  # the first of several
    n = int(counts.sum())
    verb = "is no number" if n_odd == 1 else "are no numbers"
    cells = f"{n_odd} of its {n} cells, such as {levels[odd[0]]!r}, {verb}" if odd else ""
    mended = writing.remedy([levels[k] for k in odd], n_odd)
    if writing == usual:
        return Doubt(cells, mended, share=n_odd / n, unread=tuple(unread))
    marks, remedy = _marks(usual, writing)
    reason = f"its numbers, such as {levels[min({*unread} - {*odd})]!r}, have {marks}"
    # Who said that the decimal point is a comma is not sent back: other columns have commas.
    said = writing.decimal if decimal == "." and not writing.grouped else None
    return Doubt(f"{reason}, and {cells}" if odd else reason, remedy, said, mended, n_odd / n, tuple(unread))


def _marks(usual: _Writing, found: _Writing) -> tuple[str, str]:
    """The marks by which numbers are not what was expected, and what to do about them."""
    here, there = MARKS[usual.decimal], MARKS[usual.other]
    if found.decimal == usual.decimal:
        return f"{there}s between thousands", f"take the {there}s out"
    if not found.grouped:
        return f"a {there}", f"write a {here} for it"
    return f"{here}s between thousands and a {there}", f"take the {here}s out and write a {here} for the {there}"


def _of_texts(texts: Sequence[str], whole: bool) -> Doubt | None:
    if not texts or (not whole and all(text.strip().isdigit() for text in texts)):
        return None
    return Doubt(f"its numbers, such as {texts[0]!r}, are text", "convert it to numbers")
