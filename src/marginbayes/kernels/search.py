"""Scoring candidate parents of one feature by what they do to the classification of every row.

The state of a search is one vector for each row: log P(class, row) for every class, or, for the binary margin, the one
log-ratio of the row's own class against all others. A family adds one entry of its table to it, so a candidate costs
one pass over the rows to count and one to score, of which little is left:

- every score is turned into a loss that is never negative. Rows come in the order of their *lead*, by how much the best
  other class is ahead of their own, and a candidate is left as soon as its loss exceeds the limit;
- a row whose lead is further below zero than the candidate's table could lift it has no loss, and looks at one or two
  entries of the table instead of all classes. Once this holds for all rows that follow, the candidate is done.

Tables are laid out child, parents, class. A member has one level more where a cell of it is missing: a missing child
adds nothing, a missing parent is summed over.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["add_family", "doubtful_first", "leads", "losses", "score_candidates", "table_of"]

Ints = NDArray[np.int64]
Cells = NDArray[np.uint32]
Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
Floats = NDArray[np.float64]

# Scores, each as a loss: an error, minus the log posterior, how much the margin lacks; the last for the binary margin.
RATE, LIKELIHOOD, MARGIN, BINARY = 0, 1, 2, 3
# Smoothing: an amount for every cell, a floor under zero probabilities, or an amount that all cells share.
ADD, FLOOR, SPREAD = 0, 1, 2
# The log of an impossible event: finite, so that it can be taken away again, and beyond any sum of possible ones.
LOG_ZERO = -1e5
# Log joints that differ by less are equal but for rounding.
TIE = 1e-9
# Leads are sorted in so many steps; no table turns those beyond these bounds.
STEPS, HIGHEST, LOWEST = 512, 15.0, -30.0


@njit(inline="always")
def _rate_loss(row: Floats, label: int) -> float:
    for c in range(len(row)):
        if row[c] > row[label] + TIE or (c < label and row[c] > row[label] - TIE):
            return 1.0
    return 0.0


@njit(inline="always")
def _likelihood_loss(row: Floats, label: int) -> float:
    top = row[0]
    for c in range(1, len(row)):
        top = max(top, row[c])
    total = 0.0
    for c in range(len(row)):
        total += math.exp(row[c] - top)
    return float(top + math.log(total) - row[label])


@njit(inline="always")
def _margin_loss(row: Floats, label: int, gamma: float) -> float:
    rival = -np.inf
    for c in range(len(row)):
        if c != label:
            rival = max(rival, row[c])
    return float(max(0.0, gamma - (row[label] - rival)))


@njit(inline="always")
def _loss(kind: int, row: Floats, label: int, gamma: float) -> float:
    if kind == RATE:
        return float(_rate_loss(row, label))
    if kind == LIKELIHOOD:
        return float(_likelihood_loss(row, label))
    if kind == MARGIN:
        return float(_margin_loss(row, label, gamma))
    return float(max(0.0, gamma - row[0]))


@njit(cache=True, nogil=True)
def losses(kind: int, state: Floats, labels: Ints, gamma: float) -> Floats:
    """Loss of every row, before its weight."""
    out = np.empty(len(state))
    for n in range(len(state)):
        out[n] = _loss(kind, state[n], labels[n], gamma)
    return out


@njit(inline="always")
def _lead(row: Floats, label: int, binary: bool) -> tuple[float, int]:
    """By how much the best other class is ahead of the own one, and which it is."""
    if binary:
        return -row[0], label
    best, at = -np.inf, label
    for c in range(len(row)):
        if row[c] > best and c != label:
            best, at = row[c], c
    return best - row[label], at


@njit(cache=True, nogil=True)
def leads(state: Floats, labels: Ints, order: Ints, binary: bool) -> tuple[Floats, Ints, Floats]:
    """For the rows in this order: how far the best other class is ahead, which it is, the greatest lead to come."""
    lead, rival, ahead = np.empty(len(order)), np.empty(len(order), np.int64), np.empty(len(order))
    most = -np.inf
    for t in range(len(order) - 1, -1, -1):
        lead[t], rival[t] = _lead(state[order[t]], labels[order[t]], binary)
        most = max(most, lead[t])
        ahead[t] = most
    return lead, rival, ahead


@njit(cache=True, nogil=True)
def doubtful_first(state: Floats, labels: Ints, binary: bool) -> Ints:
    """The rows in the order of their leads, in steps: certainly wrong ones first, certainly right ones last."""
    place, start = np.empty(len(state), np.int64), np.zeros(STEPS + 1, np.int64)
    for n in range(len(state)):
        lead, _ = _lead(state[n], labels[n], binary)
        place[n] = int(min(max((HIGHEST - lead) / (HIGHEST - LOWEST), 0.0), 1.0) * (STEPS - 1))
        start[place[n] + 1] += 1
    for k in range(STEPS):
        start[k + 1] += start[k]
    order = np.empty(len(state), np.int64)
    for n in range(len(state)):
        order[start[place[n]]] = n
        start[place[n]] += 1
    return order


@njit(inline="always")
def _count(index: Cells, codes: Codes, radix: int, labels: Codes, weights: Floats, n_classes: int, out: Floats) -> None:
    """out[cell, class]: weight of the rows whose index is extended by one more member's code; no weights: all are one.

    Positions are unsigned: without tests for negative ones the loops take half the time.
    """
    out[:] = 0.0
    by, classes = np.uint64(radix * n_classes), np.uint64(n_classes)
    if len(weights) == 0:
        for n in range(len(index)):
            out[np.uint64(index[n]) * by + np.uint64(codes[n]) * classes + np.uint64(labels[n])] += 1.0
    for n in range(len(weights)):
        out[np.uint64(index[n]) * by + np.uint64(codes[n]) * classes + np.uint64(labels[n])] += weights[n]


@njit(inline="always")
def _sum_missing(table: Floats, outer: int, size: int, inner: int) -> None:
    """Fill the last of `size` levels, that of a missing parent, with the sum over all of them."""
    for o in range(outer):
        for i in range(inner):
            total = 0.0
            for x in range(size):
                total += table[(o * size + x) * inner + i]
            table[(o * size + size - 1) * inner + i] = total


@njit(inline="always")
def _smoothed(part: float, total: float, levels: int, smoothing: int, amount: float, zeros: float) -> float:
    """Log of a smoothed share; `zeros` is how many of the levels have none, for the floor."""
    if total + amount <= 0.0 or (smoothing == FLOOR and total <= 0.0):
        return -math.log(levels)
    if smoothing != FLOOR:
        return math.log((part + amount) / (total + amount * levels)) if part + amount > 0.0 else LOG_ZERO
    share = part / total if part > 0.0 else amount
    return math.log(share / (1.0 + zeros * amount)) if share > 0.0 else LOG_ZERO


@njit(inline="always")
def _amount(at: int, cards: Ints, sizes: Ints, n_classes: int, binary: bool, smoothing: int, amount: float) -> float:
    """The smoothing of one cell at this place of parents and class; a missing parent is none of the table."""
    if smoothing != SPREAD:
        return amount
    cells = cards[0] * (2 if binary else n_classes)
    rest = at // n_classes
    for k in range(len(sizes) - 1, 0, -1):
        if rest % sizes[k] < cards[k]:
            cells *= cards[k]
        rest //= sizes[k]
    return float(amount / cells)


@njit(inline="always")
def _fill(
    counts: Floats, at: int, step: int, levels: int, smoothing: int, amount: float, out: Floats, sign: float
) -> None:
    """Add the log of the smoothed shares of the child's levels at counts[at], counts[at + step], ... to out."""
    total, zeros = 0.0, 0.0
    for x in range(levels):
        total += counts[at + x * step]
        zeros += counts[at + x * step] <= 0.0
    nothing = _smoothed(0.0, total, levels, smoothing, amount, zeros)  # most cells of a large table are empty
    for x in range(levels):
        part = counts[at + x * step]
        value = nothing if part <= 0.0 else _smoothed(part, total, levels, smoothing, amount, zeros)
        out[at + x * step] += sign * value


