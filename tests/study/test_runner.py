import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from marginbayes.report.results import outcomes
from marginbayes.study import Records, load_study, protocol, run, runner
from marginbayes.study.plan import plan
from marginbayes.study.runner import perform
from marginbayes.study.statistics import beats, cell

TEXT = """
title = "small"
seed = 3
[methods.NB]
structure = "nb"
[methods.TAN]
structure = "tan"
[methods.tuned]
structure = "nb"
grid = { smoothing = [0.1, 1.0] }
[methods.SVM]
estimator = "svm"
[methods.AODE]
estimator = "aode"
[methods.broken]
structure = "no-such-structure"
[experiments.e]
title = "e"
methods = ["NB", "TAN", "tuned", "SVM"]
sets = ["iris"]
quick = { methods = ["NB"] }
protocol = { folds = 3 }
[experiments.bad]
title = "bad"
methods = ["broken"]
sets = ["iris"]
protocol = { test = { iris = 50 } }
[experiments.holes]
title = "holes"
kind = "missing"
methods = ["NB"]
sets = ["iris"]
protocol = { test = { iris = 50 } }
options = { missing = [0, 2], draws = 3 }
[experiments.orders]
title = "orders"
kind = "orders"
methods = ["RO"]
sets = ["iris"]
protocol = { test = { iris = 50 } }
options = { orders = 4 }
[experiments.times]
title = "times"
kind = "structure"
methods = ["NB", "RO"]
sets = ["iris"]
groups = { flowers = ["iris"] }
protocol = { test = { iris = 50 } }
[methods.RO]
structure = "OrderBased"
structure_options = { order = "random" }
"""


@pytest.fixture
def study(tmp_path):
    protocol._load.cache_clear()  # another test may have had another data home
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return load_study(path)


def essence(records):
    """What does not depend on the clock."""
    timed = ("fit_seconds", "fit_processor_seconds", "predict_seconds", "structure_seconds")
    return {
        r.key: (r.status, json.dumps({k: v for k, v in r.result.items() if k not in timed}, sort_keys=True))
        for r in records
    }


def test_a_run_leaves_nothing_undone_and_a_second_one_repeats_nothing(study, tmp_path):
    records = Records(tmp_path / "run")
    left = run(study, records)
    assert (left.left, left.done) == ((), len(study.tasks()))
    before = records.path.read_bytes()
    run(study, records)
    assert records.path.read_bytes() == before


