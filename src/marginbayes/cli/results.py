"""How an evaluation looks: tables, confusion matrices, comparisons, and reliability diagrams."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table

from marginbayes.cli.console import cell, grid, needed, printable
from marginbayes.cli.labels import text_of
from marginbayes.evaluation import Comparison, Evaluation, Interval, Outcome
from marginbayes.evaluation.summary import pooled
from marginbayes.plotting.reliability import ReliabilityDisplay

__all__ = ["comparison_line", "confusion_view", "metrics_tables", "reliability"]

MOST_CONFUSIONS = 12


def metrics_tables(results: Sequence[Evaluation], width: int) -> Iterator[Table]:
    """One row for each metric, one column for each classifier; in parts of this width where that is too wide.

    A single classifier makes a part however wide it is.
    """
    start = 0
    while start < len(results):
        fitting = (k for k in range(len(results), start + 1, -1) if needed(_metrics(results[start:k])) <= width)
        stop = next(fitting, start + 1)
        yield _metrics(results[start:stop])
        start = stop


def _metrics(results: Sequence[Evaluation]) -> Table:
    first = results[0]
    names = [result.name for result in results]
    table = grid("", *names, right=tuple(names))
    for column in table.columns:
        column.no_wrap = True
    table.add_row("accuracy (95 %)", *(cell(_interval(r.accuracy), "bold") for r in results))
    table.add_row("log loss", *(_number(r.log_loss) for r in results))
    table.add_row("Brier score", *(_number(r.brier) for r in results))
    table.add_row("AUC" if len(first.classes) == 2 else "AUC (macro)", *(_number(r.auc) for r in results))
    for rate in first.rates:
        table.add_row(rate, *(_interval(r.rates[rate]) for r in results))
    table.add_row("fit, seconds", *(f"{r.fit_seconds:.2f}" for r in results))
    table.add_row("predict, seconds", *(f"{r.predict_seconds:.2f}" for r in results))
    if first.rates:
        table.caption = f"positive class: {printable(text_of(first.positive))}"
        table.caption_justify = "left"
    return table


def confusion_view(result: Evaluation, width: int) -> Any:
    """The confusion matrix if it fits the width, else its largest entries off the diagonal."""
    labels = [printable(text_of(c)) for c in result.classes]
    cells = [max(len(label), len(str(n))) + 3 for label, n in zip(labels, result.confusion.max(axis=0), strict=True)]
    if sum(cells) + max(16, *map(len, labels)) + 14 <= width:
        return _matrix(result, labels)
    return _worst(result, labels)


def _matrix(result: Evaluation, labels: list[str]) -> Table:
    table = grid("true \\ predicted", title=f"{result.name}: confusion matrix")
    for label in labels:
        table.add_column(label, justify="right", no_wrap=True)
    table.add_column("recall", justify="right")
    for i, row in enumerate(result.confusion):
        counts = [cell(n, "bold" if i == j else "" if n else "dim") for j, n in enumerate(row)]
        table.add_row(labels[i], *counts, _number(row[i] / row.sum() if row.sum() else math.nan))
    return table


def _worst(result: Evaluation, labels: list[str]) -> Any:
    wrong = result.confusion - np.diag(np.diag(result.confusion))
    order = np.argsort(-wrong, axis=None, kind="stable")[:MOST_CONFUSIONS]
    table = grid("true", "predicted", "times", "of all true", right=("times", "of all true"))
    table.title = f"{result.name}: most frequent confusions"
    for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True):
        if wrong[i, j]:
            table.add_row(labels[i], labels[j], str(wrong[i, j]), f"{wrong[i, j] / result.confusion[i].sum():.1%}")
    rest = int(wrong.sum() - np.sort(wrong, axis=None)[::-1][:MOST_CONFUSIONS].sum())
    return Group(table, f"  and {rest} others (--json writes the whole matrix)") if rest else table


def comparison_line(comparison: Comparison) -> str:
    """One sentence: the difference, its interval and its p-value."""
    gain, p = comparison.difference, comparison.p_value
    told = f"{comparison.first} against {comparison.second}: accuracy {_signed(gain.value)}"
    if math.isnan(gain.low):
        return f"{told} (the same in every fold, so no interval and no test)"
    sure = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"{told} (95 % interval {_signed(gain.low)} to {_signed(gain.high)}, {sure}; {comparison.method})"


def reliability(outcomes: Sequence[Outcome], result: Evaluation) -> ReliabilityDisplay:
    """Diagram of the positive class's probability, or with several classes of the most probable class's."""
    truth, log_proba, rows = pooled(outcomes)
    repeats = len(rows) / len(np.unique(rows))
    if result.positive is not None:
        side = result.classes.index(result.positive)
        event = f"class {text_of(result.positive)}"
        return ReliabilityDisplay.compute(
            truth == side, np.exp(log_proba[:, side]), pos_label=True, name=result.name, event=event, repeats=repeats
        )
    event = "the predicted class"
    return ReliabilityDisplay.compute(
        log_proba.argmax(axis=1) == truth,
        np.exp(log_proba.max(axis=1)),
        pos_label=True,
        name=result.name,
        event=event,
        repeats=repeats,
        score=f"Brier score of {event}",  # that of the table is over all classes
    )


def _interval(interval: Interval) -> str:
    if math.isnan(interval.value):
        return "undefined"
    return f"{interval.value:.3f} ({_short(interval.low)}-{_short(interval.high)})"


def _signed(value: float) -> str:
    return f"{0.0 if abs(value) < 5e-5 else value:+.4f}"


def _short(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _number(value: float) -> str:
    if math.isnan(value):
        return "undefined"
    return "infinite" if math.isinf(value) else f"{value:.4f}"
