"""The linear system of one interior-point step: conjugate gradients behind an inverse of most of it.

What is inverted exactly is either the strongest modes of the rows or the matrix of all weights, whichever is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.entropic import Layout
from marginbayes.solvers.entropic_curvature import Curvature
from marginbayes.solvers.entropic_modes import STRONG, StrongModes
from marginbayes.solvers.entropic_whole import WholeMatrix

__all__ = ["Curvature", "System"]

Floats = NDArray[np.float64]

# So many modes may be factorised in any case, and up to so many (half a gigabyte) if that costs less than the
# iterations of the step before did: a product costs about 36 times a third of a cube for each non-zero.
FEW_MODES, MOST_MODES, PRODUCT = 4000, 8000, 36.0
# Most weights of a whole matrix; adding a row to it costs about so many times as much as factorising, for each entry.
MOST_WEIGHTS, FILL = 6000, 8.0
# Rows whose curvature is below this part of the diagonal's are left out of products. Many thousands of them add up:
# with 1e-7 the path of letter at B = 100 came off its course before its end.
NEGLIGIBLE = 1e-11
MOST_ITERATIONS = 3000


class System:
    """Solves the system at one point for any right side; `before` are the iterations that the last point took."""

    def __init__(self, layout: Layout, curvature: Curvature, before: int = 0) -> None:
        self.layout, self.curvature = layout, curvature
        self.iterations = 0
        diagonal = curvature.diagonal(layout)
        leverages = curvature.leverages(layout, curvature.h + diagonal)
        self.live = np.flatnonzero(np.maximum(leverages[0], leverages[1].max(axis=1)) > NEGLIGIBLE)
        alone = curvature.leverages(layout, curvature.h)
        strong = int((alone[0] > STRONG).sum() + (alone[1] > STRONG).sum())
        work = PRODUCT * before * len(layout.deviations.cells) * layout.counts.shape[1]
        most = int(min(MOST_MODES, max(FEW_MODES, np.cbrt(work))))
        self.inverse: StrongModes | WholeMatrix
        if self._prefers_whole(strong):
            self.inverse = WholeMatrix(layout, curvature, self.live)
        else:
            self.inverse = StrongModes(layout, curvature, diagonal, alone if strong <= most else leverages, most)

    def _prefers_whole(self, strong: int) -> bool:
        """Whether the matrix of all weights costs less than one of so many modes."""
        weights, entries = self.curvature.h.size, self.layout.cells.shape[1] * self.layout.counts.shape[1]
        cost = weights**3 / 3 + FILL * len(self.live) * entries**2 / 2
        return weights <= MOST_WEIGHTS and cost < strong**3 / 3 + strong**2 * self.layout.cells.shape[1]

    def product(self, x: Floats) -> Floats:
        """The matrix times x."""
        from marginbayes.kernels.margins_system import curvature_product

        k, layout, live = self.curvature, self.layout, self.live
        rows, (base, changes) = layout.deviations, layout.deviations.relative(x)

        def work(part: slice, out: Floats, total: Floats) -> None:
            curvature_product(
                rows.starts, rows.cells, live[part], layout.labels, k.theta, k.tau, k.total, changes, base, out, total
            )

        hx = k.h * x
        whole: Floats = hx + k.h * layout.spread(layout.group_sums(hx) / k.kappa)
        whole += layout.summed(work, len(live))
        return whole

    def correct(self, residual: Floats, d_eta: Floats, d_spare: Floats) -> None:
        """Take a residual out of the change of the multipliers."""
        self.inverse.correct(residual, d_eta, d_spare)

    def size(self, residual: Floats) -> float:
        """Squared norm of a residual, as `solve` measures it."""
        return float((residual * self.inverse.precondition(residual)).sum())

    def solve(self, right: Floats, bar: float, check: Callable[[], None]) -> Floats:
        """Solution by conjugate gradients, until the squared norm of the residual is below the bar."""
        x, residual = np.zeros_like(right), right
        y = self.inverse.precondition(residual)
        way, size = y.copy(), float((residual * y).sum())
        for _ in range(MOST_ITERATIONS):
            if not size > bar:
                break
            check()
            image = self.product(way)
            step = size / float((way * image).sum())
            x += step * way
            residual = residual - step * image
            y = self.inverse.precondition(residual)
            size, before = float((residual * y).sum()), size
            way *= size / before
            way += y
            self.iterations += 1
        return x
