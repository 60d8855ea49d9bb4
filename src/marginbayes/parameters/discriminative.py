"""What the discriminative learners share: everything but what a row costs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.graph.renormalize import is_renormalizable
from marginbayes.network import Network
from marginbayes.network.smoothing import KINDS
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.certified import NORMALIZE
from marginbayes.parameters.crosstuning import EARLY_STOPPING, steps_to_take
from marginbayes.parameters.descent import SOLVERS, Descent, descend
from marginbayes.parameters.design import Design
from marginbayes.parameters.folds import in_folds
from marginbayes.parameters.likelihood import MaximumLikelihood
from marginbayes.parameters.parametrisation import Concave, Problem, Softmax
from marginbayes.parameters.rowloss import RowLoss
from marginbayes.parameters.tuning import learn_tuned
from marginbayes.solvers import Moment

__all__ = ["DescentResult", "DiscriminativeLearner"]

Floats = NDArray[np.float64]
FORMS = ("auto", "concave", "softmax")
FOLDS = 5


@dataclass(frozen=True)
class DescentResult(ParameterResult):
    """Also why the descent ended: ``"converged"``, ``"little gain"``, ``"iteration limit"``, ``"no lower value"`` or
    ``"interrupted"``; and the numbers that it ended at, where another descent can start.
    """

    status: str = "converged"
    point: Floats | None = field(default=None, repr=False)


class DiscriminativeLearner(ParameterLearner):
    """Tables that minimise the sum of a loss over rows, by gradients. Subclasses say which loss."""

    GRID: ClassVar[Mapping[str, Sequence[Any]]]

    l2: float
    pool: bool
    form: str
    solver: str
    smoothing: float
    kind: str
    max_iter: int
    tol: float
    early_stopping: str | None
    normalize: str
    tune: bool | Mapping[str, Sequence[Any]]
    n_jobs: int | None
    random_state: int | None
    callback: Callable[[Moment], None] | None

    @abstractmethod
    def row_loss(self) -> RowLoss:
        """What a row costs."""

    def learn(
        self,
        schema: Schema,
        dag: Dag,
        rows: Rows,
        start: Network | None = None,
        design: Design | None = None,
        previous: ParameterResult | None = None,
    ) -> ParameterResult:
        """Network with this graph for these rows; Ctrl-C ends the optimisation and keeps the best tables so far.

        Parameters
        ----------
        start : Network, default=None
            Where to start, for instance what was learned with another setting; by default maximum likelihood. What it
            is shrunk towards does not depend on it.
        design : Design, default=None
            The index arrays of this graph and these rows, if they are there already.
        previous : ParameterResult, default=None
            What this learner found for the same graph with other parameters: a better start than its network, because
            renormalisation moves numbers between tables.
        """
        if self.tune:
            return learn_tuned(self, schema, dag, rows, start)
        problem, found = self._train(schema, dag, rows, start, design, previous)
        likeliest = self.normalize == "likeliest"
        tables, cut = problem.tables(found.point) if likeliest else (problem.plain_tables(found.point), False)
        network = Network(schema, dag, tuple(tables))
        status = "interrupted" if cut else found.status
        return DescentResult(network, path=found.path, status=status, point=found.point)

    def train_scores(self, schema: Schema, dag: Dag, rows: Rows) -> Floats:
        """Scores of all classes in these rows, each of a known class, under the log tables of `learn`.

        They take less time, because the tables are not normalised: a score is the log joint probability up to a term
        that the classes of a row share. Ctrl-C is not held back.
        """
        problem, found = self._train(schema, dag, rows)
        if found.status == "interrupted":
            raise KeyboardInterrupt
        return problem.design.scores(problem.weights(found.point))[rows.merged()[1]]  # the design has merged them

    def _train(
        self,
        schema: Schema,
        dag: Dag,
        rows: Rows,
        start: Network | None = None,
        design: Design | None = None,
        previous: ParameterResult | None = None,
    ) -> tuple[Problem, Descent]:
        self._check(dag)
        limit, interrupted = self._limit(schema, dag, rows)
        problem = self._problem(schema, dag, rows, design)
        found = self._descend(problem, self._first(problem, start, previous), limit)
        return problem, replace(found, status="interrupted") if interrupted else found

    def _first(self, problem: Problem, start: Network | None, previous: ParameterResult | None) -> Floats:
        if self.early_stopping is not None:
            return problem.start()  # the steps of cross tuning are counted from maximum likelihood
        known = previous.point if isinstance(previous, DescentResult) else None
        return known if known is not None and known.shape == problem.shape else problem.start(start)

    def _problem(self, schema: Schema, dag: Dag, rows: Rows, design: Design | None = None) -> Problem:
        reference = MaximumLikelihood(self.smoothing, self.kind).learn(schema, dag, rows).network
        concave = self.form == "concave" or (self.form == "auto" and is_renormalizable(dag))
        form = Concave if concave else Softmax
        return form(design or Design.of(dag, rows, self.n_jobs), reference, float(self.l2), self.row_loss(), self.pool)

    def _descend(
        self, problem: Problem, start: Floats, max_iter: int, watch: Callable[[Floats], None] | None = None
    ) -> Descent:
        callback = self.callback if watch is None else None
        return descend(
            problem, start, solver=self.solver, max_iter=max_iter, tol=self.tol, watch=watch, callback=callback
        )

    def _limit(self, schema: Schema, dag: Dag, rows: Rows) -> tuple[int, bool]:
        """Most steps, by cross tuning if it is wanted, and whether that was interrupted."""
        if self.early_stopping is None:
            return self.max_iter, False
        return steps_to_take(
            in_folds(rows, FOLDS, self.random_state),
            lambda train: self._problem(schema, dag, train),
            lambda problem, watch: self._descend(problem, problem.start(), self.max_iter, watch),
            self.early_stopping,
        )

    def _check(self, dag: Dag) -> None:
        for name, choices in (
            ("form", FORMS),
            ("solver", SOLVERS),
            ("kind", KINDS),
            ("early_stopping", EARLY_STOPPING),
            ("normalize", NORMALIZE),
        ):
            checks.one_of(name, getattr(self, name), choices)
        checks.not_negative("l2", self.l2)
        checks.not_negative("smoothing", self.smoothing)
        checks.whole("max_iter", self.max_iter)
        checks.not_negative("tol", self.tol, infinite=True)
        checks.jobs("n_jobs", self.n_jobs)
        checks.whole("random_state", self.random_state, none=True)
        if self.form == "concave" and not is_renormalizable(dag):
            raise ValueError("form='concave' needs that the parents of every feature are joined; use form='softmax'")
