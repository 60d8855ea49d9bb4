"""Data sets in the data home: one folder each, with `meta.json` beside the rows.

A folder holds `data.csv`, or `train.csv` and `test.csv` (each also with .gz), or `data.npz` with the arrays
`x_train`, `y_train` and, for a split, `x_test`, `y_test`. The column `class` is the target, an empty cell is
missing. `meta.json` must say in `feature_kinds` which feature is "categorical" and which "numeric"; whatever
else it states (rows, classes, missing cells) is checked against the rows when they are read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes.datasets.dataset import Dataset, as_category, as_labels, pandas
from marginbayes.datasets.files import read_delimited
from marginbayes.datasets.images import read_images

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HOME_VARIABLE", "Meta", "data_home", "names", "read", "read_meta"]

HOME_VARIABLE = "MARGINBAYES_DATA"

_LAYOUTS = (
    ("data.csv",),
    ("data.csv.gz",),
    ("train.csv", "test.csv"),
    ("train.csv.gz", "test.csv.gz"),
    ("data.npz",),
)
# Files that some sets have beside their rows, in the same row order: further targets, or bookkeeping.
_BESIDE = {"abalone": ("targets", "rings.csv"), "phoneme-esl": ("ids", "speakers.csv.gz")}


@dataclass(frozen=True)
class Meta:
    """What a folder's meta.json says about its rows; None where it says nothing."""

    path: Path
    kinds: Mapping[str, str] | str
    rows: int | None = None
    features: int | None = None
    classes: int | None = None
    missing_cells: int | None = None
    files: Mapping[str, int] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    split: str = ""
    notes: str = ""
    source: str = ""


def data_home(home: str | os.PathLike[str] | None = None) -> Path | None:
    """Folder of the data home: the one given, else the one MARGINBAYES_DATA names, else None.

    Parameters
    ----------
    home : path, optional
        Folder to use instead of the environment variable's.
    """
    chosen = home if home is not None else os.environ.get(HOME_VARIABLE)
    if not chosen:
        return None
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        origin = "" if home is not None else f", to which {HOME_VARIABLE} points,"
        raise ValueError(f"the data home {folder}{origin} is not a folder")
    return folder


def names(home: Path | None) -> list[str]:
    """Names of the data sets in a data home, sorted; none without a home."""
    return [] if home is None else sorted(meta.parent.name for meta in home.glob("*/meta.json"))


def read(folder: Path) -> Dataset:
    """Data set of one folder, checked against its meta.json."""
    meta = read_meta(folder)
    files = _layout(meta)
    frame, n_train = read_images(folder / files[0], meta.kinds) if files[0] == "data.npz" else _read_csv(meta, files)
    _check_counts(meta, frame)
    further = [name for name in meta.targets if name != "class"]
    X = frame.drop(columns=["class", *meta.ids, *further])
    apart = _beside(folder, len(frame))
    train, test = (None, None) if n_train is None else np.split(np.arange(len(frame)), [n_train])
    return Dataset(
        name=folder.name,
        X=X,
        y=as_labels(frame["class"]),
        description=meta.notes,
        source=f"data home, {folder}" + (f" (from {meta.source})" if meta.source else ""),
        train=train,
        test=test,
        split_note=meta.split,
        ids=frame[list(meta.ids)] if meta.ids else apart.get("ids"),
        targets=frame[further] if further else apart.get("targets"),
    )


# -- meta.json


def read_meta(folder: Path) -> Meta:
    """What meta.json in this folder says, with its types checked."""
    path = folder / "meta.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{path} should hold a JSON object, not {type(entries).__name__}")
    return Meta(
        path=path,
        kinds=_kinds(path, entries),
        rows=_entry(path, entries, "n_samples", int, None),
        features=_entry(path, entries, "n_features", int, None),
        classes=_entry(path, entries, "n_classes", int, None),
        missing_cells=_entry(path, entries, "missing_cells", int, None),
        files=_entry(path, entries, "files", dict, {}),
        ids=tuple(_entry(path, entries, "id_columns", list, [])),
        targets=tuple(_entry(path, entries, "target_columns", list, [])),
        split=_entry(path, entries, "split", str, ""),
        notes=_entry(path, entries, "notes", str, ""),
        source=_entry(path, entries, "source", str, ""),
    )


def _entry(path: Path, entries: dict[str, Any], key: str, kind: type, default: Any) -> Any:
    value = entries.get(key, default)
    if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
        raise ValueError(f"{path}: {key!r} should be of type {kind.__name__}, not {value!r}")
    return value


