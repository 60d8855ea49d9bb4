"""Records as tables: for each experiment, a cell for every data set and method that is finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from marginbayes.study.protocol import split_names
from marginbayes.study.records import Record
from marginbayes.study.spec import Experiment, Method, Study
from marginbayes.study.statistics import LEVELS, Cell, beats, cell, over_sets, weighted_mean

__all__ = ["Findings", "made_with", "mean_over_sets", "outcomes"]

Table = Mapping[str, Mapping[str, Cell]]


@dataclass(frozen=True)
class Seconds:
    """Where records have the seconds of a fit, and what a caption says of them."""

    key: str
    said: str


CLOCK = Seconds(
    "fit_seconds",
    "Seconds of a fit, tuning with it, are by the clock of a machine that did other work as well.",
)
PROCESSOR = Seconds("fit_processor_seconds", "Seconds of a fit, tuning with it, are of the processor.")


@dataclass(frozen=True)
class Findings:
    """An experiment with what was found: cells by data set and method, and records that failed.

    `informed` has, by method and data set, cells of other experiments: of methods that are like one of this experiment
    but order features by information where it draws orders.
    """

    experiment: Experiment
    table: Table
    records: tuple[Record, ...]
    failed: tuple[Record, ...]
    informed: Table = field(default_factory=dict)

    @property
    def methods(self) -> list[str]:
        """Methods with at least one finished cell, in the order of the study."""
        return [m.name for m in self.experiment.methods if any(m.name in cells for cells in self.table.values())]

    @property
    def is_whole(self) -> bool:
        """Whether all rows learn and are tested, so that accuracies are those on the training rows."""
        return bool(self.experiment.protocol.get("whole"))

    @property
    def seconds(self) -> Seconds:
        """Those of the processor where every record has them; older ones have those of the clock alone."""
        return PROCESSOR if all(PROCESSOR.key in r.result for r in self.records) else CLOCK

    def missing(self) -> list[tuple[str, str]]:
        """What has no result, and why: sets that cannot be had, methods too long for a set, tasks not run yet."""
        found = [*self.experiment.absent.items()]
        for method, reasons in self.experiment.skip.items():
            found += [(f"{method} on {dataset}", why) for dataset, why in reasons.items()]
        found += [(f"{r.method} on {r.dataset}", r.result["ended"]) for r in self.records if "ended" in r.result]
        known, left = {r.key for r in (*self.records, *self.failed)}, dict[str, list[str]]()
        for task in self.experiment.tasks() if known else ():
            if task.key not in known:
                left.setdefault(task.method.name, []).append(task.dataset)
        return found + [
            (
                method,
                f"{len(sets)} {'task' if len(sets) == 1 else 'tasks'} not run yet on {', '.join(dict.fromkeys(sets))}",
            )
            for method, sets in left.items()
        ]

    def of(self, method: str) -> list[Record]:
        """Finished tasks of a method."""
        return [r for r in self.records if r.method == method]

    def shared(self, *methods: str) -> Table:
        """Cells of the sets that all of these methods finished; of all methods if none is named."""
        wanted = {*(methods or self.methods)}
        return {dataset: cells for dataset, cells in self.table.items() if wanted <= cells.keys()}

    def comparable(self, *methods: str) -> Table:
        """Cells of those sets for which the paper has a number of each; of all where it has none of such sets."""
        shared, published = self.shared(*methods), self.experiment.published
        both = {d: c for d, c in shared.items() if published and all(published.get(d, m) for m in methods)}
        return both or shared

    def shared_records(self, *methods: str, as_published: bool = False) -> list[list[Record]]:
        """For each method, its records on the sets that all of them finished, or on those the paper has as well."""
        cells = (self.comparable if as_published else self.shared)(*methods).values()
        return [[r for c in cells for r in c[method].records] for method in methods]

    def averages(self, weighted: bool) -> dict[str, float]:
        """Mean accuracy of each method over the data sets that all methods finished, if there are several."""
        shared = self.shared()
        if len(shared) < 2:
            return {}
        mean = weighted_mean if weighted else lambda cells: sum(c.accuracy for c in cells) / len(cells)
        return {m: mean([cells[m] for cells in shared.values()]) for m in self.methods}

    def wins(self, first: str, second: str, as_published: bool = False) -> tuple[int, ...]:
        """On how many sets the first method beats the second, at 68 % and at 95 %; or of those the paper has too."""
        cells = (self.comparable if as_published else self.shared)(first, second)
        tested = [beats(c[first], c[second]) for c in cells.values()]
        return tuple(sum(p < level for p in tested) for level in LEVELS)

    def significance(self, first: str, second: str) -> tuple[float, str]:
        """P-value over sets that both finished, and an arrow to the better, if any: up second, left first."""
        shared = self.shared(first, second).values()
        if len(shared) < 2:
            return 1.0, ""
        ours, theirs = ([cells[name] for cells in shared] for name in (first, second))
        ahead = over_sets(ours, theirs)
        behind = over_sets(theirs, ours)
        if ahead == behind:
            return behind, ""
        p, arrows = (ahead, "←⇐") if ahead < behind else (behind, "↑⇑")
        return p, arrows[p < 0.05]

    def relative_times(self) -> dict[str, dict[str, float]]:
        """Seconds of structure learning in per cent of the last method's, for each group of sets of the study."""
        found = {}
        for group in self.experiment.extra.get("groups", {}):
            total = {m: _structure_seconds(self.timed(group, m)) for m in self.methods}
            if all(total.values()):
                found[group] = {m: 100.0 * total[m] / total[self.methods[-1]] for m in self.methods}
        return found

    def timed(self, group: str, method: str) -> list[Record]:
        """Records of a method on the sets of a group that all methods finished."""
        shared = self.shared()
        return [r for s in self.experiment.extra["groups"][group] if s in shared for r in shared[s][method].records]


