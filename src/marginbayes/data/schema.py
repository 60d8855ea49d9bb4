"""What the columns mean: the levels of each variable and how raw cells become codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.frame import Column, Frame, LevelColumn, NumericColumn, as_float, finite, is_frame, missing_cells
from marginbayes.data.rows import Rows, code_type

__all__ = ["Schema", "Variable", "listed_level"]

Codes = NDArray[np.unsignedinteger[Any]]

# Up to this many cuts a column is compared with each of them.
FEW_CUTS = 40


@dataclass(frozen=True)
class Variable:
    """One variable: its levels, and for a discretised number the cuts between them.

    Parameters
    ----------
    name : str
        Of the column.
    levels : tuple
        Label of each level, the code of a level being its position. A level ``None`` stands for a missing cell that
        is a value of its own.
    cuts : tuple of float or None
        Right-closed intervals: a number x has level i when ``cuts[i-1] < x <= cuts[i]``.
    origin : str
        Why the variable is what it is, for people to read.
    transformer : object or None
        A fitted transformer that turns the numbers of the column into levels, where cuts cannot say it. A variable that
        has one cannot be written to a file.
    shares : tuple of float or None
        Of the class, where the tables do not tell: how often each level was among the (weighted) training rows.
    """

    name: str
    levels: tuple[Hashable, ...]
    cuts: tuple[float, ...] | None = None
    origin: str = "given"
    transformer: Any = field(default=None, repr=False, compare=False)
    shares: tuple[float, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def cardinality(self) -> int:
        """Number of levels; also the code of a missing cell."""
        return len(self.levels)

    @property
    def labels(self) -> NDArray[Any]:
        """The levels as an array of their own type; of objects where one type would change some, such as 1 to '1'."""
        array = np.array(self.levels)
        return array if array.tolist() == list(self.levels) else np.array(self.levels, object)

    def encode(self, column: Column) -> Codes:
        """Code of each cell; a missing cell, and a level never seen in training, has the code `cardinality`."""
        codes = self._encode_numbers(column) if self.cuts is not None else self._encode_levels(column)
        if self.levels and self.levels[-1] is None:
            codes[missing_cells(column)] = self.cardinality - 1
        return codes

    def _encode_numbers(self, column: Column) -> Codes:
        if isinstance(column, LevelColumn):
            column = NumericColumn(column.name, _as_numbers(column))
        codes = _below(self.cuts or (), column.values).astype(code_type(self.cardinality), copy=False)
        codes[np.isnan(column.values)] = self.cardinality
        return codes

    def _encode_levels(self, column: Column) -> Codes:
        if isinstance(column, NumericColumn):
            column = factorise_numbers(transform_numbers(self.transformer, column))
        self.refuse_other_types(column.levels)
        index = {level: i for i, level in enumerate(self.levels) if level is not None}
        # One more entry, for the code -1 of a missing cell.
        lookup = [index.get(level, self.cardinality) for level in column.levels] + [self.cardinality]
        return np.array(lookup, code_type(self.cardinality))[column.codes]

    def refuse_other_types(self, found: Sequence[Hashable]) -> None:
        """Raise where a column holds text and the levels do not, or the other way round."""
        known = [level for level in self.levels if level is not None]
        if not known or not found:
            return
        if all(isinstance(v, str) for v in known) != all(isinstance(v, str) for v in found) and not {*known} & {*found}:
            raise TypeError(
                f"column {self.name!r} was learned with values such as {known[0]!r} but now holds {found[0]!r}; "
                "convert it to the type it had at fit"
            )

    def describe(self) -> str:
        """One line: the kind of variable, its levels or cuts, and why."""
        if self.cuts is None:
            what, shown = _counted(self.cardinality, "level"), [listed_level(v) for v in self.levels]
        else:
            what, shown = f"number, {_counted(len(self.cuts), 'cut')}", [f"{c:g}" for c in self.cuts]
            what += " and a level for missing cells," if self.levels[-1] is None else ""
        return f"{self.name}: {what} {_shorten(shown)} ({self.origin})"


@dataclass(frozen=True)
class Schema:
    """All variables, the class first.

    Examples
    --------
    >>> schema = Schema((Variable("class", ("no", "yes")), Variable("x", ("low", "high"))))
    >>> schema.cardinalities
    (2, 2)
    """

    variables: tuple[Variable, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        for name, count in Counter(self.names).items():
            if count > 1:
                raise ValueError(f"two variables are called {name!r}; rename the column, or the target if it is that")

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, the class first."""
        return tuple(v.name for v in self.variables)

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """Number of levels of each variable."""
        return tuple(v.cardinality for v in self.variables)

    @property
    def target(self) -> Variable:
        """The class."""
        return self.variables[0]

    @property
    def features(self) -> tuple[Variable, ...]:
        """All variables but the class."""
        return self.variables[1:]

    def __getitem__(self, name: str) -> Variable:
        try:
            return self.variables[self.names.index(name)]
        except ValueError:
            raise KeyError(f"no variable {name!r}; there are {', '.join(map(repr, self.names))}") from None

    def __str__(self) -> str:
        return "\n".join(v.describe() for v in self.variables)

    def encode(self, frame: Frame, n_jobs: int | None = None) -> Rows:
        """Rows of a table of features, the class unknown."""
        codes = np.empty((len(self.variables), frame.n_rows), code_type(max(self.cardinalities)))
        codes[0] = self.target.cardinality
        for i, variable in enumerate(self.features):
            codes[i + 1] = variable.encode(frame.column(i))
        return Rows(codes, self.cardinalities, n_jobs=n_jobs)


