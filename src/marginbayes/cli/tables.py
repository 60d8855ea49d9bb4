"""Tables named on the command line: a file, or a data set known by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.cli.console import note, working
from marginbayes.cli.labels import label_array, text_of

if TYPE_CHECKING:
    from marginbayes.data.schema import Schema, Variable

__all__ = [
    "Reading",
    "Table",
    "Training",
    "check_column",
    "features_for",
    "find_set",
    "read_data",
    "text_columns",
    "training",
]

TEXT_FILES = {".csv": ",", ".tsv": "\t"}


# A column of text is nearly numeric if it has at least so many levels, and at most such a share of other cells.
MANY_LEVELS, FEW_TEXTS = 5, 0.3
# More different numbers than this in the target are hardly names of classes.
MANY_CLASSES = 30


@dataclass(frozen=True)
class Reading:
    """How to read a text file: the separator (None: as its name says), the encoding, and the decimal point."""

    separator: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."


@dataclass(frozen=True, eq=False)
class Table:
    """A table, all of its columns, and what is known of it if it is a data set: target, split, bookkeeping columns."""

    name: str
    frame: Any
    target: str | None = None
    train: NDArray[np.intp] | None = None
    test: NDArray[np.intp] | None = None
    ids: Any = None


@dataclass(frozen=True, eq=False)
class Training:
    """Features, labels, weights (None: all one) and the name of the target; `rows` are their numbers in the table.

    `sequence` names the column of X that says which sequence a row belongs to; it is no feature.
    """

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None
    target: str
    rows: NDArray[np.intp]
    sequence: str | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1]) - (self.sequence is not None)


# -- reading


def read_data(source: str, reading: Reading, text_columns: Sequence[str] = (), kept: Sequence[str] = ()) -> Table:
    """Table of a file or of a data set; the text columns of a text file stay strings whatever they look like.

    In the columns to be kept no text means that a cell is missing.
    """
    path = Path(source)
    _check_encoding(reading.encoding)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{source} is no ordinary file, and a table is read twice; write it to a file first")
    with working(f"reading {source}"):
        table = _decoded(path, reading, text_columns, kept) if path.is_file() else _load(source, path)
    if not len(table.frame):
        raise ValueError(f"{source} has no rows")
    return table


def find_set(name: str) -> str:
    """Where a data set comes from; raises for a name that is unknown."""
    from marginbayes import datasets

    try:
        return datasets.where(name)
    except ValueError as error:
        text = str(error).replace("datasets.available() lists", "'marginbayes data list' shows")
        raise ValueError(text) from None


def _load(source: str, path: Path) -> Table:
    from marginbayes import datasets

    if source == "-":
        raise ValueError("a table is read from a file, not from standard input; save it, and name the file")
    if path.suffix or path.exists() or len(path.parts) > 1:
        raise FileNotFoundError(f"{source} is a folder" if path.is_dir() else f"there is no file {source}")
    try:
        find_set(source)
    except ValueError as error:
        raise ValueError(f"there is no file {source}, and {error}") from None
    data = datasets.load(source)
    target = str(data.y.name)
    while target in data.X.columns:
        target += "_"
    return Table(source, data.X.assign(**{target: data.y}), target, data.train, data.test, data.ids)


def _check_encoding(name: str) -> None:
    try:
        "a".encode(name)  # refuses those that turn bytes into bytes, such as base64, as well
    except (LookupError, ValueError):
        raise ValueError(f"there is no encoding {name!r}; some that are: utf-8, latin-1, cp1252") from None


def _decoded(path: Path, reading: Reading, text_columns: Sequence[str], kept: Sequence[str]) -> Table:
    try:
        return _read_file(path, reading, text_columns, kept)
    except UnicodeError as error:
        raise ValueError(f"{path} is not {reading.encoding} text: {error}") from None


def _read_file(path: Path, reading: Reading, text_columns: Sequence[str], kept: Sequence[str]) -> Table:
    from marginbayes import datasets

    suffix = Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()
    if (text_columns or kept) and suffix in TEXT_FILES:
        from marginbayes.datasets.files import read_delimited

        frame = read_delimited(
            path,
            separator=TEXT_FILES[suffix] if reading.separator is None else reading.separator,
            encoding=reading.encoding,
            decimal=reading.decimal,
            text_columns=text_columns,
            kept=kept,
        )
    else:
        frame = datasets.read_table(
            path, separator=reading.separator, encoding=reading.encoding, decimal=reading.decimal
        )
    frame.columns = [str(name) for name in frame.columns]
    return Table(str(path), frame)


# -- what to learn from


def training(
    table: Table,
    target: str | None,
    drop: Iterable[str] = (),
    weight: str | None = None,
    sequence: str | None = None,
) -> Training:
    """Features and labels of a table; rows without a label are left out, with a note, but not out of sequences."""
    name = table.target if target is None else target
    if name is None:
        columns = _listed(list(table.frame.columns))
        raise ValueError(f"say with --target which column of {table.name} is the class; it has {columns}")
    for column in (name, *drop, *([] if weight is None else [weight])):
        check_column(column, table)
    if name in drop:
        raise ValueError(f"{name!r} is the target; it cannot be dropped too")
    roles: dict[str | None, str] = dict.fromkeys(drop, "is left out by --drop")
    roles |= {weight: "has the weights", name: "is the target"}
    if sequence is not None and sequence in roles:
        raise ValueError(f"{sequence!r} {roles[sequence]}; it cannot say which sequence a row belongs to (--sequence)")
    labelled = np.flatnonzero(table.frame[name].notna().to_numpy())
    if sequence is not None and len(labelled) < len(table.frame):
        lost = len(table.frame) - len(labelled)
        raise ValueError(
            f"{lost} of {len(table.frame)} rows have no label in {name!r}, but every row of a sequence needs one; "
            "fill them in, or leave those sequences out"
        )
    _note_unlabelled(table, name, len(labelled))
    frame = table.frame.iloc[labelled]
    X = frame.drop(columns=list({name, *drop, *([] if weight is None else [weight])}))
    if not X.shape[1]:
        raise ValueError(f"{table.name} has no column left to learn from besides the target {name!r}")
    _note_numbers_in_text(X)
    _note_quantity(frame[name], name)
    weights = None if weight is None else _weights(frame[weight], weight, labelled)
    return Training(X, label_array(frame[name], name), weights, name, labelled, sequence)


def check_column(name: str, table: Table) -> None:
    """Raise unless the table has this column."""
    if name in table.frame.columns:
        return
    columns = [str(c) for c in table.frame.columns]
    near = difflib.get_close_matches(name, columns, 2)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {_listed(columns)}"
    raise ValueError(f"{table.name} has no column {name!r}; {hint}")


def _note_unlabelled(table: Table, name: str, labelled: int) -> None:
    lost = len(table.frame) - labelled
    if not labelled:
        raise ValueError(f"no row of {table.name} has a label in the column {name!r}")
    if lost:
        note(f"{lost} of {len(table.frame)} rows have no label in {name!r} and are left out")


def _note_quantity(labels: Any, name: str) -> None:
    """Say so where the classes look like the values of a quantity."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(labels.dtype) and (classes := labels.nunique()) > MANY_CLASSES:
        note(
            f"{name!r} has {classes} different numbers, each taken for a class of its own; if it is a quantity, cut it "
            "into a few classes first"
        )


