"""Grids as HTML: numbers open their records, published ones stand below."""

from __future__ import annotations

import math
from html import escape

from marginbayes.report.grid import APART, MARKS, Entry, Grid, Row
from marginbayes.report.index import Index

__all__ = ["as_html"]

COLOURS = f"↑ and green: ours is higher, by more than {APART}; ↓ and red: lower by as much."  # as in CSS


def as_html(grid: Grid, index: Index) -> str:
    """A grid as a table, its title and its caption above."""
    heading = "".join(f"<th>{escape(h)}</th>" for h in grid.head)
    title = f"<h3>{escape(grid.title)}</h3>" if grid.title else ""
    return (
        f'{title}<p class="soft">{escape(_caption(grid))}</p><div class="wide"><table><thead><tr>{heading}</tr></thead>'
        f"<tbody>{''.join(_row(row, index) for row in grid.rows)}</tbody></table></div>"
    )


def _caption(grid: Grid) -> str:
    said = [grid.caption]
    if any(e.published for e in grid.entries):
        said.append(f"Below, as published{', and the difference' if any(e.difference for e in grid.entries) else ''}.")
    return " ".join([*said, COLOURS] if any(e.mark for e in grid.entries) else said)


def _row(row: Row, index: Index) -> str:
    names = "".join(f'<th scope="row">{escape(name)}</th>' for name in row.names)
    kind = ' class="mean"' if row.mean else ""
    return f"<tr{kind}>{names}{''.join(_entry(e, index) for e in row.entries)}</tr>"


def _entry(found: Entry, index: Index) -> str:
    text = index.opens(escape(found.text), *found.records) if found.text else ""
    below = ", ".join(escape(part) for part in (found.published, found.difference) if part)
    sorted_by = "" if found.value is None else f' data-value="{"Infinity" if found.value == math.inf else found.value}"'
    mark = f' class="{found.mark}"' if found.mark else ""
    return f"<td{sorted_by}{mark}>{text}{MARKS[found.mark]}{f'<small>{below}</small>' if below else ''}</td>"
