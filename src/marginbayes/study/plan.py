"""What is left to do, and how long it may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean

from marginbayes.study.protocol import known_size
from marginbayes.study.records import Record
from marginbayes.study.spec import Study, Task

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan:
    """Tasks that are left, with the seconds each may take, and the number of those that are done."""

    left: tuple[tuple[Task, float], ...]
    done: int

    @property
    def seconds(self) -> float:
        """Sum over the tasks that are left, on one core."""
        return sum(seconds for _, seconds in self.left)


def plan(study: Study, records: Mapping[str, Record], longest: float | None = None, retry: bool = False) -> Plan:
    """Plan of a study: cheap tasks first; those above `longest` seconds are left out.

    Tasks that failed or were given up count as done, unless they are to be tried again.

    A task is estimated by what its method took on other splits of the same set, else by the method's own expectation,
    corrected by how far that was off on other sets.
    """
    tasks = study.tasks()
    if retry:
        records = {key: record for key, record in records.items() if record.status == "done"}
    seen, bias = _seen(records.values()), _bias(tasks, records)
    left = [(task, _estimate(task, seen, bias)) for task in tasks if task.key not in records]
    kept = [(task, seconds) for task, seconds in left if longest is None or seconds <= longest]
    return Plan(tuple(sorted(kept, key=lambda item: item[1])), sum(task.key in records for task in tasks))


def _seen(records: Iterable[Record]) -> dict[tuple[str, str, str], float]:
    times: dict[tuple[str, str, str], list[float]] = {}
    for record in records:
        times.setdefault((record.experiment, record.dataset, record.method), []).append(record.seconds)
    return {key: mean(values) for key, values in times.items()}


def _bias(tasks: Iterable[Task], records: Mapping[str, Record]) -> dict[str, float]:
    """For each method that has run: the seconds it took over those that were expected."""
    took: dict[str, float] = {}
    expected: dict[str, float] = {}
    for task in tasks:
        if task.key in records:
            name = task.method.name
            took[name] = took.get(name, 0.0) + records[task.key].seconds
            expected[name] = expected.get(name, 0.0) + _expected(task)
    return {name: took[name] / expected[name] for name in took if expected[name] > 0.0}


def _estimate(task: Task, seen: Mapping[tuple[str, str, str], float], bias: Mapping[str, float]) -> float:
    known = seen.get((task.experiment, task.dataset, task.method.name))
    return _expected(task) * bias.get(task.method.name, 1.0) if known is None else known


def _expected(task: Task) -> float:
    fixed, per_million = task.method.expected
    return fixed + per_million * known_size(task.dataset) / 1e6
