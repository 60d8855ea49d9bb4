"""`--set` and `--tune`: what the command line gives the learners is what Python would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from marginbayes import BayesNetClassifier, Network, datasets
from marginbayes.parameters import ConditionalLikelihood, MarginHybrid
from marginbayes.structure import ExactMargin, TunedMargin
from tests.cli.conftest import Run


def fitted(table: Path, classifier: BayesNetClassifier) -> BayesNetClassifier:
    data = datasets.read_table(table)
    return classifier.fit(data.drop(columns="outcome"), data["outcome"])


def test_settings_reach_both_learners(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    settings = ("--set", "structure.k=0", "--set", "parameters.B=7", "--set", " parameters.kind = ess ")
    run("fit", table, "-t", "outcome", "-s", "exact-sm", "-p", "mm-hybrid", "-m", path, *settings)
    expected = BayesNetClassifier(ExactMargin("sm", k=0, random_state=0), MarginHybrid(7, kind="ess"))
    assert Network.from_json(path) == fitted(table, expected).network_


def test_tuning_chooses_as_python_does_and_says_what(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    printed = run("fit", table, "-t", "outcome", "-s", "nb", "-p", "cl", "--tune", "-m", path).stdout
    expected = fitted(table, BayesNetClassifier("nb", ConditionalLikelihood(tune=True, random_state=0)))
    assert Network.from_json(path) == expected.network_
    assert f"parameters: l2 = {expected.parameter_result_.best['l2']}, chosen by validation" in printed


def test_tuning_an_exact_margin_chooses_margin_and_parents(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    options = ("--set", "structure.p=[0.6, 0.9]", "--set", "structure.k=[0]")
    printed = run("fit", table, "-t", "outcome", "-s", "exact-sbm", "--tune", "-m", path, *options).stdout
    expected = fitted(table, BayesNetClassifier(TunedMargin("sbm", k=[0], p=[0.6, 0.9])))
    assert Network.from_json(path) == expected.network_
    assert f"structure: k = 0, p = {expected.structure_result_.chosen.p}, chosen by validation" in printed


def test_evaluate_takes_settings_and_records_them(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    run(
        *("evaluate", table, "-t", "outcome", "-s", "nb", "-p", "mm-hybrid", "--folds", 2, "--json", path),
        *("--set", "parameters.B=0.01", "--tune", "--set", "parameters.tune=false"),
    )
    learning = json.loads(path.read_text())["learning"]
    assert learning["tune"] is True
    assert learning["settings"] == ["parameters.B=0.01", "parameters.tune=false"]


def test_a_sequence_learner_takes_settings(run: Run, fails: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id,x,y\n" + "".join(f"{i // 4},{'ab'[i % 2]},{'uv'[i % 2]}\n" for i in range(40)))
    run("fit", path, "-t", "y", "--sequence", "id", "-p", "mm-hybrid", "--set", "parameters.B=2")
    said = fails("fit", path, "-t", "y", "--sequence", "id", "--set", "parameters.nothing=2")
    assert said.startswith("--sequence --parameters ml has no setting parameters.nothing")


def test_only_settings_that_words_can_say_are_offered(fails: Run, table: Path) -> None:
    said = fails("fit", table, "-t", "outcome", "-s", "exact-sm", "--set", "structure.nothing=2")
    assert "structure.gap" in said
    assert not any(f"structure.{name}," in said for name in ("callback", "constraints", "start"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "B=3"], "--set B=3 cannot be read; say for instance structure.k=1 or parameters.tol=1e-4"),
        (["--set", "parameters.B"], "--set parameters.B cannot be read"),
        (["--set", "parameters.B=3"], "--structure tan --parameters ml has no setting parameters.B; it has parameters"),
        (["-s", "aode", "--set", "structure.k=3"], "aode has no setting structure.k"),
        (["-s", "tan-cr", "--set", "structure.constraints=1"], "--structure tan-cr --parameters ml has no setting"),
        (["-p", "mm-hybrid", "--set", "parameters.B=much"], "--set parameters.B=much: 'much' is no number; by default"),
        (["-p", "mm-hybrid", "--set", "parameters.B=-3"], "B=-3 must be a positive number"),
        (["--tune"], "--tune is not for --structure tan --parameters ml, which has no strength to choose"),
        (["-s", "aode", "--tune"], "--tune is not for aode"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_a_sentence(
    fails: Run, table: Path, options: list[str], said: str
) -> None:
    assert fails("fit", table, "-t", "outcome", *options).startswith(said)
