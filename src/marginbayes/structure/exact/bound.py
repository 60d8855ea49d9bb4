"""The bound: for any multipliers, gamma * (weight - their sum) + their margins at the best branching.

For every structure x, every sample of weight w and any multipliers on its rows that are not negative and sum to at most
w, w * min(gamma, margins) <= gamma * (w - sum) + sum of multiplier * margin. Summed over the samples the right side is
linear in x, and its maximum over acyclic structures is a maximum branching. No tolerance of any solver enters.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.instance import Instance

__all__ = [
    "UNIT",
    "WHOLE",
    "Evaluated",
    "Multipliers",
    "branch_bound",
    "evaluate",
    "exact_multipliers",
    "rounded",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

EPSILON = float(np.finfo(np.float64).eps)
# Multipliers are shares of a sample's weight, in whole multiples of this.
WHOLE = 1 << 24
UNIT = 1.0 / WHOLE
# A share as near as this to nothing, or to all, becomes that.
TINY = 1e-6


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Multipliers of some margin rows, as multiples of `UNIT` of the sample's weight; all others are zero."""

    rows: NDArray[np.int32]
    shares: NDArray[np.int32]

    @classmethod
    def of(cls, rows: Ints, shares: Ints) -> Multipliers:
        """Multipliers of these rows, put in ascending order."""
        order = np.argsort(rows, kind="stable")
        return cls(rows[order].astype(np.int32), shares[order].astype(np.int32))

    @classmethod
    def parse(cls, text: str) -> Multipliers:
        """Multipliers from their `text`."""
        rows, shares = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4").reshape(2, -1)
        return cls(np.cumsum(rows, dtype=np.int32), shares.astype(np.int32))

    @cached_property
    def text(self) -> str:
        """Rows, as differences, and shares, 32 bits each, compressed."""
        both = np.concatenate([np.diff(self.rows, prepend=np.int32(0)), self.shares]).astype("<i4")
        return base64.b64encode(zlib.compress(both.tobytes())).decode("ascii")

    @property
    def bytes(self) -> int:
        """Memory in use, roughly, with the text."""
        return 2 * int(self.rows.nbytes + self.shares.nbytes) + 200

    def values(self, instance: Instance) -> Floats:
        """The multipliers themselves."""
        return np.asarray(instance.samples.weights[self.rows // instance.rivals] * (self.shares * UNIT))


@dataclass(frozen=True, eq=False)
class Evaluated:
    """The linear function that multipliers make of the objective: a constant and a value for each option."""

    constant: float
    values: Floats  # [feature, option]


def rounded(instance: Instance, rows: Ints, values: Floats) -> Multipliers:
    """Multipliers near these values, never more of a sample than there is of it."""
    sample = rows // instance.rivals
    share = np.maximum(values / instance.samples.weights[sample], 0.0)
    share /= np.maximum(1.0, np.bincount(sample, share, len(instance.samples.weights)))[sample]
    share[share < TINY] = 0.0
    share[share > 1.0 - TINY] = 1.0
    shares = np.floor(share * WHOLE).astype(np.int64)
    kept = shares > 0
    return Multipliers.of(rows[kept], shares[kept])


def exact_multipliers(instance: Instance, top: int, choice: Ints) -> Multipliers:
    """Multipliers whose bound, where this is the only structure left, is its objective."""
    from marginbayes.kernels.exact_margins import row_margins

    every = np.arange(len(choice))
    margins = row_margins(instance.data, instance.base(top), every, choice, np.ones(len(choice)))
    lowest = (
        margins.reshape(-1, instance.rivals).argmin(axis=1) + np.arange(len(instance.samples.weights)) * instance.rivals
    )
    rows = lowest[margins[lowest] < instance.gamma]
    return Multipliers.of(rows, np.full(len(rows), WHOLE))


def evaluate(instance: Instance, top: int, multipliers: Multipliers) -> Evaluated:
    """What the multipliers make of every option; the constant is padded by all that rounding can lose."""
    from marginbayes.kernels.exact_margins import weighted_rows

    rows = multipliers.rows.astype(np.int64)
    values = np.zeros(instance.n_features * instance.n_options)
    weights = multipliers.values(instance)
    if len(rows):  # the first bound of all needs no memory for rows
        weighted_rows(instance.rows(rows), rows, weights, values)
    base = instance.base(top)[multipliers.rows]
    used = float(weights.sum())
    at_most = instance.gamma * _unused(instance, multipliers)
    constant = at_most + float(base @ weights)
    size = at_most + used * (np.abs(base).max(initial=0.0) + instance.n_features * instance.largest)
    pad = EPSILON * (len(base) + instance.n_features + 16) * size
    return Evaluated(constant + pad, values.reshape(instance.n_features, instance.n_options))


def _unused(instance: Instance, multipliers: Multipliers) -> float:
    """Weight that no multiplier takes up: from whole shares, so that it is nothing where all is taken."""
    weights = instance.samples.weights
    taken = np.bincount(multipliers.rows // instance.rivals, multipliers.shares, len(weights))
    return float(weights @ ((WHOLE - taken) * UNIT))


def branch_bound(found: Evaluated, allowed: Flags) -> float:
    """No structure with allowed options has an objective above this; minus infinity where there is no structure."""
    from marginbayes.kernels.branching import option_bound

    chosen = np.empty(len(allowed), np.int64)
    return found.constant + float(option_bound(found.values, allowed, chosen, np.empty((0, allowed.shape[1]))))
