"""Orders of features: accuracy over random ones beside the order by information, and conditional likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.report.grid import Entry, Grid, Row, entry
from marginbayes.report.results import Findings
from marginbayes.study.spec import Published
from marginbayes.study.statistics import Cell

__all__ = ["order_grids"]

# Statistics over random orders, and what the paper calls them.
STATISTICS = {"mean ± std": "mean", "median": "median", "worst on train": "min", "best on train": "max"}
CAPTION = (
    "Accuracy on the {rows} in per cent over {orders} random orders{means}. Worst and best on train: of the order with "
    "the lowest and the highest rate on the training rows. Likelihood: conditional log-likelihood of the training "
    "rows{sums}, mean ± standard deviation over the orders. Means of published numbers are over the same sets; the "
    "weighted mean is weighted by {rows}."
)
TESTED = {"rows": "test rows", "means": ", averaged over folds", "sums": ", summed over folds"}
WHOLE = {"rows": "training rows", "means": "", "sums": ""}


def order_grids(outcome: Findings) -> list[Grid]:
    """One method: how its accuracy spreads over random orders. Several: likelihood and accuracy of each."""
    if len(outcome.methods) == 1:
        return [_spread(outcome, outcome.methods[0])]
    return [
        _by_method(outcome, "Conditional log-likelihood of the training rows", "train_cll"),
        _by_method(outcome, f"Accuracy on the {_words(outcome)['rows']}, in per cent", "test_accuracies"),
    ]


def _words(outcome: Findings) -> Mapping[str, str]:
    """What the numbers are of."""
    return WHOLE if outcome.is_whole else TESTED


def _by_method(outcome: Findings, title: str, key: str) -> Grid:
    """A row for each set, a column for each method: mean and standard deviation over its orders."""
    rows = [
        Row((dataset,), tuple(_over_orders(cells[m], key) if m in cells else Entry() for m in outcome.methods))
        for dataset, cells in outcome.table.items()
        if cells
    ]
    caption = "Where orders are drawn: mean ± standard deviation over them."
    return Grid(title, caption, ("data set", *outcome.methods), tuple(rows))


def _over_orders(found: Cell, key: str) -> Entry:
    values, digits = _each_order(found, key), 1 if key == "train_cll" else 2
    drawn = f" ± {values.std():.{digits}f}" if len(values) > 1 else ""
    mean = float(values.mean())
    return entry(f"{mean:.{digits}f}{drawn}", found.records, value=mean)


def _each_order(found: Cell, key: str) -> NDArray[np.float64]:
    """What each order reaches: rates in per cent, averaged over folds, or likelihoods, summed over them."""
    folds = np.array([r.result[key] for r in found.records])
    total: NDArray[np.float64] = folds.sum(axis=0)
    return total if key == "train_cll" else 100 * total / len(folds)


@dataclass(frozen=True)
class _Column:
    """A statistic of the sets, and what the paper calls it."""

    title: str
    published: str
    entries: Mapping[str, Entry]


def _spread(outcome: Findings, method: str) -> Grid:
    """A row for each set: statistics over the random orders, the order by information, likelihood."""
    cells = {dataset: own[method] for dataset, own in outcome.table.items() if method in own}
    published = outcome.experiment.published or Published({})
    columns = [*_statistics(cells), *_informed(outcome, published)]
    rows = [
        Row((d,), (*(_beside(c, d, published) for c in columns), _over_orders(found, "train_cll")))
        for d, found in cells.items()
    ]
    if len(rows) > 1:
        rows += [_mean(columns, cells, published, weighted) for weighted in (False, True)]
    drawn = sorted({len(_each_order(found, "train_cll")) for found in cells.values()})
    caption = CAPTION.format(orders=" or ".join(map(str, drawn)), **_words(outcome))
    return Grid("", caption, ("data set", *(c.title for c in columns), "likelihood"), tuple(rows))


def _statistics(cells: Mapping[str, Cell]) -> list[_Column]:
    found: dict[str, dict[str, Entry]] = {title: {} for title in STATISTICS}
    for dataset, own in cells.items():
        pairs = [(r.result["test_accuracies"], r.result["train_accuracies"]) for r in own.records]
        ends = [100 * float(np.mean([test[pick(train)] for test, train in pairs])) for pick in (np.argmin, np.argmax)]
        middle = float(np.median(_each_order(own, "test_accuracies")))
        numbers = [entry(f"{n:.2f}", own.records, value=n) for n in (middle, *ends)]
        for title, shown in zip(STATISTICS, [_over_orders(own, "test_accuracies"), *numbers], strict=True):
            found[title][dataset] = shown
    return [_Column(title, STATISTICS[title], entries) for title, entries in found.items()]


def _informed(outcome: Findings, published: Published) -> list[_Column]:
    """The order by information: ours where another experiment has it, and the column that the paper has left."""
    names = dict.fromkeys(name for row in published.rows.values() for name in row)
    left = next((name for name in names if name not in STATISTICS.values()), "")
    found = [
        _Column(name, left, {d: entry(f"{c.accuracy:.2f}", c.records, value=c.accuracy) for d, c in cells.items()})
        for name, cells in outcome.informed.items()
    ]
    return found or ([_Column(left, left, {})] if left else [])


def _beside(column: _Column, dataset: str, published: Published) -> Entry:
    ours, theirs = column.entries.get(dataset, Entry()), published.get(dataset, column.published)
    if theirs is None:
        return ours
    spread = "" if theirs[1] is None else f" ± {theirs[1]:.2f}"
    return Entry(ours.text, f"{theirs[0]:.2f}{spread}", ours.records, ours.value)


def _mean(columns: list[_Column], cells: Mapping[str, Cell], published: Published, weighted: bool) -> Row:
    """Means over the sets, ours and those of the published numbers, where none is missing."""
    weights, shown = [c.tested if weighted else 1 for c in cells.values()], []
    for column in columns:
        own = [column.entries[d] for d in cells if d in column.entries]
        ours = [e.value for e in own if e.value is not None]
        theirs = [n[0] for d in cells if (n := published.get(d, column.published))]
        texts = [f"{np.average(v, weights=weights):.2f}" if len(v) == len(cells) else "" for v in (ours, theirs)]
        shown.append(entry(texts[0], [r for e in own for records in e.records for r in records], texts[1]))
    return Row(("weighted mean" if weighted else "mean",), (*shown, Entry()), mean=True)
