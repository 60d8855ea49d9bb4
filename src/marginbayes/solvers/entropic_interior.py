"""Interior-point method for `EntropicHinge`: a primal-dual path in the rows, a smoothed logarithm in the weights.

On the path every product of a row is mu (see `kernels.margins_rows`), and the amount v of a weight w in a group with
the total V obeys v (log(v / V) - w) = mu. That is the central path of the problem written with exponential cones. The
amount is a smooth function of w, about V exp(w) + mu where that is large and mu / |w| where it is not; so weights may
run to minus infinity without harm, and a group may vanish (V = 0). A step is a predictor and a corrector with one
linear system; w is the only free variable of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.entropic import EntropicHinge
from marginbayes.solvers.entropic_best import Best, leave_room
from marginbayes.solvers.entropic_path import BOLD, CAREFUL, Path
from marginbayes.solvers.entropic_small import SmallPath
from marginbayes.solvers.interrupt import kernel_interrupts
from marginbayes.solvers.moment import Moment

__all__ = ["Solution", "minimise"]

Floats = NDArray[np.float64]
Watch = Callable[[Moment], None]

# Where the caps are more than this many times the counts in all, the path begins with care: caps that are a part of the
# counts, and grow. Elsewhere it begins boldly, for so many steps, and on as long as a step leaves at most this part of
# the gap: to begin again would cost more than it could gain.
LARGE, SMALL, BOLD_STEPS, CLOSING = 30.0, 0.1, 12, 0.5
# Where the products are below this part of what the gap would make them, rows that were held are lost from the path.
LOST = 1e-3
# Products that add up to less than this part of the objective are rounding: there is nothing left to gain. Neither is
# there where the gap itself is below such a part and does not close.
SMALLEST, ROUNDING = 1e-14, 1e-12


@dataclass(frozen=True, eq=False)
class Solution:
    """Weights that keep the constraint, multipliers, what both are worth, and why the solver stopped."""

    weights: Floats
    eta: Floats
    objective: float
    bound: float
    status: str
    seconds: float
    trace: tuple[tuple[float, float, float], ...] = ()
    iterations: int = 0


class _TimeIsUp(Exception):
    pass


def minimise(
    problem: EntropicHinge,
    start: Floats | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int = 200,
    time_limit: float | None = None,
    watch: Watch | None = None,
) -> Solution:
    """Best weights and bound; Ctrl-C and the limits keep the best so far, and so does rounding (``"stalled"``).

    Parameters
    ----------
    start : array of shape (cells, classes) or None
        Weights near the solution; without, the logarithms of the counts.
    tol : float
        Relative gap at which to stop.
    """
    began = time.perf_counter()
    first = problem.layout.normalised(np.log(problem.layout.counts) if start is None else start)
    best = Best.of(problem, first, began)
    best.note()

    def check() -> None:
        if time_limit is not None and time.perf_counter() - began > time_limit:
            raise _TimeIsUp

    walk, status, steps = _Walk(problem, best, tol, start is None, check), "optimal", 0
    try:
        while not best.within(tol):
            if steps == max_iter:
                status = "iteration limit"
                break
            check()
            with kernel_interrupts():
                leads_on = walk.step()
            steps += 1
            if not leads_on:
                status = "stalled"
                break
            if watch is not None:
                watch(Moment(best.trace[-1][0], best.objective, best.bound, f"step {steps}"))
    except KeyboardInterrupt:
        status = "interrupted"
    except _TimeIsUp:
        status = "time limit"
    leave_room(problem, best)
    if status == "optimal" and not best.within(tol):
        status = "stalled"
    seconds = time.perf_counter() - began
    return Solution(best.weights, best.eta, best.objective, best.bound, status, seconds, tuple(best.trace), steps)


class _Walk:
    """Steps along a path, and along another one where it leads nowhere."""

    def __init__(self, problem: EntropicHinge, best: Best, tol: float, fresh: bool, check: Callable[[], None]) -> None:
        self.problem, self.best, self.tol, self.check = problem, best, tol, check
        caps, counts = problem.caps.sum(), problem.layout.counts[problem.layout.blocks == 0].sum()
        self.bold_steps = BOLD_STEPS if caps <= LARGE * counts else 0
        self.share = float(SMALL * counts / caps) if fresh and not self.bold_steps else 1.0
        self.beginning = best.weights, _mean_gap(problem, best), self.share
        self.compiled = SmallPath.suits(problem)
        self.path: Path | SmallPath | None = None
        self.gap = np.inf

    def step(self) -> bool:
        """Go on by a step; whether there may be more to gain."""
        if self.path is None:
            self._begin(_mean_gap(self.problem, self.best))
        assert self.path is not None
        try:
            self.path.step()
        except (FloatingPointError, ZeroDivisionError):  # rounding leaves no factor of the system, or a row no room
            return self._gives_up_boldness() or self._goes_slowly()
        if self.path.stuck:
            if self.path.mu < SMALLEST * abs(self.best.objective) / self.path.eta.size:
                return self._goes_slowly()
            self._begin(10.0 * self.path.mu)
        self.path.appraise(self.best, self.tol)
        self.best.note()
        if self.best.stagnates():
            if self.best.within(ROUNDING):
                return False
            if not self._goes_slowly():
                self._less_bold()
        gap = self.best.objective - self.best.bound
        closing, self.gap = gap <= CLOSING * self.gap, gap
        if self.bold_steps == 1:
            return closing or self._gives_up_boldness()
        self.bold_steps -= 1
        return True

    def _begin(self, mu: float, weights: Floats | None = None) -> None:
        """A path from these weights, or from the best ones."""
        weights = self.best.weights if weights is None else weights
        pace = BOLD if self.bold_steps > 0 else replace(CAREFUL, share=self.share)
        self.share = 1.0
        if self.compiled:
            self.path = SmallPath(self.problem, weights, mu, pace)
        else:
            self.path = Path(self.problem, weights, mu, pace, self.check)

    def _goes_slowly(self) -> bool:
        """Go by arrays from now on, whose steps are more exact and take longer; whether that is something new."""
        new, self.compiled = self.compiled, False
        if new:  # from where all began: what is best so far may be far from the path that leads on
            self.bold_steps = 0
            weights, mu, self.share = self.beginning
            self._begin(mu, weights)
        return new

    def _gives_up_boldness(self) -> bool:
        """Begin with care from now on; whether that is something new."""
        new, self.bold_steps = self.bold_steps > 0, 0
        if new:
            self._begin(_mean_gap(self.problem, self.best))
        return new

    def _less_bold(self) -> None:
        """Shorter aims from now on; at the best weights where the path has lost its rows."""
        assert self.path is not None
        boldest = min(0.8, 3.0 * self.path.boldest)
        if self.path.mu < LOST * _mean_gap(self.problem, self.best):
            self._begin(_mean_gap(self.problem, self.best))
        self.path.boldest = boldest


def _mean_gap(problem: EntropicHinge, best: Best) -> float:
    """Products to begin with: a part of the gap for each row and class."""
    return float((best.objective - best.bound) / max(1, len(problem.caps) * problem.layout.counts.shape[1]))