def _kinds(path: Path, entries: dict[str, Any]) -> Mapping[str, str] | str:
    """Kind of each feature, or one word for all of them where the features are pixels."""
    kinds = entries.get("feature_kinds")
    if isinstance(kinds, str):
        found = [kind for kind in ("categorical", "numeric") if kind in kinds]
        if len(found) == 1:
            return found[0]
    elif isinstance(kinds, dict):
        wrong = [name for name, kind in kinds.items() if kind not in ("categorical", "numeric")]
        if not wrong:
            return kinds
        kind = kinds[wrong[0]]
        raise ValueError(f"{path}: feature {wrong[0]!r} should be categorical or numeric, not {kind!r}")
    raise ValueError(f"{path}: 'feature_kinds' should say of each feature whether it is categorical or numeric")


def _layout(meta: Meta) -> tuple[str, ...]:
    """Names of the files that hold the rows."""
    folder = meta.path.parent
    for files in _LAYOUTS:
        stated = not meta.files or set(files) <= set(meta.files)
        if stated and all((folder / file).is_file() for file in files):
            return files
    expected = ", ".join(meta.files) or "data.csv, train.csv and test.csv, or data.npz"
    raise ValueError(f"the folder {folder} does not hold the rows it should: expected {expected}")


# -- rows


def _read_csv(meta: Meta, files: tuple[str, ...]) -> tuple[pd.DataFrame, int | None]:
    """All rows with typed columns, and how many belong to the training part if there is a split."""
    if isinstance(meta.kinds, str):
        raise ValueError(f"{meta.path}: 'feature_kinds' should name every column of {files[0]} and its kind")
    parts = [_read_part(meta, meta.kinds, file) for file in files]
    frame = parts[0] if len(parts) == 1 else pandas().concat(parts, ignore_index=True)
    for name, kind in meta.kinds.items():
        if kind == "categorical":
            frame[name] = as_category(frame[name])
    return frame, None if len(parts) == 1 else len(parts[0])


def _read_part(meta: Meta, kinds: Mapping[str, str], file: str) -> pd.DataFrame:
    path = meta.path.parent / file
    categorical = [name for name, kind in kinds.items() if kind == "categorical"]
    part = read_delimited(path, missing=[""], text_columns=[*categorical, "class"])
    _check_columns(path, list(part.columns), [*kinds, "class"])
    _check_rows(path, len(part), meta.files.get(file))
    for name, kind in kinds.items():
        if kind == "numeric":
            _check_numeric(path, part[name])
    if part["class"].isna().any():
        raise ValueError(f"{path}: row {int(part['class'].isna().argmax()) + 1} has no class")
    return part


def _check_columns(path: Path, found: list[str], expected: list[str]) -> None:
    absent = [name for name in expected if name not in found]
    extra = [name for name in found if name not in expected]
    if absent:
        raise ValueError(f"{path} lacks the column {absent[0]!r}, which meta.json describes")
    if extra:
        raise ValueError(f"{path} has the column {extra[0]!r}, which meta.json does not describe")


def _check_rows(path: Path, found: int, stated: int | None) -> None:
    if stated is not None and found != stated:
        raise ValueError(f"{path} has {found} rows, but meta.json states {stated}")


def _check_numeric(path: Path, column: pd.Series[Any]) -> None:
    types = pandas().api.types
    if types.is_numeric_dtype(column) and not types.is_bool_dtype(column):
        return
    numbers = pandas().to_numeric(column.astype(str), errors="coerce")
    row = int((numbers.isna() & column.notna()).argmax())
    raise ValueError(f"{path}: row {row + 1} of the numeric column {column.name!r} holds {column.iloc[row]!r}")


def _check_counts(meta: Meta, frame: pd.DataFrame) -> None:
    """The counts that meta.json states, against the rows."""
    unknown = [name for name in (*meta.ids, *meta.targets) if name not in frame]
    if unknown:
        raise ValueError(f"{meta.path} lists {unknown[0]!r} as an id or target column, but there is no such column")
    found = {
        "n_samples": (meta.rows, len(frame)),
        "n_features": (meta.features, frame.shape[1] - 1),
        "n_classes": (meta.classes, frame["class"].nunique()),
        "missing_cells": (meta.missing_cells, int(frame.isna().to_numpy().sum())),
    }
    for key, (stated, counted) in found.items():
        if stated is not None and stated != counted:
            raise ValueError(f"{meta.path} states {key} = {stated}, but the rows have {counted}")


def _beside(folder: Path, rows: int) -> dict[str, pd.DataFrame]:
    """Targets or bookkeeping columns from the file that some sets have beside their rows."""
    role, file = _BESIDE.get(folder.name, ("", ""))
    path = folder / file
    if not file or not path.is_file():
        return {}
    columns = read_delimited(path, missing=[""])
    if len(columns) != rows:
        raise ValueError(f"{path} has {len(columns)} rows, but the data set has {rows}")
    # Which part a row belongs to is what the split says already.
    columns = columns.drop(columns="file", errors="ignore")
    for name in columns:
        if not pandas().api.types.is_numeric_dtype(columns[name]):
            columns[name] = as_category(columns[name])
    return {role: columns}
