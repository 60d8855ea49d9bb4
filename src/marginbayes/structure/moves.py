"""Changes of one edge or one feature: which are allowed, what they do to the loss, the best one, one at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from marginbayes.structure.engine import Engine, Parents
from marginbayes.structure.search import Search, Trial

__all__ = ["MOVES", "Move", "Neighbourhood", "best_move", "loss_after", "make"]

MOVES = ("remove", "drop", "restore", "add", "replace", "reverse")
# Of random changes that are drawn, in search of one that the rules allow.
TRIES = 200


@dataclass(frozen=True)
class Move:
    """A change of some families, under the name it has in the record."""

    change: str
    parent: int | None
    child: int
    families: Mapping[int, Parents]


def loss_after(engine: Engine, families: Mapping[int, Parents], limit: float = math.inf) -> float:
    """Loss of all rows if these families were changed; infinite where it exceeds the limit."""
    state = engine.state.copy()
    for child in families:
        engine.add(state, child, engine.parents[child], -1.0)
    *others, last = families
    for child in others:
        engine.add(state, child, families[child])
    parents = families[last]
    if parents:
        return float(engine.try_parents(last, parents[:-1], parents[-1:], limit, engine.rest(state))[0])
    loss = float(engine.losses_of(engine.add(state, last, parents)).sum())
    return loss if loss <= limit else math.inf


def best_move(
    search: Search, moves: Iterable[Move], trials: Sequence[Trial], joined: Callable[[Trial, int], Move]
) -> Move | None:
    """The change that improves the score most, if one does; the moves, and what is first among them, win ties.

    The trials are further changes, scored many at once: `joined` makes a move of a trial and one of its candidates.
    """
    best, limit = None, search.engine.loss - search.tolerance
    for move in moves:
        loss = loss_after(search.engine, move.families, limit)
        if loss < limit:
            # What comes later must be better by more than rounding.
            best, limit = move, loss - search.tolerance
    found = search.best_of(trials, limit)
    return best if found is None else joined(found[1], found[2])


def make(search: Search, move: Move) -> None:
    """Make a change and put it on record."""
    for child, parents in move.families.items():
        search.engine.set_parents(child, parents)
    search.record(move.change, move.parent, move.child)


class Neighbourhood:
    """The changes that the rules allow to the present structure of a search."""

    def __init__(self, search: Search, moves: Sequence[str]) -> None:
        self.search, self.engine, self.rules = search, search.engine, search.rules
        self.moves = [m for m in MOVES if m in moves]
        self.features = [i for i in search.engine.features if i not in search.rules.dropped]

    def best(self, children: Sequence[int]) -> Move | None:
        """The change around these features that improves the score most, if one does."""
        simple = [move for child in children for change in self.moves for move in self._simple(change, child)]
        trials = [
            Trial(child, kept, [j for j in self.features if self._may_join(j, child, kept)])
            for child in children
            for change in self.moves
            for kept in self._kept(change, child)
        ]
        return best_move(self.search, simple, trials, self._joined)

    def random(self, rng: np.random.Generator) -> Move | None:
        """A change drawn by kind, feature and parent; None if none was found that is allowed."""
        for _ in range(TRIES if self.moves and self.features else 0):
            change = self.moves[rng.integers(len(self.moves))]
            child, parent = (self.features[i] for i in rng.integers(len(self.features), size=2))
            moves = self._simple(change, child)
            for kept in self._kept(change, child):
                if self._may_join(parent, child, kept):
                    moves.append(self._joined(Trial(child, kept, [parent]), parent))
            if moves:
                return moves[rng.integers(len(moves))]
        return None

    # -- changes without a new parent of the child

    def _simple(self, change: str, child: int) -> list[Move]:
        own = self.engine.parents[child]
        if own is None:
            return [Move("restore", None, child, {child: ()})] if change == "restore" else []
        if change == "remove":
            return [Move("remove", p, child, {child: _minus(own, p)}) for p in self._loose(child)]
        if change == "reverse":
            return [self._reversed(p, child, own) for p in self._loose(child) if self._may_reverse(p, child, own)]
        return [self._without(child)] if change == "drop" and child not in self.rules.keep else []

    def _loose(self, child: int) -> list[int]:
        """The parents of a feature that are not required, the smallest first."""
        return sorted(set(self.engine.parents[child] or ()) - set(self.rules.required[child]))

    def _may_reverse(self, parent: int, child: int, own: tuple[int, ...]) -> bool:
        above = self.engine.parents[parent] or ()
        if not self.rules.allowed[child, parent] or len(above) >= self.rules.k:
            return False
        if any(parent in self.engine.ancestors(p) for p in own if p != parent):
            return False
        return self.search.stays_narrow(self._reversed(parent, child, own).families)

    def _reversed(self, parent: int, child: int, own: tuple[int, ...]) -> Move:
        above = self.engine.parents[parent] or ()
        return Move("reverse", parent, child, {child: _minus(own, parent), parent: (*above, child)})

    def _without(self, feature: int) -> Move:
        """Drop a feature, and with it the edges to its children."""
        below = {i: _minus(p, feature) for i, p in enumerate(self.engine.parents) if p and feature in p}
        return Move("drop", None, feature, {**below, feature: None})

    # -- changes with a new parent of the child

    def _kept(self, change: str, child: int) -> list[tuple[int, ...]]:
        """The sets of parents that a new parent of the child joins in a change of this kind."""
        own = self.engine.parents[child]
        if own is None:
            return [()] if change == "restore" else []
        if change == "add":
            return [own]
        return [_minus(own, p) for p in self._loose(child)] if change == "replace" else []

    def _may_join(self, parent: int, child: int, kept: tuple[int, ...]) -> bool:
        """Whether the feature may have these parents and one more that is not one of its present ones."""
        engine = self.engine
        if parent in (engine.parents[child] or ()) or engine.parents[parent] is None or len(kept) >= self.rules.k:
            return False
        if not self.rules.allowed[parent, child] or child in engine.ancestors(parent):
            return False
        return self.search.stays_narrow({child: (*kept, parent)})

    def _joined(self, trial: Trial, parent: int) -> Move:
        own = self.engine.parents[trial.child]
        change = "restore" if own is None else "add" if len(trial.kept) == len(own) else "replace"
        return Move(change, parent, trial.child, {trial.child: (*trial.kept, parent)})


def _minus(parents: tuple[int, ...], parent: int) -> tuple[int, ...]:
    return tuple(p for p in parents if p != parent)
