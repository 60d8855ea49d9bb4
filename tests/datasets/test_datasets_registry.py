"""Data sets by name: the order of the sources, the list, and what happens without pandas."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="data sets are pandas frames")

from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from marginbayes import datasets
from marginbayes.datasets import catalogue, registry

MakeSet = Callable[..., Path]


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("iris", load_iris),
        ("breast-cancer", load_breast_cancer),
        ("digits", load_digits),
        ("wine", load_wine),
    ],
)
def test_bundled_sets_are_those_of_scikit_learn(name: str, loader: Callable[[], Any]) -> None:
    data, bunch = datasets.load(name), loader()
    np.testing.assert_array_equal(data.X.to_numpy(), bunch.data)
    np.testing.assert_array_equal(np.unique(data.y, return_inverse=True)[1], _rank(bunch))
    assert "scikit-learn" in data.source


def _rank(bunch: Any) -> Any:
    names = [str(name) for name in bunch.target_names]
    return np.array([sorted(names).index(name) for name in names])[bunch.target]


def test_iris_has_the_same_columns_and_labels_as_the_uci_file() -> None:
    data = datasets.load("iris")
    assert list(data.X) == ["sepallength", "sepalwidth", "petallength", "petalwidth"]
    assert data.classes.tolist() == ["Iris-setosa", "Iris-versicolor", "Iris-virginica"]
    assert datasets.load("digits").y.dtype == np.int64


def test_the_data_home_comes_before_every_other_source(make_set: MakeSet, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_set("iris", {"data.csv": "a,class\n1,x\n2,y\n"}, {"feature_kinds": {"a": "numeric"}})
    assert len(datasets.load("iris", home=home).X) == 2
    assert len(datasets.load("iris", home=home, source="bundled").X) == 150
    monkeypatch.setenv("MARGINBAYES_DATA", str(home))
    assert len(datasets.load("iris").X) == 2
    assert datasets.where("iris") == datasets.fetch("iris") == str(home / "iris")


def test_a_source_that_lacks_the_set_says_so() -> None:
    with pytest.raises(ValueError, match="the source 'home' does not have the data set 'iris'"):
        datasets.load("iris", source="home")
    with pytest.raises(
        ValueError, match="source='uci' is not known; choose one of None, 'home', 'bundled', 'generated', 'openml'"
    ):
        datasets.load("iris", source="uci")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="missing='drop' is not known; choose one of 'meant', 'nan'"):
        datasets.load("iris", missing="drop")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "near"), [("irs", "'iris'"), ("Breast_Cancer", "'breast-cancer'"), ("monk-1", "'monks-1'")]
)
def test_an_unknown_name_suggests_the_nearest(name: str, near: str) -> None:
    with pytest.raises(ValueError, match=f"there is no data set '{name}'; did you mean .*{near}") as caught:
        datasets.load(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "zzzzzz", "../iris", "openml:", "openml:0", "openml:x", "openml:6/../7"])
def test_a_name_like_no_other_points_to_the_list(name: str) -> None:
    with pytest.raises(ValueError, match="there is no data set"):
        datasets.load(name)


def test_a_folder_outside_the_home_cannot_be_named(make_set: MakeSet) -> None:
    home = make_set("toy", {"data.csv": "a,class\n1,x\n2,y\n"}, {"feature_kinds": {"a": "numeric"}})
    (home / "inner").mkdir()
    with pytest.raises(ValueError, match="there is no data set"):
        datasets.load("../toy", home=home / "inner")


def test_other_names_of_a_set_lead_to_it() -> None:
    assert datasets.load("mofn").name == "mofn-3-7-10"
    assert datasets.where("kr-vs-kp") == datasets.where("chess")
    assert set(catalogue.ALIASES.values()) <= {record.name for record in datasets.available()}
    assert not set(catalogue.ALIASES) & {record.name for record in datasets.available()}


def test_the_list_gives_each_name_once_with_the_size_that_load_returns() -> None:
    records = datasets.available()
    names = [record.name for record in records]
    assert names == sorted(set(names))
    for record in records:
        if record.source != "openml":
            data = datasets.load(record.name)
            assert (*data.X.shape, len(data.classes)) == (record.rows, record.features, record.classes)
            assert data.name == record.name
            assert record.problem is None
            assert data.description
            assert data.source
    assert {record.source for record in records} == {"bundled", "generated", "openml"}


def test_every_generated_set_is_in_the_catalogue() -> None:
    assert set(registry._GENERATORS) == set(catalogue.GENERATED)


def test_openml_numbers_and_titles_are_all_different() -> None:
    entries = catalogue.OPENML.values()
    assert len({entry.number for entry in entries}) == len({entry.title for entry in entries}) == len(entries)


def test_a_damaged_set_stays_in_the_list_with_its_problem(make_set: MakeSet) -> None:
    home = make_set("broken", {}, "{")
    record = next(r for r in datasets.available(home=home) if r.name == "broken")
    assert record.rows is None
    assert record.problem is not None
    assert "meta.json is not valid JSON" in record.problem


def test_fetching_a_set_that_needs_no_network_does_nothing() -> None:
    assert datasets.fetch("corral") == datasets.where("corral") == "generated by its rule"


def test_a_data_set_cannot_be_changed_and_describes_itself() -> None:
    data = datasets.load("corral")
    assert repr(data) == "Dataset('corral': 128 rows, 6 features, 2 classes)"
    with pytest.raises(AttributeError):
        data.name = "other"  # type: ignore[misc]


def test_taking_rows_keeps_them_in_the_given_order_and_in_their_part() -> None:
    data = datasets.load("monks-1")
    taken = data.take(np.array([200, 3, 130]))
    assert taken.X.to_numpy().tolist() == data.X.iloc[[200, 3, 130]].to_numpy().tolist()
    assert taken.train is not None
    assert taken.test is not None
    assert taken.train.tolist() == [1]
    assert taken.test.tolist() == [0, 2]


def test_without_pandas_the_package_imports_and_lists_and_load_says_what_to_install(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['pandas'] = None\n"
        "from marginbayes import datasets\n"
        "assert len(datasets.available()) > 40\n"
        "assert datasets.where('iris').startswith('scikit-learn')\n"
        "for call in (lambda: datasets.load('corral'), lambda: datasets.read_table(sys.argv[1])):\n"
        "    try:\n"
        "        call()\n"
        "    except ImportError as error:\n"
        "        assert 'pip install \"marginbayes[data]\"' in str(error), error\n"
        "    else:\n"
        "        raise AssertionError('no ImportError')\n"
    )
    table = tmp_path / "tiny.csv"
    table.write_text("a\n1\n", encoding="utf-8")
    result = subprocess.run([sys.executable, "-c", program, str(table)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_importing_the_package_imports_neither_pandas_nor_scikit_learn() -> None:
    program = "import sys, marginbayes.datasets; sys.exit(any(m in sys.modules for m in ('pandas', 'sklearn')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
