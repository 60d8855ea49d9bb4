"""Labels of classes: which there may be, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from marginbayes.data.frame import DATES, as_array, is_missing

__all__ = ["check_labels"]

# Types of labels that libraries keep in arrays of their own, so that some may be missing; by their kind.
NULLABLE = {"i": np.int64, "u": np.uint64, "b": np.bool_}
NO_DATES = "dates and durations are no classes; turn them into text, such as '2026-03', or into numbers"


def check_labels(y: Any, *, warn: bool = True) -> NDArray[Any]:
    """Labels as an array of one type, none of them missing."""
    kind = getattr(getattr(y, "dtype", None), "kind", None)
    if kind in NULLABLE and not isinstance(y.dtype, np.dtype) and not y.isna().any():
        y = y.to_numpy(dtype=NULLABLE[kind])  # which would become floats else
    elif kind == "O":
        y = np.asarray(y)  # so that categories keep their type
    y = column_or_1d(as_array(y) if isinstance(y, Sequence) else y, warn=warn)
    if y.dtype.kind != "O":
        check_array(y, ensure_2d=False, dtype=None, input_name="y")
    elif set(map(type, y)) != {str}:  # plain text, the usual case, needs no look at each label
        y = _of_one_type(_present(y))
    if y.dtype.kind in "mM":
        raise ValueError(NO_DATES)
    check_classification_targets(y)
    return np.asarray(y)


def _present(y: NDArray[Any]) -> NDArray[Any]:
    """Labels that are none of them missing, nor dates."""
    for row, label in enumerate(y):
        if is_missing(label):
            raise ValueError(f"Input y contains NaN: row {row} (from 0) has no label; drop the rows without one")
    if any(isinstance(label, DATES) for label in y):
        raise ValueError(NO_DATES)
    return y


def _of_one_type(y: NDArray[Any]) -> NDArray[Any]:
    """Labels as an array of their type; a column that had holes leaves objects."""
    if all(isinstance(label, str) for label in y):
        return y
    truths = [isinstance(label, (bool, np.bool_)) for label in y]
    if all(truths) or (not any(truths) and all(isinstance(label, Real) for label in y)):
        return np.array(y.tolist())
    kinds = {type(label).__name__: label for label in y}
    found = " and ".join(f"{label!r} ({kind})" for kind, label in [*kinds.items()][:2])
    raise ValueError(f"labels are text, whole numbers or booleans, all of one type, not {found}; turn them into text")
