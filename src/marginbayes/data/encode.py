"""Learning the schema: what each column of a table is, and its codes, in one reading of the column.

The rule, column by column:

- strings, categories, enums and booleans are categories;
- a number is discretised, unless `categorical_features` names it, or it holds at most two values, both whole numbers (a
  0/1 flag is never left to the discretiser, which might find no use for it and drop it);
- cells that are missing stay missing, or become a level of their own with ``missing="level"``.

`Schema` says for each variable what became of it and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from marginbayes.data.frame import Column, Frame, LevelColumn, NumericColumn, missing_cells
from marginbayes.data.mdlp import interval_labels, mdlp_all
from marginbayes.data.rows import Rows, code_type
from marginbayes.data.schema import Codes, Schema, Variable, factorise_numbers, transform_numbers

__all__ = ["DISTINCT", "EMPTY", "Encoder", "categorical_mask", "identifier_doubt"]

# Origin of a variable whose column has no value, and of one whose numbers are not cut.
EMPTY = "no value at all"
DISTINCT = "distinct numbers, discretizer=None"
# Fewer levels than this are no identifier, however few the rows are.
MANY_LEVELS = 50
# Columns that are cut together, at most, and their cells: many short columns cost more calls than cells.
MOST_TOGETHER, CELLS_TOGETHER = 64, 1 << 15


@dataclass(frozen=True)
class Encoder:
    """How to read columns: the choices of the user, and the class of each training row.

    Parameters
    ----------
    labels : array of int
        Class code of each row.
    n_classes : int
    weights : array of float or None
    categorical : array of bool
        Columns that are categories whatever their type.
    discretizer : "mdlp", None, or a transformer
        None keeps the distinct numbers as levels. A transformer is fitted to one column at a time, to the cells that
        are present, and has to return one column of bins.
    missing_level : bool
        Whether a missing cell is a level of its own.
    n_jobs : int or None
        Threads over columns.
    """

    labels: NDArray[np.intp]
    n_classes: int
    weights: NDArray[np.float64] | None
    categorical: NDArray[np.bool_]
    discretizer: Any = "mdlp"
    missing_level: bool = False
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if not (self.discretizer is None or self.discretizer == "mdlp" or hasattr(self.discretizer, "transform")):
            raise ValueError(f"discretizer={self.discretizer!r} is not known; say 'mdlp', None, or give a transformer")

    def learn(self, target: Variable, frame: Frame) -> tuple[Schema, Rows]:
        """Schema of the target and all columns, and the encoded rows."""
        variables, codes = [target], np.empty((len(frame.names) + 1, frame.n_rows), code_type(target.cardinality))
        codes[0] = self.labels
        for i, (variable, column) in enumerate(self._learned(frame), start=1):
            variables.append(variable)
            # Into their place at once, so that columns are not held twice; a column of more levels widens them all.
            codes = codes.astype(np.promote_types(codes.dtype, column.dtype), copy=False)
            codes[i] = column
        schema = Schema(tuple(variables))
        return schema, Rows(codes, schema.cardinalities, self.weights, self.n_jobs)

    def _learned(self, frame: Frame) -> Iterator[tuple[Variable, Codes]]:
        size = max(1, min(MOST_TOGETHER, CELLS_TOGETHER // max(1, frame.n_rows)))
        batches = [range(i, min(i + size, len(frame.names))) for i in range(0, len(frame.names), size)]
        workers = min(effective_n_jobs(self.n_jobs), len(batches))
        if workers <= 1:
            for batch in batches:
                yield from self._learn_columns(batch, frame)
            return
        with ThreadPoolExecutor(workers) as pool:
            for found in pool.map(lambda batch: self._learn_columns(batch, frame), batches):
                yield from found

    def _learn_columns(self, places: Sequence[int], frame: Frame) -> list[tuple[Variable, Codes]]:
        """Variables and codes of some columns; those that are cut by mdlp are cut together."""
        columns = {i: frame.column(i) for i in places}
        variables = {i: self._variable(i, column) for i, column in columns.items()}
        cut = [i for i, variable in variables.items() if variable is None]
        numbers = [column.values for i in cut if isinstance(column := columns[i], NumericColumn)]
        for i, cuts in zip(cut, mdlp_all(numbers, self.labels, self.n_classes, self._counting_weights), strict=True):
            intervals = tuple(interval_labels(cuts))
            variables[i] = Variable(columns[i].name, intervals, tuple(cuts.tolist()), "discretised by mdlp")
        return [self._encoded(variable, columns[i]) for i, variable in variables.items() if variable is not None]

    def _encoded(self, variable: Variable, column: Column) -> tuple[Variable, Codes]:
        if self.missing_level and missing_cells(column).any():
            variable = replace(variable, levels=(*variable.levels, None))
        if not variable.levels:
            variable = replace(variable, levels=(None,), origin=EMPTY)
        return variable, variable.encode(column)

    def _variable(self, i: int, column: Column) -> Variable | None:
        """What a column becomes; None where mdlp is to cut it."""
        if isinstance(column, LevelColumn):
            return Variable(column.name, column.levels, origin="type of the column")
        distinct = _few_distinct(column.values)
        if self.categorical[i]:
            return Variable(column.name, factorise_numbers(column).levels, origin="named in categorical_features")
        if distinct is not None and all(v.is_integer() for v in distinct):
            return Variable(column.name, tuple(map(int, distinct)), origin="at most two whole numbers")
        if self.discretizer is None:
            return Variable(column.name, factorise_numbers(column).levels, origin=DISTINCT)
        return None if isinstance(self.discretizer, str) else self._transformed(column)

    def _transformed(self, column: NumericColumn) -> Variable:
        present = ~np.isnan(column.values)
        fitted = self._fit_transformer(column.values[present], present)
        origin = f"discretised by {type(fitted).__name__}"
        edges = _cuts_of(fitted)
        if edges is not None:
            return Variable(column.name, tuple(interval_labels(edges)), tuple(edges.tolist()), origin)
        levels = factorise_numbers(transform_numbers(fitted, column)).levels
        return Variable(column.name, levels, origin=origin, transformer=fitted)

    @cached_property
    def _counting_weights(self) -> NDArray[np.float64] | None:
        """Weights that sum to at least the number of rows.

        The description length compares the total weight, as a number of observations, with the cost of a cut. Weights
        that are shares (boosting lets them sum to one) would make every cut too dear.
        """
        if self.weights is None:
            return None
        return np.asarray(self.weights * max(1.0, len(self.weights) / self.weights.sum()))

    def _fit_transformer(self, values: NDArray[np.float64], present: NDArray[np.bool_]) -> Any:
        transformer = clone(self.discretizer)
        extra = {}
        if self._counting_weights is not None and has_fit_parameter(transformer, "sample_weight"):
            extra["sample_weight"] = self._counting_weights[present]
        return transformer.fit(values[:, None], self.labels[present], **extra)


def _cuts_of(transformer: Any) -> NDArray[np.float64] | None:
    """Cut points of a fitted discretiser, where an interval holds its upper end; None if it has none."""
    if hasattr(transformer, "cut_points_"):
        return np.asarray(transformer.cut_points_[0], np.float64)
    if hasattr(transformer, "bin_edges_"):  # scikit-learn's KBinsDiscretizer: an interval holds its lower end
        return np.nextafter(np.asarray(transformer.bin_edges_[0][1:-1], np.float64), -np.inf)
    return None


def categorical_mask(choice: Any, names: Sequence[str]) -> NDArray[np.bool_]:
    """Columns that `categorical_features` names: by name, by position, or by a mask; "from_dtype" names none."""
    mask = np.zeros(len(names), bool)
    if choice is None or (isinstance(choice, str) and choice == "from_dtype"):
        return mask
    if isinstance(choice, str) or not isinstance(choice, Iterable):
        raise ValueError(
            f"categorical_features={choice!r}: say 'from_dtype' or give a list of names, positions or booleans"
        )
    chosen = list(choice)
    if chosen and all(isinstance(c, (bool, np.bool_)) for c in chosen):
        if len(chosen) != len(names):
            raise ValueError(f"categorical_features has {len(chosen)} booleans, but there are {len(names)} columns")
        return np.array(chosen, bool)
    for c in chosen:
        mask[_position(c, names)] = True
    return mask


def identifier_doubt(variable: Variable, n_rows: int) -> str:
    """A sentence about a category that has a level of its own in most rows; none where it has not."""
    if variable.cardinality <= max(MANY_LEVELS, n_rows / 2):
        return ""
    advice = (
        "each number a level of its own; let a discretizer such as 'mdlp' cut them"
        if variable.origin == DISTINCT
        else "like an identifier; leave it out if it is one"
    )
    return f"{variable.name!r} has {variable.cardinality} different values in {n_rows} rows, {advice}"


def _position(choice: Any, names: Sequence[str]) -> int:
    if isinstance(choice, str):
        if choice not in names:
            raise ValueError(f"categorical_features names the column {choice!r}, which is not there")
        return list(names).index(choice)
    if isinstance(choice, (int, np.integer)) and -len(names) <= choice < len(names):
        return int(choice)
    raise ValueError(f"categorical_features holds {choice!r}, which is no column of the {len(names)} there are")


def _few_distinct(values: NDArray[np.float64]) -> list[float] | None:
    """The distinct numbers if there are at most two, else None; without sorting a long column."""
    present = values[~np.isnan(values)]
    if not present.size:
        return []
    low, high = present.min(), present.max()
    if ((present != low) & (present != high)).any():
        return None
    return sorted({float(low), float(high)})
