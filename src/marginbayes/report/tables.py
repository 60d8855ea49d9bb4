"""Tables: published numbers beside ours, orders, gaps."""

from __future__ import annotations

from html import escape

import numpy as np

from marginbayes.report.beside import CAPTION, HEAD, beside, is_outside
from marginbayes.report.index import Index
from marginbayes.report.results import Findings, mean_over_sets
from marginbayes.study.records import Record
from marginbayes.study.statistics import Cell

__all__ = ["accuracy_table", "beside_table", "gap_table", "order_table", "table"]

PublishedNumber = tuple[float, float | None] | None


def accuracy_table(outcome: Findings, index: Index) -> str:
    """Accuracy of every method on every set, the published one and the difference under it.

    A cell is marked where the published number lies outside of our interval.
    """
    methods = outcome.methods
    rows = []
    for dataset, cells in outcome.table.items():
        if cells:
            shown = [_cell(cells.get(m), _published(outcome, dataset, m), index) for m in methods]
            rows.append(f"<tr><td>{escape(dataset)}</td>{''.join(shown)}</tr>")
    rows += [*_means(outcome, index), *(_costs(outcome, index) if outcome.shared() else ())]
    caption = (
        "Accuracy in per cent with 95 % intervals; below, the published number and the difference. Green: ours is "
        "higher and the published number lies outside of our interval; red: lower and outside. The last rows are means "
        "over the sets that all methods finished."
    )
    return table(["data set", *methods], rows, caption)


def _published(outcome: Findings, row: str, column: str) -> PublishedNumber:
    published = outcome.experiment.published
    return None if published is None else published.get(row, column)


def _cell(found: Cell | None, published: PublishedNumber, index: Index) -> str:
    if found is None:
        return "<td>" + (f"<small>{published[0]:.2f}</small>" if published else "") + "</td>"
    text = index.opens(f"{found.accuracy:.2f} ± {found.half_width:.2f}", found.records)
    mark = ""
    if published is not None:
        difference = found.accuracy - published[0]
        if is_outside(found, published[0]):
            mark = ' class="above"' if difference > 0 else ' class="below"'
        text += f"<small>{published[0]:.2f}, {difference:+.2f}</small>"
    return f'<td data-value="{found.accuracy}"{mark}>{text}</td>'


def _means(outcome: Findings, index: Index) -> list[str]:
    rows, averaged = [], outcome.shared_records(*outcome.methods)
    for name, weighted in (("mean", False), ("mean weighted by test rows", True)):
        averages = outcome.averages(weighted)
        if not averages or len(outcome.table) < 2:
            continue
        cells = []
        for method, records in zip(outcome.methods, averaged, strict=True):
            published = _published_mean(outcome, method, weighted)
            small = f"<small>{published:.2f}, {averages[method] - published:+.2f}</small>" if published else ""
            cells.append(f"<td>{index.opens(f'{averages[method]:.2f}', records)}{small}</td>")
        rows.append(f'<tr class="mean"><td>{name}</td>{"".join(cells)}</tr>')
    return rows


def _costs(outcome: Findings, index: Index) -> list[str]:
    """Time and size of each method, averaged over the sets that all methods finished."""
    rows, shared = [], outcome.shared().values()
    for name, key, shown in (("seconds of a fit", "fit_seconds", "{:.3g}"), ("parameters", "parameters", "{:.0f}")):
        cells = []
        for method in outcome.methods:
            own = [found[method] for found in shared]
            known = mean_over_sets(own, key)
            text = "" if known is None else index.opens(shown.format(known), (r for c in own for r in c.records))
            cells.append(f"<td>{text}</td>")
        rows.append(f'<tr class="mean"><td>{name}</td>{"".join(cells)}</tr>')
    return rows


def _published_mean(outcome: Findings, method: str, weighted: bool) -> float | None:
    """The paper's own average, or that of its numbers on the sets that all methods finished here."""
    published = outcome.experiment.published
    if published is None:
        return None
    own, about = published.get("average", method), outcome.experiment.extra.get("average", {})
    if own is not None:
        return own[0] if len(outcome.shared()) == about.get("sets") and weighted == about.get("weighted") else None
    known = [(published.get(d, method), cells[method].tested) for d, cells in outcome.shared().items()]
    if not known or any(number is None for number, _ in known):
        return None
    weights = [tested if weighted else 1 for _, tested in known]
    return float(np.average([number[0] for number, _ in known if number], weights=weights))


