"""Checks at the border: what the user passed to `fit` and `predict`, once, with a sentence that helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from marginbayes.data.frame import Frame, array_names, as_array, is_frame, read_frame, without_mask
from marginbayes.data.labels import check_labels
from marginbayes.estimators.weights import check_weights

__all__ = [
    "Training",
    "check_cost",
    "check_labels",
    "check_prior",
    "names_at_fit",
    "read_features",
    "read_training",
    "set_feature_names",
]

Floats = NDArray[np.float64]


class Training:
    """Checked training data: the table, the class codes, the classes, the weights (None: all one), the target.

    `given` are the weights of the caller alone, without those of the classes.
    """

    def __init__(
        self, frame: Frame, y: NDArray[Any], weights: Floats | None, target: str, given: Floats | None
    ) -> None:
        self.frame = frame
        self.classes, self.labels = np.unique(y, return_inverse=True)
        self.weights = weights
        self.target = target
        self.given = given


def read_training(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Any = None,
    *,
    classes: NDArray[Any] | None = None,
    nodes: Sequence[str] = (),
    reset: bool = True,
) -> Training:
    """Training data after all checks; rows of weight zero are as if absent, and y may lack some of `classes`.

    `nodes` are those of a given graph, which may say what a y without a name is called.
    """
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    frame = read_features(estimator, X, reset=reset)
    name = _target_name(y, frame.names, nodes)
    y = check_labels(y)
    if len(y) != frame.n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {frame.n_rows} rows, y {len(y)}"
        )
    weights = check_weights(sample_weight, class_weight, y, classes)
    given = weights if class_weight is None else check_weights(sample_weight, None, y)
    if weights is not None and (weights == 0).any():
        kept = np.flatnonzero(weights)
        frame = frame.take(kept)
        y, weights = y[kept], weights[kept]
        given = None if given is None else given[kept]
    return Training(frame, y, weights, name, given)


def read_features(estimator: Any, X: Any, *, reset: bool = False) -> Frame:
    """Table of features; at predict its columns in the order of `fit`."""
    if not is_frame(X):
        table = as_array(X) if isinstance(X, Sequence) else without_mask(X)
        frame = read_frame(validate_data(estimator, table, reset=reset, dtype=None, ensure_all_finite="allow-nan"))
        if reset:
            estimator._frame_names = None
        names = None if reset else getattr(estimator, "feature_names_in_", None)
        return frame if names is None else Frame(tuple(names), frame.n_rows, frame.source)
    frame = read_frame(X)
    if not frame.n_rows:
        raise ValueError("Found array with 0 sample(s): the table has no rows")
    if not frame.names:
        raise ValueError(f"0 feature(s) (shape=({frame.n_rows}, 0)) while a minimum of 1 is required.")
    names = None if reset else _names_to_find(estimator, frame)
    if names is not None:
        return _in_order_of_fit(frame, list(names))
    # Sets or checks n_features_in_ and feature_names_in_; the values are read column by column later.
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    if reset:  # scikit-learn keeps no names that are not strings
        estimator._frame_names = frame.names
    return frame


def set_feature_names(estimator: Any, names: Sequence[str]) -> None:
    """Names of the columns as `fit` keeps them: none where they are those of an array."""
    estimator.n_features_in_ = len(names)
    if tuple(names) != array_names(len(names)):
        estimator.feature_names_in_ = np.array(names, dtype=object)


def names_at_fit(estimator: Any) -> Sequence[str] | None:
    """Names by which columns are found at predict; None where they go by position."""
    names: Sequence[str] | None = getattr(estimator, "feature_names_in_", getattr(estimator, "_frame_names", None))
    return names


def _names_to_find(estimator: Any, frame: Frame) -> Sequence[str] | None:
    """The same; columns called like those of an array are found by these names."""
    names, own = names_at_fit(estimator), array_names(estimator.n_features_in_)
    return own if names is None and {*frame.names} == {*own} else names


def _in_order_of_fit(frame: Frame, names: list[str]) -> Frame:
    missing = [n for n in names if n not in frame.names]
    if missing:
        raise ValueError(
            f"the column {missing[0]!r} was there at fit but is missing now"
            f"{_and_more(missing)}; add it, with empty cells if it is unknown"
        )
    extra = [n for n in frame.names if n not in names]
    if extra:
        raise ValueError(f"the column {extra[0]!r} was not there at fit{_and_more(extra)}; leave it out")
    return frame if list(frame.names) == names else frame.select(names)


def _listed(names: list[Any]) -> str:
    return ", ".join(map(repr, names[:5])) + (" ..." if len(names) > 5 else "")


def _and_more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more: {', '.join(map(repr, names[1:4]))})" if len(names) > 1 else ""


def _target_name(y: Any, features: tuple[str, ...], nodes: Sequence[str]) -> str:
    """The name of y if it has one, else "class"; underscores are added until no feature is called so.

    Where the features are all nodes of a given graph but one, a y without a name is that one.
    """
    name = getattr(y, "name", None)
    if not (isinstance(name, str) and name):
        others = [node for node in nodes if node not in features]
        name = others[0] if len(others) == 1 and len(nodes) == len(features) + 1 else "class"
    while name in features:
        name += "_"
    return name


def check_prior(prior: Mapping[Any, float] | Any, classes: NDArray[Any]) -> Floats:
    """One probability for each class, in the order of `classes`, summing to one."""
    if hasattr(prior, "to_dict"):  # a pandas Series: by its labels, in whatever order they come
        prior = prior.to_dict()
    if isinstance(prior, Mapping):
        unknown = [c for c in prior if c not in classes]
        lacking = [c for c in classes.tolist() if c not in prior]
        if unknown or lacking:
            raise ValueError(f"prior must give one number for each class; unknown: {unknown}, lacking: {lacking}")
        prior = [prior[c] for c in classes.tolist()]
    values = _numbers(prior)
    if values.shape != (len(classes),) or not (values >= 0).all() or not np.isclose(values.sum(), 1.0):
        raise ValueError(f"prior must be {len(classes)} numbers that are not negative and sum to one, not {prior!r}")
    return values


def check_cost(cost: Any, classes: NDArray[Any]) -> Floats:
    """Square matrix: row = true class, column = class that is predicted; a data frame is read by its labels."""
    matrix = _numbers(_by_labels(cost, classes.tolist()) if is_frame(cost) else cost)
    if matrix.shape != (len(classes), len(classes)) or not np.isfinite(matrix).all():
        raise ValueError(
            f"cost must be a {len(classes)} x {len(classes)} matrix of numbers, "
            f"row = true class, column = predicted class, not {cost!r}"
        )
    return matrix


def _numbers(values: Any) -> Floats:
    """An array of floats; a NaN where there is none in it, so that whoever asked can say what it should have been."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        return np.array(np.nan)


def _by_labels(cost: Any, classes: list[Any]) -> NDArray[Any]:
    """The cells of a data frame in the order of the classes; the rows of one without an index go as its columns."""
    if hasattr(cost, "index"):
        rows, columns = cost.index.tolist(), cost.columns.tolist()
    else:
        rows = columns = list(read_frame(cost).names)
        classes = [str(label) for label in classes]
    for labels in (rows, columns):
        if len(labels) != len(classes) or not all(label in labels for label in classes):
            raise ValueError(
                f"rows and columns of cost must be called as the classes, {_listed(classes)}, not {_listed(labels)}; "
                "give an array, or a pandas frame with these labels"
            )
    places = np.ix_([rows.index(label) for label in classes], [columns.index(label) for label in classes])
    return np.asarray(cost)[places]
