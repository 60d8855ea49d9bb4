"""Greedy edge adding, and the superparent heuristic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.structure.engine import Engine
from marginbayes.structure.search import Search, SearchLearner, Trial

__all__ = ["Greedy", "SuperParent"]

Floats = NDArray[np.float64]

# What superparents add is kept for as many features as this holds.
KEPT_BYTES = 1e9


class Greedy(SearchLearner):
    """From naive Bayes, add the edge that improves the score most, until none does (Keogh & Pazzani 1999).

    With ``score="cr"`` this is TAN-CR (k=1) and 2-tree-CR (k=2) of Pernkopf & Bilmes (2010, section 4.4.1). Ties go to
    the smaller child, then to the smaller parent.

    Cost: each of at most k d edges scores d^2 candidates, each in one pass over the distinct rows and the classes, or
    less where it is given up early. See `SearchLearner` for the parameters.
    """

    def run(self, search: Search, rows: Rows) -> None:  # noqa: ARG002
        """Add edges while one improves the score."""
        while True:
            trials = [Trial(i, search.engine.parents[i] or (), search.parents_for(i)) for i in search.open_features]
            best = search.best_of(trials, search.engine.loss - search.tolerance)
            if best is None:
                return
            _, trial, parent = best
            search.accept(trial.child, (*trial.kept, parent), "add", parent)


class SuperParent(SearchLearner):
    """The superparent heuristic (Keogh & Pazzani 1999) and its generalisation to k-trees (Pernkopf & Bilmes 2010).

    Each round first chooses the feature that, as one more parent of every feature that may still have one, gives the
    best score: the superparent. Then it keeps only the best edges from it: one for k = 1, at most k in general. The
    search ends when they do not improve the score. Ties go to the smaller index, and to fewer edges.

    Cost: each round scores d superparents and at most d^k sets of children. What a superparent adds to the rows is kept
    from round to round and brought up to date, within a gigabyte; for the rest it takes one pass for each child. See
    `SearchLearner` for the parameters.
    """

    def run(self, search: Search, rows: Rows) -> None:  # noqa: ARG002
        """Add the best edges of the best superparent while they improve the score."""
        additions = _Additions(search.engine)
        while True:
            parent, children = self._superparent(search, additions)
            if parent is None:
                return
            chosen = self._favourites(search, parent, children)
            if not chosen:
                return
            for child in chosen:
                search.accept(child, (*(search.engine.parents[child] or ()), parent), "add", parent)

    def _superparent(self, search: Search, additions: _Additions) -> tuple[int | None, list[int]]:
        engine = search.engine
        best, chosen, its_children = np.inf, None, []
        for parent in search.open_features:
            children = [i for i in search.open_features if i != parent and search.may_add(parent, i)]
            if not children:
                continue
            loss = float(engine.losses_of(engine.state + additions.of(parent, children)).sum())
            if loss < best:
                best, chosen, its_children = loss - search.tolerance, parent, children
        return chosen, its_children

    def _favourites(self, search: Search, parent: int, children: list[int]) -> tuple[int, ...]:
        """The at most k children whose edges from the superparent improve the score most; none if nothing does."""
        engine = search.engine
        more, best, chosen = engine.more(parent, children), engine.loss - search.tolerance, tuple[int, ...]()
        grown = {child: (*(engine.parents[child] or ()), parent) for child in children}
        for size in range(max(self.k, 1)):
            for others in combinations(range(len(children)), size):
                kept = [children[k] for k in others]
                last = [
                    k
                    for k in range(others[-1] + 1 if others else 0, len(children))
                    if search.stays_narrow({child: grown[child] for child in (*kept, children[k])})
                ]
                state = engine.state.copy()
                for k in others:
                    engine.add_more(state, more, k)
                for k, loss in zip(last, engine.try_more(state, more, last, best).tolist(), strict=True):
                    if loss < best:
                        best, chosen = loss - search.tolerance, (*kept, children[k])
        return chosen


class _Additions:
    """What each feature would add to the vectors of all rows as one more parent of some children."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.room = engine, int(KEPT_BYTES // max(engine.state.nbytes, 1))
        self.known: dict[int, tuple[dict[int, tuple[int, ...]], Floats]] = {}

    def of(self, parent: int, children: Sequence[int]) -> Floats:
        """The sum over these children; only what changed since the last time is computed."""
        present = {child: self.engine.parents[child] or () for child in children}
        before, total = self.known.get(parent, ({}, np.zeros_like(self.engine.state)))
        for child in sorted(before.keys() | present.keys()):
            old, new = before.get(child), present.get(child)
            if old == new:
                continue
            if old is not None:
                _join(self.engine, total, parent, child, old, -1.0)
            if new is not None:
                _join(self.engine, total, parent, child, new)
        if parent in self.known or len(self.known) < self.room:
            self.known[parent] = present, total
        return total


def _join(engine: Engine, state: Floats, parent: int, child: int, own: tuple[int, ...], sign: float = 1.0) -> None:
    """Give a child with these parents one more in these vectors, or take it back."""
    engine.add(state, child, own, -sign)
    engine.add(state, child, (*own, parent), sign)
