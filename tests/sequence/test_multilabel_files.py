"""MultiLabelClassifier as a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="tables are pandas frames here")


from marginbayes.sequence import MultiLabelClassifier, StructuredHybrid
from tests.sequence.test_multilabel import rows


@pytest.mark.parametrize("kind", ["frame", "array", "flat"])
def test_a_classifier_read_from_its_file_answers_bit_for_bit_the_same(tmp_path: Path, kind: str) -> None:
    X, Y = rows()
    X.iloc[::7, 0] = np.nan
    if kind == "array":
        X, Y = X[["u", "v"]].to_numpy(), Y.to_numpy()
    if kind == "flat":
        Y = Y["third"]
    clf = MultiLabelClassifier("ml", decoding="joint").fit(X, Y)
    clf.to_json(tmp_path / "m.json")
    again = MultiLabelClassifier.from_json(tmp_path / "m.json")
    assert again.get_params()["decoding"] == "joint"
    assert again.get_params()["parameters"] == "ml"
    np.testing.assert_array_equal(again.predict(X), clf.predict(X))
    for ours, theirs in zip(again.predict_proba(X), clf.predict_proba(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert again.network_.to_json() == clf.network_.to_json()
    again.to_json(tmp_path / "n.json")
    assert (tmp_path / "n.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_a_classifier_read_from_its_file_learns_the_same_tree_again(tmp_path: Path) -> None:
    X, Y = rows()
    Y = Y.rename(columns={"first": "u"})  # a feature is called so, too
    clf = MultiLabelClassifier(StructuredHybrid(B=1.0)).fit(X, Y)
    clf.to_json(tmp_path / "m.json")
    again = MultiLabelClassifier.from_json(tmp_path / "m.json")
    assert again.fit(X, Y).model_.parents == clf.model_.parents


def test_columns_are_found_by_name_and_a_missing_one_is_named(tmp_path: Path) -> None:
    X, Y = rows()
    clf = MultiLabelClassifier("ml").fit(X, Y)
    clf.to_json(tmp_path / "m.json")
    again = MultiLabelClassifier.from_json(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(X[["v", "u", "w"]]), clf.predict(X))
    with pytest.raises(ValueError, match="w"):
        again.predict(X[["u", "v"]])


SPOILED: list[tuple[str, Any, str]] = [
    ("tree", ["second", "first", None], "cycle"),
    ("tree", [None, None, "u"], "no target"),
    ("tree", [], "no list"),
    ("flat", True, "several targets"),
    ("decoding", "best", "decoding"),
    ("parameters", "magic", "parameters"),
    ("columns", "u", "columns"),
    ("columns", ["u"], "columns"),
    ("columns", ["u", "v", "z"], "columns"),
    ("columns", 5, "columns"),
    ("tables", {"targets": []}, "should hold"),
    ("tables", {"targets": [], "cells": []}, "each of the 3 targets"),
    ("more", 1, "besides"),
]


@pytest.mark.parametrize(("field", "value", "reason"), SPOILED)
def test_a_spoiled_file_is_refused_in_one_sentence(tmp_path: Path, field: str, value: Any, reason: str) -> None:
    X, Y = rows()
    path = tmp_path / "m.json"
    MultiLabelClassifier("ml").fit(X, Y).to_json(path)
    document = json.loads(path.read_text("utf-8"))
    document[field] = value
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(ValueError, match=reason) as caught:
        MultiLabelClassifier.from_json(path)
    assert str(path) in str(caught.value)


def test_tables_that_do_not_sum_to_one_are_refused(tmp_path: Path) -> None:
    X, Y = rows()
    path = tmp_path / "m.json"
    MultiLabelClassifier("ml").fit(X, Y).to_json(path)
    document = json.loads(path.read_text("utf-8"))
    document["tables"]["cells"][0][0][0] -= 0.1
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(ValueError, match="does not sum to one"):
        MultiLabelClassifier.from_json(path)


def test_the_command_line_shows_its_network_and_says_where_to_predict(tmp_path: Path) -> None:
    typer = pytest.importorskip("typer.testing", reason="the command line is an extra")
    from marginbayes.cli.app import app

    X, Y = rows()
    MultiLabelClassifier("ml").fit(X, Y).to_json(tmp_path / "m.json")
    X.to_csv(tmp_path / "x.csv", index=False)
    runner = typer.CliRunner()
    shown = runner.invoke(app, ["show", str(tmp_path / "m.json")])
    assert shown.exit_code == 0
    assert "third" in shown.stdout
    refused = runner.invoke(app, ["predict", str(tmp_path / "m.json"), str(tmp_path / "x.csv")])
    assert "MultiLabelClassifier.from_json" in refused.stderr + str(refused.exception)
