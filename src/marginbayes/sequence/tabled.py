"""What files of labelers and of several targets have in common: columns and log tables."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.estimators.validation import names_at_fit
from marginbayes.sequence.examples import TableRows
from marginbayes.sequence.learners.names import NAMES

__all__ = ["check_fields", "check_proper", "columns_of", "log_table", "plain_table", "set_columns"]

# A row of a table may miss 1 by this much.
ROW_TOLERANCE = 1e-6

Floats = NDArray[np.float64]


def check_fields(document: dict[str, Any], fields: Set[str], decodings: tuple[str, ...]) -> None:
    """Raise unless the document has these fields and no others, and names what it was learned by and how it answers."""
    if odd := fields ^ document.keys():
        raise ValueError(f'the file lacks, or has besides what it should, "{min(odd)}"')
    if document["decoding"] not in decodings:
        raise ValueError(f'"decoding" is none of {", ".join(decodings)}')
    if document["parameters"] not in (None, *NAMES):
        raise ValueError(f'"parameters" is neither null nor one of {", ".join(NAMES)}')


def columns_of(estimator: Any) -> int | list[str]:
    """Names of the columns that an estimator was fitted with; where they had none, their number."""
    names = names_at_fit(estimator)
    return int(estimator.n_features_in_) if names is None else [str(name) for name in names]


def set_columns(estimator: Any, columns: Any, features: Sequence[str], others: int = 0) -> None:
    """Tell an estimator what `columns_of` said; so many other columns are no features."""
    if isinstance(columns, int) and not isinstance(columns, bool):
        if columns != len(features) + others:
            raise ValueError(f'"columns" is {columns}, but there are {len(features) + others}')
        estimator.n_features_in_ = columns
        return
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError('"columns" is neither a number nor a list of names')
    if len(columns) != len(features) + others or not {*features} <= {*columns}:
        raise ValueError('"columns" are not those of the features')
    estimator.feature_names_in_ = np.array(columns, dtype=object)
    estimator.n_features_in_ = len(columns)


def plain_table(table: Floats) -> list[list[float | str]]:
    """Rows of a log table as JSON can hold them."""
    return [["-inf" if value == -math.inf else value for value in row] for row in table.tolist()]


def log_table(value: Any, what: str, shape: tuple[int, int]) -> Floats:
    """The table that `plain_table` described."""
    try:
        array = np.array([[-math.inf if v == "-inf" else v for v in row] for row in value], np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f'"{what}" does not hold rows of numbers') from None
    if array.shape != shape or np.isnan(array).any() or not (array <= ROW_TOLERANCE).all():
        raise ValueError(f'"{what}" does not hold logarithms of probabilities of the shape {shape}')
    return array


def check_proper(rows: TableRows, weights: Floats) -> None:
    """Raise unless every row of the tables sums to one."""
    if not (np.abs(np.expm1(rows.log_sums(weights))) <= ROW_TOLERANCE).all():
        raise ValueError("a row of the tables does not sum to one")