def mean_over_sets(cells: Iterable[Cell], key: str) -> float | None:
    """Mean over the sets of what their records have under a key on average, None where nothing is."""
    known = ([r.result[key] for r in cell.records if key in r.result] for cell in cells)
    means = [sum(values) / len(values) for values in known if values]
    return sum(means) / len(means) if means else None


def _structure_seconds(records: list[Record]) -> float:
    """Sum over data sets of the mean over their splits."""
    seconds: dict[str, list[float]] = {}
    for record in records:
        seconds.setdefault(record.dataset, []).append(record.result["structure_seconds"])
    return sum(sum(s) / len(s) for s in seconds.values())


def outcomes(study: Study, records: Iterable[Record]) -> list[Findings]:
    """What was found in each experiment; a cell counts when all of its splits are finished."""
    known = list(records)
    found = [_outcome(experiment, known) for experiment in study.experiments]
    return [replace(o, informed=_informed(o, found)) if o.experiment.kind == "orders" else o for o in found]


def _outcome(experiment: Experiment, records: list[Record]) -> Findings:
    keys = {task.key for task in experiment.tasks()}
    own = [r for r in records if r.key in keys]
    done: dict[tuple[str, str], list[Record]] = {}
    for record in own:
        if record.status == "done":
            done.setdefault((record.dataset, record.method), []).append(record)
    table: dict[str, dict[str, Cell]] = {}
    for dataset in experiment.sets:
        splits = len(split_names(experiment.protocol, dataset))
        cells = {m.name: done.get((dataset, m.name), []) for m in experiment.methods}
        table[dataset] = {name: cell(found) for name, found in cells.items() if len(found) == splits}
    finished = [r for found in done.values() for r in found]
    return Findings(experiment, table, tuple(finished), tuple(r for r in own if r.status != "done"))


def _informed(outcome: Findings, found: list[Findings]) -> Table:
    """By method and data set, what methods reach that differ by their order alone, tested on the same rows."""
    drawn = [_but_order(m) for m in outcome.experiment.methods if _order(m) == "random"]
    cells: dict[str, dict[str, Cell]] = {}
    for other in found:
        alike = [m.name for m in other.experiment.methods if _order(m) == "mi" and _but_order(m) in drawn]
        for dataset, own in other.table.items() if other.experiment.kind != "orders" else ():
            if _tested(other.experiment, dataset) == _tested(outcome.experiment, dataset):
                for name in alike:
                    if name in own:
                        cells.setdefault(name, {}).setdefault(dataset, own[name])
    return cells


def _order(method: Method) -> object:
    return method.options.get("structure_options", {}).get("order")


def _but_order(method: Method) -> dict[str, object]:
    own = {k: v for k, v in method.options.get("structure_options", {}).items() if k != "order"}
    return {**method.options, "structure_options": own}


def _tested(experiment: Experiment, dataset: str) -> tuple[object, ...]:
    """How the rows of a set are split."""
    protocol = {**experiment.protocol, "test": experiment.protocol.get("test", {}).get(dataset)}
    return experiment.seed, dataset in experiment.sets, protocol


def made_with(records: Iterable[Record]) -> str:
    """Every version of every package, and every machine, that records were made with."""
    used: dict[str, set[str]] = {}
    for record in records:
        for name, value in record.versions.items():
            used.setdefault(name, set()).add(value)
    return ", ".join(f"{name} {' and '.join(sorted(values))}" for name, values in used.items())
