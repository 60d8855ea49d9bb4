"""Good structures, found quickly: an iterated local search from a given one, or from naive Bayes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.instance import Instance

__all__ = ["BRIEF", "Incumbent", "objective_of", "plain_choice", "search_from"]

Ints = NDArray[np.int64]

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
    from marginbayes.kernels.exact_margins import soft_margin

    return float(soft_margin(instance.data, instance.gamma, instance.base(top), choice))


def climb_tolerance(instance: Instance) -> float:
    """Losses closer than this are equal."""
    return TOLERANCE * max(1.0, abs(instance.ceiling))


def plain_choice(instance: Instance, top: int = 0) -> Ints:
    """Some structure: the class as the only parent where that is allowed."""
    from marginbayes.kernels.branching import option_bound

    allowed = instance.root(top)
    liking = np.zeros(allowed.shape)
    liking[:, 1] = 1.0
    choice = np.empty(len(allowed), np.int64)
    if option_bound(liking, allowed, choice, np.empty((0, allowed.shape[1]))) == -np.inf:
        raise ValueError("the constraints leave no structure")
    return choice


def search_from(
    instance: Instance, top: int, choice: Ints, seed: int, stop: Ints, patience: int = PATIENT
) -> Incumbent:
    """The best structure of an iterated local search that begins here; ends when ``stop[0]`` is set."""
    from marginbayes.kernels.exact_climb import iterated_search

    allowed, choice = instance.root(top), choice.copy()
    patience = min(patience, TRIES * int((allowed.sum(axis=1) > 1).sum()))
    objective = iterated_search(
        instance.data,
        instance.base(top),
        instance.state(top),
        instance.gamma,
        allowed,
        choice,
        np.array([seed]),
        climb_tolerance(instance),
        ROUNDS,
        patience,
        SHAKEN,
        stop,
    )
    return Incumbent(top, choice, objective)
