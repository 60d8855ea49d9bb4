"""The user's table, read one column at a time, whatever library it comes from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DATES",
    "Column",
    "ColumnTypeError",
    "Frame",
    "LevelColumn",
    "NumericColumn",
    "array_names",
    "as_array",
    "as_float",
    "finite",
    "is_frame",
    "is_missing",
    "missing_cells",
    "natural_order",
    "read_frame",
    "spells_number",
    "without_mask",
]

# What is neither a number nor a category: files could not tell it from a number.
DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class NumericColumn:
    """Numbers, NaN where missing."""

    name: str
    values: NDArray[np.float64]


@dataclass(frozen=True)
class LevelColumn:
    """Categories: the levels that occur, in their natural order, and for each row its level or -1 where missing."""

    name: str
    levels: tuple[Hashable, ...]
    codes: NDArray[np.intp]


Column = NumericColumn | LevelColumn


@dataclass(frozen=True)
class Frame:
    """Names, number of rows, and one column at a time: the whole table is never copied."""

    names: tuple[str, ...]
    n_rows: int
    source: Any  # a narwhals DataFrame, or a NumPy array of two dimensions

    def column(self, i: int) -> Column:
        """The i-th column, factorised if it is categorical and as float64 if it is numeric."""
        if isinstance(self.source, np.ndarray):
            return _array_column(self.names[i], self.source[:, i])
        return _series_column(self.names[i], self.source[:, i])

    def is_declared(self, i: int) -> bool:
        """Whether the i-th column says of itself that it is one of categories."""
        return not isinstance(self.source, np.ndarray) and self.source[:, i].dtype in (nw.Categorical, nw.Enum)

    def select(self, names: Sequence[str]) -> Frame:
        """The same rows with these columns, in this order."""
        index = {name: i for i, name in enumerate(self.names)}
        chosen = [index[name] for name in names]
        return Frame(tuple(names), self.n_rows, self.source[:, chosen])

    def take(self, rows: NDArray[np.intp]) -> Frame:
        """The rows at these positions."""
        return Frame(self.names, len(rows), self.source[rows, :])


def is_frame(X: object) -> bool:
    """Whether X is a data frame of some library, with named columns."""
    if isinstance(X, np.ndarray):
        return False
    try:
        return isinstance(nw.from_native(X, pass_through=True), (nw.DataFrame, nw.LazyFrame))
    except nw.exceptions.DuplicateError:  # of columns, which `read_frame` names
        return True


def read_frame(X: Any) -> Frame:
    """Frame of a pandas / polars / modin DataFrame, a pyarrow Table, or a two-dimensional NumPy array."""
    if isinstance(X, np.ndarray):
        return Frame(array_names(X.shape[1]), X.shape[0], X)
    try:
        frame = nw.from_native(X)
    except nw.exceptions.DuplicateError:
        raise _same_name(map(str, X.column_names if hasattr(type(X), "column_names") else X.columns)) from None
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("a lazy table has no rows yet; call its collect() (of dask: compute()) first")
    frame = _without_views(frame)
    names = tuple(str(name) for name in frame.columns)
    if len({*names}) < len(names):
        raise _same_name(names)
    return Frame(names, len(frame), frame)


def _without_views(frame: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """The frame with plain strings for views of strings, which Arrow can neither count nor choose."""
    native: Any = frame.to_native()
    if frame.implementation.is_pyarrow():
        views = [field.name for field in native.schema if str(field.type) == "string_view"]
        return frame.with_columns(nw.col(*views).cast(nw.String)) if views else frame
    if frame.implementation.is_pandas():
        views = [name for name, kind in native.dtypes.items() if str(kind) == "string_view[pyarrow]"]
        plain = native.copy(deep=False) if views else native
        for name in views:
            plain[name] = _plain_strings(native[name])
        return nw.from_native(plain) if views else frame
    return frame


def _plain_strings(column: Any) -> Any:
    """A pandas column of views of strings as one of strings; pandas itself cannot convert all of them."""
    import pyarrow  # which whoever has views of strings has

    cells = pyarrow.array(column.array).cast(pyarrow.string())
    return type(column)(type(column.array)(cells), index=column.index)


def array_names(n: int) -> tuple[str, ...]:
    """Names of the columns of an array."""
    return tuple(f"x{i}" for i in range(n))


def as_array(rows: Any) -> NDArray[Any]:
    """Array of nested lists; of objects where NumPy would make texts of numbers."""
    array = np.asarray(rows)
    if array.dtype.kind in "US":
        cells = np.array(rows, object)
        if not all(isinstance(cell, (str, bytes)) for cell in cells.ravel()):
            return cells
    return array


def without_mask(X: Any) -> Any:
    """A plain array where X is a masked one, NaN or None where a cell is masked; else X."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return X.data
    cells = X.data.astype(X.dtype if X.dtype.kind == "f" else object)  # so that whole numbers stay exact
    cells[X.mask] = np.nan if X.dtype.kind == "f" else None
    return cells


