"""Cells to codes by the schema inside a certificate."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError

__all__ = ["check_known", "encode"]


def encode(schema: Sequence[Mapping[str, Any]], columns: Mapping[str, Sequence[Any]]) -> NDArray[np.int64]:
    """Codes of a table, one line for each variable; a missing or unknown cell has the number of levels as its code."""
    return np.array([_codes(variable, columns) for variable in schema])


def check_known(variable: Mapping[str, Any], cells: Sequence[Any], codes: NDArray[np.int64], counts: Any) -> None:
    """Refuse a row that counts with a cell that the certificate does not know: it would be as if missing."""
    for place in np.flatnonzero((codes == len(variable["levels"])) & counts).tolist():
        if not _is_missing(cells[place]):
            raise CertificateError(f"{cells[place]!r} in {variable['name']!r} is no level of the certificate")


def _codes(variable: Mapping[str, Any], columns: Mapping[str, Sequence[Any]]) -> list[int]:
    name, levels, cuts = variable["name"], variable["levels"], variable["cuts"]
    if name not in columns:
        raise CertificateError(f"the table has no column {name!r}, which the certificate is about")
    # Where a missing cell is a level of its own, it is the last one.
    missing = len(levels) - 1 if levels and levels[-1] is None else len(levels)
    if cuts is not None:
        return [missing if _is_missing(c) else bisect_left(cuts, _number(c, name)) for c in columns[name]]
    texts = {level: code for code, level in enumerate(levels) if isinstance(level, str)}
    numbers = {level: code for code, level in enumerate(levels) if level is not None and level not in texts}
    known = {c: _code(c, texts, numbers, len(levels), missing) for c in set(columns[name])}
    return [known[c] for c in columns[name]]


def _code(cell: Any, texts: Mapping[str, int], numbers: Mapping[Any, int], unknown: int, missing: int) -> int:
    """A text is the level of the same text, else the number that it spells; a number that of the same value."""
    if isinstance(cell, str):
        if cell in texts:
            return texts[cell]
        return missing if _is_missing(cell) else numbers.get(_spelled(cell), unknown)
    if _is_missing(cell):
        return missing
    whole = int(cell) if isinstance(cell, float) and cell.is_integer() else cell
    return numbers.get(cell, texts.get(str(whole), unknown))


def _is_missing(cell: Any) -> bool:
    if cell is None or isinstance(cell, str):
        return not cell
    try:
        return bool(cell != cell)
    except TypeError:  # as pandas' NA, which will not say
        return True


def _spelled(text: str) -> float | None:
    if "_" in text:  # Python reads 1_0 as 10, no table means that
        return None
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def _number(cell: Any, name: str) -> float:
    try:
        if isinstance(cell, str) and "_" in cell:
            raise ValueError(cell)
        return float(cell)
    except (TypeError, ValueError):
        raise CertificateError(f"column {name!r} should hold numbers but holds {cell!r}") from None
