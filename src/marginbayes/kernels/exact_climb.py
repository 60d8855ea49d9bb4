"""Climbing among structures: one feature after the other takes its best option while that raises the soft margin."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_margins import Tables, add_option, option_losses, sample_losses, soft_margin

__all__ = ["climb", "drawn", "free_options", "iterated_search", "kick"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def drawn(seed: Ints, below: int) -> int:
    """A random number from 0 to below - 1; moves the seed (one number) on."""
    # Knuth's linear congruential generator, whose upper bits are good.
    seed[0] = seed[0] * 6364136223846793005 + 1442695040888963407
    return int(((seed[0] >> 33) & 0x7FFFFFFF) % below)


@njit(cache=True, nogil=True)
def _shuffled(seed: Ints, n: int) -> Ints:
    order = np.arange(n)
    for i in range(n - 1, 0, -1):
        j = drawn(seed, i + 1)
        order[i], order[j] = order[j], order[i]
    return order


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
def _shake(allowed: Flags, choice: Ints, movable: Ints, most: int, seed: Ints) -> bool:
    """Let some features, at most so many, take any of their options; whether what comes of it is allowed."""
    order = _shuffled(seed, len(movable))
    for k in range(min(most, len(movable))):
        i = movable[order[k]]
        options = np.flatnonzero(allowed[i])
        kick(allowed, choice, i, options[drawn(seed, len(options))])
    fine = True
    for i in range(len(choice)):
        fine = fine and bool(allowed[i, choice[i]])
    return fine


@njit(cache=True, nogil=True)
def climb(
    data: Tables, base: Floats, gamma: float, allowed: Flags, choice: Ints, seed: Ints, tolerance: float, stop: Ints
) -> None:
    """Let one feature after the other take its best option, in place, until none of them changes or ``stop[0]`` is set.

    `base` holds the scores by the class alone; features take their turns in an order that the seed draws.
    """
    state = base.copy()
    for i in range(len(choice)):
        add_option(data, state, i, choice[i], 1.0)
    losses = sample_losses(data, state, gamma)
    total, order, still, turn = losses.sum(), np.argsort(-losses), 0, len(choice)
    turns = np.arange(len(choice))
    while still < len(choice) and not stop[0]:
        if turn == len(choice):
            turns, turn = _shuffled(seed, len(choice)), 0
        i = turns[turn]
        turn += 1
        still += 1
        free = free_options(allowed, choice, i)
        old = choice[i]
        free[old] = False
        add_option(data, state, i, old, -1.0)
        found = option_losses(data, state, order, gamma, i, free, total - tolerance)
        best = np.argmin(found)
        if found[best] < total - tolerance:
            choice[i], still = best, 0
        add_option(data, state, i, choice[i], 1.0)
        if choice[i] != old:
            losses = sample_losses(data, state, gamma)
            total, order = losses.sum(), np.argsort(-losses)


@njit(cache=True, nogil=True)
def iterated_search(
    data: Tables,
    base: Floats,
    state: Floats,
    gamma: float,
    allowed: Flags,
    choice: Ints,
    seed: Ints,
    tolerance: float,
    rounds: int,
    patience: int,
    shaken: int,
    stop: Ints,
) -> float:
    """Climb, shake a few features of the best structure, climb, keep what is no worse, until nothing better comes.

    `choice` is the structure to begin with, and becomes the best; its soft margin comes back. It ends after so many
    rounds, so many in vain, or when ``stop[0]`` is set. `base` and `state` are margins and scores by the class alone.
    """
    climb(data, state, gamma, allowed, choice, seed, tolerance, stop)
    best, failed = soft_margin(data, gamma, base, choice), 0
    movable = np.flatnonzero(np.array([own.sum() > 1 for own in allowed]))
    for _ in range(rounds):
        if failed >= patience or len(movable) == 0 or stop[0]:
            break
        failed += 1
        trial = choice.copy()
        if not _shake(allowed, trial, movable, shaken, seed):
            continue
        climb(data, state, gamma, allowed, trial, seed, tolerance, stop)
        found = soft_margin(data, gamma, base, trial)
        if found > best + 1e-9 * max(1.0, abs(best)):
            failed = 0
        if found >= best:
            best, choice[:] = found, trial
    return float(best)
