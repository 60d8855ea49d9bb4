"""One section for each experiment, as HTML: its grids, its curves, its comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from marginbayes.report.charts import critical_difference, lines, scatter
from marginbayes.report.claims import judged
from marginbayes.report.curves import curves
from marginbayes.report.facts import facts, members, ranks
from marginbayes.report.gaps import certificate_grid
from marginbayes.report.html import as_html
from marginbayes.report.index import Index
from marginbayes.report.results import Findings

__all__ = ["section"]

MOST_TRACES = 12


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
    parts = [*_curves(outcome), *(as_html(grid, index) for grid in facts(outcome))]
    if outcome.experiment.kind in ("classify", "parts") and "sizes" not in outcome.experiment.protocol:
        parts += [_rank_diagram(outcome), _time_chart(outcome), _certificates(outcome, index), _traces(outcome)]
    return [*parts, *_members(outcome, index)]


def _curves(outcome: Findings) -> list[str]:
    """A chart of the mean of each method along an axis, for every data set."""
    found = curves(outcome)
    if found is None:
        return []
    return [lines(found.series(name), found.label, found.measure, title=name) for name in found.found]


def _rank_diagram(outcome: Findings) -> str:
    found = ranks(outcome)
    if found is None:
        return ""
    return f"<figure>{critical_difference(found.ranks, found.critical, found.groups)}</figure>"


def _time_chart(outcome: Findings) -> str:
    averages = outcome.averages(weighted=False)
    points = {m: (sum(c[m].seconds for c in outcome.shared().values()), averages[m]) for m in averages}
    rows = " on the training rows" if outcome.is_whole else ""
    chart = scatter(points, "seconds of all fits", f"mean accuracy{rows}, %", "Accuracy against time")
    return f"<h3>Accuracy against time</h3>{chart}" if len(points) > 1 else ""


def _certificates(outcome: Findings, index: Index) -> str:
    grid = certificate_grid(outcome)
    return as_html(grid, index) if grid.rows else ""


def _traces(outcome: Findings) -> str:
    """Any-time curves of the solves that took longest: best objective and proved bound.

    The first bound, which holds before anything is solved, would set the scale, and nothing else could be seen.
    """
    found = [r for r in outcome.records if len(r.result.get("structure_certificate", {}).get("trace", ())) > 2]
    found.sort(key=lambda r: -r.result["structure_certificate"]["seconds"])
    charts = []
    for record in found[:MOST_TRACES]:
        trace = record.result["structure_certificate"]["trace"]
        series = {
            "objective": [(t, o) for t, o, _ in trace],
            "bound": [(t, b) for t, _, b in trace[1:] if b is not None],
        }
        title = f"{record.dataset}, {record.method}, {record.split}"
        charts.append(lines(series, "seconds", "margin score", log_x=True, steps=True, title=title))
    which = f"The {len(charts)} solves of {len(found)} that took longest" if len(found) > len(charts) else "All solves"
    note = f"{which}. The first bound, which holds before anything is solved, is left out."
    return f'<h3>Objective and bound over time</h3><p class="soft">{note}</p>{"".join(charts)}' if charts else ""


def _members(outcome: Findings, index: Index) -> list[str]:
    """Weak classifiers beside their combination."""
    return [
        f"<p>{index.opens(escape(f'{record.dataset}, {record.method}'), [record])}: {text}</p>"
        for record, text in members(outcome)
    ]


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
