"""Two ways to write tables as free numbers, each with its objective: log tables that are normalised afterwards, and
numbers whose softmax is the table. Both are shrunk towards the maximum-likelihood tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from marginbayes.network import Network
from marginbayes.network.likeliest import likeliest
from marginbayes.network.renormalize import renormalize
from marginbayes.parameters.design import Design
from marginbayes.parameters.metric import inverse_correlation, is_worth_it
from marginbayes.parameters.pooling import Pooling
from marginbayes.parameters.rowloss import CONDITIONAL, RowLoss

__all__ = ["Concave", "Problem", "Softmax"]

Floats = NDArray[np.float64]

# Rows by which the scale of the maximum-likelihood log tables is first sought.
SCALE_ROWS = 2000


class Problem(ABC):
    """Where to start, the objective to be minimised, and the network of a point.

    Parameters
    ----------
    design : Design
    reference : Network
        The maximum-likelihood network: where it starts, and what it is shrunk towards.
    l2 : float
        Half of it times the squared distance from the reference is added to the loss.
    row_loss : RowLoss
    pool : bool, default=False
        Whether cells have part of their deviations in common, see `marginbayes.parameters.pooling`.
    """

    def __init__(
        self, design: Design, reference: Network, l2: float, row_loss: RowLoss = CONDITIONAL, pool: bool = False
    ) -> None:
        self.design, self.network, self.l2, self.row_loss = design, reference, l2, row_loss
        self.pooling = Pooling.of(design, _ordered(reference)) if pool else Pooling.none(design)
        self.reference = design.flatten(reference.tables)
        if not np.isfinite(self.reference).all():
            raise ValueError("the maximum-likelihood tables hold a zero, which has no logarithm; use smoothing > 0")

    @property
    def shape(self) -> tuple[int]:
        """Of a point."""
        return (self.pooling.size,)

    @abstractmethod
    def start(self, network: Network | None = None) -> Floats:
        """The point that stands for this network; by default for the reference."""

    @abstractmethod
    def weights(self, point: Floats) -> Floats:
        """Log tables of a point as the weights of the design."""

    @abstractmethod
    def objective(self, point: Floats) -> tuple[float, Floats]:
        """Loss and penalty, and their gradient."""

    @abstractmethod
    def tables(self, point: Floats) -> tuple[list[Floats], bool]:
        """Normalised log tables of a point (the likeliest, if there is a choice), and whether Ctrl-C cut that short."""

    @abstractmethod
    def plain_tables(self, point: Floats) -> list[Floats]:
        """Normalised log tables of a point; where there is a choice, those found at once."""

    def scale(self, point: Floats) -> Floats:
        """Units for the variables: roots of the second derivatives of minus the conditional log-likelihood there.

        What it is for: a descent in these units takes fewer steps, also that of another loss. They are relative to the
        weight of all rows; a cell that no row has counts as a thousandth of a row.
        """
        chances = softmax(self.design.scores(self.weights(point)), axis=1)
        curvature = self.pooling.back(self.design.add_up(chances * (1.0 - chances))) + self.l2
        return np.asarray(np.sqrt((curvature + (1e-3 if self.l2 == 0 else 0.0)) / self.design.total))

    def steer(self, point: Floats) -> Callable[[Floats], Floats] | None:  # noqa: ARG002
        """What turns gradients (in these units) towards the optimum, as it is near a point; None: nothing."""
        return None


def _ordered(network: Network) -> list[bool]:
    """For each variable whether its levels are intervals of a number."""
    return [v.cuts is not None and v.levels[-1] is not None for v in network.schema.variables]


class Concave(Problem):
    """Log tables s * reference + U, the penalty on U; the point is (s, parts of U). Convex, so there is one optimum.

    Below 1, where the reference is toned down, s is free. What exceeds 1 is penalised like an entry of U: where the
    reference has all training rows right, every greater s would have a smaller loss.
    """

    @property
    def shape(self) -> tuple[int]:
        """Of a point."""
        return (1 + self.pooling.size,)

    def start(self, network: Network | None = None) -> Floats:
        """The scale at which the reference does best, and no U; or the scale nearest to a network, and what is left.

        A term that is the same for all classes changes no decision, so the means over the classes are left out.
        """
        if network is None:
            return np.concatenate([[self._best_scale()], np.zeros(self.pooling.size)])
        given, own = (w - w.mean(axis=1, keepdims=True) for w in (self.design.flatten(network.tables), self.reference))
        size = float((own * own).sum())
        scale = float((given * own).sum()) / size if size > 0 else 1.0
        return np.concatenate([[scale], self.pooling.parts(given - scale * own)])

    def _best_scale(self) -> float:
        some = self.design.some(SCALE_ROWS)
        found = minimize_scalar(
            lambda s: some.loss(s * self.reference, self.row_loss)[0],
            bounds=(0.0, 1.0),
            method="bounded",
            options={"xatol": 1e-2},
        )
        return float(found.x)

    def weights(self, point: Floats) -> Floats:
        """Log tables of a point, not normalised."""
        return np.asarray(point[0] * self.reference + self.pooling.total(point[1:]))

    def objective(self, point: Floats) -> tuple[float, Floats]:
        """Loss and penalty, and their gradient."""
        loss, gradient = self.design.loss(self.weights(point), self.row_loss)
        shift, excess = point[1:], max(0.0, float(point[0]) - 1.0)
        value = loss + 0.5 * self.l2 * (float(shift @ shift) + excess**2)
        slope = self.pooling.back(gradient) + self.l2 * shift
        return value, np.concatenate([[float((gradient * self.reference).sum()) + self.l2 * excess], slope])

    def scale(self, point: Floats) -> Floats:
        """Roots of the curvatures; that of s is the variance of the reference's scores."""
        scores = self.design.scores(self.reference)
        chances = softmax(self.design.scores(self.weights(point)), axis=1)
        mean = (chances * scores).sum(axis=1, keepdims=True)
        own = float(self.design.row_weights @ (chances * (scores - mean) ** 2).sum(axis=1)) + self.design.total * 1e-6
        return np.concatenate([[np.sqrt(own / self.design.total)], super().scale(point)])

    def steer(self, point: Floats) -> Callable[[Floats], Floats] | None:
        """The inverse of the correlations between cells, where it is small enough."""
        if not is_worth_it(self.design):
            return None
        chances = softmax(self.design.scores(self.weights(point)), axis=1)
        curvature = (chances * (1.0 - chances)).mean(axis=1) * self.design.row_weights
        inverse = inverse_correlation(self.design, curvature, self.l2)
        shape, end = self.reference.shape, 1 + self.reference.size
        return lambda x: np.concatenate([x[:1], (inverse @ x[1:end].reshape(shape)).ravel(), x[end:]])

    def tables(self, point: Floats) -> tuple[list[Floats], bool]:
        """The likeliest normalised tables among those that decide as this point, and whether Ctrl-C cut that short."""
        found = likeliest(self.network, self._free(point))
        return found.tables, found.interrupted

    def plain_tables(self, point: Floats) -> list[Floats]:
        """Normalised tables that decide as this point, from the leaves up."""
        return renormalize(self.network.dag, self._free(point))

    def _free(self, point: Floats) -> list[Floats]:
        return self.design.tables(self.weights(point), self.network.tables)


