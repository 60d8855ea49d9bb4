"""Curves: a measure along the number of training rows, of variables or of missing features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from marginbayes.report.grid import Entry, Grid, Row, entry
from marginbayes.report.results import Findings
from marginbayes.study.records import Record
from marginbayes.study.spec import Experiment

__all__ = ["Curves", "curve_grid", "curves"]

# What a size is where a rule generates the set; elsewhere it is so many rows, or positions of sequences, that learn.
COUNTED = {"random-distribution": "variables", "class-trees": "features", "skewed-chain": "training sequences"}
MISSING = "missing features"
Place = Mapping[str, list[tuple[float, Record]]]


@dataclass(frozen=True)
class Curves:
    """For each data set, and for all together where they share an axis, the values of each method at each place.

    Values are those of the splits that all methods with a result at the place finished.
    """

    label: str
    measure: str
    digits: int
    methods: tuple[str, ...]
    found: Mapping[str, Mapping[float, Place]]

    def series(self, name: str) -> dict[str, list[tuple[float, float]]]:
        """Points of the mean curve of each method on a data set."""
        places = self.found[name]
        curves = {m: [(p, _mean(places[p][m])) for p in places if places[p].get(m)] for m in self.methods}
        return {m: curve for m, curve in curves.items() if curve}


def curves(outcome: Findings) -> Curves | None:
    """The curves of an experiment, None where it has no axis."""
    experiment = outcome.experiment
    missing = experiment.kind == "missing"
    if not missing and "sizes" not in experiment.protocol:
        return None
    likely = any(claim["measure"] == "likelihoods" for claim in experiment.claims)
    key = "train_cll" if likely else "accuracy"
    names = [d for d in experiment.sets if any(r.dataset == d for r in outcome.records)]
    found = {name: _places([r for r in outcome.records if r.dataset == name], key) for name in names}
    if len(names) > 1 and not missing:  # so many features are few of one set and most of another
        found = {f"all {len(names)} sets": _places(outcome.records, key), **found}
    done = {r.method for r in outcome.records}
    methods = tuple(m.name for m in experiment.methods if m.name in done)
    measure = "conditional log-likelihood of the training rows" if likely else "accuracy, %"
    return Curves(MISSING if missing else _size(experiment), measure, 1 if likely else 2, methods, found)


def _size(experiment: Experiment) -> str:
    """What the sizes of a protocol count, if it is the same for all sets."""
    rest = "training positions" if experiment.kind == "label" else "training rows"
    counted = {COUNTED.get(name, rest) for name in experiment.sets}
    return counted.pop() if len(counted) == 1 else "size"


def curve_grid(found: Curves) -> Grid:
    """Means of the methods, a row for each place."""
    several = len(found.found) > 1
    rows = [
        Row(
            ((name,) if several else ()) + (f"{place:g}",),
            tuple(_entry(values.get(m, []), found.digits, place) for m in found.methods),
        )
        for name, places in found.found.items()
        for place, values in places.items()
    ]
    what = found.measure.replace(", %", " in per cent")
    caption = f"Mean {what}, each row over the splits that all methods in it finished."
    if found.label == MISSING:
        caption += " ± standard deviation over the draws of what is missing."
    head = (("data set",) if several else ()) + (found.label, *found.methods)
    return Grid("", caption, head, tuple(rows))


def _entry(values: list[tuple[float, Record]], digits: int, place: float) -> Entry:
    if not values:
        return Entry()
    drawn = [100 * std for _, r in values for count, _, std in r.result.get("curve", ()) if count == place]
    spread = f" ± {np.mean(drawn):.{digits}f}" if any(drawn) else ""
    return entry(f"{_mean(values):.{digits}f}{spread}", [r for _, r in values])


def _mean(values: list[tuple[float, Record]]) -> float:
    return float(np.mean([value for value, _ in values]))


def _places(records: list[Record] | tuple[Record, ...], key: str) -> dict[float, Place]:
    """At each place, what each method reaches on the splits that all methods with a result there finished."""
    found: dict[float, dict[str, dict[tuple[str, str], tuple[float, Record]]]] = {}
    for record in records:
        for place, value in _points(record, key):
            found.setdefault(place, {}).setdefault(record.method, {})[record.dataset, record.split] = value, record
    shared = {place: set.intersection(*(set(own) for own in found[place].values())) for place in sorted(found)}
    return {
        place: {m: [own[split] for split in own if split in splits] for m, own in found[place].items()}
        for place, splits in shared.items()
    }


def _points(record: Record, key: str) -> list[tuple[float, float]]:
    if "curve" in record.result:
        return [(float(count), 100 * rate) for count, rate, *_ in record.result["curve"]]
    value = record.result[key]
    return [(float(record.split.split("-")[0]), 100 * value if key == "accuracy" else value)]