def _same_name(names: Iterable[str]) -> ValueError:
    ((name, _),) = Counter(names).most_common(1)
    return ValueError(f"two columns are called {name!r}; give each its own name")


# -- one column of a data frame


def _series_column(name: str, series: nw.Series[Any]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        values = _floats(series)
        if dtype.is_integer() and _is_beyond_floats(values):
            _check_apart(name, series.drop_nulls().to_numpy())
        return NumericColumn(name, finite(name, values))
    if dtype == nw.Object or dtype == nw.Unknown:
        return _object_column(name, series.to_numpy())
    if dtype in (nw.Categorical, nw.Enum, nw.String, nw.Boolean):
        return _level_column(name, series)
    raise ColumnTypeError(name, dtype)


def _floats(series: nw.Series[Any]) -> NDArray[np.float64]:
    """Numbers as float64, NaN where missing; Arrow would refuse to cast whole numbers that have to be rounded."""
    if not series.dtype.is_integer() or series.implementation.is_polars():
        return np.asarray(series.cast(nw.Float64).to_numpy())
    if isinstance(getattr(series.to_native(), "dtype", None), np.dtype):  # which none can be missing from
        return np.asarray(series.to_numpy().astype(np.float64))
    values = series.fill_null(0).to_numpy().astype(np.float64)
    values[series.is_null().to_numpy()] = np.nan
    return np.asarray(values)


class ColumnTypeError(TypeError):
    """A column is of a type that is neither a number nor a category."""

    def __init__(self, name: str, kind: Any) -> None:
        super().__init__(
            f"column {name!r} has the type {kind}, which is neither a number nor a category; "
            "turn it into numbers (for a date: days since a reference) or into strings, or leave it out"
        )
        self.kind = kind


def _level_column(name: str, series: nw.Series[Any]) -> LevelColumn:
    """Factorise in the frame's own library; an order that was declared is kept, other levels are sorted."""
    if series.implementation.is_pandas() and hasattr(series.to_native(), "cat"):
        return _pandas_categories(name, series.to_native())
    occurring = [v for v in series.drop_nulls().unique().to_list() if not is_missing(v)]
    if isinstance(series.dtype, nw.Enum):  # what pandas calls an ordered categorical
        known = set(occurring)
        levels: list[Hashable] = [v for v in series.dtype.categories if v in known]
    else:
        levels = natural_order(occurring)
    if not levels:
        return LevelColumn(name, (), np.full(len(series), -1, np.intp))
    codes = series.replace_strict(levels, list(range(len(levels))), default=None, return_dtype=nw.Int32)
    return LevelColumn(name, tuple(levels), codes.fill_null(-1).to_numpy().astype(np.intp))


def _pandas_categories(name: str, series: Any) -> LevelColumn:
    """The same for a categorical column of pandas, which has codes of its own: several times faster."""
    codes = series.cat.codes.to_numpy()
    known = series.cat.categories.tolist()
    occurring = [known[i] for i in np.flatnonzero(np.bincount(codes.astype(np.intp) + 1)[1:])]
    _refuse_dates(name, occurring)
    levels = occurring if series.cat.ordered else natural_order(occurring)
    place = {v: i for i, v in enumerate(levels)}
    # One more entry, for the code -1 of a missing cell.
    return LevelColumn(name, tuple(levels), np.array([*(place.get(v, -1) for v in known), -1], np.intp)[codes])


# -- one column of an array


def _array_column(name: str, values: NDArray[Any]) -> Column:
    if values.dtype.kind in "iuf":
        if values.dtype.kind != "f" and _is_beyond_floats(values):
            _check_apart(name, values)
        return NumericColumn(name, finite(name, values.astype(np.float64)))
    if values.dtype.kind == "b":
        present = np.unique(values)
        return LevelColumn(name, tuple(present.tolist()), np.searchsorted(present, values))
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r}")
    if values.dtype.kind in "mM":
        raise ColumnTypeError(name, values.dtype)
    return _object_column(name, values)


