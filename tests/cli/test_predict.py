"""`predict`: the answers that Python gives, whatever the types, the order and the company of the columns."""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from marginbayes import BayesNetClassifier, Dag, Network, datasets
from marginbayes.data.schema import Schema, Variable
from tests.cli.conftest import Run


@pytest.fixture
def features(table: Path, tmp_path: Path) -> Path:
    """The table without its target."""
    path = tmp_path / "features.csv"
    pd.read_csv(table, dtype=str, keep_default_na=False).drop(columns="outcome").to_csv(path, index=False)
    return path


def _classifier(model: Path) -> BayesNetClassifier:
    return BayesNetClassifier.from_network(Network.from_json(model))


def _answers(text: str) -> pd.DataFrame:
    # Older releases of pandas round numbers unless Python reads them.
    return pd.read_csv(io.StringIO(text), dtype=str).map(_number)


def _number(cell: str) -> object:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(cell)
    return cell


def test_answers_are_those_of_the_classifier(run: Run, model: Path, features: Path) -> None:
    result = run("predict", model, features, "--proba")
    X = datasets.read_table(features)
    answers, classifier = _answers(result.stdout), _classifier(model)
    assert answers.columns.tolist() == ["prediction", "P(sick)", "P(well)"]
    assert answers["prediction"].tolist() == classifier.predict(X).tolist()
    np.testing.assert_array_equal(answers[["P(sick)", "P(well)"]], classifier.predict_proba(X))
    assert result.stderr == ""


def test_a_target_that_is_still_there_is_ignored_and_said_to_be(
    run: Run, model: Path, table: Path, features: Path
) -> None:
    result = run("predict", model, table)
    assert result.stdout == run("predict", model, features).stdout
    assert result.stderr == "Note: the column 'outcome' is what the model predicts; it is not looked at\n"


def test_the_order_of_the_columns_does_not_matter(run: Run, model: Path, features: Path, tmp_path: Path) -> None:
    path = tmp_path / "turned.csv"
    data = pd.read_csv(features, dtype=str, keep_default_na=False)
    data[data.columns[::-1]].to_csv(path, index=False)
    assert run("predict", model, path).stdout == run("predict", model, features).stdout


def test_a_code_with_leading_zeros_stays_a_code(run: Run, model: Path, features: Path, tmp_path: Path) -> None:
    """Of a file that holds 007 only, pandas would make the number 7."""
    data = pd.read_csv(features, dtype=str, keep_default_na=False)
    alone = data[data["code"] == "007"]
    path = tmp_path / "alone.csv"
    alone.to_csv(path, index=False)
    answers = _answers(run("predict", model, path, "--proba").stdout)
    expected = _classifier(model).predict_proba(datasets.read_table(features))[alone.index]
    np.testing.assert_array_equal(answers.iloc[:, 1:], expected)


@pytest.mark.parametrize("dtype", ["str", "float", "category", "Int64"])
def test_the_type_of_a_column_may_differ_from_that_at_fit(
    run: Run, model: Path, features: Path, tmp_path: Path, dtype: str
) -> None:
    data = datasets.read_table(features)
    turned = data.copy()
    for name in ("ward", "flag"):
        whole = data[name].astype("Int64")
        turned[name] = {
            "str": whole.astype("string").astype(object),
            "float": data[name].astype(float),
            "category": whole.astype("string").astype("category"),
            "Int64": whole,
        }[dtype]
    path = tmp_path / "turned.parquet"
    turned.to_parquet(path)
    assert run("predict", model, path, "--proba").stdout == run("predict", model, features, "--proba").stdout


def test_numbers_match_the_text_levels_of_a_foreign_network(run: Run, tmp_path: Path) -> None:
    levels = (("no", "yes"), ("1", "2", "3"))
    schema = Schema((Variable("y", levels[0]), Variable("x", levels[1])))
    tables = (np.log([0.5, 0.5]), np.log([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]))
    Network(schema, Dag.naive(["y", "x"]), tables).to_bif(tmp_path / "n.bif")
    data = pd.DataFrame({"x": [1.0, 3.0, np.nan]})
    data.to_parquet(tmp_path / "d.parquet")
    answers = _answers(run("predict", tmp_path / "n.bif", tmp_path / "d.parquet", "--proba").stdout)
    np.testing.assert_allclose(answers["P(yes)"], [1 / 8, 7 / 8, 0.5])


