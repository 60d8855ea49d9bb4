"""`fit`: the model file is the model that Python fits, and the table says what each column became."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from marginbayes import AODEClassifier, BayesNetClassifier, Network, datasets
from tests.cli.conftest import Run, frame


def test_the_written_model_is_the_one_python_fits(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    options = ("--smoothing", 0.5, "--missing", "em", "--categorical", "ward", "--class-weight", "balanced")
    run("fit", table, "-t", "outcome", "-s", "tan", "-m", path, *options)
    data = datasets.read_table(table)
    expected = BayesNetClassifier(
        "tan", smoothing=0.5, missing="em", categorical_features=["ward"], class_weight="balanced"
    ).fit(data.drop(columns="outcome"), data["outcome"])
    assert Network.from_json(path) == expected.network_


def test_the_report_names_kinds_accuracy_time_and_file(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    printed = run("fit", table, "-t", "outcome", "--categorical", "ward", "-m", path).stdout
    rows = {line.split()[0]: line.split() for line in printed.splitlines() if line.strip()}
    assert rows["outcome"][:3] == ["outcome", "class", "2"]
    assert rows["age"][1] == "number"
    assert rows["code"][1:3] == ["category", "2"]
    assert rows["flag"][1:3] == ["flag", "2"]
    assert rows["ward"][1:4] == ["as", "told", "4"]
    share = frame()["age"].isna().mean()
    assert f"{share:.1%}" in rows["age"]
    data = datasets.read_table(table)
    X, y = data.drop(columns="outcome"), data["outcome"]
    score = BayesNetClassifier("tan", categorical_features=["ward"]).fit(X, y).score(X, y)
    assert f"accuracy on these same rows {score:.4f}" in printed
    assert "240 rows, 4 features, 2 classes; learned in" in printed
    assert f"model written to {path}" in printed


def test_without_a_model_file_nothing_is_written(run: Run, table: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    assert "no model was written" in run("fit", table, "-t", "outcome").stdout
    assert sorted(tmp_path.iterdir()) == before


def test_aode_is_written_and_read_back(run: Run, table: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    run("fit", table, "-t", "outcome", "-s", "aode", "-m", path)
    X = datasets.read_table(table).drop(columns="outcome")
    answers = run("predict", path, table, "--ignore-extra").stdout.splitlines()
    assert answers[1:] == AODEClassifier.from_json(path).predict(X).tolist()


def test_rows_without_a_label_are_left_out_with_a_note(run: Run, tmp_path: Path) -> None:
    data = frame()
    data.loc[:9, "outcome"] = None
    path, model = tmp_path / "holes.csv", tmp_path / "m.json"
    data.to_csv(path, index=False)
    result = run("fit", path, "-t", "outcome", "-m", model)
    assert result.stderr == "Note: 10 of 240 rows have no label in 'outcome' and are left out\n"
    assert "230 rows" in result.stdout
    kept = datasets.read_table(path).iloc[10:]
    expected = BayesNetClassifier("tan").fit(kept.drop(columns="outcome"), kept["outcome"])
    assert Network.from_json(model) == expected.network_


@pytest.mark.parametrize(
    ("labels", "levels"),
    [
        (["1", "0", "", "1"], (0, 1)),  # pandas reads floats because of the hole
        (["1", "0", "0", "1"], (0, 1)),
        (["True", "False", "", "True"], (False, True)),
        (["01", "x", "01", "x"], ("01", "x")),
        (["b", "a", "", "b"], ("a", "b")),
    ],
)
def test_labels_keep_their_type(run: Run, tmp_path: Path, labels: list[str], levels: tuple[Any, ...]) -> None:
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text("x,y\n" + "".join(f"{'ab'[i % 2]},{label}\n" for i, label in enumerate(labels * 5)))
    run("fit", path, "-t", "y", "-m", model)
    found = Network.from_json(model).schema.target.levels
    assert found == levels
    assert [type(v) for v in found] == [type(v) for v in levels]


def test_weights_count_rows_as_often_as_they_say(run: Run, tmp_path: Path) -> None:
    data = frame().dropna()
    weights = np.random.default_rng(1).integers(0, 4, len(data))
    weighted, repeated = tmp_path / "w.csv", tmp_path / "r.csv"
    data.assign(times=weights).to_csv(weighted, index=False)
    data.loc[data.index.repeat(weights)].to_csv(repeated, index=False)
    run("fit", weighted, "-t", "outcome", "--weight", "times", "-m", tmp_path / "w.json")
    run("fit", repeated, "-t", "outcome", "-m", tmp_path / "r.json")
    one, other = (Network.from_json(tmp_path / name) for name in ("w.json", "r.json"))
    assert one.dag == other.dag
    for a, b in zip(one.tables, other.tables, strict=True):
        np.testing.assert_allclose(a, b)


def test_dropped_columns_are_not_in_the_model(run: Run, table: Path, tmp_path: Path) -> None:
    run("fit", table, "-t", "outcome", "--drop", "age", "--drop", "ward", "-m", tmp_path / "m.json")
    assert Network.from_json(tmp_path / "m.json").dag.names == ("outcome", "code", "flag")


@pytest.mark.parametrize("kind", ["tsv", "csv.gz", "parquet", "semicolon", "latin-1"])
def test_every_format_gives_the_same_model(run: Run, table: Path, tmp_path: Path, kind: str) -> None:
    data = datasets.read_table(table)
    path = tmp_path / f"copy.{kind if kind in ('tsv', 'csv.gz', 'parquet') else 'csv'}"
    options: list[str] = []
    if kind == "parquet":
        data.to_parquet(path)
    elif kind == "semicolon":
        data.to_csv(path, index=False, sep=";")
        options = ["--separator", ";"]
    elif kind == "latin-1":
        path.write_bytes(table.read_text().replace("sick", "kränk").encode("latin-1"))
        options = ["--encoding", "latin-1"]
    else:
        data.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    run("fit", table, "-t", "outcome", "-m", tmp_path / "a.json")
    run("fit", path, "-t", "outcome", "-m", tmp_path / "b.json", *options)
    text = (tmp_path / "b.json").read_text("utf-8").replace("kränk", "sick")
    assert text == (tmp_path / "a.json").read_text("utf-8")


def test_an_arff_file_is_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.arff"
    rows = "".join(f"{i},{'red' if i % 2 else 'blue'},{'yes' if i > 9 else 'no'}\n" for i in range(20))
    path.write_text(
        f"@relation t\n@attribute x numeric\n@attribute c {{red,blue}}\n@attribute y {{no,yes}}\n@data\n{rows}"
    )
    run("fit", path, "-t", "y", "-m", tmp_path / "m.json")
    schema = Network.from_json(tmp_path / "m.json").schema
    assert schema["x"].cuts == (9.5,)
    assert schema.target.levels == ("no", "yes")


def test_a_data_set_knows_its_target(run: Run, tmp_path: Path) -> None:
    run("fit", "monks-1", "-s", "nb", "-m", tmp_path / "m.json")
    data = datasets.load("monks-1")
    expected = BayesNetClassifier("nb").fit(data.X, data.y)
    assert Network.from_json(tmp_path / "m.json") == expected.network_


def test_another_column_of_a_data_set_can_be_the_target(run: Run, tmp_path: Path) -> None:
    first = str(datasets.load("monks-1").X.columns[0])
    run("fit", "monks-1", "-t", first, "-m", tmp_path / "m.json")
    names = Network.from_json(tmp_path / "m.json").dag.names
    assert names[0] == first
    assert "class" in names


def test_a_long_list_of_columns_is_cut_unless_asked_for(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({f"c{i}": rng.integers(0, 2, 30) for i in range(60)}).assign(y=rng.integers(0, 2, 30))
    path = tmp_path / "wide.csv"
    wide.to_csv(path, index=False)
    short, full = (run("fit", path, "-t", "y", *more).stdout for more in ([], ["--all-columns"]))
    assert "... 20 more" in short
    assert "c59" not in short
    assert "c59" in full


def test_the_last_column_of_the_report_does_not_vanish_on_a_narrow_screen(
    run: Run, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    printed = run("fit", table, "-t", "outcome").stdout
    assert "cuts or levels" in printed
    assert "sick, well" in printed


def test_a_column_whose_name_looks_like_markup_is_printed_as_it_is(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("[red]x[/red],:smile:,y\n" + "1,a,0\n0,b,1\n" * 6)
    printed = run("fit", path, "-t", "y").stdout
    assert "[red]x[/red]" in printed
    assert ":smile:" in printed


def test_escape_sequences_in_a_name_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\x1b[31mx,y\n" + "1,0\n0,1\n" * 6)
    assert "\x1b" not in run("fit", path, "-t", "y").stdout


def test_a_search_and_discriminative_tables_are_options_of_fit_and_evaluate(
    run: Run, fails: Run, tmp_path: Path
) -> None:
    run("fit", "iris", "-s", "tan-omi-cr", "-p", "cl", "-m", tmp_path / "m.json")
    data = datasets.load("iris")
    expected = BayesNetClassifier("tan-omi-cr", "cl").fit(data.X, data.y)
    assert Network.from_json(tmp_path / "m.json").dag == expected.dag_
    assert "2tree-cr against nb" in run("evaluate", "iris", "-s", "nb", "-s", "2tree-cr", "--folds", 2).stdout
    fails("fit", "iris", "-s", "aode", "-p", "cl")
    fails("fit", "iris", "-p", "cl", "--missing", "em")


def test_what_an_interrupt_cut_short_is_said_to_be_so(run: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from marginbayes.parameters import descent

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(descent, "lbfgs", interrupted)
    model = table.with_name("m.json")
    result = run("fit", table, "-t", "outcome", "-s", "nb", "-p", "cl", "-m", model, code=130)
    assert result.stderr == "Note: interrupted; the model is the best so far\n"
    assert Network.from_json(model)  # kept, but what waits for a whole one is not told that all is well


def test_the_report_says_how_far_a_certified_structure_is_from_the_optimum(run: Run, table: Path) -> None:
    printed = run("fit", table, "-t", "outcome", "-s", "exact-sm").stdout
    assert "structure: optimal: objective" in printed


@pytest.mark.parametrize(("different", "told"), [(30, False), (31, True)])
def test_a_target_that_looks_like_a_quantity_is_told(run: Run, tmp_path: Path, different: int, told: bool) -> None:
    path = tmp_path / "days.csv"
    rows = [f"{i % 3},{i % different}" for i in range(124)]
    path.write_text("\n".join(["ward,days", *rows]), encoding="utf-8")
    result = run("fit", path, "-t", "days")
    assert ("'days' has 31 different numbers, each taken for a class of its own" in result.stderr) == told


def test_a_sequence_with_an_unlabelled_row_is_refused_in_words(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    rows = [f"{i // 5},{'ab'[i % 2]},{'' if i == 7 else 'xy'[i % 2]}" for i in range(20)]
    path.write_text("id,f,y\n" + "\n".join(rows) + "\n")
    result = run("fit", path, "-t", "y", "--sequence", "id", code=2)
    assert "1 of 20 rows have no label in 'y', but every row of a sequence needs one" in result.stderr


def test_a_certificate_that_nothing_will_prove_is_refused_before_learning(
    run: Run, table: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m.json"
    result = run("fit", table, "-t", "outcome", "--certificate", tmp_path / "c.json", "-m", model, code=2)
    assert "comes without a proof" in result.stderr
    assert not model.exists()
    for structure, parameters in (("exact-sm", "ml"), ("nb", "mm-hybrid")):
        run("fit", table, "-t", "outcome", "-s", structure, "-p", parameters, "--certificate", tmp_path / "c.json")
        assert (tmp_path / "c.json").exists()


def test_the_accuracy_counts_each_row_once_as_evaluate_does(run: Run, tmp_path: Path) -> None:
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    path.write_text("a,w,y\n" + "p,5,u\n" * 6 + "p,1,v\n" * 4)
    printed = run("fit", path, "-t", "y", "--weight", "w", "-s", "nb", "-m", model).stdout
    assert "accuracy on these same rows 0.6000" in printed
