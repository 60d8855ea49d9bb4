"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

__all__ = ["write_text"]


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file whole or not at all: first beside its place, then renamed into it."""
    given, target = Path(path), Path(os.path.realpath(path))
    if given.exists() and not given.is_file():  # a pipe, a terminal, or (refused by the system) a folder
        given.write_text(text, "utf-8", newline="\n")
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent}")
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)  # what was private stays so
        os.replace(temporary, target)
    except OSError as error:
        if error.filename != str(temporary):
            raise
        raise type(error)(error.errno, error.strerror, str(given)) from None  # not the name of a hidden file
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
