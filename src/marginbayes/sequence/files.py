"""Fitted labelers as JSON: the shape of the chain, the schema, and the log tables."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.network.json import (
    check_header,
    format_document,
    read_document,
    schema_from_dict,
    schema_to_dict,
)
from marginbayes.sequence.learners import WeightResult
from marginbayes.sequence.model import ChainModel
from marginbayes.sequence.tabled import check_fields, check_proper, columns_of, log_table, plain_table, set_columns
from marginbayes.writing import write_text

if TYPE_CHECKING:
    from marginbayes.sequence.labeler import SequenceLabeler

__all__ = ["FORMAT", "read_labeler", "write_labeler"]

FORMAT, VERSION = "marginbayes.sequence", 3
FIELDS = {
    *("format", "version", "window", "order", "parameters", "decoding", "sequence", "ids", "columns"),
    *("variables", "tables"),
}
TABLES = ("start", "steps", "cells")

Floats = NDArray[np.float64]


def write_labeler(labeler: SequenceLabeler, path: str | PathLike[str]) -> None:
    """Write a fitted labeler, whole or not at all."""
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
        "columns": columns_of(labeler),
        **schema_to_dict(labeler.schema_),
        "tables": {"start": plain_table(start[None]), "steps": plain_table(steps), "cells": plain_table(emission)},
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
    check_fields(document, FIELDS, DECODINGS)
    schema = schema_from_dict({"variables": document["variables"]})
    if not isinstance(document["ids"], bool):
        raise ValueError('"ids" is neither true nor false')
    model = ChainModel(schema.cardinalities[0], schema.cardinalities[1:], document["window"], document["order"])
    labeler = SequenceLabeler(model.window, model.order, sequence=document["sequence"], decoding=document["decoding"])
    if document["parameters"] is not None:
        labeler.set_params(parameters=document["parameters"])
    set_columns(labeler, document["columns"], schema.names[1:], document["sequence"] is not None)
    labeler.ids_given_ = document["ids"]
    labeler.classes_ = schema.target.labels
    labeler.schema_, labeler.model_ = schema, model
    labeler.weights_ = _weights(document["tables"], model)
    labeler.parameter_result_ = WeightResult(labeler.weights_)
    return labeler


def _weights(tables: Any, model: ChainModel) -> Floats:
    if not isinstance(tables, dict) or set(tables) != set(TABLES):
        raise ValueError(f'"tables" should hold {", ".join(TABLES)}')
    shapes = ((1, model.n_labels), (model.n_states, model.n_labels + 1), (int(model.first_cells[-1]), model.n_labels))
    start, steps, cells = (log_table(tables[name], name, shape) for name, shape in zip(TABLES, shapes, strict=True))
    weights = model.flatten(start[0], steps, cells)
    check_proper(model.rows, weights)
    return weights
