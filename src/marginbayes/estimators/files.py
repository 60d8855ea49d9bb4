"""AODE classifiers as JSON: parameters, schema and counts."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.encode import categorical_mask
from marginbayes.data.schema import Schema
from marginbayes.estimators.streaming import Counts, Stream
from marginbayes.estimators.validation import set_feature_names
from marginbayes.network.json import (
    check_header,
    format_document,
    read_document,
    schema_from_dict,
    schema_to_dict,
)
from marginbayes.writing import write_text

if TYPE_CHECKING:
    from marginbayes.estimators.aode import AODEClassifier

__all__ = ["read_aode", "write_aode"]

FORMAT, VERSION = "marginbayes.aode", 1


def write_aode(classifier: AODEClassifier, path: str | PathLike[str]) -> None:
    """Write a fitted classifier, whole or not at all."""
    stream: Stream = classifier._fitted()._stream
    assert stream.counts.pairs is not None
    document = {
        "format": FORMAT,
        "version": VERSION,
        "frequency_limit": float(classifier.frequency_limit),
        "smoothing": float(classifier.smoothing),
        "class_weight": _weights_to_plain(classifier.class_weight, stream.schema),
        "categorical_features": _categories_to_plain(classifier.categorical_features, stream.schema),
        **schema_to_dict(stream.schema),
        "classes": _plain(stream.counts.classes),
        "single": _plain(stream.counts.single),
        "pairs": _plain(stream.counts.pairs),
    }
    write_text(path, format_document(document))


def read_aode(path: str | PathLike[str]) -> AODEClassifier:
    """The fitted classifier of such a file; anything amiss is one ValueError that names the file."""
    return read_document(path, _from_dict)


def _from_dict(document: Any) -> AODEClassifier:
    from marginbayes.estimators.aode import AODEClassifier

    check_header(document, FORMAT, VERSION)
    lacking = {"frequency_limit", "smoothing", "variables", "classes", "single", "pairs"} - set(document)
    if lacking:
        raise ValueError(f'the classifier has no "{min(lacking)}"')
    schema = schema_from_dict({"variables": document["variables"]})
    classifier = AODEClassifier(
        float(_numbers(document["frequency_limit"], "frequency_limit", ())),
        smoothing=float(_numbers(document["smoothing"], "smoothing", ())),
        class_weight=_weights(document.get("class_weight"), schema),
        categorical_features=_categories(document.get("categorical_features", "from_dtype"), schema),
    )
    set_feature_names(classifier, schema.names[1:])
    return classifier._store(Stream(schema.target.labels, schema, _counts(document, schema)))


def _counts(document: dict[str, Any], schema: Schema) -> Counts:
    classes, levels = schema.cardinalities[0], sum(schema.cardinalities[1:])
    return Counts(
        _numbers(document["classes"], "classes", (classes,)),
        _numbers(document["single"], "single", (classes, levels)),
        _numbers(document["pairs"], "pairs", (classes, levels, levels)),
    )


def _weights_to_plain(class_weight: Any, schema: Schema) -> Any:
    """One number for each class, in their order, for a dictionary."""
    if class_weight is None or isinstance(class_weight, str):
        return class_weight
    return [float(class_weight.get(label, 1.0)) for label in schema.target.levels]


def _weights(value: Any, schema: Schema) -> Any:
    if value is None or value == "balanced":
        return value
    weights = _numbers(value, "class_weight", (schema.target.cardinality,))
    return dict(zip(schema.target.levels, weights.tolist(), strict=True))


def _categories_to_plain(choice: Any, schema: Schema) -> Any:
    """Names, however the columns were chosen."""
    chosen = categorical_mask(choice, schema.names[1:])
    return [name for name, categorical in zip(schema.names[1:], chosen, strict=True) if categorical] or "from_dtype"


def _categories(value: Any, schema: Schema) -> Any:
    if value != "from_dtype" and not (isinstance(value, list) and all(name in schema.names[1:] for name in value)):
        raise ValueError('"categorical_features" names columns that are not there')
    return value


def _numbers(value: Any, what: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    try:
        array = np.array(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f'"{what}" does not hold numbers') from None
    if array.shape != shape or not (array >= 0).all() or not np.isfinite(array).all():
        raise ValueError(f'"{what}" does not hold numbers of the shape {shape} that are not negative')
    return array


def _plain(counts: NDArray[np.float64]) -> Any:
    """Nested lists, whole numbers without a point."""
    whole = bool((counts == np.floor(counts)).all() and counts.max(initial=0.0) < 2**53)
    return (counts.astype(np.int64) if whole else counts).tolist()
