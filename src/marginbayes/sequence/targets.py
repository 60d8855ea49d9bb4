"""Several targets per row: checked, named and encoded, and features discretised for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import KBinsDiscretizer

from marginbayes.data.encode import Encoder, categorical_mask
from marginbayes.data.frame import Frame, as_array, is_frame, is_missing, read_frame
from marginbayes.data.mdlp import interval_labels
from marginbayes.data.schema import Schema, Variable
from marginbayes.estimators.base import warn_of_columns
from marginbayes.estimators.validation import check_labels, read_training

__all__ = ["Targets", "as_targets", "learn_schema", "read_targets"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Targets:
    """Checked training data: the table, names and levels of the targets, their codes (targets x rows), and weights.

    `given` are the names that y has; `names` differ from them where a feature is called so.
    """

    frame: Frame
    given: tuple[str, ...]
    names: tuple[str, ...]
    classes: tuple[NDArray[Any], ...]
    labels: Integers
    weights: Floats | None
    flat: bool


def as_targets(y: Any) -> NDArray[Any]:
    """Array of labels; of objects where the columns of a frame, or of nested lists, have types of their own."""
    if not is_frame(y):
        return as_array(y)
    frame = read_frame(y).source
    cells = np.empty(frame.shape, object)
    for k in range(frame.shape[1]):
        cells[:, k] = frame[:, k].to_list()
    return cells


def read_targets(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Targets:
    """Training data after all checks; rows of weight zero are as if absent."""
    if y is None or as_targets(y).ndim != 2:
        data = read_training(estimator, X, y, sample_weight)
        own = (data.target,)
        return Targets(data.frame, own, own, (data.classes,), data.labels[None], data.weights, flat=True)
    cells = as_targets(y)
    given = read_frame(y).names if is_frame(y) else tuple(f"y{k}" for k in range(cells.shape[1]))
    columns = [_checked(column, given[k] if is_frame(y) else k) for k, column in enumerate(cells.T)]
    if not columns:
        raise ValueError("y has no column; give at least one target")
    data = read_training(estimator, X, columns[0], sample_weight)
    if data.frame.n_rows != len(columns[0]):
        kept = np.flatnonzero(np.asarray(sample_weight, float))
        columns = [column[kept] for column in columns]
    found = [np.unique(column, return_inverse=True) for column in columns]
    return Targets(
        data.frame,
        given,
        _names(given, data.frame.names),
        tuple(levels for levels, _ in found),
        np.array([codes for _, codes in found], np.int64),
        data.weights,
        flat=False,
    )


def _checked(column: NDArray[Any], target: str | int) -> NDArray[Any]:
    cells = column.tolist()
    missing = [is_missing(v) for v in cells]
    if any(missing):
        row = missing.index(True)
        raise ValueError(
            f"Input y contains NaN: row {row} (from 0) has no label for target {target!r}; drop the rows without one"
        )
    try:
        labels = check_labels(column)
    except ValueError as error:
        raise ValueError(f"target {target!r}: {error}") from None
    return np.array(labels.tolist()) if labels.dtype.kind == "O" else labels


def _names(given: tuple[str, ...], features: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the targets; to that of a feature underscores are added until nothing else is called so."""
    names, taken = [], {*features, *given}
    for name in given:
        own = name
        while own in features or (own != name and own in taken):
            own += "_"
        names.append(own)
        taken.add(own)
    return tuple(names)


def learn_schema(targets: Targets, discretizer: Any, categorical: Any, n_jobs: int | None) -> tuple[Schema, Any]:
    """Schema of the targets and the features, and the codes of the features (features x rows).

    A number gets the cut points that any of the targets asks for. A transformer without cut points is fitted with the
    first target.
    """
    mask = categorical_mask(categorical, targets.frame.names)
    learned: list[tuple[Variable, ...]] = []
    for k in range(len(targets.names)):
        encoder = Encoder(
            labels=targets.labels[k],
            n_classes=len(targets.classes[k]),
            weights=targets.weights,
            categorical=mask,
            discretizer=discretizer,
            n_jobs=n_jobs,
        )
        target = Variable("\0", tuple(targets.classes[k].tolist()))  # a name that no column has
        learned.append(encoder.learn(target, targets.frame)[0].features)
        if isinstance(discretizer, KBinsDiscretizer) or all(v.cuts is None for v in learned[0]):
            break  # no target has a say
    features = [_merged(versions) for versions in zip(*learned, strict=True)]
    own = [
        Variable(name, tuple(levels.tolist()), origin="class")
        for name, levels in zip(targets.names, targets.classes, strict=True)
    ]
    codes = np.array([v.encode(targets.frame.column(i)) for i, v in enumerate(features)])
    warn_of_columns(features, codes, targets.frame, mask)
    return Schema((*own, *features)), codes


def _merged(versions: tuple[Variable, ...]) -> Variable:
    """One variable with the cuts of all versions."""
    first = versions[0]
    if first.cuts is None or len(versions) == 1:
        return first
    cuts = np.array(sorted({cut for v in versions for cut in v.cuts or ()}))
    return replace(first, levels=tuple(interval_labels(cuts)), cuts=tuple(cuts.tolist()))
