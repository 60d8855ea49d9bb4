"""Minimise the objective of a parametrisation, step by step, and keep the best point whatever happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from marginbayes.parameters.parametrisation import Problem
from marginbayes.solvers import Moment
from marginbayes.solvers.interrupt import kernel_interrupts
from marginbayes.solvers.lbfgs import lbfgs

__all__ = ["SOLVERS", "Descent", "Enough", "descend"]

Floats = NDArray[np.float64]
SOLVERS = ("lbfgs", "cg")
# Pairs of steps that limited-memory BFGS remembers.
MEMORY = 20
# Ten steps of L-BFGS that gain less than this, relative to the tolerance of slopes, end it: valleys can be long.
LEAST_GAIN = 0.01
# Steps after which the curvature of the start is out of date.
OUT_OF_DATE = 10


class Enough(Exception):
    """Raised by a `watch` that has seen enough: the descent ends."""


@dataclass(frozen=True)
class Descent:
    """The best point, minus the least objective after each step, and why it ended."""

    point: Floats
    path: tuple[float, ...]
    status: str


def descend(
    problem: Problem,
    start: Floats,
    *,
    solver: str = "lbfgs",
    max_iter: int = 500,
    tol: float = 1e-6,
    watch: Callable[[Floats], None] | None = None,
    callback: Callable[[Moment], None] | None = None,
) -> Descent:
    """The best point within `max_iter` steps; Ctrl-C ends it early.

    L-BFGS works in variables scaled by their curvature at the start, conjugate gradients in the variables as they are.
    `watch` is given the point after each step, and may raise `Enough`.
    """
    scale = problem.scale(start) if solver == "lbfgs" else np.ones(len(start))
    course = _Course(problem, start, scale, watch, callback)
    try:
        with kernel_interrupts():
            status = course.lbfgs(max_iter, tol) if solver == "lbfgs" else course.conjugate_gradients(max_iter, tol)
    except Enough:
        status = "watched enough"
    except KeyboardInterrupt:  # the best point so far is kept
        status = "interrupted"
    return Descent(course.best, tuple(course.path), status)


class _Course:
    """The objective per unit of weight in scaled variables, and the best point it was asked for."""

    def __init__(
        self,
        problem: Problem,
        start: Floats,
        scale: Floats,
        watch: Callable[[Floats], None] | None,
        callback: Callable[[Moment], None] | None,
    ) -> None:
        self.problem, self.best, self.scale, self.watch, self.callback = problem, start, scale, watch, callback
        self.lowest, self.steepest, self.path = np.inf, np.inf, list[float]()
        self.weight = max(problem.design.total, np.finfo(float).tiny)
        self.began = time.monotonic()

    def lbfgs(self, max_iter: int, tol: float) -> str:
        """Run limited-memory BFGS from the best point; why it ended.

        Where gradients are steered the curvature at the start is soon out of date, and looked at once more.
        """
        steer = self.problem.steer(self.best)
        first = max_iter if steer is None else min(OUT_OF_DATE, max_iter)
        status = self._stage(first, tol, steer)
        if status == "iteration limit" and first < max_iter:
            steer, self.scale = self.problem.steer(self.best), self.problem.scale(self.best)
            status = self._stage(max_iter - first, tol, steer)
        return status

    def _stage(self, max_iter: int, tol: float, steer: Callable[[Floats], Floats] | None) -> str:
        return lbfgs(
            self.objective,
            self.best * self.scale,
            tol=tol,
            least_gain=LEAST_GAIN * tol,
            max_iter=max_iter,
            memory=MEMORY,
            precondition=steer,
            watch=self.note,
        ).status

    def conjugate_gradients(self, max_iter: int, tol: float) -> str:
        """Run Polak-Ribiere conjugate gradients from the best point; why it ended."""
        if max_iter < 1:
            return "iteration limit"
        options = {"maxiter": max_iter, "gtol": tol}
        start = self.best * self.scale
        found = minimize(self.objective, start, jac=True, method="CG", callback=self.note, options=options)
        return "iteration limit" if found.nit >= max_iter else "converged"

    def objective(self, scaled: Floats) -> tuple[float, Floats]:
        point = scaled / self.scale
        value, gradient = self.problem.objective(point)
        if value < self.lowest:
            self.best, self.lowest, self.steepest = point, value, float(np.abs(gradient).max())
        return value / self.weight, gradient / (self.scale * self.weight)

    def note(self, scaled: Floats) -> None:
        self.path.append(-self.lowest)
        if self.watch is not None:
            self.watch(scaled / self.scale)
        if self.callback is not None:
            # Losses are not negative, so 0 is the one bound that holds without further work.
            self.callback(
                Moment(time.monotonic() - self.began, -self.lowest, 0.0, f"largest slope {self.steepest:.2g}")
            )
