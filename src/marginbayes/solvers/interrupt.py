"""Ctrl-C while compiled code runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["is_interrupt", "kernel_interrupts"]


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
