"""Order-based heuristics: order the features, then choose the parents of each among the earlier ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.parameters.conditional import ConditionalLikelihood
from marginbayes.parameters.discriminative import DiscriminativeLearner
from marginbayes.scores.rowwise import row_score
from marginbayes.structure.base import Step
from marginbayes.structure.constraints import Constraints
from marginbayes.structure.engine import Engine
from marginbayes.structure.orders import ORDERS, best_pair, feature_order
from marginbayes.structure.search import Search, SearchLearner, Trial
from marginbayes.structure.trained import TrainedEngine

__all__ = ["OrderBased"]


class OrderBased(SearchLearner):
    """Order the features, then give each the best parents among the earlier ones (Pernkopf & Bilmes 2010, section 5).

    Parents are chosen among all sets of at most k earlier features by the score on the training rows, and kept only if
    they improve it; later features have no feature parent yet. Ties go to smaller sets, then to features that come
    first in the order. With ``order="mi"`` and ``score="cr"`` this is OMI-CR.

    Cost: the order takes d^2 passes over the rows, the parents one for each of the O(d^(k+1)) sets.

    Parameters
    ----------
    order : {"mi", "mi_sp", "cr", "random", "mi_min"}, default="mi"
        OMI, OMISP, OCR, RO, and the least informative first; see `feature_order`.
    inner_parameters : {"ml", "cl"}, ConditionalLikelihood or MarginGradient, default="ml"
        Tables of the structures that are compared: maximum likelihood, or trained anew for each candidate: ``"cl"`` is
        ``ConditionalLikelihood()`` with this smoothing. That costs an optimisation for every candidate: for small data
        only. OMI-CRCL of the paper trains without shrinkage, by conjugate gradients from maximum likelihood.
    literal : bool, default=False
        Algorithm 1 as printed: the two features that are most informative together come first and are joined, and the
        score to beat starts at nothing, so that the third feature always gets a parent. By default each edge has to
        improve on naive Bayes and what was added to it (section 5.2).
    epsilon : float, default=0.0
        The paper's correction of entropies for patterns that do not occur; see `feature_order`.
    score : {"cr", "cl", "sm", "sbm"}, default="cr"
        As in `SearchLearner`.
    k : int, default=1
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
    candidates : int or None, default=None
        As in `SearchLearner`.
    treewidth : bool, default=False
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
        order: str = "mi",
        score: str = "cr",
        k: int = 1,
        *,
        inner_parameters: str | DiscriminativeLearner = "ml",
        literal: bool = False,
        epsilon: float = 0.0,
        gamma: float | None = None,
        smoothing: float = 1.0,
        kind: str = "laplace",
        constraints: Constraints | None = None,
        selection: str | None = None,
        candidates: int | None = None,
        treewidth: bool = False,
        max_table: float = 1e7,
        n_jobs: int | None = None,
        random_state: int | None = None,
        callback: Callable[[Step], None] | None = None,
    ) -> None:
        super().__init__(
            score,
            k,
            gamma=gamma,
            smoothing=smoothing,
            kind=kind,
            constraints=constraints,
            selection=selection,
            candidates=candidates,
            treewidth=treewidth,
            max_table=max_table,
            n_jobs=n_jobs,
            random_state=random_state,
            callback=callback,
        )
        self.order = order
        self.inner_parameters = inner_parameters
        self.literal = literal
        self.epsilon = epsilon

    def _check(self) -> None:
        super()._check()
        checks.one_of("order", self.order, ORDERS)
        if not isinstance(self.inner_parameters, DiscriminativeLearner):
            note = ", or a ConditionalLikelihood or MarginGradient"
            checks.one_of("inner_parameters", self.inner_parameters, ("ml", "cl"), note=note)
        elif self.inner_parameters.tune:
            raise ValueError("inner_parameters has tune; give the learner of every candidate one setting")
        checks.number("epsilon", self.epsilon, lambda share: 0 <= share < 1, "at least 0 and below 1")

    def _engine(self, schema: Schema, rows: Rows) -> Engine:
        settings = schema, rows, row_score(self.score, self.gamma), self.smoothing, self.kind, self.max_table
        inner = self.inner_parameters
        if inner == "ml":
            return Engine(*settings)
        learner = ConditionalLikelihood(smoothing=self.smoothing, kind=self.kind) if isinstance(inner, str) else inner
        return TrainedEngine(learner, *settings)

    def run(self, search: Search, rows: Rows) -> None:  # noqa: ARG002
        """Walk along the order and settle the parents of one feature after the other."""
        pair = best_pair(search.engine, self.epsilon, search.may_add) if self.literal else None
        order = feature_order(search.engine, self.order, self.epsilon, self.random_state, pair or ())
        order = search.rules.parents_first(order)
        to_beat = None
        if pair is not None:
            search.accept(pair[1], (*(search.engine.parents[pair[1]] or ()), pair[0]), "add", pair[0])
            to_beat = np.inf  # Algorithm 1: nothing has to be beaten until one more feature has its parents
        for place in range(1, len(order)):
            if pair is not None and order[place] in pair:
                continue
            if self._settle(search, order[place], order[:place], to_beat):
                to_beat = None

    def _settle(self, search: Search, child: int, earlier: Sequence[int], to_beat: float | None) -> bool:
        """Give a feature its best parents, if they beat the present score (or the one given)."""
        engine = search.engine
        own = engine.parents[child]
        if own is None or (to_beat is None and engine.radix[child] == 1):  # a constant tells nothing, whatever is above
            return False
        rest, trials = engine.rest(engine.without(child)), []
        allowed = search.parents_for(child, earlier)
        telling = [j for j in allowed if engine.radix[j] > 1]  # with a constant, a set is no better than without it
        for kept in _prefixes(own, telling, self.k):
            behind = telling[telling.index(kept[-1]) + 1 :] if len(kept) > len(own) else allowed
            candidates = [j for j in behind if search.stays_narrow({child: (*kept, j)})] if self.treewidth else behind
            trials.append(Trial(child, kept, candidates, rest))
        best = search.best_of(trials, engine.loss - search.tolerance if to_beat is None else to_beat)
        if best is None:
            return False
        loss, trial, parent = best
        parents = (*trial.kept, parent)
        search.accept(child, parents, "add", parents[len(own) :], rest.state, loss)
        return True


def _prefixes(own: tuple[int, ...], allowed: Sequence[int], k: int) -> list[tuple[int, ...]]:
    """Parent sets to which one more is added, small ones first: the own parents and up to k - 1 in all."""
    room = k - len(own)
    return [(*own, *extra) for size in range(max(room, 0)) for extra in combinations(allowed, size)]
