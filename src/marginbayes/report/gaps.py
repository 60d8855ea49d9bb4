"""What exact learners proved: how far from their bounds they ended, beside the paper, and solve by solve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from marginbayes.report.grid import Entry, Grid, Row, entry
from marginbayes.report.results import Findings
from marginbayes.study.records import Record

__all__ = ["certificate_grid", "gap_grid"]


def gap_grid(outcome: Findings) -> Grid:
    """How far from their bounds exact learners ended, for sets with an open solve or with a published gap."""
    gaps = outcome.experiment.extra.get("gaps", {"rows": {}, "columns": []})
    proved = {r.key: c["status"] == "optimal" for r in outcome.records if (c := _certificate(r))}
    solved = [r for r in outcome.records if r.key in proved]
    left = [r for r in solved if not proved[r.key]]
    methods = [m for m in outcome.methods if m in gaps["columns"] or any(r.method == m for r in left)]
    shown = [r for r in solved if r.method in methods]
    rows = []
    for dataset in outcome.experiment.sets:
        own = {m: [r for r in solved if (r.dataset, r.method) == (dataset, m)] for m in methods}
        if any(own.values()) and (dataset in gaps["rows"] or any(r.dataset == dataset for r in left)):
            rows.append(Row((dataset,), tuple(_gap(own[m], gaps, dataset, m) for m in methods)))
    caption = (
        "100 (bound - objective) / bound, the largest of the splits, for sets on which a solve ended at its time limit "
        f"here or in the paper. Of {len(shown)} solves of these methods, {len(shown) - len(left)} are proved optimal."
    )
    return Grid("Gaps of exact learners, in per cent", caption, ("data set", *methods), tuple(rows))


def _gap(records: Sequence[Record], gaps: Mapping[str, Any], dataset: str, method: str) -> Entry:
    row, columns = gaps["rows"].get(dataset), list(gaps["columns"])
    theirs = row[columns.index(method)] if row and method in columns else None
    published = "" if theirs is None else f"{theirs:.2f}" if math.isfinite(theirs) else "∞"
    certificates = [r.result["structure_certificate"] for r in records]
    if not certificates:
        return Entry(published=published)
    if any(c["bound"] is None for c in certificates):
        return entry("∞", records, published, math.inf)
    ours = max(100 * _relative(c["objective"], c["bound"]) for c in certificates)
    return entry(f"{ours:.2f}", records, published, ours)


def certificate_grid(outcome: Findings) -> Grid:
    """What exact learners proved, solve by solve: objective, bound and gap of the last one."""
    rows = []
    for record in sorted(outcome.records, key=lambda r: (r.dataset, r.method, r.split)):
        if found := _certificate(record):
            numbers = [found["objective"], found["bound"], found["gap"], found["seconds"]]
            entries = [Entry() if n is None else entry(f"{n:.6g}", [record]) for n in numbers]
            rows.append(Row((record.dataset, record.method, record.split, found["status"]), tuple(entries)))
    head = ("data set", "method", "split", "status", "objective", "bound", "gap", "seconds")
    return Grid("Certificates", "Gap: (bound - objective) / max(1, |objective|).", head, tuple(rows))


def _certificate(record: Record) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = record.result.get("structure_certificate")
    return found


def _relative(objective: float, bound: float) -> float:
    """Distance to the bound as a share of it, as the papers print it."""
    return abs(bound - objective) / abs(bound) if bound != objective else 0.0
