"""Weights of rows: those of the caller times those of the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_consistent_length

from marginbayes import checks

__all__ = ["check_weights"]

Floats = NDArray[np.float64]


def check_weights(
    sample_weight: Any, class_weight: Any, y: NDArray[Any], classes: NDArray[Any] | None = None
) -> Floats | None:
    """The weight of each row; None where all are one.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), number or None
    class_weight : dict, "balanced" or None
        A class without an entry has the weight 1. Balanced classes all weigh the same in total, and all rows together
        what they weighed before.
    y : array of shape (n_samples,)
    classes : array or None
        All classes there are, where `y` need not have them all.
    """
    if sample_weight is None and class_weight is None:
        return None
    weights = _of_rows(sample_weight, y)
    if class_weight is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            weights *= _of_classes(class_weight, weights, y, np.unique(y) if classes is None else classes)
        _check_amounts(weights, "class_weight")
        if not weights.any():
            raise ValueError("class_weight leaves no row with a weight above zero; give some class more")
    return weights


def _of_rows(sample_weight: Any, y: NDArray[Any]) -> Floats:
    if sample_weight is None:
        return np.ones(len(y))
    try:
        np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight must be one number for each row, not {sample_weight!r}") from None
    if np.isscalar(sample_weight):
        weights = np.full(len(y), sample_weight, np.float64)
    else:  # a copy: class weights are multiplied in
        weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight", copy=True)
        if weights.ndim != 1:
            raise ValueError("Sample weights must be 1D array or scalar")
        check_consistent_length(weights, y)
    _check_amounts(weights, "sample_weight")
    if not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number: all of sample_weight is zero")
    return np.asarray(weights)


def _of_classes(class_weight: Any, weights: Floats, y: NDArray[Any], classes: NDArray[Any]) -> Floats:
    """The factor of each row."""
    own, codes = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(codes, weights)
        there = totals > 0  # a class whose rows all have the weight zero does not count
        return np.asarray((weights.sum() / (there.sum() * np.where(there, totals, 1.0)))[codes])
    if not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight={class_weight!r} is not known; say 'balanced' or give a dictionary of weights")
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    # If every class has its weight, more names are no mistake: a part of the rows may lack a class.
    if unknown and not all(label in class_weight for label in known):
        raise ValueError(f"class_weight names {unknown[0]!r}, which is none of the classes")
    return np.array([_of_class(class_weight, label) for label in own.tolist()])[codes]


def _of_class(class_weight: Mapping[Any, Any], label: Any) -> float:
    weight = class_weight.get(label, 1.0)
    checks.not_negative(f"class_weight[{label!r}]", weight)
    return float(weight)


def _check_amounts(weights: Floats, what: str) -> None:
    wrong = ~((weights >= 0) & (weights < np.inf))
    if wrong.any():
        row = int(np.argmax(wrong))
        kind = "Negative values in data" if weights[row] < 0 else "NaN or infinity"
        raise ValueError(f"{kind} passed to {what}: row {row} (from 0) would have the weight {weights[row]:g}")
