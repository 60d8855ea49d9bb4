"""Files that commands write: what goes wrong names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["writing"]


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Have an error of the system, such as a full disk, name the file that is written inside."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or not error.strerror:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None