def test_a_run_that_was_cut_anywhere_resumes_to_the_same_records(study, tmp_path):
    whole = Records(tmp_path / "whole")
    run(study, whole)
    content = whole.path.read_bytes()
    for cut in (0, 1, len(content) // 3, len(content) // 2, len(content) - 1):
        part = Records(tmp_path / f"cut{cut}")
        part.path.parent.mkdir()
        part.path.write_bytes(content[:cut])
        run(study, part)
        assert essence(part) == essence(whole)


def test_a_killed_process_loses_no_finished_task(study, tmp_path):
    script = "import sys; from marginbayes.study import *\nrun(load_study(sys.argv[1]), Records(sys.argv[2]))\n"
    folder = tmp_path / "killed"
    child = subprocess.Popen([sys.executable, "-c", script, tmp_path / "small.toml", folder])
    records = Records(folder)
    while child.poll() is None and not (records.path.exists() and records.path.read_bytes().count(b"\n") >= 3):
        time.sleep(0.01)
    if child.poll() is None:
        os.kill(child.pid, signal.SIGKILL)
    child.wait()
    survived = essence(records)
    assert len(survived) >= 3
    run(study, records)
    whole = Records(tmp_path / "whole")
    run(study, whole)
    assert essence(records) == essence(whole)
    assert survived.items() <= essence(whole).items()


def test_an_error_is_a_record_and_stops_nothing(study):
    task = next(t for t in study.tasks() if t.experiment == "bad")
    record = perform(task)
    assert record.status == "failed"
    assert "no-such-structure" in record.result["error"]


def test_a_task_that_ctrl_c_cuts_short_leaves_no_record(study, tmp_path, monkeypatch):
    measure, calls = runner.measure, []

    def cut_short(task):
        calls.append(task)
        if len(calls) == 2:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)
            except KeyboardInterrupt:
                pass  # as learners do that keep their best so far
        return measure(task)

    monkeypatch.setattr(runner, "measure", cut_short)
    records = Records(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        run(study, records)
    assert len(calls) == 2
    assert [r.key for r in records] == [calls[0].key]


def test_an_error_of_any_kind_is_a_record(study, monkeypatch):
    def broken(_task):
        raise RuntimeError("the solver gave up")

    monkeypatch.setattr("marginbayes.study.runner.measure", broken)
    record = perform(study.tasks()[0])
    assert (record.status, record.result["error"]) == ("failed", "RuntimeError: the solver gave up")


def test_a_task_over_its_budget_is_given_up_and_tried_again_when_asked(study, tmp_path):
    tuned, records = study.only(["e"], methods=["tuned"]), Records(tmp_path / "run")
    perform(tuned.tasks()[0])  # from here on the data are in memory: no file is open when the time is over
    assert perform(tuned.tasks()[0], budget=1e-3).status == "over budget"
    assert run(tuned, records, budget=1e-3).left == ()
    assert {r.status for r in records} == {"over budget"}
    run(tuned, records)
    assert {r.status for r in records} == {"over budget"}
    run(tuned, records, retry=True)
    assert {r.status for r in records} == {"done"}


def test_a_budget_that_cannot_be_kept_is_refused(study, tmp_path):
    """Alarms reach the main thread alone."""
    with ThreadPoolExecutor(1) as pool:
        told = pool.submit(run, study.only(["e"]), Records(tmp_path / "run"), budget=1.0)
        with pytest.raises(ValueError, match=r"budget=1\.0 needs"):
            told.result()


def test_accuracy_is_that_of_a_plain_fit(study):
    from marginbayes import BayesNetClassifier
    from marginbayes.study.protocol import split

    task = next(t for t in study.tasks() if t.method.name == "TAN")
    rows = split(task.options["protocol"], "iris", task.split, 3)
    clf = BayesNetClassifier("tan").fit(rows.X_train, rows.y_train)
    assert perform(task).result["accuracy"] == clf.score(rows.X_test, rows.y_test)


def test_missing_features_and_orders_give_curves_and_lists(study):
    holes = perform(next(t for t in study.tasks() if t.experiment == "holes")).result
    assert [point[0] for point in holes["curve"]] == [0, 2]
    assert holes["curve"][0][1] == holes["accuracy"]
    orders = perform(next(t for t in study.tasks() if t.experiment == "orders")).result
    assert len(orders["test_accuracies"]) == orders["orders"] == 4


def test_the_time_of_a_structure_is_a_part_of_the_task_and_changes_no_result(study):
    timed = perform(next(t for t in study.tasks() if (t.experiment, t.method.name) == ("times", "RO")))
    plain = perform(replace(next(t for t in study.tasks() if t.experiment == "times"), kind="classify"))
    assert 0 < timed.result["structure_seconds"] < timed.result["fit_seconds"] < timed.seconds
    assert (
        perform(next(t for t in study.tasks() if t.experiment == "times")).result["correct"] == plain.result["correct"]
    )


def test_the_plan_learns_from_what_was_measured(study, tmp_path):
    records = Records(tmp_path / "run")
    first = study.only(["e"], methods=["NB"])
    assert plan(first, {}).seconds == pytest.approx(3 * (1 + 600e-6))
    run(first, records)
    task = first.tasks()[0]
    known = records.by_key()
    del known[task.key]
    rest = [r.seconds for r in known.values()]
    assert plan(first, known).seconds == pytest.approx(sum(rest) / len(rest))
    assert plan(first, {}, longest=0.5).left == ()


def test_an_estimate_for_another_set_learns_from_the_sets_that_are_done(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(TEXT.replace('sets = ["iris"]', 'sets = ["iris", "wine"]'))
    study = load_study(path).only(["e"], methods=["NB"])
    expected = {task.key: seconds for task, seconds in plan(study, {}).left}
    done = next(task for task in study.tasks() if task.dataset == "iris")
    record = replace(perform(done), seconds=7.0 * expected[done.key])
    left = plan(study, {done.key: record}).left
    assert {task.dataset for task, _ in left} == {"iris", "wine"}
    for task, seconds in left:
        assert seconds == pytest.approx(record.seconds if task.dataset == "iris" else 7.0 * expected[task.key])


def test_a_line_that_is_no_record_is_named(tmp_path):
    records = Records(tmp_path)
    records.path.write_text("{}\n")
    with pytest.raises(ValueError, match="line 1"):
        records.by_key()


def test_parts_are_judged_one_by_one_and_methods_without_any_as_they_are(tmp_path):
    path = tmp_path / "parts.toml"
    path.write_text("""
title = "parts"
[methods.NB]
structure = "nb"
[methods.mixed]
structure = "nb"
parameters = "ConvexCombination"
parameters_options = { n_parts = 3 }
[experiments.p]
title = "p"
kind = "parts"
methods = ["NB", "mixed"]
sets = ["iris"]
protocol = { test = { iris = 50 } }
""")
    plain, mixed = map(perform, load_study(path).tasks())
    assert (plain.status, mixed.status) == ("done", "done")
    assert plain.result["members"] == []
    assert len(mixed.result["members"]) == 3
    for train, test in mixed.result["members"]:
        assert 0.3 < train <= 1.0
        assert 0.3 < test <= 1.0
    weights = mixed.result["weights"]
    assert 0 <= weights["least"] <= 1 / 3 <= weights["most"] <= 1
    assert weights["equal"] == (weights["equal_from"] <= 1e3)  # the default of D


def test_the_time_of_the_processor_is_on_record_and_waiting_is_not_part_of_it(study, monkeypatch):
    from marginbayes import BayesNetClassifier

    fit = BayesNetClassifier.fit

    def slow(self, *arguments, **named):
        time.sleep(0.5)
        return fit(self, *arguments, **named)

    task = next(t for t in study.tasks() if (t.experiment, t.method.name) == ("e", "NB"))
    perform(task)  # what is compiled is not counted
    monkeypatch.setattr(BayesNetClassifier, "fit", slow)
    result = perform(task).result
    assert result["fit_seconds"] - result["fit_processor_seconds"] > 0.4
    assert result["fit_processor_seconds"] > 0


def test_single_test_rows_are_on_record_only_where_they_are_compared(tmp_path) -> None:
    file = tmp_path / "drawn.toml"
    file.write_text(
        """
title = "drawn"
seed = 3
[methods.NB]
structure = "nb"
[methods.TAN]
structure = "tan"
[experiments.once]
title = "once"
methods = ["NB", "TAN"]
sets = ["iris"]
protocol = { sizes = [50] }
[experiments.often]
title = "often"
methods = ["NB", "TAN"]
sets = ["iris"]
protocol = { sizes = [50], repeats = 3 }
"""
    )
    records = [perform(task) for task in load_study(file).tasks()]
    once = [r for r in records if r.experiment == "once"]
    often = [r for r in records if r.experiment == "often"]
    assert [("correct" in r.result) for r in once + often] == [True] * 2 + [False] * 6
    for some in (once, often):  # either way two methods can be compared
        first, second = (cell([r for r in some if r.method == name]) for name in ("NB", "TAN"))
        assert 0.0 <= beats(first, second) <= 1.0


def test_a_curve_ends_where_a_network_is_too_dense_and_says_so(study, monkeypatch):
    from marginbayes.study import kinds

    rate = kinds._rate_without

    def dense(model, rows, count, rng):
        if count == 2:
            raise ValueError("too many table cells")
        return rate(model, rows, count, rng)

    monkeypatch.setattr(kinds, "_rate_without", dense)
    part = study.only(["holes"])
    record = perform(part.tasks()[0])
    assert [count for count, *_ in record.result["curve"]] == [0]
    assert record.result["ended"] == "with 2 features missing: too many table cells"
    assert outcomes(part, [record])[0].missing() == [("NB on iris", record.result["ended"])]
