from pathlib import Path

import pytest
from joblib import effective_n_jobs

TEXT = """
title = "Small"
seed = 1
[methods.NB]
structure = "nb"
[methods.TAN]
structure = "tan"
[experiments.e]
title = "E"
methods = ["NB", "TAN"]
sets = ["iris"]
protocol = { folds = 2 }
quick = { methods = ["NB"] }
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(TEXT)
    return "small.toml"


def test_a_study_is_planned_run_resumed_and_reported(run, study):
    assert "4 to run" in run("study", "plan", study).stderr
    assert "2 tasks done, 0 left" in run("study", "run", study, "--quick").stdout
    second = run("study", "run", study)
    assert "4 tasks done, 0 left" in second.stdout
    assert "2 tasks done, 2 to run" in second.stderr
    assert run("report", study, "-o", "r.html").stdout.strip() == "r.html written"
    assert "<h1>Small</h1>" in Path("r.html").read_text(encoding="utf-8")
    assert run("report", "runs/small", "-o", "again.html").stdout.strip() == "again.html written"
    assert Path("again.html").read_bytes() == Path("r.html").read_bytes()
    run("report", study, "-o", "r.md")
    run("report", study, "-o", "R.HTML")
    assert Path("R.HTML").read_bytes() == Path("r.html").read_bytes()
    assert "| iris |" in Path("r.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["study", "run", "none.toml"], "none.toml"),
        (["study", "run", "small.toml", "--data", "wine"], "'wine'"),
        (["report", "small.toml"], "run the study first"),
        (["report", "small.toml", "-o", "none/r.md"], "there is no folder"),
        (["report", "small.toml", "-o", "r.pdf"], "should end in .html or .htm or .md"),
        (["study", "run", "small.toml", "--budget", "0"], "--budget 0 is no time to wait"),
        (["study", "run", "small.toml", "--budget", "-1"], "--budget -1 is no time"),
        (["study", "run", "small.toml", "--budget", "nan"], "--budget nan is no time"),
        (["study", "run", "small.toml", "--longest", "nan"], "--longest nan is no time"),
        (["study", "plan", "small.toml", "--longest", "nan"], "--longest nan is no time"),
        (["study", "run", "small.toml", "--jobs", "0"], "--jobs 0 leaves nobody to do the work"),
    ],
)
@pytest.mark.usefixtures("study")
def test_bad_input_is_one_sentence(fails, words, said):
    assert said in fails(*words)


def test_tasks_that_failed_are_told_apart_and_end_in_another_code(run, tmp_path):
    path = tmp_path / "fail.toml"
    path.write_text(
        'title = "t"\nseed = 1\n[methods.good]\nstructure = "nb"\n[methods.bad]\nstructure = "nb"\nparameters = "cl"\n'
        'missing = "em"\n[experiments.e]\ntitle = "e"\nmethods = ["good", "bad"]\nsets = ["iris"]\n'
        "protocol = { folds = 2 }\n"
    )
    result = run("study", "run", path, "-o", tmp_path / "r", code=1)
    assert "2 tasks done, 2 failed or given up (--retry runs them once more), 0 left" in result.stdout
    assert "2 failed or given up" in run("study", "plan", path, "-o", tmp_path / "r").stderr


def test_the_number_of_tasks_at_a_time_is_counted_not_coded(run, study):
    run("study", "run", study)  # so that no process need be started for the rest
    announced = run("study", "run", study, "--jobs", "-1").stderr
    assert "0 to run" in announced
    assert "-1 at a time" not in announced
    at_once = effective_n_jobs(-1)
    assert (f", {at_once} at a time" in announced) == (at_once > 1)


def test_an_experiment_without_a_short_form_is_named(fails, tmp_path):
    path = tmp_path / "long.toml"
    path.write_text(TEXT + '[experiments.f]\ntitle = "F"\nmethods = ["NB"]\nsets = ["iris"]\n')
    assert fails("study", "run", path, "--quick", "-e", "f") == (
        "long has no short form of f; add a table [experiments.f.quick], or leave out --quick"
    )


def test_a_folder_without_a_study_is_refused(fails, tmp_path):
    (tmp_path / "run").mkdir()
    assert "holds 0 studies (.toml), not one; name the study, and the folder by --run" in fails(
        "report", tmp_path / "run"
    )


def test_what_would_fail_is_told_before_anything_runs(run, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(
        'title = "t"\n[methods.fine]\nstructure = "nb"\n[methods.short]\nstructure = "tann"\n'
        '[methods.long]\nstructure = "ExactMargn"\n[methods.argument]\nstructure = "nb"\n'
        'parameters = "MarginHybrid"\nparameters_options = { b = 1 }\n[experiments.e]\ntitle = "e"\n'
        'methods = ["fine", "short", "long", "argument"]\nsets = ["iris", "irsi"]\nprotocol = { folds = 2 }\n'
        '[experiments.f]\ntitle = "f"\nkind = "classfy"\nmethods = ["fine"]\nsets = ["iris"]\n'
    )
    told = run("study", "plan", path).stderr
    assert "Note: these tasks will fail: method 'short': structure='tann' is not known" in told
    assert (
        "method 'long': there is no learner 'ExactMargn' in marginbayes.structure; did you mean 'ExactMargin'?" in told
    )
    assert "method 'argument': MarginHybrid.__init__() got an unexpected keyword argument 'b'" in told
    assert "Note: skipped, data sets that are not here: 'irsi'; MARGINBAYES_DATA names the folder for them" in told
    assert "experiment 'f' is of the kind 'classfy'; there are classify, " in told
    assert "method 'fine'" not in told


def test_records_of_another_study_are_refused(run, fails, study):
    run("study", "run", study, "--quick")
    Path("other.toml").write_text(TEXT.replace("folds = 2", "folds = 3"))
    said = fails("report", "other.toml", "--run", "runs/small", "-o", "r.md")
    assert said.startswith("none of the 2 records in runs/small is of a task of other.toml; name the folder of its")
    assert not Path("r.md").exists()


def test_the_summary_names_a_command_that_runs_and_counts_what_is_finished(run, study):
    run("study", "run", study, "--quick")
    Path("sub").mkdir()
    Path(study).rename("sub/small.toml")
    run("report", "sub/small.toml", "-o", "r.md")
    assert "`marginbayes study run sub/small.toml`: 2 tasks finished, 0.0 hours" in Path("r.md").read_text()


def test_more_folds_than_rows_are_told_before_anything_runs(run, study):
    assert "will fail" not in run("study", "plan", study).stderr
    Path(study).write_text(TEXT.replace("folds = 2", "folds = 151"))
    told = " ".join(run("study", "plan", study).stderr.split())
    assert "will fail: experiment 'e': folds = 151 needs as many rows, but iris has 150" in told


def test_data_sets_that_are_not_here_are_skipped_and_fail_nothing(run, fails, study):
    Path(study).write_text(TEXT.replace('["iris"]', '["iris", "glass2", "usps"]'))
    done = run("study", "run", study, "--quick")
    assert "Note: skipped, data sets that are not here: 'glass2', 'usps'; MARGINBAYES_DATA" in done.stderr
    assert "2 tasks done, 0 left" in done.stdout
    assert "glass2" not in Path("runs/small/records.jsonl").read_text()
    assert fails("study", "run", study, "--data", "usps").startswith(
        "none of the data sets asked for is here: 'usps'; MARGINBAYES_DATA names the folder for them"
    )
