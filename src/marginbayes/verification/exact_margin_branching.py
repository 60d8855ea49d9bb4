"""The best choice of an option for each feature without a cycle: maximum-weight branchings (Edmonds), and costs.

Let the root and the features be nodes, and subtract from all edges that enter a node the value of the best of them;
where the best edges close a cycle, take its nodes as one and do so again, until they close none. Every structure enters
each feature once, and each set of several at least once, for which what was subtracted is not positive. So the sum of
all that was subtracted is the best sum, and what is left of the value of an edge is, with the sign changed, what it
costs at least.

Many problems of the same size are solved side by side, since each by itself is too small for NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["OptionCosts", "best_branchings"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


def best_branchings(values: Floats, options: Flags) -> Floats:
    """Greatest sums of values [problem, feature, option], one option for each feature, without a cycle.

    A sum is minus infinity where there is no such choice.
    """
    return _Branchings(_edges(np.where(options, values, -np.inf))).totals


class OptionCosts:
    """Greatest sums over acyclic choices of options, and what each option costs at least."""

    def __init__(self, values: Floats, options: Flags) -> None:
        chosen = np.where(options, values, -np.inf)
        with np.errstate(invalid="ignore"):  # where there is neither of the two
            self._alone = chosen[..., :2] - chosen[..., :2].max(axis=2, keepdims=True)
        self._left = _edges(chosen)
        self.totals = _Branchings(self._left.copy(), self._left).totals

    def of(self, problem: Ints, feature: Ints) -> Floats:
        """Costs of all options of some features of some problems, a line each; infinite for one that is not there."""
        left = self._left[problem, feature]
        costs = -np.concatenate([left[:, -1:] + self._alone[problem, feature], left[:, :-1]], axis=1)
        costs[np.isnan(costs) | np.isinf(self.totals[problem])[:, None]] = np.inf
        return costs


def _edges(chosen: Floats) -> Floats:
    """Values of edges [problem, child, parent]; the last parent is the root."""
    n = chosen.shape[1]
    weights = np.concatenate([chosen[..., 2:], chosen[..., :2].max(axis=2, keepdims=True)], axis=2)
    weights[:, np.arange(n), np.arange(n)] = -np.inf
    return weights


@dataclass
class _Cycles:
    """Nodes on cycles, those of a cycle side by side: problem, node and the first node of its cycle."""

    problem: Ints
    node: Ints
    first: Ints

    @property
    def begins(self) -> Ints:
        """Where each cycle begins: at its first node."""
        return np.flatnonzero(self.node == self.first)


class _Branchings:
    """Edmonds' algorithm, which changes the weights; from `left`, if given, all that is subtracted is subtracted."""

    def __init__(self, weights: Floats, left: Floats | None = None) -> None:
        count, n = weights.shape[:2]
        self.root = n
        self.totals = np.full(count, -np.inf)
        self.here = np.arange(count)  # the problems that are still worked on
        self.weights = weights
        self.above = weights.argmax(axis=2)
        self.top = np.take_along_axis(weights, self.above[..., None], axis=2)[..., 0]
        # The node that stands for each node, once it was taken as one with others; the root for itself.
        self.stands = np.tile(np.arange(n + 1), (count, 1))
        self._keep(np.asarray(np.isfinite(self.top).all(axis=1)))
        self.totals[self.here] = self.top.sum(axis=1)
        if left is not None:
            left[self.here] -= self.top[..., None]
        while True:
            cycles = _cycles(self.above)
            with_cycles = np.zeros(len(self.here), bool)
            with_cycles[cycles.problem] = True
            self._keep(with_cycles)
            if not len(self.here):
                return
            cycles.problem = (np.cumsum(with_cycles) - 1)[cycles.problem]
            self._contract(cycles, left)

    def _keep(self, which: Flags) -> None:
        """Go on with some of the problems."""
        if which.all():
            return
        for name in ("here", "weights", "above", "top", "stands"):
            setattr(self, name, getattr(self, name)[which])

    def _contract(self, cycles: _Cycles, left: Floats | None) -> None:
        """The nodes of a cycle become its first one; to enter one of them costs its best edge."""
        problem, node, first, begins = cycles.problem, cycles.node, cycles.first, cycles.begins
        whose, new = problem[begins], node[begins]
        weights, others = self.weights, node != first
        entering = weights[problem, node] - self.top[problem, node][:, None]
        weights[whose, new] = np.maximum.reduceat(entering, begins, axis=0)
        weights[problem, first, node] = -np.inf
        # The others hang from the root for nothing, with nothing below them.
        weights[problem[others], node[others]] = -np.inf
        weights[problem[others], node[others], self.root] = 0.0
        leaving = weights[problem, :, node]
        weights[problem[others], :, node[others]] = -np.inf
        weights[whose, :, new] = np.maximum.reduceat(leaving, begins, axis=0)

        becomes = np.tile(np.arange(self.root + 1), (len(self.here), 1))
        becomes[problem, node] = first
        self.stands = np.take_along_axis(becomes, self.stands, axis=1)
        # Best edges stay what they are, but for those into the new nodes.
        self.above = np.take_along_axis(becomes, self.above, axis=1)
        self.above[problem[others], node[others]], self.top[problem[others], node[others]] = self.root, 0.0
        fresh = weights[whose, new]
        best = fresh.argmax(axis=1)
        self.above[whose, new], self.top[whose, new] = best, fresh[np.arange(len(best)), best]
        self._enter(whose, new, left)

    def _enter(self, whose: Ints, new: Ints, left: Floats | None) -> None:
        """Account for the best edges into new nodes; problems in which there is none have no branching."""
        best = self.top[whose, new]
        np.add.at(self.totals, self.here[whose], best)
        if left is not None:
            at, member = np.nonzero(self.stands[whose, :-1] == new[:, None])
            outside = self.stands[whose[at]] != new[at, None]
            with np.errstate(invalid="ignore"):  # of problems without a branching, whose costs nobody reads
                left[self.here[whose[at]], member] -= np.where(outside, best[at, None], 0.0)
        self._keep(np.isfinite(self.totals[self.here]))


def _cycles(above: Ints) -> _Cycles:
    """All cycles of nodes, each of which has one above it; that after the last has none."""
    count, n = above.shape
    after = np.concatenate([above, np.full((count, 1), n)], axis=1)
    last = after
    for _ in range(n.bit_length()):  # so many steps, twice as far each time, that only cycles are left
        last = np.take_along_axis(last, last, axis=1)
    on_cycle = np.zeros((count, n + 1), bool)
    on_cycle[np.arange(count)[:, None], last] = True
    problem, node = np.nonzero(on_cycle[:, :n])
    place = np.full((count, n + 1), -1)
    place[problem, node] = np.arange(len(node))
    then, first = place[problem, after[problem, node]], node.copy()
    for _ in range(n.bit_length()):
        first = np.minimum(first, first[then])
        then = then[then]
    order = np.lexsort((node, first, problem))
    return _Cycles(problem[order], node[order], first[order])