def _object_column(name: str, values: NDArray[Any]) -> Column:
    """Numbers if every value present is one (booleans are not), else categories."""
    cells = values.tolist()
    missing = np.fromiter((is_missing(v) for v in cells), bool, len(cells))
    present = [v for v, gone in zip(cells, missing, strict=True) if not gone]
    _refuse_dates(name, present)
    if present and all(isinstance(v, (Real, Decimal)) and not isinstance(v, (bool, np.bool_)) for v in present):
        numbers = np.full(len(cells), np.nan)
        numbers[~missing] = [as_float(v) for v in present]
        if _is_beyond_floats(finite(name, numbers)) and all(isinstance(v, Integral) for v in present):
            _check_apart(name, np.array(present, object))
        return NumericColumn(name, numbers)
    for v in present:
        if not isinstance(v, Hashable):
            raise TypeError(
                f"column {name!r} holds {v!r}: argument must be a string or a number to be a category; "
                "turn it into one, or leave it out"
            )
    levels = natural_order(dict.fromkeys(present))
    index = {v: i for i, v in enumerate(levels)}
    codes = np.fromiter((-1 if gone else index[v] for v, gone in zip(cells, missing, strict=True)), np.intp, len(cells))
    return LevelColumn(name, tuple(levels), codes)


def _refuse_dates(name: str, values: Iterable[Any]) -> None:
    refused = (*DATES, complex)
    for v in values:
        if isinstance(v, refused) or type(v).__name__ == "Period":
            raise ColumnTypeError(name, type(v).__name__)


def as_float(value: Any) -> float:
    """The number that a value is or spells; ValueError or TypeError where it is none, as "1_0", which Python reads."""
    if isinstance(value, str) and "_" in value:
        raise ValueError(f"{value!r} is no number")
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return math.inf if value > 0 else -math.inf


def missing_cells(column: Column) -> NDArray[np.bool_]:
    """Where a column has no value."""
    return np.asarray(column.codes < 0 if isinstance(column, LevelColumn) else np.isnan(column.values))


def natural_order(values: Iterable[Hashable]) -> list[Hashable]:
    """Sorted by kind of value first, so that a column that mixes numbers and strings has an order too.

    Values without an order of their own, such as the members of an enum, go by what is printed of them.
    """
    values = list(values)
    try:
        return sorted(values, key=_sort_key)
    except TypeError:
        return sorted(values, key=repr)


def _sort_key(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Real):
        return (0, "", value)
    return (1, type(value).__name__, value)


def spells_number(text: str) -> bool:
    """Whether a text is that of a number."""
    try:
        as_float(text)
    except ValueError:
        return False
    return True


def is_missing(value: object) -> bool:
    """None, NaN, NaT and pandas.NA: the only values that are not equal to themselves, or do not say."""
    if value is None:
        return True
    if isinstance(value, (str, bytes)):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return type(value).__name__ == "NAType"


def _is_beyond_floats(values: NDArray[Any]) -> bool:
    """Whether there are numbers among these that a float64 may round to another whole number."""
    # Unlike maximum and minimum these two pass over NaN.
    high, low = np.fmax.reduce(values, initial=0), np.fmin.reduce(values, initial=0)
    return max(float(high), -float(low)) > 2.0**53


def _check_apart(name: str, numbers: NDArray[Any]) -> None:
    """Refuse whole numbers that are different, but the same as float64: identifiers, and no quantities."""
    different = sorted(set(numbers.tolist()))
    for a, b in pairwise(different):
        if float(a) == float(b):
            raise ValueError(
                f"column {name!r} holds {a} and {b}, which are too long to be told apart as numbers; "
                "turn them into strings if they are codes"
            )


def finite(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same numbers; raises where one is infinite."""
    if np.isinf(values).any():
        raise ValueError(
            "Input X contains infinity, or a number too large to tell from it: "
            f"column {name!r}, row {int(np.flatnonzero(np.isinf(values))[0])} (from 0); "
            "replace it by a number, or by NaN if it is unknown"
        )
    return values
