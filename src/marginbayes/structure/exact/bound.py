"""The bound: for any multipliers, gamma * (weight - their sum) + their margins at the best branching.

For every structure x, every sample of weight w and any multipliers on its rows that are not negative and sum to at most
w, w * min(gamma, margins) <= gamma * (w - sum) + sum of multiplier * margin. Summed over the samples the right side is
linear in x, and its maximum over acyclic structures is a maximum branching. No tolerance of any solver enters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.instance import Instance

__all__ = [
    "Evaluated",
    "Multipliers",
    "branch_bound",
    "evaluate",
    "exact_multipliers",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers of some margin rows, in 2^-24 of the sample's weight; all others are zero."""

    rows: NDArray[np.int32]
    shares: NDArray[np.int32]

    @classmethod
    def of(cls, rows: Ints, shares: Ints) -> Multipliers:
        """Multipliers of these rows, put in ascending order."""
        order = np.argsort(rows, kind="stable")
        return cls(rows[order].astype(np.int32), shares[order].astype(np.int32))


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The linear function that multipliers make of the objective: a constant and a value for each option."""

    constant: float
    values: Floats  # [feature, option]


def exact_multipliers(instance: Instance, top: int, choice: Ints) -> Multipliers:
    """Multipliers whose bound, where this is the only structure left, is its objective."""
    from marginbayes.kernels.exact_margins import row_margins
    from marginbayes.kernels.exact_space import WHOLE

    every = np.arange(len(choice))
    margins = row_margins(instance.data, instance.base(top), every, choice, np.ones(len(choice)))
    lowest = (
        margins.reshape(-1, instance.rivals).argmin(axis=1) + np.arange(len(instance.samples.weights)) * instance.rivals
    )
    rows = lowest[margins[lowest] < instance.gamma]
    return Multipliers.of(rows, np.full(len(rows), WHOLE))


def evaluate(instance: Instance, top: int, multipliers: Multipliers) -> Evaluated:
    """What the multipliers make of every option; the constant is padded by all that rounding can lose."""
    from marginbayes.kernels import exact_space as kernels

    values = np.zeros(instance.allowed.shape)
    if not len(multipliers.rows):  # the first bound of all needs no memory for rows
        return Evaluated(instance.ceiling * (1.0 + len(instance.samples.weights) * EPSILON), values)
    instance.fill(multipliers.rows.astype(np.int64))
    by = kernels.Multipliers(multipliers.rows, multipliers.shares)
    return Evaluated(kernels.evaluate(instance.space, instance.base(top), by, values), values)


def branch_bound(found: Evaluated, allowed: Flags) -> float:
    """No structure with allowed options has an objective above this; minus infinity where there is no structure."""
    from marginbayes.kernels.branching import option_bound

    chosen = np.empty(len(allowed), np.int64)
    return found.constant + float(option_bound(found.values, allowed, chosen, np.empty((0, allowed.shape[1]))))
