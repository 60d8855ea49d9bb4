"""The command line: `marginbayes fit | predict | evaluate | show | explain | convert | data | verify | study | report`.

Every module here imports what is heavy inside its functions, so that `marginbayes --help` answers at once.
"""

import sys

__all__ = ["main"]

NEEDED = ("typer", "rich", "click")


def main() -> None:
    """Run the command line and exit: 0 when all is well, 2 for bad input, 130 when interrupted."""
    try:
        _run()
    except KeyboardInterrupt:  # before or after the command itself, which says so in its own way
        sys.stderr.write("Error: interrupted\n")
        sys.exit(130)


def _run() -> None:
    try:
        from marginbayes.cli.app import app
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in NEEDED:
            raise
        sys.stderr.write(f'Error: the command line needs {name}: pip install "marginbayes[cli]"\n')
        sys.exit(2)
    app()
