"""`marginbayes evaluate`: how well classifiers do on rows that they were not trained on."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbayes.cli import options
from marginbayes.cli.console import WIDEST, needed, note, output, progress, say
from marginbayes.cli.errors import INTERRUPTED
from marginbayes.cli.sequences import Order, SequenceColumn, Window, build_labeler, check_alone, whole_sequences

if TYPE_CHECKING:
    from marginbayes.cli.models import Choices
    from marginbayes.cli.plans import FoldPlan
    from marginbayes.evaluation import Comparison, Evaluation, Outcome

TESTING = "Testing"

Structures = Annotated[
    list[str] | None,
    typer.Option(
        "--structure",
        "-s",
        metavar="NAME",
        help=f"What to learn; several times to compare: {options.STRUCTURES}. [default: tan]",
        show_default=False,
    ),
]
Folds = Annotated[
    int | None,
    typer.Option(
        "--folds",
        metavar="N",
        help="Cross-validate with so many folds. [default: 5]",
        rich_help_panel=TESTING,
        min=2,
        show_default=False,
    ),
]
Repeats = Annotated[int, typer.Option("--repeats", min=1, help="Cross-validate so often.", rich_help_panel=TESTING)]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the folds.", rich_help_panel=TESTING)]
Test = Annotated[
    str | None,
    typer.Option(
        "--test",
        metavar="DATA",
        help="Train on all of DATA, test on this.",
        rich_help_panel=TESTING,
        show_default=False,
    ),
]
Split = Annotated[bool, typer.Option("--split", help="Use the split of the data set.", rich_help_panel=TESTING)]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="CLASS",
        help="Of two classes the one that sensitivity and PPV speak of. [default: the second]",
        show_default=False,
    ),
]
Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write all numbers there.", show_default=False)
]
Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="DIR", help="Draw reliability diagrams in this folder.", show_default=False),
]


def evaluate(
    data: options.Data,
    target: options.Target = None,
    structures: Structures = None,
    positive: Positive = None,
    json: Json = None,
    plot: Plot = None,
    folds: Folds = None,
    repeats: Repeats = 1,
    seed: Seed = 0,
    test: Test = None,
    split: Split = False,
    parameters: options.ParametersOption = options.Parameters.ml,
    smoothing: options.Smoothing = 1.0,
    missing: options.MissingOption = options.Missing.available,
    discretizer: options.DiscretizerOption = options.Discretizer.mdlp,
    class_weight: options.ClassWeightOption = None,
    jobs: options.Jobs = None,
    tune: options.Tune = False,
    settings: options.Settings = None,
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
    """Cross-validate, or train and test, one or several classifiers.

    All structures see the same stratified folds. Accuracy and rates come with Wilson's 95 % interval over
    the tested rows; several structures are compared by the corrected resampled t-test, on a single test
    set by McNemar's. The row of a class that has no other row is never tested. Each tested row counts once,
    whatever its weight. With --sequence whole sequences are dealt to the folds, and the most probable label
    of each row counts.

    Example: `marginbayes evaluate patients.csv --target outcome -s nb -s tan -s aode`
    """
    from marginbayes.cli.labels import find_label
    from marginbayes.cli.models import Choices
    from marginbayes.cli.plans import Testing, make_plan
    from marginbayes.cli.tables import Reading

    _check_targets(json, plot)
    choices = Choices.of(parameters, smoothing, missing, discretizer, categorical, class_weight, jobs, tune, settings)
    check_alone(sequence, window, order)
    estimators = _estimators(structures or [], choices, sequence, window, order)
    testing = Testing(folds, repeats, seed, test, split, sequence)
    reading = Reading(separator, encoding, decimal)
    plan = make_plan(data, reading, target, tuple(drop or ()), weight, choices, testing)
    side = None if positive is None else find_label(positive, plan.classes.tolist(), "--positive")
    if side is not None and len(plan.classes) != 2:
        raise ValueError(f"--positive is for two classes, but there are {len(plan.classes)}")
    outcomes, complete = _collect(estimators, plan)
    results = _summaries(outcomes, plan, side)
    comparisons = _comparisons(outcomes)
    _tell(results, comparisons, plan)
    wholes = {} if plan.sequences is None else {k: whole_sequences(v, plan.sequences) for k, v in outcomes.items()}
    _tell_sequences(wholes)
    if json is not None:
        _write_json(json, plan, choices, results, comparisons, complete, wholes)
    if plot is not None:
        _draw(plot, outcomes, results)
    if not complete:
        done = len(results[0].fold_accuracy)
        note(f"interrupted; the numbers are those of the {done} of {plan.n_tasks} folds that were finished")
        raise typer.Exit(INTERRUPTED)


def _check_targets(json: Path | None, plot: Path | None) -> None:
    """Raise unless what was asked for can be written: before the work, not after it."""
    from marginbayes.cli.models import check_folder, check_writable

    if json is not None:
        check_writable(json, [".json"])
    if plot is not None:
        check_folder(plot)


def _estimators(
    structures: list[str], choices: Choices, sequence: str | None, window: int, order: int
) -> dict[str, Any]:
    """What to compare, by the names it is shown under."""
    from marginbayes.cli.models import build

    if sequence is not None:
        return {f"chain-{choices.parameters}": build_labeler(sequence, window, order, structures, choices)}
    return {name: build(name, choices) for name in dict.fromkeys(structures or ["tan"])}


def _collect(estimators: dict[str, Any], plan: FoldPlan) -> tuple[dict[str, list[Outcome]], bool]:
    """Outcomes of each classifier, and whether all tasks were done; an interrupt keeps the tasks that all finished."""
    from marginbayes.evaluation import run

    outcomes: dict[str, list[Outcome]] = {name: [] for name in estimators}
    complete = True
    with progress(plan.n_tasks * len(estimators)) as step:
        try:
            for outcome in run(estimators, plan.tasks, plan.classes):
                outcomes[outcome.name].append(outcome)
                step(f"evaluating {outcome.name}")
        except KeyboardInterrupt:
            complete = False
    done = min(len(found) for found in outcomes.values())
    if not done:
        raise KeyboardInterrupt
    return {name: found[:done] for name, found in outcomes.items()}, complete


def _summaries(outcomes: dict[str, list[Outcome]], plan: FoldPlan, positive: Any) -> list[Evaluation]:
    from marginbayes.evaluation import summarise

    return [summarise(found, plan.classes, positive) for found in outcomes.values()]


def _comparisons(outcomes: dict[str, list[Outcome]]) -> list[Comparison]:
    """Every pair, the later of the two first: what is given last is usually what is hoped to be better."""
    from marginbayes.evaluation import compare

    return [compare(outcomes[b], outcomes[a]) for a, b in combinations(outcomes, 2)]


def _tell(results: list[Evaluation], comparisons: list[Comparison], plan: FoldPlan) -> None:
    from marginbayes.cli import results as view

    console = output()
    say(console, plan.description)
    for table in view.metrics_tables(results, console.width if console.is_terminal else WIDEST):
        output(max(console.width, needed(table))).print(table)
    for result in results:
        console.print(view.confusion_view(result, console.width))
    for comparison in comparisons:
        say(console, view.comparison_line(comparison))


def _tell_sequences(wholes: dict[str, tuple[int, int]]) -> None:
    for name, (right, total) in wholes.items():
        say(output(), f"{name}: every row right in {right} of {total} tested sequences ({right / total:.1%})")


def _write_json(
    path: Path,
    plan: FoldPlan,
    choices: Choices,
    results: list[Evaluation],
    comparisons: list[Comparison],
    complete: bool,
    wholes: dict[str, tuple[int, int]],
) -> None:
    from dataclasses import asdict

    from marginbayes import __version__
    from marginbayes.network.json import format_document
    from marginbayes.writing import write_text

    document = {
        "format": "marginbayes.evaluation",
        "version": 1,
        "marginbayes": __version__,
        **plan.settings,
        "learning": {**asdict(choices), "categorical": list(choices.categorical)},
        "complete": complete,
        "results": [result.to_dict() for result in results],
        "comparisons": [comparison.to_dict() for comparison in comparisons],
        **({"sequences": {name: {"right": r, "tested": n} for name, (r, n) in wholes.items()}} if wholes else {}),
    }
    write_text(path, format_document(document))
    output().print(f"numbers written to {path}", soft_wrap=True)


def _draw(folder: Path, outcomes: dict[str, list[Outcome]], results: list[Evaluation]) -> None:
    from marginbayes.cli.pictures import save_picture
    from marginbayes.cli.results import reliability

    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        display = reliability(outcomes[result.name], result)
        path = folder / f"reliability-{result.name}.png"
        save_picture(display.plot, path)
        output().print(f"drawn in {path}", soft_wrap=True)
