"""Ctrl-C: as a wish, while compiled code runs, and where a result that it cut short is of no use."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["all_or_nothing", "interruptible", "is_interrupt", "kernel_interrupts", "noticed_interrupt"]


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt is behind an error.

    One that arrives while a function compiled by numba hands over its results comes out as a SystemError ("returned a
    result with an exception set"), or as a chain of them, whose first cause is the KeyboardInterrupt.
    """
    while isinstance(error, SystemError):
        error = error.__cause__
    return isinstance(error, KeyboardInterrupt)


@contextmanager
def kernel_interrupts() -> Iterator[None]:
    """Inside, an interrupt is a KeyboardInterrupt wherever it strikes.

    Examples
    --------
    >>> try:
    ...     with kernel_interrupts():
    ...         raise SystemError("a result with an exception set") from KeyboardInterrupt()
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    interrupted
    """
    try:
        yield
    except SystemError as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from None
        raise


@contextmanager
def noticed_interrupt() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets even if a learner keeps it to itself and ends early."""
    pressed = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield pressed
        return

    def note(*args: Any) -> Any:
        pressed.set()
        return before(*args)

    signal.signal(signal.SIGINT, note)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Inside, Ctrl-C ends in a KeyboardInterrupt also where learners would answer it with their best so far.

    For loops over many fits, whose results are compared: one that was cut short would pass for a whole one.
    """
    with noticed_interrupt() as pressed:
        try:
            yield
        except Exception:
            if not pressed.is_set():
                raise
    if pressed.is_set():
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed, so that work ends where all is on record; twice, at once.

    Signals reach the main thread alone: elsewhere nothing changes.
    """
    pressed: list[bool] = []

    def note(number: int, frame: FrameType | None) -> None:
        if pressed:
            signal.default_int_handler(number, frame)
        pressed.append(True)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # somebody else's handler stays
        yield lambda: False
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
