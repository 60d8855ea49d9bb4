"""Fayyad and Irani's discretisation by the book: plain recursion over lists of rows, in exact arithmetic.

Counts are fractions and logarithms have 40 digits, so that equally good cuts are seen to be equal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cache

Row = tuple[float, int, Fraction]
DIGITS = 40
EQUAL = Decimal("1e-25")


def naive_cuts(values: Sequence[float], y: Sequence[int], weights: Sequence[float] | None = None) -> list[float]:
    """Ascending cut points of one column."""
    weights = [1.0] * len(values) if weights is None else weights
    rows = [
        (float(v), int(c), Fraction(float(w)))
        for v, c, w in zip(values, y, weights, strict=True)
        if w > 0 and not math.isnan(v)
    ]
    with localcontext() as context:
        context.prec = DIGITS
        return _recursion(sorted(rows))


def _recursion(rows: list[Row]) -> list[float]:
    best = None
    for i in range(1, len(rows)):
        if rows[i - 1][0] == rows[i][0]:
            continue
        entropy = _weighted_entropy(rows[:i]) + _weighted_entropy(rows[i:])
        if best is None or entropy < best[0] - EQUAL:
            best = entropy, i
    if best is None or not _accepted(rows, rows[: best[1]], rows[best[1] :]):
        return []
    low, high = rows[: best[1]], rows[best[1] :]
    return [*_recursion(low), _middle(low[-1][0], high[0][0]), *_recursion(high)]


def _accepted(rows: list[Row], low: list[Row], high: list[Row]) -> bool:
    n = _weight(rows)
    if n < 2:
        return False
    entropies = [_weighted_entropy(part) / _decimal(_weight(part)) for part in (rows, low, high)]
    classes = [len({c for _, c, _ in part}) for part in (rows, low, high)]
    k_entropy, k_low, k_high = (k * e for k, e in zip(classes, entropies, strict=True))
    gain = entropies[0] - (_weighted_entropy(low) + _weighted_entropy(high)) / _decimal(n)
    delta = _log2(Fraction(3 ** classes[0] - 2)) - (k_entropy - k_low - k_high)
    return gain > (_log2(n - 1) + delta) / _decimal(n)


def _weighted_entropy(rows: list[Row]) -> Decimal:
    """Weight of the rows times their class entropy in bits."""
    total = _weight(rows)
    by_class = [sum((w for _, c, w in rows if c == k), Fraction(0)) for k in {c for _, c, _ in rows}]
    return -sum((_decimal(w) * _log2(w / total) for w in by_class), Decimal(0))


def _weight(rows: list[Row]) -> Fraction:
    return sum((w for _, _, w in rows), Fraction(0))


def _decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


@cache
def _log2(x: Fraction) -> Decimal:
    assert getcontext().prec == DIGITS
    return _decimal(x).ln() / Decimal(2).ln()


def _middle(low: float, high: float) -> float:
    """The midpoint, correctly rounded; the lower value where that would be the upper one."""
    middle = float((Fraction(low) + Fraction(high)) / 2)
    return middle if middle < high else low
