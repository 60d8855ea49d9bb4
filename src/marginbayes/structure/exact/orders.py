"""Good structures at once: the best parents along an order of the variables, and better orders nearby."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.families import Families

__all__ = ["OrderSearch"]

Set = tuple[int, ...]


class OrderSearch:
    """Local search over orders; along an order every variable takes its best parents among the earlier ones.

    `values` may replace the scores of the families, in the same sequence of parent sets.
    """

    def __init__(self, families: Families, values: Sequence[NDArray[np.float64]] | None = None) -> None:
        scores = families.scores if values is None else values
        self.n = families.n
        self.ranked = [
            sorted(((float(v), _mask(s), s) for s, v in zip(sets, own, strict=True)), key=lambda t: (-t[0], len(t[2])))
            for sets, own in zip(families.sets, scores, strict=True)
        ]

    def choice(self, child: int, earlier: int) -> tuple[float, Set | None]:
        """The best parents among the earlier variables (bits), and their score."""
        for value, mask, parents in self.ranked[child]:
            if not mask & ~earlier:
                return value, parents
        return -math.inf, None

    def greedy(self) -> list[int]:
        """An order in which next comes the variable that loses least by having only the earlier ones as parents."""
        order: list[int] = []
        earlier, left = 0, set(range(self.n))
        while left:
            losses = {i: self.ranked[i][0][0] - self.choice(i, earlier)[0] for i in left}
            nearest = min(left, key=lambda i: (losses[i], i))
            order.append(nearest)
            left.remove(nearest)
            earlier |= 1 << nearest
        return order

    def parents(self, order: Sequence[int]) -> tuple[Set, ...] | None:
        """Parents of each variable along an order; None where one has no admitted parents there."""
        found: list[Set] = [()] * self.n
        earlier = 0
        for i in order:
            _, own = self.choice(i, earlier)
            if own is None:
                return None
            found[i] = own
            earlier |= 1 << i
        return tuple(found)

    def improved(self, order: Sequence[int], stop: Callable[[], bool]) -> list[int]:
        """The order after moves of one variable to another place, as long as one helps."""
        order, idle = list(order), 0
        for i in cycle(range(self.n)):
            if idle >= self.n or stop():
                break
            gain, place = self._best_move(order, order.index(i))
            if gain > 1e-9:
                order.remove(i)
                order.insert(place, i)
                idle = 0
            else:
                idle += 1
        return order

    def iterated(self, rounds: int, seed: int, stop: Callable[[], bool]) -> Iterator[list[int]]:
        """Ever better orders, by shaking and improving again and again; the first is the greedy one, improved."""
        rng = np.random.default_rng(seed)
        best = self.improved(self.greedy(), stop)
        value = self.total(best)
        yield best
        for _ in range(rounds):
            if stop():
                break
            shaken = list(best)
            for _ in range(3):
                shaken.insert(int(rng.integers(self.n)), shaken.pop(int(rng.integers(self.n))))
            new = self.improved(shaken, stop)
            if self.total(new) > value:
                best, value = new, self.total(new)
                yield best

    def total(self, order: Sequence[int]) -> float:
        """Sum of the values along an order."""
        total, earlier = 0.0, 0
        for i in order:
            total += self.choice(i, earlier)[0]
            earlier |= 1 << i
        return total

    def _best_move(self, order: list[int], place: int) -> tuple[float, int]:
        """How much better the order gets by moving one variable, and where to: it trades places with its neighbours."""
        mover, best = order[place], (0.0, place)
        for places in (range(place - 1, -1, -1), range(place + 1, self.n)):
            earlier, gain = _mask(order[:place]), 0.0
            for at in places:
                other = order[at]
                pair = (other, mover) if at < place else (mover, other)
                gain += self._gain_of_swap(*pair, earlier & ~(1 << other))
                earlier ^= 1 << other
                if gain > best[0]:
                    best = (gain, at)
                if gain == -math.inf:  # a required parent is in the way
                    break
        return best

    def _gain_of_swap(self, first: int, second: int, before: int) -> float:
        """How much better it is that the second of two neighbours comes first, after these variables (bits)."""
        old = self.choice(first, before)[0] + self.choice(second, before | 1 << first)[0]
        new = self.choice(second, before)[0] + self.choice(first, before | 1 << second)[0]
        return new - old if new > -math.inf else -math.inf


def _mask(parents: Sequence[int]) -> int:
    return sum(1 << p for p in parents)
