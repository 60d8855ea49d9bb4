import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

from marginbayes import datasets
from marginbayes.study import load_study
from marginbayes.study.protocol import GENERATORS

STUDIES = sorted((Path(__file__).parents[2] / "studies").glob("*.toml"))
SMALL = """
title = "a"
[methods.NB]
structure = "nb"
[experiments.e]
title = "b"
methods = ["NB"]
sets = ["iris"]
"""


def write(tmp_path, text):
    path = tmp_path / "s.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("path", STUDIES, ids=lambda p: p.stem)
def test_every_study_loads_and_no_two_tasks_share_a_key(path):
    tasks = load_study(path).tasks()
    assert len({task.key for task in tasks}) == len(tasks) > 0


def test_another_definition_of_a_method_is_another_task(tmp_path):
    first = load_study(write(tmp_path, SMALL)).tasks()[0].key
    second = load_study(write(tmp_path, SMALL.replace('"nb"', '"tan"'))).tasks()[0].key
    assert first != second
    assert first.rsplit("/", 1)[0] == second.rsplit("/", 1)[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "a"', "", "'title'"),
        ('["NB"]', '["TAN"]', "'TAN'"),
        ("sets =", "set = 1\nsets =", "'set'"),
        (
            'structure = "nb"',
            'struct = "nb"',
            "method 'NB' has 'struct', which no study knows; did you mean 'structure'?",
        ),
        (
            "sets =",
            "protocol = { foldss = 3 }\nsets =",
            "experiment 'e': protocol has 'foldss', .* did you mean 'folds'?",
        ),
        ("sets =", 'protocol = { folds = "a" }\nsets =', "folds = 'a', which should be a whole number from 2 on"),
        ("sets =", "protocol = 3\nsets =", "protocol should be a table of keys and values, not 3"),
        ("sets =", "quick = { protocol = { fold = 2 } }\nsets =", "quick: protocol has 'fold'"),
        ('[methods.NB]\nstructure = "nb"', '[methods]\nNB = "nb"', "method 'NB' should be a table"),
        ('[methods.NB]\nstructure = "nb"', "methods = 3", "methods should be a table"),
        ('title = "b"\n', "", "experiment 'e' lacks 'title'"),
        ("[methods.NB]", "[methods.NB", "not a study"),
        ("[experiments.e]" + SMALL.partition("[experiments.e]")[2], "[experiments]", "it has no experiment"),
        ("sets =", 'skip = { TAN = { iris = "long" } }\nsets =', "leaves out 'TAN'"),
        ("sets =", 'skip = { NB = { wine = "long" } }\nsets =', "leaves out 'wine'"),
        ("sets =", 'skip = { NB = "long" }\nsets =', "skip of 'NB' should be a table"),
        ('["NB"]', '["NB", "NB"]', "experiment 'e' has 'NB' twice in methods"),
        ('["iris"]', '["iris", "car", "iris"]', "experiment 'e' has 'iris' twice in sets"),
        ('["iris"]', '["iris"]\nquick = { sets = ["car", "car"] }', "'e': quick has 'car' twice in sets"),
        ('["iris"]', '["iris"]\nquick = { methods = ["TAN"] }', "'e': quick names the method 'TAN'"),
        ('["iris"]', '["iris"]\nprotocol = { sizes = [10, 10] }', "'e': protocol has 10 twice in sizes"),
        ('["iris"]', '["iris"]\nprotocol = { sizes = 10 }', "sizes = 10, which should be a list of whole numbers"),
        ('methods = ["NB"]', 'methods = "NB"', "s.toml: experiment 'e' has methods = 'NB', which .* a list of names"),
        ('["iris"]', "[]", r"experiment 'e' has sets = \[\], which should be a list of names"),
        ('"nb"', '"nb"\nexpected = "fast"', "s.toml: method 'NB' has expected = 'fast', which should be two numbers"),
        ('"nb"', '"nb"\nexpected = [1]', "expected = .1., which should be two numbers"),
        (
            'title = "a"',
            'title = "a"\nseed = "one"',
            "s.toml has seed = 'one', which should be a whole number from 0 on",
        ),
        ('title = "b"', 'title = "b"\nseed = 1.5', "experiment 'e' has seed = 1.5, which should be a whole number"),
        ('title = "b"', "title = 3", "experiment 'e' has title = 3, which should be a text"),
        ('["iris"]', '["iris"]\npublished = { rows = {} }', "s.toml: experiment 'e': published lacks 'columns'"),
        ('["iris"]', '["iris"]\npublished = { columns = "NB", rows = {} }', "columns = 'NB', which .* a list of names"),
        (
            '["iris"]',
            '["iris"]\npublished = { columns = ["NB"], rows = { iris = ["high"] } }',
            "experiment 'e': published: the row 'iris' has NB = 'high', which should be a number, ",
        ),
        (
            '["iris"]',
            '["iris"]\npublished = { columns = ["NB"], rows = { iris = 94.0 } }',
            "the row 'iris' should be a list of 1 cells",
        ),
    ],
)
def test_a_bad_study_is_refused_in_one_sentence(tmp_path, old, new, message):
    with pytest.raises(ValueError, match=message):
        load_study(write(tmp_path, SMALL.replace(old, new)))


