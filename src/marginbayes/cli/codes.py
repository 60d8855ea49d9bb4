"""Columns of numbers that are written like codes: 007, 1E5."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from marginbayes.data.spelling import CODE

__all__ = ["looks_like_codes", "written_as_codes"]

# A whole number as it is written where nothing is meant by its spelling; 3.0 is what a hole in its column makes of 3.
PLAIN = r"\s*[+-]?(?:0|[1-9]\d*)(?:\.0*)?\s*"
# Rows at the beginning of a file by which a column is judged.
SAMPLE = 1000


def written_as_codes(path: Path, names: Sequence[str], **how: Any) -> dict[str, Any]:
    """Of these columns of a text file those that are not plain whole numbers, as they are written.

    `how` is for `marginbayes.datasets.files.read_texts`.
    """
    from marginbayes.datasets.files import read_texts

    if not names:
        return {}
    texts = read_texts(path, names, **how)
    return {name: texts[name] for name in names if not texts[name].dropna().str.fullmatch(PLAIN).all()}


def looks_like_codes(path: Path, names: Sequence[str], **how: Any) -> dict[str, str]:
    """Of these columns of a text file those that may be codes, each with a cell that no program writes for a number."""
    from marginbayes.datasets.files import read_texts

    if not names:
        return {}
    texts = read_texts(path, names, n_rows=SAMPLE, **how)
    found = {name: texts[name].dropna() for name in names}
    found = {name: cells[cells.str.fullmatch(CODE)] for name, cells in found.items()}
    return {name: str(cells.iloc[0]).strip() for name, cells in found.items() if len(cells)}
