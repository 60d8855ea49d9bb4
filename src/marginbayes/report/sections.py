"""One section for each experiment: its table, its comparisons, its curves."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes.report.charts import critical_difference, lines, scatter
from marginbayes.report.claims import judged
from marginbayes.report.pairs import significance_table, times_table, wins_table
from marginbayes.report.results import Outcome
from marginbayes.report.tables import accuracy_table, beside_table, gap_table, order_table
from marginbayes.study.statistics import ranking

if TYPE_CHECKING:
    from marginbayes.report.page import Index

__all__ = ["section"]

MOST_TRACES = 12


def section(outcome: Outcome, index: Index) -> str:
    """The section of an experiment, as HTML."""
    experiment = outcome.experiment
    parts = [f'<h2 id="{experiment.name}">{escape(experiment.title)}</h2>']
    if experiment.note:
        parts.append(f'<p class="soft">{escape(experiment.note)}</p>')
    if not outcome.records:
        parts.append("<p>Nothing of this is finished yet.</p>")
    else:
        parts += _findings(outcome, index)
    parts += [_missing(outcome), _claims(outcome), _failures(outcome)]
    return "\n".join(part for part in parts if part)


def _findings(outcome: Outcome, index: Index) -> list[str]:
    kind = outcome.experiment.kind
    if kind == "orders":
        return [order_table(outcome, index)]
    if kind == "missing":
        return _missing_curves(outcome)
    if kind == "structure":
        return [times_table(outcome, index)]
    if "sizes" in outcome.experiment.protocol:
        return _size_curves(outcome)
    return [accuracy_table(outcome, index), beside_table(outcome), *_comparisons(outcome), *_members(outcome)]


def _comparisons(outcome: Outcome) -> list[str]:
    found = ranking(outcome.table, outcome.methods)
    parts = [gap_table(outcome)]
    if len(outcome.methods) > 1 and len(outcome.table) > 1:
        parts += [wins_table(outcome), significance_table(outcome)]
    if found is not None:
        diagram = critical_difference(found.ranks, found.critical, found.groups)
        text = f"Mean ranks over the {found.n_sets} sets that all methods finished (Friedman, Nemenyi; Demšar 2006)."
        parts.append(f"<h3>Ranks</h3><figure>{diagram}<figcaption>{text}</figcaption></figure>")
    return [*parts, _time_chart(outcome), _traces(outcome)]


def _time_chart(outcome: Outcome) -> str:
    averages = outcome.averages(weighted=False)
    shared = [cells for cells in outcome.table.values() if all(m in cells for m in outcome.methods)]
    points = {m: (sum(c[m].seconds for c in shared), averages[m]) for m in averages}
    chart = scatter(points, "seconds of all fits", "mean accuracy, %", "Accuracy against time")
    return f"<h3>Accuracy against time</h3>{chart}" if len(points) > 1 else ""


def _traces(outcome: Outcome) -> str:
    """Any-time curves of the solves that took longest: best objective and proved bound."""
    found = [r for r in outcome.records if len(r.result.get("structure_certificate", {}).get("trace", ())) > 2]
    found.sort(key=lambda r: -r.result["structure_certificate"]["seconds"])
    charts = []
    for record in found[:MOST_TRACES]:
        trace = record.result["structure_certificate"]["trace"]
        series = {
            "objective": [(t, o) for t, o, _ in trace],
            "bound": [(t, b) for t, _, b in trace if b is not None],
        }
        title = f"{record.dataset}, {record.method}, {record.split}"
        charts.append(lines(series, "seconds", "margin score", log_x=True, title=title))
    return f"<h3>Objective and bound over time</h3>{''.join(charts)}" if charts else ""


def _missing_curves(outcome: Outcome) -> list[str]:
    parts = []
    for dataset in outcome.experiment.sets:
        series: dict[str, Any] = {}
        for method in outcome.experiment.methods:
            curves = [r.result["curve"] for r in outcome.records if (r.dataset, r.method) == (dataset, method.name)]
            if curves:
                mean = np.mean([[100 * point[1] for point in curve] for curve in curves], axis=0)
                series[method.name] = [(point[0], float(v)) for point, v in zip(curves[0], mean, strict=True)]
        if series:
            parts.append(lines(series, "missing features", "accuracy, %", title=dataset))
    return parts


def _size_curves(outcome: Outcome) -> list[str]:
    """Mean accuracy by size for every data set, and a table of the same numbers."""
    parts = []
    for dataset in outcome.experiment.sets:
        series = {m.name: _by_size(outcome, dataset, m.name) for m in outcome.experiment.methods}
        series = {name: curve for name, curve in series.items() if curve}
        if series:
            parts.append(lines(series, "size", "accuracy, %", title=dataset))
            parts.append(_size_table(series))
    return parts


def _by_size(outcome: Outcome, dataset: str, method: str) -> list[tuple[float, float]]:
    rates: dict[int, list[float]] = {}
    for record in outcome.records:
        if (record.dataset, record.method) == (dataset, method):
            rates.setdefault(int(record.split.split("-")[0]), []).append(record.result["accuracy"])
    return [(float(size), 100 * float(np.mean(rates[size]))) for size in sorted(rates)]


def _size_table(series: dict[str, list[tuple[float, float]]]) -> str:
    sizes = sorted({size for curve in series.values() for size, _ in curve})
    head = "".join(f"<th>{size:g}</th>" for size in sizes)
    rows = []
    for name, curve in series.items():
        known = dict(curve)
        cells = "".join(f"<td>{known[size]:.2f}</td>" if size in known else "<td></td>" for size in sizes)
        rows.append(f"<tr><td>{escape(name)}</td>{cells}</tr>")
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _members(outcome: Outcome) -> list[str]:
    """Weak classifiers beside their combination."""
    parts = []
    for record in outcome.records:
        weak = record.result.get("members")
        if weak:
            train, test = (100 * np.array(weak)).T
            own = 100 * record.result["train_accuracy"], 100 * record.result["accuracy"]
            parts.append(
                f"<p>{escape(record.dataset)}, {escape(record.method)}: {len(weak)} members reach {train.min():.2f} to "
                f"{train.max():.2f} % (mean {train.mean():.2f}) of the training rows and {test.min():.2f} to "
                f"{test.max():.2f} % (mean {test.mean():.2f}) of the test rows; the combination {own[0]:.2f} % and "
                f"{own[1]:.2f} %.</p>"
            )
    return parts


def _missing(outcome: Outcome) -> str:
    lines_ = [f"<li>{escape(what)}: {escape(why)}</li>" for what, why in outcome.missing()]
    return f"<h3>What has no result</h3><ul>{''.join(lines_)}</ul>" if lines_ else ""


def _claims(outcome: Outcome) -> str:
    if not outcome.experiment.claims:
        return ""
    rows = [f"<li>The paper: {escape(text)}.<br>Here: {escape(ours)}</li>" for text, ours in judged(outcome)]
    return f"<h3>What the paper says, and what is found here</h3><ul>{''.join(rows)}</ul>"


def _failures(outcome: Outcome) -> str:
    if not outcome.failed:
        return ""
    lines_: Sequence[str] = [
        f"<li>{escape(f'{r.dataset}, {r.method}, {r.split}: {r.status}')} "
        f"{escape(str(r.result.get('error', '')))} ({r.seconds:.0f} s)</li>"
        for r in outcome.failed
    ]
    return f"<h3>Not finished</h3><ul>{''.join(lines_)}</ul>"