@njit(cache=True, nogil=True)
def table_of(
    counts: Floats, cards: Ints, sizes: Ints, n_classes: int, binary: bool, smoothing: int, amount: float, out: Floats
) -> None:
    """Log tables from counts laid out child, parents, class; sizes are cards, and one more where a cell is missing.

    `binary` makes log P(child | parents, own class) - log P(child | parents, all other classes) of it, for each class.
    The counts are used up.
    """
    levels, step = cards[0], n_classes
    for k in range(1, len(sizes)):
        step *= sizes[k]
    outer, inner = sizes[0], step
    for k in range(1, len(sizes)):
        inner //= sizes[k]
        if sizes[k] > cards[k]:
            _sum_missing(counts, outer, sizes[k], inner)
        outer *= sizes[k]
    out[: sizes[0] * step] = 0.0
    for side in range(2 if binary else 1):
        if side == 1:
            _others(counts, n_classes)
        for at in range(step):
            own = _amount(at, cards, sizes, n_classes, binary, smoothing, amount)
            _fill(counts, at, step, levels, smoothing, own, out, 1.0 - 2.0 * side)


@njit(inline="always")
def _others(counts: Floats, n_classes: int) -> None:
    """Replace the count of each class by that of all others."""
    for start in range(0, len(counts), n_classes):
        total = 0.0
        for c in range(n_classes):
            total += counts[start + c]
        for c in range(n_classes):
            counts[start + c] = max(0.0, total - counts[start + c])


