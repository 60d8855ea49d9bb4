"""Where a simplex method begins: at the vertex where the part above ended, or at one near some multipliers.

A vertex takes much memory, but it follows from few numbers: its tight options, its free rows and their references. The
references of all other samples follow from the multipliers of the part above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_lines import add_lines, along_lines
from marginbayes.kernels.exact_space import WHOLE, Multipliers, Space, fill, quick_margins
from marginbayes.kernels.exact_vertex import CLUSTER, Sheet, Vertex, invert, line_of, sample_of

__all__ = ["Basis", "basis_of", "begin", "first_samples"]

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Flags = NDArray[np.bool_]

# Relative to the greatest soft margin: a vertex that is found again may be so far beyond its borders.
BEYOND = 1e-9
# At most so many samples are looked at first, whose lowest row is so near to being another one.
MANY, AWAY = 120, 1.0


class Basis(NamedTuple):
    """What a vertex follows from; all are empty where nothing is known of it."""

    tight: Shorts  # slot of each tight option
    free: Shorts  # free rows; clusters, in the order in which they are handed on, behind all rows
    references: Shorts  # of the samples of the free rows


@njit(cache=True, nogil=True)
def basis_of(space: Space, sheet: Sheet, at: Vertex, n: int, places: Ints) -> Basis:
    """What a vertex follows from; `places` are those of the sheet's clusters among the ones that are handed on."""
    d = at.size[0]
    free, references = np.zeros(max(d - n, 0), np.int32), np.zeros(max(d - n, 0), np.int32)
    for z in range(n, d):
        row = at.row[z]
        if row >= CLUSTER:
            free[z - n] = len(space.filled) + places[row - CLUSTER]
        else:
            free[z - n], references[z - n] = row, at.reference[sample_of(space.rivals, row)]
    return Basis(sheet.slots[at.tight[:d]].astype(np.int32), free, references)


@njit(cache=True, nogil=True)
def begin(space: Space, sheet: Sheet, n: int, given: Multipliers, known: Basis, allowed: Flags, at: Vertex) -> bool:
    """The vertex of this basis, or one without free rows near these multipliers; whether memory is enough.

    Without a basis the reference of a sample is its row with the greatest multiplier, or the constant where that is
    greater.
    """
    largest = np.full(len(space.data.weights), WHOLE)
    at.reference[:] = -1 - np.arange(len(largest))
    for k in range(len(given.rows)):
        largest[given.rows[k] // space.rivals] -= given.shares[k]
    for k in range(len(given.rows)):
        m = given.rows[k] // space.rivals
        if given.shares[k] > largest[m]:
            largest[m], at.reference[m] = given.shares[k], given.rows[k]
    for z in range(len(known.free)):
        if known.free[z] < len(space.filled):
            at.reference[sample_of(space.rivals, known.free[z])] = known.references[z]
    rows: Ints = np.concatenate((at.reference, known.free.astype(np.int64)))
    if not fill(space, rows[(rows >= 0) & (rows < len(space.filled))]):
        return False
    _set_references(space, sheet, at)
    if len(known.tight) > n and _found_again(space, sheet, n, known, at):
        return True
    _set_references(space, sheet, at)
    _without_free_rows(sheet, n, allowed, at)
    return True


@njit(cache=True, nogil=True)
def _set_references(space: Space, sheet: Sheet, at: Vertex) -> None:
    """Values of all columns and the constant, every sample having no row but its reference; nothing is tight."""
    weights, slots = space.data.weights, sheet.slots
    at.values[:], at.used[:], at.is_tight[:], constant = sheet.noise, 0.0, False, 0.0
    for m in range(len(weights)):
        row = at.reference[m]
        constant += weights[m] * (sheet.base[row] if row >= 0 else space.gamma)
        if row >= 0:
            dense, weight = space.dense[row], weights[m]
            for c in range(len(slots)):
                at.values[c] += weight * dense[slots[c]]
    at.objective[0] = constant


@njit(cache=True, nogil=True)
def _without_free_rows(sheet: Sheet, n: int, allowed: Flags, at: Vertex) -> None:
    at.size[0], at.size[1], at.tight[:n], at.cost[:n] = n, 0, -1, 1.0
    for c in range(len(sheet.slots)):
        i = sheet.feature[c]
        if allowed[i, sheet.option[c]] and (at.tight[i] < 0 or at.values[c] > at.values[at.tight[i]]):
            at.tight[i] = c
    for i in range(n):
        at.inverse[i, :n] = 0.0
        at.inverse[i, i] = 1.0
        at.is_tight[at.tight[i]] = True
        at.amount[i] = at.values[at.tight[i]]
    at.objective[0] += at.amount[:n].sum()


@njit(cache=True, nogil=True)
def _found_again(space: Space, sheet: Sheet, n: int, known: Basis, at: Vertex) -> bool:
    """Compute a vertex from its basis; whether it is one."""
    d, least = len(known.tight), -BEYOND * space.gamma * space.total
    if d > len(at.tight):
        return False
    at.size[0], at.tight[:d], at.cost[:n] = d, np.searchsorted(sheet.slots, known.tight), 1.0
    at.is_tight[at.tight[:d]] = True
    for z in range(n, d):
        row = int(known.free[z - n])
        if row >= len(space.filled):
            row += CLUSTER - len(space.filled)
            if row - CLUSTER >= sheet.number[0]:
                return False
        at.row[z] = row
        at.cost[z] = line_of(space, sheet, at, row, at.lines[z - n])
    if not invert(at, sheet, n):
        return False
    along_lines(at.inverse, at.values[at.tight[:d]], d, at.amount)
    add_lines(at.lines, np.arange(d - n), at.amount[n:], d - n, len(at.values), at.values)
    at.objective[0] += (at.cost[:d] * at.amount[:d]).sum()
    fine = at.amount[n:d].min() >= least
    for z in range(n, d):
        if at.row[z] < CLUSTER:
            m = sample_of(space.rivals, at.row[z])
            at.used[m] += at.amount[z]
            fine &= at.used[m] <= space.data.weights[m] - least
    for c in range(len(at.values)):
        fine &= at.amount[sheet.feature[c]] - at.values[c] >= least
    return bool(fine)


@njit(cache=True, nogil=True)
def first_samples(space: Space, sheet: Sheet, n: int, given: Multipliers, at: Vertex) -> Ints:
    """Samples to look at first: those with free rows, and those whose lowest row is the next to be another one.

    Where no row is free, those whose multiplier is divided.
    """
    d = at.size[0]
    if d == n:
        found: Ints = given.rows[given.shares < WHOLE].astype(np.int64) // space.rivals
        return found
    shares, margins = np.zeros(d), np.empty(len(space.filled), np.float32)
    add_lines(at.inverse, np.arange(d), at.cost, d, d, shares)
    quick_margins(space, sheet.base, sheet.slots[at.tight[:d]], shares, margins)
    left = np.empty(len(at.reference))
    for m in range(len(left)):
        reference = at.reference[m]
        own = float(margins[reference]) if reference >= 0 else space.gamma
        other = space.gamma if reference >= 0 else np.inf
        for r in range(m * space.rivals, (m + 1) * space.rivals):
            if r != reference:
                other = min(other, float(margins[r]))
        left[m] = other - own
    for z in range(n, d):
        if at.row[z] < CLUSTER:
            left[sample_of(space.rivals, at.row[z])] = -np.inf
    order = np.argsort(left)[:MANY]
    return order[left[order] < AWAY]
