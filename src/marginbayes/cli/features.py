"""What a model predicts from: its features in a table, of the type they had at fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.cli.console import counted, note, some
from marginbayes.cli.labels import by_spelling, text_of
from marginbayes.cli.tables import Table, check_finite, is_text

if TYPE_CHECKING:
    from marginbayes.data.schema import Schema, Variable

__all__ = ["check_numbers", "features_for", "note_strangers", "text_columns", "typed_like"]

# So many columns with cells that a model does not know are named one by one.
MOST_STRANGERS = 6


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
    numbers = [v.name for v in schema.features if v.cuts is not None]
    check_numbers(numbers, table.frame[names], np.arange(len(table.frame)), table)
    frame = typed_like(schema.features, table.frame[names])
    note_strangers(schema.features, frame)
    return frame


def check_numbers(names: Sequence[str], X: Any, places: NDArray[np.intp], table: Table) -> None:
    """Raise where columns that were learned as numbers hold texts that are none; the rows are those at these places."""
    import pandas as pd

    from marginbayes.data.frame import LevelColumn, read_frame
    from marginbayes.data.spelling import fault_of

    for name in names:
        column = None if pd.api.types.is_numeric_dtype(X[name]) else read_frame(X[[name]]).column(0)
        if not isinstance(column, LevelColumn):
            continue
        fault = fault_of(column.levels, column.codes, table.decimal)
        if fault is not None:
            row = places[np.flatnonzero(np.isin(column.codes, fault.unread))[0]] + 1
            other = [f"read it with --decimal {fault.decimal}"] if fault.decimal and is_text(table) else []
            raise ValueError(
                f"{name!r} was learned as a number, but {fault.reason} (the first in row {row} of {table.name}); "
                f"{fault.remedies(*other)}"
            )
    check_finite(X, places)


def typed_like(variables: Sequence[Variable], X: Any) -> Any:
    """The table with the cells of these columns as the levels they mean."""
    typed = X.copy()
    for variable in variables:
        typed[variable.name] = _of_type(variable, X[variable.name])
    return typed


def note_strangers(variables: Sequence[Variable], X: Any) -> None:
    """Say which columns have cells that the model does not know; of many columns the first few."""
    told = [told for v in variables if (told := _strangers(v, X[v.name]))]
    for sentence in told[:MOST_STRANGERS]:
        note(sentence)
    if len(told) > MOST_STRANGERS:
        more = counted(len(told) - MOST_STRANGERS, "other column")
        note(f"{more} have cells that the model does not know, too")


def _strangers(variable: Variable, column: Any) -> str:
    """A sentence about the cells of a column that the model does not know: if all, it may be another column."""
    cells = column.dropna()
    levels = [level for level in variable.levels if level is not None]
    if variable.cuts is not None or not levels:
        return ""
    strange = cells[~cells.isin(levels)]
    if not len(strange):
        return ""
    which, verb = f"of {variable.name!r}, such as {text_of(strange.iloc[0])!r},", "is" if len(strange) == 1 else "are"
    known = f"level that the model knows, such as {text_of(levels[0])!r}"
    if len(strange) == len(cells):
        return f"no cell {which} is a {known}; all of them count as missing"
    return f"{len(strange)} of the {len(cells)} cells {which} {verb} no {known}; what is unknown counts as missing"


def _of_type(variable: Variable, column: Any) -> Any:
    """Cells as the level they mean where file and model differ in type: 1 and "1", 1.0 and 1."""
    import pandas as pd

    numbers = pd.api.types.is_numeric_dtype(column)
    if variable.cuts is not None or numbers != _all_strings(variable):
        return column
    known = by_spelling(level for level in variable.levels if level is not None)
    return column.astype(object).map(lambda v: known.get(text_of(v), v), na_action="ignore")


def _all_strings(variable: Variable) -> bool:
    known = [level for level in variable.levels if level is not None]
    return bool(known) and all(isinstance(level, str) for level in known)


def _counted(what: str, names: list[str]) -> str:
    return f"the {what} {names[0]!r}" if len(names) == 1 else f"{len(names)} {what}s ({some(list(map(repr, names)))})"


def _pronoun(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"