def _below(cuts: Sequence[float], values: NDArray[np.float64]) -> NDArray[Any]:
    """Number of cuts below each value; a few comparisons of all values are faster than a search for each."""
    if len(cuts) > FEW_CUTS:
        return np.searchsorted(np.asarray(cuts), values)
    count = np.zeros(len(values), np.uint8)
    for cut in cuts:
        count += values > cut
    return count


def _distinct(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """The distinct values, ascending, and the position of each value among them; without a sort for whole numbers."""
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    with np.errstate(over="ignore"):
        span = high - low
    if not (span < max(1024, len(values)) and (values == np.rint(values)).all()):
        distinct, inverse = np.unique(values, return_inverse=True)
        return distinct, inverse
    shifted = (values - low).astype(np.intp)
    seen = np.bincount(shifted) > 0
    return np.flatnonzero(seen) + low, (np.cumsum(seen) - 1)[shifted]


def factorise_numbers(column: NumericColumn) -> LevelColumn:
    """The distinct numbers of a column as levels, whole numbers as int."""
    present = ~np.isnan(column.values)
    distinct, inverse = _distinct(column.values[present])
    codes = np.full(len(column.values), -1, np.intp)
    codes[present] = inverse
    return LevelColumn(column.name, tuple(int(v) if v.is_integer() else v for v in distinct.tolist()), codes)


def transform_numbers(transformer: Any, column: NumericColumn) -> NumericColumn:
    """The column after a fitted transformer, applied to the cells that are present; itself where there is none."""
    if transformer is None:
        return column
    present = ~np.isnan(column.values)
    values = np.full(len(column.values), np.nan)
    if present.any():
        bins = transformer.transform(column.values[present][:, None])
        bins = np.asarray(bins) if is_frame(bins) else bins  # which set_output makes
        if not isinstance(bins, np.ndarray) or bins.shape != (int(present.sum()), 1):
            raise ValueError(
                f"column {column.name!r}: the discretizer {type(transformer).__name__} must turn one column "
                "into one dense column of bins (for scikit-learn's encoders: encode='ordinal', sparse_output=False)"
            )
        values[present] = bins[:, 0].astype(np.float64)
    return NumericColumn(column.name, values)


def _as_numbers(column: LevelColumn) -> NDArray[np.float64]:
    numbers = []
    for level in column.levels:
        try:
            numbers.append(as_float(level))
        except (TypeError, ValueError):
            raise TypeError(
                f"column {column.name!r} was learned as a number but now holds {level!r}; "
                "convert it to numbers, with NaN where a value is unknown"
            ) from None
    return finite(column.name, np.array([*numbers, np.nan])[column.codes])


def listed_level(level: Hashable) -> str:
    """Text of a level in a list of levels: in quotes where a comma of its own would make it look like two."""
    return repr(level) if isinstance(level, str) and "," in level else str(level)


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _shorten(items: list[str], most: int = 8) -> str:
    shown = items if len(items) <= most else [*items[: most - 1], f"... {len(items) - most + 1} more"]
    return "{" + ", ".join(shown) + "}"