def beside_table(outcome: Findings, index: Index) -> str:
    """How far each method is from the published numbers, how often above all of them, and what it costs."""
    rows = []
    for line in beside(outcome):
        method, *numbers = line.texts()
        cells = "".join(f"<td>{index.opens(n, line.records) if n else ''}</td>" for n in numbers)
        rows.append(f"<tr><td>{escape(method)}</td>{cells}</tr>")
    return f"<h3>Beside the paper</h3>{table(list(HEAD), rows, CAPTION)}" if rows else ""


def gap_table(outcome: Findings, index: Index) -> str:
    """What exact learners proved: objective, bound and gap of the last solve, beside the paper's gap."""
    rows = []
    for record in sorted(outcome.records, key=lambda r: (r.dataset, r.method, r.split)):
        certificate = record.result.get("structure_certificate")
        if certificate is not None:
            rows.append(_gap_row(outcome, record, index))
    if not rows:
        return ""
    head = ["data set", "method", "split", "status", "objective", "bound", "gap", "seconds", "published gap, %"]
    return f"<h3>Certificates</h3>{table(head, rows, 'Gap: (bound - objective) / max(1, |objective|).')}"


def _gap_row(outcome: Findings, record: Record, index: Index) -> str:
    certificate = record.result["structure_certificate"]
    gaps = outcome.experiment.extra.get("gaps", {"rows": {}, "columns": []})
    row = gaps["rows"].get(record.dataset)
    theirs = f"{row[gaps['columns'].index(record.method)]}" if row and record.method in gaps["columns"] else ""
    numbers = [certificate["objective"], certificate["bound"], certificate["gap"], certificate["seconds"]]
    shown = ["" if n is None else index.opens(f"{n:.6g}", [record]) for n in numbers]
    names = [escape(n) for n in (record.dataset, record.method, record.split, certificate["status"])]
    return (
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in (*names, *shown, f"<small>{escape(theirs)}</small>")) + "</tr>"
    )


def order_table(outcome: Findings, index: Index) -> str:
    """Over random orders: test rates and conditional likelihood."""
    rows = []
    for dataset in outcome.experiment.sets:
        for method in outcome.methods:
            records = [r for r in outcome.records if (r.dataset, r.method) == (dataset, method)]
            if method in outcome.table[dataset] and records:
                rows.append(_order_row(outcome, dataset, method, records, index))
    head = [
        "data set",
        "method",
        "mean ± std",
        "median",
        "worst on train",
        "best on train",
        "CLL, mean ± std",
        "orders",
    ]
    return table(head, rows, "Test accuracy in per cent over random orders, averaged over folds; below, as published.")


def _order_row(outcome: Findings, dataset: str, method: str, records: list[Record], index: Index) -> str:
    tests = 100 * np.mean([r.result["test_accuracies"] for r in records], axis=0)
    trains = np.array([r.result["train_accuracies"] for r in records])
    each = 100 * np.array([r.result["test_accuracies"] for r in records])
    worst, best = (
        float(np.mean([e[i] for e, i in zip(each, pick(trains, axis=1), strict=True)]))
        for pick in (np.argmin, np.argmax)
    )
    middle = float(np.median(tests))
    likelihood = np.sum([r.result["train_cll"] for r in records], axis=0)

    def under(column: str) -> str:
        number = _published(outcome, dataset, column)
        if number is None:
            return ""
        return f"<small>{number[0]:.2f}{'' if number[1] is None else f' ± {number[1]:.2f}'}</small>"

    numbers = [
        (tests.mean(), f"{tests.mean():.2f} ± {tests.std():.2f}", under("mean")),
        (middle, f"{middle:.2f}", under("median")),
        (worst, f"{worst:.2f}", under("min")),
        (best, f"{best:.2f}", under("max")),
        (likelihood.mean(), f"{likelihood.mean():.1f} ± {likelihood.std():.1f}", ""),
        (len(tests), str(len(tests)), ""),
    ]
    cells = [f'<td data-value="{value}">{index.opens(text, records)}{small}</td>' for value, text, small in numbers]
    return f"<tr><td>{escape(dataset)}</td><td>{escape(method)}</td>{''.join(cells)}</tr>"


def table(head: list[str], rows: list[str], caption: str) -> str:
    """An HTML table with its caption above."""
    heading = "".join(f"<th>{escape(h)}</th>" for h in head)
    return (
        f'<p class="soft">{escape(caption)}</p><div class="wide"><table><thead><tr>{heading}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
