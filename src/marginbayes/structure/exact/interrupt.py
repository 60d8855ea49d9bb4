"""Ctrl-C as a wish: the search ends at the next point where everything is on record."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interruptible"]


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """A function that says whether Ctrl-C was pressed; pressed twice, it interrupts at once.

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
