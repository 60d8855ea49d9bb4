"""Every set in the data home, as loaded, against its meta.json and against a plain reading of its files."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="data sets are pandas frames")

from marginbayes import datasets

HOME = os.environ.get("MARGINBAYES_DATA")
NAMES = sorted(path.parent.name for path in Path(HOME).glob("*/meta.json")) if HOME else []

pytestmark = pytest.mark.skipif(not HOME, reason="MARGINBAYES_DATA names no data home")

RealSet = Callable[[str], Path]


def plain_rows(folder: Path, files: list[str]) -> list[dict[str, str]]:
    """All rows of the CSV files as dictionaries of strings."""
    rows: list[dict[str, str]] = []
    for file in files:
        opener: Any = gzip.open if file.endswith(".gz") else open
        with opener(folder / file, "rt", newline="", encoding="utf-8") as text:
            rows.extend(csv.DictReader(text))
    return rows


def everything(data: datasets.Dataset) -> dict[str, Any]:
    """All columns but the class: features, bookkeeping and further targets."""
    parts = [part for part in (data.ids, data.X, data.targets) if part is not None]
    return {name: part[name] for part in parts for name in part}


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_set_agrees_with_its_meta_json(name: str, real_home: Path) -> None:
    meta = json.loads((real_home / name / "meta.json").read_text(encoding="utf-8"))
    data = datasets.load(name, home=real_home, missing="nan")
    # The columns that lie in files of their own are not counted there.
    columns = {key for key in everything(data) if key not in ("rings", "speaker")}
    assert len(data.X) == len(data.y) == meta["n_samples"]
    assert len(columns) == meta["n_features"]
    assert Counter(map(str, data.y)) == meta["class_counts"]
    assert int(data.X.isna().to_numpy().sum()) == meta["missing_cells"]
    if "complete_rows" in meta:
        assert len(data.complete_cases().X) == meta["complete_rows"]
    if isinstance(meta["feature_kinds"], dict):
        assert data.kinds == {key: meta["feature_kinds"][key] for key in data.X}
    assert (data.train is not None) == ("split" in meta)
    for part, y in zip(("train", "test"), data.split()[1::2] if "split" in meta else (), strict=False):
        if f"{part}_class_counts" in meta:
            assert Counter(map(str, y)) == meta[f"{part}_class_counts"]


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_set_holds_the_cells_of_its_files(name: str, real_home: Path) -> None:
    folder = real_home / name
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    data = datasets.load(name, home=real_home, missing="nan")
    if "data.npz" in meta["files"]:
        with np.load(folder / "data.npz") as arrays:
            pixels = np.concatenate(
                [arrays[f"x_{part}"].reshape(len(arrays[f"x_{part}"]), -1) for part in ("train", "test")]
            )
        assert np.array_equal(data.X.to_numpy().astype(pixels.dtype), pixels)
        return
    rows = plain_rows(folder, list(meta["files"]))
    assert [row["class"] for row in rows] == data.y.astype(str).tolist()
    # Sampled, because turning every cell of the largest sets into a string would take minutes.
    sample = np.unique(np.linspace(0, len(rows) - 1, 200).astype(int))
    columns = {key: column for key, column in everything(data).items() if key in meta["feature_kinds"]}
    for key, column in columns.items():
        for i in sample:
            cell, value = rows[i][key], column.iloc[i]
            if cell == "":
                assert value != value or value is None
            elif meta["feature_kinds"][key] == "numeric":
                assert float(cell) == float(value)
            else:
                assert cell == value


@pytest.mark.parametrize("name", NAMES)
def test_the_list_states_the_size_of_the_loaded_set(name: str, real_home: Path) -> None:
    record = next(r for r in datasets.available(home=real_home) if r.name == name)
    data = datasets.load(name, home=real_home)
    assert (*data.X.shape, len(data.classes)) == (record.rows, record.features, record.classes)
    assert record.source == "home"
    assert record.problem is None


def test_vote_keeps_all_its_rows_with_a_third_answer(real_set: RealSet) -> None:
    data = datasets.load("vote", home=real_set("vote").parent, complete=True)
    assert data.X.shape == (435, 16)
    assert int((data.X == "neither").to_numpy().sum()) == 392
    assert len(datasets.load("vote", home=real_set("vote").parent, complete=True, missing="nan").X) == 232


def test_adult_without_incomplete_rows_has_the_published_sizes(real_set: RealSet) -> None:
    data = datasets.load("adult", home=real_set("adult").parent, complete=True)
    assert [len(part) for part in data.split()] == [30162, 30162, 15060, 15060]


def test_breast_has_nine_features_and_ten_with_its_id(real_set: RealSet) -> None:
    home = real_set("breast").parent
    assert datasets.load("breast", home=home).X.shape[1] == 9
    assert datasets.load("breast", home=home, keep_ids=True).X.columns[0] == "id"
    assert datasets.load("breast", home=home, keep_ids=True).X.shape[1] == 10


def test_cb513_predicts_from_the_residue_alone(real_set: RealSet) -> None:
    data = datasets.load("cb513", home=real_set("cb513").parent)
    assert list(data.X) == ["residue"]
    assert data.ids is not None
    assert data.targets is not None
    assert list(data.ids) == ["seq_id", "position", "in_cb513"]
    assert list(data.targets) == ["dssp8"]
    assert data.ids["seq_id"].nunique() == 511


def test_abalone_keeps_its_rings_as_a_second_target_that_gives_the_class(real_set: RealSet) -> None:
    data = datasets.load("abalone", home=real_set("abalone").parent)
    assert data.targets is not None
    grouped = ["1-8" if r < 9 else "9-10" if r < 11 else "11+" for r in data.targets["rings"]]
    assert grouped == data.y.tolist()


def test_the_speakers_of_phoneme_esl_follow_its_split(real_set: RealSet) -> None:
    data = datasets.load("phoneme-esl", home=real_set("phoneme-esl").parent)
    assert data.groups is not None
    assert data.train is not None
    parts = data.groups.astype(str).str.split(".").str[0].to_numpy()
    assert (parts[data.train] == "train").all()
    assert (np.delete(parts, data.train) == "test").all()


def test_mnist_at_half_size_has_196_features_and_the_official_split(real_set: RealSet) -> None:
    folder = real_set("mnist")
    data = datasets.load("mnist-14x14", home=folder.parent)
    assert data.X.shape == (70_000, 196)
    assert [len(part) for part in data.split()] == [60_000, 60_000, 10_000, 10_000]
    with np.load(folder / "data.npz") as arrays:
        image = arrays["x_train"][17].astype(float)
    means = [image[r : r + 2, c : c + 2].mean() for r in range(0, 28, 2) for c in range(0, 28, 2)]
    assert data.X.iloc[17].tolist() == means


# Features, classes, rows to learn from and to test (0: five folds) in Table 7 of Pernkopf & Bilmes (2010).
TABLE_7 = {
    "australian": (14, 2, 690, 0), "breast": (10, 2, 683, 0), "chess": (36, 2, 2130, 1066), "cleve": (13, 2, 296, 0),
    "corral": (6, 2, 128, 0), "crx": (15, 2, 653, 0), "diabetes": (8, 2, 768, 0), "flare": (10, 2, 1066, 0),
    "german": (20, 2, 1000, 0), "glass": (9, 7, 214, 0), "glass2": (9, 2, 163, 0), "heart": (13, 2, 270, 0),
    "hepatitis": (19, 2, 80, 0), "iris": (4, 3, 150, 0), "letter": (16, 26, 15000, 5000),
    "lymphography": (18, 4, 148, 0), "mofn-3-7-10": (10, 2, 300, 1024), "pima": (8, 2, 768, 0),
    "shuttle-small": (9, 7, 3866, 1934), "vote": (16, 2, 435, 0), "satimage": (36, 6, 4435, 2000),
    "segment": (19, 7, 1540, 770), "soybean-large": (35, 19, 562, 0), "vehicle": (18, 4, 846, 0),
    "waveform-21": (21, 3, 300, 4700),
}  # fmt: skip
# The paper counts the identifier of breast, and classes that no complete row has.
OTHERWISE = {"breast": (9, 2), "glass": (9, 6), "soybean-large": (35, 15)}


@pytest.mark.parametrize("name", TABLE_7)
def test_the_sets_of_pernkopf_and_bilmes_have_the_sizes_of_their_table(name: str, real_home: Path) -> None:
    data = datasets.load(name, home=real_home, complete=True)
    features, classes, learn, test = TABLE_7[name]
    assert (data.X.shape[1], data.y.nunique()) == OTHERWISE.get(name, (features, classes))
    assert len(data.y) == learn + test
