"""A summary for people who read text: the same facts as on the page, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from marginbayes.report.claims import judged
from marginbayes.report.facts import facts, members
from marginbayes.report.grid import APART, MARKS, Entry, Grid
from marginbayes.report.methods import TITLE, method_grid
from marginbayes.report.results import Findings, made_with, outcomes
from marginbayes.study.records import Record
from marginbayes.study.spec import Study

__all__ = ["summary"]

# More do not fit a page.
MOST_COLUMNS = 12
ARROWS = f"↑: ours is higher, by more than {APART}; ↓: lower by as much."


def summary(study: Study, records: Iterable[Record]) -> str:
    """Markdown of all experiments: ours, the published number in brackets, and what is left."""
    found = outcomes(study, records)
    parts = [f"# {study.title}", "", *([study.paper, ""] if study.paper else []), *_origin(study, found)]
    for outcome in found:
        parts += [f"## {outcome.experiment.title}", "", *_body(outcome), ""]
    methods = method_grid(found)
    if methods.rows:
        parts += [f"## {TITLE}", "", *as_markdown(methods)]
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
    lines = [f"{len(outcome.records)} of {len(experiment.tasks())} tasks finished."]
    if experiment.note:
        lines += ["", experiment.note]
    for grid in facts(outcome):
        lines += ["", *as_markdown(grid)]
    points = [f"{r.dataset}, {r.method}: {text}" for r, text in members(outcome)]
    points += [f"The paper: {text}. Here: {ours}" for text, ours in judged(outcome)]
    points += [f"No result: {name} ({why})" for name, why in outcome.missing()]
    points += [
        f"{r.status}: {r.dataset}, {r.method}, {r.split} {r.result.get('error', '')}".rstrip() for r in outcome.failed
    ]
    return [*lines, *([""] if points else []), *(f"- {point}" for point in points)]


def as_markdown(grid: Grid) -> list[str]:
    """Lines of a grid: its title, its caption, and a table, or several of them below each other if it is wide."""
    lines = [f"**{grid.title}.** {_caption(grid)}" if grid.title else _caption(grid)]
    n_names = len(grid.rows[0].names)
    n_columns = len(grid.head) - n_names
    n_tables = max(1, -(-n_columns // MOST_COLUMNS))
    edges = [n_names + n_columns * i // n_tables for i in range(n_tables + 1)]
    for start, stop in pairwise(edges):
        lines += ["", _row([*grid.head[:n_names], *grid.head[start:stop]])]
        lines.append(_row([*(["---"] * n_names), *(["---:"] * (stop - start))]))
        for row in grid.rows:
            shown = row.entries[start - n_names : stop - n_names]
            lines.append(_row([*row.names, *(_entry(e) for e in shown)]))
    return lines


def _caption(grid: Grid) -> str:
    said = [grid.caption]
    if any(e.published for e in grid.entries):
        said.append("In brackets, as published.")
    return " ".join([*said, ARROWS] if any(e.mark for e in grid.entries) else said)


def _entry(found: Entry) -> str:
    published = f"({found.published}){MARKS[found.mark]}" if found.published else ""
    return f"{found.text} {published}".strip()


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
