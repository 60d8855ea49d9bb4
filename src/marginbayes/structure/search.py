"""What all discriminative searches share: the rules, the record of the way, interruption, and selection by folds."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph.treewidth import has_treewidth_at_most
from marginbayes.scores.information import conditional_mutual_information
from marginbayes.scores.rowwise import row_score
from marginbayes.solvers.interrupt import kernel_interrupts
from marginbayes.structure.base import Step, StructureLearner, StructureResult
from marginbayes.structure.constraints import Constraints, Rules
from marginbayes.structure.engine import Engine, Parents, Rest, structure_dag
from marginbayes.structure.selection import held_out_rates

__all__ = ["Search", "SearchLearner", "Trial"]

Floats = NDArray[np.float64]

FOLDS = 5


class Trial(NamedTuple):
    """Candidates for one more parent of a child, besides those it keeps."""

    child: int
    kept: tuple[int, ...]
    candidates: list[int]
    rest: Rest | None = None  # what the other families make of all rows, if it is at hand


class Search:
    """One search under way: the engine, the rules, and every structure it went through."""

    def __init__(
        self,
        engine: Engine,
        rules: Rules,
        treewidth: bool = False,
        callback: Callable[[Step], None] | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.engine, self.rules, self.treewidth, self.callback = engine, rules, treewidth, callback
        self.workers = effective_n_jobs(n_jobs)
        self.started = time.perf_counter()
        self.status = "finished"
        for child, start in enumerate(rules.unsearched):
            if start != engine.parents[child]:
                engine.set_parents(child, start)
        self.restart()
        if not self.stays_narrow({}):
            raise ValueError(f"the required edges alone have a treewidth above k={rules.k}; leave out treewidth=True")

    def restart(self) -> None:
        """Let the record begin at the present structure."""
        self.path: list[Step] = []
        self.structures: list[list[Parents]] = [list(self.engine.parents)]
        self.start_score = self.engine.value

    @property
    def tolerance(self) -> float:
        """How much a loss must fall to count as better."""
        return self.engine.tolerance

    @property
    def open_features(self) -> list[int]:
        """Features that take part: all that are not dropped."""
        return self.engine.active

    def may_add(self, parent: int, child: int) -> bool:
        """Whether the rules allow one more edge."""
        own = self.engine.parents[child]
        if own is None or self.engine.parents[parent] is None or parent in own or len(own) >= self.rules.k:
            return False
        if not self.rules.allowed[parent, child] or child in self.engine.ancestors(parent):
            return False
        return self.stays_narrow({child: (*own, parent)})

    def stays_narrow(self, changes: Mapping[int, Parents]) -> bool:
        """Whether the moralised graph of the features keeps treewidth k with these parents of some children.

        True wherever nobody asked for it.
        """
        if not self.treewidth or self.rules.k < 2:
            return True
        families = [[*(changes.get(i, p) or ()), i] for i, p in enumerate(self.engine.parents)]
        return has_treewidth_at_most(families, self.rules.k)

    def parents_for(self, child: int, among: Sequence[int] | None = None) -> list[int]:
        """The parents that could be added to a feature, of all features or of these: where `may_add` is true."""
        own, present = self.engine.parents[child], self.engine.parents
        if own is None or len(own) >= self.rules.k:
            return []
        allowed, taken = self.rules.allowed[:, child].tolist(), self.engine.descendants(child).union(own)
        others = self.engine.features if among is None else among
        found = [j for j in others if allowed[j] and j not in taken and present[j] is not None]
        return [j for j in found if self.stays_narrow({child: (*own, j)})] if self.treewidth else found

    def best_of(self, trials: Sequence[Trial], limit: float) -> tuple[float, Trial, int] | None:
        """Loss, trial and candidate of the least loss below the limit; the first in a tie, on any number of threads.

        The limit falls while the trials run. That only gives up candidates that are strictly worse than another one,
        so the order in which threads finish does not change the answer.
        """
        lowest = [limit]

        def losses(trial: Trial) -> Floats:
            allowed = lowest[0] + self.tolerance
            found = self.engine.try_parents(trial.child, trial.kept, trial.candidates, allowed, trial.rest)
            lowest[0] = min(lowest[0], float(found.min(initial=np.inf)))
            return found

        best = None
        for trial, found in zip(trials, self._each(losses, trials), strict=True):
            if found.min(initial=np.inf) < limit:
                first = int(np.argmax(found < found.min() + self.tolerance))
                best = float(found[first]), trial, trial.candidates[first]
                limit = best[0] - self.tolerance
        return best

    def _each(self, function: Callable[[Trial], Floats], trials: Sequence[Trial]) -> Iterator[Floats]:
        if self.workers <= 1 or len(trials) < 2:
            yield from map(function, trials)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            yield from pool.map(function, trials)

    def accept(
        self,
        child: int,
        parents: Parents,
        change: str,
        parent: int | Sequence[int] | None,
        without: Floats | None = None,
        loss: float | None = None,
    ) -> None:
        """Make a change and put it on record; `parent` names the parent, or the parents, that it is about."""
        self.engine.set_parents(child, parents, without, loss)
        self.record(change, parent, child)

    def record(self, change: str, parent: int | Sequence[int] | None, child: int | None) -> None:
        """Put the present structure on record."""
        names = self.engine.schema.names
        about = () if parent is None else (parent,) if isinstance(parent, int) else parent
        step = Step(
            change,
            ", ".join(names[p] for p in about) or None,
            None if child is None else names[child],
            self.engine.value,
            time.perf_counter() - self.started,
        )
        self.structures.append(list(self.engine.parents))  # first: an interruption between the two does no harm
        self.path.append(step)
        if self.callback is not None:
            self.callback(step)


class SearchLearner(StructureLearner):
    """A search that starts at naive Bayes and is guided by how rows are classified.

    Parameters
    ----------
    score : {"cr", "cl", "sm", "sbm"}, default="cr"
        Classification rate, conditional log-likelihood, soft margin, binary soft margin, all on the training rows.
    k : int, default=1
        Most feature parents of a feature (the class is always one more).
    gamma : float or None, default=None
        The margin that is enough, for "sm" and "sbm", in nats; log(0.9 / 0.1) by default.
    smoothing : float, default=1.0
        Of the tables during the search; see `MaximumLikelihood`.
    kind : {"laplace", "ess", "floor"}, default="laplace"
        Of that smoothing.
    constraints : Constraints or None, default=None
        Edges that are required or forbidden, and what else the structure has to obey.
    selection : {None, "cv"}, default=None
        ``"cv"``: the search is repeated in five folds of the training data, and the number of changes whose structure
        classifies the held-out rows best is made; fewer in a tie.
    candidates : int or None, default=None
        Each feature may only have this many features as parents, those of greatest conditional mutual information.
    treewidth : bool, default=False
        Whether the moralised graph of the features must stay a partial k-tree. A limit of k parents alone does not
        ensure it for k > 1. Exact for k = 2; for more, a structure may be refused although its treewidth is k.
    max_table : float, default=1e7
        Most cells of a table; more is an error.
    n_jobs : int or None, default=None
        Threads over candidates; the result does not depend on it.
    random_state : int or None, default=None
        Seed of the folds, and of learners that draw.
    callback : callable or None, default=None
        Called with each `Step`.
    """

    def __init__(
        self,
        score: str = "cr",
        k: int = 1,
        *,
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
        self.score = score
        self.k = k
        self.gamma = gamma
        self.smoothing = smoothing
        self.kind = kind
        self.constraints = constraints
        self.selection = selection
        self.candidates = candidates
        self.treewidth = treewidth
        self.max_table = max_table
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    # Whether the search also accepts changes for the worse, so that its last structure may not be its best.
    wanders = False

    @abstractmethod
    def run(self, search: Search, rows: Rows) -> None:
        """Improve the structure of the search until nothing does."""

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """Structure for these rows; Ctrl-C ends the search and keeps the best so far."""
        self._check()
        try:
            return self._learned(schema, rows)
        except KeyboardInterrupt:  # before there was any score
            required = Constraints.given(self.constraints).compile(schema.names, self.k).unsearched
            return StructureResult(structure_dag(schema.names, required), status="interrupted")

    def _learned(self, schema: Schema, rows: Rows) -> StructureResult:
        judged = rows.labelled()
        try:
            with kernel_interrupts():
                most = None if self.selection is None or len(judged) < 2 else self._select(schema, judged)
        except KeyboardInterrupt:
            search, most = self._started(schema, rows, None), 0
            search.status = "interrupted"
        else:
            search = self._searched(schema, rows, self.callback)
        return self._result(search, most)

    def _started(self, schema: Schema, rows: Rows, callback: Callable[[Step], None] | None) -> Search:
        return Search(self._engine(schema, rows), self._rules(schema, rows), self.treewidth, callback, self.n_jobs)

    def _searched(self, schema: Schema, rows: Rows, callback: Callable[[Step], None] | None) -> Search:
        search = self._started(schema, rows, callback)
        try:
            with kernel_interrupts():
                if schema.cardinalities[0] > 1:
                    self.run(search, rows)
        except KeyboardInterrupt:
            search.status = "interrupted"
        return search

    def _engine(self, schema: Schema, rows: Rows) -> Engine:
        return Engine(schema, rows, row_score(self.score, self.gamma), self.smoothing, self.kind, self.max_table)

    def _rules(self, schema: Schema, rows: Rows) -> Rules:
        rules = Constraints.given(self.constraints).compile(schema.names, self.k)
        if self.candidates is None:
            return rules
        return rules.restricted(_strongest(conditional_mutual_information(rows), self.candidates, rules))

    def _check(self) -> None:
        checks.whole("k", self.k)
        checks.one_of("selection", self.selection, (None, "cv"))
        checks.whole("candidates", self.candidates, 1, none=True)
        checks.jobs("n_jobs", self.n_jobs)
        checks.whole("random_state", self.random_state, none=True)

    def _result(self, search: Search, most: int | None) -> StructureResult:
        """The structure after `most` changes, else the last one, or the best where the search also goes down."""
        scores = [search.start_score, *(step.score for step in search.path)]
        last = int(np.argmax(scores)) if self.wanders or search.status == "interrupted" else len(search.path)
        chosen = last if most is None else min(most, len(search.path))
        return StructureResult(
            structure_dag(search.engine.schema.names, search.structures[chosen]),
            score=scores[chosen],
            path=tuple(search.path if self.wanders else search.path[:chosen]),
            start=search.start_score,
            status=search.status,
        )

    # -- selection among the nested structures

    def _select(self, schema: Schema, rows: Rows) -> int:
        """The number of changes that does best on held-out rows, over five folds."""
        rng = np.random.default_rng(self.random_state)
        folds = rng.permutation(len(rows)) % min(FOLDS, len(rows))
        rates = []
        for fold in np.unique(folds):
            train, test = rows.take(folds != fold), rows.take(folds == fold)
            search = self._searched(schema, train, None)
            if search.status == "interrupted":
                raise KeyboardInterrupt
            dags = [structure_dag(schema.names, s) for s in search.structures]
            rates.append(held_out_rates(schema, dags, train, test, self.smoothing, self.kind))
        longest = max(map(len, rates))
        padded = [np.concatenate([r, np.full(longest - len(r), r[-1])]) for r in rates]
        return int(np.argmax(np.round(np.mean(padded, axis=0), 12)))  # equal means tie, whatever their rounding


def _strongest(information: NDArray[np.float64], most: int, rules: Rules) -> NDArray[np.bool_]:
    """[parent, child]: whether the parent is among the `most` allowed ones of greatest information for the child."""
    d = len(information)
    allowed = np.zeros((d + 1, d + 1), bool)
    for child in range(d):
        others = [int(j) + 1 for j in np.argsort(-information[child], kind="stable") if j != child]
        free = [j for j in others if j not in rules.dropped and rules.allowed[j, child + 1]]
        allowed[free[:most], child + 1] = True
    return allowed
