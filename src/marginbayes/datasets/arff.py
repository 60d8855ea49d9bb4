"""A strict reader of dense ARFF files, the format of Weka and OpenML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.frame import as_float, spells_number
from marginbayes.datasets.dataset import pandas

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["parse_arff"]

Lines = Iterator[tuple[int, str]]
Cell = str | None

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|[^\s{{'\"]+)\s*(.*)$", re.IGNORECASE)
_CELL = re.compile(rf"""\s*({_QUOTED}|[^,'"]*)\s*(,|$)""")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}
_NUMBERS = {"numeric": "numeric", "real": "numeric", "integer": "integer"}
_ROWS_AT_ONCE = 1024  # bounds the memory that cells need before they become numbers


@dataclass(frozen=True)
class Attribute:
    """One declared column: its name, its kind, and its levels if nominal."""

    name: str
    kind: str
    levels: tuple[str, ...] = ()


@dataclass
class _Column:
    """A column under construction: blocks of codes, numbers or strings."""

    attribute: Attribute
    blocks: list[NDArray[Any]] = field(default_factory=list)


def parse_arff(file: TextIO, path: str) -> pd.DataFrame:
    """Frame of a dense ARFF file; nominal columns are `category` with their levels in the declared order.

    Parameters
    ----------
    file : text file
        Open for reading.
    path : str
        Name that error messages give the file.
    """
    lines: Lines = ((number, line.strip()) for number, line in enumerate(file, 1))
    lines = ((number, line) for number, line in lines if line and not line.startswith("%"))
    attributes = _read_header(lines, path)
    columns = [_Column(attribute) for attribute in attributes]
    for numbers, rows in _row_blocks(lines, len(columns), path):
        for column, cells in zip(columns, zip(*rows, strict=True), strict=True):
            column.blocks.append(_convert(column.attribute, cells, numbers, path))
    return pandas().DataFrame({column.attribute.name: _assemble(column) for column in columns})


# -- header


def _read_header(lines: Lines, path: str) -> list[Attribute]:
    """Attributes declared before @data, which is consumed."""
    attributes: dict[str, Attribute] = {}
    for number, line in lines:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@data":
            if not attributes:
                _fail(path, number, "@data comes before any @attribute")
            return list(attributes.values())
        if keyword == "@attribute":
            attribute = _read_attribute(line, number, path)
            if attribute.name in attributes:
                _fail(path, number, f"a second attribute is called {attribute.name!r}")
            attributes[attribute.name] = attribute
        elif keyword != "@relation":
            _fail(path, number, f"expected @relation, @attribute or @data, found {line[:40]!r}")
    raise ValueError(f"{path} has no @data line, so it is not a complete ARFF file")


def _read_attribute(line: str, number: int, path: str) -> Attribute:
    match = _ATTRIBUTE.match(line)
    if match is None:
        _fail(path, number, f"cannot read the attribute declaration {line[:60]!r}")
    name, declared = _unquote(match[1]), match[2]
    if declared.startswith("{"):
        return Attribute(name, "nominal", _read_levels(name, declared, number, path))
    kind = declared.split("%", 1)[0].strip().lower()
    if kind == "string":
        return Attribute(name, "string")
    if kind not in _NUMBERS:
        _fail(path, number, f"attribute {name!r} has the type {kind!r}; numeric, nominal and string can be read")
    return Attribute(name, _NUMBERS[kind])


def _read_levels(name: str, declared: str, number: int, path: str) -> tuple[str, ...]:
    if not declared.endswith("}"):
        _fail(path, number, f"the list of values of attribute {name!r} does not end with '}}'")
    # A quoted '?' may be declared as a level; unquoted it means missing in the data, so it is one here too.
    cells = _split(declared[1:-1].strip(), number, path)
    levels = tuple("?" if cell is None else cell for cell in cells)
    if len(set(levels)) < len(levels):
        twice = next(level for level in levels if levels.count(level) > 1)
        _fail(path, number, f"attribute {name!r} declares the value {twice!r} twice")
    return levels


# -- rows


def _row_blocks(lines: Lines, width: int, path: str) -> Iterator[tuple[list[int], list[list[Cell]]]]:
    """Line numbers and cells of the data rows, a block of rows at a time."""
    numbers: list[int] = []
    rows: list[list[Cell]] = []
    for number, line in lines:
        numbers.append(number)
        rows.append(_read_row(line, width, number, path))
        if len(rows) == _ROWS_AT_ONCE:
            yield numbers, rows
            numbers, rows = [], []
    if rows:
        yield numbers, rows


def _read_row(line: str, width: int, number: int, path: str) -> list[Cell]:
    if line.startswith("{"):
        _fail(path, number, "this is a sparse ARFF file; only dense ones can be read, so convert it first")
    cells = _split(line, number, path)
    if len(cells) == width + 1 and (cells[-1] or "").startswith("{"):
        _fail(path, number, "the row carries an instance weight; put the weights into a column of their own")
    if len(cells) != width:
        _fail(path, number, f"{len(cells)} values, but {width} attributes are declared")
    return cells


def _split(text: str, number: int, path: str) -> list[Cell]:
    """Comma-separated cells, unquoted; None where a cell is an unquoted question mark."""
    if "'" not in text and '"' not in text and "\\" not in text:
        raw = [cell.strip() for cell in text.split(",")]
    else:
        raw = _split_quoted(text, number, path)
    if "" in raw:
        _fail(path, number, f"value {raw.index('') + 1} is empty; a missing value is written ?")
    return [None if cell == "?" else _unquote(cell) for cell in raw]


def _split_quoted(text: str, number: int, path: str) -> list[str]:
    cells, start, separator = [], 0, ","
    while separator:
        match = _CELL.match(text, start)
        if match is None:
            _fail(
                path,
                number,
                f"cannot read the value that starts at {text[start : start + 30]!r}: check its quotes",
            )
        cells.append(match[1].strip())
        start, separator = match.end(), match[2]
    return cells


def _unquote(cell: str) -> str:
    if cell[:1] in ("'", '"'):
        cell = cell[1:-1]
    return _ESCAPE.sub(_escaped, cell) if "\\" in cell else cell


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _CONTROL.get(code, code)


# -- columns


def _convert(attribute: Attribute, cells: tuple[Cell, ...], numbers: list[int], path: str) -> NDArray[Any]:
    """Block of one column; missing is -1 among level numbers, NaN among floats, None among strings."""
    if attribute.kind == "string":
        return np.array(cells, dtype=object)
    if attribute.kind == "nominal":
        return _convert_nominal(attribute, cells, numbers, path)
    try:
        return np.array([np.nan if cell is None else as_float(cell) for cell in cells])
    except ValueError:
        row = next(i for i, cell in enumerate(cells) if cell is not None and not spells_number(cell))
        _fail(path, numbers[row], f"attribute {attribute.name!r} is numeric, but the value is {cells[row]!r}")


def _convert_nominal(attribute: Attribute, cells: tuple[Cell, ...], numbers: list[int], path: str) -> NDArray[np.int64]:
    code: dict[Cell, int] = {level: i for i, level in enumerate(attribute.levels)}
    code[None] = -1
    try:
        return np.array([code[cell] for cell in cells], dtype=np.int64)
    except KeyError:
        row = next(i for i, cell in enumerate(cells) if cell not in code)
        _fail(path, numbers[row], f"attribute {attribute.name!r} does not declare the value {cells[row]!r}")


def _assemble(column: _Column) -> Any:
    attribute = column.attribute
    if attribute.kind == "nominal":
        codes = np.concatenate([np.empty(0, dtype=np.int64), *column.blocks])
        return pandas().Categorical.from_codes(codes, categories=list(attribute.levels))
    if attribute.kind == "string":
        # The dtype is named because newer versions of pandas would infer one of their own for strings.
        return pandas().Series(np.concatenate([np.empty(0, dtype=object), *column.blocks]), dtype=object)
    values = np.concatenate([np.empty(0), *column.blocks])
    whole = attribute.kind == "integer" and bool(np.all(np.isfinite(values) & (values == np.round(values))))
    return values.astype(np.int64) if whole else values


def _fail(path: str, number: int, problem: str) -> NoReturn:
    raise ValueError(f"{path}, line {number}: {problem}")
