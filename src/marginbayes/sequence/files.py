"""Fitted labelers as JSON: the shape of the chain, the schema, and the log tables."""

from __future__ import annotations

import math
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.estimators.validation import names_at_fit
from marginbayes.network.json import (
    check_header,
    format_document,
    read_document,
    schema_from_dict,
    schema_to_dict,
)
from marginbayes.sequence.learners import WeightResult
from marginbayes.sequence.learners.names import NAMES
from marginbayes.sequence.model import ChainModel
from marginbayes.verification.files import write_text

if TYPE_CHECKING:
    from marginbayes.sequence.labeler import SequenceLabeler

__all__ = ["FORMAT", "read_labeler", "write_labeler"]

FORMAT, VERSION = "marginbayes.sequence", 3
FIELDS = {
    *("format", "version", "window", "order", "parameters", "decoding", "sequence", "ids", "columns"),
    *("variables", "tables"),
}
TABLES = ("start", "steps", "cells")
# A row of a table may miss 1 by this much.
ROW_TOLERANCE = 1e-6

Floats = NDArray[np.float64]


def write_labeler(labeler: SequenceLabeler, path: str | PathLike[str]) -> None:
    """Write a fitted labeler, whole or not at all."""
    names = names_at_fit(labeler)
    start, steps, emission = labeler.model_.tables(labeler.weights_)
    sequence = labeler.sequence
    document = {
        "format": FORMAT,
        "version": VERSION,
        "window": int(labeler.model_.window),
        "order": int(labeler.model_.order),
        "parameters": labeler.parameters if isinstance(labeler.parameters, str) else None,
        "decoding": labeler.decoding,
        "sequence": sequence if sequence is None or isinstance(sequence, str) else int(sequence),
        "ids": bool(labeler.ids_given_),
        "columns": int(labeler.n_features_in_) if names is None else [str(name) for name in names],
        **schema_to_dict(labeler.schema_),
        "tables": {"start": _plain(start[None]), "steps": _plain(steps), "cells": _plain(emission)},
    }
    write_text(path, format_document(document))


def read_labeler(path: str | PathLike[str]) -> SequenceLabeler:
    """The fitted labeler of such a file; anything amiss is one ValueError that names the file."""
    return read_document(path, _from_dict)


def _from_dict(document: Any) -> SequenceLabeler:
    from marginbayes.sequence.labeler import DECODINGS, SequenceLabeler

    check_header(document, FORMAT, VERSION)
    if document["version"] == 1:  # which did not say whether ids came with the rows
        document = {"ids": False, **document}
    if document["version"] <= 2:  # nor what learned it
        document = {"parameters": None, **document}
    if odd := FIELDS ^ document.keys():
        raise ValueError(f'the labeler lacks, or has besides what it should, "{min(odd)}"')
    schema = schema_from_dict({"variables": document["variables"]})
    if not isinstance(document["ids"], bool):
        raise ValueError('"ids" is neither true nor false')
    if document["decoding"] not in DECODINGS:
        raise ValueError(f'"decoding" is none of {", ".join(DECODINGS)}')
    if document["parameters"] not in (None, *NAMES):
        raise ValueError(f'"parameters" is neither null nor one of {", ".join(NAMES)}')
    model = ChainModel(schema.cardinalities[0], schema.cardinalities[1:], document["window"], document["order"])
    labeler = SequenceLabeler(model.window, model.order, sequence=document["sequence"], decoding=document["decoding"])
    if document["parameters"] is not None:
        labeler.set_params(parameters=document["parameters"])
    labeler.n_features_in_ = _columns(labeler, document["columns"])
    labeler.ids_given_ = document["ids"]
    labeler.classes_ = schema.target.labels
    labeler.schema_, labeler.model_ = schema, model
    labeler.weights_ = _weights(document["tables"], model)
    labeler.parameter_result_ = WeightResult(labeler.weights_)
    return labeler


def _columns(labeler: SequenceLabeler, columns: Any) -> int:
    if isinstance(columns, int) and not isinstance(columns, bool):
        return columns
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ValueError('"columns" is neither a number nor a list of names')
    labeler.feature_names_in_ = np.array(columns, dtype=object)
    return len(columns)


def _weights(tables: Any, model: ChainModel) -> Floats:
    if not isinstance(tables, dict) or set(tables) != set(TABLES):
        raise ValueError(f'"tables" should hold {", ".join(TABLES)}')
    shapes = ((1, model.n_labels), (model.n_states, model.n_labels + 1), (int(model.first_cells[-1]), model.n_labels))
    start, steps, cells = (_numbers(tables[name], name, shape) for name, shape in zip(TABLES, shapes, strict=True))
    weights = model.flatten(start[0], steps, cells)
    if not (np.abs(np.expm1(model.rows.log_sums(weights))) <= ROW_TOLERANCE).all():
        raise ValueError("a row of the tables does not sum to one")
    return weights


def _numbers(value: Any, what: str, shape: tuple[int, int]) -> Floats:
    try:
        array = np.array([[-math.inf if v == "-inf" else v for v in row] for row in value], np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f'"{what}" does not hold rows of numbers') from None
    if array.shape != shape or np.isnan(array).any() or not (array <= ROW_TOLERANCE).all():
        raise ValueError(f'"{what}" does not hold logarithms of probabilities of the shape {shape}')
    return array


def _plain(table: Floats) -> list[list[float | str]]:
    return [["-inf" if value == -math.inf else value for value in row] for row in table.tolist()]
