"""Data homes for the tests: none unless a test makes one, and never the user's cache."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REAL_HOME = os.environ.get("MARGINBAYES_DATA")


@pytest.fixture(autouse=True)
def _own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MARGINBAYES_DATA", raising=False)
    monkeypatch.setenv("MARGINBAYES_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def real_home() -> Path:
    """The data home of whoever runs the tests."""
    if not REAL_HOME:
        pytest.skip("MARGINBAYES_DATA names no data home")
    return Path(REAL_HOME)


@pytest.fixture
def real_set(real_home: Path) -> Callable[[str], Path]:
    """Folder of a set in that data home."""

    def find(name: str) -> Path:
        if not (real_home / name / "meta.json").is_file():
            pytest.skip(f"the data home has no set {name}")
        return real_home / name

    return find


@pytest.fixture
def make_set(tmp_path: Path) -> Callable[..., Path]:
    """Writes a data set into a new data home and returns the home."""

    def make(name: str, files: dict[str, str | bytes], meta: dict[str, Any] | str) -> Path:
        home = tmp_path / "home"
        folder = home / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (folder / file).write_bytes(content if isinstance(content, bytes) else content.encode())
        text = meta if isinstance(meta, str) else json.dumps(meta)
        (folder / "meta.json").write_text(text, encoding="utf-8")
        return home

    return make
