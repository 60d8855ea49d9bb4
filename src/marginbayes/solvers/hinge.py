"""Least sum of hinges over rows, without any regulariser: a linear program, solved to a certified optimum.

    L = min over u of sum_n weight_n max(0, 1 - min over rivals of margin_nc(u))

Presolve, a test whether all margins can be positive (then L = 0), and an interior point method over a working set of
pairs (row, rival). The bound: for multipliers eta >= 0 with sums of at most weight_n in each row, every u whose entries
are at most R in size has a loss of at least sum(eta) - R |sum of eta_nc times the differences of features|_1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.coordinate import MarginRows, solve_margin
from marginbayes.solvers.interior import InteriorPoint, PairProblem, balanced_prices, interior_point
from marginbayes.solvers.interrupt import kernel_interrupts
from marginbayes.solvers.moment import Moment

__all__ = ["HingeSolution", "solve_hinge"]

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

# No claim is made about weights beyond this size; doubles have 16 digits.
LARGEST_RADIUS = 1e9
# With smaller weights than this hardly a margin could be one: a bound for those alone would say nothing.
LEAST_RADIUS = 1.0
# Pairs whose margin is below this after the first descent are the first working set.
NEAR = 1.3
SOON = 0.2
# With fewer pairs than this, or this many times the variables, all are taken at once.
FEW, ALL = 2000, 4
DESCENT_SWEEPS = 60
MOST_ROUNDS = 100
# A finer gap than this, relative to the loss, is not aimed at: rounding would spoil the multipliers.
FINEST = 1e-12
# Relative gap over the working set at which it is first enlarged, and below which a bound is worth a factorisation.
FIRST, PROVE = 0.3, 1e-3


@dataclass(frozen=True)
class HingeSolution:
    """Weights and their loss; multipliers (rows x classes) and what they prove for weights up to `radius`.

    The multipliers of a row's rivals are negated, that of its own class is their sum.

    `levels` (cells x classes) says in which order weights were lowered by the presolve, 0 where they were not, and
    `core_weights` are the weights without that. With `separable` the least loss is 0 and any margin can be reached.
    """

    weights: Floats
    core_weights: Floats
    multipliers: Floats
    loss: float
    bound: float
    radius: float
    separable: bool
    levels: NDArray[np.int32]
    status: str
    seconds: float
    trace: tuple[tuple[float, float, float], ...]


def solve_hinge(
    rows: MarginRows,
    fixed: Booleans,
    *,
    tol: float = 1e-7,
    max_bytes: float = 2e9,
    callback: Callable[[Moment], object] | None = None,
) -> HingeSolution:
    """Weights of least loss with a proof; Ctrl-C keeps the best so far.

    Parameters
    ----------
    rows : MarginRows
    fixed : array of shape (cells,)
        Cells whose weights may be zero without loss, because others can do their work.
    tol : float
        Wanted gap relative to the loss.
    max_bytes : float
        The largest matrix that may be factorised.
    """
    return _Search(rows, fixed, tol, max_bytes, callback).run()


class _Search:
    """What is known so far: presolve, best weights, best multipliers."""

    def __init__(
        self,
        rows: MarginRows,
        fixed: Booleans,
        tol: float,
        max_bytes: float,
        callback: Callable[[Moment], object] | None,
    ) -> None:
        from marginbayes.kernels.hinge import cascade

        self.began = time.perf_counter()
        self.rows, self.tol, self.max_bytes, self.callback = rows, tol, max_bytes, callback
        self.aim = max(tol, FINEST)
        self.levels = np.zeros(rows.shape, np.int32)
        self.killed = np.zeros((len(rows), rows.shape[1]), np.int32)
        self.depth = cascade(rows.cells, rows.labels, self.levels, self.killed)
        self.live = self.killed == 0
        self.core = np.flatnonzero(self.live.any(axis=1))
        self.kept, cells = _reduced(rows.cells[self.core], fixed)
        self.shape = (len(self.kept), rows.shape[1])
        self.core_rows = MarginRows(cells, rows.labels[self.core], rows.row_weights[self.core], self.shape)
        self.weights = np.zeros(self.shape)
        self.multipliers = np.zeros((len(rows), rows.shape[1]))
        self.loss, self.bound, self.radius, self.slope = (
            np.inf,
            0.0,
            LARGEST_RADIUS,
            0.0,
        )  # bound falls by it with radius
        self.trace: list[tuple[float, float, float]] = []

    def run(self) -> HingeSolution:
        """All stages."""
        status = "interrupted"
        with suppress(KeyboardInterrupt), kernel_interrupts():  # the best so far is kept
            status = self._separate() or self._iterate()
        return self._solution(status)

    # -- separable?

    def _separate(self) -> str | None:
        """Whether presolve or a short descent finds weights under which every row wins."""
        if len(self.core) == 0:
            return "separable"
        core = self.core_rows
        # Pairs that the presolve has satisfied play no part: their rivals start far behind.
        base = np.where(self.live[self.core], 0.0, -1e9)
        base[np.arange(len(core)), core.labels] = 0.0
        found = solve_margin(core, core.row_weights, base, 0.0, scale=1.0, tol=1e-3, max_sweeps=DESCENT_SWEEPS)
        self.start_prices = -found.multipliers
        if self._improve(found.weights):
            return "separable"
        if found.status == "interrupted":
            raise KeyboardInterrupt
        return None

    def _improve(self, weights: Floats) -> bool:
        """Keep weights that lose less, at their best scale; whether all live margins are positive."""
        margins = self._margins(weights)
        least = float(margins.min())
        if least > 0:
            self.weights, self.loss = weights / least, 0.0
            return True
        loss = self._loss(margins)
        if loss < self.loss:
            self.weights, self.loss = weights, loss
        return False

    def _margins(self, weights: Floats) -> Floats:
        """Margins of the core's pairs, infinite where there is nothing left to do."""
        labels, scores = self.core_rows.labels, self.core_rows.scores(weights)
        margins: Floats = scores[np.arange(len(labels)), labels][:, None] - scores
        margins[~self.live[self.core]] = np.inf
        return margins

    def _loss(self, margins: Floats) -> float:
        return float(self.core_rows.row_weights @ np.maximum(0.0, 1.0 - margins.min(axis=1)))

    # -- working set and interior point

    def _iterate(self) -> str:
        """Solve over a working set, add pairs that are violated, until the gap over all pairs is small."""
        size = self.shape[0] * (self.shape[1] - 1)
        if 8 * size**2 > self.max_bytes:
            raise ValueError(
                f"the exact method needs a matrix of {8 * size**2 / 1e9:.3g} GB for {size} weights, more than "
                f"max_bytes={self.max_bytes:.3g} allows; allow more, or use fewer rows, levels or parents"
            )
        memory = np.zeros((size, size))
        work, inner, last = self.live[self.core], 0.1 * self.aim, 1e-2 * self.aim
        if work.sum() > max(FEW, ALL * size):
            work, inner = self._margins(self.weights) < NEAR, FIRST
        problem = self._pairs(work)
        point = self._start(problem, work)
        for _ in range(MOST_ROUNDS):
            point, ended = self._follow(problem, point, memory, inner)
            if self._improve(point.weights):
                return "separable"
            more = self._violated(point.weights, work)
            growing = ended and bool(more.any())
            if not growing and (inner <= PROVE or not ended):
                self._prove(problem, point, memory)
            self._note(problem)
            if self._closed:
                return "optimal"
            if not growing and inner <= last:
                return "stalled"
            if growing:
                problem, point, work = self._grown(problem, point, work | more)
            inner = max(last, inner / (5 if growing else 50))
        return "iteration limit"

    @property
    def _closed(self) -> bool:
        return self.loss - self.bound <= self.tol * self.loss

    def _pairs(self, work: Booleans) -> PairProblem:
        """The problem over the pairs of the working set."""
        has = self.has = np.flatnonzero(work.any(axis=1))
        start = np.concatenate([[0], np.cumsum(work[has].sum(axis=1))])
        rivals = np.nonzero(work[has])[1]
        some = self.core_rows
        return PairProblem(some.cells[has], some.labels[has], some.row_weights[has], start, rivals, self.shape)

    def _start(self, problem: PairProblem, work: Booleans) -> InteriorPoint:
        """A point well inside, near the best weights and multipliers known."""
        weights = self.weights - self.weights[:, -1:]
        margins, row_of = problem.margins(weights), problem.row_of
        slack = np.maximum(0.0, np.maximum.reduceat(1.0 - margins, problem.start[:-1])) + 0.3
        counts = np.diff(problem.start)
        price = 0.8 * np.maximum(0.0, self.start_prices[self.has][work[self.has]])
        price += 0.1 * (problem.row_weights / counts)[row_of]
        slack_price = problem.row_weights - problem.row_sums(price)
        return InteriorPoint(weights, slack, slack_price, margins + slack[row_of] - 1.0, price)

    def _follow(
        self, problem: PairProblem, point: InteriorPoint, memory: Floats, inner: float
    ) -> tuple[InteriorPoint, bool]:
        """Interior point until the gap over the working set is small or no row of it loses; whether it got there."""
        reached = False

        def done(at: InteriorPoint) -> bool:
            nonlocal reached
            margins = problem.margins(at.weights)
            loss = problem.row_weights @ np.maximum(0.0, np.maximum.reduceat(1.0 - margins, problem.start[:-1]))
            reached = bool(at.gap <= inner * loss) or float(margins.min()) > 0.5
            return reached

        return interior_point(problem, point, done, memory), reached

    def _prove(self, problem: PairProblem, point: InteriorPoint, memory: Floats) -> None:
        """Bound from the multipliers, and the largest radius for which it is good enough."""
        signed = np.zeros_like(self.multipliers)
        signed[self.core[self.has][problem.row_of], problem.rivals] = -balanced_prices(problem, point, memory)
        at = np.arange(len(self.rows))
        signed[at, self.rows.labels] = -signed.sum(axis=1)
        total, rest = float(signed[at, self.rows.labels].sum()), float(np.abs(self.rows.gathered(signed)).sum())
        # The radius may cost a tenth of the tolerance.
        radius = min(LARGEST_RADIUS, 0.1 * self.aim * total / rest if rest > 0 else LARGEST_RADIUS)
        radius = max(LEAST_RADIUS, 10.0 ** np.floor(np.log10(max(1e-300, radius))), 2.0 * _largest(point.weights))
        radius = _in_three_digits(radius)
        bound = total - radius * rest
        if bound > self.bound:
            self.bound, self.radius, self.multipliers, self.slope = bound, radius, signed, rest

    def _grown(
        self, problem: PairProblem, point: InteriorPoint, work: Booleans
    ) -> tuple[PairProblem, InteriorPoint, Booleans]:
        """The problem with more pairs, and the point carried over; new pairs start as far inside as the others are."""
        at = self.has[problem.row_of], problem.rivals
        price, excess = np.zeros(work.shape), np.zeros(work.shape)
        price[at], excess[at] = point.price, point.excess
        slack, slack_price = np.zeros(len(work)), np.zeros(len(work))
        slack[self.has], slack_price[self.has] = point.slack, point.slack_price
        known, inside = np.isin(np.arange(len(work)), self.has), float(np.sqrt(point.mean))
        grown = self._pairs(work)
        margins, row_of = grown.margins(point.weights), grown.row_of
        first = np.maximum(0.0, np.maximum.reduceat(1.0 - margins, grown.start[:-1])) + inside
        slack = np.where(known[self.has], slack[self.has], first)
        old_price, old_excess = price[self.has][work[self.has]], excess[self.has][work[self.has]]
        excess = np.where(old_excess > 0, old_excess, np.maximum(inside, margins + slack[row_of] - 1.0))
        share = (grown.row_weights / (2 * np.diff(grown.start)))[row_of]
        price = np.where(old_excess > 0, old_price, np.minimum(point.mean / excess, share))
        left = grown.row_weights - grown.row_sums(price)
        slack_price = np.where(known[self.has], slack_price[self.has], left)
        return grown, InteriorPoint(point.weights, slack, slack_price, excess, price), work

    def _violated(self, weights: Floats, work: Booleans) -> Booleans:
        """Pairs outside the working set that cost more than those inside; the worst, if there are many."""
        margins = self._margins(weights)
        inside = np.where(work, margins, np.inf).min(axis=1)
        lack = np.minimum(1.0, inside)[:, None] - margins
        lack[work] = -np.inf
        if not (lack > 1e-9).any():
            return np.zeros_like(work)
        # Those that are nearly violated come along: they would be next.
        most = max(1000, int(work.sum()) // 2)
        limit = float(np.partition(lack, -most, axis=None)[-most]) if lack.size > most else -np.inf
        return np.asarray(lack > max(limit, -SOON))

    def _note(self, problem: PairProblem) -> None:
        seconds = time.perf_counter() - self.began
        self.trace.append((seconds, self.loss, self.bound))
        if self.callback is not None:
            self.callback(Moment(seconds, self.loss, self.bound, f"{len(problem.rivals)} pairs"))

    # -- the end

    def _solution(self, status: str) -> HingeSolution:
        from marginbayes.kernels.hinge import lower_level

        rows = self.rows
        core = np.zeros(rows.shape)
        core[self.kept] = self.weights
        weights = core.copy()
        for level in range(self.depth, 0, -1):
            depth = lower_level(rows.cells, rows.labels, self.levels, self.killed, level, weights)
            weights[self.levels == level] -= 1.01 * depth
        if (wider := _in_three_digits(_largest(core))) > self.radius:  # the weights themselves have to lie within it
            self.bound, self.radius = max(0.0, self.bound - (wider - self.radius) * self.slope), wider
        loss = rows.hinges(weights)
        separable = status == "separable"
        return HingeSolution(
            weights,
            core,
            self.multipliers,
            loss,
            min(self.bound, loss),
            self.radius,
            separable,
            self.levels,
            status,
            time.perf_counter() - self.began,
            tuple(self.trace),
        )


def _in_three_digits(radius: float) -> float:
    """The radius, or a little more, as the status will say it."""
    said = float(f"{radius:.3g}")
    return said if said >= radius else float(f"{1.005 * radius:.3g}")


def _largest(weights: Floats) -> float:
    return float(np.abs(weights).max(initial=0.0))


def _reduced(cells: NDArray[np.int32], fixed: Booleans) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """The cells that are used and not fixed, and the rows in numbers of these, without columns of nothing but -1."""
    number = np.full(len(fixed) + 1, -1, np.int32)
    number[cells.ravel()] = 0
    number[:-1][fixed], number[-1] = -1, -1
    kept = np.flatnonzero(number == 0)
    number[kept] = np.arange(len(kept))
    free = number[cells]
    free.sort(axis=1)
    width = int((free >= 0).sum(axis=1).max(initial=0))
    return kept, np.ascontiguousarray(free[:, free.shape[1] - width :])