class Softmax(Problem):
    """Free numbers whose softmax over the child's levels is the table; the point is how they deviate from the logs of
    the reference, and the penalty is on it.
    """

    def __init__(
        self, design: Design, reference: Network, l2: float, row_loss: RowLoss = CONDITIONAL, pool: bool = False
    ) -> None:
        super().__init__(design, reference, l2, row_loss, pool)
        self.levels = _Levels.of(design)

    def start(self, network: Network | None = None) -> Floats:
        """The logs of the tables, less those of the reference."""
        if network is None:
            return np.zeros(self.pooling.size)
        return self.pooling.parts(self.design.flatten(network.tables) - self.reference)

    def weights(self, point: Floats) -> Floats:
        """Normalised log tables of a point."""
        return self.levels.normalised(self.reference + self.pooling.total(point))

    def tables(self, point: Floats) -> tuple[list[Floats], bool]:
        """Normalised log tables of a point, which nothing cuts short: there is no choice."""
        return self.plain_tables(point), False

    def plain_tables(self, point: Floats) -> list[Floats]:
        """Normalised log tables of a point."""
        return self.design.tables(self.weights(point), self.network.tables)

    def objective(self, point: Floats) -> tuple[float, Floats]:
        """Loss and penalty, and their gradient."""
        weights = self.weights(point)
        loss, gradient = self.design.loss(weights, self.row_loss)
        # d log softmax(b)_x / d b_y = [x = y] - softmax(b)_y
        gradient -= np.exp(weights) * self.levels.sums(gradient)
        return loss + 0.5 * self.l2 * float(point @ point), self.pooling.back(gradient) + self.l2 * point


@dataclass(frozen=True)
class _Levels:
    """Which numbers of the design's matrix (cells x classes) are one distribution.

    In the first cells, those of the class itself, each line; below them, in each column, neighbours: the levels of a
    child under one assignment of its parents.
    """

    own: int  # cells of the class's family
    starts: NDArray[np.intp]
    lengths: NDArray[np.intp]

    @classmethod
    def of(cls, design: Design) -> _Levels:
        own, *sizes = design.sizes
        cards = [design.cardinalities[i] for i in design.families[1:]]
        lengths = np.repeat(np.array(cards, np.intp), [s // c for s, c in zip(sizes, cards, strict=True)])
        return cls(own, np.cumsum(lengths) - lengths, lengths)

    def normalised(self, free: Floats) -> Floats:
        """Log of the softmax."""
        top = self._spread(free, np.maximum)
        return np.asarray(free - top - np.log(self._spread(np.exp(free - top), np.add)))

    def sums(self, values: Floats) -> Floats:
        """For each number the sum over its distribution."""
        return self._spread(values, np.add)

    def _spread(self, values: Floats, combine: np.ufunc) -> Floats:
        found = np.empty_like(values)
        found[: self.own] = combine.reduce(values[: self.own], axis=1, keepdims=True)
        if len(self.starts):
            below = combine.reduceat(values[self.own :], self.starts, axis=0)
            found[self.own :] = np.repeat(below, self.lengths, axis=0)
        return found
