"""The page: all experiments of a study in one file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from marginbayes.report.html import as_html
from marginbayes.report.index import Index
from marginbayes.report.methods import TITLE, method_grid
from marginbayes.report.results import Findings, made_with, outcomes
from marginbayes.report.sections import section
from marginbayes.study.records import Record, Records
from marginbayes.study.spec import Study
from marginbayes.writing import write_text

__all__ = ["render", "write_report"]


def write_report(study: Study, records: Records, path: str | Path) -> None:
    """Write the page of a study."""
    write_text(path, render(study, records))


def render(study: Study, records: Iterable[Record]) -> str:
    """The page of a study as text."""
    found = outcomes(study, records)
    index = Index()
    body = "".join(section(outcome, index) for outcome in found) + _methods(found, index)
    # A closing tag inside a string must not end the script element.
    data = json.dumps(_finite(index.embedded()), allow_nan=False).replace("</", "<\\/")
    return PAGE.format(
        title=escape(study.title),
        paper=escape(study.paper),
        style=_asset("style.css"),
        script=_asset("script.js"),
        contents=_contents(found),
        state=escape(_state(found)),
        body=body,
        records=data,
    )


def _finite(value: Any) -> Any:
    """The same with numbers that JSON does not know as text: one of them would keep the page from reading any."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>
<h1>{title}</h1>
<p class="lead">{paper}</p>
<p class="soft">{state}</p>
<nav><ul>{contents}</ul></nav>
{body}
<dialog aria-label="Records behind a number"><form method="dialog"><button>Close</button></form><div></div></dialog>
<script type="application/json" id="records">{records}</script>
<script>{script}</script>
</body></html>
"""


def _asset(name: str) -> str:
    return files("marginbayes.report").joinpath(name).read_text(encoding="utf-8")


def _contents(found: list[Findings]) -> str:
    titles = {o.experiment.name: o.experiment.title for o in found}
    if any(o.records for o in found):
        titles["methods"] = TITLE
    return "".join(f'<li><a href="#{escape(name)}">{escape(title)}</a></li>' for name, title in titles.items())


def _methods(found: list[Findings], index: Index) -> str:
    grid = method_grid(found)
    return f'<h2 id="methods">{TITLE}</h2>{as_html(grid, index)}' if grid.rows else ""


def _state(found: list[Findings]) -> str:
    done, failed = sum(len(o.records) for o in found), sum(len(o.failed) for o in found)
    tasks = sum(len(o.experiment.tasks()) for o in found)
    packages = made_with(r for o in found for r in o.records)
    lost = f", {failed} failed or given up" if failed else ""
    return f"{done} of {tasks} tasks finished{lost}." + (f" {packages}." if packages else "")
