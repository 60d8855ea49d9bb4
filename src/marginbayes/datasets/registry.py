"""Data sets by name: from the data home, scikit-learn, a rule that generates them, or OpenML."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from marginbayes import checks
from marginbayes.datasets import bundled, generators, home, openml, synthetic
from marginbayes.datasets.bundled import BUNDLED
from marginbayes.datasets.catalogue import (
    ALIASES,
    BOOKKEEPING,
    GENERATED,
    HALVED,
    MISSING_LEVELS,
    OPENML,
    Size,
)
from marginbayes.datasets.dataset import Dataset, pandas
from marginbayes.datasets.images import halved
from marginbayes.datasets.openml import Entry

__all__ = ["Record", "available", "fetch", "load", "where"]

Source = Literal["home", "bundled", "generated", "openml"]
StrPath = str | os.PathLike[str]

SOURCES: tuple[Source, ...] = ("home", "bundled", "generated", "openml")

_OPENML_NUMBER = re.compile(r"openml:([1-9][0-9]*)")
_GENERATORS: dict[str, Callable[[], Dataset]] = {
    "corral": generators.corral,
    "mofn-3-7-10": generators.mofn_3_7_10,
    "monks-1": lambda: generators.monks(1),
    "monks-2": lambda: generators.monks(2),
    "monks-3": lambda: generators.monks(3),
    "waveform-21": generators.waveform,
    "informative-edge": synthetic.informative_edge,
    "class-trees": synthetic.class_trees,
    "skewed-moral": lambda: synthetic.skewed_network(synthetic.MORAL),
    "skewed-immoral": lambda: synthetic.skewed_network(synthetic.IMMORAL),
    "skewed-chain": synthetic.skewed_chain,
}


@dataclass(frozen=True)
class Record:
    """One line of the list of data sets; a size is None where it is known only after loading.

    `features` counts the columns that `load` returns, `problem` says why a set in the data home is unusable.
    """

    name: str
    rows: int | None
    features: int | None
    classes: int | None
    source: str
    place: str
    problem: str | None = None


def load(
    name: str,
    *,
    complete: bool = False,
    keep_ids: bool = False,
    missing: Literal["meant", "nan"] = "meant",
    source: Source | None = None,
    home: StrPath | None = None,
    cache: StrPath | None = None,
) -> Dataset:
    """Data set of this name, from the first source that has it: data home, bundled, generated, OpenML.

    Parameters
    ----------
    name : str
        A name that `available` lists, or "openml:NUMBER" for any dense classification set of OpenML.
    complete : bool
        Whether to drop the rows in which a feature is missing.
    keep_ids : bool
        Whether to put the bookkeeping columns in front of the features instead of into `ids`.
    missing : {"meant", "nan"}
        What an empty cell becomes: what it means in this set, which in `vote` is a third answer and elsewhere
        unknown, or always unknown.
    source : {None, "home", "bundled", "generated", "openml"}, default=None
        The only source to use.
    home : path, optional
        Data home to use instead of the one that MARGINBAYES_DATA names.
    cache : path, optional
        Folder for fetched files instead of the one that MARGINBAYES_CACHE names.

    Examples
    --------
    >>> from marginbayes import datasets
    >>> datasets.load("monks-1")
    Dataset('monks-1': 556 rows, 6 features, 2 classes)
    """
    pandas()
    checks.one_of("missing", missing, ("meant", "nan"))
    checks.one_of("source", source, (None, *SOURCES))
    place = _finder(home, cache).find(name, source)
    data = place.read()
    if missing == "meant" and place.name in MISSING_LEVELS:
        data = _fill(data, MISSING_LEVELS[place.name])
    data = _set_apart(data, BOOKKEEPING.get(place.name, ()))
    if keep_ids and data.ids is not None:
        data = replace(data, X=pandas().concat([data.ids, data.X], axis=1), ids=None)
    return data.complete_cases() if complete else data


def available(*, home: StrPath | None = None, cache: StrPath | None = None) -> list[Record]:
    """Records of all data sets known by name, sorted; each with the source that `load` would use.

    Parameters
    ----------
    home : path, optional
        Data home to use instead of the one that MARGINBAYES_DATA names.
    cache : path, optional
        Folder for fetched files instead of the one that MARGINBAYES_CACHE names.
    """
    finder = _finder(home, cache)
    return [finder.find(name).record() for name in finder.known()]


def where(name: str, *, home: StrPath | None = None, cache: StrPath | None = None) -> str:
    """Place from which `load` would take a data set: a folder, a function, or an address to fetch it from."""
    return _finder(home, cache).find(name).where


def fetch(name: str, *, refresh: bool = False, home: StrPath | None = None, cache: StrPath | None = None) -> str:
    """Place of a data set after making sure that `load` needs no network for it.

    Parameters
    ----------
    name : str
        A name that `available` lists, or "openml:NUMBER".
    refresh : bool
        Whether to fetch an OpenML set again although it is in the cache.
    home : path, optional
        As in `load`.
    cache : path, optional
        As in `load`.
    """
    place = _finder(home, cache).find(name)
    if place.entry is not None:
        openml.fetch(place.entry, cache=cache, refresh=refresh)
    return where(name, home=home, cache=cache)


# -- finding a set


@dataclass(frozen=True)
class _Place:
    """A data set that has been found, not yet read."""

    name: str
    source: Source
    where: str
    size: Callable[[], Size]
    read: Callable[[], Dataset]
    entry: Entry | None = None

    def record(self) -> Record:
        size, problem = Size(), None
        try:
            size = self.size()
        except ValueError as error:
            problem = str(error)
        return Record(self.name, size.rows, size.features, size.classes, self.source, self.where, problem)


@dataclass(frozen=True)
class _Finder:
    """The data home and cache of one call, with the names in the home read once."""

    folder: Path | None
    in_home: frozenset[str]
    cache: StrPath | None

    def known(self) -> list[str]:
        return sorted({*self.in_home, *BUNDLED, *_GENERATORS, *OPENML, *HALVED})

    def find(self, name: str, source: Source | None = None) -> _Place:
        """First source that has the name, or the one asked for."""
        known = name if name in self.in_home else ALIASES.get(name, name)
        for look in (self._in_home, _bundled, _generated, self._on_openml):
            place = look(known)
            if place is not None and source in (None, place.source):
                return place
        if known in HALVED:
            return _halved(known, self.find(HALVED[known], source))
        raise ValueError(self._unknown(name, source))

    def _in_home(self, name: str) -> _Place | None:
        if self.folder is None or name not in self.in_home:
            return None
        path = self.folder / name
        return _Place(name, "home", str(path), lambda: _home_size(path), lambda: home.read(path))

    def _on_openml(self, name: str) -> _Place | None:
        number = _OPENML_NUMBER.fullmatch(name)
        entry = Entry(int(number[1])) if number else OPENML.get(name)
        if entry is None:
            return None
        folder = openml.cached(entry.number, self.cache)
        place = str(folder) if folder else f"{openml.page(entry.number)} (not fetched yet)"
        size = Size(entry.rows, entry.features, entry.classes)
        return _Place(name, "openml", place, lambda: size, lambda: openml.read(entry, name, cache=self.cache), entry)

    def _unknown(self, name: str, source: Source | None) -> str:
        names = [*self.known(), *ALIASES]
        if source is not None and name in names:
            return f"the source {source!r} does not have the data set {name!r}"
        near = difflib.get_close_matches(name.lower().replace("_", "-"), names, n=3, cutoff=0.5)
        listed = "datasets.available() lists those there are"
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else listed
        return f"there is no data set {name!r}; {hint}"


def _finder(home_path: StrPath | None, cache: StrPath | None) -> _Finder:
    folder = home.data_home(home_path)
    return _Finder(folder, frozenset(home.names(folder)), cache)


def _bundled(name: str) -> _Place | None:
    if name not in BUNDLED:
        return None
    entry = BUNDLED[name]
    size = Size(entry.rows, entry.features, entry.classes)
    place = f"scikit-learn, sklearn.datasets.{entry.loader}()"
    return _Place(name, "bundled", place, lambda: size, lambda: bundled.read(name))


def _generated(name: str) -> _Place | None:
    if name not in _GENERATORS:
        return None
    return _Place(name, "generated", "generated by its rule", lambda: GENERATED[name], _GENERATORS[name])


def _halved(name: str, whole: _Place) -> _Place:
    """The images of another set at half their resolution."""

    def size() -> Size:
        found = whole.size()
        return replace(found, features=None if found.features is None else found.features // 4)

    return replace(whole, name=name, size=size, read=lambda: halved(whole.read(), name))


def _home_size(path: Path) -> Size:
    """Size that meta.json states, bookkeeping and further targets not counted as features."""
    meta = home.read_meta(path)
    apart = {*meta.ids, *meta.targets, *BOOKKEEPING.get(path.name, ())} - {"class"}
    return Size(meta.rows, None if meta.features is None else meta.features - len(apart), meta.classes)


# -- what is known of single sets


def _fill(data: Dataset, level: str) -> Dataset:
    """Empty cells of the categorical columns as a level of their own, where the set means them so."""
    X = data.X.copy()
    for name in X.columns[X.isna().any()]:
        X[name] = X[name].cat.add_categories(level).fillna(level)
    return replace(data, X=X)


def _set_apart(data: Dataset, names: tuple[str, ...]) -> Dataset:
    """Bookkeeping columns that the set does not declare as such, moved from the features to the ids."""
    moved = [name for name in names if name in data.X]
    if not moved:
        return data
    columns = [data.X[moved]] if data.ids is None else [data.ids, data.X[moved]]
    return replace(data, X=data.X.drop(columns=moved), ids=pandas().concat(columns, axis=1))
