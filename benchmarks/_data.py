"""The data sets of the benchmarks, as tables of codes that every contestant can be given in its own form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marginbayes import Dag, Network, Schema, datasets
from marginbayes.data.mdlp import mdlp_all
from marginbayes.data.rows import Rows, code_type
from marginbayes.data.schema import Variable

__all__ = ["SETS", "Table", "random_tan", "table"]


@dataclass(frozen=True)
class Table:
    """Encoded data: one line of codes for each variable, the class first; where it comes from."""

    name: str
    rows: Rows
    source: str

    @property
    def size(self) -> str:
        """Rows x features, classes and levels in words."""
        cards = self.rows.cardinalities
        return f"{len(self.rows)} x {len(cards) - 1}, {cards[0]} classes, up to {max(cards[1:])} levels"

    @cached_property
    def names(self) -> list[str]:
        """Names of the variables, the class first."""
        return ["class", *(f"f{i}" for i in range(1, len(self.rows.cardinalities)))]

    @cached_property
    def schema(self) -> Schema:
        """The variables, with their codes as levels."""
        cards = self.rows.cardinalities
        return Schema(tuple(Variable(n, tuple(range(c))) for n, c in zip(self.names, cards, strict=True)))

    @cached_property
    def features(self) -> NDArray[np.int64]:
        """Codes of the features, a row for each row of the data, as scikit-learn and pyAgrum take them."""
        return np.ascontiguousarray(self.rows.codes[1:].T, dtype=np.int64)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Codes of the class."""
        return np.asarray(self.rows.codes[0], np.int64)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Codes of all variables as a frame of whole numbers."""
        return pd.DataFrame(self.rows.codes.T.astype(np.int64), columns=self.names)

    @cached_property
    def categories(self) -> pd.DataFrame:
        """The features as a frame of categories with text for levels: data that has yet to be encoded."""
        return self.frame[self.names[1:]].astype(str).astype("category")

    def with_missing(self, share: float, seed: int = 0) -> Rows:
        """The same rows with this share of the features' cells taken out at random."""
        codes = self.rows.codes.copy()
        gone = np.random.default_rng(seed).random(codes[1:].shape) < share
        marks = np.array(self.rows.cardinalities[1:], codes.dtype)[:, None]
        codes[1:] = np.where(gone, marks, codes[1:])
        return Rows(codes, self.rows.cardinalities)


def table(name: str) -> Table:
    """The data set of this name; where the data home lacks it, one of the same size from a random TAN."""
    return SETS[name](name)


def random_tan(name: str, n: int, cardinalities: tuple[int, ...], seed: int = 0) -> Table:
    """Rows drawn from a random tree-augmented network, class first; the same for every run."""
    rng = np.random.default_rng(seed)
    names = ["class", *(f"f{i}" for i in range(1, len(cardinalities)))]
    parents = [(), (0,), *((0, int(rng.integers(1, i))) for i in range(2, len(names)))]
    schema = Schema(tuple(Variable(v, tuple(range(c))) for v, c in zip(names, cardinalities, strict=True)))
    tables = []
    for child, parent in enumerate(parents):
        draws = rng.dirichlet(np.full(cardinalities[child], 0.5), [cardinalities[p] for p in parent])
        # Away from zero, so that every level of every variable occurs.
        tables.append(np.log(0.95 * draws + 0.05 / cardinalities[child]))
    network = Network(schema, Dag(tuple(names), tuple(parents)), tuple(tables))
    return Table(name, network.sample(n, random_state=seed), "drawn from a random TAN")


# -- the sets


class _Size(NamedTuple):
    """Size of a set; the numbers of levels go round over the features."""

    rows: int
    features: int
    classes: int
    levels: tuple[int, ...]


def _in_home(name: str, encode: Callable[[Any], NDArray[np.intp]], size: _Size) -> Table:
    home = datasets.data_home()
    if home is None or not (home / name).is_dir():
        return random_tan(name, size.rows, (size.classes, *islice(cycle(size.levels), size.features)))
    data = datasets.load(name, source="home")
    return _table(name, encode(data), data.y, "data home")


def _table(name: str, features: NDArray[np.intp], y: Any, source: str) -> Table:
    """Table of features (columns of codes) and labels; a feature with one level is left out for everybody."""
    columns = [np.unique(column, return_inverse=True)[1] for column in (np.asarray(y), *features.T)]
    columns = [columns[0], *(c for c in columns[1:] if c.max() > 0)]
    cards = tuple(int(c.max()) + 1 for c in columns)
    codes = np.ascontiguousarray(np.vstack(columns), dtype=code_type(max(cards)))
    return Table(name, Rows(codes, cards), source)


def _levels(data: Any) -> NDArray[np.intp]:
    """Each distinct value of a feature is a level."""
    return np.column_stack([np.unique(data.X[c].to_numpy(), return_inverse=True)[1] for c in data.X])


def _discretised(data: Any) -> NDArray[np.intp]:
    """Levels between the cuts of Fayyad & Irani."""
    numbers = data.X.to_numpy(np.float64)
    classes, labels = np.unique(data.y, return_inverse=True)
    cuts = mdlp_all(numbers.T, labels, len(classes))
    return np.column_stack([np.searchsorted(c, v) for c, v in zip(cuts, numbers.T, strict=True)])


def _digits(name: str, encode: Callable[[Any], NDArray[np.intp]]) -> Table:
    data = datasets.load("digits")
    return _table(name, encode(data), data.y, "scikit-learn")


SETS: dict[str, Callable[[str], Table]] = {
    "letter": lambda name: _in_home(name, _levels, _Size(20_000, 16, 26, (16,))),
    "digits": lambda name: _digits(name, _discretised),
    "digits-grey": lambda name: _digits(name, _levels),
    "satimage": lambda name: _in_home(name, _discretised, _Size(6435, 36, 6, (12, 12, 13))),
    "10000x196": lambda name: random_tan(name, 10_000, (10, *[4] * 196)),
    "usps": lambda name: _in_home(name, _levels, _Size(11_000, 256, 10, (3, 3, 4, 3, 4, 3, 4, 3))),
}
