"""Fair timing on a machine that others use too: contestants take turns, and the best run of each counts."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Contestant", "Timing", "race"]


def nothing() -> None:
    """Preparation of a contestant that needs none."""
    return


@dataclass(frozen=True)
class Contestant:
    """One way to do a job.

    Parameters
    ----------
    name : str
    run : callable
        What is timed.
    rows : int
        Number of rows that one run works on: a slow contestant may be given fewer.
    prepare : callable
        Called before each run, outside of the time.
    wanted : float or None
        How many times as fast marginbayes should be, as the project has set itself; None where it has not.
    """

    name: str
    run: Callable[[], object]
    rows: int
    prepare: Callable[[], object] = nothing
    wanted: float | None = None


@dataclass(frozen=True)
class Timing:
    """Seconds on the clock and of the processor (all threads of the process), each the best of all runs."""

    seconds: float
    cpu: float
    runs: int


def race(contestants: Sequence[Contestant], rounds: int, seconds: float) -> list[Timing]:
    """Timing of each contestant: `rounds` runs in turn, fewer for one that has used up its `seconds`."""
    times: list[list[tuple[float, float]]] = [[] for _ in contestants]
    for _ in range(rounds):
        for contestant, taken in zip(contestants, times, strict=True):
            if not taken or sum(clock for clock, _ in taken) < seconds:
                taken.append(_once(contestant))
    return [Timing(min(c for c, _ in taken), min(p for _, p in taken), len(taken)) for taken in times]


def _once(contestant: Contestant) -> tuple[float, float]:
    contestant.prepare()
    gc.collect()
    gc.disable()
    try:
        clock, processor = time.perf_counter(), time.process_time()
        contestant.run()
        return time.perf_counter() - clock, time.process_time() - processor
    finally:
        gc.enable()
