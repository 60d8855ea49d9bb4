"""Wrappers around naive Bayes that choose its features and join some of them: selective naive Bayes, FSSJ, BSEJ.

Joined features are one feature of all their combinations. As a network they form a group whose members, in an order of
their own, have all earlier members as parents, besides the class: such a group can hold any joint distribution. Only
smoothing tells the two apart: here every table P(member | earlier members, class) is smoothed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.graph.walks import components
from marginbayes.structure.base import Step
from marginbayes.structure.constraints import Constraints, Rules
from marginbayes.structure.engine import Parents
from marginbayes.structure.moves import Move, best_move, make
from marginbayes.structure.search import Search, SearchLearner, Trial

__all__ = ["BackwardJoin", "ForwardJoin", "SelectiveNaiveBayes"]

Group = tuple[int, ...]
Changes = tuple[list[Move], list[Trial]]


class ForwardJoin(SearchLearner):
    """Forward sequential selection and joining, FSSJ (Pazzani 1996).

    Starts without features (those that must be kept excepted). Each step takes one more feature, either alone or joined
    to a group that is in use, whichever improves the score most, until nothing does. Ties go to taking one alone,
    then to the smaller feature, then to the smaller group.

    The score is that of the training rows, where Pazzani leaves one out: joining fits them ever better, so limit it by
    `k`, or let ``selection="cv"`` choose the number of steps on held-out rows.

    Cost: each of at most d steps scores at most d^2 / 4 + d candidates, each in one pass over the distinct rows and the
    classes, or less where it is given up early.

    Parameters
    ----------
    k : int, default=1
        Groups have at most k + 1 members.
    score : {"cr", "cl", "sm", "sbm"}, default="cr"
        As in `SearchLearner`.
    gamma : float or None, default=None
        As in `SearchLearner`.
    smoothing : float, default=1.0
        As in `SearchLearner`.
    kind : {"laplace", "ess", "floor"}, default="laplace"
        As in `SearchLearner`.
    constraints : Constraints or None, default=None
        As in `SearchLearner`. Two features are not joined where the constraints forbid both edges between them, and
        features that required edges link are one group from the start.
    selection : {None, "cv"}, default=None
        As in `SearchLearner`.
    candidates : int or None, default=None
        As in `SearchLearner`.
    treewidth : bool, default=False
        As in `SearchLearner`; here it is never above k.
    max_table : float, default=1e7
        As in `SearchLearner`.
    n_jobs : int or None, default=None
        As in `SearchLearner`.
    random_state : int or None, default=None
        As in `SearchLearner`.
    callback : callable or None, default=None
        As in `SearchLearner`.
    """

    def run(self, search: Search, rows: Rows) -> None:  # noqa: ARG002
        """Take features while one improves the score."""
        groups = _Groups(search)
        groups.start([i for i in search.engine.features if i not in search.rules.keep])
        while groups.improve(self._changes):
            pass

    @staticmethod
    def _changes(groups: _Groups) -> Changes:
        moves = [Move("select", None, child, {child: ()}) for child in groups.unused()]
        joins = [groups.joins((child,), groups.used()) for child in groups.unused()]
        return [*moves, *(m for some, _ in joins for m in some)], [t for _, some in joins for t in some]


class SelectiveNaiveBayes(ForwardJoin):
    """Naive Bayes over the features that forward selection finds useful (Langley & Sage 1994).

    Starts without features (those that must be kept excepted) and takes the one that improves the score of the training
    rows most until none does. Ties go to the smaller feature. It is `ForwardJoin` without joining.

    Cost: each of at most d steps scores at most d candidates, each in one pass over the distinct rows and the classes.

    Parameters
    ----------
    score : {"cr", "cl", "sm", "sbm"}, default="cr"
        As in `SearchLearner`.
    gamma : float or None, default=None
        As in `SearchLearner`.
    smoothing : float, default=1.0
        As in `SearchLearner`.
    kind : {"laplace", "ess", "floor"}, default="laplace"
        As in `SearchLearner`.
    constraints : Constraints or None, default=None
        As in `SearchLearner`.
    selection : {None, "cv"}, default=None
        As in `SearchLearner`.
    max_table : float, default=1e7
        As in `SearchLearner`.
    n_jobs : int or None, default=None
        As in `SearchLearner`.
    random_state : int or None, default=None
        As in `SearchLearner`.
    callback : callable or None, default=None
        As in `SearchLearner`.
    """

    def __init__(
        self,
        score: str = "cr",
        *,
        gamma: float | None = None,
        smoothing: float = 1.0,
        kind: str = "laplace",
        constraints: Constraints | None = None,
        selection: str | None = None,
        max_table: float = 1e7,
        n_jobs: int | None = None,
        random_state: int | None = None,
        callback: Callable[[Step], None] | None = None,
    ) -> None:
        super().__init__(
            score,
            0,
            gamma=gamma,
            smoothing=smoothing,
            kind=kind,
            constraints=constraints,
            selection=selection,
            max_table=max_table,
            n_jobs=n_jobs,
            random_state=random_state,
            callback=callback,
        )


class BackwardJoin(SearchLearner):
    """Backward sequential elimination and joining, BSEJ (Pazzani 1996).

    Starts at naive Bayes over all features. Each step drops one feature or group, or joins two of them to one,
    whichever improves the score most, until nothing does. Ties go to dropping, then to joining groups of several
    features, then to the smaller feature that is joined to another, or to a group.

    The score is that of the training rows, where Pazzani leaves one out: see `ForwardJoin`.

    Cost: each of at most 2 d steps scores at most d^2 / 2 + d candidates, each in one pass over the distinct rows and
    the classes for each member of the joined group, or less where it is given up early.

    Parameters
    ----------
    k : int, default=1
        Groups have at most k + 1 members.
    score : {"cr", "cl", "sm", "sbm"}, default="cr"
        As in `SearchLearner`.
    gamma : float or None, default=None
        As in `SearchLearner`.
    smoothing : float, default=1.0
        As in `SearchLearner`.
    kind : {"laplace", "ess", "floor"}, default="laplace"
        As in `SearchLearner`.
    constraints : Constraints or None, default=None
        As in `ForwardJoin`.
    selection : {None, "cv"}, default=None
        As in `SearchLearner`.
    candidates : int or None, default=None
        As in `SearchLearner`.
    treewidth : bool, default=False
        As in `ForwardJoin`.
    max_table : float, default=1e7
        As in `SearchLearner`.
    n_jobs : int or None, default=None
        As in `SearchLearner`.
    random_state : int or None, default=None
        As in `SearchLearner`.
    callback : callable or None, default=None
        As in `SearchLearner`.
    """

    def run(self, search: Search, rows: Rows) -> None:  # noqa: ARG002
        """Drop and join while that improves the score."""
        groups = _Groups(search)
        groups.start([])
        while groups.improve(self._changes):
            pass

    @staticmethod
    def _changes(groups: _Groups) -> Changes:
        used = groups.used()
        free = [group for group in used if not groups.rules.keep & set(group)]
        moves = [Move("drop", None, group[0], dict.fromkeys(group)) for group in free]
        joins = [groups.joins(group, [host for host in used if _rank(host) < _rank(group)]) for group in used]
        return [*moves, *(m for some, _ in joins for m in some)], [t for _, some in joins for t in some]


class _Groups:
    """The groups of a search, read from the present structure: a group ends in a feature without children."""

    def __init__(self, search: Search) -> None:
        self.search, self.engine, self.rules = search, search.engine, search.rules
        self.may_precede = _may_precede(search.rules)

    def start(self, unused: Sequence[int]) -> None:
        """Leave these features out, make groups of what required edges link, and let the record begin there."""
        for child in unused:
            self._set(child, None)
        for group in self._linked():
            for child, parents in _families(group).items():
                self._set(child, parents)
        self.search.restart()

    def _set(self, child: int, parents: Parents) -> None:
        if self.engine.parents[child] != parents:
            self.engine.set_parents(child, parents)

    def used(self) -> list[Group]:
        """All groups, the one with the smallest feature first."""
        present = self.engine.parents
        inner = {p for parents in present if parents for p in parents}
        ends = [i for i in self.engine.features if present[i] is not None and i not in inner]
        return sorted(((*(present[i] or ()), i) for i in ends), key=min)

    def unused(self) -> list[int]:
        """The features that may be taken."""
        return [i for i in self.engine.features if self.engine.parents[i] is None and i not in self.rules.dropped]

    def improve(self, changes: Callable[[_Groups], Changes]) -> bool:
        """Make the change that improves the score most, if one does."""
        move = best_move(self.search, *changes(self), self._joined)
        if move is not None:
            make(self.search, move)
        return move is not None

    def joins(self, group: Group, hosts: Sequence[Group]) -> Changes:
        """This group joined to each of the hosts; a single feature behind its host is a trial, all else a move."""
        moves: list[Move] = []
        behind: dict[Group, list[int]] = {}
        for host in sorted(hosts, key=lambda h: (len(h), h)):
            order = self._order((*host, *group)) if len(host) + len(group) <= self.rules.k + 1 else None
            if order == (*host, *group) and len(group) == 1:
                behind.setdefault(host[:-1], []).append(host[-1])
            elif order is not None:
                moves.append(self._join(host, group, order))
        return moves, [Trial(group[0], kept, last) for kept, last in behind.items()]

    def _joined(self, trial: Trial, last: int) -> Move:
        host = (*trial.kept, last)
        return self._join(host, (trial.child,), (*host, trial.child))

    def _join(self, host: Group, group: Group, order: Group) -> Move:
        present = self.engine.parents
        changed = {i: p for i, p in _families(order).items() if p != present[i]}
        return Move("join", host[0], group[0], changed)

    def _order(self, members: Sequence[int]) -> Group | None:
        """The members in an order in which every edge from an earlier to a later one is allowed, if there is one."""
        left, order = list(members), []
        while left:
            first = next((i for i in left if all(self.may_precede[i, j] for j in left if j != i)), None)
            if first is None:
                return None
            left.remove(first)
            order.append(first)
        return tuple(order)

    def _linked(self) -> list[Group]:
        """Features that required edges link, in an order that the rules allow."""
        names, linked = self.engine.schema.names, []
        for members in (part for part in components(self.rules.required) if len(part) > 1):
            order = self._order(members)
            if order is None or len(members) > self.rules.k + 1:
                listed = ", ".join(repr(names[i]) for i in members)
                reason = f"k={self.rules.k} allows groups of {self.rules.k + 1}" if order else "other rules forbid it"
                raise ValueError(f"required edges make one group of {listed}, but {reason}")
            linked.append(order)
        return linked


def _rank(group: Group) -> tuple[int, int]:
    """Large groups first: joining changes the families of the later one only."""
    return -len(group), min(group)


def _families(order: Group) -> dict[int, Parents]:
    return {child: order[:place] for place, child in enumerate(order)}


def _may_precede(rules: Rules) -> NDArray[np.bool_]:
    """[i, j]: whether i may be above j in a group."""
    may = rules.allowed.copy()
    for child, parents in enumerate(rules.required):
        may[child, list(parents)] = False
    return may
