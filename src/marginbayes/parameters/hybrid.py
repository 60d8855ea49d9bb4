"""Likelihood and margin in one convex problem: a proper network by construction, with a certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.blas import matrix_threads
from marginbayes.data.counts import family_counts
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.data.small import small_table
from marginbayes.graph import Dag
from marginbayes.graph.renormalize import unmarried_parents
from marginbayes.network import Network
from marginbayes.network.renormalize import renormalize
from marginbayes.network.smoothing import log_table
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.certified import distinct_rows, graph_evidence, sparse
from marginbayes.parameters.design import Design
from marginbayes.parameters.tuning import learn_tuned
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.coordinate import MarginRows
from marginbayes.solvers.entropic import EntropicHinge, Layout
from marginbayes.solvers.entropic_interior import Solution, minimise

__all__ = ["MarginHybrid"]

Floats = NDArray[np.float64]
KINDS = ("laplace", "ess")
# A target in nats that is chosen from the data stays between these: less is no margin, more is out of reach.
LEAST_TARGET, MOST_TARGET = 0.1, 10.0
# Over matrices of fewer rows the threads of the matrix library would only wait for each other.
FEW_ROWS = 5000
# Log of a row's sum that is as good as zero.
NORMAL = 1e-9


class MarginHybrid(ParameterLearner):
    """Tables that are as likely as possible and classify with a margin, with a certificate.

    Minimises, over log tables w whose rows sum to at most one,
    ``-a.w + B sum_n weight_n max(0, target - margin_n(w))`` with a the smoothed counts and the margin of a row the log
    probability of its class less the best of another (after Peharz, Tschiatschek & Pernkopf 2013). The problem is
    convex and has an optimum. Its dual re-weights the counts: a row that lacks margin adds up to B copies of itself
    to the counts of its own class and takes as much from those of its rivals, so the optimum is a normalised network.

    Parameters
    ----------
    B : float, default=1.0
        Cost of missing margin: the most copies of itself that a row may add. Maximum likelihood is the limit 0.
    target : "auto" or float, default="auto"
        Wanted margin in nats. ``"auto"``: the median margin that the smoothed maximum-likelihood network has, at least
        0.1 and at most 10.
    smoothing : float, default=1.0
        Added to the counts; must be positive.
    kind : {"laplace", "ess"}, default="laplace"
        ``"laplace"`` adds the amount to every cell, ``"ess"`` spreads it over the cells of a table (BDeu).
    tol : float, default=1e-6
        Wanted gap between objective and bound, relative to the objective.
    max_iter : int, default=300
        Most steps of the interior-point method.
    time_limit : float or None, default=None
        Seconds of the solver. What is compiled at its first use does not count.
    tune : bool or dict, default=False
        Choose B and target by inner cross-validation, from `GRID` or the values given; every point starts where its
        neighbour ended.
    n_jobs : int or None, default=None
        Threads over rows; the result does not depend on it.
    random_state : int or None, default=None
        Seed of the folds of `tune`.
    callback : callable, default=None
        Given a `marginbayes.solvers.Moment` with objective and bound after each step.

    Notes
    -----
    A family with a missing member adds nothing to a row's counts and score while learning; rows without a class count
    only for families without it, which are those of maximum likelihood. Ctrl-C and the limits keep the best so far.

    A row of a table may lose all of its counts to rivals (only where smoothing differs between tables, or cells are
    missing). The optimum, which the certificate is about, may then have a row that sums to less than one. Where the
    parents of every feature are joined, the network is renormalised, which changes no decision about a complete row;
    else such a row is scaled to one, which may change decisions, and the status of the certificate says so.
    """

    GRID: ClassVar[Mapping[str, Sequence[Any]]] = {"B": (0.1, 1.0, 10.0), "target": ("auto", 1.0, 5.0)}
    TUNING_TOL: ClassVar[float] = 1e-4

    def __init__(
        self,
        B: float = 1.0,
        target: float | str = "auto",
        *,
        smoothing: float = 1.0,
        kind: str = "laplace",
        tol: float = 1e-6,
        max_iter: int = 300,
        time_limit: float | None = None,
        tune: bool | Mapping[str, Sequence[Any]] = False,
        n_jobs: int | None = None,
        random_state: int | None = None,
        callback: Callable[[Moment], None] | None = None,
    ) -> None:
        self.B = B
        self.target = target
        self.smoothing = smoothing
        self.kind = kind
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.tune = tune
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback

    def learn(
        self, schema: Schema, dag: Dag, rows: Rows, start: Network | None = None, design: Design | None = None
    ) -> ParameterResult:
        """Network with this graph for these rows, and its certificate.

        Parameters
        ----------
        start : Network, default=None
            Where to start, for instance what was learned with another setting; by default maximum likelihood.
        design : Design, default=None
            The index arrays of this graph and these rows, if they are there already.
        """
        self._check()
        if self.time_limit is not None:
            _compile_kernels()
        if self.tune:
            return learn_tuned(self, schema, dag, rows, start)
        design = design or Design.of(dag, rows, self.n_jobs)
        problem = self._problem(design, distinct_rows(design))
        found = self._solve(problem, None if start is None else design.flatten(start.tables))
        others = self._others(design, rows)
        network, note = _network(schema, design, problem.layout, found.weights, others)
        if note is not None:
            found = replace(found, status=f"{found.status}; {note}")
        path = tuple(objective for _, objective, _ in found.trace)
        return ParameterResult(network, self._certificate(dag, design, problem, found), path)

    def _problem(self, design: Design, rows: MarginRows) -> EntropicHinge:
        counts = _smoothing(design, self.kind, self.smoothing) + _counts(rows)
        layout = Layout(rows.cells, rows.labels, counts, *_order(design), self.n_jobs)
        target = self.target
        if isinstance(target, str):
            target = _usual_margin(rows, layout.normalised(np.log(counts)))
        return EntropicHinge(layout, self.B * rows.row_weights, float(target))

    def _others(self, design: Design, rows: Rows) -> list[Floats]:
        """The tables of families without the class, by maximum likelihood; empty ones for all others."""
        tables = [np.empty(0)] * len(design.dag.names)
        without = [i for i in range(len(tables)) if i not in design.families]
        counts = family_counts(rows, [(*design.dag.parents[i], i) for i in without])
        for i, counted in zip(without, counts, strict=True):
            tables[i] = log_table(counted, self.kind, self.smoothing)
        return tables

    def _solve(self, problem: EntropicHinge, start: Floats | None) -> Solution:
        usable = start is not None and bool(np.isfinite(start).all())
        with matrix_threads(1) if len(problem.caps) < FEW_ROWS else nullcontext():
            return minimise(
                problem,
                start if usable else None,
                tol=self.tol,
                max_iter=self.max_iter,
                time_limit=self.time_limit,
                watch=self.callback,
            )

    def _certificate(self, dag: Dag, design: Design, problem: EntropicHinge, found: Solution) -> Certificate:
        evidence = {
            **graph_evidence(dag, design),
            "B": self.B,
            "target": problem.target,
            "smoothing": self.smoothing,
            "kind": self.kind,
            "gap": self.tol,
            "weights": found.weights,
            "duals": sparse(problem.layout.labels, -found.eta),
        }
        numbers = found.objective, found.bound, found.status, found.seconds, found.trace
        return Certificate("margin-hybrid", "min", *numbers, evidence=evidence)

    def _check(self) -> None:
        checks.positive("B", self.B)
        checks.positive("smoothing", self.smoothing)
        if not (isinstance(self.target, str) and self.target == "auto"):
            checks.positive("target", self.target, note=" of nats, or 'auto'")
        checks.one_of("kind", self.kind, KINDS)
        checks.not_negative("tol", self.tol, infinite=True)
        checks.whole("max_iter", self.max_iter, 1)
        checks.not_negative("time_limit", self.time_limit, infinite=True, none=True)
        checks.jobs("n_jobs", self.n_jobs)
        checks.whole("random_state", self.random_state, none=True)


@cache
def _compile_kernels() -> None:
    """Learn from a small table, once in a process: no time limit is spent on what is compiled at its first use."""
    schema, rows = small_table()
    chain = Dag(schema.names, ((), *((0, i - 1) if i > 1 else (0,) for i in range(1, len(schema.names)))))
    if MarginHybrid().learn(schema, chain, rows).interrupted:
        raise KeyboardInterrupt


def _counts(rows: MarginRows) -> Floats:
    """Weight of the rows that use a cell, by class; cells x classes."""
    from marginbayes.kernels.margins import add_weights

    out = np.zeros(rows.shape)
    add_weights(rows.cells, rows.labels, rows.row_weights, out)
    return out


def _smoothing(design: Design, kind: str, amount: float) -> Floats:
    """What is added to each cell (cells x 1)."""
    sizes = np.array(design.sizes)
    each = amount / (sizes * design.shape[1]) if kind == "ess" else np.full(len(sizes), amount)
    return np.repeat(each, sizes)[:, None]


def _order(design: Design) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Family of each cell, and the parents' assignment (the class left open) to which it belongs, both ascending."""
    sizes, levels = np.array(design.sizes), np.array(design.cardinalities)[list(design.families)]
    levels[0] = 1  # the class itself
    families = np.repeat(np.arange(len(sizes)), sizes)
    begins, numbers = np.cumsum(sizes) - sizes, np.cumsum(sizes // levels) - sizes // levels
    within = np.arange(len(families)) - begins[families]
    return families, (numbers[families] + within // levels[families]).astype(np.int32)


def _usual_margin(rows: MarginRows, weights: Floats) -> float:
    """Weighted median of the margins, kept within bounds."""
    if rows.shape[1] < 2 or not len(rows):
        return 1.0
    scores, at = rows.scores(weights), np.arange(len(rows))
    own = scores[at, rows.labels].copy()
    scores[at, rows.labels] = -np.inf
    margins = own - scores.max(axis=1)
    order = np.argsort(margins, kind="stable")
    so_far = np.cumsum(rows.row_weights[order])
    middle = margins[order[np.searchsorted(so_far, so_far[-1] / 2)]]
    return float(np.clip(middle, LEAST_TARGET, MOST_TARGET))


def _network(
    schema: Schema, design: Design, layout: Layout, weights: Floats, others: Sequence[Floats]
) -> tuple[Network, str | None]:
    """The network of the weights, and what had to be done to rows that sum to less than one."""
    logs, note = layout.log_sums(weights), None
    if float(np.abs(logs).max(initial=0.0)) > NORMAL:
        if unmarried_parents(design.dag) is not None:
            weights, note = layout.normalised(weights), "rows that sum to less than one were scaled to one"
        else:
            tables = renormalize(design.dag, design.tables(weights, others))
            return Network(schema, design.dag, tuple(tables)), None
    return Network(schema, design.dag, tuple(np.array(t) for t in design.tables(weights, others))), note
