"""Scoring candidate parents of one feature by what they do to the classification of every row.

The state of a search is one vector for each row: log P(class, row) for every class, or, for the binary margin, the one
log-ratio of the row's own class against all others. A family adds one entry of its table to it, so a candidate costs
one pass over the rows to count and one to score, of which little is left:

- rows that have the usual code of the candidate are not counted, but found as a difference;
- every score is turned into a loss that is never negative. Rows come in the order of their *lead*, by how much the best
  other class is ahead of their own, and a candidate is left as soon as its loss exceeds the limit;
- a row whose lead is further below zero than the candidate's table could lift it has no loss, and looks at one or two
  entries of the table instead of all classes. Once this holds for all rows that follow, the candidate is done. For the
  classification rate, rows whose lead the table cannot turn are wrong without being looked at.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.families import Usual, count, count_more, count_unusual, table_of

__all__ = ["leads", "losses", "score_candidates", "score_tables"]

Ints = NDArray[np.int64]
Cells = NDArray[np.uint32]
Codes = NDArray[np.uint8] | NDArray[np.uint16] | NDArray[np.uint32]
Floats = NDArray[np.float64]

# Scores, each as a loss: an error, minus the log posterior, how much the margin lacks; the last for the binary margin.
RATE, LIKELIHOOD, MARGIN, BINARY = 0, 1, 2, 3
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


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
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
    best, at = -np.inf, 0
    for c in range(len(row)):  # without a branch, which the processor could not predict
        best = max(best, row[c] if c != label else -np.inf)
    while at < len(row) - 1 and (row[at] != best or at == label):
        at += 1
    return best - row[label], at


@njit(cache=True, nogil=True)
def leads(
    state: Floats, labels: Ints, weights: Floats, binary: bool
) -> tuple[Ints, Floats, Ints, Floats, Floats, Floats]:
    """The rows by their leads, in steps: certainly wrong ones first, certainly right ones last. In this order: how far
    the best other class is ahead, which it is, the greatest lead to come, the least one so far, and the weight of the
    rows before this one and in the end that of all.
    """
    of_row, its_rival = np.empty(len(state)), np.empty(len(state), np.int64)
    step, start = np.empty(len(state), np.int64), np.zeros(STEPS + 1, np.int64)
    for n in range(len(state)):
        of_row[n], its_rival[n] = _lead(state[n], labels[n], binary)
        step[n] = int(min(max((HIGHEST - of_row[n]) / (HIGHEST - LOWEST), 0.0), 1.0) * (STEPS - 1))
        start[step[n] + 1] += 1
    for k in range(STEPS):
        start[k + 1] += start[k]
    order, lead, rival = np.empty(len(state), np.int64), np.empty(len(state)), np.empty(len(state), np.int64)
    for n in range(len(state)):
        t = start[step[n]]
        order[t], lead[t], rival[t] = n, of_row[n], its_rival[n]
        start[step[n]] += 1
    ahead, least, passed = lead.copy(), lead.copy(), np.zeros(len(order) + 1)
    for t in range(len(order) - 2, -1, -1):
        ahead[t] = max(ahead[t], ahead[t + 1])
    for t in range(len(order)):
        least[t] = min(least[t], least[max(t - 1, 0)])
        passed[t + 1] = passed[t] + weights[order[t]]
    return order, lead, rival, ahead, least, passed


@njit(inline="always")
def _reach(counts: Floats, table: Floats, n_classes: int, kind: int, top: Floats) -> tuple[float, float]:
    """Greatest entry of each cell in `top` (0 if binary); returns by how much any cell lifts another class at most, and
    the own one above another.
    """
    lift, drop = 0.0, 0.0
    for cell in range(len(table) // n_classes):
        at = cell * n_classes
        high = 0.0 if kind == BINARY else table[at]
        low = high
        for c in range(0 if kind == BINARY else n_classes):
            high, low = max(high, table[at + c]), min(low, table[at + c])
        top[cell] = high
        for c in range(n_classes):
            if counts[at + c] > 0.0 or kind == BINARY:  # no row of this class looks here else
                lift, drop = max(lift, high - table[at + c]), max(drop, table[at + c] - low)
    return lift, drop


@njit(inline="always")
def _first_below(least: Floats, bound: float) -> int:
    """How many of these falling numbers come before the first that is at most the bound."""
    begin, end = 0, len(least)
    while begin < end:
        middle = (begin + end) // 2
        if least[middle] > bound:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(inline="always")
def _total_loss(
    kind: int,
    gamma: float,
    state: Floats,
    order: Ints,
    lead: Floats,
    rival: Ints,
    ahead: Floats,
    first: int,
    total: float,
    labels: Codes,
    weights: Floats,
    index: Cells,
    codes: Codes,
    radix: int,
    table: Floats,
    top: Floats,
    lift: float,
    limit: float,
    row: Floats,
) -> float:
    """Loss of all rows with this table added to their vectors, or of some rows if it already exceeds the limit.

    `total` is that of the rows before the first one to be looked at.
    """
    n_classes = len(table) // len(top)
    # With this much added, a lead below zero means that there is no loss, ties included.
    reach = np.inf if kind == LIKELIHOOD else 2.0 * TIE if kind == RATE else gamma
    for t in range(first, len(order)):
        if ahead[t] + lift + reach < 0.0 or total > limit:
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
    least: Floats,
    passed: Floats,
    weights: Floats,
    usual: Usual,
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

    `state` is that of all other families; `lead`, `rival`, `ahead`, `least` and `passed` are what `leads` says of it
    for the rows in this `order`; no weights mean that all are one. `radix` counts the codes of each variable that
    occur: its levels, and one more where a cell is missing. `members` are the child and the parents it keeps, `index`
    lays them out. The limit falls to the best loss found on the way plus the slack, so only candidates that are
    strictly worse than another one, and not just by rounding, are given up.
    """
    n_classes, found, family = cards[0], np.empty(len(candidates)), np.empty(len(members) + 1, np.int64)
    cells, largest = 1, 0
    for k in range(len(members)):
        family[k] = members[k]
        cells *= radix[members[k]]
    for j in candidates:
        largest = max(largest, radix[j])
    without, counts = np.empty(cells * n_classes), np.empty(cells * largest * n_classes)
    table, tops, row = np.empty_like(counts), np.empty(cells * largest), np.empty(n_classes)
    if len(candidates) > 1:
        count(index, codes[0], weights, n_classes, without)
    for k in range(len(candidates)):
        j = candidates[k]
        family[-1] = j
        size = cells * radix[j]
        own, new, top = counts[: size * n_classes], table[: size * n_classes], tops[:size]
        if usual.code[j] < 0 or len(candidates) == 1:
            count_more(index, codes[j], radix[j], codes[0], weights, n_classes, own)
        else:
            others = usual.other[usual.other_at[j] : usual.other_at[j + 1]]
            count_unusual(
                index, codes[j], radix[j], codes[0], weights, n_classes, others, usual.code[j], without, own
            )  # fmt: skip
        table_of(own, cards[family], radix[family], n_classes, kind == BINARY, smoothing, amount, new)
        lift, drop = _reach(own, new, n_classes, kind, top)
        first = _first_below(least, drop + 2.0 * TIE) if kind == RATE else 0
        total = _total_loss(
            kind, gamma, state, order, lead, rival, ahead, first, passed[first], codes[0], weights, index, codes[j],
            radix[j], new, top, lift, limit, row,
        )  # fmt: skip
        found[k] = total if total <= limit else np.inf
        limit = min(limit, found[k] + slack)
    return found


