"""`marginbayes fit`: learn a model from a table."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbayes.cli import options
from marginbayes.cli.console import cell, counted, grid, needed, note, output, working
from marginbayes.cli.errors import INTERRUPTED
from marginbayes.cli.sequences import Order, SequenceColumn, Window, build_labeler, check_alone, with_ids
from marginbayes.cli.settings import chosen

if TYPE_CHECKING:
    from marginbayes.cli.tables import Training
    from marginbayes.data.schema import Schema, Variable

MOST_COLUMNS, LONGEST_NAME, LEAST_LEVELS = 40, 30, 14
# Parameters whose learners prove what they find.
PROVED = ("mm-hybrid", "mm-convex", "m3n", "mm-combine")
# What the schema says of a variable's origin, as a word, and the rule behind it where that is not plain.
KINDS = {
    "class": ("class", ""),
    "type of the column": ("category", ""),
    "discretised by mdlp": ("number", ""),
    "named in categorical_features": ("as told", "as told: numbers that --categorical makes categories"),
    "at most two whole numbers": ("flag", "flag: at most two whole numbers, which are taken as categories"),
    "distinct numbers, discretizer=None": ("as is", "as is: each distinct number is a level"),
    "no value at all": ("empty", "empty: all cells are missing"),
}

StructureOption = Annotated[
    str, typer.Option("--structure", "-s", metavar="NAME", help=f"What to learn: {options.STRUCTURES}.")
]
ModelFile = Annotated[
    Path | None,
    typer.Option("--model", "-m", metavar="FILE", help="Where to write the model (.json).", show_default=False),
]
CertificateFile = Annotated[
    Path | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        help="Where to write the proof of what was found (.json), for 'marginbayes verify'.",
        show_default=False,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        min=0.0,
        help="Seconds after which the structure learner returns the best so far.",
        rich_help_panel=options.LEARNING,
        show_default=False,
    ),
]
Gap = Annotated[
    float | None,
    typer.Option(
        "--gap",
        min=0.0,
        help="How near to the best structure is near enough, as a share of the objective.",
        rich_help_panel=options.LEARNING,
        show_default=False,
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Where an exact margin keeps its search once a minute (.npz); if the file is there, it goes on from it.",
        rich_help_panel=options.LEARNING,
        show_default=False,
    ),
]
AllColumns = Annotated[bool, typer.Option("--all-columns", help=f"List all columns, not the first {MOST_COLUMNS}.")]


def fit(
    data: options.Data,
    target: options.Target = None,
    structure: StructureOption = "tan",
    model: ModelFile = None,
    certificate: CertificateFile = None,
    all_columns: AllColumns = False,
    parameters: options.ParametersOption = options.Parameters.ml,
    smoothing: options.Smoothing = 1.0,
    missing: options.MissingOption = options.Missing.available,
    discretizer: options.DiscretizerOption = options.Discretizer.mdlp,
    class_weight: options.ClassWeightOption = None,
    jobs: options.Jobs = None,
    tune: options.Tune = False,
    settings: options.Settings = None,
    time_limit: TimeLimit = None,
    gap: Gap = None,
    checkpoint: Checkpoint = None,
    sequence: SequenceColumn = None,
    window: Window = 1,
    order: Order = 1,
    categorical: options.Categorical = None,
    drop: options.Drop = None,
    weight: options.Weight = None,
    separator: options.Separator = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = ".",
) -> None:
    """Learn a model from a table and say what became of each column.

    Example: `marginbayes fit patients.csv --target outcome --model model.json`
    """
    from marginbayes.cli.limits import set_limits
    from marginbayes.cli.models import Choices, build, watch
    from marginbayes.cli.tables import Reading, check_features, note_columns, read_data, training

    _check_files(model, certificate, checkpoint)
    choices = Choices.of(parameters, smoothing, missing, discretizer, categorical, class_weight, jobs, tune, settings)
    check_alone(sequence, window, order)
    labeler = None if sequence is None else build_labeler(sequence, window, order, [structure], choices)
    classifier = build(structure, choices) if labeler is None else labeler
    asked = f"--structure {structure}{' --tune' if tune else ''}" if labeler is None else "--sequence"
    set_limits(classifier, asked, {"time_limit": time_limit, "gap": gap, "checkpoint": checkpoint})
    if certificate is not None:
        _check_proof(classifier, asked, parameters.value)
    reading = Reading(separator, encoding, decimal)
    table = with_ids(read_data(data, reading, categorical=choices.categorical), sequence)
    rows = training(table, target, drop or (), weight, sequence)
    check_features(table, rows, choices.categorical)
    note_columns(table, rows, choices)
    with working(f"learning {structure if labeler is None else 'a chain'} from {len(rows.y)} rows") as tell:
        watch(classifier, tell)
        seconds, accuracy = _learn(classifier, rows)
    written = _written(classifier, model, certificate)
    _report(classifier, rows, seconds, accuracy, all_columns)
    for line in written:
        output().print(line, soft_wrap=True)
    if _note_interrupted(classifier):
        raise typer.Exit(INTERRUPTED)


def _check_files(model: Path | None, certificate: Path | None, checkpoint: Path | None) -> None:
    """Raise unless all files can be written, each in a place of its own: before the work, not after it."""
    from marginbayes.cli.models import check_writable
    from marginbayes.estimators.proofs import certificate_files

    taken: dict[Path, str] = {}
    wanted = [("--model", model), ("--checkpoint", checkpoint)]
    wanted += [("--certificate", file) for file in (certificate_files(certificate) if certificate else ())]
    for option, file in wanted:
        if file is None:
            continue
        check_writable(file, () if option == "--checkpoint" else (".json",))
        other = taken.setdefault(file.resolve(), option)
        if other != option:
            raise ValueError(f"{other} and {option} are both {file}; name two files")


def _written(classifier: Any, model: Path | None, certificate: Path | None) -> list[str]:
    """Write the files that are wanted; a line about each."""
    from marginbayes.cli.models import save_model
    from marginbayes.estimators.proofs import write_certificates

    proofs: dict[Path, Any] = {}
    if model is not None:
        save_model(classifier, model)
    if certificate is not None:
        proofs |= write_certificates(classifier, certificate)
    where = "no model was written; --model FILE writes one" if model is None else f"model written to {model}"
    return [where, *(f"certificate written to {path}: {proof}" for path, proof in proofs.items())]


def _learn(classifier: Any, rows: Training) -> tuple[float, float]:
    """Fit; the seconds it took, and the accuracy on the same rows."""
    import pandas as pd

    start = time.perf_counter()
    with warnings.catch_warnings():  # an interrupt is told as a note
        warnings.filterwarnings("ignore", "interrupted", UserWarning)
        classifier.fit(rows.X, pd.Series(rows.y, name=rows.target), sample_weight=rows.weights)
    seconds = time.perf_counter() - start
    return seconds, float(classifier.score(rows.X, rows.y))  # each row once, as evaluate counts them


def _check_proof(classifier: Any, asked: str, parameters: str) -> None:
    """Refuse to learn for a certificate where there will be none."""
    from marginbayes.structure import ExactMargin, ExactScore, TunedMargin

    proved = isinstance(getattr(classifier, "structure", None), (ExactMargin, ExactScore, TunedMargin))
    if proved or parameters in PROVED:
        return
    if hasattr(classifier, "sequence_ids"):
        from marginbayes.sequence.learners.names import NAMES

        remedy = f"--parameters {', '.join(name for name in PROVED if name in NAMES)}"
    else:
        other = "" if hasattr(classifier, "structure") else "tan with "
        remedy = f"an exact structure such as exact-mdl, or {other}--parameters {', '.join(PROVED)}"
    raise ValueError(
        f"{asked} with --parameters {parameters} comes without a proof, so there is no certificate to write; "
        f"choose {remedy}"
    )


def _note_interrupted(classifier: Any) -> bool:
    """Whether Ctrl-C cut learning short, which is said."""
    results = [getattr(classifier, name, None) for name in ("structure_result_", "parameter_result_")]
    found = next((result for result in results if result is not None and result.interrupted), None)
    if found is None:
        return False
    gap = math.inf if found.certificate is None else found.certificate.gap
    near = f", its objective within {gap:.1e} of the bound" if math.isfinite(gap) else ""
    note(f"interrupted; the model is the best so far{near}")
    return True


def _report(classifier: Any, rows: Training, seconds: float, accuracy: float, all_columns: bool) -> None:
    console = output()
    table = _schema_table(classifier.schema_, rows, None if all_columns else MOST_COLUMNS)
    output(max(console.width, _narrowest(table))).print(table)
    console.print(
        f"{_counted_rows(classifier, rows)}, {counted(len(classifier.schema_.features), 'feature')}, "
        f"{counted(len(classifier.classes_), 'class')}; "
        f"learned in {seconds:.2f} s"
    )
    for part, values in chosen(classifier).items():
        told = ", ".join(f"{name} = {value}" for name, value in values.items())
        console.print(f"{part}: {told}, chosen by validation within these rows", soft_wrap=True)
    for name, part in (("structure_result_", "structure"), ("parameter_result_", "parameters")):
        proof = getattr(getattr(classifier, name, None), "certificate", None)
        if proof is not None:
            console.print(f"{part}: {proof}", soft_wrap=True)
    console.print(f"accuracy on these same rows {accuracy:.4f} (marginbayes evaluate tells that of new rows)")


def _counted_rows(classifier: Any, rows: Training) -> str:
    sequence = getattr(classifier, "sequence", None)
    within = "" if sequence is None else f" in {counted(rows.X[sequence].nunique(), 'sequence')}"
    return f"{counted(len(rows.y), 'row')}{within}"


def _schema_table(schema: Schema, rows: Training, most: int | None) -> Any:
    """What each column became, one line each."""
    table = grid("column", "kind", "levels", "missing", "cuts or levels", right=("levels", "missing"))
    for column in table.columns[:-1]:
        column.no_wrap, column.overflow = True, "ellipsis"
    table.columns[0].max_width = LONGEST_NAME
    holes = rows.X.isna().mean()
    shown = schema.variables if most is None else schema.variables[: most + 1]
    for variable in shown:
        share = 0.0 if variable is schema.target else float(holes[variable.name])
        name = cell(variable.name, "bold" if variable is schema.target else "")
        size = str(variable.cardinality)
        levels = cell(_levels(variable))
        # The column may shrink, its text is cut rather than wrapped.
        levels.no_wrap, levels.overflow = True, "ellipsis"
        table.add_row(name, _kind(variable), size, _percent(share), levels)
    if len(shown) < len(schema.variables):
        table.add_row(f"... {len(schema.variables) - len(shown)} more", "", "", "", "--all-columns shows them")
    rules = {KINDS[v.origin][1] for v in shown if v.origin in KINDS and KINDS[v.origin][1]}
    table.caption, table.caption_justify = "\n".join(sorted(rules)) or None, "left"
    return table


def _narrowest(table: Any) -> int:
    """Columns that the table takes at least; its last column alone may shrink, and vanishes where it has none."""
    table.columns[-1].max_width = LEAST_LEVELS
    width = needed(table)
    table.columns[-1].max_width = None
    return width


def _kind(variable: Variable) -> str:
    return KINDS[variable.origin][0] if variable.origin in KINDS else variable.origin


def _levels(variable: Variable) -> str:
    from marginbayes.data.schema import listed_level

    if variable.cuts is None:
        return ", ".join("missing" if level is None else listed_level(level) for level in variable.levels)
    extra = ["missing"] if variable.levels[-1] is None else []
    return ", ".join([*(f"{cut:.5g}" for cut in variable.cuts), *extra]) or "no cut: tells nothing of the class"


def _percent(share: float) -> str:
    if not share:
        return ""
    return f"{share:.1%}" if share >= 0.001 else "< 0.1%"
