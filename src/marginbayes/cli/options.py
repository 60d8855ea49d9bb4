"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "STRUCTURES",
    "Categorical",
    "ClassWeight",
    "ClassWeightOption",
    "Data",
    "Decimal",
    "Discretizer",
    "DiscretizerOption",
    "Drop",
    "Encoding",
    "Jobs",
    "Missing",
    "MissingOption",
    "Model",
    "Parameters",
    "ParametersOption",
    "Separator",
    "Settings",
    "Smoothing",
    "Target",
    "Tune",
    "Weight",
]


class Parameters(StrEnum):
    """What the tables are learned for."""

    ml = "ml"
    cl = "cl"
    mm = "mm"
    mm_hybrid = "mm-hybrid"
    mm_convex = "mm-convex"
    m3n = "m3n"
    mm_combine = "mm-combine"


class Missing(StrEnum):
    """What becomes of missing cells at fit."""

    available = "available"
    em = "em"
    level = "level"


class Discretizer(StrEnum):
    """What turns numbers into levels."""

    mdlp = "mdlp"
    none = "none"


class ClassWeight(StrEnum):
    """Weights of the classes."""

    balanced = "balanced"


LEARNING, READING = "Learning", "Reading the data"
STRUCTURES = (
    "nb, tan, aode; or a search such as tan-cr (greedy by classification rate), tan-superparent, "
    "tan-omi-cr, 2tree-omi-cr (ordered first); or what is proved to be best: exact-mdl, exact-sm"
)

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file (.csv, .tsv, .arff, each also .gz, or .parquet), or the name of a data set "
        "that 'marginbayes data list' shows.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", metavar="COL", help="The column to predict; data sets know theirs.", show_default=False
    ),
]
Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model that 'marginbayes fit' wrote (.json), or a network (.bif, .xmlbif).",
        show_default=False,
    ),
]
Smoothing = Annotated[float, typer.Option(min=0.0, help="Added to every count (Laplace).", rich_help_panel=LEARNING)]
ParametersOption = Annotated[
    Parameters,
    typer.Option(
        "--parameters",
        "-p",
        help="Tables of maximum likelihood, of greatest conditional likelihood, or of large margins (mm, m3n).",
        rich_help_panel=LEARNING,
    ),
]
MissingOption = Annotated[
    Missing,
    typer.Option(
        "--missing",
        help="Missing cells: use the cells that are there, expectation maximisation, or a level of their own.",
        rich_help_panel=LEARNING,
    ),
]
DiscretizerOption = Annotated[
    Discretizer,
    typer.Option(
        "--discretizer",
        help="Numbers: cut by Fayyad & Irani's method, or each number a level.",
        rich_help_panel=LEARNING,
    ),
]
ClassWeightOption = Annotated[
    ClassWeight | None,
    typer.Option("--class-weight", help="Let all classes weigh the same.", rich_help_panel=LEARNING),
]
Jobs = Annotated[
    int | None, typer.Option(help="Threads; -1 for all processors.", rich_help_panel=LEARNING, show_default=False)
]
Tune = Annotated[
    bool,
    typer.Option(
        "--tune",
        help="Choose the strength of the learner (cost of margins, shrinkage, wanted margin) by validation "
        "within the training rows.",
        rich_help_panel=LEARNING,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other setting of a learner, named as in Python: structure.k=1, parameters.B=10; may be given "
        "several times.",
        rich_help_panel=LEARNING,
        show_default=False,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL",
        help="A column of numbers that are categories; may be given several times.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL",
        help="A column to leave out; may be given several times.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        metavar="COL",
        help="The column with the weight of each row in training.",
        rich_help_panel=READING,
        show_default=False,
    ),
]


def _character(text: str | None) -> str | None:
    """A separator as it is meant: a backslash and a t are a tab, which is hard to type."""
    return "\t" if text == "\\t" else text


Separator = Annotated[
    str | None,
    typer.Option(
        callback=_character,
        metavar="CHAR",
        help="What separates the cells of a text file, if not what its name says; '\\t' is a tab.",
        rich_help_panel=READING,
        show_default=False,
    ),
]
Encoding = Annotated[str, typer.Option(help="Encoding of a text file.", rich_help_panel=READING)]
Decimal = Annotated[
    str, typer.Option(metavar="CHAR", help="Decimal point of a text file, if it is a comma.", rich_help_panel=READING)
]
