"""Interior point method (Mehrotra) for the linear program of hinges over chosen pairs.

    minimise sum_n weight_n slack_n   s.t.  margin_p(u) + slack_row(p) - excess_p = 1,  slack, excess >= 0,  u free

Pairs of a row share one slack, which is eliminated; what is left is one symmetric system in u for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.cholesky import factorised, solved

__all__ = ["InteriorPoint", "PairProblem", "balanced_prices", "interior_point"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Share of the way to the boundary that a step may go.
STEP = 0.9995
# Most corrections of a direction, each for one more solve with the same factor.
CORRECTIONS = 3
# Weights that no pair holds are held by half their square, times this and the mean product, which vanishes on the way.
PULL = 1e-3
# Multiples of the mean product below which a multiplier counts as zero, in the order in which they are tried; and what
# may be left of a sum that should be zero, relative to the sum of all multipliers.
GONE, BALANCED = (10.0, 3.0, 30.0, 0.0), 1e-12


@dataclass(frozen=True)
class PairProblem:
    """Rows and their pairs: those of row n are start[n] .. start[n + 1] - 1. The weights of the last class are zero."""

    cells: NDArray[np.int32]
    labels: Integers
    row_weights: Floats
    start: Integers
    rivals: Integers
    shape: tuple[int, int]

    def margins(self, weights: Floats) -> Floats:
        """Margin of each pair."""
        from marginbayes.kernels.hinge import pair_margins

        out = np.empty(len(self.rivals))
        pair_margins(self.cells, self.labels, self.start, self.rivals, weights, out)
        return out

    def gathered(self, values: Floats) -> Floats:
        """The transpose: what the pairs' values add up to at each weight, the last class included."""
        from marginbayes.kernels.hinge import gather_pairs

        out = np.zeros(self.shape)
        gather_pairs(self.cells, self.labels, self.start, self.rivals, values, out)
        return out

    def row_sums(self, values: Floats) -> Floats:
        """Sum of the values of each row's pairs; every row has one at least."""
        return np.add.reduceat(values, self.start[:-1])

    @property
    def row_of(self) -> Integers:
        """Row of each pair."""
        return np.repeat(np.arange(len(self.labels)), np.diff(self.start))


@dataclass(frozen=True)
class InteriorPoint:
    """Weights u; slack and its multiplier for each row; excess and multiplier for each pair."""

    weights: Floats
    slack: Floats
    slack_price: Floats
    excess: Floats
    price: Floats

    @property
    def gap(self) -> float:
        """Sum of all products of a variable and its multiplier."""
        return float(self.slack @ self.slack_price + self.excess @ self.price)

    @property
    def mean(self) -> float:
        """Mean product."""
        return self.gap / (len(self.slack) + len(self.price))


def interior_point(
    problem: PairProblem,
    point: InteriorPoint,
    done: Callable[[InteriorPoint], bool],
    memory: Floats,
    max_steps: int = 100,
) -> InteriorPoint:
    """Follow the central path until `done` says so; `memory` is a square matrix for the Newton system."""
    for _ in range(max_steps):
        if done(point):
            break
        curvatures = point.price / point.excess, point.slack_price / point.slack
        system = _System(problem, *curvatures, memory, PULL * point.mean)
        point = _moved(point, *system.step(point))
    return point


