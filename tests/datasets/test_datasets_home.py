"""Data sets read from folders of a data home."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="data sets are pandas frames")

from marginbayes import datasets  # noqa: E402

MakeSet = Callable[..., Path]

ROWS = "age,colour,class\n31,red,yes\n,blue,no\n45,,no\n52,red,yes\n"
KINDS = {"age": "numeric", "colour": "categorical"}
META: dict[str, Any] = {
    "name": "toy",
    "n_samples": 4,
    "n_features": 2,
    "n_classes": 2,
    "missing_cells": 2,
    "feature_kinds": KINDS,
    "notes": "A toy.",
    "source": "nowhere",
    "files": {"data.csv": 4},
}


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def load_toy(make_set: MakeSet, rows: str | bytes = ROWS, file: str = "data.csv", **changes: Any) -> datasets.Dataset:
    home = make_set("toy", {file: rows}, {**META, "files": {file: 4}, **changes})
    return datasets.load("toy", home=home)


def fails(make_set: MakeSet, match: str, **arguments: Any) -> None:
    with pytest.raises(ValueError, match=match) as caught:
        load_toy(make_set, **arguments)
    assert "toy" in str(caught.value)
    assert "\n" not in str(caught.value)


# -- what comes back


def test_columns_have_the_kinds_that_meta_json_gives_them(make_set: MakeSet) -> None:
    data = load_toy(make_set)
    assert data.kinds == KINDS
    assert data.X["age"].isna().tolist() == [False, True, False, False]
    assert data.X["colour"].tolist()[:2] == ["red", "blue"]
    assert list(data.X["colour"].cat.categories) == ["blue", "red"]
    assert data.y.tolist() == ["yes", "no", "no", "yes"]
    assert data.y.name == "class"
    assert "A toy." in data.description
    assert "nowhere" in data.source


def test_codes_of_a_categorical_column_stay_strings_in_numeric_order(make_set: MakeSet) -> None:
    data = load_toy(make_set, "age,colour,class\n1,10,0\n2,9,1\n3,1,0\n4,10,1\n", missing_cells=0)
    assert list(data.X["colour"].cat.categories) == ["1", "9", "10"]


def test_words_that_pandas_takes_for_missing_are_levels_like_any_other(make_set: MakeSet) -> None:
    data = load_toy(make_set, "age,colour,class\n1,NA,0\n2,None,1\n3,null,0\n4,nan,1\n", missing_cells=0)
    assert data.X["colour"].tolist() == ["NA", "None", "null", "nan"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [("3 1 1 2", [3, 1, 1, 2]), ("01 1 1 01", ["01", "1", "1", "01"]), ("a 1 1 a", ["a", "1", "1", "a"])],
)
def test_labels_are_integers_only_if_every_one_is_written_so(
    make_set: MakeSet, labels: str, expected: list[Any]
) -> None:
    rows = "age,colour,class\n" + "".join(f"1,red,{label}\n" for label in labels.split())
    data = load_toy(make_set, rows, missing_cells=0, n_classes=len(set(expected)))
    assert data.y.tolist() == expected
    assert all(type(a) is type(b) for a, b in zip(data.y.tolist(), expected, strict=True))


def test_a_gzipped_file_reads_like_a_plain_one(make_set: MakeSet) -> None:
    plain = load_toy(make_set).X
    (make_set("toy", {}, META) / "toy" / "data.csv").unlink()
    packed = load_toy(make_set, gzip.compress(ROWS.encode()), "data.csv.gz").X
    pd.testing.assert_frame_equal(plain, packed)


def test_meta_json_needs_to_say_no_more_than_the_kinds(make_set: MakeSet) -> None:
    home = make_set("toy", {"data.csv": ROWS}, {"feature_kinds": KINDS})
    assert datasets.load("toy", home=home).X.shape == (4, 2)
    record = next(r for r in datasets.available(home=home) if r.name == "toy")
    assert (record.rows, record.features, record.classes) == (None, None, None)


def test_train_and_test_files_become_a_split(make_set: MakeSet) -> None:
    files = {"train.csv": ROWS, "test.csv": "age,colour,class\n7,green,no\n8,red,yes\n"}
    meta = {"feature_kinds": KINDS, "split": "official 4/2", "files": {"train.csv": 4, "test.csv": 2}}
    data = datasets.load("toy", home=make_set("toy", files, meta))
    X_train, y_train, X_test, y_test = data.split()
    assert (len(X_train), len(y_train), len(X_test), len(y_test)) == (4, 4, 2, 2)
    assert X_test["age"].tolist() == [7, 8]
    assert y_test.tolist() == ["no", "yes"]
    assert X_train["colour"].dtype == X_test["colour"].dtype
    assert data.split_note == "official 4/2"


def test_the_complete_case_filter_keeps_each_row_in_its_part(make_set: MakeSet) -> None:
    files = {"train.csv": ROWS, "test.csv": "age,colour,class\n7,,no\n8,red,yes\n"}
    home = make_set("toy", files, {"feature_kinds": KINDS})
    X_train, y_train, X_test, y_test = datasets.load("toy", home=home, complete=True).split()
    assert X_train["age"].tolist() == [31, 52]
    assert y_train.tolist() == ["yes", "yes"]
    assert X_test["age"].tolist() == [8]
    assert y_test.tolist() == ["yes"]


def test_a_set_without_a_split_says_so(make_set: MakeSet) -> None:
    with pytest.raises(ValueError, match="'toy' comes without a train/test split"):
        load_toy(make_set).split()


def test_id_columns_and_further_targets_are_not_features(make_set: MakeSet) -> None:
    rows = "chain,fold,residue,class\nc1,a,G,h\nc1,b,V,e\nc2,a,G,h\n"
    meta = {
        "feature_kinds": {"chain": "categorical", "fold": "categorical", "residue": "categorical"},
        "id_columns": ["chain"],
        "target_columns": ["fold", "class"],
        "n_features": 3,
    }
    home = make_set("toy", {"data.csv": rows}, meta)
    data = datasets.load("toy", home=home)
    assert list(data.X) == ["residue"]
    assert data.ids is not None
    assert data.targets is not None
    assert data.groups is not None
    assert data.ids["chain"].tolist() == data.groups.tolist() == ["c1", "c1", "c2"]
    assert data.targets["fold"].tolist() == ["a", "b", "a"]
    kept = datasets.load("toy", home=home, keep_ids=True)
    assert list(kept.X) == ["chain", "residue"]
    assert kept.ids is None


def test_a_file_of_targets_beside_the_rows_is_read_and_filtered_with_them(make_set: MakeSet) -> None:
    files = {"data.csv": ROWS, "rings.csv": "rings\n15\n7\n9\n10\n"}
    home = make_set("abalone", files, {"feature_kinds": KINDS})
    targets = datasets.load("abalone", home=home, complete=True).targets
    assert targets is not None
    assert targets["rings"].tolist() == [15, 10]
    home = make_set("abalone", {**files, "rings.csv": "rings\n15\n7\n9\n"}, {"feature_kinds": KINDS})
    with pytest.raises(ValueError, match=r"rings\.csv has 3 rows, but the data set has 4"):
        datasets.load("abalone", home=home)


def test_the_question_marks_of_vote_are_a_third_answer_unless_asked_otherwise(make_set: MakeSet) -> None:
    rows = "a,b,class\ny,n,rep\n,n,dem\ny,,dem\n"
    meta = {"feature_kinds": {"a": "categorical", "b": "categorical"}, "missing_cells": 2}
    home = make_set("vote", {"data.csv": rows}, meta)
    meant = datasets.load("vote", home=home, complete=True).X
    assert meant["a"].tolist() == ["y", "neither", "y"]
    assert meant["b"].tolist() == ["n", "n", "neither"]
    unknown = datasets.load("vote", home=home, missing="nan").X
    assert int(unknown.isna().to_numpy().sum()) == 2
    assert len(datasets.load("vote", home=home, missing="nan", complete=True).X) == 1


# -- images


def test_numeric_images_become_a_frame_of_pixels_with_their_split(make_set: MakeSet) -> None:
    images = np.arange(6 * 16, dtype=np.uint8).reshape(6, 4, 4)
    arrays = npz(x_train=images[:4], y_train=np.array([0, 1, 2, 1]), x_test=images[4:], y_test=np.array([2, 0]))
    meta = {"feature_kinds": "16 numeric pixels 0..255 (4x4, row-major)", "n_samples": 6, "n_features": 16}
    data = datasets.load("images", home=make_set("images", {"data.npz": arrays}, meta))
    np.testing.assert_array_equal(data.X.to_numpy(), images.reshape(6, 16))
    assert data.X.columns[5] == "pixel_1_1"
    assert data.y.tolist() == [0, 1, 2, 1, 2, 0]
    assert data.split()[3].tolist() == [2, 0]


def test_categorical_images_become_categories(make_set: MakeSet) -> None:
    images = np.array([[1, 2, 6, 1], [2, 2, 6, 1]], dtype=np.uint8)
    arrays = npz(x_train=images, y_train=np.array([3, 4]))
    meta = {"feature_kinds": "4 categorical pixels, levels 1..6"}
    data = datasets.load("images", home=make_set("images", {"data.npz": arrays}, meta))
    assert set(data.kinds.values()) == {"categorical"}
    assert data.X.astype(int).to_numpy().tolist() == images.tolist()
    assert data.train is None


def test_mnist_at_half_size_holds_the_means_of_blocks_of_four_pixels(make_set: MakeSet) -> None:
    images = np.random.default_rng(0).integers(0, 256, (5, 6, 6), dtype=np.uint8)
    arrays = npz(x_train=images[:3], y_train=np.zeros(3), x_test=images[3:], y_test=np.ones(2))
    home = make_set("mnist", {"data.npz": arrays}, {"feature_kinds": "36 numeric pixels", "n_features": 36})
    small = datasets.load("mnist-14x14", home=home)
    for i, row, column in np.ndindex(5, 3, 3):
        block = images[i, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert small.X[f"pixel_{row}_{column}"][i] == sum(int(p) for p in block.ravel()) / 4
    assert small.name == "mnist-14x14"
    assert len(small.split()[2]) == 2
    record = next(r for r in datasets.available(home=home) if r.name == "mnist-14x14")
    assert record.features == 9


# -- damage


def test_bad_json_is_one_sentence(make_set: MakeSet) -> None:
    home = make_set("toy", {"data.csv": ROWS}, "{not json")
    with pytest.raises(ValueError, match=r"toy.meta\.json is not valid JSON"):
        datasets.load("toy", home=home)
    with pytest.raises(ValueError, match=r"should hold a JSON object, not list"):
        datasets.load("toy", home=make_set("toy", {}, "[]"))


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"n_samples": "4"}, "'n_samples' should be of type int, not '4'"),
        ({"n_samples": True}, "'n_samples' should be of type int, not True"),
        (
            {"feature_kinds": {"age": "numeric", "colour": "text"}},
            "'colour' should be categorical or numeric",
        ),
        ({"feature_kinds": "some"}, "'feature_kinds' should say"),
        ({"feature_kinds": "2 numeric columns"}, r"'feature_kinds' should name every column of data\.csv"),
        ({"feature_kinds": {**KINDS, "height": "numeric"}}, "lacks the column 'height'"),
        ({"feature_kinds": {"age": "numeric"}}, "has the column 'colour'"),
        ({"n_samples": 5}, "n_samples = 5, but the rows have 4"),
        ({"n_features": 3}, "n_features = 3, but the rows have 2"),
        ({"n_classes": 3}, "n_classes = 3, but the rows have 2"),
        ({"missing_cells": 0}, "missing_cells = 0, but the rows have 2"),
        ({"files": {"data.csv": 7}}, "has 4 rows, but meta.json states 7"),
        ({"files": {"train.csv": 2, "test.csv": 2}}, "expected train.csv, test.csv"),
        ({"id_columns": ["nr"]}, "lists 'nr' as an id or target column"),
    ],
)
def test_what_meta_json_states_wrongly_is_named(make_set: MakeSet, changes: dict[str, Any], match: str) -> None:
    fails(make_set, match, **changes)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ("age,colour,class\n1,red,a\nold,red,b\n", r"row 2 of the numeric column 'age' holds 'old'"),
        ("age,colour,class\n1,red,a\n2,red,\n", "row 2 has no class"),
        ("age,colour,class\n1,red,a\n2,red\n", r"data\.csv, line 3: 2 cells, but the header names 3"),
        ("age,colour,class\n1,red,a\n2,red,b,c\n", r"data\.csv, line 3: 4 cells"),
        ("age,colour\n1,red\n", "lacks the column 'class'"),
        ("age,age,class\n1,red,a\n", "two columns are called 'age'"),
        ("", "is empty"),
        (b"age,colour,class\n1,r\xe9d,a\n", "is not utf-8 text"),
    ],
)
def test_damaged_rows_are_named_with_their_file(make_set: MakeSet, rows: str | bytes, match: str) -> None:
    fails(make_set, match, rows=rows, files={})


def test_a_truncated_gzip_file_is_one_sentence(make_set: MakeSet) -> None:
    packed = gzip.compress((ROWS * 500).encode())
    fails(make_set, "is not a complete gzip file", rows=packed[: len(packed) // 2], file="data.csv.gz")
    fails(make_set, "is not a complete gzip file", rows=b"plain text", file="data.csv.gz")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"not a zip archive", "is not a readable npz file"),
        (npz(x_train=np.zeros((2, 4)))[:-30], "is not a readable npz file"),
        (npz(x_train=np.array([{}], dtype=object), y_train=np.zeros(1)), "is not a readable npz file"),
        (npz(y_train=np.zeros(2)), "lacks the array x_train"),
        (
            npz(x_train=np.zeros((2, 4)), y_train=np.zeros(2), x_test=np.zeros((2, 4))),
            "lacks the array y_test",
        ),
        (npz(x_train=np.zeros((2, 4)), y_train=np.zeros(3)), "does not go with y_train"),
        (npz(x_train=np.zeros((2, 5)), y_train=np.zeros(2)), "5 pixels do not make a square image"),
    ],
)
def test_damaged_images_are_named_with_their_file(make_set: MakeSet, content: bytes, match: str) -> None:
    home = make_set("images", {"data.npz": content}, {"feature_kinds": "4 numeric pixels"})
    with pytest.raises(ValueError, match=match):
        datasets.load("images", home=home)


def test_a_home_that_is_no_folder_is_an_error_and_not_an_empty_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = tmp_path / "absent"
    with pytest.raises(ValueError, match=re.escape(f"the data home {absent} is not a folder")):
        datasets.load("iris", home=absent)
    monkeypatch.setenv("MARGINBAYES_DATA", str(absent))
    with pytest.raises(ValueError, match="to which MARGINBAYES_DATA points, is not a folder"):
        datasets.load("iris")


def test_the_home_is_the_argument_else_the_environment_variable_else_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert datasets.data_home() is None
    monkeypatch.setenv("MARGINBAYES_DATA", str(tmp_path))
    assert datasets.data_home() == tmp_path
    (tmp_path / "other").mkdir()
    assert datasets.data_home(tmp_path / "other") == tmp_path / "other"
