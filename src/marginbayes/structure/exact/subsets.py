"""The best structure by dynamic programming over all subsets of the variables (Silander & Myllymaki 2006).

The best structure over a set of variables is a best last variable, with its best parents among the others, below the
best structure over the others. Costs n^2 2^n steps and n 2^n numbers, whatever the parent sets are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.families import Families

__all__ = ["MOST_VARIABLES", "best_by_subsets"]

Floats = NDArray[np.float64]
Set = tuple[int, ...]

# Twenty variables need 170 MB; each one more needs twice as much.
MOST_VARIABLES = 20


def best_by_subsets(families: Families, stop: Callable[[], bool]) -> tuple[Set, ...] | None:
    """Parents of each variable in a structure of greatest score; None where `stop` says so or none is acyclic."""
    n = families.n
    best = np.empty((n, 1 << n))
    for child in range(n):
        best[child] = _best_within(families, child)
        if stop():
            return None
    values = _values(best, stop)
    if values is None or values[-1] == -np.inf:
        return None
    return _read(families, best, values)


def _best_within(families: Families, child: int) -> Floats:
    """For every set of variables, as bits, the best score of parents among them."""
    n = families.n
    best = np.full(1 << n, -np.inf)
    for parents, score in zip(families.sets[child], families.scores[child], strict=True):
        best[sum(1 << p for p in parents)] = score
    for bit in range(n):
        pairs = best.reshape(-1, 2, 1 << bit)  # without and with this variable
        np.maximum(pairs[:, 1], pairs[:, 0], out=pairs[:, 1])
    return best


def _values(best: Floats, stop: Callable[[], bool]) -> Floats | None:
    """Score of the best structure over every set of variables, sets of few variables first."""
    n = len(best)
    masks = np.arange(1 << n)
    sizes = np.bitwise_count(masks)
    values = np.full(1 << n, -np.inf)
    values[0] = 0.0
    for size in range(1, n + 1):
        layer = masks[sizes == size]
        for last in range(n):
            here = layer[(layer >> last) & 1 == 1]
            rest = here ^ (1 << last)
            values[here] = np.maximum(values[here], values[rest] + best[last, rest])
        if stop():
            return None
    return values


def _read(families: Families, best: Floats, values: Floats) -> tuple[Set, ...]:
    """The choices behind the value of all variables, from the last one back."""
    n, mask = families.n, len(values) - 1
    parents: list[Set] = [()] * n
    while mask:
        last = max(
            (v for v in range(n) if mask >> v & 1),
            key=lambda v: values[mask ^ 1 << v] + best[v, mask ^ 1 << v],
        )
        mask ^= 1 << last
        sets = families.sets[last]
        parents[last] = next(s for s in sets if all(mask >> p & 1 for p in s))  # the best first
    return tuple(parents)
