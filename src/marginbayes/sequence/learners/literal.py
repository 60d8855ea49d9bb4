"""The margin problem as published, by constraint generation: a linear program that grows by loss-augmented inference.

Problem (14) of Guo, Wilkinson & Schuurmans (2005) with the margins (19) asks for weights w, gamma and slacks that
minimise 1 / (2 gamma^2) + B * (sum of slacks). Any two labellings use equally many entries of the tables, so adding a
constant to all weights changes no margin, and w - t satisfies every row constraint for large t: these are vacuous. With
w = gamma * u the optimum is (3/2) (B L)^(2/3) at gamma = (B L)^(-1/3), where

    L = min over u of the sum of structured hinge losses with margin 1,

a linear program in which B does not occur: B is a temperature and changes no decision. Where L = 0 (the training
sequences can all be labelled right by a margin) gamma is not bounded and there is no optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, vstack

from marginbayes import checks
from marginbayes.sequence.examples import Examples
from marginbayes.sequence.learners.base import Callback, WeightLearner, WeightResult
from marginbayes.sequence.learners.margin import StructuredMarkov
from marginbayes.solvers import Certificate, Moment
from marginbayes.solvers.interrupt import kernel_interrupts

__all__ = ["StructuredConvex"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A cut is added where it is violated by more than this.
VIOLATED = 1e-7
# Less than one is lacking, and not by rounding.
LEADS = 1.0 - 1e-6


class StructuredConvex(WeightLearner):
    """The published problem, literally; for study.

    It is kept to show what it does: B never changes a decision, and of the many optimal weights the one returned
    depends on the linear programming solver. Use `StructuredHybrid` on real data.

    Parameters
    ----------
    B : float, default=1.0
        Scales the weights, and so the probabilities, but changes no label of a complete example.
    radius : float, default=10.0
        Largest absolute weight u; the certificate holds within it.
    tol : float, default=1e-5
        Relative gap at which to stop.
    max_rounds : int, default=100
        Most linear programs.
    callback : callable, default=None
        Called with a `Moment` after each round.
    """

    def __init__(
        self,
        B: float = 1.0,
        *,
        radius: float = 10.0,
        tol: float = 1e-5,
        max_rounds: int = 100,
        callback: Callback | None = None,
    ) -> None:
        self.B = B
        self.radius = radius
        self.tol = tol
        self.max_rounds = max_rounds
        self.callback = callback

    def learn(self, examples: Examples) -> WeightResult:
        """Weights gamma * u; Ctrl-C keeps the best so far."""
        checks.positive("B", self.B)
        checks.positive("radius", self.radius)
        checks.not_negative("tol", self.tol, infinite=True)
        checks.whole("max_rounds", self.max_rounds)
        strength, radius = float(self.B), float(self.radius)
        search = _CuttingPlanes(examples, radius, self.tol, self.callback)
        status = search.run(self.max_rounds)
        separable = search.separates()
        size = 1.0 if separable else (strength * search.loss) ** (-1.0 / 3.0)
        status = "separable: no optimum is attained" if separable else f"{status} within |u| <= {radius:g}"
        certificate = search.certificate(status)
        return WeightResult(size * search.best, certificate, tuple(o for _, o, _ in search.trace))


@dataclass(eq=False)
class _Cuts:
    """Constraints slack_i >= loss - lead . u found so far, one labelling of one example each."""

    leads: list[Any] = field(default_factory=list)
    losses: list[Floats] = field(default_factory=list)
    owners: list[Integers] = field(default_factory=list)
    labels: list[Integers] = field(default_factory=list)  # the whole labelling each group was cut from


class _CuttingPlanes:
    """Linear program over the cuts, then new cuts by loss-augmented inference, until both sides meet."""

    def __init__(self, examples: Examples, radius: float, tol: float, callback: Callback | None) -> None:
        self.examples, self.radius, self.tol, self.callback = examples, radius, tol, callback
        self.cuts, self.truth = _Cuts(), examples.each_features(examples.labels)
        self.best, self.loss = np.zeros(examples.n_weights), float(examples.hinge(np.zeros(examples.n_weights), 1.0))
        self.bound, self.multipliers = 0.0, np.empty(0)
        self.total = float(examples.weights.sum())
        self.trace: list[tuple[float, float, float]] = []
        self.started = time.perf_counter()

    def run(self, max_rounds: int) -> str:
        """Status of the search after at most so many rounds."""
        try:
            with kernel_interrupts():
                return self._rounds(max_rounds)
        except KeyboardInterrupt:
            return "interrupted"

    def _rounds(self, max_rounds: int) -> str:
        self._warm_start()
        for _ in range(max_rounds):
            point, slacks = self._master()
            self._tell()
            if self._closed():
                return "optimal"
            added = self._separate(point, slacks)
            # Between the best point and the new one cuts are deeper, and the search does not jump about.
            middle = 0.5 * (point + self.best)
            added += self._separate(middle, self._slacks_at(middle))
            if self._closed():
                return "optimal"
            if not added:
                return "no cut is violated by more than rounding"
        return "iteration limit"

    def _closed(self) -> bool:
        return self.loss - self.bound <= self.tol * max(min(1.0, self.total), self.loss)

    def separates(self) -> bool:
        """Whether next to nothing is lost: every truth leads, since a wrong labelling has a loss of one at least."""
        if self.loss > self.tol * self.total:
            return False
        hinges = self.examples.decode(self.best, 1.0)[1] - self.truth @ self.best
        return bool(hinges.max(initial=0.0) < LEADS)

    def _warm_start(self) -> None:
        """Cuts at zero and at the weights of Markov networks, which are near."""
        none = np.full(len(self.examples.weights), -np.inf)
        self._separate(np.zeros(self.examples.n_weights), none)
        for strength in (0.1, 1.0, 10.0):
            found = StructuredMarkov(strength, tol=1e-2, max_iter=200).learn(self.examples)
            self._separate(np.clip(found.weights, -self.radius, self.radius), none)
            if found.interrupted:
                raise KeyboardInterrupt

    def _slacks_at(self, point: Floats) -> Floats:
        """What the cuts so far demand of each example's slack."""
        slacks = np.zeros(len(self.examples.weights))
        for lead, loss, owner in zip(self.cuts.leads, self.cuts.losses, self.cuts.owners, strict=True):
            np.maximum.at(slacks, owner, loss - lead @ point)
        return slacks

    def _separate(self, point: Floats, slacks: Floats) -> int:
        """Add the most violated labelling of each example, equation (20); how many were added."""
        labels, values = self.examples.decode(point, 1.0)
        hinges = values - self.truth @ point
        total = float(self.examples.weights @ hinges)
        if total < self.loss:
            self.loss, self.best = total, point.copy()
        violated = np.flatnonzero(hinges > slacks + VIOLATED)
        if len(violated):
            lead = csr_array(self.truth - self.examples.each_features(labels))[violated]
            self.cuts.leads.append(lead)
            self.cuts.losses.append(self.examples.loss(labels)[violated])
            self.cuts.owners.append(violated)
            self.cuts.labels.append(labels)
        return len(violated)

    def _master(self) -> tuple[Floats, Floats]:
        """Weights and slacks that are best for the cuts so far; their value is a bound."""
        n, leads = len(self.examples.weights), vstack(self.cuts.leads, format="csr")
        owners, losses = np.concatenate(self.cuts.owners), np.concatenate(self.cuts.losses)
        choice = csr_array((np.ones(len(owners)), (np.arange(len(owners)), owners)), shape=(len(owners), n))
        unit = float(self.examples.weights.max())  # the solver's tolerances are absolute
        cost = np.concatenate([np.zeros(leads.shape[1]), self.examples.weights / unit])
        bounds = [(-self.radius, self.radius)] * leads.shape[1] + [(0.0, None)] * n
        found = linprog(cost, hstack([-leads, -choice], format="csr"), -losses, bounds=bounds, method="highs")
        if found.status != 0:
            raise RuntimeError(f"the linear program over {len(owners)} cuts failed: {found.message}")
        multipliers = np.maximum(0.0, -found.ineqlin.marginals * unit)
        bound, multipliers = self._proved(multipliers, leads, owners, losses)
        if bound > self.bound or not len(self.multipliers):
            self.bound, self.multipliers = max(bound, 0.0), multipliers
        return found.x[: leads.shape[1]], found.x[leads.shape[1] :]

    def _proved(self, multipliers: Floats, leads: Any, owners: Integers, losses: Floats) -> tuple[float, Floats]:
        """Bound that multipliers prove within the radius, after making them sum to at most each example's weight."""
        sums = np.bincount(owners, multipliers, len(self.examples.weights))
        share = self.examples.weights / np.maximum(sums, self.examples.weights)
        multipliers = multipliers * share[owners]
        rest = float(np.abs(leads.T @ multipliers).sum())
        return float(multipliers @ losses) - self.radius * rest, multipliers

    def _tell(self) -> None:
        seconds = time.perf_counter() - self.started
        self.trace.append((seconds, self.loss, min(self.bound, self.loss)))
        if self.callback is not None:
            self.callback(Moment(seconds, self.loss, self.bound, f"{sum(map(len, self.cuts.owners))} cuts"))

    def certificate(self, status: str) -> Certificate:
        """Least hinge loss, its bound within the radius, and the cuts with their multipliers that prove it."""
        evidence = {
            "regularizer": "box",
            "radius": self.radius,
            "margin": 1.0,
            "gap": self.tol,
            "weights": self.best,
            **self._proof(),
            **self.examples.describe(),
        }
        seconds, bound = time.perf_counter() - self.started, min(self.bound, self.loss)
        return Certificate(
            "sequence-margin", "min", self.loss, bound, status, seconds, trace=self.trace, evidence=evidence
        )

    def _proof(self) -> dict[str, Any]:
        """Example, multiplier and labelling of every cut that counts."""
        owners, multipliers, labellings, start = [], [], [], 0
        for owner, labels in zip(self.cuts.owners, self.cuts.labels, strict=True):
            own = self.multipliers[start : start + len(owner)]
            for k in np.flatnonzero(own):
                owners.append(int(owner[k]))
                multipliers.append(float(own[k]))
                labellings.append(self.examples.labels_of(labels, int(owner[k])))
            start += len(owner)
        return {"owners": owners, "multipliers": multipliers, "labellings": labellings}
