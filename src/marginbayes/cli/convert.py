"""`marginbayes convert`: a network from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marginbayes.cli.console import counted, output

Source = Annotated[Path, typer.Argument(metavar="IN", help="A .json, .bif, .xmlbif or .xml file.", show_default=False)]
Destination = Annotated[
    Path, typer.Argument(metavar="OUT", help="A file with one of these endings.", show_default=False)
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="NAME",
        help="The class of a .bif or .xmlbif file that others wrote; by default its first variable.",
        show_default=False,
    ),
]


def convert(source: Source, destination: Destination, target: Target = None) -> None:
    """Turn a network file into another format, by the endings of the names.

    Example: `marginbayes convert model.json model.bif`
    """
    from marginbayes.cli.models import check_writable, read_network, write_network

    check_writable(destination, [".json", ".bif", ".xmlbif", ".xml"])
    network = read_network(source, target)
    write_network(network, destination)
    output().print(
        f"{destination}: {counted(len(network.dag.names), 'variable')}, {counted(len(network.dag.edges), 'edge')}, "
        f"class {network.schema.target.name!r}",
        soft_wrap=True,
    )
