"""One message: the sum over the levels of a missing variable of the product of the factors that hold it.

Factors are read through strides, the target's levels as vectors. Plain probabilities or logarithms: who calls knows
whether anything could underflow.
"""

from __future__ import annotations

import math

import numpy as np

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.layout import AT, CSTRIDE, KIND, LOGS, SCOPE, TABLE, VSTRIDE, Floats, Ints

__all__ = ["fill_message", "locate", "log_value"]


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def locate(cell: int, n_used: int, n_scope: int, used: Ints, scope: Ints, cards: Ints, at: Ints) -> None:
    """at[k]: where used factor k stands for one assignment of the message's variables (the last one fastest)."""
    for k in range(n_used):
        at[k] = used[k, AT]
    for j in range(n_scope - 1, -1, -1):
        x = cell % cards[scope[j]]
        cell //= cards[scope[j]]
        for k in range(n_used):
            at[k] += x * used[k, SCOPE + j]


@njit(inline="always", error_model="numpy")
def _sum_few(card: int, n_used: int, used: Ints, at: Ints, total: Floats, values: Floats) -> None:
    """Sum over x of the product of up to three factors that hold the target.

    Two values of x at a time: a total is read again as soon as it is written, for which the processor has to wait.
    """
    levels, last, ones = np.uint64(len(total)), n_used - 1, np.uint64(len(values) - len(total))
    a, a_next, b, b_next = ones, np.uint64(0), ones, np.uint64(0)
    z, z_next = np.uint64(at[last]), np.uint64(used[last, VSTRIDE])
    if n_used > 1:
        a, a_next = np.uint64(at[0]), np.uint64(used[0, VSTRIDE])
    if n_used > 2:
        b, b_next = np.uint64(at[1]), np.uint64(used[1, VSTRIDE])
    for c in range(levels):
        total[c] = values[a + c] * values[b + c] * values[z + c] if card % 2 else 0.0
    odd = np.uint64(card % 2)
    a, b, z = a + odd * a_next, b + odd * b_next, z + odd * z_next
    for _ in range(card // 2):
        if n_used > 2:
            for c in range(levels):
                total[c] += (
                    values[a + c] * values[b + c] * values[z + c]
                    + values[a + a_next + c] * values[b + b_next + c] * values[z + z_next + c]
                )
        else:
            for c in range(levels):
                total[c] += values[a + c] * values[z + c] + values[a + a_next + c] * values[z + z_next + c]
        a, b, z = a + a_next + a_next, b + b_next + b_next, z + z_next + z_next


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sum_plain(card: int, n_used: int, used: Ints, at: Ints, term: Floats, total: Floats, values: Floats) -> None:
    """Sum over x of the product of the used factors."""
    levels, few = np.uint64(len(total)), n_used <= 3
    for k in range(n_used):
        few = few and used[k, CSTRIDE] == 1
    if few:
        _sum_few(card, n_used, used, at, total, values)
        return
    for c in range(levels):
        total[c] = 0.0
    for x in range(card):
        for c in range(levels):
            term[c] = 1.0
        for k in range(n_used):
            a = np.uint64(at[k] + x * used[k, VSTRIDE])
            if used[k, CSTRIDE] == 1:
                for c in range(levels):
                    term[c] *= values[a + c]
            else:
                for c in range(levels):
                    term[c] *= values[a]
        for c in range(levels):
            total[c] += term[c]


@njit(inline="always", error_model="numpy")
def log_value(kind: int, position: int, logs: Floats, values: Floats) -> float:
    """Log of the entry of a factor."""
    if kind == TABLE:
        return float(logs[position])
    if kind == LOGS:
        return float(values[position])
    return math.log(values[position]) if values[position] > 0.0 else -np.inf


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sum_logs(card: int, n_used: int, used: Ints, at: Ints, total: Floats, logs: Floats, values: Floats) -> None:
    """Log-sum-exp in one pass, with a running maximum for each level of the target."""
    for c in range(len(total)):
        top, share = -np.inf, 0.0
        for x in range(card):
            value = 0.0
            for k in range(n_used):
                value += log_value(used[k, KIND], at[k] + x * used[k, VSTRIDE] + c * used[k, CSTRIDE], logs, values)
            if value > top:
                share = share * math.exp(top - value) + 1.0
                top = value
            elif value > -np.inf:
                share += math.exp(value - top)
        total[c] = top + math.log(share) if share > 0.0 else -np.inf


@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def fill_message(
    card: int, cells: int, plain: bool, n_used: int, n_scope: int, used: Ints, scope: Ints, cards: Ints, at: Ints,
    term: Floats, total: Floats, logs: Floats, values: Floats, end: int,
) -> None:  # fmt: skip
    """Fill the cells of a message, from `end` on."""
    levels = len(total)
    for cell in range(cells):
        locate(cell, n_used, n_scope, used, scope, cards, at)
        if plain:
            _sum_plain(card, n_used, used, at, term, total, values)
        else:
            _sum_logs(card, n_used, used, at, total, logs, values)
        for c in range(levels):
            value = total[c]
            if plain and n_scope == 0:
                value = math.log(value) if value > 0.0 else -np.inf
            values[end + cell * levels + c] = value
