"""`evaluate`: the numbers of the library, the same folds for all, and what is finished survives an interrupt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_predict

from marginbayes import AODEClassifier, BayesNetClassifier, datasets, evaluation
from marginbayes.cli.results import reliability
from tests.cli.conftest import Run, frame


def _read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_numbers_are_those_of_the_same_folds_in_scikit_learn(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "e.json"
    run("evaluate", table, "-t", "outcome", "-s", "nb", "-s", "tan", "-s", "aode", "--folds", 4, "--json", out)
    data = datasets.read_table(table)
    X, y = data.drop(columns="outcome"), data["outcome"].to_numpy()
    tasks = list(evaluation.stratified_tasks(X, y, 4))
    folds = [(np.setdiff1d(np.arange(len(y)), task.rows), task.rows) for task in tasks]
    models = (BayesNetClassifier("nb"), BayesNetClassifier("tan"), AODEClassifier())
    document = _read(out)
    assert document["complete"] is True
    assert [r["name"] for r in document["results"]] == ["nb", "tan", "aode"]
    for model, result in zip(models, document["results"], strict=True):
        answers = cross_val_predict(model, X, y, cv=folds)
        assert result["accuracy"]["value"] == pytest.approx(np.mean(answers == y))
        confusion = pd.crosstab(y, answers).to_numpy()
        assert result["confusion"] == confusion.tolist()
        assert result["rates"]["sensitivity"]["value"] == pytest.approx(confusion[1, 1] / confusion[1].sum())
        assert len(result["fold_accuracy"]) == 4
    assert len(document["comparisons"]) == 3


@pytest.mark.parametrize("how", ["folds", "test"])
def test_weights_are_those_of_training_and_tested_rows_count_once(
    run: Run, table: Path, tmp_path: Path, how: str
) -> None:
    data = datasets.read_table(table)
    data["times"] = np.random.default_rng(0).integers(0, 9, len(data))
    weighed, other, out = tmp_path / "w.csv", tmp_path / "other.csv", tmp_path / "e.json"
    data.to_csv(weighed, index=False)
    data[::3].to_csv(other, index=False)
    asked = ("--folds", 4) if how == "folds" else ("--test", other)
    run("evaluate", weighed, "-t", "outcome", "-s", "nb", "--weight", "times", *asked, "--json", out)
    X, y, times = data.drop(columns=["outcome", "times"]), data["outcome"].to_numpy(), data["times"].to_numpy()
    if how == "folds":
        tasks = list(evaluation.stratified_tasks(X, y, 4, sample_weight=times))
    else:
        tasks = [evaluation.holdout(X, y, X[::3], y[::3], times)]
    right = 0
    for task in tasks:
        train = np.setdiff1d(np.arange(len(y)), task.rows) if how == "folds" else np.arange(len(y))
        model = BayesNetClassifier("nb").fit(X.iloc[train], y[train], sample_weight=times[train])
        right += int((model.predict(task.X_test) == task.y_test).sum())
    document = _read(out)
    assert document["weight"] == "times"
    assert document["results"][0]["accuracy"]["value"] == pytest.approx(right / sum(len(t.rows) for t in tasks))
    plain = BayesNetClassifier("nb").fit(X, y).predict(X)
    assert (plain != BayesNetClassifier("nb").fit(X, y, sample_weight=times).predict(X)).any()  # the weights matter


def test_a_class_whose_rows_weigh_nothing_is_noted(run: Run, table: Path, tmp_path: Path) -> None:
    data = datasets.read_table(table)
    data["times"] = (data["outcome"] == "well").astype(int)
    data.to_csv(tmp_path / "w.csv", index=False)
    for asked in ((), ("--test", table)):
        noted = run("evaluate", tmp_path / "w.csv", "-t", "outcome", "-s", "nb", "--weight", "times", *asked).stderr
        told = " ".join(noted.split())
        assert "all rows of these classes have the weight zero, so that nothing is learned of them" in told


def test_the_column_of_weights_is_not_the_target(run: Run, table: Path) -> None:
    result = run("evaluate", table, "-t", "outcome", "--weight", "outcome", code=2)
    assert "'outcome' is the target; it cannot have the weights too (--weight)" in result.stderr


def test_the_screen_shows_every_metric_and_the_comparison(run: Run, table: Path) -> None:
    printed = run("evaluate", table, "-t", "outcome", "-s", "nb", "-s", "tan").stdout
    for word in ("accuracy", "log loss", "Brier", "AUC", "sensitivity", "specificity", "PPV", "NPV", "recall"):
        assert word in printed
    assert "positive class: well" in printed
    assert "5-fold cross-validation, seed 0" in printed
    assert re.search(r"tan against nb: accuracy [+-]0\.\d{4} \(95 % interval .* p [=<] 0\.\d+", printed)


@pytest.mark.filterwarnings(r"default:\d+ of \d+ rows have a missing cell")
def test_what_every_fold_would_note_is_noted_once(run: Run, table: Path) -> None:
    data = pd.read_csv(table)
    data.loc[::2, "ward"] = None
    data.to_csv(table, index=False)
    told = " ".join(run("evaluate", table, "-t", "outcome", "-s", "exact-mdl", "-s", "exact-bic").stderr.split())
    assert told.count("rows have a missing cell, and exact scores leave them out") == 1


@pytest.mark.filterwarnings(r"default:\d+ of \d+ rows have a missing cell")
@pytest.mark.parametrize("terminal", [False, True])
def test_no_number_is_cut_off_however_many_structures_there_are(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    names, out = ("nb", "tan", "aode", "tan-cr", "exact-bic"), tmp_path / "e.json"
    structures = [word for name in names for word in ("-s", name)]
    printed = run("evaluate", table, "-t", "outcome", "--folds", 2, "--json", out, *structures).stdout
    lines = re.sub(r"\x1b\[[\d;]*m", "", printed).splitlines()
    shown = [word for line in lines if line.startswith("  log loss") for word in line.split()[2:]]
    assert shown == [f"{result['log_loss']:.4f}" for result in _read(out)["results"]]
    rates = [rate for line in lines if line.startswith("  accuracy") for rate in re.findall(r"\(\.\d+-\.\d+\)", line)]
    assert len(rates) == len(names)
    tables = [line for line in lines if line.startswith(("  accuracy", "  log loss"))]
    assert (max(map(len, tables)) <= 60) == terminal


def test_the_positive_class_can_be_named(run: Run, table: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    run("evaluate", table, "-t", "outcome", "--positive", "sick", "--json", one)
    run("evaluate", table, "-t", "outcome", "--positive", "well", "--json", other)
    first, second = _read(one)["results"][0], _read(other)["results"][0]
    assert first["positive"] == "sick"
    assert first["rates"]["sensitivity"] == second["rates"]["specificity"]


def test_the_seed_decides_the_folds(run: Run, table: Path, tmp_path: Path) -> None:
    accuracies = []
    for seed in (3, 3, 4):
        run("evaluate", table, "-t", "outcome", "--seed", seed, "--json", tmp_path / "e.json")
        accuracies.append(_read(tmp_path / "e.json")["results"][0]["fold_accuracy"])
    assert accuracies[0] == accuracies[1] != accuracies[2]


def test_repeats_multiply_the_predictions(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "e.json"
    run("evaluate", table, "-t", "outcome", "--folds", 3, "--repeats", 2, "--json", out)
    result = _read(out)["results"][0]
    assert (result["n_rows"], result["n_predictions"]) == (240, 480)
    assert len(result["fold_accuracy"]) == 6


def test_a_test_file_is_predicted_from_all_of_the_data(run: Run, table: Path, tmp_path: Path) -> None:
    other, out = tmp_path / "other.csv", tmp_path / "e.json"
    frame(80, seed=9).to_csv(other, index=False)
    printed = run("evaluate", table, "-t", "outcome", "--test", other, "-s", "nb", "-s", "tan", "--json", out).stdout
    train, test = datasets.read_table(table), datasets.read_table(other)
    model = BayesNetClassifier("nb").fit(train.drop(columns="outcome"), train["outcome"])
    expected = model.score(test.drop(columns="outcome"), test["outcome"])
    assert _read(out)["results"][0]["accuracy"]["value"] == pytest.approx(expected)
    assert "tested on the 80 rows of" in printed
    assert "McNemar" in printed


def test_a_test_file_of_one_level_only_is_read_like_the_training_file(run: Run, table: Path, tmp_path: Path) -> None:
    """Of the codes 007 alone pandas would make numbers, and the column would be unknown."""
    other, out = tmp_path / "other.csv", tmp_path / "e.json"
    data = frame(80, seed=9)
    data[data["code"] == "007"].to_csv(other, index=False)
    run("evaluate", table, "-t", "outcome", "--test", other, "-s", "nb", "--json", out)
    train = datasets.read_table(table)
    model = BayesNetClassifier("nb").fit(train.drop(columns="outcome"), train["outcome"])
    test = data[data["code"] == "007"]
    expected = model.score(test.drop(columns="outcome"), test["outcome"])
    assert _read(out)["results"][0]["accuracy"]["value"] == pytest.approx(expected)


def test_integer_labels_match_although_a_hole_makes_them_floats(run: Run, tmp_path: Path) -> None:
    train, test, out = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "e.json"
    train.write_text("x,y\n" + "a,1\nb,0\n" * 9)
    test.write_text("x,y\na,1\nb,0\na,\n")
    result = run("evaluate", train, "-t", "y", "--test", test, "--json", out)
    assert _read(out)["results"][0]["accuracy"]["value"] == 1.0
    assert "1 of 3 rows have no label" in result.stderr


def test_a_class_new_in_the_test_file_counts_as_wrong_and_is_named(run: Run, tmp_path: Path) -> None:
    train, test, out = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "e.json"
    train.write_text("x,y\n" + "a,yes\nb,no\n" * 9)
    test.write_text("x,y\na,yes\nb,no\na,maybe\nb,no\n")
    result = run("evaluate", train, "-t", "y", "--test", test, "--json", out)
    assert "the training data lack the classes maybe: their 1 test rows count as wrong" in result.stderr
    assert "infinite" in result.stdout
    found = _read(out)["results"][0]
    assert found["accuracy"]["value"] == 0.75
    assert found["log_loss"] is None


def test_the_split_of_a_data_set_is_used(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "e.json"
    run("evaluate", "monks-1", "--split", "-s", "nb", "--json", out)
    X, y, X_test, y_test = datasets.load("monks-1").split()
    expected = BayesNetClassifier("nb").fit(X, y).score(X_test, y_test)
    result = _read(out)["results"][0]
    assert result["accuracy"]["value"] == pytest.approx(expected)
    assert result["n_rows"] == len(y_test)


def test_small_classes_are_named(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "a,p\nb,q\n" * 9 + "a,few\nb,few\na,once\n")
    result = run("evaluate", path, "-t", "y")
    assert "never tested: once" in result.stderr
    assert "fewer rows than the 5 folds are missing from some tests: few (2)" in result.stderr


def test_many_classes_are_shown_by_their_worst_confusions(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 20, 400)
    path = tmp_path / "t.csv"
    pd.DataFrame({"x": y // 5, "y": [f"class-{v}" for v in y]}).to_csv(path, index=False)
    printed = run("evaluate", path, "-t", "y", "--categorical", "x", "-s", "nb").stdout
    assert "most frequent confusions" in printed
    assert "others (--json writes the whole matrix)" in printed
    assert max(map(len, printed.splitlines()[2:])) <= 100


@pytest.mark.parametrize("classes", [2, 3])
def test_reliability_diagrams_are_drawn(run: Run, tmp_path: Path, classes: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 120)
    path, folder = tmp_path / "t.csv", tmp_path / "new" / "plots"
    pd.DataFrame({"x": np.where(rng.random(120) < 0.7, y, 0), "y": y}).to_csv(path, index=False)
    run("evaluate", path, "-t", "y", "-s", "nb", "-s", "tan", "--plot", folder)
    names = sorted(picture.name for picture in folder.iterdir())
    assert names == ["reliability-nb.png", "reliability-tan.png"]
    assert all(picture.read_bytes()[:4] == b"\x89PNG" for picture in folder.iterdir())


@pytest.mark.parametrize("classes", [2, 3])
def test_reliability_counts_rows_and_names_another_score_than_that_of_the_table(classes: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, 120)
    tasks = evaluation.stratified_tasks(np.where(rng.random(120) < 0.7, y, 0)[:, None], y, 3, 4)
    outcomes = list(evaluation.run({"nb": BayesNetClassifier("nb")}, tasks, range(classes)))
    result = evaluation.summarise(outcomes, range(classes))
    display = reliability(outcomes, result)
    assert (display.repeats, display.counts.sum()) == (4, 480)
    same = display.brier == pytest.approx(result.brier)
    assert same == (display.score == "Brier score") == (classes == 2)


def test_an_interrupt_keeps_the_folds_that_all_classifiers_finished(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = evaluation.run

    def interrupted(*arguments: Any) -> Iterator[Any]:
        for number, outcome in enumerate(original(*arguments)):
            if number == 5:  # nb has finished three folds, tan two
                raise KeyboardInterrupt
            yield outcome

    monkeypatch.setattr(evaluation, "run", interrupted)
    out = tmp_path / "e.json"
    result = run("evaluate", table, "-t", "outcome", "-s", "nb", "-s", "tan", "--json", out, code=130)
    document = _read(out)
    assert document["complete"] is False
    assert [len(r["fold_accuracy"]) for r in document["results"]] == [2, 2]
    assert "tan against nb" in result.stdout
    assert result.stderr == "Note: interrupted; the numbers are those of the 2 of 5 folds that were finished\n"


def test_an_interrupt_before_the_first_fold_writes_nothing(
    run: Run, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> Iterator[Any]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(evaluation, "run", interrupted)
    out = tmp_path / "e.json"
    result = run("evaluate", table, "-t", "outcome", "--json", out, code=130)
    assert result.stderr == "Error: interrupted; no file is left half-written\n"
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--folds", "3", "--split"], "--folds and --split exclude each other"),
        (["--test", "iris", "--split"], "--test and --split exclude each other"),
        (["--split"], "comes without a split"),
        (["--split", "--repeats", "2"], "--repeats is for cross-validation"),
        (["--folds", "1"], "--folds"),
        (["--folds", "500"], "500 folds need at least 500 rows"),
        (["--positive", "ill"], "--positive 'ill' is not a class; the classes are 'sick', 'well'"),
        (["--test", "iris"], "iris has no column 'outcome'"),
        (["-s", "aode", "--missing", "em"], "--missing em is not for aode"),
        (["--json", "results.txt"], "should end in .json"),
        (["--drop", "outcome"], "has no column left"),
    ],
)
def test_impossible_wishes_get_a_sentence(fails: Run, table: Path, options: list[str], words: str) -> None:
    if options == ["--drop", "outcome"]:
        options = [word for name in ("age", "code", "flag", "ward") for word in ("--drop", name)]
    assert words in fails("evaluate", table, "-t", "outcome", *options)


def test_a_positive_class_among_three_is_refused_before_the_work(fails: Run) -> None:
    label = str(datasets.load("iris").y.iloc[0])
    assert "--positive is for two classes, but there are 3" in fails("evaluate", "iris", "--positive", label)


def test_a_single_class_is_refused(fails: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "a,1\nb,1\n" * 9)
    assert "all rows have the label '1' in 'y'" in fails("evaluate", path, "-t", "y")


def test_columns_that_differ_in_the_test_file_are_named(fails: Run, table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    frame(50).drop(columns="age").to_csv(other, index=False)
    assert "lacks the column 'age'" in fails("evaluate", table, "-t", "outcome", "--test", other)
    frame(50).assign(name="Eve").to_csv(other, index=False)
    assert "has the column 'name'" in fails("evaluate", table, "-t", "outcome", "--test", other)


def test_a_column_that_only_the_test_file_has_can_be_dropped(run: Run, fails: Run, table: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    frame(50).assign(name="Eve", day=3).to_csv(other, index=False)
    words = ("evaluate", table, "-t", "outcome", "--test", other)
    assert "has the columns 'name', 'day', which the training data lack; leave them out with --drop" in fails(*words)
    assert "240 rows, 4 features" in run(*words, "--drop", "name", "--drop", "day").stdout
    assert "240 rows, 3 features" in run(*words, "--drop", "name", "--drop", "day", "--drop", "age").stdout
    assert "table.csv has no column 'nam'" in fails(*words, "--drop", "nam")


def test_the_same_gain_in_every_fold_has_no_interval(run: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.json"
    words = ("evaluate", table, "-t", "outcome", "--drop", "age", "--drop", "code", "--drop", "ward", "--folds", 2)
    printed = run(*words, "-s", "nb", "-s", "tan", "--json", out).stdout
    assert "tan against nb: accuracy +0.0000 (the same in every fold, so no interval and no test)" in printed
    (comparison,) = _read(out)["comparisons"]
    assert comparison["difference"] == {"value": 0.0, "low": None, "high": None}


@pytest.mark.parametrize(
    ("levels", "odd", "words"),
    [((1, 2, 3), "X", ["--categorical", "c"]), ((True, False), "maybe", []), ((0, 1), "X", [])],
)
def test_a_test_file_may_hold_a_cell_that_makes_text_of_its_column(
    run: Run, tmp_path: Path, levels: tuple[object, ...], odd: str, words: list[str]
) -> None:
    train, test, plain = (tmp_path / f"{name}.csv" for name in ("train", "test", "plain"))
    cells = [str(levels[i % len(levels)]) for i in range(30)]
    labels = ["u" if i % len(levels) else "v" for i in range(30)]
    for path, own in ((train, cells), (test, [*cells[:-1], odd]), (plain, [*cells[:-1], ""])):
        path.write_text(
            "c,x,y\n" + "".join(f"{c},{i % 7},{y}\n" for i, (c, y) in enumerate(zip(own, labels, strict=True)))
        )
    found = []
    for path in (test, plain):
        result = run("evaluate", train, "-t", "y", "-s", "nb", "--test", path, "--json", tmp_path / "e.json", *words)
        found.append(json.loads((tmp_path / "e.json").read_text())["results"][0]["log_loss"])
        assert (f"1 of the 30 cells of 'c', such as '{odd}', is no level" in result.stderr) == (path == test)
    assert found[0] == found[1]


def test_labels_that_are_truth_values_are_named_in_any_case(run: Run, fails: Run, tmp_path: Path) -> None:
    path, model, cost, test = (tmp_path / name for name in ("t.csv", "m.json", "c.csv", "other.csv"))
    path.write_text("a,y\n" + "p,true\nq,false\n" * 9 + "q,true\n")
    cost.write_text(",false,TRUE\nFALSE,0,1\ntrue,2,0\n")
    test.write_text("a,y\n" + "p,TRUE\nq,false\n" * 3)
    assert "positive class: True" in run("evaluate", path, "-t", "y", "--positive", "true", "--folds", 2).stdout
    assert "positive class: False" in run("evaluate", path, "-t", "y", "--positive", "FALSE", "--test", test).stdout
    run("fit", path, "-t", "y", "-m", model)
    named = run("predict", model, path, "--proba", "--prior", "True=0.1").stdout
    assert run("predict", model, path, "--proba", "--prior", "true=0.1").stdout == named
    assert run("predict", model, path, "--cost-matrix", cost).stdout.startswith("prediction\n")
    assert "log-odds of True against False" in run("explain", model, path, "--target", "true").stdout
    test.write_text("a,y\np,true\nq,maybe\n")
    assert "the label 'maybe' of the test rows is no class; the classes are 'False', 'True'" in fails(
        "evaluate", path, "-t", "y", "--test", test
    )
