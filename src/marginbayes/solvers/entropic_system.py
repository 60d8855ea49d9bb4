"""The linear system of one interior-point step: conjugate gradients behind an exact treatment of its strongest modes.

The matrix is diag(h) + sum over groups of h h' / kappa + D' M D with M the curvature of the rows. As the method
converges, most rows lose their curvature and a few become very stiff: those few are factorised, the others are left to
a diagonal and to the iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.cholesky import factorised, solved
from marginbayes.solvers.entropic import Layout

__all__ = ["Curvature", "System"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A mode is factorised if its curvature exceeds that of the diagonal by this factor.
STRONG = 1.0
# So many modes may be factorised in any case, and up to so many (half a gigabyte) if that costs less than the
# iterations of the step before did: a product costs about 36 times a third of a cube for each non-zero.
FEW_MODES, MOST_MODES, PRODUCT = 4000, 8000, 36.0
# Rows whose curvature is below this part of the diagonal's are left out of products.
NEGLIGIBLE = 1e-7
MOST_ITERATIONS = 3000


@dataclass(frozen=True)
class Curvature:
    """theta (rows x classes), tau and tau + sum of theta of the rows; h (cells x classes) and kappa of the groups."""

    theta: Floats
    tau: Floats
    total: Floats
    h: Floats
    kappa: Floats


class System:
    """Solves the system at one point for any right side; `before` are the iterations that the last point took."""

    def __init__(self, layout: Layout, curvature: Curvature, before: int = 0) -> None:
        self.layout, self.curvature = layout, curvature
        self.iterations = 0
        work = PRODUCT * before * len(layout.coded[1]) * layout.counts.shape[1]
        self.most = int(min(MOST_MODES, max(FEW_MODES, np.cbrt(work))))
        diagonal = self._diagonal()
        modes = self._choose(curvature.h + diagonal)
        self.rows, self.first, self.second = modes
        self._factorise(diagonal)

    def _diagonal(self) -> Floats:
        """Diagonal of D' M D."""
        from marginbayes.kernels.margins_system import curvature_diagonal

        k = self.curvature
        by_row = np.empty_like(k.theta)
        curvature_diagonal(self.layout.labels, k.theta, k.tau, k.total, by_row)
        return np.maximum(self.layout.sums(by_row), 0.0)

    def _choose(self, diagonal: Floats) -> tuple[Ints, Ints, Ints]:
        """Rows, first and second classes of the strong modes; and which rows count at all."""
        k, layout = self.curvature, self.layout
        sums, others, top = self._leverages(diagonal)
        self.live = np.flatnonzero(np.maximum(sums, others.max(axis=1)) > NEGLIGIBLE)
        alone, among, _ = self._leverages(k.h)
        if (alone > STRONG).sum() + (among > STRONG).sum() <= self.most:
            sums, others = alone, among
        bar = STRONG
        strong = np.concatenate([sums[sums > bar], others[others > bar]])
        if len(strong) > self.most:
            bar = float(np.partition(strong, -self.most)[-self.most])
        own, (row, rival) = np.flatnonzero(sums > bar), np.nonzero(others > bar)
        rows = np.concatenate([own, row])
        first = np.concatenate([layout.labels[own], top[row]])
        second = np.concatenate([top[own], rival])
        order = np.argsort(rows, kind="stable")  # the mode of the own class stays the first of its row
        return rows[order], first[order], second[order]

    def _leverages(self, diagonal: Floats) -> tuple[Floats, Floats, Ints]:
        """Curvature of each mode in units of the diagonal; and the top rival of each row."""
        from marginbayes.kernels.margins import class_scores
        from marginbayes.kernels.margins_system import leverages

        k, layout = self.curvature, self.layout
        softness, others = np.empty_like(k.theta), np.empty_like(k.theta)
        sums, top = np.empty(len(k.tau)), np.empty(len(k.tau), np.int64)
        inverse = 1.0 / diagonal
        layout.each(lambda p: class_scores(layout.cells[p], inverse, softness[p]), len(top))
        leverages(layout.labels, k.theta, k.tau, k.total, softness, top, sums, others)
        return sums, others, top

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
        layout.share_out(work, [slice(*ends) for ends in pairwise(cuts)])

    # -- solving

    def product(self, x: Floats) -> Floats:
        """The matrix times x."""
        from marginbayes.kernels.margins_system import curvature_product

        k, layout = self.curvature, self.layout
        coded, base = layout.code(x)
        indptr, index = layout.coded

        def work(part: slice, out: Floats, total: Floats) -> None:
            curvature_product(
                indptr, index, self.live[part], layout.labels, k.theta, k.tau, k.total, coded, base, out, total
            )

        hx = k.h * x
        whole: Floats = hx + k.h * layout.spread(layout.group_sums(hx) / k.kappa)
        whole += layout.summed(work, len(self.live))
        return whole

    def _base_inverse(self, x: Floats) -> Floats:
        """The inverse of diagonal and groups, without modes."""
        pulled = self.pull * self.layout.spread(self.layout.group_sums(self.pull * x))
        return np.asarray(x * self.inverse - pulled)

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
            mode_scores(*self.layout.coded, self.rows, self.first, self.second, *self.layout.code(y), scores)
            scores = self.scale * solved(self.factor, self.scale * scores)
        return scores

    def precondition(self, x: Floats) -> Floats:
        """The inverse of diagonal, groups and strong modes times x."""
        from marginbayes.kernels.margins_system import mode_sums

        y = self._base_inverse(x)
        if not len(self.rows):
            return y
        layout = self.layout
        coded = np.zeros((len(layout.counts) + layout.cells.shape[1], layout.counts.shape[1]))
        total = np.zeros(layout.counts.shape[1])
        mode_sums(*layout.coded, self.rows, self.first, self.second, self._amounts(y), coded, total)
        return y - self._base_inverse(layout.uncode(coded, total))

    def size(self, residual: Floats) -> float:
        """Squared norm of a residual, as `solve` measures it."""
        return float((residual * self.precondition(residual)).sum())

    def solve(self, right: Floats, bar: float, check: Callable[[], None]) -> Floats:
        """Solution by conjugate gradients, until the squared norm of the residual is below the bar."""
        x, residual = np.zeros_like(right), right
        y = self.precondition(residual)
        way, size = y.copy(), float((residual * y).sum())
        for _ in range(MOST_ITERATIONS):
            if not size > bar:
                break
            check()
            image = self.product(way)
            step = size / float((way * image).sum())
            x += step * way
            residual = residual - step * image
            y = self.precondition(residual)
            size, before = float((residual * y).sum()), size
            way *= size / before
            way += y
            self.iterations += 1
        return x
