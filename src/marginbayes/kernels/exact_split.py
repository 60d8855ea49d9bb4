"""Which feature's options to divide by: what a division is expected to take from the relaxation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["division_by_options"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

AXIS_STEPS = 12


@njit(cache=True, nogil=True)
def _positions(points: Floats, shares: Floats, weights: Floats) -> Floats:
    """Place of each option (a column of points) on the axis along which the options in use differ most."""
    n, k = points.shape
    centred = points - np.dot(points, shares).reshape(n, 1)
    gram = np.dot(centred.T, weights.reshape(n, 1) * centred)
    scaled = np.empty((k, k))
    for a in range(k):
        for b in range(k):
            scaled[a, b] = np.sqrt(shares[a] * shares[b]) * gram[a, b]
    # The longest column is a start that is never orthogonal to everything.
    longest = 0
    for a in range(k):
        if scaled[a, a] > scaled[longest, longest]:
            longest = a
    vector, image = scaled[longest].copy(), np.empty(k)
    for _ in range(AXIS_STEPS):
        size = np.sqrt((vector * vector).sum())
        if size == 0.0:
            break
        for a in range(k):  # of few options: a matrix library would take longer to be called
            image[a] = 0.0
            for b in range(k):
                image[a] += scaled[a, b] * vector[b]
        vector[:] = image / size
    places: Floats = np.dot(gram, np.sqrt(shares) * vector)
    return places


@njit(cache=True, nogil=True)
def _hinges(margins: Floats, start: Ints, weight: Floats, gamma: float) -> float:
    total = 0.0
    for g in range(len(weight)):
        low = gamma
        for r in range(start[g], start[g + 1]):
            low = min(low, margins[r])
        total += weight[g] * low
    return total


@njit(cache=True, nogil=True)
def division_by_options(
    dense: Floats,
    rows: Ints,
    start: Ints,
    weight: Floats,
    gamma: float,
    margins: Floats,
    shares: Floats,
    allowed: Flags,
    right: Flags,
) -> tuple[int, float]:
    """The feature to divide and what its division takes, in the mean, from the soft margin; -1 where none is left.

    `margins` belong to the shares, `rows` to the open groups. ``right[option]`` receives the options of one side.
    Dividing feature i moves its shares to their means on either side; the hinges being concave, their mean falls
    (Jensen), and the more it does, the more both sides' bounds will.
    """
    n_options, best, feature = shares.shape[1], -1.0, -1
    sample_weight = np.empty(len(rows))
    for g in range(len(weight)):
        for r in range(start[g], start[g + 1]):
            sample_weight[r] = weight[g]
    before = _hinges(margins, start, weight, gamma)
    for i in range(len(shares)):
        options = np.flatnonzero(allowed[i])
        own = shares[i][options]
        if len(options) < 2 or own.max() > 1.0 - 1e-6:
            continue
        points = np.empty((len(rows), len(options)))
        for k in range(len(rows)):
            for c in range(len(options)):
                points[k, c] = dense[rows[k], i * n_options + options[c]]
        at = _positions(points, own, sample_weight)
        side = (at > 0.0).astype(np.float64) * own
        part = side.sum()
        if part <= 1e-9 or part >= 1.0 - 1e-9:
            continue
        mean, up = np.dot(points, own), np.dot(points, side / part)
        down = (mean - part * up) / (1.0 - part)
        fall = before - part * _hinges(margins + up - mean, start, weight, gamma)
        fall -= (1.0 - part) * _hinges(margins + down - mean, start, weight, gamma)
        if fall > best:
            best, feature = fall, i
            right[:] = False
            for c in range(len(options)):
                right[options[c]] = at[c] > 0.0
    return feature, best
