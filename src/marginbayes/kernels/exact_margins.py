"""Margins of samples under every choice of parents: tables, rows of coefficients, scores of structures, and a climb.

Option 0 of a feature is no parent, option 1 the class, option 2 + j the class and feature j. The log tables of all
options stand in one flat array, ``tables[(offset[i, option] + cell) * n_classes + class]``, the cell being the code of
the feature, or code_i * (levels_j + 1) + code_j. A missing feature, whose code is the number of its levels, adds
nothing; a missing parent is summed over. For the binary margin the tables hold the log-ratio of a class against all
others. Option 0 adds nothing and has no table.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = [
    "Tables",
    "add_option",
    "fill_rows",
    "fill_tables",
    "gather",
    "hinges",
    "near_hinge",
    "option_losses",
    "row_margins",
    "sample_losses",
    "soft_margin",
    "weighted_rows",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]


class Tables(NamedTuple):
    """Codes of the features (from 0), labels, weights, and the log tables of all options."""

    codes: Codes  # [feature, sample]
    labels: Ints
    weights: Floats
    levels: Ints  # [feature]
    n_classes: int
    binary: bool
    offset: Ints  # [feature, option], -1 for none
    tables: Floats


@njit(cache=True, nogil=True)
def fill_tables(data: Tables, amount: float) -> None:
    """Compute the tables of all options that have an offset, with this much smoothing in every cell."""
    classes = data.n_classes
    for i in range(len(data.codes)):
        for o in range(1, data.offset.shape[1]):
            if data.offset[i, o] < 0:
                continue
            radix = data.levels[o - 2] + 1 if o > 1 else 1
            counts = np.zeros((data.levels[i] + 1, radix, classes))
            for m in range(len(data.labels)):
                counts[data.codes[i, m], data.codes[o - 2, m] if o > 1 else 0, data.labels[m]] += data.weights[m]
            if o > 1:
                counts[:, radix - 1] = counts.sum(axis=1)
            first = data.offset[i, o] * classes
            out = data.tables[first : first + counts.size].reshape(counts.shape)
            _log_shares(counts, amount, 1.0, out)
            if data.binary:
                total = counts.sum(axis=2)
                for c in range(classes):
                    counts[:, :, c] = np.maximum(total - counts[:, :, c], 0.0)
                _log_shares(counts, amount, -1.0, out)


@njit(cache=True, nogil=True)
def _log_shares(counts: Floats, amount: float, sign: float, out: Floats) -> None:
    """Add the log of the smoothed shares of the child's levels, the first axis, times the sign."""
    levels = len(counts) - 1
    for h in range(counts.shape[1]):
        for c in range(counts.shape[2]):
            total = amount * levels
            for x in range(levels):
                total += counts[x, h, c]
            for x in range(levels):
                out[x, h, c] += sign * math.log((counts[x, h, c] + amount) / total)


@njit(inline="always")
def _place(data: Tables, m: int, i: int, o: int) -> int:
    """Where the entries of a sample's cell begin."""
    cell = data.codes[i, m]
    if o > 1:
        cell = cell * (data.levels[o - 2] + 1) + data.codes[o - 2, m]
    return int((data.offset[i, o] + cell) * data.n_classes)


@njit(inline="always")
def _rival(data: Tables, row: int) -> tuple[int, int]:
    """Sample and rival class of a margin row; of a binary margin, the sample and its own class."""
    if data.binary:
        return row, data.labels[row]
    m, t = row // (data.n_classes - 1), row % (data.n_classes - 1)
    return m, t + (t >= data.labels[m])


@njit(cache=True, nogil=True)
def fill_rows(data: Tables, wanted: Ints, dense: Floats) -> None:
    """dense[row, feature * options + option] for the wanted rows: what each option adds to the margin."""
    n_options = data.offset.shape[1]
    for k in range(len(wanted)):
        row = wanted[k]
        m, rival = _rival(data, row)
        own = data.labels[m]
        for i in range(len(data.codes)):
            for o in range(n_options):
                value = 0.0
                if data.offset[i, o] >= 0:
                    at = _place(data, m, i, o)
                    value = data.tables[at + own]
                    if not data.binary:
                        value -= data.tables[at + rival]
                dense[row, i * n_options + o] = value


@njit(cache=True, nogil=True)
def weighted_rows(dense: Floats, rows: Ints, weights: Floats, out: Floats) -> None:
    """Add the weighted sum of these rows to `out`."""
    for k in range(len(rows)):
        line, w = dense[rows[k]], weights[k]
        for s in range(len(out)):
            out[s] += w * line[s]


@njit(cache=True, nogil=True)
def row_margins(data: Tables, base: Floats, features: Ints, options: Ints, shares: Floats) -> Floats:
    """Margin of every row when feature ``features[k]`` takes option ``options[k]`` to this share."""
    state = np.zeros((len(data.labels), 1 if data.binary else data.n_classes))
    for k in range(len(features)):
        add_option(data, state, features[k], options[k], shares[k])
    if data.binary:
        return base + state[:, 0]
    out, rivals = base.copy(), data.n_classes - 1
    for m in range(len(data.labels)):
        own = data.labels[m]
        for t in range(rivals):
            out[m * rivals + t] += state[m, own] - state[m, t + (t >= own)]
    return out


