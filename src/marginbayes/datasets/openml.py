"""Data sets from OpenML: fetched once, checked against the md5 sum OpenML states, and cached.

The sum guards against damaged and truncated downloads. It comes from the same server as the file, so it
proves nothing about who wrote them.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes.datasets.dataset import Dataset, as_category, as_labels
from marginbayes.datasets.files import read_table
from marginbayes.writing import replacing

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CACHE_VARIABLE", "Entry", "cache_home", "cached", "fetch", "page", "read"]

SERVER = "https://api.openml.org/api/v1/json"
CACHE_VARIABLE = "MARGINBAYES_CACHE"

_TIMEOUT = 60.0  # seconds without a byte
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Entry:
    """An OpenML data set known by number; the name it has there guards against a wrong number.

    `n_train` rows from the first on are the training part, where the order of the rows is known.
    """

    number: int
    title: str | None = None
    rows: int | None = None
    features: int | None = None
    classes: int | None = None
    n_train: int | None = None


def page(number: int) -> str:
    """Address of the page that describes a data set."""
    return f"https://www.openml.org/d/{number}"


def cache_home(cache: str | os.PathLike[str] | None = None) -> Path:
    """Folder for fetched files: the one given, else what MARGINBAYES_CACHE names, else the user's cache."""
    chosen = cache if cache is not None else os.environ.get(CACHE_VARIABLE)
    return Path(chosen).expanduser() if chosen else _user_cache() / "marginbayes"


def cached(number: int, cache: str | os.PathLike[str] | None = None) -> Path | None:
    """Folder in which a data set lies in the cache, or None when it has not been fetched."""
    folder = cache_home(cache) / "openml" / str(number)
    # The description is written last, so it is there only when the rows are.
    return folder if (folder / "description.json").is_file() else None


def fetch(entry: Entry, *, cache: str | os.PathLike[str] | None = None, refresh: bool = False) -> Path:
    """Folder of a data set in the cache, fetched from OpenML unless it is there already."""
    found = None if refresh else cached(entry.number, cache)
    if found is not None:
        return found
    description = _download_description(entry)
    folder = cache_home(cache) / "openml" / str(entry.number)
    folder.mkdir(parents=True, exist_ok=True)
    _download_rows(entry, description, folder / "data.arff")
    with replacing(folder / "description.json") as file:
        file.write(json.dumps(description, indent=1).encode())
    return folder


def read(entry: Entry, name: str, *, cache: str | os.PathLike[str] | None = None) -> Dataset:
    """Data set from the cache, fetched first if need be; ignored columns and further targets apart."""
    folder = fetch(entry, cache=cache)
    description = _read_description(folder)
    path = folder / "data.arff"
    _check_sum(path, description["md5_checksum"])
    frame = read_table(path)
    targets = _columns(frame, description, "default_target_attribute", path)
    if not targets:
        raise ValueError(f"OpenML names no target for data set {entry.number}; use datasets.read_table({str(path)!r})")
    ids = _columns(frame, description, "row_id_attribute", path)
    ids += [name for name in _columns(frame, description, "ignore_attribute", path) if name not in ids]
    y = frame[targets[0]]
    if y.isna().any():
        raise ValueError(f"{path}: row {int(y.isna().argmax()) + 1} has no class ({targets[0]!r})")
    for column in [c for c in frame if frame[c].dtype == object or frame[c].dtype == "str"]:
        frame[column] = as_category(frame[column])
    train, test = _split(entry, len(frame))
    return Dataset(
        name=name,
        X=frame.drop(columns=[*targets, *ids]),
        y=as_labels(y),
        description=str(description.get("description") or ""),
        source=f"OpenML data set {entry.number}, {page(entry.number)}",
        train=train,
        test=test,
        split_note="" if train is None else "by row order",
        ids=frame[ids] if ids else None,
        targets=frame[targets[1:]] if targets[1:] else None,
    )


