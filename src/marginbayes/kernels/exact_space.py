"""What a search for an exact margin works on: tables, rows of coefficients that are made on demand, and the bound.

For every structure, every sample of weight w and any multipliers on its rows that are not negative and sum to at most
w, w * min(gamma, margins) <= gamma * (w - sum) + sum of multiplier * margin. Summed over the samples the right side is
linear in the options, and its maximum over acyclic structures is a maximum branching. No tolerance of a solver enters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_margins import Tables, fill_rows, row_margins, weighted_rows

__all__ = [
    "UNIT",
    "WHOLE",
    "Multipliers",
    "Space",
    "evaluate",
    "fill",
    "quick_margins",
    "rounded",
    "rounding",
    "shared_margins",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Flags = NDArray[np.bool_]

EPSILON = float(np.finfo(np.float64).eps)
# Multipliers are shares of a sample's weight, in whole multiples of this.
WHOLE = 1 << 24
UNIT = 1.0 / WHOLE
# A share as near as this to nothing, or to all, becomes that.
TINY = 1e-6


class Space(NamedTuple):
    """Everything that does not change while parts are worked on, but for rows that are filled when they are needed."""

    data: Tables
    rivals: int
    gamma: float
    total: float  # weight of all samples
    largest: float  # no option adds more than this to a margin, in absolute value
    dense: Floats  # [row, feature * options + option]
    filled: Flags
    most: float  # rows that memory allows
    columns: Floats  # dense, transposed, where all of it is there from the beginning; else empty
    quick: NDArray[np.float32]  # [feature * options + option, row]: the same in short numbers, on demand, or nothing
    is_quick: Flags


class Multipliers(NamedTuple):
    """Multipliers of some margin rows, ascending, as multiples of `UNIT` of the sample's weight; others are zero."""

    rows: Shorts
    shares: Shorts


@njit(cache=True, nogil=True)
def fill(space: Space, wanted: Ints) -> bool:
    """Fill the wanted rows of the store, unless that would take more memory than is allowed; whether they are there."""
    new = wanted[~space.filled[wanted]]
    if len(new) == 0:
        return True
    if space.filled.sum() + len(new) > space.most:
        return False
    fill_rows(space.data, new, space.dense)
    space.filled[new] = True
    return True


@njit(cache=True, nogil=True)
def shared_margins(space: Space, base: Floats, shares: Floats) -> Floats:
    """Margin of every row when each option [feature, option] is taken to its share."""
    if len(space.columns):
        margins, flat = base.copy(), shares.reshape(shares.size)
        for s in range(len(flat)):
            if flat[s] > 0.0:
                column, share = space.columns[s], flat[s]
                for r in range(len(margins)):
                    margins[r] += share * column[r]
        return margins
    features, options = np.nonzero(shares)
    amounts = np.empty(len(features))
    for k in range(len(features)):
        amounts[k] = shares[features[k], options[k]]
    found: Floats = row_margins(space.data, base, features, options, amounts)
    return found


@njit(cache=True, nogil=True)
def quick_margins(space: Space, base: Floats, slots: Ints, shares: Floats, out: NDArray[np.float32]) -> None:
    """Margin of every row, to six digits, when each of these options is taken to its share."""
    none, k = np.zeros(len(base)), space.data.offset.shape[1]
    if len(space.quick) == 0:
        out[:] = row_margins(space.data, base, slots // k, slots % k, shares)
        return
    out[:] = base
    for t in range(len(slots)):
        slot, share = slots[t], np.float32(shares[t])
        if not space.is_quick[slot]:
            feature, option = np.array([slot // k]), np.array([slot % k])
            space.quick[slot] = row_margins(space.data, none, feature, option, np.ones(1))
            space.is_quick[slot] = True
        if share != 0.0:
            column = space.quick[slot]
            for r in range(len(out)):
                out[r] += share * column[r]


@njit(cache=True, nogil=True)
def evaluate(space: Space, base: Floats, by: Multipliers, values: Floats) -> float:
    """The constant of the linear function that multipliers make of the objective; `values` receives the options'.

    The constant is padded by all that rounding can lose. The rows must be there.
    """
    weights, n = space.data.weights, len(space.data.codes)
    rows, amounts, left = by.rows.astype(np.int64), np.empty(len(by.rows)), np.full(len(weights), WHOLE)
    inside, used, highest = 0.0, 0.0, 0.0
    for k in range(len(rows)):
        sample = rows[k] // space.rivals
        left[sample] -= by.shares[k]
        amounts[k] = weights[sample] * (by.shares[k] * UNIT)
        inside += amounts[k] * base[rows[k]]
        used += amounts[k]
        highest = max(highest, abs(base[rows[k]]))
    # In whole shares, so that nothing is left where all is taken.
    at_most = space.gamma * (weights * (left * UNIT)).sum()
    values[:] = 0.0
    weighted_rows(space.dense, rows, amounts, values.reshape(values.size))
    size = at_most + used * (highest + n * space.largest)
    return float(at_most + inside + EPSILON * (len(by.rows) + len(weights) + n + 16) * size)


@njit(cache=True, nogil=True)
def rounding(space: Space, base: Floats) -> float:
    """All that rounding can take from the soft margin of a structure."""
    n, highest = len(space.data.codes), np.abs(base).max()
    return float(EPSILON * (len(base) + n + 16) * space.total * (space.gamma + highest + n * space.largest))


@njit(cache=True, nogil=True)
def rounded(space: Space, rows: Ints, amounts: Floats, alone: Ints) -> Multipliers:
    """Multipliers near these amounts, never more of a sample than there is of it; rows `alone` have all of theirs."""
    share, sums = np.zeros(len(space.filled)), np.zeros(len(space.data.weights))
    for k in range(len(rows)):
        share[rows[k]] = max(amounts[k] / space.data.weights[rows[k] // space.rivals], 0.0)
        sums[rows[k] // space.rivals] += share[rows[k]]
    share[alone] = 1.0
    kept = np.flatnonzero(share)
    shares, count = np.empty(len(kept), np.int32), 0
    for row in kept:
        part = share[row] / max(1.0, sums[row // space.rivals])
        part = 0.0 if part < TINY else 1.0 if part > 1.0 - TINY else part
        if int(part * WHOLE) > 0:
            kept[count], shares[count] = row, int(part * WHOLE)
            count += 1
    return Multipliers(kept[:count].astype(np.int32), shares[:count].copy())
