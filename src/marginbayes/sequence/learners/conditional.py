"""Conditional likelihood of label vectors: a conditional random field with the tables of a Bayesian network."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from marginbayes import checks
from marginbayes.sequence.examples import Examples
from marginbayes.sequence.learners.base import Callback, WeightLearner, WeightResult
from marginbayes.sequence.learners.likelihood import StructuredLikelihood
from marginbayes.solvers import Moment
from marginbayes.solvers.interrupt import kernel_interrupts

__all__ = ["ConditionalObjective", "StructuredConditional"]

Floats = NDArray[np.float64]


class StructuredConditional(WeightLearner):
    """Weights of greatest conditional likelihood, shrunk towards scaled maximum likelihood.

    The weights are ``s * w_ML + U``; ``l2 / 2`` times the squares of U and of s - 1 is added to minus the conditional
    log-likelihood of all examples. The problem has one optimum, found by L-BFGS with forward-backward gradients.

    Parameters
    ----------
    l2 : float, default=0.1
        Strength of the shrinkage; 0 leaves it out.
    smoothing : float, default=1.0
        Of the maximum-likelihood tables.
    max_iter : int, default=500
        Most steps of the solver.
    tol : float, default=1e-8
        The solver stops when no component of the gradient exceeds it, relative to the weight of the examples.
    callback : callable, default=None
        Called with a `Moment` after each step: the objective, and zero, which no probability exceeds, as its bound.
    """

    def __init__(
        self,
        l2: float = 0.1,
        *,
        smoothing: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-8,
        callback: Callback | None = None,
    ) -> None:
        self.l2 = l2
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback

    def learn(self, examples: Examples) -> WeightResult:
        """Weights, not normalised; Ctrl-C ends the optimisation and keeps the best so far."""
        checks.not_negative("l2", self.l2)
        checks.positive("smoothing", self.smoothing)
        checks.whole("max_iter", self.max_iter)
        checks.not_negative("tol", self.tol, infinite=True)
        reference = StructuredLikelihood(self.smoothing).learn(examples).weights
        objective = ConditionalObjective(examples, reference, float(self.l2))
        scale = max(1.0, float(examples.weights.sum()))
        best, lowest, path, started = objective.start, np.inf, [], time.perf_counter()

        def scaled(point: Floats) -> tuple[float, Floats]:
            nonlocal best, lowest
            value, gradient = objective(point)
            if value < lowest:
                best, lowest = point.copy(), value
            return value / scale, gradient / scale

        def after_step(_: Floats) -> None:
            path.append(-lowest)
            if self.callback is not None:
                self.callback(Moment(time.perf_counter() - started, -lowest, 0.0, f"{len(path)} steps"))

        options = {"maxiter": self.max_iter, "maxfun": 10 * self.max_iter, "gtol": self.tol, "ftol": 1e-15}
        status = "finished"
        try:
            with kernel_interrupts():
                minimize(scaled, best, jac=True, method="L-BFGS-B", callback=after_step, options=options)
        except KeyboardInterrupt:  # the best point so far is kept
            status = "interrupted"
        return WeightResult(objective.weights(best), path=tuple(path), status=status)


class ConditionalObjective:
    """Minus the conditional log-likelihood plus the shrinkage, and its gradient, at a point (s, U)."""

    def __init__(self, examples: Examples, reference: Floats, l2: float) -> None:
        self.examples, self.reference, self.l2 = examples, reference, l2
        self.start = np.concatenate([[1.0], np.zeros(len(reference))])

    def weights(self, point: Floats) -> Floats:
        """s * reference + U."""
        return np.asarray(point[0] * self.reference + point[1:])

    def __call__(self, point: Floats) -> tuple[float, Floats]:
        weights, shift = self.weights(point), point[1:]
        found, truth = self.examples.expect(weights), self.examples.true_features
        loss = float((self.examples.weights * found.log_partition).sum() - (weights * truth).sum())
        slope, excess = found.features - truth, float(point[0]) - 1.0
        value = loss + 0.5 * self.l2 * (float((shift * shift).sum()) + excess * excess)
        first = float((slope * self.reference).sum()) + self.l2 * excess
        return value, np.concatenate([[first], slope + self.l2 * shift])