def _split(entry: Entry, rows: int) -> tuple[Any, Any]:
    if entry.n_train is None:
        return None, None
    train, test = np.split(np.arange(rows), [entry.n_train])
    return train, test


def _columns(frame: pd.DataFrame, description: dict[str, Any], key: str, path: Path) -> list[str]:
    """Columns that the description names under a key: a name, several with commas between them, or a list."""
    stated = description.get(key) or []
    names = stated if isinstance(stated, list) else [stated] if stated in frame else str(stated).split(",")
    absent = [name for name in names if name not in frame]
    if absent:
        raise ValueError(f"OpenML's {key} is {absent[0]!r}, but {path} has no such column")
    return names


# -- descriptions


def _download_description(entry: Entry) -> dict[str, Any]:
    try:
        with _open(f"{SERVER}/data/{entry.number}", entry.number) as answer:
            text = _read_all(answer, entry.number)
        description = json.loads(text)["data_set_description"]
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, _Refused):
            raise
        raise ValueError(f"OpenML's description of data set {entry.number} cannot be read: {error}") from error
    _check_description(entry, description)
    return dict(description)


def _check_description(entry: Entry, description: dict[str, Any]) -> None:
    name, form = description.get("name"), str(description.get("format"))
    if entry.title is not None and name != entry.title:
        raise ValueError(f"OpenML data set {entry.number} should be {entry.title!r}, but it is called {name!r}")
    if form.lower() != "arff":
        raise ValueError(f"OpenML data set {entry.number} ({name!r}) has the format {form!r}; only dense ARFF is read")
    for key in ("md5_checksum", "url"):
        if not description.get(key):
            raise ValueError(f"OpenML's description of data set {entry.number} lacks {key!r}, so it cannot be verified")


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / "description.json"
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: delete the folder {folder} and fetch the data set again") from error


# -- files


def _download_rows(entry: Entry, description: dict[str, Any], path: Path) -> None:
    """The rows at `path`, which appears only when its md5 sum is the stated one."""
    stated, total = str(description["md5_checksum"]), hashlib.md5(usedforsecurity=False)
    with _open(str(description["url"]), entry.number) as answer, replacing(path) as file:
        while block := _read_block(answer, entry.number):
            total.update(block)
            file.write(block)
        if total.hexdigest() != stated:
            sums = f"md5 {total.hexdigest()} instead of {stated}"
            raise ValueError(f"OpenML data set {entry.number} arrived damaged ({sums}): fetch it again")


def _check_sum(path: Path, stated: str) -> None:
    if not path.is_file():
        raise ValueError(f"{path} is missing: delete the folder {path.parent} and fetch the data set again")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != stated:
        raise ValueError(
            f"{path} is damaged (md5 {found} instead of {stated}): delete the folder {path.parent} "
            "and fetch the data set again"
        )


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


# -- network


class _Refused(ValueError):
    """OpenML answered, and the answer is no."""


def _open(url: str, number: int) -> http.client.HTTPResponse:
    if not url.startswith(("https://", "http://")):
        raise _Refused(f"OpenML data set {number} is said to lie at {url!r}, which is not a web address")
    request = urllib.request.Request(url, headers={"User-Agent": "marginbayes", "Accept-Encoding": "identity"})
    try:
        answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (404, 412):  # 412 is how OpenML says that a number is unknown
            raise _Refused(f"OpenML has no data set {number}") from error
        raise _unreachable(number, error) from error
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(number, error) from error
    return answer


def _read_block(answer: http.client.HTTPResponse, number: int) -> bytes:
    try:
        return answer.read(_BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(number, error) from error


def _read_all(answer: http.client.HTTPResponse, number: int) -> bytes:
    return b"".join(iter(lambda: _read_block(answer, number), b""))


def _unreachable(number: int, error: Exception) -> ConnectionError:
    reason = getattr(error, "reason", None) or error
    return ConnectionError(
        f"data set {number} could not be fetched from OpenML ({reason}); check the network, "
        "or put the set into a data home and name it in MARGINBAYES_DATA"
    )
