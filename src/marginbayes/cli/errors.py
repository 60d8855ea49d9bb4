"""Bad input is one sentence on stderr and exit code 2, whoever notices it."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperGroup

from marginbayes.cli.console import CAUSES, errors, note, notes, printable, say

__all__ = ["OneSentenceGroup", "sentence"]

BAD_INPUT, INTERRUPTED = 2, 130
NO_ROOM = (errno.ENOSPC, errno.EFBIG)
# typer brings its own copy of click since 0.26, so the class is found by name.
USAGE_ERROR: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class OneSentenceGroup(TyperGroup):
    """Commands whose errors are one sentence on stderr instead of a box or a traceback."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and leave with its exit code."""
        del standalone_mode  # typer would then print errors its own way
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a letter gets a question mark
                stream.reconfigure(errors="replace")
        try:
            code = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except USAGE_ERROR as error:
            code = BAD_INPUT
            if str(error):  # no words at all: the help was asked for by saying nothing, and is printed already
                complain(_usage_sentence(error))
        except typer.Abort:
            complain("interrupted")
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The words of a command, parsed; typer would pass over an interrupt here in silence."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except KeyboardInterrupt:
            complain("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:  # of the help, or the version, which are printed here
            if error.errno == errno.EPIPE:
                raise
            complain(sentence(error))
            _forget_output(error)
            raise typer.Exit(BAD_INPUT) from None

    def invoke(self, ctx: Any) -> Any:
        """Run a command; bad input ends it with a sentence, or with a traceback under --debug."""
        try:
            with notes(), warnings.catch_warnings():
                warnings.showwarning = _note_warning
                # Of the whole table these are noted once, by `tables.note_columns`.
                warnings.filterwarnings("ignore", "column .* is taken for a category", UserWarning)
                warnings.filterwarnings("ignore", r"column .* has \d+ different values in", UserWarning)
                return super().invoke(ctx)
        except (KeyboardInterrupt, SystemError) as error:
            from marginbayes.solvers.interrupt import is_interrupt

            if not is_interrupt(error):
                raise
            complain("interrupted; no file is left half-written")
            raise typer.Exit(INTERRUPTED) from None
        except CAUSES as error:
            if ctx.params.get("debug") or getattr(error, "errno", None) == errno.EPIPE:
                raise
            complain(sentence(error))
            _forget_output(error)
            raise typer.Exit(BAD_INPUT) from None


def complain(text: str) -> None:
    """Write one line to stderr that starts with "Error:"."""
    say(errors(), f"Error: {text}", "red")


def _forget_output(error: BaseException) -> None:
    """After a full disk let nothing more be written to stdout: Python would try at its end, and complain once more."""
    if isinstance(error, OSError) and error.errno in NO_ROOM and not error.filename:
        with suppress(OSError, ValueError):  # where it is no file, as in tests
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


def sentence(error: BaseException) -> str:
    """What an exception says, on one line, without the marks of its type."""
    if isinstance(error, OSError) and error.strerror:
        where = error.filename or ("what is printed" if error.errno in NO_ROOM else "")
        text = f"{error.strerror}: {where}" if where else error.strerror
        if error.errno == errno.ENOENT and where:
            text = f"there is no file {where}"
    elif isinstance(error, ModuleNotFoundError) and f"{error.name}.".startswith("marginbayes."):
        text = f"the installation is damaged: {error.name} is missing; pip install --force-reinstall marginbayes"
    elif isinstance(error, ModuleNotFoundError) and error.name:
        text = f'this needs {error.name}: pip install "marginbayes[cli]"'
    elif isinstance(error, MemoryError):
        text = f"there is not enough memory ({error})" if str(error) else "there is not enough memory"
    else:
        text = str(error.args[0]) if error.args else str(error)  # str of a KeyError has quotes around it
    return printable(" ".join(text.split())) or type(error).__name__


def _usage_sentence(error: Any) -> str:
    text = re.sub(r"\s+", " ", error.format_message()).strip().rstrip(".")
    path = getattr(getattr(error, "ctx", None), "command_path", "marginbayes")
    return printable(f"{text[:1].lower()}{text[1:]}; see {path} --help")


def _note_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    note(" ".join(str(message).split()))
