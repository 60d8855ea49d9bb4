"""Fitted classifiers of several targets as JSON: the tree, the schema, and the log tables."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.schema import Schema
from marginbayes.network.json import check_header, format_document, read_document, schema_from_dict, schema_to_dict
from marginbayes.sequence.learners import WeightResult
from marginbayes.sequence.tabled import check_fields, check_proper, columns_of, log_table, plain_table, set_columns
from marginbayes.sequence.tree import TreeModel
from marginbayes.writing import write_text

if TYPE_CHECKING:
    from marginbayes.sequence.multilabel import MultiLabelClassifier

__all__ = ["FORMAT", "read_multilabel", "write_multilabel"]

FORMAT, VERSION = "marginbayes.multilabel", 1
FIELDS = {"format", "version", "parameters", "decoding", "flat", "columns", "variables", "tree", "tables"}
TABLES = ("targets", "cells")

Floats = NDArray[np.float64]


def write_multilabel(classifier: MultiLabelClassifier, path: str | PathLike[str]) -> None:
    """Write a fitted classifier, whole or not at all."""
    targets, cells = classifier.model_.tables(classifier.weights_)
    names = classifier.schema_.names
    document = {
        "format": FORMAT,
        "version": VERSION,
        "parameters": classifier.parameters if isinstance(classifier.parameters, str) else None,
        "decoding": classifier.decoding,
        "flat": bool(classifier.flat_),
        "columns": columns_of(classifier),
        **schema_to_dict(classifier.schema_),
        "tree": [None if parent < 0 else names[parent] for parent in classifier.model_.parents],
        "tables": {"targets": [plain_table(t) for t in targets], "cells": [plain_table(t) for t in cells]},
    }
    write_text(path, format_document(document))


def read_multilabel(path: str | PathLike[str]) -> MultiLabelClassifier:
    """The fitted classifier of such a file; anything amiss is one ValueError that names the file."""
    return read_document(path, _from_dict)


def _from_dict(document: Any) -> MultiLabelClassifier:
    from marginbayes.sequence.multilabel import DECODINGS, MultiLabelClassifier

    check_header(document, FORMAT, VERSION)
    check_fields(document, FIELDS, DECODINGS)
    schema = schema_from_dict({"variables": document["variables"]})
    model = _model(schema, document["tree"])
    n, flat = len(model.cardinalities), document["flat"]
    if not isinstance(flat, bool) or (flat and n > 1):
        raise ValueError('"flat" is neither true nor false, or true with several targets')
    tree = [(parent, k) for k, parent in enumerate(model.parents) if parent >= 0]
    classifier = MultiLabelClassifier(tree=tree, decoding=document["decoding"])
    if document["parameters"] is not None:
        classifier.set_params(parameters=document["parameters"])
    set_columns(classifier, document["columns"], schema.names[n:])
    classes = [variable.labels for variable in schema.variables[:n]]
    classifier.flat_, classifier.classes_ = flat, classes[0] if flat else classes
    classifier.schema_, classifier.model_ = schema, model
    classifier.weights_ = _weights(document["tables"], model)
    classifier.parameter_result_ = WeightResult(classifier.weights_)
    return classifier


def _model(schema: Schema, tree: Any) -> TreeModel:
    """The tree: for each target the name of its parent or None."""
    cards = schema.cardinalities
    if not isinstance(tree, list) or not 0 < len(tree) <= len(cards):
        raise ValueError('"tree" is no list with the parent, or null, of each target')
    targets = schema.names[: len(tree)]
    for parent in tree:
        if parent is not None and parent not in targets:
            raise ValueError(f'"tree" has the parent {parent!r}, which is no target')
    parents = tuple(-1 if parent is None else targets.index(parent) for parent in tree)
    return TreeModel(cards[: len(tree)], parents, cards[len(tree) :])


def _weights(tables: Any, model: TreeModel) -> Floats:
    if not isinstance(tables, dict) or set(tables) != set(TABLES):
        raise ValueError(f'"tables" should hold {", ".join(TABLES)}')
    parts = []
    for name, own in zip(TABLES, model.tables(np.empty(model.n_weights)), strict=True):
        if not isinstance(tables[name], list) or len(tables[name]) != len(own):
            raise ValueError(f'"{name}" should hold a table for each of the {len(own)} targets')
        parts.append([log_table(rows, name, table.shape) for rows, table in zip(tables[name], own, strict=True)])
    weights = model.flatten(*parts)
    check_proper(model.rows, weights)
    return weights
