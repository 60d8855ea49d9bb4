"""A table in a file, a model of it, and a way to run commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from marginbayes.cli.app import app

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the data home nor the terminal of whoever runs the tests is seen."""
    monkeypatch.delenv("MARGINBAYES_DATA", raising=False)
    monkeypatch.setenv("MARGINBAYES_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("MPLBACKEND", "agg")


@pytest.fixture
def run() -> Run:
    """Run a command; its exit code, stdout and stderr."""

    def invoke(*words: object, code: int = 0) -> Any:
        result = CliRunner().invoke(app, [str(word) for word in words], prog_name="marginbayes")
        assert result.exit_code == code, f"{words}\n{result.stdout}\n{result.stderr}\n{result.exception!r}"
        return result

    return invoke


@pytest.fixture
def fails(run: Run) -> Run:
    """Run a command that must end with exit code 2 and one line; that line."""

    def invoke(*words: object) -> str:
        result = run(*words, code=2)
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1, result.stderr
        assert "Traceback" not in result.stderr
        assert result.stdout == ""
        return str(result.stderr.removeprefix("Error: ").rstrip("\n"))

    return invoke


def frame(n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Age, a code with leading zeros, a 0/1 flag, a number used as a category, and the outcome they decide."""
    rng = np.random.default_rng(seed)
    outcome = rng.random(n) < 0.4
    table = pd.DataFrame(
        {
            "age": np.round(rng.normal(50 + 15 * outcome, 8, n), 1),
            "code": np.where(rng.random(n) < 0.3 + 0.4 * outcome, "007", "A1"),
            "flag": (rng.random(n) < 0.2 + 0.5 * outcome).astype(int),
            "ward": rng.integers(1, 5, n),
            "outcome": np.where(outcome, "sick", "well"),
        }
    )
    table["ward"] = np.where(outcome, np.minimum(table["ward"] + 1, 4), table["ward"])
    return table.mask(rng.random(table.shape) < [0.1, 0.1, 0.1, 0.1, 0.0])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The table as a CSV file."""
    path = tmp_path / "table.csv"
    frame().to_csv(path, index=False)
    return path


@pytest.fixture
def model(tmp_path: Path, table: Path, run: Run) -> Path:
    """A TAN of the table."""
    path = tmp_path / "model.json"
    run("fit", table, "--target", "outcome", "--categorical", "ward", "--model", path)
    return path
