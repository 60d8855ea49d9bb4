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
from marginbayes.structure.base import Step
from marginbayes.structure.constraints import Constraints, Rules
from marginbayes.structure.engine import Parents
from marginbayes.structure.moves import Best, Move, loss_after, make
from marginbayes.structure.search import Search, SearchLearner

__all__ = ["BackwardJoin", "ForwardJoin", "SelectiveNaiveBayes"]

Group = tuple[int, ...]


class ForwardJoin(SearchLearner):
    """Forward sequential selection and joining, FSSJ (Pazzani 1996).

    Starts without features (those that must be kept excepted). Each step takes one more feature, either alone or joined
    to a group that is in use, whichever improves the score most, until nothing does. Ties go to the smaller feature,
    then to taking it alone, then to the smaller group, then to the smaller members.

    The score is that of the training rows, where Pazzani leaves one out: joining fits them ever better, so limit it by
    `k`, or let ``selection="cv"`` choose the number of steps on held-out rows.

    Cost: each of at most d steps scores at most d^2 / 4 + d candidates, each in one pass over the distinct rows and the
    classes, or less where it is given up early.

    Parameters
    ----------
    k : int, default=1
        Groups have at most k + 1 members.
    score, gamma, smoothing, kind, constraints, selection, candidates, treewidth, max_table, random_state, callback
        See `SearchLearner`. Two features are not joined where the constraints forbid both edges between them. Features
        that required edges link are one group from the start. The treewidth is never above k.
    """

    def run(self, search: Search, rows: Rows) -> None:  # noqa: ARG002
        """Take features while one improves the score."""
        groups = _Groups(search)
        groups.start([i for i in search.engine.features if i not in search.rules.keep])
        while groups.make(self._best(groups)):
            pass

    def _best(self, groups: _Groups) -> Move | None:
        found, used = groups.best(), groups.used()
        for child in groups.unused():
            alone = Move("select", None, child, {child: ()})
            found.offer(alone, loss_after(groups.engine, alone.families, found.limit))
            groups.score_joins(found, (child,), used)
        return found.move


class SelectiveNaiveBayes(ForwardJoin):
    """Naive Bayes over the features that forward selection finds useful (Langley & Sage 1994).

    Starts without features (those that must be kept excepted) and takes the one that improves the score of the training
    rows most until none does. Ties go to the smaller feature. It is `ForwardJoin` without joining.

    Cost: each of at most d steps scores at most d candidates, each in one pass over the distinct rows and the classes.

    Parameters
    ----------
    score, gamma, smoothing, kind, constraints, selection, max_table, random_state, callback
        See `SearchLearner`.
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
            random_state=random_state,
            callback=callback,
        )


class BackwardJoin(SearchLearner):
    """Backward sequential elimination and joining, BSEJ (Pazzani 1996).

    Starts at naive Bayes over all features. Each step drops one feature or group, or joins two of them to one,
    whichever improves the score most, until nothing does. Ties go to dropping, then to the smaller feature.

    The score is that of the training rows, where Pazzani leaves one out: see `ForwardJoin`.

    Cost: each of at most 2 d steps scores at most d^2 / 2 + d candidates, each in one pass over the distinct rows and
    the classes for each member of the joined group, or less where it is given up early.

    Parameters
    ----------
    k : int, default=1
        Groups have at most k + 1 members.
    score, gamma, smoothing, kind, constraints, selection, candidates, treewidth, max_table, random_state, callback
        See `SearchLearner` and `ForwardJoin`.
    """

    def run(self, search: Search, rows: Rows) -> None:  # noqa: ARG002
        """Drop and join while that improves the score."""
        groups = _Groups(search)
        groups.start([])
        while groups.make(self._best(groups)):
            pass

    def _best(self, groups: _Groups) -> Move | None:
        found, used = groups.best(), groups.used()
        for group in used:
            if not groups.rules.keep & set(group):
                drop = Move("drop", None, group[0], dict.fromkeys(group))
                found.offer(drop, loss_after(groups.engine, drop.families, found.limit))
        for group in used:
            groups.score_joins(found, group, [other for other in used if _rank(other) < _rank(group)])
        return found.move


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
        self.search.structures[0], self.search.start_score = list(self.engine.parents), self.engine.value

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

    def best(self) -> Best:
        """A place for the best change; it has to beat the present score."""
        return Best(self.engine.loss - self.search.tolerance, self.search.tolerance)

    def make(self, move: Move | None) -> bool:
        """Make a change, if there is one."""
        if move is not None:
            make(self.search, move)
        return move is not None

    def score_joins(self, found: Best, group: Group, hosts: Sequence[Group]) -> None:
        """Offer this group joined to each of the hosts; all hosts of one feature are scored in one pass."""
        several: dict[Group, list[int]] = {}
        for host in sorted(hosts, key=lambda h: (len(h), h)):
            order = self._order((*host, *group)) if len(host) + len(group) <= self.rules.k + 1 else None
            if order is None:
                continue
            if len(group) == 1 and order == (*host, *group):
                several.setdefault(host[:-1], []).append(host[-1])
            else:
                move = self._join(host, group, order)
                found.offer(move, loss_after(self.engine, move.families, found.limit))
        for kept, last in several.items():
            self._score_last(found, group[0], kept, last)

    def _score_last(self, found: Best, child: int, kept: Group, last: list[int]) -> None:
        losses = self.engine.try_parents(child, kept, last, found.limit, self.engine.without(child))
        for parent, loss in zip(last, losses, strict=True):
            host = (*kept, parent)
            found.offer(self._join(host, (child,), (*host, child)), float(loss))

    def _join(self, host: Group, group: Group, order: Group) -> Move:
        present = self.engine.parents
        changed = {i: p for i, p in _families(order).items() if p != present[i]}
        return Move("join", host[0], group[0], changed)

    def _order(self, members: Group) -> Group | None:
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
        for members in _components(self.rules.required):
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


def _components(parents: Sequence[Group]) -> list[Group]:
    """Groups of at least two variables that edges link, ascending."""
    label = list(range(len(parents)))
    for child, own in enumerate(parents):
        for p in own:
            old, new = sorted((label[p], label[child]), reverse=True)
            label = [new if x == old else x for x in label]
    found = [tuple(i for i, x in enumerate(label) if x == name) for name in sorted(set(label))]
    return [group for group in found if len(group) > 1]
