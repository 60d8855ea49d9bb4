"""Good structures, found quickly: climbs from given choices, and iterated local search from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.instance import Instance

__all__ = ["Incumbent", "climb_from", "first_incumbent", "iterated_search", "objective_of", "plain_choice"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Rounds without success after which the first search, and a later one, give up; and the most rounds of all.
BRIEF, PATIENT, ROUNDS = 4, 60, 200
# Losses closer than this, relative to the ceiling, are equal.
TOLERANCE = 1e-11
# A search shakes this many features at most, and no more often in vain than so many times for each feature.
SHAKEN, TRIES = 3, 6


@dataclass(frozen=True, eq=False)
class Incumbent:
    """A structure: position of its class parents, option of each feature, and its soft margin."""

    top: int
    choice: Ints
    objective: float


def objective_of(instance: Instance, top: int, choice: Ints) -> float:
    """Soft margin of a structure, from the margins of all rows."""
    from marginbayes.kernels.exact_margins import row_margins

    features = np.arange(instance.n_features)
    margins = row_margins(instance.data, instance.base(top), features, choice, np.ones(len(choice)))
    lowest = margins.reshape(-1, instance.rivals).min(axis=1)
    return float(instance.samples.weights @ np.minimum(instance.gamma, lowest))


def climb_from(
    instance: Instance,
    top: int,
    allowed: Flags,
    choice: Ints,
    rng: np.random.Generator,
    in_time: Callable[[], bool] = lambda: True,
) -> Incumbent:
    """The structure in which a climb from this choice ends."""
    from marginbayes.kernels.exact_climb import climb

    choice = choice.copy()
    tolerance = TOLERANCE * max(1.0, abs(instance.ceiling))
    base, moved = instance.state(top), True
    while moved and in_time():
        order = rng.permutation(len(choice))
        moved = climb(instance.data, base, instance.gamma, allowed, choice, order, tolerance)
    return Incumbent(top, choice, objective_of(instance, top, choice))


def first_incumbent(instance: Instance, given: Any, in_time: Callable[[], bool]) -> Incumbent:
    """A structure from a brief search that begins at a given one, or at naive Bayes where that is allowed."""
    rng = np.random.default_rng(instance.seed)
    start = (0, plain_choice(instance)) if given is None else instance.choice(given)
    found = climb_from(instance, start[0], instance.root(start[0]), start[1], rng, in_time)
    return iterated_search(instance, found, rng, BRIEF, in_time)


def plain_choice(instance: Instance) -> Ints:
    """Some structure: the class as the only parent where that is allowed."""
    from marginbayes.kernels.branching import option_bound

    allowed = instance.root(0)
    liking = np.zeros(allowed.shape)
    liking[:, 1] = 1.0
    choice = np.empty(len(allowed), np.int64)
    if option_bound(liking, allowed, choice, np.empty((0, allowed.shape[1]))) == -np.inf:
        raise ValueError("the constraints leave no structure")
    return choice


def iterated_search(
    instance: Instance,
    best: Incumbent,
    rng: np.random.Generator,
    patience: int = PATIENT,
    in_time: Callable[[], bool] = lambda: True,
) -> Incumbent:
    """Shake a few features of the best structure, climb, keep what is no worse, until nothing better comes for long."""
    from marginbayes.kernels.exact_climb import kick

    allowed = instance.root(best.top)
    movable = np.flatnonzero(allowed.sum(axis=1) > 1)
    failed, patience = 0, min(patience, TRIES * len(movable))
    for _ in range(ROUNDS):
        if failed >= patience or not len(movable) or not in_time():
            break
        choice = best.choice.copy()
        for i in rng.choice(movable, min(SHAKEN, len(movable)), replace=False).tolist():
            kick(allowed, choice, i, int(rng.choice(np.flatnonzero(allowed[i]))))
        if not allowed[np.arange(len(choice)), choice].all():
            failed += 1
            continue
        found = climb_from(instance, best.top, allowed, choice, rng, in_time)
        failed = 0 if found.objective > best.objective + 1e-9 * max(1.0, abs(best.objective)) else failed + 1
        if found.objective >= best.objective:
            best = found
    return best
