"""Margin problems over label vectors by the exponential method of multipliers, with certified gaps.

The hinge loss of an example is a maximum over exponentially many labellings y, of
z(y) = margin * loss(y) - (lead of the truth over y). It is replaced by tau * log sum_y q(y) exp(z(y) / tau), a smooth
function whose gradient costs a forward and a backward pass; q is the distribution over labellings that the last round
found. Since q(y) is proportional to exp(potential_margin * loss(y) + potentials . features(y)), it is stored as one
vector of potentials. Each round minimises the smooth problem by L-BFGS from where the last one ended, then tau falls.

Every potentials prove a bound: their expected features are a feasible point of the dual, so the bound needs no
accuracy of the solver. The objective is evaluated exactly, by loss-augmented inference.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from marginbayes.sequence.examples import Examples
from marginbayes.sequence.learners.base import Callback, WeightResult
from marginbayes.sequence.learners.regularizers import Regularizer
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.interrupt import kernel_interrupts

__all__ = ["KIND", "solve"]

Floats = NDArray[np.float64]

KIND = "sequence-margin"
# Rounding in sums over long chains; the bound that is claimed is lower by this, relative to the objective.
PAD = 1e-9
COOLING, COLDEST, WARM = 0.25, 1e-4, 0.05
LOOK_EVERY = 15
# Probabilities of one label that rounding may have moved by more than this are no distribution to prove anything with;
# `verify` allows twice as much.
SPOILT = 5e-10
# The smooth problem is solved well enough when its error is below this share of what smoothing itself costs.
ENOUGH = 0.2


def solve(
    examples: Examples,
    regularizer: Regularizer,
    strength: float,
    margin: float,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    evidence: dict[str, Any] | None = None,
    start: Floats | None = None,
) -> WeightResult:
    """Weights of least regulariser + strength * structured hinge, and their certificate.

    `max_iter` limits the steps of L-BFGS over all rounds; `tol` is the relative gap at which to stop; `start` are
    weights that are nearly optimal already.
    """
    solver = _Solver(examples, regularizer, strength, margin, tol, callback)
    if start is not None:
        solver.warm_up(start)
    return solver.run(max_iter, evidence or {})


@dataclass(frozen=True, eq=False)
class _Dual:
    """A bound, and the potentials and share that prove it."""

    bound: float = -np.inf
    potentials: Floats | None = None
    potential_margin: float = 0.0
    share: float = 0.0


class _Solver:
    """The state of a run: multipliers, temperature, and the best of both sides."""

    def __init__(
        self,
        examples: Examples,
        regularizer: Regularizer,
        strength: float,
        margin: float,
        tol: float,
        callback: Callback | None,
    ) -> None:
        self.examples, self.regularizer, self.tol, self.callback = examples, regularizer, tol, callback
        self.strength, self.margin = strength, margin
        self.potentials, self.potential_margin, self.temperature = np.zeros(examples.n_weights), 0.0, margin
        self.point = regularizer.start()
        self.best_weights, self.objective, self.dual = regularizer.weights(self.point), np.inf, _Dual()
        self.trace: list[tuple[float, float, float]] = []
        self.started, self.steps = time.perf_counter(), 0

    # -- rounds

    def warm_up(self, weights: Floats) -> None:
        """Start at these weights, and cold."""
        self.point, self.best_weights = self.regularizer.coordinates(weights), weights
        self.temperature *= WARM

    def run(self, max_iter: int, evidence: dict[str, Any]) -> WeightResult:
        try:
            with kernel_interrupts():
                status = self._rounds(max_iter)
        except KeyboardInterrupt:
            status = "interrupted"
        return self._result(status, evidence)

    def _rounds(self, max_iter: int) -> str:
        """Cool down until the gap is closed or the steps are used up; the status."""
        self._improve(self.best_weights)
        while self.steps < max_iter:
            self._round(max_iter - self.steps)
            if self._gap() <= self.tol:
                return "optimal"
            self.potentials, self.potential_margin = self._potentials(self.regularizer.weights(self.point))
            self.temperature = max(COOLING * self.temperature, COLDEST * self.margin)
        return "iteration limit"

    def _round(self, most: int) -> None:
        """Minimise the smooth problem at this temperature, until well enough."""
        since = 0

        def after_step(point: Floats) -> None:
            nonlocal since
            since, self.steps, self.point = since + 1, self.steps + 1, point
            if (since % LOOK_EVERY == 0 and self._look()) or self.steps >= max_total:
                raise StopIteration

        max_total = self.steps + most
        options = {"maxiter": most, "maxfun": 20 * most + 20, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20}
        bounds = self.regularizer.bounds
        found = minimize(
            self._smooth, self.point, jac=True, method="L-BFGS-B", bounds=bounds, callback=after_step, options=options
        )
        self.point = found.x
        self.steps += 1  # so that rounds without a step come to an end
        self._look()

    def _potentials(self, weights: Floats) -> tuple[Floats, float]:
        """Potentials of the distribution over labellings that belongs to some weights."""
        return self.potentials + weights / self.temperature, self.potential_margin + self.margin / self.temperature

    def _smooth(self, point: Floats) -> tuple[float, Floats]:
        weights = self.regularizer.weights(point)
        potentials, potential_margin = self._potentials(weights)
        found, truth = self.examples.expect(potentials, potential_margin), self.examples.true_features
        level = float((self.examples.weights * found.log_partition).sum() - (potentials * truth).sum())
        value = self.regularizer.value(weights) + self.strength * self.temperature * level
        return value, self.regularizer.slope(point, weights, self.strength * (truth - found.features))

    # -- both sides

    def _look(self) -> bool:
        """Evaluate objective and bound at the current point; whether to leave this temperature."""
        weights = self.regularizer.weights(self.point)
        potentials, potential_margin = self._potentials(weights)
        found = self.examples.expect(potentials, potential_margin)
        pull = self.strength * (self.examples.true_features - found.features)
        gain = self.strength * self.margin * found.loss
        objective = self._improve(weights)
        share = self.regularizer.largest_share(pull, gain)
        lost = self._rounding(potentials)
        bound = (
            share * gain
            - self.regularizer.conjugate(share * pull)
            - lost * self.strength * float(self.examples.weights.sum())
        )
        labels = len(self.examples.labels) / len(self.examples.weights)  # of an example
        if bound > self.dual.bound and lost / labels <= SPOILT:
            self.dual = _Dual(bound, potentials, potential_margin, share)
        if share > 0:
            self._improve(self.regularizer.best_weights(share * pull))
        self._tell()
        smoothing_cost = objective - self.regularizer.value(weights) - gain + float((weights * pull).sum())
        error = self.regularizer.value(weights) + self.regularizer.conjugate(pull) - float((weights * pull).sum())
        return self._gap() <= self.tol or error <= ENOUGH * smoothing_cost

    def _rounding(self, potentials: Floats) -> float:
        """What an example's probabilities may lose to rounding: as much as the logarithms that they come from."""
        size = float(np.abs(self.examples.true_features).sum() / self.examples.weights.sum())
        return float(np.finfo(float).eps * np.abs(potentials).max(initial=0.0) * size)

    def _improve(self, weights: Floats) -> float:
        """Objective of these weights; they are kept if they are the best so far."""
        objective = self.regularizer.value(weights) + self.strength * self.examples.hinge(weights, self.margin)
        if objective < self.objective:
            self.objective, self.best_weights = objective, weights.copy()
        return objective

    def _bound(self) -> float:
        return self.dual.bound - PAD * max(1.0, abs(self.objective))

    def _gap(self) -> float:
        return (self.objective - self._bound()) / max(1.0, abs(self.objective))

    def _tell(self) -> None:
        seconds = time.perf_counter() - self.started
        self.trace.append((seconds, self.objective, self._bound()))
        if self.callback is not None:
            note = f"{self.steps} steps, temperature {self.temperature / self.margin:.2g}"
            self.callback(Moment(seconds, self.objective, self._bound(), note))

    def _result(self, status: str, evidence: dict[str, Any]) -> WeightResult:
        zero = np.zeros(self.examples.n_weights)
        proof = {
            "regularizer": self.regularizer.name,
            "strength": self.strength,
            "margin": self.margin,
            "gap": self.tol,
            "weights": self.best_weights,
            "potentials": zero if self.dual.potentials is None else self.dual.potentials,
            "potential_margin": self.dual.potential_margin,
            "share": self.dual.share,
            **evidence,
            **self.examples.describe(),
        }
        seconds = time.perf_counter() - self.started
        certificate = Certificate(
            KIND, "min", self.objective, self._bound(), status, seconds, trace=self.trace, evidence=proof
        )
        return WeightResult(self.best_weights, certificate, tuple(o for _, o, _ in self.trace))
