"""Log joint of a few rows by plain variable elimination, the rows being one more axis of every array.

For few rows this is done before the compiled sums of `evaluate` are even loaded. The two share no code but the order of
elimination.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.network.logs import log_sum

__all__ = ["eliminate_plainly"]

Floats = NDArray[np.float64]
Codes = NDArray[np.unsignedinteger[Any]]
# Variables in rising order, and an array with the axes rows (1 if all are alike), variables, levels of the target.
Factor = tuple[list[int], Floats]


def eliminate_plainly(
    families: Sequence[tuple[Sequence[int], Floats]], cardinalities: Sequence[int], codes: Codes, order: Sequence[int]
) -> Floats:
    """log P(target = level, observed cells) for each row and level of the target.

    A family is its members other than the target, and its log table with the target's axis last (of length 1 if it does
    not hold the target). All variables are summed out in this order, observed ones over the one level that they have:
    so every row goes the same way, and gets the same bits in any company.
    """
    factors = [_sorted(members, table) for members, table in families]
    for v in order:
        factors.append(_evidence(v, codes[v], cardinalities[v]))
        used = [f for f in factors if v in f[0]]
        factors = [*(f for f in factors if v not in f[0]), _summed(v, used)]
    return np.asarray(sum(values for _, values in factors))


def _sorted(members: Sequence[int], table: Floats) -> Factor:
    by_number = sorted(range(len(members)), key=lambda k: members[k])
    return sorted(members), np.transpose(table, (*by_number, len(members)))[None]


def _evidence(v: int, codes: Codes, cardinality: int) -> Factor:
    """0 for the observed level of a variable, or for all levels where the cell is missing; impossible elsewhere."""
    levels = np.arange(cardinality)
    possible = (codes[:, None] == levels) | (codes[:, None] == cardinality)
    return [v], np.where(possible, 0.0, -np.inf)[:, :, None]


def _summed(v: int, factors: Sequence[Factor]) -> Factor:
    """The product of factors, summed over one variable."""
    scope = sorted({u for own, _ in factors for u in own})
    total: Any = sum(
        values[(slice(None), *(slice(None) if u in own else None for u in scope))] for own, values in factors
    )
    return [u for u in scope if u != v], log_sum(total, 1 + scope.index(v))