@njit(cache=True, nogil=True)
def score_tables(
    kind: int,
    gamma: float,
    state: Floats,
    order: Ints,
    labels: Ints,
    weights: Floats,
    index: Cells,
    tables: Floats,
    starts: Ints,
    n_classes: int,
    candidates: Ints,
    limit: float,
    slack: float,
) -> Floats:
    """Loss of the whole data after adding each of some tables to the state; infinite where it exceeds the limit.

    Table k begins at `starts[k]` and has, for each cell, a number for each class; `index[k]` is the cell of each row.
    The limit falls as in `score_candidates`, and rows come in an order in which the wrong ones are early.
    """
    found, row = np.empty(len(candidates)), np.empty(state.shape[1])
    for i in range(len(candidates)):
        k, total = candidates[i], 0.0
        for t in range(len(order)):
            n = order[t]
            at = starts[k] + np.int64(index[k, n]) * n_classes
            if kind == BINARY:
                row[0] = state[n, 0] + tables[at + labels[n]]
            else:
                for c in range(n_classes):
                    row[c] = state[n, c] + tables[at + c]
            total += weights[n] * _loss(kind, row, labels[n], gamma)
            if total > limit:
                break
        found[i] = total if total <= limit else np.inf
        limit = min(limit, found[i] + slack)
    return found
