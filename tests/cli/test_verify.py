"""`fit --certificate` and `verify`: a proof is written, holds for its data, and is refused for anything else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from marginbayes.verification.document import seal
from tests.cli.conftest import Run, frame

# The table has holes, of which exact scores tell; it is a note here.
pytestmark = pytest.mark.filterwarnings(r"default:\d+ of \d+ rows have a missing cell")


@pytest.fixture
def proof(tmp_path: Path, table: Path, run: Run) -> Path:
    path = tmp_path / "proof.json"
    run("fit", table, "-t", "outcome", "--categorical", "ward", "-s", "exact-mdl", "--certificate", path)
    return path


def test_a_certificate_holds_for_the_data_it_was_made_from(run: Run, proof: Path, table: Path) -> None:
    printed = run("verify", proof, table).stdout
    claimed = json.loads(proof.read_text())
    assert printed.startswith(
        f"holds: exact-score, objective {claimed['objective']:.10g}, bound {claimed['bound']:.10g}"
    )
    assert printed.endswith("the solver's status was 'optimal'\n")


def test_fit_says_what_was_proved_and_where_it_is(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    told = run("fit", table, "-t", "outcome", "-s", "exact-bdeu", "--certificate", path, "--gap", 0.01)
    assert f"certificate written to {path}: optimal: objective" in told.stdout
    assert "rows have a missing cell, and exact scores leave them out" in " ".join(told.stderr.split())


@pytest.mark.parametrize(
    "weighing",
    [("--weight", "w"), ("--class-weight", "balanced"), ("--weight", "w", "--class-weight", "balanced")],
)
def test_weights_of_rows_and_of_classes_count(run: Run, tmp_path: Path, weighing: tuple[str, ...]) -> None:
    path, proof = tmp_path / "t.csv", tmp_path / "p.json"
    data = frame()  # weights that differ between the classes: balanced is by weight, not by number
    data.assign(w=np.tile([1.0, 2.0, 0.5], 80) * np.where(data["outcome"] == "sick", 3.0, 1.0)).to_csv(
        path, index=False
    )
    leave_out = () if "--weight" in weighing else ("--drop", "w")
    run("fit", path, "-t", "outcome", "-s", "exact-bic", "--certificate", proof, *weighing, *leave_out)
    assert run("verify", proof, path, *weighing).stdout.startswith("holds")
    assert run("verify", proof, path, code=1).stdout.startswith("refused: the objective is")


def test_a_renamed_class_is_found_with_target(run: Run, fails: Run, proof: Path, tmp_path: Path) -> None:
    path = tmp_path / "renamed.csv"
    frame().rename(columns={"outcome": "state"}).to_csv(path, index=False)
    assert run("verify", proof, path, "--target", "state").stdout.startswith("holds")
    assert "no column 'outcome'" in fails("verify", proof, path)


def test_a_data_set_known_by_name_is_verified(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    run("fit", "iris", "-s", "exact-aic", "--certificate", path)
    assert run("verify", path, "iris").stdout.startswith("holds")


@pytest.mark.parametrize("structure", ["exact-sm", "exact-sbm"])
def test_a_largest_margin_is_verified(run: Run, table: Path, tmp_path: Path, structure: str) -> None:
    path = tmp_path / "p.json"
    words = ("fit", table, "-t", "outcome", "-s", structure, "--certificate", path, "--gap", 1e-4)
    assert "certificate written" in run(*words).stdout
    assert run("verify", path, table).stdout.startswith("holds: exact-margin, objective")


def test_rows_without_a_label_are_left_out_as_at_fit(run: Run, tmp_path: Path) -> None:
    path, proof = tmp_path / "t.csv", tmp_path / "p.json"
    data = frame()
    data.loc[::7, "outcome"] = None
    data.to_csv(path, index=False)
    run("fit", path, "-t", "outcome", "-s", "exact-mdl", "--certificate", proof)
    assert run("verify", proof, path).stdout.startswith("holds")


def test_a_changed_certificate_or_table_is_refused_with_exit_code_1(run: Run, proof: Path, table: Path) -> None:
    document = json.loads(proof.read_text())
    proof.write_text(json.dumps({**document, "objective": document["objective"] - 1}))
    assert "changed after it was written" in run("verify", proof, table, code=1).stdout
    proof.write_text(json.dumps(seal({**document, "objective": document["objective"] - 1})))
    assert "refused: the objective is" in run("verify", proof, table, code=1).stdout
    proof.write_text(json.dumps(document))
    changed = pd.read_csv(table)
    changed.loc[0:40, "flag"] = 1 - changed.loc[0:40, "flag"]
    changed.to_csv(table, index=False)
    assert "refused: the objective is" in run("verify", proof, table, code=1).stdout


def test_bad_input_is_one_sentence(fails: Run, run: Run, proof: Path, table: Path, tmp_path: Path) -> None:
    assert "there is no file nowhere.json" in fails("verify", "nowhere.json", table)
    assert "there is no file nowhere.csv" in fails("verify", proof, "nowhere.csv")
    garbage = tmp_path / "garbage.json"
    garbage.write_text("{")
    assert "garbage.json is not JSON" in fails("verify", garbage, table)
    run("fit", table, "-t", "outcome", "-m", garbage)
    assert fails("verify", garbage, table) == (
        f"{garbage} is no certificate; 'marginbayes fit --certificate FILE' writes one"
    )
    assert "has no column 'age'" in fails("verify", proof, _without(table, "age"))
    assert (
        "comes without a proof"
        in run("fit", table, "-t", "outcome", "--certificate", tmp_path / "p.json", code=2).stderr
    )
    assert "--time-limit is not for --structure nb" in fails(
        "fit", table, "-t", "outcome", "-s", "nb", "--time-limit", 1
    )
    assert "should end in .json" in fails("fit", table, "-t", "outcome", "--certificate", tmp_path / "p.txt")


def _without(table: Path, column: str) -> Path:
    path = table.with_name("fewer.csv")
    pd.read_csv(table).drop(columns=column).to_csv(path, index=False)
    return path


def test_a_certificate_without_a_schema_is_for_python(fails: Run, proof: Path, table: Path) -> None:
    document = json.loads(proof.read_text())
    proof.write_text(json.dumps(seal({**document, "schema": None})))
    assert "does not say how cells become codes" in fails("verify", proof, table)


def test_a_time_limit_is_handed_to_the_learner(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    run("fit", table, "-t", "outcome", "-s", "exact-mdl", "--certificate", path, "--time-limit", 30)
    assert json.loads(path.read_text())["status"] == "optimal"


def test_a_checkpoint_keeps_the_search_and_is_for_exact_margins_only(run: Run, fails: Run, table: Path) -> None:
    file = table.with_name("search.npz")
    given = ("fit", table, "-t", "outcome", "--checkpoint", file)
    first = run(*given, "-s", "exact-sm", "--certificate", table.with_name("a.json"))
    assert file.exists()
    again = run(*given, "-s", "exact-sm", "--certificate", table.with_name("b.json"))
    proofs = [json.loads(table.with_name(name).read_text())["evidence"]["proof"] for name in ("a.json", "b.json")]
    assert proofs[0] == proofs[1], (first.stdout, again.stdout)
    assert "--checkpoint is not for --structure exact-mdl" in fails(*given, "-s", "exact-mdl")


def test_a_feature_is_not_taken_for_the_class(run: Run, fails: Run, table: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof.json"
    run("fit", table, "-t", "outcome", "-p", "mm-hybrid", "--certificate", proof)
    assert fails("verify", proof, table, "--target", "age") == (
        "'age' is a feature of this certificate; its class is 'outcome'"
    )


def test_columns_are_not_doubted_where_nothing_is_learned(run: Run, tmp_path: Path) -> None:
    path, proof = tmp_path / "t.csv", tmp_path / "c.json"
    rows = [f"{'<5' if i == 3 else i},{'pq'[i % 2]},{'uv'[i % 3 == 0]}\n" for i in range(30)]
    path.write_text("text,a,y\n" + "".join(rows))
    run("fit", path, "-t", "y", "-s", "exact-mdl", "--drop", "text", "--certificate", proof)
    assert run("verify", proof, path).stderr == ""
