"""The inverse of the whole curvature, for few weights and many stiff rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.cholesky import factorised, solved
from marginbayes.solvers.entropic import Layout
from marginbayes.solvers.entropic_curvature import Curvature

__all__ = ["WholeMatrix"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class WholeMatrix:
    """A Cholesky factor of the curvature in all weights, scaled to a diagonal of ones; rows that do not count apart."""

    def __init__(self, layout: Layout, curvature: Curvature, live: Ints) -> None:
        self.layout, self.curvature, self.live = layout, curvature, live
        size = curvature.h.size
        self.factor = factorised(np.empty((size, size)), self._fill)

    def _fill(self, matrix: Floats) -> None:
        from marginbayes.kernels.margins_system import curvature_matrix, group_matrix

        k, layout = self.curvature, self.layout
        curvature_matrix(layout.cells, self.live, layout.labels, k.theta, k.tau, k.total, matrix)
        group_matrix(layout.blocks, layout.chunks, k.h, k.kappa, matrix)
        self.scale = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= self.scale[:, None]
        matrix *= self.scale

    def precondition(self, x: Floats) -> Floats:
        """The inverse times x."""
        return (self.scale * solved(self.factor, self.scale * x.ravel())).reshape(x.shape)

    def correct(self, residual: Floats, d_eta: Floats, d_spare: Floats) -> None:
        """Take a residual out of the change of the multipliers.

        A stiff row turns a tiny error of the weights into a large one of its multipliers.
        """
        from marginbayes.kernels.margins_system import move_rows

        k, scores = self.curvature, self.layout.scores(self.precondition(residual))
        move_rows(self.layout.labels, k.theta, k.tau, k.total, scores, d_eta, d_spare)
