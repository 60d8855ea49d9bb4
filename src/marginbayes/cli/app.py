"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from marginbayes import __version__
from marginbayes.cli.convert import convert
from marginbayes.cli.data import data
from marginbayes.cli.errors import OneSentenceGroup
from marginbayes.cli.evaluate import evaluate
from marginbayes.cli.explain import explain
from marginbayes.cli.fit import fit
from marginbayes.cli.predict import predict
from marginbayes.cli.show import show
from marginbayes.cli.study import report, study
from marginbayes.cli.verify import verify

__all__ = ["app"]

app = typer.Typer(
    name="marginbayes",
    cls=OneSentenceGroup,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"marginbayes {__version__}")
        raise typer.Exit


@app.callback()
def marginbayes(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Bayesian network classifiers: learn, predict, evaluate, look inside.

    Example: `marginbayes evaluate iris --structure nb --structure tan`
    """
    # Both are read by others: the version by its callback, --debug where errors are caught.
    del version, debug


for command in (fit, predict, evaluate, show, explain, convert, report, verify):
    app.command()(command)
app.add_typer(data, name="data")
app.add_typer(study, name="study")
