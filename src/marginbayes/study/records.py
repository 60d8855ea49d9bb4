"""What is finished: one line of JSON for each task, never written in part, never lost."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from marginbayes.writing import naming

__all__ = ["Record", "Records", "versions"]

PACKAGES = ("marginbayes", "numpy", "scipy", "scikit-learn", "numba", "pandas")


@dataclass(frozen=True)
class Record:
    """The outcome of one task.

    Parameters
    ----------
    key : str
        `Task.key`.
    experiment : str
        Which experiment of the study.
    dataset : str
        On which data set.
    method : str
        By which method.
    split : str
        On which split of the rows.
    status : str
        "done", "failed" or "over budget".
    seconds : float
        Wall-clock time of the whole task.
    result : mapping
        What the kind of experiment measures.
    seed : int
        Of everything random in the task.
    versions : mapping
        Of Python and the packages it was made with, and the machine.
    """

    key: str
    experiment: str
    dataset: str
    method: str
    split: str
    status: str
    seconds: float
    result: Mapping[str, Any]
    seed: int
    versions: Mapping[str, str]


class Records:
    """The records in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / "records.jsonl"

    def __iter__(self) -> Iterator[Record]:
        """All records, the last one of each task."""
        yield from self.by_key().values()

    def by_key(self) -> dict[str, Record]:
        """Records by the key of their task."""
        if not self.path.exists():
            return {}
        found, text = {}, self.path.read_text(encoding="utf-8")
        # What a crash left of a last line counts as not there; the next record takes its place.
        for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
            if not line.strip():
                continue
            try:
                record = Record(**json.loads(line))
            except (json.JSONDecodeError, TypeError):
                raise ValueError(f"{self.path}, line {number}, is no record; remove the line and run again") from None
            found[record.key] = record
        return found

    def append(self, record: Record) -> None:
        """Add a record; it is on the disk, whole, when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._mend()
        line = (json.dumps(asdict(record), sort_keys=True) + "\n").encode()
        with naming(self.path), self.path.open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _mend(self) -> None:
        """Drop the beginning of a line that a crash left at the end."""
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on, and the machine that times depend on."""
    found = {"python": platform.python_version(), "machine": f"{_processor()}, {os.cpu_count()} cores"}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    """Name of the processor as the system gives it."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
