"""Derivatives of the log joint of many rows by all table entries: backwards through the messages that `messages` made.

The sum over rows of weight times log joint depends on a table entry through the families that are wholly observed, and
through messages. Rows share messages, so each one is gone through once: the rows' weights on it are added up first.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.layout import CSTRIDE, HEAD, KIND, SCOPE, VSTRIDE, Floats, Ints, Memory, Plan
from marginbayes.kernels.messages import SAFE_LOG
from marginbayes.kernels.summation import locate, log_value

__all__ = ["add_derivatives"]


@njit(inline="always", error_model="numpy")
def _observed_families(row: NDArray[np.int32], weight: Floats, plan: Plan, slope: Floats) -> None:
    """Add the weights of a row to the entries of its families without a missing member."""
    for f in range(len(plan.base)):
        at, known = plan.base[f], True
        for m in range(plan.member_at[f], plan.member_at[f + 1]):
            v = plan.member[m]
            known = known and row[v] < plan.cards[v]
            at += plan.stride[m] * row[v]
        for c in range(len(weight) if known else 0):
            slope[at + c * plan.tstride[f]] += weight[c]


@njit(inline="always", error_model="numpy")
def _read_tape(e: int, tape: Ints, tape_at: Ints, used: Ints, scope: Ints) -> tuple[int, int, int]:
    """Of what message e was made: the summed variable, its factors in `used`, its variables in `scope`."""
    here = tape_at[e]
    v, n_used, n_scope = tape[here], tape[here + 1], tape[here + 2]
    here += HEAD
    for j in range(n_scope):
        scope[j] = tape[here + j]
    here += n_scope
    for k in range(n_used):
        for j in range(SCOPE + n_scope):
            used[k, j] = tape[here + j]
        here += SCOPE + n_scope
    return v, n_used, n_scope


@njit(inline="always", error_model="numpy")
def _share_out(
    card: int, n_used: int, used: Ints, at: Ints, here: int, holds_logs: bool, plain: bool, levels: int, logs: Floats,
    values: Floats, slope: Floats,
) -> None:  # fmt: skip
    """Hand the weight on one cell of a message down to the factors it was made of."""
    for c in range(levels):
        if slope[here + c] == 0.0:
            continue
        whole = values[here + c]
        if plain and holds_logs:
            whole = math.exp(whole)
        for x in range(card):
            part = 1.0 if plain else 0.0
            for k in range(n_used):
                position = at[k] + x * used[k, VSTRIDE] + c * used[k, CSTRIDE]
                if plain:
                    part *= values[position]
                else:
                    part += log_value(used[k, KIND], position, logs, values)
            if plain:
                share = slope[here + c] * part / whole if part > 0.0 else 0.0
            else:
                share = slope[here + c] * math.exp(part - whole) if part > -np.inf else 0.0
            for k in range(n_used):
                slope[at[k] + x * used[k, VSTRIDE] + c * used[k, CSTRIDE]] += share


@njit(cache=True, nogil=True, error_model="numpy")
def add_derivatives(
    rows: NDArray[np.int32], first: int, last: int, weights: Floats, plan: Plan, memory: Memory, finals: Ints,
    final_at: Ints, slope: Floats,
) -> None:  # fmt: skip
    """Add the derivatives of sum_n sum_c weights[n, c] joint[n, c] over the rows first .. last - 1, which are expected
    counts, to `slope`: that of the tables in front, and behind them what the messages in memory had, which start at 0.
    """
    levels = weights.shape[1]
    for n in range(first, last):
        _observed_families(rows[n], weights[n], plan, slope)
        for k in range(final_at[n], final_at[n + 1]):
            for c in range(levels):
                slope[finals[k] + c] += weights[n, c]
    for e in range(memory.size[0] - 1, -1, -1):
        v, n_used, n_scope = _read_tape(e, memory.tape, memory.tape_at, memory.used, memory.scope)
        cells: Any = np.int64(1)
        for j in range(n_scope):
            cells *= plan.cards[memory.scope[j]]
        plain = memory.bounds[e] > SAFE_LOG
        for cell in range(cells):
            locate(cell, n_used, n_scope, memory.used, memory.scope, plan.cards, memory.at)
            here = memory.room[e] + cell * levels
            _share_out(
                plan.cards[v], n_used, memory.used, memory.at, here, n_scope == 0, plain, levels, plan.logs,
                memory.values, slope,
            )  # fmt: skip
