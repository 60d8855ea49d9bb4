"""`marginbayes data`: the data sets known by name."""

from __future__ import annotations

from typing import Annotated

import typer

from marginbayes.cli.console import cell, grid, note, output, working

__all__ = ["data"]

data = typer.Typer(no_args_is_help=True, help="Data sets that are known by name.\n\nExample: `marginbayes data list`")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set.", show_default=False)]
Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="Data sets.", show_default=False)]
Refresh = Annotated[bool, typer.Option("--refresh", help="Fetch again what is already there.")]


@data.command("list")
def list_sets() -> None:
    """List all data sets with their sizes.

    Example: `marginbayes data list`
    """
    from marginbayes import datasets

    table = grid("name", "rows", "features", "classes", "from", right=("rows", "features", "classes"))
    for record in datasets.available():
        sizes = [_size(n) for n in (record.rows, record.features, record.classes)]
        table.add_row(cell(record.name), *sizes, record.source)
        if record.problem:
            note(f"{record.name} cannot be used: {record.problem}")
    output().print(table)


@data.command()
def where(name: Name) -> None:
    """Say where a data set comes from.

    Example: `marginbayes data where iris`
    """
    from marginbayes.cli.tables import find_set

    output().print(find_set(name), soft_wrap=True)


@data.command()
def fetch(names: Names, refresh: Refresh = False) -> None:
    """Make sure that data sets are here, fetching those that are not.

    Example: `marginbayes data fetch adult mushroom`
    """
    from marginbayes import datasets
    from marginbayes.cli.tables import find_set

    for name in names:
        find_set(name)
    for name in names:
        with working(f"fetching {name}"):
            place = datasets.fetch(name, refresh=refresh)
        output().print(f"{name}: {place}", soft_wrap=True)


def _size(number: int | None) -> str:
    return "?" if number is None else f"{number}"
