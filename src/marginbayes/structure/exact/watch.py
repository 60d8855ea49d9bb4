"""Compiled work under a watch: it runs on other threads, and is told to stop when its time is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import NDArray

from marginbayes.data.blas import matrix_threads

__all__ = ["Watch", "watching"]

Result = TypeVar("Result")
Work = Callable[[NDArray[np.int64]], Result]

# Seconds between two looks at the clock, and for Ctrl-C.
GLANCE = 0.05


class Watch:
    """Threads for compiled work, which is given one number to look at, and ends when that is set."""

    def __init__(self, n_jobs: int | None, in_time: Callable[[], bool]) -> None:
        self.in_time = in_time
        self._n_jobs = n_jobs
        self._pool: ThreadPoolExecutor | None = None

    def run(self, works: Sequence[Work[Result]], apart: bool, seconds: float = math.inf) -> list[Future[Result]]:
        """All of the work, done, or stopped after so many seconds, or when time is over.

        `apart`: on other threads. Only then can it be stopped, for Ctrl-C waits until compiled code comes back to the
        main thread; but to begin and to end costs a tenth of a millisecond.
        """
        stop = np.zeros(1, np.int64)
        if not apart:
            return [_done(work, stop) for work in works]
        until = time.perf_counter() + seconds
        if self._pool is None:
            self._pool = ThreadPoolExecutor(cpu_count() if self._n_jobs is None else effective_n_jobs(self._n_jobs))
        begun = [self._pool.submit(work, stop) for work in works]
        try:
            while wait(begun, timeout=GLANCE).not_done:
                if time.perf_counter() > until or not self.in_time():
                    stop[0] = 1
        finally:  # whatever ends the waiting, nobody works on
            stop[0] = 1
            wait(begun)
        return begun

    def end(self) -> None:
        """Let the threads go."""
        if self._pool is not None:
            self._pool.shutdown()


def _done(work: Work[Result], stop: NDArray[np.int64]) -> Future[Result]:
    future: Future[Result] = Future()
    try:
        future.set_result(work(stop))
    except Exception as error:  # noqa: BLE001 - whoever asks for the result gets it
        future.set_exception(error)
    return future


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