class _System:
    """The Newton system of pairs and slacks with given curvatures, factorised."""

    def __init__(
        self, problem: PairProblem, curvature: Floats, slack_curvature: Floats, memory: Floats, pull: float = 0.0
    ) -> None:
        self.problem, self.curvature, self.slack_curvature, self.pull = problem, curvature, slack_curvature, pull
        self.total = np.maximum(1e-300, slack_curvature + problem.row_sums(curvature))
        self.factor = factorised(memory, self._fill)

    def _fill(self, matrix: Floats) -> None:
        from marginbayes.kernels.hinge import newton_matrix

        pairs = self.problem.cells, self.problem.labels, self.problem.start, self.problem.rivals
        newton_matrix(*pairs, self.curvature, self.slack_curvature, self.total, self.problem.shape[1] - 1, matrix)
        np.einsum("ii->i", matrix)[:] += self.pull

    def solve(self, right: Floats) -> Floats:
        """Weights whose last class is zero."""
        out = np.zeros(self.problem.shape)
        needed = np.ascontiguousarray(right[:, :-1])
        out[:, :-1] = solved(self.factor, needed.reshape(-1)).reshape(needed.shape)
        return out

    def step(self, point: InteriorPoint) -> tuple[InteriorPoint, float, float]:
        """Direction and the lengths of its primal and dual part: Mehrotra's, improved by Gondzio's corrections."""
        products = point.excess * point.price, point.slack * point.slack_price
        affine = self.direction(point, -products[0], -products[1])
        ahead = _moved(point, affine, *_longest(point, affine, 1.0)).mean
        aim = min(1.0, (ahead / point.mean) ** 3) * point.mean
        targets = (
            aim - products[0] - affine.excess * affine.price,
            aim - products[1] - affine.slack * affine.slack_price,
        )
        step = self.direction(point, *targets)
        lengths = _longest(point, step, STEP)
        for _ in range(CORRECTIONS):
            if min(lengths) > 0.9:
                break
            further = _moved(point, step, *(min(1.0, 1.1 * length + 0.1) for length in lengths))
            targets = (
                targets[0] + _towards(further.excess * further.price, aim),
                targets[1] + _towards(further.slack * further.slack_price, aim),
            )
            other = self.direction(point, *targets)
            longer = _longest(point, other, STEP)
            if sum(longer) < sum(lengths) + 0.02:
                break
            step, lengths = other, longer
        return step, *lengths

    def direction(self, point: InteriorPoint, pair_target: Floats, slack_target: Floats) -> InteriorPoint:
        """Newton step to feasibility that changes the products by the targets, to first order."""
        problem, row_of = self.problem, self.problem.row_of
        infeasible = 1.0 - (problem.margins(point.weights) + point.slack[row_of] - point.excess)
        lacking = problem.row_weights - problem.row_sums(point.price) - point.slack_price
        pull = pair_target / point.excess + self.curvature * infeasible
        row_pull = problem.row_sums(pull) + slack_target / point.slack - lacking
        price = pull - self.curvature * (row_pull / self.total)[row_of]
        weights = self.solve(problem.gathered(price + point.price) - self.pull * point.weights)
        shift = problem.margins(weights)
        slack = (row_pull - problem.row_sums(self.curvature * shift)) / self.total
        excess = shift + slack[row_of] - infeasible
        price = pair_target / point.excess - self.curvature * excess
        slack_price = slack_target / point.slack - self.slack_curvature * slack
        return InteriorPoint(weights, slack, slack_price, excess, price)

    def balanced(self, price: Floats) -> Floats:
        """Multipliers near these whose sum over pairs is zero at every weight, as far as rounding allows."""
        weights = self.solve(self.problem.gathered(price))
        shift, row_of = self.problem.margins(weights), self.problem.row_of
        mean = self.problem.row_sums(self.curvature * shift) / self.total
        return np.asarray(price - self.curvature * (shift - mean[row_of]))


def balanced_prices(problem: PairProblem, point: InteriorPoint, memory: Floats) -> Floats:
    """The multipliers of a point, corrected so that they add up to zero at every weight; none negative, none too large.

    Those that are on their way to zero, being no larger than a few mean products, are set to zero first. Near the
    optimum what remains is the support of an optimal solution and can be balanced; how near is tried.
    """
    found: list[tuple[float, Floats]] = []
    for gone in GONE:
        price = _balanced(problem, point, memory, gone * point.mean)
        found.append((float(np.abs(problem.gathered(price)).sum()), price))
        if found[-1][0] <= BALANCED * float(price.sum()):
            break
    return found[int(np.argmin([rest for rest, _ in found]))][1]


def _balanced(problem: PairProblem, point: InteriorPoint, memory: Floats, gone: float) -> Floats:
    price = np.where(point.price > gone, point.price, 0.0)
    system = _System(problem, price, point.slack_price, memory)
    for _ in range(4):
        price = np.maximum(0.0, system.balanced(price))
    sums = problem.row_sums(price)
    return np.asarray(price * (problem.row_weights / np.maximum(sums, problem.row_weights))[problem.row_of])


def _towards(products: Floats, aim: float) -> Floats:
    """What products that are far too small or too large lack of a tenth or of ten times the aim."""
    return np.maximum(np.clip(products, 0.1 * aim, 10.0 * aim) - products, -10.0 * aim)


def _longest(point: InteriorPoint, step: InteriorPoint, share: float) -> tuple[float, float]:
    """Longest primal and dual step, a share of the way to the boundary at most."""

    def length(*pairs: tuple[Floats, Floats]) -> float:
        ratios = [float((-at[by < 0] / by[by < 0]).min()) for at, by in pairs if (by < 0).any()]
        return min(1.0, share * min(ratios, default=np.inf))

    primal = length((point.slack, step.slack), (point.excess, step.excess))
    return primal, length((point.slack_price, step.slack_price), (point.price, step.price))


def _moved(point: InteriorPoint, step: InteriorPoint, primal: float, dual: float) -> InteriorPoint:
    return replace(
        point,
        weights=point.weights + primal * step.weights,
        slack=point.slack + primal * step.slack,
        slack_price=point.slack_price + dual * step.slack_price,
        excess=point.excess + primal * step.excess,
        price=point.price + dual * step.price,
    )