@njit(cache=True, nogil=True)
def hinges(weights: Floats, rivals: int, gamma: float, margins: Floats) -> float:
    """Sum over the samples of weight times the least margin of its rows, or gamma where that is less."""
    total = 0.0
    for m in range(len(weights)):
        low = gamma
        for r in range(m * rivals, (m + 1) * rivals):
            low = min(low, margins[r])
        total += weights[m] * low
    return total


@njit(cache=True, nogil=True)
def soft_margin(data: Tables, gamma: float, base: Floats, choice: Ints) -> float:
    """Soft margin of a structure, from the margins of all rows."""
    n, rivals = len(choice), len(base) // max(1, len(data.labels))
    return float(hinges(data.weights, rivals, gamma, row_margins(data, base, np.arange(n), choice, np.ones(n))))


@njit(cache=True, nogil=True)
def add_option(data: Tables, state: Floats, i: int, o: int, share: float) -> None:
    """Add so much of what an option gives to the scores of all classes (binary: to the margin) of every sample."""
    if o == 0:
        return
    own, first, classes = data.codes[i], data.offset[i, o], data.n_classes
    parent, radix = (data.codes[o - 2], data.levels[o - 2] + 1) if o > 1 else (own, 1)
    for m in range(len(data.labels)):
        cell = own[m] * radix + parent[m] if o > 1 else own[m]
        at = (first + cell) * classes
        if data.binary:
            state[m, 0] += share * data.tables[at + data.labels[m]]
        else:
            for c in range(classes):
                state[m, c] += share * data.tables[at + c]


@njit(inline="always")
def _margin(data: Tables, state: Floats, m: int, at: int) -> float:
    """Margin of a sample whose state is joined by the table entries from here on; by none where `at` is negative."""
    own = data.labels[m]
    if data.binary:
        return float(state[m, 0] + (data.tables[at + own] if at >= 0 else 0.0))
    rival = -np.inf
    for c in range(data.n_classes):
        if c != own:
            rival = max(rival, state[m, c] + (data.tables[at + c] if at >= 0 else 0.0))
    return float(state[m, own] + (data.tables[at + own] if at >= 0 else 0.0) - rival)


@njit(cache=True, nogil=True)
def sample_losses(data: Tables, state: Floats, gamma: float) -> Floats:
    """How much the margin of every sample lacks of gamma, times its weight."""
    out = np.zeros(len(data.labels))
    for m in range(len(out)):
        out[m] = data.weights[m] * max(0.0, gamma - _margin(data, state, m, -1))
    return out


@njit(cache=True, nogil=True)
def option_losses(data: Tables, state: Floats, order: Ints, gamma: float, i: int, free: Flags, limit: float) -> Floats:
    """How much the margins lack of gamma, in all, with each free option of a feature; infinite above the limit.

    `state` is that of all other features; samples are visited in this order, those that lack most first.
    """
    out, own, classes = np.full(len(free), np.inf), data.codes[i], data.n_classes
    for o in range(len(free)):
        if not free[o]:
            continue
        first, (parent, radix) = data.offset[i, o], (data.codes[o - 2], data.levels[o - 2] + 1) if o > 1 else (own, 1)
        total = 0.0
        for k in range(len(order)):
            m = order[k]
            cell = own[m] * radix + parent[m] if o > 1 else own[m]
            total += data.weights[m] * max(0.0, gamma - _margin(data, state, m, (first + cell) * classes if o else -1))
            if total > limit:
                break
        else:
            out[o] = total
            limit = min(limit, total)
    return out


@njit(cache=True, nogil=True)
def near_hinge(margins: Floats, rivals: int, gamma: float, band: float, firm: Flags) -> tuple[Ints, Ints, Ints]:
    """Rows whose multiplier is open, the number of them of each sample, and rows that carry all of their sample.

    A sample whose least margin lies above gamma by more than the band has none; one that lies below by more carries
    all its weight on that row, unless other rows come within the band of it. Rows that are `firm` are open anyway.
    """
    n = len(margins) // rivals
    is_open, counts, alone = np.zeros(len(margins), np.bool_), np.zeros(n, np.int64), np.full(n, -1)
    for m in range(n):
        first, last = m * rivals, (m + 1) * rivals
        low = first
        for r in range(first + 1, last):
            if margins[r] < margins[low]:
                low = r
        limit = min(margins[low], gamma) + band
        for r in range(first, last):
            if firm[r] or margins[r] < limit:
                is_open[r] = True
                counts[m] += 1
        if counts[m] == 1 and is_open[low] and not firm[low] and margins[low] < gamma - band:
            is_open[low], counts[m], alone[m] = False, 0, low
    return np.flatnonzero(is_open), counts, alone[alone >= 0]


@njit(cache=True, nogil=True)
def gather(dense: Floats, base: Floats, rows: Ints, slots: Ints, block: Ints, reference: Ints) -> tuple[Floats, Floats]:
    """Coefficients of the slots relative to their block's reference slot, and the margins at the references."""
    out, at = np.empty((len(rows), len(slots))), np.empty(len(rows))
    for k in range(len(rows)):
        line = dense[rows[k]]
        at[k] = base[rows[k]]
        for i in range(len(reference)):
            at[k] += line[reference[i]]
        for s in range(len(slots)):
            out[k, s] = line[slots[s]] - line[reference[block[s]]]
    return out, at
