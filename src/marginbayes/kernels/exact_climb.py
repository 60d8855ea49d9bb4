"""Climbing among structures: one feature after the other takes its best option while that raises the soft margin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_margins import Tables, add_option, option_losses, sample_losses

__all__ = ["climb", "free_options", "kick"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def free_options(allowed: Flags, choice: Ints, i: int) -> Flags:
    """Options of a feature that are allowed and close no cycle with the others' choices."""
    free: Flags = allowed[i].copy()
    for j in range(len(choice)):
        if free[2 + j]:
            node = j
            while node >= 0 and node != i:
                node = choice[node] - 2
            if node == i:
                free[2 + j] = False
    return free


@njit(cache=True, nogil=True)
def kick(allowed: Flags, choice: Ints, i: int, o: int) -> None:
    """Let a feature take an option; if that closes a cycle, the last of the features on it loses its parent."""
    choice[i] = o
    node = o - 2
    while node >= 0 and node != i:
        above = choice[node] - 2
        if above == i:
            choice[node] = 1 if allowed[node, 1] else 0
        node = choice[node] - 2


@njit(cache=True, nogil=True)
def climb(
    data: Tables, base: Floats, gamma: float, allowed: Flags, choice: Ints, turns: Ints, tolerance: float
) -> bool:
    """Let one feature after the other take its best option, in place; whether any of them changed.

    `turns` says which features, in order; `base` holds the scores by the class alone.
    """
    state = base.copy()
    for i in range(len(choice)):
        add_option(data, state, i, choice[i], 1.0)
    losses = sample_losses(data, state, gamma)
    total, order, moved = losses.sum(), np.argsort(-losses), False
    for i in turns:
        free = free_options(allowed, choice, i)
        old = choice[i]
        free[old] = False
        add_option(data, state, i, old, -1.0)
        found = option_losses(data, state, order, gamma, i, free, total - tolerance)
        best = np.argmin(found)
        if found[best] < total - tolerance:
            choice[i], moved = best, True
        add_option(data, state, i, choice[i], 1.0)
        if choice[i] != old:
            losses = sample_losses(data, state, gamma)
            total, order = losses.sum(), np.argsort(-losses)
    return moved
