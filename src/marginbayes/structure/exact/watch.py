"""Compiled work under a watch: it runs on other threads, and is told to stop when its time is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import NDArray

from marginbayes.data.blas import matrix_threads

__all__ = ["Outcome", "Watch", "watching"]

Result = TypeVar("Result")
Got = TypeVar("Got", covariant=True)
Work = Callable[[NDArray[np.int64]], Result]

# Seconds between two looks at the clock, and for Ctrl-C.
GLANCE = 0.05


class Outcome(Protocol[Got]):
    """What became of a piece of work, as a future tells it."""

    def result(self) -> Got:
        """What the work returned; what it raised is raised here."""

    def exception(self) -> BaseException | None:
        """What the work raised."""


class Watch:
    """Threads for compiled work, which is given one number to look at, and ends when that is set."""

    def __init__(self, n_jobs: int | None, in_time: Callable[[], bool]) -> None:
        self.in_time = in_time
        self._n_jobs = n_jobs
        self._pool: ThreadPoolExecutor | None = None  # for what is waited for
        self._crew: ThreadPoolExecutor | None = None  # for what goes on meanwhile
        self._stop = np.zeros(1, np.int64)

    def run(self, works: Sequence[Work[Result]], apart: bool, seconds: float = math.inf) -> Sequence[Outcome[Result]]:
        """All of the work, done, or stopped after so many seconds, or when time is over.

        `apart`: on other threads. Only then can it be stopped, for Ctrl-C waits until compiled code comes back to the
        main thread; but to begin and to end costs a tenth of a millisecond.
        """
        stop = np.zeros(1, np.int64)
        if not apart:
            return [_done(work, stop) for work in works]
        until = time.perf_counter() + seconds
        if self._pool is None:
            self._pool = self._threads()
        begun = [self._pool.submit(work, stop) for work in works]
        try:
            while wait(begun, timeout=GLANCE).not_done:
                if time.perf_counter() > until or not self.in_time():
                    stop[0] = 1
        finally:  # whatever ends the waiting, nobody works on
            stop[0] = 1
            wait(begun)
        return begun

    def begin(self, work: Work[Result]) -> Future[Result]:
        """Begin work that goes on meanwhile, behind what was begun before."""
        if self._crew is None:
            self._crew = self._threads()
        return self._crew.submit(work, self._stop)

    def wait(self, begun: Future[Any]) -> None:
        """Wait until it is done; when time is over, all that goes on is stopped."""
        while wait([begun], timeout=GLANCE).not_done:
            if not self.in_time():
                self.stop()

    @property
    def stopped(self) -> bool:
        """Whether all that goes on was stopped."""
        return bool(self._stop[0])

    def stop(self) -> None:
        """Have all that goes on come to its end."""
        self._stop[0] = 1

    def end(self) -> None:
        """Let the threads go."""
        self.stop()
        for pool in (self._pool, self._crew):
            if pool is not None:
                pool.shutdown()

    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(cpu_count() if self._n_jobs is None else effective_n_jobs(self._n_jobs))


@dataclass(frozen=True)
class _Done(Outcome[Got]):
    """Work that was done at once; a future, made for threads, takes as long to set up as a small problem's."""

    value: Got | None = None
    error: Exception | None = None

    def result(self) -> Got:
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value]

    def exception(self) -> Exception | None:
        return self.error


def _done(work: Work[Result], stop: NDArray[np.int64]) -> _Done[Result]:
    try:
        return _Done(work(stop))
    except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
        return _Done(error=error)


@contextmanager
def watching(n_jobs: int | None, in_time: Callable[[], bool], matrices: bool) -> Iterator[Watch]:
    """A watch over so many threads, None for all cores; inside, the matrix library works on one thread for each.

    `matrices`: whether it is made use of at all, for to set its threads takes longer than a small problem does.
    """
    watch = Watch(n_jobs, in_time)
    with matrix_threads(1) if matrices else nullcontext():
        try:
            yield watch
        finally:
            watch.end()