def test_a_value_never_seen_is_as_good_as_missing(run: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("age,code,flag,ward\n60,B9,1,2\n60,,1,2\n60,007,1,unknown\n60,007,1,\n")
    answers = run("predict", model, path, "--proba").stdout.splitlines()
    assert answers[1] == answers[2]
    assert answers[3] == answers[4]


def test_a_column_without_any_value_is_missing(run: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("age,code,flag,ward\n,,,\n,,,\n")
    answers = _answers(run("predict", model, path, "--proba").stdout)
    prior = Network.from_json(model).query("outcome")
    np.testing.assert_allclose(answers.iloc[0, 1:].astype(float), prior)


def test_missing_and_extra_columns_are_named(run: Run, fails: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("age,flag,ward,name\n60,1,2,Eve\n")
    assert "lacks the column 'code' of the model" in fails("predict", model, path)
    path.write_text("age,code,flag,ward,name,id\n60,007,1,2,Eve,9\n")
    assert "has 2 columns ('name', 'id') that the model does not know" in fails("predict", model, path)
    assert run("predict", model, path, "--ignore-extra").stdout.count("\n") == 2


def test_id_columns_are_copied_in_front(run: Run, fails: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text('age,code,flag,ward,name\n60,007,1,2,"Eve, the first"\n')
    lines = run("predict", model, path, "--id", "name").stdout.splitlines()
    assert lines[0] == "name,prediction"
    assert lines[1].startswith('"Eve, the first",')
    assert "no column 'nam'; did you mean 'name'?" in fails("predict", model, path, "--id", "nam")


def test_a_prior_changes_the_odds_by_bayes_rule(run: Run, model: Path, features: Path) -> None:
    plain = _answers(run("predict", model, features, "--proba").stdout)
    moved = _answers(run("predict", model, features, "--proba", "--prior", "sick=0.02").stdout)
    sick, well = Network.from_json(model).query("outcome")
    odds = plain["P(sick)"] / plain["P(well)"] * (0.02 / 0.98) / (sick / well)
    np.testing.assert_allclose(moved["P(sick)"], odds / (1 + odds))
    both = run("predict", model, features, "--proba", "--prior", "well=0.98", "--prior", "sick=0.02").stdout
    np.testing.assert_allclose(_answers(both)["P(sick)"], moved["P(sick)"])


def test_costs_are_read_by_name_in_any_order(run: Run, model: Path, features: Path, tmp_path: Path) -> None:
    one, turned = tmp_path / "c.csv", tmp_path / "t.csv"
    one.write_text("true,sick,well\nsick,0,20\nwell,1,0\n")
    turned.write_text("true,well,sick\nwell,0,1\nsick,20,0\n")
    answers = run("predict", model, features, "--cost-matrix", one).stdout
    X = datasets.read_table(features)
    expected = _classifier(model).predict(X, cost=[[0, 20], [1, 0]])
    assert answers.splitlines()[1:] == expected.tolist()
    assert answers == run("predict", model, features, "--cost-matrix", turned).stdout
    assert answers != run("predict", model, features).stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("true,sick,well\nsick,0,1\n", "2 rows and columns of costs"),
        ("true,sick,ill\nsick,0,1\nwell,1,0\n", "header: 'ill' is not a class"),
        ("true,sick,well\nsick,0,1\nsick,1,0\n", "names a class twice"),
        ("true,sick,well\nsick,0,much\nwell,1,0\n", "holds 'much' where a cost should be"),
        ("true,sick,well\nsick,0,inf\nwell,1,0\n", "holds 'inf' where a cost should be"),
        ("true,sick,well\nsick,0,nan\nwell,1,0\n", "holds 'nan' where a cost should be"),
        ("true;sick;well\nsick;0;1\nwell;1;0\n", "seems to be separated by ';'; separate its cells by commas"),
    ],
)
def test_a_bad_cost_matrix_gets_a_sentence(
    fails: Run, model: Path, features: Path, tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "c.csv"
    path.write_text(text)
    assert words in fails("predict", model, features, "--cost-matrix", path)


@pytest.mark.parametrize(
    ("priors", "words"),
    [
        (["sick"], "should be CLASS=P"),
        (["ill=0.1"], "'ill' is not a class; the classes are 'sick', 'well'"),
        (["sick=much"], "'much' is not a number"),
        (["sick=1.5"], "1.5 is not a probability"),
        (["sick=nan"], "nan is not a probability"),
        (["sick=0.5", "well=0.6"], "sum to 1.1, not to 1"),
        (["sick=0.5", "sick=0.5"], "twice"),
    ],
)
def test_a_bad_prior_gets_a_sentence(fails: Run, model: Path, features: Path, priors: list[str], words: str) -> None:
    options = [word for prior in priors for word in ("--prior", prior)]
    assert words in fails("predict", model, features, *options)


def test_with_three_classes_every_prior_but_one_is_needed(run: Run, fails: Run, tmp_path: Path) -> None:
    run("fit", "iris", "-m", tmp_path / "m.json")
    classes = Network.from_json(tmp_path / "m.json").schema.target.levels
    first, second = (f"{label}=0.25" for label in classes[:2])
    assert f"nothing of the class {classes[1]!r}" in fails("predict", tmp_path / "m.json", "iris", "--prior", first)
    run("predict", tmp_path / "m.json", "iris", "--prior", first, "--prior", second)


def test_integer_labels_are_found_by_what_is_typed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "a,1\nb,0\n" * 9 + "b,1\n")
    run("fit", path, "-t", "y", "-m", tmp_path / "m.json")
    for typed in ("1=0.9", "1.0=0.9"):
        answers = _answers(run("predict", tmp_path / "m.json", path, "--prior", typed).stdout)
        assert answers["prediction"].dtype == np.int64


def test_answers_go_to_a_file_when_asked(run: Run, model: Path, features: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers.csv"
    result = run("predict", model, features, "--out", out)
    assert result.stdout == ""
    assert result.stderr == f"Note: 240 answers written to {out}\n"
    assert out.read_text("utf-8") == run("predict", model, features).stdout


def test_identifiers_come_out_as_they_went_in(run: Run, tmp_path: Path) -> None:
    names = ["00123", "", "12345678901234567", "12345678901234568", "1E5", "007", "NA", "?", "NULL", "nan"]
    train, new, model = tmp_path / "t.csv", tmp_path / "n.csv", tmp_path / "m.json"
    train.write_text("f,g,y\n" + "\n".join(f"{'ab'[i % 2]},{i % 3},{'xy'[i % 2]}" for i in range(12)) + "\n")
    new.write_text("id,f,g\n" + "\n".join(f"{name},a,1" for name in names) + "\n")
    run("fit", train, "-t", "y", "-s", "nb", "-m", model)
    printed = run("predict", model, new, "--id", "id").stdout.splitlines()
    assert [line.split(",")[0] for line in printed] == ["id", *names]


def test_answers_are_not_written_over_what_they_come_from(fails: Run, model: Path, table: Path, tmp_path: Path) -> None:
    cost = tmp_path / "cost.csv"
    cost.write_text(",sick,well\nsick,0,1\nwell,1,0\n")
    told = fails("predict", model, table, "--cost-matrix", cost, "-o", cost)
    assert "is a file that is read; name another one" in told
    assert cost.read_text().startswith(",sick,well")
    before = model.read_bytes(), table.read_bytes()
    for path in (model, table):
        assert "is a file that is read; name another one" in fails(
            "predict", model, table, "--ignore-extra", "--out", path
        )
    assert (model.read_bytes(), table.read_bytes()) == before


def test_features_and_sequences_come_out_as_they_went_in_too(run: Run, tmp_path: Path) -> None:
    path, model = tmp_path / "t.csv", tmp_path / "m.json"
    cells = ["4,6.30,FALSE,01", "NA,1E1,TRUE,01", "3,?,FALSE,02", "5,7.00,TRUE,02"] * 5
    path.write_text("n,x,flag,sid,y\n" + "".join(f"{row},{'uv'[i % 2]}\n" for i, row in enumerate(cells)))
    keep = [word for name in ("n", "x", "flag", "sid") for word in ("--id", name)]
    for words in (["--drop", "sid"], ["--sequence", "sid"]):
        run("fit", path, "-t", "y", "-m", model, *words)
        printed = run("predict", model, path, *keep).stdout.splitlines()
        assert [line.rpartition(",")[0] for line in printed] == ["n,x,flag,sid", *cells]


def test_answers_are_counted_where_a_copied_cell_has_two_lines(
    run: Run, model: Path, table: Path, tmp_path: Path
) -> None:
    path, out = tmp_path / "lines.csv", tmp_path / "answers.csv"
    pd.read_csv(table, dtype=str).assign(note="one\ntwo").to_csv(path, index=False)
    assert f"240 answers written to {out}" in run("predict", model, path, "--id", "note", "-o", out).stderr
