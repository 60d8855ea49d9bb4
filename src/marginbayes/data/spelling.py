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

__all__ = ["CODE", "Doubt", "doubt_of"]

# What programs do not write for a number: zeros in front, or a whole number before an exponent without a sign.
CODE = r"\s*(?:0\d+|\d+[eE]\d+)\s*"
# Each comma has three digits behind it, and no more than three before it.
THOUSANDS = r"[^,]*|\s*[-+]?\d{1,3}(?:,\d{3})+(?:\.\d*)?\s*"
# A column of fewer levels is a category; one is nearly numeric with at most such a share of other cells.
MANY_LEVELS, FEW_TEXTS = 5, 0.3


@dataclass(frozen=True)
class Doubt:
    """Why a column that looks like numbers is a category, what to do about it, and the decimal point it has, if so."""

    reason: str
    remedy: str
    decimal: str | None = None

    def sentence(self, name: str, *other: str) -> str:
        """What to tell of the column of this name; `other` remedies come first."""
        remedies = " or ".join((*other, self.remedy))
        return f"{name!r} is taken for a category because {self.reason}; {remedies}, and it is cut like a number"


def doubt_of(levels: Sequence[Hashable], codes: NDArray[Any], *, whole: bool = False) -> Doubt | None:
    """The doubt about a column of these levels, None where there is none; `codes` say the level of each cell.

    Texts of whole numbers may well be codes: they are doubted where `whole` says so, and never with zeros in front.
    """
    if len(levels) < MANY_LEVELS or any(isinstance(v, str) and re.fullmatch(CODE, v) for v in levels):
        return None
    odd = [k for k, level in enumerate(levels) if not _is_number(level)]
    if not odd:
        return _of_texts([v for v in levels if isinstance(v, str)], whole)
    counts = np.bincount(codes[(codes >= 0) & (codes < len(levels))], minlength=len(levels))
    n_odd, n = int(counts[odd].sum()), int(counts.sum())
    shown = f"such as {levels[odd[0]]!r},"
    if n_odd <= FEW_TEXTS * n:
        verb, it = ("is no number", "it") if n_odd == 1 else ("are no numbers", "them")
        return Doubt(f"{n_odd} of its {n} cells, {shown} {verb}", f"mend {it}, or make {it} missing")
    if not all(isinstance(v, str) for v in levels):
        return None
    if all(_is_number(str(v).replace(",", "")) for v in levels) and all(
        re.fullmatch(THOUSANDS, str(v)) for v in levels
    ):
        return Doubt(f"its numbers, {shown} have commas between thousands", "take the commas out")
    if all(_is_number(str(v).replace(",", ".")) for v in levels):
        return Doubt(f"its numbers, {shown} have a comma", "write a point for it", ",")
    return None


def _of_texts(texts: Sequence[str], whole: bool) -> Doubt | None:
    if not texts or (not whole and all(text.strip().isdigit() for text in texts)):
        return None
    return Doubt(f"its numbers, such as {texts[0]!r}, are text", "convert it to numbers", ".")


def _is_number(level: Any) -> bool:
    """Whether a level is or spells a number; infinity and NaN are none."""
    if isinstance(level, (bool, np.bool_)) or not isinstance(level, (str, Real)):
        return False
    try:
        return bool(np.isfinite(as_float(level)))
    except ValueError:
        return False
