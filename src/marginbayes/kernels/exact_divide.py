"""Which feature's options to divide a part by, from the margins of samples near their hinge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_near import Near
from marginbayes.kernels.exact_space import Space
from marginbayes.kernels.exact_vertex import Sheet

__all__ = ["divide"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

AXIS_STEPS = 12
# How near to its hinge a margin must be to matter.
BAND = 1.0


@njit(cache=True, nogil=True)
def _rows_near(space: Space, near: Near, margins: Floats, rows: Ints, starts: Ints, samples: Ints) -> int:
    """Rows that bend near their hinge, by samples; how many samples there are."""
    rivals, count, groups = space.rivals, 0, 0
    starts[0] = 0
    for p in range(near.number[0]):
        low = margins[p * rivals : (p + 1) * rivals].min()
        if low > space.gamma + BAND:
            continue
        before = count
        for r in range(p * rivals, (p + 1) * rivals):
            if margins[r] < min(low, space.gamma) + BAND:
                rows[count] = r
                count += 1
        if count == before + 1 and low < space.gamma - BAND:
            count = before
            continue
        samples[groups] = near.samples[p]
        groups += 1
        starts[groups] = count
    return groups


@njit(cache=True, nogil=True)
def _hinges(space: Space, margins: Floats, by: Floats, amount: float, starts: Ints, samples: Ints) -> float:
    """Soft margin of some samples after a change of their margins."""
    total = 0.0
    for g in range(len(samples)):
        low = space.gamma
        for r in range(starts[g], starts[g + 1]):
            low = min(low, margins[r] + amount * by[r])
        total += space.data.weights[samples[g]] * low
    return total


@njit(cache=True, nogil=True)
def _axis(points: Floats, shares: Floats, weights: Floats, out: Floats) -> None:
    """The direction, over the rows, along which options with shares (lines of points, centred) differ most."""
    k, n = points.shape
    scaled = np.empty((k, k))
    for a in range(k):
        for b in range(a + 1):
            total = 0.0
            for r in range(n):
                total += weights[r] * points[a, r] * points[b, r]
            scaled[a, b] = scaled[b, a] = np.sqrt(shares[a] * shares[b]) * total
    longest = 0
    for a in range(k):
        if scaled[a, a] > scaled[longest, longest]:
            longest = a
    vector, image = scaled[longest].copy(), np.empty(k)
    for _ in range(AXIS_STEPS):
        size = np.sqrt((vector * vector).sum())
        if size == 0.0:
            break
        for a in range(k):
            image[a] = 0.0
            for b in range(k):
                image[a] += scaled[a, b] * vector[b]
        vector[:] = image / size
    out[:] = 0.0
    for a in range(k):
        amount = np.sqrt(shares[a]) * vector[a]
        for r in range(n):
            out[r] += amount * weights[r] * points[a, r]


@njit(cache=True, nogil=True)
def divide(
    space: Space, sheet: Sheet, near: Near, all_margins: Floats, shares: Floats, allowed: Flags, inside: Flags
) -> int:
    """The feature to divide, -1 where all shares are whole; ``inside[option]`` receives the options of one side.

    Its options are parted where they differ most in what they do to margins near the hinge. Dividing it moves its
    shares to their means on either side; the hinges being concave, their mean falls (Jensen), and the feature is that
    where it falls most.
    """
    n, k = allowed.shape
    rows, starts = np.empty(near.number[0] * space.rivals, np.int64), np.empty(near.number[0] + 1, np.int64)
    samples = np.empty(near.number[0], np.int64)
    groups = _rows_near(space, near, all_margins, rows, starts, samples)
    rows, samples = rows[: starts[groups]], samples[:groups]
    margins, weights, size = all_margins[rows], np.empty(len(rows)), len(rows)
    for g in range(groups):
        weights[starts[g] : starts[g + 1]] = space.data.weights[samples[g]]
    zero, mean, axis, up = np.zeros(size), np.empty(size), np.empty(size), np.empty(size)
    before, best, feature = _hinges(space, margins, zero, 0.0, starts, samples), -1.0, -1
    taken = np.empty(k, np.int64)
    for i in range(n):
        first, last = sheet.first[i], sheet.first[i + 1]
        count, mean[:] = 0, 0.0
        for c in range(first, last):
            share = shares[i, sheet.option[c]]
            if allowed[i, sheet.option[c]] and share > 1e-9:
                taken[count] = c
                count += 1
                column = near.columns[c]
                for r in range(size):
                    mean[r] += share * column[rows[r]]
        if count > 1 and shares[i].max() <= 1.0 - 1e-6:
            points, own = np.empty((count, size)), np.empty(count)
            for a in range(count):
                column, own[a] = near.columns[taken[a]], shares[i, sheet.option[taken[a]]]
                for r in range(size):
                    points[a, r] = column[rows[r]] - mean[r]
            _axis(points, own, weights, axis)
            up[:], part = 0.0, 0.0
            for a in range(count):
                at = 0.0
                for r in range(size):
                    at += axis[r] * points[a, r]
                if at > 0.0:
                    part += own[a]
                    up += own[a] * points[a]
            if 1e-9 < part < 1.0 - 1e-9:
                fall = before - part * _hinges(space, margins, up, 1.0 / part, starts, samples)
                fall -= (1.0 - part) * _hinges(space, margins, up, -1.0 / (1.0 - part), starts, samples)
                if fall > best:
                    best, feature = fall, i
                    inside[:] = False
                    for c in range(first, last):
                        column, at = near.columns[c], 0.0
                        for r in range(size):
                            at += axis[r] * (column[rows[r]] - mean[r])
                        inside[sheet.option[c]] = at > 0.0 and allowed[i, sheet.option[c]]
    return feature
