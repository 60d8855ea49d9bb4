"""`marginbayes explain`: what each feature of a row says about its class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbayes.cli import options
from marginbayes.cli.console import cell, grid, output, printable, say

if TYPE_CHECKING:
    from rich.text import Text

    from marginbayes.cli.tables import Table
    from marginbayes.plotting.evidence import EvidenceDisplay

# Columns between and beside the cells of the table, zero itself and what rounding may add to the bars; least for them.
FRAME, LEAST_BAR = 13, 8

Row = Annotated[int, typer.Option("--row", "-r", min=1, help="Which row; the first row of data is 1.")]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="CLASS",
        help="The class to explain; by default the predicted one, with two classes the second.",
        show_default=False,
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        metavar="CLASS",
        help="The class to compare it with; by default the most probable other one.",
        show_default=False,
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw it there (.png, .svg or .pdf).", show_default=False),
]
MaxFeatures = Annotated[
    int, typer.Option("--max-features", min=1, help="List the heaviest so many, and sum the others.")
]
IgnoreExtra = Annotated[bool, typer.Option("--ignore-extra", help="Ignore columns that the model does not know.")]


def explain(
    model: options.Model,
    data: options.Data,
    row: Row = 1,
    target: Target = None,
    against: Against = None,
    max_features: MaxFeatures = 15,
    plot: Plot = None,
    ignore_extra: IgnoreExtra = False,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
) -> None:
    """Show how much each feature of a row speaks for its class.

    The prior and the weights of evidence sum to the log-odds of the class: nothing is left unexplained.

    Example: `marginbayes explain model.json patients.csv --row 3 --plot row3.png`
    """
    import numpy as np

    from marginbayes.cli.features import features_for
    from marginbayes.cli.models import check_writable
    from marginbayes.cli.predict import read_for
    from marginbayes.cli.tables import Reading
    from marginbayes.data.frame import read_frame
    from marginbayes.estimators.explain import explain as account
    from marginbayes.plotting.evidence import EvidenceDisplay

    if plot is not None:
        check_writable(plot, [".png", ".svg", ".pdf"])
    classifier = _load(model)
    sides = _sides(classifier.classes_.tolist(), target, against)
    table = read_for(classifier, data, Reading(separator, encoding, decimal))
    if row > len(table.frame):
        raise ValueError(f"{table.name} has {len(table.frame)} rows, so there is no row {row}")
    X = features_for(classifier.schema_, table, ignore_extra=ignore_extra)
    # All rows are encoded, as predict does: a column of another type shows in the whole column only.
    rows = classifier.schema_.encode(read_frame(X)).take(np.array([row - 1]))
    with np.errstate(invalid="ignore"):  # without smoothing, after an infinite weight others are undefined
        explanation = account(classifier.network_, rows, classifier.classes_, **sides)
        display = EvidenceDisplay.from_explanation(explanation, 0, max_features)
    _print(display, f"{table.name}, row {row}")
    say(output(), _conclusion(display, _truth(table, classifier.schema_.target.name, row)))
    if plot is not None:
        from marginbayes.cli.pictures import save_picture

        save_picture(display.plot, plot)
        output().print(f"drawn in {plot}", soft_wrap=True)


def _load(model: Path) -> Any:
    """The classifier of a file, if its rows can be explained."""
    from marginbayes.cli.models import load_model

    classifier: Any = load_model(model)
    if hasattr(classifier, "sequence_ids"):
        raise ValueError(f"{model} labels sequences, whose rows cannot be explained one by one")
    if not hasattr(classifier, "explain"):
        raise ValueError(
            f"{model} is an AODE model, an average of networks, whose log-odds are not a sum over features"
        )
    return classifier


def _sides(classes: list[Any], target: str | None, against: str | None) -> dict[str, Any]:
    """The two classes that are named; None for one that is not."""
    from marginbayes.cli.labels import find_label

    sides = {
        role: None if text is None else find_label(text, classes, f"--{role}")
        for role, text in (("target", target), ("against", against))
    }
    if target is not None and sides["target"] == sides["against"]:
        raise ValueError(f"--target and --against are the same class {target!r}")
    return sides


def _print(display: EvidenceDisplay, where: str) -> None:
    """The same bars as in the picture, as text."""
    from marginbayes.plotting.evidence import AGAINST, FOR

    console = output()
    title = f"{where}: log-odds of {printable(display.target)} against {printable(display.against)}"
    say(console, title, "bold")
    table = grid("", "nats", "", right=("nats",))
    table.show_header = False
    for column in table.columns[1:]:  # what is too long is broken in the first column
        column.no_wrap = True
    bars = display.bars()
    room = _room(console.width, [label for label, _, _ in bars], [_nats(weight) for _, weight, _ in bars])
    scale = _Scale.of([weight for _, weight, _ in bars], room)
    for k, (label, weight, color) in enumerate(bars):
        style = {FOR: "blue", AGAINST: "dark_orange"}.get(color, "dim" if k < len(bars) - 1 else "bold")
        bar = scale.bar(weight, style, fancy=console.encoding.lower().startswith("utf"))
        table.add_row(cell(label), cell(_nats(weight)), bar, end_section=k in (0, len(bars) - 2))
    console.print(table)


def _nats(weight: float) -> str:
    return "undefined" if math.isnan(weight) else f"{weight:+.2f}"


def _room(width: int, labels: list[str], numbers: list[str]) -> int:
    """Columns left for the bars beside the longest label and number; a few where a label has to be broken for them."""
    longest = max(cell(label).cell_len for label in labels)
    rest = width - max(map(len, numbers)) - FRAME
    return max(LEAST_BAR, rest - longest) if longest + LEAST_BAR <= rest else max(LEAST_BAR, rest // 3)


@dataclass(frozen=True)
class _Scale:
    """Columns to the left of zero, and columns for one nat."""

    left: int
    nat: float

    @classmethod
    def of(cls, weights: list[float], room: int) -> _Scale:
        """The scale on which the longest bars fill the room."""
        finite = [w for w in weights if math.isfinite(w)]
        low, high = min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)
        nat = room / ((high - low) or 1.0)
        return cls(round(-low * nat), nat)

    def bar(self, weight: float, style: str, fancy: bool) -> Text:
        """A bar from zero to the right (above zero) or to the left; an infinite weight has an arrow."""
        from rich.text import Text

        block, middle = ("█", "│") if fancy else ("#", "|")
        length = round(abs(weight) * self.nat) if math.isfinite(weight) else 0
        before = block * length if weight < 0 else "<" if weight == -math.inf else ""
        after = block * length if weight > 0 else ">" if weight == math.inf else ""
        text = Text(before.rjust(self.left), style=style)
        text.append(middle, style="dim")
        return text.append(after, style=style)


def _truth(table: Table, target: str, row: int) -> str:
    """What the table itself says about the row, if it says anything."""
    import pandas as pd

    if target not in table.frame.columns or pd.isna(table.frame[target].iloc[row - 1]):
        return ""
    return f"; the table says {printable(table.frame[target].iloc[row - 1])}"


def _conclusion(display: EvidenceDisplay, truth: str) -> str:
    from marginbayes.plotting.evidence import percent

    missing = f"; {display.n_missing} features are missing and weigh nothing" if display.n_missing else ""
    if display.n_missing == 1:
        missing = "; 1 feature is missing and weighs nothing"
    return (
        f"P({printable(display.target)}) against {printable(display.against)}: "
        f"{percent(display.prior_probability)} before, {percent(display.probability)} after{truth}{missing}"
    )