def _note_numbers_in_text(X: Any) -> None:
    """Say which columns are categories because of a few cells, or a comma, that keep them from being numbers."""
    import pandas as pd

    for name, column in X.items():
        if not pd.api.types.is_string_dtype(column.dtype) or column.nunique() < MANY_LEVELS:
            continue
        cells = column.dropna().astype(str)
        other = cells[pd.to_numeric(cells, errors="coerce").isna()]
        if not len(other):
            note(
                f"{name!r} is taken for a category because its numbers, such as {cells.iloc[0]!r}, are text; convert "
                "it to numbers, or read it with the decimal point that it has (--decimal), and it is cut like one"
            )
        elif len(other) <= FEW_TEXTS * len(cells):
            note(
                f"{name!r} is taken for a category because {len(other)} of its {len(cells)} cells, such as "
                f"{other.iloc[0]!r}, are no numbers; mend them, or leave them empty, and it is cut like a number"
            )
        elif _spell_numbers(cells.str.replace(",", "")) and not _spell_numbers(cells.str.replace(",", ".")):
            note(
                f"{name!r} is taken for a category because its numbers, such as {other.iloc[0]!r}, have commas between "
                "thousands; take the commas out, and it is cut like a number"
            )
        elif _spell_numbers(cells.str.replace(",", ".")):
            note(
                f"{name!r} is taken for a category because its numbers, such as {other.iloc[0]!r}, have a comma; "
                "--decimal , reads them"
            )


