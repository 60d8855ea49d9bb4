"""A study as it is written down: a TOML file with methods, experiments, and what a paper published."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from marginbayes.study.entries import Options, check_table, listed, numbers, of_type, refuse, whole_number

__all__ = ["Experiment", "Method", "Published", "Study", "Task", "load_study"]

# What a method, and a protocol, may say; anything else is a slip of the pen that would change what is measured.
METHOD = {
    *("estimator", "structure", "structure_options", "structure_rows", "parameters", "parameters_options"),
    *("smoothing", "discretizer", "missing", "grid", "expected", "inputs", "options", "C", "gamma"),
}
PROTOCOL = {
    *("folds", "repeats", "sizes", "test", "test_positions", "whole", "complete", "keep", "first", "levels"),
    "generate",
}
EXTRA = {"average", "gaps", "groups", "significance", "wins"}
KNOWN = EXTRA | {
    *("title", "kind", "sets", "methods", "protocol", "seed", "options"),
    *("published", "claims", "absent", "skip", "quick", "note"),
}


@dataclass(frozen=True)
class Method:
    """A way to learn a classifier.

    Parameters
    ----------
    name : str
        In the tables of the study.
    options : mapping
        What `marginbayes.study.methods.build` makes an estimator of.
    expected : (float, float)
        Seconds of one task before anything was measured: fixed, and for each million of training cells.
    """

    name: str
    options: Options
    expected: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True)
class Published:
    """Numbers of a paper's table: for each row and column a value and the half-width of its interval, or None."""

    rows: Mapping[str, Mapping[str, tuple[float, float | None]]]
    source: str = ""

    def get(self, row: str, column: str) -> tuple[float, float | None] | None:
        """The published number of a cell, None where the paper has none."""
        return self.rows.get(row, {}).get(column)


