"""How many threads the matrix library uses while something wants it to be so many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

__all__ = ["matrix_threads"]

_taken = Lock()


@contextmanager
def matrix_threads(threads: int) -> Iterator[None]:
    """While this is open, matrix products use so many threads, or as many as someone else has set meanwhile.

    The number belongs to the process: only one at a time sets it and puts it back. Were each to put back what it found,
    those who came in between would leave the process with the number of another.
    """
    if not _taken.acquire(blocking=False):
        yield
        return
    try:
        with _matrix_library().limit(limits=threads, user_api="blas"):
            yield
    finally:
        _taken.release()


@cache
def _matrix_library() -> ThreadpoolController:
    return ThreadpoolController()