def _spell_numbers(cells: Any) -> bool:
    import pandas as pd

    return bool(pd.to_numeric(cells, errors="coerce").notna().all())


def _weights(column: Any, name: str, places: NDArray[np.intp]) -> NDArray[np.float64]:
    """Weights of the rows at these places of the file."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        found = "no weight" if pd.isna(column.iloc[row]) else f"the weight {text_of(column.iloc[row])!r}"
        raise ValueError(f"row {places[row] + 1} has {found} in {name!r}; weights are numbers, zero or more")
    return np.asarray(numbers)


# -- what to predict from


def text_columns(schema: Schema) -> list[str]:
    """Features whose levels are strings: to be read as such, so that "007" does not become 7."""
    return [v.name for v in schema.features if v.cuts is None and _all_strings(v)]


def features_for(schema: Schema, table: Table, *, ignore_extra: bool, keep: Sequence[str] = ()) -> Any:
    """The features of a model in a table, of the type they had at fit; a missing or extra column is an error."""
    names, there = list(schema.names[1:]), list(table.frame.columns)
    missing = [n for n in names if n not in there]
    if missing:
        raise ValueError(
            f"{table.name} lacks {_counted('column', missing)} of the model; "
            f"add {_pronoun(missing)}, with empty cells where a value is unknown"
        )
    extra = [n for n in there if n not in {*names, *keep, schema.target.name}]
    if extra and not ignore_extra:
        raise ValueError(
            f"{table.name} has {_counted('column', extra)} that the model does not know; "
            f"leave {_pronoun(extra)} out, or say --ignore-extra"
        )
    frame = table.frame[names].copy()
    for variable in schema.features:
        frame[variable.name] = _of_type(variable, frame[variable.name])
        _note_strangers(variable, frame[variable.name])
    return frame


def _note_strangers(variable: Variable, column: Any) -> None:
    """Say which column has not one cell that the model knows: it may be another column under the same name."""
    cells = column.dropna()
    levels = [level for level in variable.levels if level is not None]
    if variable.cuts is None and levels and len(cells) and not {*cells.unique().tolist()} & {*levels}:
        note(
            f"no cell of {variable.name!r}, such as {cells.iloc[0]!r}, is a level that the model knows, such as "
            f"{levels[0]!r}; all of them count as missing"
        )


def _of_type(variable: Variable, column: Any) -> Any:
    """Cells as the level they mean where file and model differ in type: 1 and "1", 1.0 and 1."""
    import pandas as pd

    numbers = pd.api.types.is_numeric_dtype(column)
    if variable.cuts is not None or numbers != _all_strings(variable):
        return column
    known = {text_of(level): level for level in variable.levels if level is not None}
    return column.astype(object).map(lambda v: known.get(text_of(v), v), na_action="ignore")


def _all_strings(variable: Variable) -> bool:
    known = [level for level in variable.levels if level is not None]
    return bool(known) and all(isinstance(level, str) for level in known)


def _counted(what: str, names: list[str]) -> str:
    return f"the {what} {names[0]!r}" if len(names) == 1 else f"{len(names)} {what}s ({_listed(names)})"


def _pronoun(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _listed(names: list[str], most: int = 8) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
