"""Margin problems over label vectors by constraint generation: a few labellings of each example at a time.

The problem restricted to some labellings is solved, from the weights of the last round on; then loss-augmented
inference finds for each example the labelling that violates its margin most, equation (20) of Guo, Wilkinson &
Schuurmans (2005), and adds it. Fewer labellings make a smaller maximum, so a bound of the restricted problem is one of
the whole.
"""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from marginbayes.sequence.examples import Examples, Expectation
from marginbayes.sequence.learners.base import Callback, WeightResult
from marginbayes.sequence.learners.multipliers import solve
from marginbayes.sequence.learners.regularizers import Regularizer
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.interrupt import kernel_interrupts

__all__ = ["WorkingSet", "solve_by_cuts"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A restricted problem is solved to this share of the gap that is left.
SHARE = 0.1
# A labelling is added where its margin is violated by more than this.
VIOLATED = 1e-9


class WorkingSet(Examples):
    """Examples of which only the truth and some labellings are known.

    Everything is relative to the truth, whose own features count as zero: `leads` are the features of the truth less
    those of a labelling.
    """

    def __init__(self, whole: Examples) -> None:
        self.whole, self.rows, self.labels, self.weights = whole, whole.rows, whole.labels, whole.weights
        self.truth = whole.each_features(whole.labels)
        n = len(whole.weights)
        # The truth is the first labelling of each example.
        self.owners = np.arange(n)
        self.leads: Any = csr_array((n, whole.n_weights))
        self.losses = np.zeros(n)
        self.labellings: list[Integers] = [whole.labels_of(whole.labels, i) for i in range(n)]

    def add(self, weights: Floats, margin: float) -> float:
        """Add the most violated labellings; the sum of all hinge losses at these weights."""
        labels, _ = self.whole.decode(weights, margin)
        leads, losses = csr_array(self.truth - self.whole.each_features(labels)), self.whole.loss(labels)
        hinges = margin * losses - leads @ weights
        known = self._largest(margin * self.losses - self.leads @ weights)
        new = np.flatnonzero(hinges > known + VIOLATED)
        if len(new):
            order = np.argsort(np.concatenate([self.owners, new]), kind="stable")
            self.owners = np.concatenate([self.owners, new])[order]
            self.leads = vstack([self.leads, leads[new]], format="csr")[order]
            self.losses = np.concatenate([self.losses, losses[new]])[order]
            own = [*self.labellings, *(self.whole.labels_of(labels, int(i)) for i in new)]
            self.labellings = [own[k] for k in order]
        return float(self.weights @ hinges)

    def _largest(self, values: Floats) -> Floats:
        return np.maximum.reduceat(values, np.searchsorted(self.owners, np.arange(len(self.weights))))

    def chances(self, weights: Floats, margin: float) -> tuple[Floats, Floats]:
        """Probability of each known labelling, and the log partition of each example relative to its truth."""
        values = margin * self.losses - self.leads @ weights
        top = self._largest(values)
        powers = np.exp(values - top[self.owners])
        sums = np.bincount(self.owners, powers, len(self.weights))
        return powers / sums[self.owners], top + np.log(sums)

    def expect(self, weights: Floats, margin: float = 0.0) -> Expectation:
        """Log partition and expectations over the known labellings."""
        chances, level = self.chances(weights, margin)
        shares = chances * self.weights[self.owners]
        features = self.true_features - self.leads.T @ shares
        return Expectation(level + self.truth @ weights, features, float((shares * self.losses).sum()))

    def decode(self, weights: Floats, margin: float = 0.0) -> tuple[Integers, Floats]:
        """Values of the best known labellings; their labels are not needed here."""
        return self.labels, self._largest(margin * self.losses - self.leads @ weights) + self.truth @ weights

    def hinge(self, weights: Floats, margin: float) -> float:
        """Weighted sum of the hinge losses over the known labellings."""
        return float(self.weights @ self._largest(margin * self.losses - self.leads @ weights))

    @cached_property
    def true_features(self) -> Floats:
        """Weighted sum of the features of the true labels."""
        return self.whole.true_features

    def joint_features(self, labels: Integers) -> Floats:
        """Weighted sum over the examples of the features of a labelling."""
        return self.whole.joint_features(labels)

    def each_features(self, labels: Integers) -> Any:
        """Features of each example under a labelling."""
        return self.whole.each_features(labels)

    def loss(self, labels: Integers) -> Floats:
        """Number of wrong labels in each example."""
        return self.whole.loss(labels)

    def labels_of(self, labels: Integers, example: int) -> Integers:
        """The part of a labelling that belongs to one example."""
        return self.whole.labels_of(labels, example)

    def describe(self) -> dict[str, Any]:
        """Model and examples."""
        return self.whole.describe()

    def proof(self, certificate: Certificate, strength: float) -> dict[str, Any]:
        """Multipliers of single labellings, from the potentials of the restricted problem."""
        evidence = certificate.evidence
        chances, _ = self.chances(np.asarray(evidence["potentials"]), float(evidence["potential_margin"]))
        multipliers = float(evidence["share"]) * strength * chances * self.weights[self.owners]
        used = np.flatnonzero((multipliers > 1e-12 * strength) & (self.losses > 0))
        return {
            "owners": self.owners[used],
            "multipliers": multipliers[used],
            "labellings": [self.labellings[k] for k in used],
        }


def solve_by_cuts(
    examples: Examples,
    regularizer: Regularizer,
    strength: float,
    margin: float,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    evidence: dict[str, Any] | None = None,
) -> WeightResult:
    """Weights of least regulariser + strength * structured hinge, and their certificate."""
    search = _Rounds(examples, regularizer, strength, margin, tol, callback)
    status = search.run(max_iter)
    return search.result(status, evidence or {})


class _Rounds:
    """The state of a run: the working set, the best weights, and the certificate of the last restricted problem."""

    def __init__(
        self,
        examples: Examples,
        regularizer: Regularizer,
        strength: float,
        margin: float,
        tol: float,
        callback: Callback | None,
    ) -> None:
        self.known, self.regularizer, self.strength, self.margin = WorkingSet(examples), regularizer, strength, margin
        self.tol, self.callback, self.share = tol, callback, SHARE
        self.best_weights, self.objective, self.bound = regularizer.weights(regularizer.start()), np.inf, -np.inf
        self.proof: dict[str, Any] = {"owners": [], "multipliers": [], "labellings": []}
        self.trace: list[tuple[float, float, float]] = []
        self.started = time.perf_counter()

    def run(self, max_iter: int) -> str:
        """Status after so many steps at most."""
        try:
            with kernel_interrupts():
                return self._rounds(max_iter)
        except KeyboardInterrupt:
            return "interrupted"

    def _rounds(self, max_iter: int) -> str:
        steps, point = 0, self.best_weights
        self._look(point)
        while steps < max_iter:
            size = len(self.known.owners)
            steps += self._restricted(point, max_iter - steps)
            self._tell()
            if self._gap() <= self.tol:
                return "optimal"
            point = self.last
            self._look(point)
            if self._gap() <= self.tol:
                return "optimal"
            if len(self.known.owners) == size and steps < max_iter:
                if self.share <= 0.0:
                    unsolved = self.ended == "iteration limit"
                    return self.ended if unsolved else "no labelling violates its margin by more than rounding"
                # The known labellings suffice; what is left is the error of the restricted problem.
                self.share = 0.0
        return "iteration limit"

    def _restricted(self, start: Floats, max_iter: int) -> int:
        """Solve for the known labellings, as exactly as the gap deserves; the number of steps it took."""
        tol = max(0.3 * self.tol, min(self.share * self._gap(), 1e-2))
        found = solve(self.known, self.regularizer, self.strength, self.margin, tol=tol, max_iter=max_iter, start=start)
        assert found.certificate is not None
        if found.interrupted:
            raise KeyboardInterrupt
        self.last, self.ended = found.weights, found.certificate.status
        if found.certificate.bound > self.bound:
            self.bound, self.proof = found.certificate.bound, self.known.proof(found.certificate, self.strength)
        return max(1, len(found.path))

    def _look(self, weights: Floats) -> None:
        """The objective of these weights, and the labellings that they violate."""
        objective = self.regularizer.value(weights) + self.strength * self.known.add(weights, self.margin)
        if objective < self.objective:
            self.objective, self.best_weights = objective, weights

    def _gap(self) -> float:
        return (self.objective - self.bound) / max(1.0, abs(self.objective))

    def _tell(self) -> None:
        seconds = time.perf_counter() - self.started
        self.trace.append((seconds, self.objective, self.bound))
        if self.callback is not None:
            self.callback(Moment(seconds, self.objective, self.bound, f"{len(self.known.owners)} labellings"))

    def result(self, status: str, evidence: dict[str, Any]) -> WeightResult:
        """Best weights, with the labellings and multipliers that prove the bound."""
        proof = {
            "regularizer": self.regularizer.name,
            "strength": self.strength,
            "margin": self.margin,
            "gap": self.tol,
            "weights": self.best_weights,
            **self.proof,
            **evidence,
            **self.known.describe(),
        }
        seconds = time.perf_counter() - self.started
        certificate = Certificate(
            "sequence-margin", "min", self.objective, self.bound, status, seconds, trace=self.trace, evidence=proof
        )
        return WeightResult(self.best_weights, certificate, tuple(o for _, o, _ in self.trace))
