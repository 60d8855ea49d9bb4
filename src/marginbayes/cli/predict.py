"""`marginbayes predict`: answers of a model for the rows of a table, as CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbayes.cli import options
from marginbayes.cli.console import note, working

if TYPE_CHECKING:
    from marginbayes.cli.tables import Reading, Table

Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write there instead of to stdout.", show_default=False),
]
Proba = Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")]
Prior = Annotated[
    list[str] | None,
    typer.Option(
        "--prior",
        metavar="CLASS=P",
        help="How frequent a class is where the answers are used, if that differs from the training data. "
        "Give it for every class; one may be left out and gets the rest.",
        show_default=False,
    ),
]
CostMatrix = Annotated[
    Path | None,
    typer.Option(
        "--cost-matrix",
        metavar="FILE",
        help="CSV: a header with the predicted classes, then one row for each true class, its name first. "
        "The class of least expected cost is predicted.",
        show_default=False,
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--id", metavar="COL", help="A column to copy in front of the answers; several times.", show_default=False
    ),
]
IgnoreExtra = Annotated[bool, typer.Option("--ignore-extra", help="Ignore columns that the model does not know.")]


def predict(
    model: options.Model,
    data: options.Data,
    out: Out = None,
    proba: Proba = False,
    prior: Prior = None,
    cost_matrix: CostMatrix = None,
    keep: Keep = None,
    ignore_extra: IgnoreExtra = False,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
) -> None:
    """Predict the class of each row of a table, as CSV.

    Example: `marginbayes predict model.json new.csv --proba --out answers.csv`
    """
    from marginbayes.cli.features import features_for
    from marginbayes.cli.models import check_writable, load_model
    from marginbayes.cli.sequences import labeler_features
    from marginbayes.cli.tables import Reading, as_written, check_column

    if out is not None:
        check_writable(out)
        _check_apart(out, (model, Path(data), *([] if cost_matrix is None else [cost_matrix])))
        _check_is_text(out)
    classifier: Any = load_model(model)
    classes = classifier.classes_.tolist()
    shares = parse_prior(prior, classes) if prior else None
    cost = read_cost(cost_matrix, classes) if cost_matrix is not None else None
    reading, keep = Reading(separator, encoding, decimal), list(dict.fromkeys(keep or ()))
    table = read_for(classifier, data, reading)
    for name in keep:
        check_column(name, table)
    if hasattr(classifier, "sequence_ids"):
        if shares is not None or cost is not None:
            raise ValueError("--prior and --cost-matrix are not for a model of sequences")
        X = labeler_features(classifier, table, ignore_extra, keep)
    else:
        X = features_for(classifier.schema_, table, ignore_extra=ignore_extra, keep=keep)
    with working(f"predicting {len(X)} rows"):
        answers = _answers(classifier, X, as_written(table, reading, keep), proba, shares, cost)
    _write(answers, out)


def _check_is_text(path: Path) -> None:
    """Refuse names that promise something else than CSV."""
    if path.suffix.lower() in (".parquet", ".pq", ".gz", ".json", ".xlsx", ".feather", ".arff", ".tsv"):
        raise ValueError(f"predictions are written as CSV; let the name of {path} end in .csv")


def read_for(classifier: Any, data: str, reading: Reading) -> Table:
    """The table to predict from, its text columns read as the model knows them; says so if it has the target."""
    from marginbayes.cli.features import text_columns
    from marginbayes.cli.tables import read_data

    schema = classifier.schema_
    table = read_data(data, reading, text_columns(schema))
    if schema.target.name in table.frame.columns:
        note(f"the column {schema.target.name!r} is what the model predicts; it is not looked at")
    return table


def parse_prior(words: Sequence[str], classes: list[Any]) -> dict[Any, float]:
    """Probability of each class from words such as "yes=0.1"; a single class left out gets the rest."""
    from marginbayes.cli.labels import find_label

    shares: dict[Any, float] = {}
    for word in words:
        name, equals, number = word.rpartition("=")
        if not equals:
            raise ValueError(f"--prior {word!r} should be CLASS=P, such as {classes[0]}=0.1")
        label = find_label(name, classes, "--prior:")
        if label in shares:
            raise ValueError(f"--prior names the class {name!r} twice")
        shares[label] = _share(word, number)
    lacking = [c for c in classes if c not in shares]
    total = sum(shares.values())
    if len(lacking) == 1 and total <= 1:
        shares[lacking[0]] = max(0.0, 1.0 - total)
    elif lacking:
        raise ValueError(f"--prior says nothing of the class {lacking[0]!r}; give one for each class, summing to 1")
    elif abs(total - 1) > 1e-6:
        raise ValueError(f"the numbers of --prior sum to {total:g}, not to 1")
    return {label: share / sum(shares.values()) for label, share in shares.items()}


def _share(word: str, number: str) -> float:
    try:
        share = float(number)
    except ValueError:
        raise ValueError(f"--prior {word!r}: {number!r} is not a number") from None
    if not 0 <= share <= 1:
        raise ValueError(f"--prior {word!r}: {number} is not a probability between 0 and 1")
    return share


def read_cost(path: Path, classes: list[Any]) -> list[list[float]]:
    """Cost of predicting class j when i is true, in the order of the classes, from a CSV file in any order."""
    from marginbayes.cli.labels import find_label

    lines = _cost_lines(path)
    if len(lines) != len(classes) + 1 or any(len(line) != len(classes) + 1 for line in lines):
        raise ValueError(
            f"{path} should have {len(classes)} rows and columns of costs, with the classes in front and on top"
        )
    columns = [find_label(name, classes, f"{path}, header:") for name in lines[0][1:]]
    costs = {}
    for line in lines[1:]:
        truth = find_label(line[0], classes, f"{path}, first column:")
        costs[truth] = {c: _cost(path, text) for c, text in zip(columns, line[1:], strict=True)}
    if len(costs) < len(classes) or len(set(columns)) < len(classes):
        raise ValueError(f"{path} names a class twice")
    return [[costs[truth][predicted] for predicted in classes] for truth in classes]


def _cost_lines(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [[text.strip() for text in line] for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a CSV file: {error}") from None
    if lines and len(lines[0]) == 1 and ";" in lines[0][0]:
        raise ValueError(f"{path} seems to be separated by ';'; separate its cells by commas")
    return lines


def _cost(path: Path, text: str) -> float:
    try:
        cost = float(text)
    except ValueError:
        cost = math.nan
    if not math.isfinite(cost):
        raise ValueError(f"{path} holds {text!r} where a cost should be")
    return cost


def _answers(classifier: Any, X: Any, kept: Any, proba: bool, prior: Any, cost: Any) -> Any:
    """A frame with the kept columns, the prediction and, if wanted, one probability for each class."""
    import pandas as pd

    columns = {name: kept[name].to_numpy() for name in kept}
    wishes = {name: value for name, value in (("prior", prior), ("cost", cost)) if value is not None}
    new = {"prediction": classifier.predict(X, **wishes)}
    if proba:
        chances = classifier.predict_proba(X, **({} if prior is None else {"prior": prior}))
        new |= {f"P({label})": chances[:, k] for k, label in enumerate(classifier.classes_.tolist())}
    twice = [name for name in kept if name in new]
    if twice:
        raise ValueError(f"--id {twice[0]!r} has the name of a column of the answers; rename it")
    return pd.DataFrame(columns | new)


def _check_apart(out: Path, inputs: Sequence[Path]) -> None:
    """Refuse to write answers over what they come from."""
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise ValueError(f"--out {out} is a file that is read; name another one")


def _write(answers: Any, out: Path | None) -> None:
    text = answers.to_csv(index=False, lineterminator="\n")
    if out is None:
        typer.echo(text.encode("utf-8"), nl=False)
        return
    from marginbayes.writing import write_text

    write_text(out, text)
    note(f"{len(answers)} answers written to {out}")
