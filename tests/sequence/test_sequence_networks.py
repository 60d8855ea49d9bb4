"""Chains as ordinary networks, and as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="tables are pandas frames here")

import pandas as pd

from marginbayes.sequence import SequenceLabeler, StructuredLikelihood
from marginbayes.sequence.unroll import END, OUTSIDE


def fitted(order: int = 1, window: int = 1, parameters: str = "m3n", **other: Any) -> tuple[SequenceLabeler, Any]:
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(8), [1, 3, 4, 2, 6, 3, 5, 4])
    y = rng.choice(["p", "q"], len(ids))
    X = pd.DataFrame({"id": ids, "a": np.where(rng.random(len(ids)) < 0.7, y, "r"), "b": rng.normal(size=len(ids))})
    X["b"] += 2.0 * (y == "p")
    labeler = SequenceLabeler(window, order, parameters, sequence="id", **other)
    return labeler.fit(X, pd.Series(y, name="state")), X


@pytest.mark.parametrize(("order", "window"), [(1, 1), (1, 3), (2, 1)])
def test_the_unrolled_network_gives_the_answers_of_the_labeler(order: int, window: int) -> None:
    labeler, X = fitted(order, window)
    row = X[X["id"] == 2]
    network = labeler.to_network(len(row))
    assert network.normalized
    evidence: dict[str, Any] = {f"state[{len(row) + 1}]": END}
    codes = labeler.schema_["b"]
    for t in range(1, len(row) + 1):
        for shift in range(-(window // 2), window // 2 + 1):
            at = f"{t}{shift:+d}" if shift else f"{t}"
            there = t - 1 + shift
            inside = 0 <= there < len(row)
            level = codes.levels[np.searchsorted(codes.cuts, row["b"].iloc[there])] if inside else OUTSIDE
            evidence[f"a[{at}]"] = row["a"].iloc[there] if inside else OUTSIDE
            evidence[f"b[{at}]"] = level
    chances = labeler.predict_proba(row)
    for t in range(1, len(row) + 1):
        found = network.query(f"state[{t}]", evidence)
        np.testing.assert_allclose(found[:2], chances[t - 1], atol=1e-10)
        assert found[2:].sum() == pytest.approx(0.0)


def test_the_slices_of_a_network_share_their_tables() -> None:
    labeler, _ = fitted()
    network = labeler.to_network(4)
    third, fourth = network.probabilities("state[3]"), network.probabilities("state[4]")
    np.testing.assert_array_equal(third, fourth)
    np.testing.assert_array_equal(third[:2], network.probabilities("state[2]"))
    np.testing.assert_array_equal(third[2], [0, 0, 1])
    assert labeler.network_.dag.names[0] == "state[1]"
    with pytest.raises(ValueError, match="length=0 must be a whole number, at least 1"):
        labeler.to_network(0)


def test_rows_drawn_from_the_network_have_the_mean_length_of_the_training_sequences() -> None:
    labeler, X = fitted()
    rows = labeler.to_network(60).sample(4000, random_state=0)
    names = labeler.to_network(60).dag.names
    labels = np.array([rows.codes[names.index(f"state[{t}]")] for t in range(1, 61)])
    lengths = (labels < 2).sum(axis=0)
    mean = (len(X) + 1) / 8
    assert abs(lengths.mean() - mean) < 5 * lengths.std() / np.sqrt(4000)


@pytest.mark.parametrize("parameters", ["ml", "mm-hybrid"])
def test_a_labeler_comes_back_from_its_file_with_the_same_answers(parameters: str, tmp_path: Path) -> None:
    labeler, X = fitted(2, 3, parameters, decoding="marginal")
    path = tmp_path / "labeler.json"
    labeler.to_json(path)
    again = SequenceLabeler.from_json(path)
    np.testing.assert_array_equal(again.predict_proba(X), labeler.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), labeler.predict(X))
    again.to_json(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    assert again.classes_.tolist() == ["p", "q"]
    assert list(again.feature_names_in_) == ["id", "a", "b"]


def test_a_labeler_that_was_given_ids_asks_for_them_after_its_file_too(tmp_path: Path) -> None:
    labeler, X = fitted()
    path, rest, y = tmp_path / "labeler.json", X.drop(columns="id"), labeler.predict(X)
    SequenceLabeler().fit(rest, y, sequence=X["id"]).to_json(path)
    with pytest.raises(ValueError, match="fit was given sequence ids; give them here too"):
        SequenceLabeler.from_json(path).predict(rest)
    document = json.loads(path.read_text())
    del document["ids"]
    del document["parameters"]
    path.write_text(json.dumps({**document, "version": 1}))  # files of before did not say
    assert len(SequenceLabeler.from_json(path).predict(rest)) == len(X)


def test_a_file_keeps_the_name_of_the_learner(tmp_path: Path) -> None:
    labeler, X = fitted()
    path, y = tmp_path / "labeler.json", labeler.predict(X)
    for learner, kept in (("ml", "ml"), ("m3n", "m3n"), (StructuredLikelihood(), SequenceLabeler().parameters)):
        SequenceLabeler(parameters=learner, sequence="id").fit(X, y).to_json(path)
        assert SequenceLabeler.from_json(path).parameters == kept


def test_impossible_steps_survive_the_file(tmp_path: Path) -> None:
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    labeler = SequenceLabeler(sequence=0, parameters="ml", smoothing=0.0).fit(X, [0, 1, 0, 1])
    labeler.to_json(tmp_path / "labeler.json")
    again = SequenceLabeler.from_json(tmp_path / "labeler.json")
    np.testing.assert_array_equal(again.weights_, labeler.weights_)
    assert np.isneginf(again.weights_).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not a marginbayes.sequence file"),
        ({"version": 4}, "upgrade marginbayes"),
        ({"parameters": "best"}, '"parameters" is neither null nor one of ml'),
        ({"window": 2}, "window=2 must be an odd number"),
        ({"decoding": "best"}, '"decoding" is none of'),
        ({"columns": "abc"}, '"columns" is neither'),
        ({"tables": {"start": [[0.0]]}}, '"tables" should hold start, steps, cells'),
        ({"ids": 1}, '"ids" is neither true nor false'),
        ({"extra": 1}, "lacks, or has besides what it should"),
    ],
)
def test_a_damaged_file_is_refused_with_one_sentence(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    labeler, _ = fitted()
    path = tmp_path / "labeler.json"
    labeler.to_json(path)
    document = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=message) as caught:
        SequenceLabeler.from_json(path)
    assert "labeler.json" in str(caught.value)


@pytest.mark.parametrize("value", ["x", None, 1.0, [0.0]])
def test_a_table_that_is_no_table_is_refused(value: Any, tmp_path: Path) -> None:
    labeler, _ = fitted()
    path = tmp_path / "labeler.json"
    labeler.to_json(path)
    document = json.loads(path.read_text())
    document["tables"]["steps"][0][0] = value
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"steps|sum to one"):
        SequenceLabeler.from_json(path)
