"""Tables named on the command line: a file, or a data set known by name."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.cli.console import note, some, working
from marginbayes.cli.labels import label_array, text_of
from marginbayes.datasets.files import SEPARATORS, suffix_of

if TYPE_CHECKING:
    from marginbayes.cli.models import Choices
    from marginbayes.data.frame import LevelColumn

__all__ = [
    "Reading",
    "Table",
    "Training",
    "as_written",
    "check_column",
    "check_features",
    "check_finite",
    "find_set",
    "is_text",
    "note_columns",
    "read_data",
    "training",
]

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
    codes: Mapping[str, str] = field(default_factory=dict)  # columns of numbers written like codes, and one of them
    decimal: str = "."


@dataclass(frozen=True, eq=False)
class Training:
    """Features, labels, weights (None: all one) and the name of the target; `rows` are their numbers in the table.

    `sequence` names the column of X that says which sequence a row belongs to; it is no feature. `weight` names the
    column that the weights come from.
    """

    X: Any
    y: NDArray[Any]
    weights: NDArray[np.float64] | None
    target: str
    rows: NDArray[np.intp]
    sequence: str | None = None
    weight: str | None = None

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1]) - (self.sequence is not None)


# -- reading


def read_data(
    source: str,
    reading: Reading,
    text_columns: Sequence[str] = (),
    categorical: Sequence[str] | None = None,
) -> Table:
    """Table of a file or of a data set; the text columns of a text file stay strings whatever they look like.

    Categorical columns, where some may be named, stay as they are written if they are written like codes.
    """
    path = Path(source)
    _check_encoding(reading.encoding)
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{source} is no ordinary file, and a table is read twice; write it to a file first")
    with working(f"reading {source}"):
        table = _decoded(path, reading, text_columns, categorical) if path.is_file() else _load(source, path)
    if not len(table.frame):
        raise ValueError(f"{source} has no rows")
    return table


def as_written(table: Table, reading: Reading, names: Sequence[str]) -> Any:
    """Cells of these columns as a text file has them, in which no text means that one is missing; else those read."""
    from marginbayes.datasets.files import read_texts

    path = Path(table.name)
    if not names or not is_text(table):
        return table.frame[list(names)]
    separator = _separator(path, reading)
    return read_texts(path, names, separator=separator, missing=(), encoding=reading.encoding)[list(names)]


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


def _decoded(path: Path, reading: Reading, text_columns: Sequence[str], categorical: Sequence[str] | None) -> Table:
    try:
        table = _read_file(path, reading, text_columns)
        return table if categorical is None or not is_text(table) else _with_codes(table, path, reading, categorical)
    except UnicodeError as error:
        raise ValueError(f"{path} is not {reading.encoding} text: {error}") from None


def _read_file(path: Path, reading: Reading, text_columns: Sequence[str]) -> Table:
    from marginbayes import datasets

    if text_columns and suffix_of(path) in SEPARATORS:
        from marginbayes.datasets.files import read_delimited

        frame = read_delimited(
            path,
            separator=_separator(path, reading),
            encoding=reading.encoding,
            decimal=reading.decimal,
            text_columns=text_columns,
        )
    else:
        frame = datasets.read_table(
            path, separator=reading.separator, encoding=reading.encoding, decimal=reading.decimal
        )
    frame.columns = [str(name) for name in frame.columns]
    return Table(str(path), frame, decimal=reading.decimal if suffix_of(path) in SEPARATORS else ".")


def is_text(table: Table) -> bool:
    """Whether a table comes from a text file."""
    path = Path(table.name)
    return path.is_file() and suffix_of(path) in SEPARATORS


def _separator(path: Path, reading: Reading) -> str:
    return SEPARATORS[suffix_of(path)] if reading.separator is None else reading.separator


def _with_codes(table: Table, path: Path, reading: Reading, categorical: Sequence[str]) -> Table:
    """The table with the categorical columns that are written like codes as text, and what other columns look so."""
    from marginbayes.cli.codes import looks_like_codes, written_as_codes

    how = {"separator": _separator(path, reading), "encoding": reading.encoding}
    numbers = list(table.frame.select_dtypes("number").columns)
    kept = written_as_codes(path, [name for name in numbers if name in categorical], **how)
    codes = looks_like_codes(path, [name for name in numbers if name not in categorical], **how)
    return replace(table, frame=table.frame.assign(**kept), codes=codes)


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
        columns = some([repr(name) for name in table.frame.columns])
        raise ValueError(f"say with --target which column of {table.name} is the class; it has {columns}")
    for column in (name, *drop, *([] if weight is None else [weight])):
        check_column(column, table)
    if name in drop:
        raise ValueError(f"{name!r} is the target; it cannot be dropped too")
    if name == weight:
        raise ValueError(f"{name!r} is the target; it cannot have the weights too (--weight)")
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
    weights = None if weight is None else _weights(frame[weight], weight, labelled)
    return Training(X, label_array(frame[name], name), weights, name, labelled, sequence, weight)


def note_columns(table: Table, rows: Training, choices: Choices) -> None:
    """Say what looks wrong with columns that are to be learned from; those named categorical are as they should be."""
    features = [column for column in rows.X.columns if column != rows.sequence]
    _note_categories(rows.X[features], table, choices)
    _note_codes(features, rows.target, table.codes)
    _note_quantity(rows.y, rows.target)


def check_features(table: Table, rows: Training, categorical: Sequence[str]) -> None:
    """Raise unless the columns named categorical are features, and all numbers are finite."""
    for name in categorical:
        check_column(name, table)
        if name not in rows.X.columns:
            roles = {rows.weight: "has the weights", rows.target: "is the target"}
            raise ValueError(f"{name!r} {roles.get(name, 'is left out by --drop')}; --categorical is for features")
    check_finite(rows.X, rows.rows)


def check_finite(X: Any, places: NDArray[np.intp]) -> None:
    """Raise where a number of the rows at these places of a table is infinite."""
    import pandas as pd

    for name, column in X.items():
        if not pd.api.types.is_float_dtype(column):
            continue
        endless = np.isinf(column.to_numpy(np.float64, na_value=np.nan))
        if endless.any():
            row = places[np.argmax(endless)] + 1
            raise ValueError(
                f"row {row} has infinity, or a number too large to tell from it, in {name!r}; "
                "write a number, or leave the cell empty if it is unknown"
            )


def check_column(name: str, table: Table) -> None:
    """Raise unless the table has this column."""
    if name in table.frame.columns:
        return
    columns = [str(c) for c in table.frame.columns]
    near = difflib.get_close_matches(name, columns, 2)
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {some(list(map(repr, columns)))}"
    raise ValueError(f"{table.name} has no column {name!r}; {hint}")


def _note_unlabelled(table: Table, name: str, labelled: int) -> None:
    lost = len(table.frame) - labelled
    if not labelled:
        raise ValueError(f"no row of {table.name} has a label in the column {name!r}")
    if lost:
        note(f"{lost} of {len(table.frame)} rows have no label in {name!r} and are left out")


def _note_quantity(labels: NDArray[Any], name: str) -> None:
    """Say so where the classes look like the values of a quantity."""
    if labels.dtype.kind in "iu" and (classes := len(np.unique(labels))) > MANY_CLASSES:
        note(
            f"{name!r} has {classes} different numbers, each taken for a class of its own; if it is a quantity, cut it "
            "into a few classes first"
        )


def _note_categories(X: Any, table: Table, choices: Choices) -> None:
    """Say which columns are categories because of how their numbers are written, or have too many levels for one."""
    import pandas as pd

    from marginbayes.data.encode import DISTINCT, identifier_doubt
    from marginbayes.data.frame import LevelColumn, read_frame
    from marginbayes.data.schema import Variable, factorise_numbers

    frame = read_frame(X)
    for i, name in enumerate(frame.names):
        chosen, numeric = name in choices.categorical, pd.api.types.is_numeric_dtype(X.iloc[:, i])
        if numeric and not chosen and choices.discretizer != "none":
            continue
        column = frame.column(i)
        if isinstance(column, LevelColumn):
            told = "" if chosen or numeric or frame.is_declared(i) else _doubt(column, table)
            variable = Variable(name, column.levels)
        else:
            told, variable = "", Variable(name, factorise_numbers(column).levels, origin="" if chosen else DISTINCT)
        if told := told or identifier_doubt(variable, frame.n_rows):
            note(told)


def _doubt(column: LevelColumn, table: Table) -> str:
    """A sentence about numbers that their spelling makes categories."""
    from marginbayes.data.spelling import doubt_of

    doubt = doubt_of(column.levels, column.codes, whole=True, decimal=table.decimal)
    if doubt is None:
        return ""
    other = [f"read it with --decimal {doubt.decimal}"] if doubt.decimal and is_text(table) else []
    return (
        f"{doubt.sentence(column.name, *other)}; if it is a category, --categorical {shlex.quote(column.name)} says so"
    )


def _note_codes(features: Sequence[str], target: str, codes: Mapping[str, str]) -> None:
    """Say which columns of numbers may be codes, of which the reader keeps the number alone."""
    told = {name: f"{name!r} is read as numbers, so that {code!r} is {_number(code)}" for name, code in codes.items()}
    for name in features:
        if name in told:
            remedy = f"--categorical {shlex.quote(name)} keeps them as they are written"
            note(f"{told[name]}; if its cells are codes, {remedy}")
    if target in told:
        note(f"the class {told[target]} in all answers; put a letter in front of its labels if they are codes")


def _number(code: str) -> str:
    return text_of(float(code))


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
