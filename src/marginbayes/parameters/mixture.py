"""The soft margin of all rows as a function of the weights of a combination, and the proof of a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.parameters.certified import distinct_rows, graph_evidence
from marginbayes.parameters.design import Design
from marginbayes.solvers.level import LevelResult
from marginbayes.solvers.simplex import best_pull

__all__ = ["MarginMixture", "best_margin"]

Floats = NDArray[np.float64]


def best_margin(margins: Floats, costs: Floats) -> tuple[float, float, Floats]:
    """The gamma that minimises ``1 / (2 gamma^2) + sum of costs * max(0, gamma - margins)``, the value, and the slopes.

    Problem (25) of Tschiatschek & Pernkopf (2012) in closed form: between two neighbouring margins the sum is linear,
    and all is least where ``gamma^-3`` equals the costs of the smaller margins. The slopes say what a margin's loss
    costs: between zero and the margin's cost, ``gamma^-3`` in all.
    """
    order = np.argsort(margins, kind="stable")
    rising, total = margins[order], np.cumsum(costs[order])
    # The first interval at whose upper end the whole rises; beyond the last margin it does in the end.
    ends = np.append(rising[1:], np.inf)
    with np.errstate(over="ignore"):
        k = int(np.argmax((ends > 0) & (total * ends**3 >= 1)))
    gamma = float(max(total[k] ** (-1 / 3), rising[k]))
    value = 0.5 / gamma**2 + float(costs @ np.maximum(gamma - margins, 0.0))
    slopes = np.where(margins < gamma, costs, 0.0)
    if gamma == rising[k]:  # margins right at gamma share what is left
        tied = margins == gamma
        slopes[tied] = costs[tied] * (max(0.0, gamma**-3 - slopes.sum()) / costs[tied].sum())
    return gamma, value, slopes


@dataclass(frozen=True)
class MarginMixture:
    """The margin problem (21) of all rows as a function of the weights of the members.

    Parameters
    ----------
    design : Design
    weights : array of shape (cells, classes, members)
        Log tables of the members.
    labels : array of shape (rows,)
        Class of each distinct row, in an order that anyone can recompute.
    margins : array of shape (rows, classes - 1, members)
        Score of the true class less that of each other class.
    costs : array of shape (rows,)
        B times the weight of each row.
    B : float
    """

    design: Design
    weights: Floats
    labels: NDArray[np.int64]
    margins: Floats
    costs: Floats
    B: float

    @classmethod
    def of(cls, design: Design, members: Sequence[Sequence[Floats]], B: float) -> MarginMixture:
        """Margins of all rows under the tables of all members."""
        from marginbayes.kernels.combination import member_margins

        weights = np.ascontiguousarray(np.stack([design.flatten(tables) for tables in members], axis=-1))
        if not np.isfinite(weights).all():
            raise ValueError(
                "a part has a network with probabilities of zero, which has no logarithm; smooth its learner"
            )
        rows = distinct_rows(design)
        margins = np.empty((len(rows.labels), design.shape[1] - 1, len(members)))
        member_margins(rows.cells, weights, rows.labels, margins)
        return cls(design, weights, rows.labels, margins, B * rows.row_weights, B)

    def loss(self, point: Floats) -> tuple[float, Floats]:
        """Value of (21) and a subgradient by the weights of the members."""
        if not self.margins.shape[1]:  # one class: no rival, and no margin is too large
            return 0.0, np.zeros(len(point))
        rivals, value, slopes = self._slopes(point)
        on = np.flatnonzero(slopes)
        return value, -(slopes[on] @ self.margins[on, rivals[on]])

    def _slopes(self, point: Floats) -> tuple[NDArray[np.intp], float, Floats]:
        """The closest rival of each row, the value, and what each row's margin adds to the slope."""
        combined = self.margins @ point
        rivals = combined.argmin(axis=1)
        _, value, slopes = best_margin(combined[np.arange(len(rivals)), rivals], self.costs)
        return rivals, value, slopes

    def proof(self, found: LevelResult, D: float) -> tuple[float, dict[str, Any]]:
        """Bound that no combination can fall below, and the evidence of it.

        For any multipliers of pairs (row, rival), not negative and for each row at most its cost, (21) is at least
        ``1 / (2 gamma^2) + sum of multipliers * (gamma - margins)``, whose least value over gamma is ``3/2 * (sum of
        multipliers)^(2/3) - sum of multipliers * margins``. That is linear in the weights, hence least at one member.
        The multipliers are those of the tangents that the search ended with.
        """
        duals = self._duals(found)
        slope = -np.einsum("nr,nrm->m", duals, self.margins)
        pull = best_pull(slope, D)
        bound = float(1.5 * duals.sum() ** (2 / 3) + (slope + pull).min())
        evidence = {
            **graph_evidence(self.design.dag, self.design),
            "members": np.moveaxis(self.weights, -1, 0),
            "weights": found.point,
            "B": self.B,
            "D": D,
            "pull": pull,
            "equal_from": self._equal_from(),
            "duals": self._sparse(duals),
        }
        return min(bound, found.value), evidence

    def _duals(self, found: LevelResult) -> Floats:
        total = np.zeros(self.margins.shape[:2])
        if self.margins.shape[1]:
            for point, share in zip(found.points, found.multipliers, strict=True):
                rivals, _, slopes = self._slopes(point)
                total[np.arange(len(rivals)), rivals] += share * slopes
        return total

    def _equal_from(self) -> float:
        """A D from which on equal weights are best: the length of a subgradient there, along the simplex."""
        members = self.weights.shape[-1]
        slope = self.loss(np.full(members, 1.0 / members))[1]
        return float(np.linalg.norm(slope - slope.mean()))

    def _sparse(self, duals: Floats) -> dict[str, Any]:
        at, rivals = np.nonzero(duals)
        return {"rows": at, "classes": rivals + (rivals >= self.labels[at]), "values": duals[at, rivals]}
