"""Running what a plan left, in parallel, one record for each task."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs

from marginbayes.solvers.interrupt import all_or_nothing
from marginbayes.study.kinds import measure
from marginbayes.study.plan import Plan, plan
from marginbayes.study.records import Record, Records, versions
from marginbayes.study.spec import Study, Task

__all__ = ["OnRecord", "perform", "run"]

OnRecord = Callable[[Record, int, int, float], None]


# Seconds after which a task is reminded that its budget is spent: a library may have swallowed the first time.
AGAIN = 0.5


class OverBudget(Exception):
    """A task that ran longer than it may."""


def run(
    study: Study,
    records: Records,
    *,
    n_jobs: int | None = None,
    longest: float | None = None,
    budget: float | None = None,
    retry: bool = False,
    progress: OnRecord | None = None,
) -> Plan:
    """Plan of what is still left after running a study.

    Every finished task is on the disk before the next one is reported, so that whatever stops the run, nothing that was
    finished is lost or repeated.

    Parameters
    ----------
    study : Study
        What to run.
    records : Records
        Where finished tasks are found and added.
    n_jobs : int or None
        Processes, as joblib counts them.
    longest : float or None
        Tasks that are expected to take more seconds are left for another time.
    budget : float or None
        Seconds after which a task is given up, which is recorded too.
    retry : bool
        Run tasks that failed or were given up once more.
    progress : callable, optional
        Called with each record, the number of finished tasks, of all tasks, and the seconds that the rest may take.
    """
    if budget is not None and not (
        hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    ):
        raise ValueError(f"budget={budget!r} needs the alarm of a Unix system and the main thread; leave it out here")
    work = plan(study, records.by_key(), longest, retry)
    jobs = (delayed(perform)(task, budget) for task, _ in work.left)
    clock = _Clock(work, effective_n_jobs(n_jobs))
    for record in Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")(jobs):
        records.append(record)
        clock.finish(record)
        if progress is not None:
            progress(record, clock.finished, len(work.left), clock.remaining())
    return plan(study, records.by_key())


def perform(task: Task, budget: float | None = None) -> Record:
    """Record of one task; an error is part of the record and does not stop the others."""
    # Before the clock runs: an import of numba that is broken off leaves half a package.
    import marginbayes.kernels.families  # noqa: F401

    start = time.perf_counter()
    status, result = "done", {}
    try:
        with all_or_nothing(), _limited(budget), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = measure(task)
    except OverBudget:
        status, result = "over budget", {"budget": budget}
    except Exception as error:  # noqa: BLE001  (whatever a method raises, the other tasks go on)
        status, result = "failed", {"error": f"{type(error).__name__}: {error}"}
    seconds = time.perf_counter() - start
    return Record(
        task.key,
        task.experiment,
        task.dataset,
        task.method.name,
        task.split,
        status,
        seconds,
        result,
        task.seed,
        versions(),
    )


@contextmanager
def _limited(seconds: float | None) -> Iterator[None]:
    """Raise `OverBudget` in the body after so many seconds."""
    if seconds is None:
        yield
        return

    def give_up(*_: Any) -> None:
        raise OverBudget

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class _Clock:
    """How long the rest may take: its estimate, corrected by how estimates and tasks compared so far."""

    def __init__(self, work: Plan, workers: int) -> None:
        self.expected = {task.key: seconds for task, seconds in work.left}
        self.workers = workers
        self.finished, self.foreseen, self.needed = 0, 0.0, 0.0

    def finish(self, record: Record) -> None:
        self.finished += 1
        self.foreseen += self.expected.pop(record.key)
        self.needed += record.seconds

    def remaining(self) -> float:
        pace = self.needed / self.foreseen if self.foreseen > 0 else 1.0
        return sum(self.expected.values()) * pace / self.workers
