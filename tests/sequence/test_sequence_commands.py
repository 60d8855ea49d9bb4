"""`fit --sequence`, `predict` and `evaluate` with sequences, from the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="the command line reads tables with pandas")
pytest.importorskip("typer", reason="the command line needs typer")

import pandas as pd
from typer.testing import CliRunner

from marginbayes import datasets
from marginbayes.cli.app import app
from marginbayes.datasets import read_table, synthetic
from marginbayes.sequence import SequenceLabeler, StructuredHybrid, whole_sequence_scorer
from marginbayes.verification import read_document


def run(*words: object, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(word) for word in words], prog_name="marginbayes")
    assert result.exit_code == code, f"{result.stdout}\n{result.stderr}\n{result.exception!r}"
    return result


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sequences whose rows are mixed with those of others."""
    monkeypatch.delenv("MARGINBAYES_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    data = synthetic.skewed_chain(30, 1, length=5, n_children=2, beta=0.8)
    frame = data.X.assign(chain=data.ids["seq_id"].to_numpy(), state=np.where(data.y == 1, "on", "off"))
    path = tmp_path / "chains.csv"
    frame.iloc[:150].sort_values("x1", kind="stable").to_csv(path, index=False)
    return path


def test_the_model_of_the_command_line_gives_the_answers_that_python_gives(table: Path, tmp_path: Path) -> None:
    model, proof = tmp_path / "m.json", tmp_path / "proof.json"
    options = ("--sequence", "chain", "--window", 3, "--parameters", "mm-hybrid", "--categorical", "x2")
    printed = run("fit", table, "-t", "state", *options, "-m", model, "--certificate", proof).stdout
    assert f"model written to {model}" in printed
    assert read_document(proof)["kind"] == "sequence-margin"
    data = read_table(table)
    X, y = data.drop(columns="state"), data["state"]
    labeler = SequenceLabeler(3, parameters=StructuredHybrid(), sequence="chain", categorical_features=["x2"])
    expected = labeler.fit(X, y)
    answers = pd.read_csv(io.StringIO(run("predict", model, table, "--proba", "--id", "chain").stdout))
    assert answers["prediction"].tolist() == expected.predict(X).tolist()
    assert answers["chain"].tolist() == X["chain"].tolist()
    np.testing.assert_allclose(answers[["P(off)", "P(on)"]], expected.predict_proba(X), atol=1e-12)
    assert "state[1]" in run("show", model).stdout


def test_folds_keep_sequences_whole(table: Path, tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.json"
    options = ("--sequence", "chain", "--parameters", "cl", "--folds", 3, "--json", numbers)
    printed = run("evaluate", table, "-t", "state", *options).stdout
    assert "chain-cl" in printed
    assert "150 rows, 2 features" in printed
    written = json.loads(numbers.read_text())
    assert written["sequences"]["chain-cl"]["tested"] == 30
    result = written["results"][0]
    assert 0.6 < result["accuracy"]["value"] <= 1.0
    from marginbayes.cli.sequences import sequence_tasks

    data = read_table(table)
    tested = []
    for task in sequence_tasks(data.drop(columns="state"), data["state"], "chain", 3, 2, 0):
        assert not set(task.X_train["chain"]) & set(task.X_test["chain"])
        tested.append(task.rows)
    assert np.array_equal(np.sort(np.concatenate(tested[:3])), np.arange(150))
    assert max(map(len, tested)) - min(map(len, tested)) <= 5


def test_a_data_set_finds_its_column_of_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARGINBAYES_DATA", raising=False)
    printed = run("evaluate", "skewed-chain", "--sequence", "seq_id", "--split").stdout
    data = datasets.load("skewed-chain")
    X = data.X.assign(seq_id=data.ids["seq_id"])
    labeler = SequenceLabeler(parameters="ml", sequence="seq_id", decoding="marginal")
    labeler.fit(X.iloc[data.train], data.y.iloc[data.train])
    share = whole_sequence_scorer(labeler, X.iloc[data.test], data.y.iloc[data.test])
    total = X["seq_id"].iloc[data.test].nunique()
    line = f"chain-ml: every row right in {round(share * total)} of {total} tested sequences ({share:.1%})"
    assert line in " ".join(printed.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--sequence", "chains"), "has no column 'chains'"),
        (("--sequence", "chain", "--structure", "nb"), "--structure nb is not for --sequence"),
        (("--sequence", "chain", "--missing", "em"), "--missing em is not for --sequence"),
        (("--sequence", "chain", "--class-weight", "balanced"), "--class-weight is not for --sequence"),
        (("--sequence", "chain", "--parameters", "mm"), "--parameters mm is not for --sequence"),
        (("--sequence", "chain", "--window", 2), "window=2 must be an odd number"),
        (("--sequence", "chain", "--time-limit", 1), "--time-limit is not for --sequence"),
        (("--sequence", "chain", "--categorical", "chain"), "--categorical chain is the column of sequences"),
        (
            ("--sequence", "chain", "--drop", "chain"),
            "'chain' is left out by --drop; it cannot say which sequence",
        ),
        (("--window", 3), "--window 3 is for sequences; say with --sequence"),
        (("--order", 2), "--order 2 is for sequences; say with --sequence"),
    ],
)
def test_options_that_do_not_fit_sequences_are_named(table: Path, words: tuple[Any, ...], message: str) -> None:
    assert message in run("fit", table, "-t", "state", *words, code=2).stderr


def test_priors_and_a_missing_id_column_are_refused(table: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    run("fit", table, "-t", "state", "--sequence", "chain", "-m", model)
    assert "not for a model of sequences" in run("predict", model, table, "--prior", "on=0.5", code=2).stderr
    assert "labels sequences" in run("explain", model, table, code=2).stderr
    read_table(table).drop(columns="chain").to_csv(tmp_path / "bare.csv", index=False)
    assert "has no column 'chain'" in run("predict", model, tmp_path / "bare.csv", code=2).stderr
