"""An inverse of the curvature that treats the strongest modes of the rows exactly, and all others as a diagonal.

As the method converges, most rows lose their curvature and a few become very stiff: those few are factorised.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.cholesky import factorised, solved
from marginbayes.solvers.entropic import Layout
from marginbayes.solvers.entropic_curvature import Curvature
from marginbayes.solvers.threads import in_threads

__all__ = ["STRONG", "StrongModes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A mode is factorised if its curvature exceeds that of the diagonal by this factor.
STRONG = 1.0


class StrongModes:
    """The inverse of diagonal, groups and strong modes; the leverages are those of the modes that may be chosen."""

    def __init__(
        self,
        layout: Layout,
        curvature: Curvature,
        diagonal: Floats,
        leverages: tuple[Floats, Floats, Ints],
        most: int,
    ) -> None:
        self.layout, self.curvature = layout, curvature
        self.rows, self.first, self.second = _choose(layout, *leverages, most)
        self._factorise(diagonal)

    def _factorise(self, diagonal: Floats) -> None:
        """Cholesky factor of the strong modes over a diagonal of all the rest."""
        k, layout = self.curvature, self.layout
        self.starts = np.append(np.flatnonzero(np.diff(self.rows, prepend=-1)), len(self.rows))
        matrix = np.zeros((len(self.rows), len(self.rows)))
        rest = k.h + np.maximum(diagonal - self._strong_diagonal(matrix), 1e-12 * diagonal)
        self.inverse = 1.0 / rest
        scale = np.sqrt(k.kappa + layout.group_sums(k.h * k.h * self.inverse))
        self.pull = k.h * self.inverse / layout.spread(scale)
        self.factor = factorised(matrix, self._fill)

    def _fill(self, matrix: Floats) -> None:
        """Add what is to be factorised, scaled to a diagonal of ones."""
        self._add_blocks(matrix)
        self._add_products(matrix)
        self.scale = 1.0 / np.sqrt(matrix.diagonal())
        matrix *= self.scale[:, None]
        matrix *= self.scale

    def _strong_diagonal(self, memory: Floats) -> Floats:
        """Share of the modes in the diagonal; the memory is for what else comes out."""
        coefficients = np.zeros_like(self.curvature.theta)
        coefficients[self.rows[self.starts[:-1]]] = self._add_blocks(memory)
        return self.layout.sums(coefficients)

    def _add_blocks(self, matrix: Floats) -> Floats:
        """Add the modes' inverse curvature to the matrix; return the diagonal of the curvature for each row."""
        from marginbayes.kernels.margins_system import mode_blocks

        k, labels = self.curvature, self.layout.labels
        by_row = np.zeros((len(self.starts) - 1, k.theta.shape[1]))
        mode_blocks(self.starts, self.rows, self.first, self.second, labels, k.theta, k.tau, matrix, by_row)
        return by_row

    def _add_products(self, matrix: Floats) -> None:
        from marginbayes.kernels.margins_system import mode_products

        layout, size = self.layout, len(matrix)
        modes = layout.cells, layout.chunks, self.rows, self.first, self.second

        def work(lines: slice) -> None:
            mode_products(*modes, self.inverse, self.pull, lines.start, lines.stop, matrix)

        # Lines get longer; parts of equal area.
        cuts = (size * np.sqrt(np.linspace(0, 1, 5))).astype(int)
        in_threads(work, [slice(*ends) for ends in pairwise(cuts)], layout.n_jobs)

    def _base_inverse(self, x: Floats) -> Floats:
        """The inverse of diagonal and groups, without modes."""
        from marginbayes.kernels.margins_groups import base_inverse

        layout = self.layout
        sums = np.empty((layout.n_chunks, x.shape[1]))
        return np.asarray(base_inverse(x, self.inverse, self.pull, layout.chunks, layout.pooled, sums))

    def correct(self, residual: Floats, d_eta: Floats, d_spare: Floats) -> None:
        """Take the strong modes' part of a residual out of the change of the multipliers.

        A stiff row turns a tiny error of the weights into a large one of its multipliers.
        """
        from marginbayes.kernels.margins_system import move_modes

        k, amounts = self.curvature, self._amounts(self._base_inverse(residual))
        move_modes(
            self.starts, self.rows, self.first, self.second, self.layout.labels, k.theta, k.tau, amounts, d_eta, d_spare
        )

    def _amounts(self, y: Floats) -> Floats:
        from marginbayes.kernels.margins_system import mode_scores

        scores = np.empty(len(self.rows))
        if len(scores):
            of, (base, changes) = self.layout.deviations, self.layout.deviations.relative(y)
            mode_scores(of.starts, of.cells, self.rows, self.first, self.second, changes, base, scores)
            scores = self.scale * solved(self.factor, self.scale * scores)
        return scores

    def precondition(self, x: Floats) -> Floats:
        """The inverse of diagonal, groups and strong modes times x."""
        from marginbayes.kernels.margins_system import mode_sums

        y = self._base_inverse(x)
        if not len(self.rows):
            return y
        of, (sums, total) = self.layout.deviations, self.layout.deviations.no_sums(x.shape[1])
        mode_sums(of.starts, of.cells, self.rows, self.first, self.second, self._amounts(y), sums, total)
        return y - self._base_inverse(of.absolute(sums, total))


def _choose(layout: Layout, sums: Floats, others: Floats, top: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Rows, first and second classes of the strong modes."""
    bar = STRONG
    strong = np.concatenate([sums[sums > bar], others[others > bar]])
    if len(strong) > most:
        bar = float(np.partition(strong, -most)[-most])
    own, (row, rival) = np.flatnonzero(sums > bar), np.nonzero(others > bar)
    rows = np.concatenate([own, row])
    first = np.concatenate([layout.labels[own], top[row]])
    second = np.concatenate([top[own], rival])
    order = np.argsort(rows, kind="stable")  # the mode of the own class stays the first of its row
    return rows[order], first[order], second[order]
