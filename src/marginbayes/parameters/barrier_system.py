"""The linear system of a Newton step of the barrier path, over the weights that some row uses.

In a row of a table, with s = exp(w) / (1 - sum of exp(w)), the curvature by the weights is mu (diag(s) + s s'), and a
weight that no row uses, of any class, has no other. Few rows leave most weights of large tables unused. Those are
eliminated in closed form: with S the sum of s over them, the others keep mu (diag(s) + s s' / (1 + S)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.solvers.cholesky import factorised, solved
from marginbayes.solvers.interior import PairProblem

__all__ = ["BarrierSystem", "Curvature"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Curvature:
    """Second derivatives at a point.

    Attributes
    ----------
    pairs, slacks : of the logarithms of each pair's room, and of each row's slack
    total : for each row their sum
    odds : array, one for each weight
        s above.
    mu : float
    """

    pairs: Floats
    slacks: Floats
    total: Floats
    odds: Floats
    mu: float


class BarrierSystem:
    """Solves the system at any point.

    Parameters
    ----------
    pairs : PairProblem
    groups : array, one for each weight
        Number of the row of a table that it belongs to.
    max_bytes : float
        The most that the matrix may take.
    """

    def __init__(self, pairs: PairProblem, groups: Integers, max_bytes: float) -> None:
        cells, classes = pairs.shape
        in_use = np.zeros(cells, bool)
        in_use[pairs.cells[pairs.cells >= 0]] = True
        used = np.repeat(in_use, classes)
        self.used, self.unused = np.flatnonzero(used), np.flatnonzero(~used)
        self.groups, self.n_groups = groups, int(groups.max(initial=-1)) + 1
        size = len(self.used)
        if 8 * size**2 > max_bytes:
            raise ValueError(
                f"the barrier path needs a matrix of {8 * size**2 / 1e9:.3g} GB for {size} weights that rows use, more "
                f"than max_bytes={max_bytes:.3g} allows; allow more, or use fewer rows, levels or parents"
            )
        number = np.cumsum(in_use) - 1
        renumbered = np.where(pairs.cells >= 0, number[pairs.cells], -1).astype(np.int32)
        self.pairs, self.cells = pairs, renumbered
        own = groups[self.used]
        order = np.argsort(own, kind="stable")
        self.members = np.split(order, np.flatnonzero(np.diff(own[order])) + 1) if size else []
        self.memory = np.empty((size, size))

    def solve(self, at: Curvature, right: Floats) -> Floats:
        """Solution for several right sides (columns)."""
        gone, mine, theirs = at.odds[self.unused, None], self.groups[self.used], self.groups[self.unused]
        left_out = 1.0 + self._sums(self.unused, at.odds[:, None])  # 1 + S of each group
        unused_right = self._sums(self.unused, right) / left_out
        factor = factorised(self.memory, lambda out: self._fill(out, at, left_out[mine, 0]))
        out = np.zeros_like(right)
        out[self.used] = solved(factor, right[self.used] - at.odds[self.used, None] * unused_right[mine])
        pull = self._sums(self.used, at.odds[:, None] * out) / left_out
        out[self.unused] = (right[self.unused] / gone - unused_right[theirs]) / at.mu - pull[theirs]
        return out

    def _sums(self, some: Integers, values: Floats) -> Floats:
        """Sum over some weights of each group, for every column."""
        out = np.zeros((self.n_groups, values.shape[1]))
        np.add.at(out, self.groups[some], values[some])
        return out

    def _fill(self, out: Floats, at: Curvature, left_out: Floats) -> None:
        """Curvature by the weights in use: of the pairs, and of the rows of tables."""
        from marginbayes.kernels.hinge import newton_matrix

        pairs, odds = self.pairs, at.odds[self.used]
        newton_matrix(
            self.cells, pairs.labels, pairs.start, pairs.rivals, at.pairs, at.slacks, at.total, pairs.shape[1], out
        )
        for members in self.members:
            own = odds[members]
            out[np.ix_(members, members)] += at.mu * (np.diag(own) + np.outer(own, own) / left_out[members[0]])
