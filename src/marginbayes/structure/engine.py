"""The state of a discriminative search: what families add to every row, and what a change would do to the score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.counts import radices
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.graph.walks import above, below
from marginbayes.scores.rowwise import RowScore

__all__ = ["Engine", "Parents", "Rest", "structure_dag"]

Floats = NDArray[np.float64]
Parents = tuple[int, ...] | None  # the feature parents; None: the feature is dropped, without the class on top

# Rows that must have the usual code of a variable for it to be worth a list of the others.
LEAST_USUAL = 0.25
# Cells of a table, the class left out, that an index of a row can tell apart.
MOST_CELLS = 2**32
SMOOTHINGS = ("laplace", "ess", "floor")


class Rest(NamedTuple):
    """What all families but one make of every row."""

    state: Floats  # the vectors
    order: NDArray[np.int64]  # of the rows: those in which another class leads come first, clear ones last
    # In this order: by how much the best other class leads, which it is, the greatest lead to come, the least one so
    # far, the weight of the rows before.
    lead: Floats
    rival: NDArray[np.int64]
    ahead: Floats
    least: Floats
    passed: Floats


class More(NamedTuple):
    """Changes of the vectors of all rows: for each of them the cell of every row, and a table of cells x classes."""

    cells: NDArray[np.uint32]
    tables: Floats
    starts: NDArray[np.int64]


class Engine:
    """Families with smoothed maximum-likelihood tables, and the vector of every row that they add up to.

    A change of one family costs one pass over the distinct rows. Mutable: it belongs to one search.
    """

    def __init__(
        self, schema: Schema, rows: Rows, score: RowScore, smoothing: float, kind: str, max_table: float
    ) -> None:
        from marginbayes.kernels import families, search

        if kind not in SMOOTHINGS:
            raise ValueError(f"kind={kind!r} is no smoothing for a search; choose one of {', '.join(SMOOTHINGS)}")
        checks.not_negative("smoothing", smoothing)
        checks.positive("max_table", max_table, infinite=True)
        self._kernels, self._families = search, families
        self.schema, self.score = schema, score
        self.smoothing, self.kind, self.max_table = float(smoothing), kind, float(max_table)
        self._hold(rows.labelled().merged()[0])
        self.cards = np.array(schema.cardinalities, np.int64)
        self.radix = np.array(radices(self.rows), np.int64)
        self.parents: list[Parents] = [(), *([()] * (len(schema.names) - 1))]
        self.state = np.empty(self._shape)
        self.state[:] = self._prior()
        for i in self.features:
            self.add(self.state, i, ())
        # Rows in doubt come first for good: they are looked at most, and rows unlike their neighbours count faster.
        doubt = self.rest(self.state).order
        self._hold(self.rows.take(doubt))
        self.state = self.state[doubt]
        self._usual = _usual(self.codes, self.weights)
        self._settle()

    def _hold(self, rows: Rows) -> None:
        self.rows, self.codes = rows, rows.codes
        self.labels = rows.codes[0].astype(np.int64)
        self.weights = np.ones(len(rows)) if rows.weights is None else rows.weights
        self.total = float(self.weights.sum())
        self._unequal = self.weights if (self.weights != 1.0).any() else np.empty(0)

    @property
    def features(self) -> range:
        """Indices of the features."""
        return range(1, len(self.cards))

    @property
    def tolerance(self) -> float:
        """Differences between losses below this are rounding."""
        return 1e-10 * max(1.0, self.total)

    @property
    def active(self) -> list[int]:
        """Features that take part: all that are not dropped."""
        return [i for i in self.features if self.parents[i] is not None]

    @property
    def value(self) -> float:
        """The score of the present structure."""
        return self.score.value(self.loss, self.total)

    def ancestors(self, i: int) -> set[int]:
        """The features above feature i, itself included."""
        return above(self.parents, [i])

    def descendants(self, i: int) -> set[int]:
        """The features below feature i, itself included."""
        return below(self.parents, i)

    # -- what a family adds

    def add(self, state: Floats, child: int, parents: Parents, sign: float = 1.0) -> Floats:
        """Add what a family contributes to the vector of every row, in place; `sign=-1` takes it away."""
        if parents is not None:
            self._check_table(child, parents)
            members = [child, *parents]
            self._families.add_family(
                state,
                self._index(members),
                self.cards[members],
                self.radix[members],
                self.labels,
                self.weights,
                self._classes,
                self._binary,
                self._smoothing,
                self.smoothing,
                sign,
            )
        return state

    def more(self, parent: int, children: Sequence[int]) -> More:
        """What one more parent changes in the vectors of all rows, for each of these children."""
        index, tables = [], []
        for child in children:
            own = [child, *(self.parents[child] or ())]
            self._check_table(child, (*own[1:], parent))
            index.append(self._index([*own, parent]))
            without = self._table(own).reshape(-1, self._classes)
            tables.append(self._table([*own, parent]) - np.repeat(without, self.radix[parent], axis=0).ravel())
        starts = np.cumsum([0, *(len(table) for table in tables)])
        return More(np.array(index), np.concatenate(tables), starts)

    def add_more(self, state: Floats, more: More, k: int) -> None:
        """Add the k-th of these changes to vectors, in place."""
        table = more.tables[more.starts[k] : more.starts[k + 1]].reshape(-1, self._classes)
        state += table[more.cells[k], self.labels][:, None] if self._binary else table[more.cells[k]]

    def try_more(self, state: Floats, more: More, candidates: Sequence[int], limit: float) -> Floats:
        """Loss after each of some of these changes to vectors; infinite where above the limit."""
        return np.asarray(
            self._kernels.score_tables(
                self.score.kind,
                self.score.gamma,
                state,
                self.rest(state).order,
                self.labels,
                self.weights,
                more.cells,
                more.tables,
                more.starts,
                self._classes,
                np.array(candidates, np.int64),
                limit,
                self.tolerance,
            )
        )

    def _table(self, members: Sequence[int]) -> Floats:
        """Log table of a family, the child first: a line of classes for each cell."""
        shape = self.cards[members], self.radix[members]
        rows = self.labels, self.weights, self._classes, self._binary
        return np.asarray(
            self._families.family_table(self._index(members), *shape, *rows, self._smoothing, self.smoothing)
        )

    def without(self, child: int) -> Floats:
        """The vectors of all rows without what the child's present family adds."""
        return self.add(self.state.copy(), child, self.parents[child], -1.0)

    def rest(self, state: Floats) -> Rest:
        """These vectors, of all families but one, and what follows from them for every table that may join them."""
        return Rest(state, *self._kernels.leads(state, self.labels, self.weights, self._binary))

    def losses_of(self, state: Floats) -> Floats:
        """Loss of every row, weighted, for these vectors."""
        return np.asarray(self.weights * self._kernels.losses(self.score.kind, state, self.labels, self.score.gamma))

    def try_parents(
        self, child: int, kept: Sequence[int], candidates: Sequence[int], limit: float, rest: Rest | None = None
    ) -> Floats:
        """Loss for each candidate as a parent of the child besides the kept ones; infinite where above the limit.

        `rest` is that of `without(child)`, for those who ask several times.
        """
        if not len(candidates):
            return np.empty(0)
        every = np.array(candidates)
        self._check_table(child, (*kept, int(every[self.cards[every].argmax()])))
        rest = self.rest(self.without(child)) if rest is None else rest
        return np.asarray(
            self._kernels.score_candidates(
                self.score.kind,
                self.score.gamma,
                rest.state,
                rest.order,
                rest.lead,
                rest.rival,
                rest.ahead,
                rest.least,
                rest.passed,
                self._unequal,
                self._usual,
                self.codes,
                self.cards,
                self.radix,
                np.array([child, *kept]),
                self._index([child, *kept]),
                every,
                self._smoothing,
                self.smoothing,
                limit,
                self.tolerance,
            )
        )

    def set_parents(
        self, child: int, parents: Parents, without: Floats | None = None, loss: float | None = None
    ) -> None:
        """Change one family; `without(child)` is used up where it is given, and the loss afterwards may be known."""
        self.state = self.add(self.without(child) if without is None else without, child, parents)
        self.parents[child] = parents
        self._settle(loss)

    # -- inside

    def _settle(self, loss: float | None = None) -> None:
        """The loss of the present state, unless it is known."""
        self.loss = float(self.losses_of(self.state).sum()) if loss is None else loss

    @property
    def _classes(self) -> int:
        return int(self.cards[0])

    @property
    def _binary(self) -> bool:
        return self.score.name == "sbm"

    @property
    def _smoothing(self) -> int:
        return {"laplace": self._families.ADD, "floor": self._families.FLOOR, "ess": self._families.SPREAD}[self.kind]

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.labels), 1 if self._binary else self._classes

    def _index(self, members: Sequence[int]) -> NDArray[np.uint32]:
        """For each row its cell in the table of these variables."""
        index: NDArray[np.uint32] = self.codes[members[0]].astype(np.uint32)
        for v in members[1:]:
            index *= np.uint32(self.radix[v])
            index += self.codes[v]
        return index

    def _check_table(self, child: int, parents: Sequence[int]) -> None:
        cells = math.prod(int(self.radix[v]) for v in (child, *parents)) * self._classes
        if cells > min(self.max_table, MOST_CELLS * self._classes):
            names = self.schema.names
            raise ValueError(
                f"the table of {names[child]!r} given {', '.join(repr(names[p]) for p in (0, *parents))} would have "
                f"{cells:.2g} cells, more than max_table={self.max_table:.2g}; lower k, merge levels or raise max_table"
            )

    def _prior(self) -> Floats:
        counts = np.bincount(self.labels, self.weights, self._classes)
        amount = self._amount_of_class()
        own = _log_share(counts, self.total, self._classes, self.kind, amount)
        if not self._binary:
            return np.asarray(own)[None, :]
        # One against the rest is a class of two levels: (20) with the smoothing of its own table.
        share = _log_share(counts, self.total, 2, self.kind, amount)
        rest = _log_share(self.total - counts, self.total, 2, self.kind, amount)
        return np.asarray((share - rest)[self.labels][:, None])

    def _amount_of_class(self) -> float:
        return self.smoothing / (2 if self._binary else self._classes) if self.kind == "ess" else self.smoothing


def _usual(codes: NDArray[Any], weights: Floats) -> Any:
    """The usual code of each variable and the rows that have another one, where that makes counting faster."""
    from marginbayes.kernels.families import Usual

    exact = bool((weights == np.rint(weights)).all())
    code, others = np.full(len(codes), -1), []
    for j, column in enumerate(codes):
        often = np.bincount(column)
        if exact and j and often.max() > LEAST_USUAL * len(column):
            code[j] = often.argmax()
            others.append(np.flatnonzero(column != code[j]).astype(np.uint32))
        else:
            others.append(np.empty(0, np.uint32))
    return Usual(code, np.cumsum([0, *map(len, others)]), np.concatenate(others))


def structure_dag(names: Sequence[str], parents: Sequence[Parents]) -> Dag:
    """The graph of feature parents; a dropped feature has no parents at all."""
    return Dag(tuple(names), ((), *(() if p is None else (0, *p) for p in parents[1:])))


def _log_share(part: Any, total: float, levels: int, kind: str, amount: float) -> Floats:
    if kind == "floor":
        return np.asarray(np.log(np.where(part > 0, part / total, amount)))
    return np.asarray(np.log((part + amount) / (total + amount * levels)))
