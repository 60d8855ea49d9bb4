"""Methods two by two: on how many sets one beats the other, and whether it does over all of them; relative times."""

from __future__ import annotations

from html import escape

from marginbayes.report.index import Index
from marginbayes.report.results import Findings
from marginbayes.report.tables import table

__all__ = ["significance_table", "times_table", "wins_table"]


def wins_table(outcome: Findings, index: Index) -> str:
    """How often the method of the row beats that of the column, at 68 % and 95 %, and as published."""
    methods, published = outcome.methods, _published_wins(outcome)
    rows = []
    for first in methods:
        cells = []
        for second in methods:
            if first == second:
                cells.append("<td>—</td>")
                continue
            some, sure = outcome.wins(first, second)
            theirs = published.get((first, second))
            small = f"<small>{theirs[0]}/{theirs[1]}</small>" if theirs else ""
            text = index.opens(f"{some}/<b>{sure}</b>", *outcome.shared_records(first, second))
            cells.append(f'<td data-value="{some}">{text}{small}</td>')
        rows.append(f"<tr><td>{escape(first)}</td>{''.join(cells)}</tr>")
    caption = (
        "Number of data sets on which the row beats the column at 68 % / 95 %: one-sided paired t-test over folds, "
        "one-sided binomial test on a test set; below, as published."
    )
    return f"<h3>Wins</h3>{table(['', *methods], rows, caption)}"


def _published_wins(outcome: Findings) -> dict[tuple[str, str], tuple[int, int]]:
    entry = outcome.experiment.extra.get("wins")
    if entry is None:
        return {}
    names = entry["methods"]
    return {(a, b): tuple(entry["rows"][i][j]) for i, a in enumerate(names) for j, b in enumerate(names) if a != b}


def significance_table(outcome: Findings, index: Index) -> str:
    """P-value of each pair over the data sets, with an arrow to the better one, and as published."""
    entry = outcome.experiment.extra.get("significance")
    if entry is None:
        return ""
    methods = [m for m in entry["methods"] if m in outcome.methods]
    rows = []
    for i, first in enumerate(methods[:-1]):
        cells = [_significance(outcome, first, second, index) for second in methods[i + 1 :]]
        rows.append(f"<tr><td>{escape(first)}</td>{'<td></td>' * i}{''.join(cells)}</tr>")
    caption = (
        "One-sided paired t-test over data sets; the arrow points to the better method, up to the column's, left to "
        f"the row's, and is double at 0.05; below, as published. {entry.get('note', '')}"
    )
    return f"<h3>Differences over all sets</h3>{table(['', *methods[1:]], rows, caption)}" if rows else ""


def _significance(outcome: Findings, first: str, second: str, index: Index) -> str:
    p, arrow = outcome.significance(first, second)
    entry = outcome.experiment.extra["significance"]
    theirs = entry["rows"].get(first, {}).get(second)
    small = f"<small>{escape(str(theirs))}</small>" if theirs is not None else ""
    text = index.opens(f"{arrow} {p:.2g}", *outcome.shared_records(first, second))
    return f'<td data-value="{p}">{text}{small}</td>'


def times_table(outcome: Findings, index: Index) -> str:
    """Seconds of structure learning in per cent of the slowest method's, as a paper prints them."""
    methods, published = outcome.methods, outcome.experiment.published
    rows = []
    for name, shares in outcome.relative_times().items():
        cells = []
        for method in methods:
            theirs = published.get(name, method) if published else None
            small = f"<small>{theirs[0]:g} %</small>" if theirs else ""
            button = index.opens(f"{shares[method]:.2f} %", outcome.timed(name, method))
            cells.append(f'<td data-value="{shares[method]}">{button}{small}</td>')
        rows.append(f"<tr><td>{escape(name)}</td>{''.join(cells)}</tr>")
    return table(
        ["data", *methods], rows, "Seconds of structure learning, relative to the last method; below, as published."
    )