def test_a_study_without_a_short_form_says_where_it_would_be(tmp_path):
    with pytest.raises(ValueError, match=r"s has no short form of e; add a table \[experiments.e.quick\]"):
        load_study(write(tmp_path, SMALL)).shortened()


def test_a_method_is_not_run_on_a_set_that_it_leaves_out(tmp_path):
    text = SMALL.replace('["iris"]', '["iris", "car"]\nskip = { NB = { iris = "long" } }')
    assert {task.dataset for task in load_study(write(tmp_path, text)).tasks()} == {"car"}


def test_an_unknown_name_in_a_choice_is_named(tmp_path):
    with pytest.raises(ValueError, match="'wine'"):
        load_study(write(tmp_path, SMALL)).only(sets=["wine"])


# -- the published numbers, read a second time


def published(study, experiment):
    path = next(p for p in STUDIES if p.stem == study)
    return next(e for e in load_study(path).experiments if e.name == experiment)


def test_half_widths_of_test_sets_in_table_2_follow_from_accuracy_and_size():
    experiment = published("peharz2012", "table2")
    sizes = {"chess": 1066, "letter": 5000, "mofn-3-7-10": 1024, "satimage": 2000, "segment": 770}
    sizes |= {"shuttle-small": 1934, "waveform-21": 4700, "adult": 15060}
    sizes |= {k: v for k, v in experiment.protocol["test"].items() if v != "split"}
    for name, size in sizes.items():
        for value, half in experiment.published.rows[name].values():
            p = round(value / 100 * size) / size  # the published rate is that of a whole number of rows
            assert 100 * p == pytest.approx(value, abs=0.0051), name
            assert half == pytest.approx(196 * math.sqrt(p * (1 - p) / size), abs=0.0051), name


def test_means_of_table_2_are_those_of_the_columns():
    rows = published("peharz2012", "table2").published.rows
    assert len(rows) == 31
    for method, mean in {"NB": 83.45, "TAN": 85.62, "SBM": 86.78, "SVM": 87.76}.items():
        assert np.mean([row[method][0] for row in rows.values()]) == pytest.approx(mean, abs=0.005)


def test_table_3_is_not_symmetric_and_significant_wins_are_wins():
    wins = tomllib.loads(next(p for p in STUDIES if p.stem == "peharz2012").read_text())["experiments"]["table2"][
        "wins"
    ]
    counts = np.array(wins["rows"])
    assert counts.shape == (6, 6, 2)
    assert (counts[..., 1] <= counts[..., 0]).all()
    assert (counts[..., 0] + counts[..., 0].T <= 31).all()


def test_averages_of_table_8_are_weighted_by_test_size():
    # Footnote 4; five folds test every row once. Sizes are those of Table 7.
    sizes = {"australian": 690, "breast": 683, "chess": 1066, "cleve": 296, "corral": 128, "crx": 653, "diabetes": 768}
    sizes |= {"flare": 1066, "german": 1000, "glass": 214, "glass2": 163, "heart": 270, "hepatitis": 80, "iris": 150}
    sizes |= {"letter": 5000, "lymphography": 148, "mofn-3-7-10": 1024, "pima": 768, "shuttle-small": 1934, "vote": 435}
    sizes |= {"satimage": 2000, "segment": 770, "soybean-large": 562, "vehicle": 846, "waveform-21": 4700}
    rows = published("pernkopf2010", "table8").published.rows
    assert set(rows) == {*sizes, "average"}
    names = list(sizes)
    for column in ("mean", "median", "min", "max", "OMI-CR"):
        values = [rows[name][column][0] for name in names]
        mean = np.average(values, weights=[sizes[name] for name in names])
        assert mean == pytest.approx(rows["average"][column][0], abs=0.02), column


@pytest.mark.parametrize("path", STUDIES, ids=lambda p: p.stem)
def test_the_page_of_studies_says_where_every_data_set_comes_from(path, monkeypatch, tmp_path):
    monkeypatch.delenv("MARGINBAYES_DATA", raising=False)
    monkeypatch.setenv("MARGINBAYES_CACHE", str(tmp_path))
    page = (path.parents[1] / "docs" / "studies.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| {path.stem} |"))
    told = [sorted(cell.strip().split(", ")) if cell.strip() else [] for cell in row.split("|")[2:5]]
    found = [[], [], []]
    for name in sorted({name for e in load_study(path).experiments for name in e.sets}):
        try:
            where = "a rule" if name in GENERATORS else datasets.where(name)
            found[1 if "openml.org" in where else 2].append(name)
        except ValueError:
            found[0].append(name)
    assert told == found
