"""One section for each experiment: its table, its comparisons, its curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from marginbayes.report.charts import critical_difference, lines, scatter
from marginbayes.report.claims import judged
from marginbayes.report.index import Index
from marginbayes.report.pairs import significance_table, times_table, wins_table
from marginbayes.report.results import Findings
from marginbayes.report.tables import accuracy_table, beside_table, gap_table, order_table, table
from marginbayes.study.records import Record
from marginbayes.study.statistics import ranking

__all__ = ["section"]

MOST_TRACES = 12
Points = list[tuple[float, float]]


def section(outcome: Findings, index: Index) -> str:
    """The section of an experiment, as HTML."""
    experiment = outcome.experiment
    parts = [f'<h2 id="{escape(experiment.name)}">{escape(experiment.title)}</h2>']
    if experiment.note:
        parts.append(f'<p class="soft">{escape(experiment.note)}</p>')
    if not outcome.records:
        parts.append("<p>Nothing of this is finished yet.</p>")
    else:
        parts += _findings(outcome, index)
    parts += [_missing(outcome), _claims(outcome, index), _failures(outcome, index)]
    return "\n".join(part for part in parts if part)


def _findings(outcome: Findings, index: Index) -> list[str]:
    kind = outcome.experiment.kind
    if kind == "orders":
        return [order_table(outcome, index)]
    if kind == "missing":
        return _curves(outcome, _by_missing, "missing features", index)
    if kind == "structure":
        return [times_table(outcome, index)]
    if "sizes" in outcome.experiment.protocol:
        return _curves(outcome, _by_size, "size", index)
    tables = [accuracy_table(outcome, index), beside_table(outcome, index)]
    return [*tables, *_comparisons(outcome, index), *_members(outcome, index)]


def _comparisons(outcome: Findings, index: Index) -> list[str]:
    found = ranking(outcome.table, outcome.methods)
    parts = [gap_table(outcome, index)]
    if len(outcome.methods) > 1 and len(outcome.table) > 1:
        parts += [wins_table(outcome, index), significance_table(outcome, index)]
    if found is not None:
        diagram = critical_difference(found.ranks, found.critical, found.groups)
        text = f"Mean ranks over the {found.n_sets} sets that all methods finished (Friedman, Nemenyi; Demšar 2006)."
        parts.append(f"<h3>Ranks</h3><figure>{diagram}<figcaption>{text}</figcaption></figure>")
    return [*parts, _time_chart(outcome), _traces(outcome)]


def _time_chart(outcome: Findings) -> str:
    averages = outcome.averages(weighted=False)
    points = {m: (sum(c[m].seconds for c in outcome.shared().values()), averages[m]) for m in averages}
    chart = scatter(points, "seconds of all fits", "mean accuracy, %", "Accuracy against time")
    return f"<h3>Accuracy against time</h3>{chart}" if len(points) > 1 else ""


def _traces(outcome: Findings) -> str:
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


def _curves(outcome: Findings, points: Callable[[Record], Points], label: str, index: Index) -> list[str]:
    """Mean accuracy of each method along an axis, for every data set: a chart, and the same numbers as a table."""
    parts = []
    for dataset in outcome.experiment.sets:
        found: dict[str, dict[float, list[tuple[float, Record]]]] = {}
        for record in (r for r in outcome.records if r.dataset == dataset):
            for place, rate in points(record):
                found.setdefault(record.method, {}).setdefault(place, []).append((rate, record))
        order = [m.name for m in outcome.experiment.methods if m.name in found]
        series = {m: [(p, _mean_rate(found[m][p])) for p in sorted(found[m])] for m in order}
        if series:
            places = sorted({p for curve in found.values() for p in curve})
            rows = [_curve_row(m, [found[m].get(p, []) for p in places], index) for m in order]
            parts.append(lines(series, label, "accuracy, %", title=dataset))
            parts.append(table([label, *(f"{p:g}" for p in places)], rows, "Mean accuracy in per cent."))
    return parts


def _by_size(record: Record) -> Points:
    return [(float(record.split.split("-")[0]), record.result["accuracy"])]


def _by_missing(record: Record) -> Points:
    return [(float(count), rate) for count, rate, *_ in record.result["curve"]]


def _mean_rate(found: list[tuple[float, Record]]) -> float:
    return 100 * float(np.mean([rate for rate, _ in found]))


def _curve_row(name: str, cells: list[list[tuple[float, Record]]], index: Index) -> str:
    shown = [index.opens(f"{_mean_rate(found):.2f}", [r for _, r in found]) if found else "" for found in cells]
    return f"<tr><td>{escape(name)}</td>{''.join(f'<td>{text}</td>' for text in shown)}</tr>"


def _members(outcome: Findings, index: Index) -> list[str]:
    """Weak classifiers beside their combination."""
    parts = []
    for record in outcome.records:
        weak = record.result.get("members")
        if weak:
            train, test = (100 * np.array(weak)).T
            own = 100 * record.result["train_accuracy"], 100 * record.result["accuracy"]
            name = index.opens(escape(f"{record.dataset}, {record.method}"), [record])
            parts.append(
                f"<p>{name}: {len(weak)} members reach {train.min():.2f} to "
                f"{train.max():.2f} % (mean {train.mean():.2f}) of the training rows and {test.min():.2f} to "
                f"{test.max():.2f} % (mean {test.mean():.2f}) of the test rows; the combination {own[0]:.2f} % and "
                f"{own[1]:.2f} %.</p>"
            )
    return parts


def _missing(outcome: Findings) -> str:
    lines_ = [f"<li>{escape(what)}: {escape(why)}</li>" for what, why in outcome.missing()]
    return f"<h3>What has no result</h3><ul>{''.join(lines_)}</ul>" if lines_ else ""


def _claims(outcome: Findings, index: Index) -> str:
    if not outcome.experiment.claims:
        return ""
    rows = [
        f"<li>The paper: {escape(text)}.<br>{index.opens('Here', outcome.records)}: {escape(ours)}</li>"
        for text, ours in judged(outcome)
    ]
    return f"<h3>What the paper says, and what is found here</h3><ul>{''.join(rows)}</ul>"


def _failures(outcome: Findings, index: Index) -> str:
    if not outcome.failed:
        return ""
    lines_: Sequence[str] = [
        f"<li>{index.opens(escape(f'{r.dataset}, {r.method}, {r.split}: {r.status}'), [r])} "
        f"{escape(str(r.result.get('error', '')))} ({r.seconds:.0f} s)</li>"
        for r in outcome.failed
    ]
    return f"<h3>Not finished</h3><ul>{''.join(lines_)}</ul>"
