"""Conditional likelihood: tables that make the classes of the training rows as probable as possible."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.graph.renormalize import is_renormalizable
from marginbayes.network import Network
from marginbayes.network.renormalize import renormalize
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.parameters.design import Design
from marginbayes.parameters.likelihood import MaximumLikelihood

__all__ = ["ConditionalLikelihood"]

Floats = NDArray[np.float64]
FORMS = ("auto", "concave", "softmax")
SOLVERS = {"lbfgs": "L-BFGS-B", "cg": "CG"}


class ConditionalLikelihood(ParameterLearner):
    """Tables of greatest conditional likelihood, shrunk towards maximum likelihood.

    Parameters
    ----------
    l2 : float, default=0.1
        Strength of the shrinkage: half of it times the squared distance from the (scaled) maximum-likelihood log
        tables is added to minus the conditional log-likelihood of all rows. 0 leaves it out.
    form : {"auto", "concave", "softmax"}, default="auto"
        ``"concave"``: the log tables are free, ``s w_ML + U`` with the shrinkage on U and s free; a concave problem
        with one optimum. The result is then renormalised, which needs that the parents of every feature are joined.
        ``"softmax"``: the tables are normalised throughout (section 4.2 of Pernkopf & Bilmes 2010); for every
        structure. ``"auto"`` takes the first where it can.
    solver : {"lbfgs", "cg"}, default="lbfgs"
        Limited-memory BFGS, or the Polak-Ribiere conjugate gradients of the paper.
    smoothing : float, default=1.0
        Of the maximum-likelihood tables at the start (Laplace).
    max_iter : int, default=500
    tol : float, default=1e-6
        The solver stops when no component of the gradient exceeds it, relative to the weight of the rows.
    n_jobs : int or None, default=None
        Threads over rows.

    Notes
    -----
    A family with a missing member adds nothing to a row's score while learning. One evaluation costs two passes over
    rows, families and classes; memory is one integer for each row and family.
    """

    def __init__(
        self,
        l2: float = 0.1,
        *,
        form: str = "auto",
        solver: str = "lbfgs",
        smoothing: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-6,
        n_jobs: int | None = None,
    ) -> None:
        self.l2 = l2
        self.form = form
        self.solver = solver
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs

    def learn(self, schema: Schema, dag: Dag, rows: Rows) -> ParameterResult:
        """Network with this graph for these rows; Ctrl-C ends the optimisation and keeps the best tables so far."""
        self._check(dag)
        start = MaximumLikelihood(self.smoothing).learn(schema, dag, rows).network
        design = Design.of(dag, rows, self.n_jobs)
        concave = self.form == "concave" or (self.form == "auto" and is_renormalizable(dag))
        problem = _Concave(design, start, self.l2) if concave else _Softmax(design, start, self.l2)
        best, path = self._minimise(problem, float(design.row_weights.sum()))
        return ParameterResult(Network(schema, dag, tuple(problem.tables(best))), path=path)

    def _check(self, dag: Dag) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form={self.form!r} is not known; choose one of {', '.join(map(repr, FORMS))}")
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r} is not known; choose one of {', '.join(map(repr, SOLVERS))}")
        if not self.l2 >= 0:
            raise ValueError(f"l2={self.l2!r} must be a number that is not negative")
        if self.form == "concave" and not is_renormalizable(dag):
            raise ValueError("form='concave' needs that the parents of every feature are joined; use form='softmax'")

    def _minimise(self, problem: _Problem, weight: float) -> tuple[Floats, tuple[float, ...]]:
        best, lowest, path = problem.start(), np.inf, []

        def objective(point: Floats) -> tuple[float, Floats]:
            nonlocal best, lowest
            value, gradient = problem.objective(point)
            if value < lowest:
                best, lowest = point.copy(), value
            return value / weight, gradient / weight

        def note(_: Floats) -> None:
            path.append(-lowest)

        options = {"maxiter": self.max_iter, "gtol": self.tol}
        if self.solver == "lbfgs":
            options |= {"ftol": 1e-15, "maxfun": 10 * self.max_iter}
        with suppress(KeyboardInterrupt):  # the best point so far is kept
            minimize(objective, best, jac=True, method=SOLVERS[self.solver], callback=note, options=options)
        return best, tuple(path)


class _Problem:
    """A parametrisation: where to start, the objective to be minimised, and the tables of a point."""

    def __init__(self, design: Design, start: Network, l2: float) -> None:
        self.design, self.network, self.l2 = design, start, l2
        self.reference = design.flatten(start.tables)

    start: Callable[[], Floats]
    objective: Callable[[Floats], tuple[float, Floats]]
    tables: Callable[[Floats], list[Floats]]


class _Concave(_Problem):
    """Weights s * reference + U; the point is (s, U)."""

    def start(self) -> Floats:
        return np.concatenate([[1.0], np.zeros(self.reference.size)])

    def _weights(self, point: Floats) -> Floats:
        return np.asarray(point[0] * self.reference + point[1:].reshape(self.reference.shape))

    def objective(self, point: Floats) -> tuple[float, Floats]:
        loss, gradient = self.design.loss(self._weights(point))
        shift = point[1:]
        value = loss + 0.5 * self.l2 * float(shift @ shift)
        return value, np.concatenate([[float((gradient * self.reference).sum())], gradient.ravel() + self.l2 * shift])

    def tables(self, point: Floats) -> list[Floats]:
        return renormalize(self.network.dag, self.design.tables(self._weights(point), self.network.tables))


class _Softmax(_Problem):
    """Free numbers whose softmax over the child's levels is the table; shrunk towards the logs of the reference."""

    def start(self) -> Floats:
        return self.reference.ravel().copy()

    def tables(self, point: Floats) -> list[Floats]:
        free = self.design.tables(point.reshape(self.reference.shape), self.network.tables)
        return [log_softmax(t, axis=-1) for t in free]

    def objective(self, point: Floats) -> tuple[float, Floats]:
        tables = self.tables(point)
        loss, gradient = self.design.loss(self.design.flatten(tables))
        slopes = self.design.tables(gradient, [np.zeros_like(t) for t in tables])
        # d log softmax(b)_x / d b_y = [x = y] - softmax(b)_y
        back = [s - np.exp(t) * s.sum(axis=-1, keepdims=True) for s, t in zip(slopes, tables, strict=True)]
        shift = point - self.reference.ravel()
        return loss + 0.5 * self.l2 * float(shift @ shift), self.design.flatten(back).ravel() + self.l2 * shift
