"""The best weights and multipliers that a path has come by, and what they prove."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.entropic import EntropicHinge

__all__ = ["Best", "consider", "consider_multipliers", "consider_weights", "leave_room"]

Floats = NDArray[np.float64]

# After so many steps without a tenth of the gap closed, steps become less bold for good.
PATIENCE = 8
# A group that has lost all but this part of its counts may be about to vanish.
VANISHED = 1e-2
# Other groups that sum to less than one are taken only where that closes so much of the gap; else they need not.
MUCH = 0.9
# Rounding by less than this part of a cell's count needs no room.
TINY = 1e-10


@dataclass(eq=False)
class Best:
    """The best weights and the best multipliers so far."""

    began: float
    weights: Floats
    eta: Floats
    objective: float = np.inf
    bound: float = -np.inf
    gap: float = np.inf
    waited: int = 0
    below: bool = False  # whether groups that sum to less than one have been worth it
    trace: list[tuple[float, float, float]] = field(default_factory=list)

    @classmethod
    def of(cls, problem: EntropicHinge, weights: Floats, began: float) -> Best:
        """Where nothing but normalised weights is known."""
        counts = problem.layout.counts
        none = np.zeros((len(problem.caps), counts.shape[1]))
        return cls(began, weights, none, problem.primal(weights), problem.dual(none, counts))

    def note(self) -> None:
        self.trace.append((time.perf_counter() - self.began, self.objective, self.bound))

    def stagnates(self) -> bool:
        """Whether the gap has hardly closed for some steps; these count once."""
        self.waited += 1
        if self.objective - self.bound < 0.9 * self.gap:
            self.gap, self.waited = self.objective - self.bound, 0
        elif self.waited == PATIENCE:
            self.waited = 0
            return True
        return False

    def within(self, tol: float) -> bool:
        return self.objective - self.bound <= tol * max(1.0, abs(self.objective))


def consider(problem: EntropicHinge, best: Best, weights: Floats, eta: Floats, totals: Floats) -> None:
    """Look at the point of the path: its weights, normalised or made to keep the constraint, and its multipliers."""
    layout = problem.layout
    logs = layout.log_sums(weights)
    consider_weights(problem, best, weights - layout.spread(logs))
    below = logs < 0.0
    vanishes = below & (totals < VANISHED * layout.group_sums(layout.counts))
    if vanishes.any():  # such a group may want to sum to less than one
        consider_weights(problem, best, weights - layout.spread(np.where(vanishes, 0.0, logs)))
    if (best.below or best.waited) and below.any():  # and so may one that is about to vanish, where little else helps
        best.below |= consider_weights(problem, best, weights - layout.spread(np.maximum(logs, 0.0)), MUCH)
    consider_multipliers(problem, best, eta)


def consider_weights(problem: EntropicHinge, best: Best, weights: Floats, least: float = 0.0) -> bool:
    """Keep weights that are better by at least a part of the gap; whether they are."""
    value = problem.primal(weights)
    better = value < best.objective - (least * (best.objective - best.bound) if least else 0.0)
    if better:
        best.objective, best.weights = value, weights
    return better


def consider_multipliers(problem: EntropicHinge, best: Best, eta: Floats) -> None:
    eta, amounts = problem.repaired(_fitting(problem, eta))
    value = problem.dual(eta, amounts)
    if value > best.bound:
        best.bound, best.eta = value, eta


def leave_room(problem: EntropicHinge, best: Best) -> None:
    """Change the best multipliers so that they are within the counts however they are summed."""
    room = problem.rounding(best.eta)
    if (room > TINY * problem.layout.counts).any():
        best.eta, amounts = problem.repaired(best.eta, room)
        best.bound = problem.dual(best.eta, amounts)


def _fitting(problem: EntropicHinge, eta: Floats) -> Floats:
    """Multipliers scaled down to the caps, from which rounding may have led them away."""
    sums = eta.sum(axis=1)
    return np.asarray(eta * (problem.caps / np.maximum(sums, problem.caps))[:, None])