@dataclass(frozen=True)
class Task:
    """One thing to run: a method on one split of one data set, in one experiment."""

    experiment: str
    kind: str
    dataset: str
    method: Method
    split: str
    seed: int
    options: Options = field(hash=False, default_factory=dict)

    @property
    def key(self) -> str:
        """Name by which a finished task is found again; another definition of the task is another task."""
        what = {
            "kind": self.kind,
            "method": dict(self.method.options),
            "options": dict(self.options),
            "seed": self.seed,
        }
        text = json.dumps(what, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        return "/".join((self.experiment, self.dataset, self.method.name, self.split, digest))


@dataclass(frozen=True)
class Experiment:
    """Data sets, methods, how rows are split, and the numbers to compare with.

    `absent` names sets that cannot be had, `skip` says for a method why it is not run on a set.
    """

    name: str
    title: str
    kind: str
    sets: tuple[str, ...]
    methods: tuple[Method, ...]
    protocol: Options
    seed: int
    options: Options = field(default_factory=dict)
    published: Published | None = None
    claims: tuple[Options, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict)
    skip: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    quick: Options = field(default_factory=dict)
    note: str = ""
    extra: Options = field(default_factory=dict)  # further published things that only a report reads

    def tasks(self) -> list[Task]:
        """Everything to run, set by set, so that a set is complete before the next one begins."""
        from marginbayes.study.protocol import split_names

        own = {**self.options, "protocol": dict(self.protocol)}
        return [
            Task(self.name, self.kind, dataset, method, split, self.seed, own)
            for dataset in self.sets
            for split in split_names(self.protocol, dataset)
            for method in self.methods
            if dataset not in self.skip.get(method.name, {})
        ]

    def shortened(self) -> Experiment | None:
        """The part that ends in minutes, None where there is none."""
        if not self.quick:
            return None
        sets = tuple(self.quick.get("sets", self.sets))
        names = self.quick.get("methods", [m.name for m in self.methods])
        protocol = {**self.protocol, **self.quick.get("protocol", {})}
        options = {**self.options, **self.quick.get("options", {})}
        methods = tuple(m for m in self.methods if m.name in names)
        return replace(self, sets=sets, methods=methods, protocol=protocol, options=options)


@dataclass(frozen=True)
class Study:
    """All experiments about one paper."""

    name: str
    title: str
    paper: str
    experiments: tuple[Experiment, ...]
    path: str = ""  # of its file, from where it was read; nothing where that is a place on one machine

    def tasks(self) -> list[Task]:
        """Everything to run."""
        return [task for experiment in self.experiments for task in experiment.tasks()]

    def shortened(self) -> Study:
        """The part that ends in minutes."""
        short = [e.shortened() for e in self.experiments]
        if not any(short):
            names = [e.name for e in self.experiments]
            raise ValueError(
                f"{self.name} has no short form of {', '.join(names)}; add a table [experiments.{names[0]}.quick], "
                "or leave out --quick"
            )
        return replace(self, experiments=tuple(e for e in short if e is not None))

    def only(self, experiments: Sequence[str] = (), sets: Sequence[str] = (), methods: Sequence[str] = ()) -> Study:
        """The part with these experiments, data sets and methods; an unknown name is an error."""
        known = {
            "experiment": {e.name for e in self.experiments},
            "data set": {s for e in self.experiments for s in e.sets},
            "method": {m.name for e in self.experiments for m in e.methods},
        }
        for what, asked in (("experiment", experiments), ("data set", sets), ("method", methods)):
            for name in asked:
                if name not in known[what]:
                    raise ValueError(f"{self.name} has no {what} {name!r}; it has {', '.join(sorted(known[what]))}")
        kept = [
            replace(
                e,
                sets=tuple(s for s in e.sets if not sets or s in sets),
                methods=tuple(m for m in e.methods if not methods or m.name in methods),
            )
            for e in self.experiments
            if not experiments or e.name in experiments
        ]
        return replace(self, experiments=tuple(kept))


def load_study(path: str | Path) -> Study:
    """Study in a TOML file."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the TOML file of a study in it")
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a study: {error}") from None
    for needed in ("title", "methods", "experiments"):
        if needed not in document:
            raise ValueError(f"{path} is not a study: it lacks {needed!r}")
    methods = {
        name: _method(name, check_table(options, METHOD, f"{path}: method {name!r}"), f"{path}: method {name!r}")
        for name, options in check_table(document["methods"], None, f"{path}: methods").items()
    }
    title, seed = of_type(document, "title", "", "a text", str(path)), whole_number(document, "seed", 0, 0, str(path))
    experiments = tuple(
        _experiment(name, check_table(entry, KNOWN, f"{path}: experiment {name!r}"), methods, seed, str(path))
        for name, entry in check_table(document["experiments"], None, f"{path}: experiments").items()
    )
    if not experiments:
        raise ValueError(f"{path} is not a study: it has no experiment")
    paper, place = of_type(document, "paper", "", "a text", str(path)), "" if path.is_absolute() else path.as_posix()
    return Study(path.stem, title, paper, experiments, place)


def _protocol(entry: Options, where: str) -> Options:
    """The protocol of an experiment, or of its quick form."""
    found = check_table(entry.get("protocol", {}), PROTOCOL, f"{where}: protocol")
    for name, least in (("folds", 2), ("repeats", 1)):
        whole_number(found, name, least, least, f"{where}: protocol")
    if "sizes" in found:
        listed(found, "sizes", f"{where}: protocol", int)
    return found


def _quick(entry: Options, where: str) -> Options:
    """The short form of an experiment."""
    found = check_table(entry.get("quick", {}), {"sets", "methods", "protocol", "options"}, f"{where}: quick")
    _protocol(found, f"{where}: quick")
    for key in found.keys() & {"sets", "methods"}:
        listed(found, key, f"{where}: quick")
    for method in {*found.get("methods", ())} - {*entry["methods"]}:
        raise ValueError(f"{where}: quick names the method {method!r}, which the experiment does not have")
    of_type(found, "options", {}, "a table", f"{where}: quick")
    return found


def _method(name: str, options: Options, where: str) -> Method:
    rest = {key: value for key, value in options.items() if key != "expected"}
    expected = numbers(options.get("expected", [1.0, 1.0]), 2)
    if expected is None:
        refuse("expected", options["expected"], "two numbers: seconds, and seconds for a million of cells", where)
    return Method(name, rest, (expected[0], expected[1]))


def _experiment(name: str, entry: Options, methods: Mapping[str, Method], seed: int, path: str) -> Experiment:
    where = f"{path}: experiment {name!r}"
    for needed in ("title", "methods", "sets"):
        if needed not in entry:
            raise ValueError(f"{where} lacks {needed!r}")
    chosen, sets = listed(entry, "methods", where), listed(entry, "sets", where)
    for method in chosen:
        if method not in methods:
            raise ValueError(f"{where} names the method {method!r}, which is not defined")
    return Experiment(
        name,
        of_type(entry, "title", "", "a text", where),
        of_type(entry, "kind", "classify", "a text", where),
        sets,
        tuple(methods[m] for m in chosen),
        _protocol(entry, where),
        whole_number(entry, "seed", seed, 0, where),
        of_type(entry, "options", {}, "a table", where),
        _published(entry["published"], f"{where}: published") if "published" in entry else None,
        tuple(check_table(claim, None, f"{where}: claims") for claim in of_type(entry, "claims", [], "a list", where)),
        of_type(entry, "absent", {}, "a table", where),
        _skip(entry, where),
        _quick(entry, where),
        " ".join(of_type(entry, "note", "", "a text", where).split()),
        {key: value for key, value in entry.items() if key in EXTRA},
    )


def _skip(entry: Options, where: str) -> Mapping[str, Mapping[str, str]]:
    """For a method, the sets that it leaves out and why."""
    found: Mapping[str, Mapping[str, str]] = of_type(entry, "skip", {}, "a table", where)
    for method, sets in found.items():
        check_table(sets, None, f"{where}: skip of {method!r}")
        for unknown in ({method} - {*entry["methods"]}) | ({*sets} - {*entry["sets"]}):
            raise ValueError(f"{where} leaves out {unknown!r}, which it does not have")
    return found


def _published(entry: Any, where: str) -> Published:
    check_table(entry, {"source", "columns", "rows"}, where)
    for needed in ("columns", "rows"):
        if needed not in entry:
            raise ValueError(f"{where} lacks {needed!r}")
    columns, rows = listed(entry, "columns", where), {}
    for row, cells in check_table(entry["rows"], None, f"{where}: rows").items():
        if not isinstance(cells, list) or len(cells) != len(columns):
            raise ValueError(f"{where}: the row {row!r} should be a list of {len(columns)} cells, one for each column")
        there = {c: cell for c, cell in zip(columns, cells, strict=True) if cell != "-"}
        rows[row] = {column: _cell(cell, f"{where}: the row {row!r}", column) for column, cell in there.items()}
    return Published(rows, entry.get("source", ""))


def _cell(cell: Any, where: str, column: str) -> tuple[float, float | None]:
    """A published number and the half-width of its interval, if it has one."""
    if (pair := numbers(cell, 2)) is not None:
        return pair[0], pair[1]
    alone = numbers([cell], 1)
    if alone is None:
        refuse(column, cell, "a number, a number and its half-width in a list, or '-' for none", where)
    return alone[0], None
