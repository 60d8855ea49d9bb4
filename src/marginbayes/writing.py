"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["naming", "replacing", "write_text"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """File that takes the place of `path` in one step when the block ends well, and vanishes when it does not.

    A link stays a link, and a file that was private stays private.
    """
    given, target = Path(path), Path(os.path.realpath(path))
    if given.exists() and not given.is_file():  # a pipe, a terminal, or (refused by the system) a folder
        with naming(given), given.open("wb") as file:
            yield file
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}")
    part = target.with_name(f".{secrets.token_hex(12)}.part")  # without the name, which may be as long as names can be
    try:
        with naming(given, hidden=part), part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, part)
        with naming(given, hidden=part):
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def naming(path: Path, hidden: Path | None = None) -> Iterator[None]:
    """Have errors of the system, such as a full disk, name this file: not none, and not one that nobody knows of."""
    try:
        yield
    except OSError as error:
        if not error.strerror or error.filename not in (None, str(hidden)):
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from None


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file whole or not at all."""
    with replacing(path) as file:
        file.write(text.encode())
