"""A summary for people who read text: the same tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from marginbayes.report.beside import CAPTION, HEAD, beside
from marginbayes.report.claims import judged
from marginbayes.report.results import Findings, made_with, outcomes
from marginbayes.study.records import Record
from marginbayes.study.spec import Study

__all__ = ["summary"]

TABLE = (
    "Accuracy in per cent with 95 % intervals, in brackets as published. The last rows are means over the sets that "
    "all methods finished."
)


def summary(study: Study, records: Iterable[Record]) -> str:
    """Markdown of all experiments: ours, the published number in brackets, and what is left."""
    found = outcomes(study, records)
    parts = [f"# {study.title}", "", *([study.paper, ""] if study.paper else []), *_origin(study, found)]
    for outcome in found:
        parts += [f"## {outcome.experiment.title}", "", *_body(outcome), ""]
    return "\n".join(parts).rstrip() + "\n"


def _origin(study: Study, found: list[Findings]) -> list[str]:
    """The command, what became of its tasks, and every version and machine that records were made with."""
    done = [r for outcome in found for r in outcome.records]
    lost = [r for outcome in found for r in outcome.failed]
    if not done and not lost:
        return []
    hours = sum(r.seconds for r in (*done, *lost)) / 3600
    counts = f"{len(done)} {'task' if len(done) == 1 else 'tasks'} finished" + (
        f", {len(lost)} failed or given up" if lost else ""
    )
    command = f"`marginbayes study run {study.path or f'{study.name}.toml'}`"
    return [f"{command}: {counts}, {hours:.1f} hours; {made_with([*done, *lost])}.", ""]


def _body(outcome: Findings) -> list[str]:
    experiment = outcome.experiment
    tasks, done = len(experiment.tasks()), len(outcome.records)
    lines = [f"{done} of {tasks} tasks finished."]
    if experiment.note:
        lines += ["", experiment.note]
    if "sizes" in experiment.protocol or experiment.kind == "missing":
        lines += [
            "",
            "Mean accuracy in per cent, over the splits that all methods finished.",
            "",
            *_means_only(outcome),
        ]
    elif experiment.kind == "structure":
        lines += ["", *_times(outcome)]
    elif any(outcome.table.values()):
        lines += ["", TABLE, "", *_table(outcome), "", *_beside(outcome)]
    lines += ["", *(f"- The paper: {text}. Here: {ours}" for text, ours in judged(outcome))]
    lines += [f"- No result: {name} ({why})" for name, why in outcome.missing()]
    lines += [
        f"- {r.status}: {r.dataset}, {r.method}, {r.split} {r.result.get('error', '')}".rstrip() for r in outcome.failed
    ]
    return lines


def _table(outcome: Findings) -> list[str]:
    methods, published = outcome.methods, outcome.experiment.published
    rows = [_row(["data set", *methods]), _row(["---", *("---:" for _ in methods)])]
    for dataset, cells in outcome.table.items():
        shown = []
        for method in methods:
            text = f"{cells[method].accuracy:.2f} ± {cells[method].half_width:.2f}" if method in cells else ""
            theirs = published.get(dataset, method) if published else None
            shown.append(f"{text} ({theirs[0]:.2f})" if theirs else text)
        if any(shown):
            rows.append(_row([dataset, *shown]))
    for name, weighted in (("mean", False), ("weighted mean", True)):
        averages = outcome.averages(weighted)
        if averages and len(outcome.table) > 1:
            rows.append(_row([name, *(f"{averages[m]:.2f}" for m in methods)]))
    return rows


def _beside(outcome: Findings) -> list[str]:
    lines = beside(outcome)
    if not lines or outcome.experiment.kind == "orders":
        return []
    return [
        f"Beside the paper. {CAPTION}",
        "",
        _row([*HEAD]),
        _row(["---", *("---:" for _ in HEAD[1:])]),
        *(_row(line.texts()) for line in lines),
    ]


def _times(outcome: Findings) -> list[str]:
    """Seconds of structure learning in per cent of the last method's."""
    methods, published = outcome.methods, outcome.experiment.published
    rows = [_row(["data", *methods]), _row(["---", *("---:" for _ in methods)])]
    for name, shares in outcome.relative_times().items():
        theirs = [published.get(name, m) if published else None for m in methods]
        cells = [f"{shares[m]:.2f} %" + (f" ({t[0]:g})" if t else "") for m, t in zip(methods, theirs, strict=True)]
        rows.append(_row([name, *cells]))
    return rows


def _means_only(outcome: Findings) -> list[str]:
    """Mean accuracy by size, over the splits that all methods finished."""
    done: dict[tuple[str, str], list[Record]] = {}
    for record in outcome.records:
        done.setdefault((record.dataset, record.split), []).append(record)
    most = len({record.method for record in outcome.records})
    rates: dict[tuple[str, str], list[float]] = {}
    for record in (r for shared in done.values() if len(shared) == most for r in shared):
        rates.setdefault((record.method, record.split.split("-")[0]), []).append(record.result["accuracy"])
    sizes = sorted({size for _, size in rates}, key=lambda s: (len(s), s))
    rows = [_row(["method", *sizes]), _row(["---", *("---:" for _ in sizes)])]
    for method in (m.name for m in outcome.experiment.methods):
        cells = [rates.get((method, size)) for size in sizes]
        if any(cells):
            rows.append(_row([method, *(f"{100 * sum(c) / len(c):.2f}" if c else "" for c in cells)]))
    return rows


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
