"""Compiled work under a watch: it is told to stop, and what it raises reaches whoever asks."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from marginbayes.structure.exact.watch import watching


def until_stopped(stop: np.ndarray) -> int:
    """What compiled code does: it looks at its number now and then."""
    turns = 0
    while not stop[0]:
        time.sleep(0.001)
        turns += 1
    return turns


def test_work_on_other_threads_ends_when_time_is_over_or_its_own_seconds_are() -> None:
    looks = iter([True, True, False])
    with watching(2, lambda: next(looks, False), True) as watch:
        assert all(work.result() > 0 for work in watch.run([until_stopped, until_stopped], apart=True))
    with watching(1, lambda: True, False) as watch:
        [work] = watch.run([until_stopped], apart=True, seconds=0.01)
        assert work.result() > 0


def test_work_is_done_here_or_apart_and_in_order() -> None:
    here = threading.get_ident()
    with watching(1, lambda: True, False) as watch:
        for apart in (False, True):
            done = watch.run([lambda stop, k=k: (k, threading.get_ident(), int(stop[0])) for k in range(3)], apart)
            assert [work.result()[0] for work in done] == [0, 1, 2]
            assert all((work.result()[1] != here) == apart for work in done)
            assert not any(work.result()[2] for work in done)


@pytest.mark.parametrize("apart", [False, True])
def test_an_error_is_raised_where_its_result_is_asked_for_and_nowhere_else(apart: bool) -> None:
    def fails(_: np.ndarray) -> int:
        raise ValueError("as if")

    with watching(1, lambda: True, False) as watch:
        bad, good = watch.run([fails, lambda stop: len(stop)], apart)
        assert good.result() == 1
        with pytest.raises(ValueError, match="as if"):
            bad.result()


def test_work_goes_on_meanwhile_until_its_time_is_over() -> None:
    with watching(1, lambda: True, False) as watch:
        first, second = watch.begin(lambda _: 1), watch.begin(until_stopped)
        watch.wait(first)
        assert (first.result(), second.done(), watch.stopped) == (1, False, False)
        # What is waited for has threads of its own.
        [work] = watch.run([lambda _: 2], apart=True)
        assert (work.result(), second.done()) == (2, False)
    assert second.result() > 0
    looks = iter([True, False])
    with watching(2, lambda: next(looks, False), False) as watch:
        begun = [watch.begin(until_stopped) for _ in range(2)]
        watch.wait(begun[0])
        assert watch.stopped
        assert all(work.result() > 0 for work in begun)


def test_what_ends_the_waiting_stops_the_work_first() -> None:
    ended: list[int] = []

    def interrupted() -> bool:
        raise KeyboardInterrupt

    with watching(1, interrupted, False) as watch, pytest.raises(KeyboardInterrupt):
        watch.run([lambda stop: ended.append(until_stopped(stop))], apart=True)
    assert len(ended) == 1
