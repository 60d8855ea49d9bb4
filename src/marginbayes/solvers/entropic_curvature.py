"""The curvature of an interior-point step for `EntropicHinge`.

    diag(h) + sum over groups of h h' / kappa + D' M D

with M that of the rows: between the classes of a row it is diag(v) - v v' / sum(v), where v is theta for rivals and tau
for the own class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.entropic import Layout

__all__ = ["Curvature"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Curvature:
    """theta (rows x classes), tau and tau + sum of theta of the rows; h (cells x classes) and kappa of the groups."""

    theta: Floats
    tau: Floats
    total: Floats
    h: Floats
    kappa: Floats

    def diagonal(self, layout: Layout) -> Floats:
        """Diagonal of D' M D."""
        from marginbayes.kernels.margins_system import curvature_diagonal

        by_row = np.empty_like(self.theta)
        curvature_diagonal(layout.labels, self.theta, self.tau, self.total, by_row)
        return np.maximum(layout.sums(by_row), 0.0)

    def leverages(self, layout: Layout, diagonal: Floats) -> tuple[Floats, Floats, Ints]:
        """Curvature of each mode of a row in units of this diagonal; and the top rival of each row."""
        from marginbayes.kernels.margins import class_scores
        from marginbayes.kernels.margins_system import leverages

        softness, others = np.empty_like(self.theta), np.empty_like(self.theta)
        sums, top = np.empty(len(self.tau)), np.empty(len(self.tau), np.int64)
        inverse = 1.0 / diagonal
        layout.each(lambda p: class_scores(layout.cells[p], inverse, softness[p]), len(top))
        leverages(layout.labels, self.theta, self.tau, self.total, softness, top, sums, others)
        return sums, others, top
