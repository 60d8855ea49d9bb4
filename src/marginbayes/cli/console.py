"""Where text goes: results to stdout, notes and progress to stderr, progress only if somebody watches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

__all__ = [
    "CAUSES",
    "WIDEST",
    "cell",
    "counted",
    "errors",
    "grid",
    "needed",
    "note",
    "notes",
    "output",
    "printable",
    "progress",
    "say",
    "some",
    "working",
]


# What the library raises for bad input; anything else is a mistake of ours and deserves its traceback.
CAUSES = (ValueError, TypeError, KeyError, IndexError, OSError, ImportError, MemoryError)

# Columns that no table needs; rich cuts off what is wider than its console.
WIDEST = 100_000

_notes: ContextVar[list[str]] = ContextVar("notes")


def output(width: int | None = None) -> Console:
    """Console on stdout that takes text as it is: a column called "[red]" is no colour."""
    return Console(markup=False, highlight=False, emoji=False, width=width)


def errors() -> Console:
    """The same on stderr."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence: broken between words on a terminal, one line in a file."""
    console.print(text, style=style, soft_wrap=not console.is_terminal)


def note(text: str) -> None:
    """Keep one line for stderr that starts with "Note:" until the command has ended well."""
    _notes.get().append(text)


@contextmanager
def notes() -> Iterator[None]:
    """Write the notes made inside to stderr at the end; after bad input, only the error is of interest.

    Of notes that differ in their numbers alone, as those of several folds do, the first is enough.
    """
    token = _notes.set([])
    try:
        yield
    except CAUSES:
        _notes.get().clear()
        raise
    finally:
        first: dict[str, str] = {}
        for text in _notes.get():
            first.setdefault(re.sub(r"\d+", "", text), text)
        for text in first.values():
            say(errors(), f"Note: {printable(text)}", "yellow")
        _notes.reset(token)


def printable(value: Any) -> str:
    """Text of a value in which nothing can move the cursor or change the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))


def some(texts: list[str], most: int = 8) -> str:
    """Texts in a sentence, of many the first."""
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def counted(n: int, what: str) -> str:
    """A number and what it counts: "1 edge", "2 edges", "3 classes"."""
    return f"{n} {what}" if n == 1 else f"{n} {what}{'es' if what.endswith('s') else 's'}"


def cell(value: Any, style: str = "") -> Text:
    """A value as a cell of a table."""
    return Text(printable(value), style=style)


def grid(*columns: str, right: tuple[str, ...] = (), title: str | None = None) -> Table:
    """An empty table with these columns, those in `right` aligned to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=_box())
    for name in columns:
        side = "right" if name in right else "left"
        table.add_column(printable(name), justify=side, overflow="fold")  # type: ignore[arg-type]
    return table


def needed(table: Table) -> int:
    """Columns that a table takes if no cell is broken or cut."""
    console = output()
    return console.measure(table, options=console.options.update(max_width=WIDEST)).maximum


@contextmanager
def working(text: str) -> Iterator[Callable[[str], None]]:
    """A spinner on stderr while something runs, if that is a terminal; call it with what to say beside the text."""
    console = errors()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(text) as status:
        yield lambda detail: status.update(f"{text}, {escape(detail)}")


@contextmanager
def progress(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar on stderr if that is a terminal, gone at the end; call it after each step with a label."""
    console = errors()
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda label: bar.update(task, advance=1, description=label)


def _box() -> Any:
    from rich import box

    return box.SIMPLE_HEAD