@njit(cache=True, nogil=True)
def add_family(
    state: Floats,
    index: Cells,
    cards: Ints,
    sizes: Ints,
    labels: Ints,
    weights: Floats,
    n_classes: int,
    binary: bool,
    smoothing: int,
    amount: float,
    sign: float,
) -> None:
    """Add what a family contributes to the vector of every row, times the sign, in place."""
    cells = n_classes
    for k in range(len(sizes)):
        cells *= sizes[k]
    counts, table = np.zeros(cells), np.empty(cells)
    for n in range(len(index)):
        counts[np.int64(index[n]) * n_classes + labels[n]] += weights[n]
    table_of(counts, cards, sizes, n_classes, binary, smoothing, amount, table)
    for n in range(len(index)):
        at = np.int64(index[n]) * n_classes
        if binary:
            state[n, 0] += sign * table[at + labels[n]]
        else:
            for c in range(n_classes):
                state[n, c] += sign * table[at + c]


@njit(inline="always")
def _lift(counts: Floats, table: Floats, n_classes: int, kind: int, top: Floats) -> float:
    """Greatest entry of each cell in `top` (0 if binary); returns by how much any cell lifts another class at most."""
    swing = 0.0
    for cell in range(len(table) // n_classes):
        at = cell * n_classes
        high = 0.0 if kind == BINARY else table[at]
        for c in range(0 if kind == BINARY else n_classes):
            high = max(high, table[at + c])
        top[cell] = high
        for c in range(n_classes):
            if counts[at + c] > 0.0 or kind == BINARY:  # no row of this class looks here else
                swing = max(swing, high - table[at + c])
    return swing


@njit(inline="always")
def _total_loss(
    kind: int,
    gamma: float,
    state: Floats,
    order: Ints,
    lead: Floats,
    rival: Ints,
    ahead: Floats,
    labels: Codes,
    weights: Floats,
    index: Cells,
    codes: Codes,
    radix: int,
    table: Floats,
    top: Floats,
    swing: float,
    limit: float,
    row: Floats,
) -> float:
    """Loss of all rows with this table added to their vectors, or of some rows if it already exceeds the limit."""
    n_classes, total = len(table) // len(top), 0.0
    # With this much added, a lead below zero means that there is no loss, ties included.
    reach = np.inf if kind == LIKELIHOOD else 2.0 * TIE if kind == RATE else gamma
    for t in range(len(order)):
        if ahead[t] + swing + reach < 0.0 or total > limit:
            break
        n = order[t]
        label, cell = np.int64(labels[n]), np.int64(index[n]) * radix + np.int64(codes[n])
        at = cell * n_classes
        gap = lead[t] - table[at + label]
        if gap + top[cell] + reach < 0.0:
            continue
        loss = 1.0
        if kind == BINARY:
            loss = gap + gamma
        elif kind != RATE or gap + table[at + rival[t]] <= reach:
            for c in range(n_classes):
                row[c] = state[n, c] + table[at + c]
            loss = _loss(kind, row, label, gamma)
        total += loss if len(weights) == 0 else loss * weights[n]
    return total


@njit(cache=True, nogil=True)
def score_candidates(
    kind: int,
    gamma: float,
    state: Floats,
    order: Ints,
    lead: Floats,
    rival: Ints,
    ahead: Floats,
    weights: Floats,
    codes: Codes,
    cards: Ints,
    radix: Ints,
    members: Ints,
    index: Cells,
    candidates: Ints,
    smoothing: int,
    amount: float,
    limit: float,
    slack: float,
) -> Floats:
    """Loss of the whole data for each candidate as one more parent; infinite where it certainly exceeds the limit.

    `state` is that of all other families; `lead`, `rival` and `ahead` are what `leads` says of it for the rows in this
    `order`; no weights mean that all are one. `radix` counts the codes of each variable that occur: its levels, and one
    more where a cell is missing. `members` are the child and the parents it keeps, `index` lays them out. The limit
    falls to the best loss found on the way plus the slack, so only candidates that are strictly worse than another one,
    and not just by rounding, are given up.
    """
    n_classes, found = cards[0], np.full(len(candidates), np.inf)
    family = np.append(members, 0)
    cells, largest = 1, 0
    for v in members:
        cells *= radix[v]
    for j in candidates:
        largest = max(largest, radix[j])
    counts, table = np.empty(cells * largest * n_classes), np.empty(cells * largest * n_classes)
    tops, row = np.empty(cells * largest), np.empty(n_classes)
    for k in range(len(candidates)):
        j = candidates[k]
        family[-1] = j
        size = cells * radix[j]
        own, new, top = counts[: size * n_classes], table[: size * n_classes], tops[:size]
        _count(index, codes[j], radix[j], codes[0], weights, n_classes, own)
        table_of(own, cards[family], radix[family], n_classes, kind == BINARY, smoothing, amount, new)
        swing = _lift(own, new, n_classes, kind, top)
        total = _total_loss(
            kind, gamma, state, order, lead, rival, ahead, codes[0], weights, index, codes[j], radix[j], new, top,
            swing, limit, row,
        )  # fmt: skip
        if total <= limit:
            found[k] = total
            limit = min(limit, total + slack)
    return found
