"""Accuracy of methods on data sets, beside the paper's numbers; on training and test rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from marginbayes.report.beside import CAPTION, HEAD, beside, is_apart
from marginbayes.report.grid import Entry, Grid, Row, entry
from marginbayes.report.results import Findings, mean_over_sets
from marginbayes.study.statistics import Cell

__all__ = ["accuracy_grid", "beside_grid", "train_grid"]


def accuracy_grid(outcome: Findings) -> Grid:
    """Accuracy of every method on every set, beside the published one.

    An entry is marked where ours and the published number are further apart than their intervals explain.
    """
    methods = outcome.methods
    rows = [
        Row((dataset,), tuple(_accuracy(outcome, dataset, cells.get(m), m) for m in methods))
        for dataset, cells in outcome.table.items()
        if cells
    ]
    rows += [*_means(outcome), *(_costs(outcome) if outcome.shared() else ())]
    measure, tested = ("Accuracy on the training rows", "") if outcome.is_whole else ("Accuracy", "test ")
    caption = f"{measure} in per cent with 95 % intervals."
    if outcome.averages(weighted=False):
        caption += (
            " The last rows are over the sets that all methods finished; the weighted mean is weighted by "
            f"{tested}rows."
        )
    if outcome.shared():
        caption += f" {outcome.seconds.said}"
    return Grid("", caption, ("data set", *methods), tuple(rows))


def _accuracy(outcome: Findings, dataset: str, found: Cell | None, method: str) -> Entry:
    published = outcome.experiment.published
    number = published.get(dataset, method) if published else None
    if found is None:
        return Entry(published=f"{number[0]:.2f}" if number else "")
    text, records = f"{found.accuracy:.2f} ± {found.half_width:.2f}", (found.records,)
    if number is None:
        return Entry(text, "", records, found.accuracy)
    difference = found.accuracy - number[0]
    shown = Entry(text, f"{number[0]:.2f}", records, found.accuracy, f"{difference:+.2f}")
    return replace(shown, mark="above" if difference > 0 else "below") if is_apart(found, number) else shown


def _means(outcome: Findings) -> list[Row]:
    rows, averaged = [], outcome.shared_records(*outcome.methods)
    for name, weighted in (("mean", False), ("weighted mean", True)):
        averages = outcome.averages(weighted)
        if not averages or len(outcome.table) < 2:
            continue
        shown = []
        for method, records in zip(outcome.methods, averaged, strict=True):
            ours, theirs = averages[method], _published_mean(outcome, method, weighted)
            known = ("", "") if theirs is None else (f"{theirs:.2f}", f"{ours - theirs:+.2f}")
            shown.append(Entry(f"{ours:.2f}", known[0], (records,), difference=known[1]))
        rows.append(Row((name,), tuple(shown), mean=True))
    return rows


def _costs(outcome: Findings) -> list[Row]:
    """Time and size of each method, averaged over the sets that all methods finished."""
    rows, shared = [], outcome.shared().values()
    costs = (("seconds of a fit", outcome.seconds.key, "{:.3g}"), ("parameters", "parameters", "{:.0f}"))
    for name, key, shown in costs:
        entries = []
        for method in outcome.methods:
            own = [found[method] for found in shared]
            known = mean_over_sets(own, key)
            entries.append(
                Entry() if known is None else entry(shown.format(known), (r for c in own for r in c.records))
            )
        rows.append(Row((name,), tuple(entries), mean=True))
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


def beside_grid(outcome: Findings) -> Grid:
    """How far each method is from the published numbers, how often above all of them, and what it costs."""
    rows = [
        Row((method,), tuple(entry(n, line.records) if n else Entry() for n in numbers))
        for line in beside(outcome)
        for method, *numbers in [line.texts()]
    ]
    return Grid("Beside the paper", CAPTION, HEAD, tuple(rows))


def train_grid(outcome: Findings) -> Grid:
    """Accuracy on training and test rows, where the paper speaks of both."""
    rows = []
    if any(claim["measure"] == "trend" for claim in outcome.experiment.claims):
        for dataset, cells in outcome.table.items():
            for method, found in cells.items():
                means = [100 * np.mean([r.result[k] for r in found.records]) for k in ("train_accuracy", "accuracy")]
                rows.append(
                    Row(
                        (dataset, method),
                        tuple(entry(t, found.records) for t in [*map("{:.2f}".format, means), *_weights(found)]),
                    )
                )
    head = ("data set", "method", "training rows", "test rows", "weights", "equal from D =")
    caption = "Accuracy in per cent; the weights of a combination, and the pull from which on all of them are equal."
    return Grid("Training and test rows", caption, head, tuple(rows))


def _weights(found: Cell) -> list[str]:
    """Smallest and largest weight of a combination, and the D that makes all equal; nothing where no record says."""
    known = [r.result["weights"] for r in found.records if "weights" in r.result]
    if not known:
        return ["", ""]
    least, most = (known[0][end] for end in ("least", "most"))
    spread = "equal" if known[0]["equal"] else f"{least:.3f} to {most:.3f}"
    return [spread, f"{known[0]['equal_from']:.3g}"]
