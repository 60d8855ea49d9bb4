import numpy as np
import pytest

from marginbayes.structure import Greedy
from marginbayes.study import load_study, structures
from marginbayes.study.runner import perform

TEXT = """
title = "shared"
seed = 3
[methods.ML]
structure = "Greedy"
structure_options = { score = "cr" }
[methods.CL]
structure = "Greedy"
structure_options = { score = "cr" }
parameters = "cl"
[methods.other]
structure = "Greedy"
structure_options = { score = "cl" }
[methods.smooth]
structure = "Greedy"
structure_options = { score = "cr" }
smoothing = 5.0
[methods.exact]
structure = "exact-mdl"
[experiments.e]
title = "e"
methods = ["ML", "CL", "other", "smooth", "exact"]
sets = ["iris"]
protocol = { folds = 2 }
"""


@pytest.fixture
def records(tmp_path, monkeypatch):
    """Records of all tasks, and the number of times that a structure was searched for before each."""
    path = tmp_path / "shared.toml"
    path.write_text(TEXT)
    calls, found = [], {}
    search = Greedy.learn
    monkeypatch.setattr(structures, "_known", {})
    monkeypatch.setattr(Greedy, "learn", lambda *args: calls.append(1) or search(*args))
    for task in load_study(path).tasks():
        record = perform(task)
        found[record.method, record.split] = record, len(calls)
    return found


def test_methods_that_differ_in_their_tables_alone_share_a_structure(records):
    assert {count for _, count in records.values()} == {1, 2, 3, 4, 5, 6}  # three structures, two folds
    for split in ("fold0", "fold1"):
        ours, theirs = (records[method, split][0].result for method in ("ML", "CL"))
        assert ours["edges"] == theirs["edges"]
        assert ours["train_cll"] != theirs["train_cll"]


def test_the_seconds_of_a_shared_structure_count(records):
    for split in ("fold0", "fold1"):
        spared = [spent for key, (_, spent) in structures._known.items() if split in key]
        assert len(spared) == 3
        own = records["CL", split][0].result
        assert own["fit_seconds"] > min(spent.seconds for spent in spared)
        assert own["fit_processor_seconds"] > min(spent.processor for spent in spared)


def test_what_is_shared_is_what_a_task_alone_would_find(records, monkeypatch, tmp_path):
    path = tmp_path / "again.toml"
    path.write_text(TEXT)
    for task in load_study(path).tasks():
        monkeypatch.setattr(structures, "_known", {})
        alone, shared = perform(task), records[task.method.name, task.split][0]
        assert alone.result["correct"] == shared.result["correct"]
        np.testing.assert_allclose(alone.result["test_cll"], shared.result["test_cll"])
        if task.method.name == "exact":
            assert "structure_certificate" in shared.result
