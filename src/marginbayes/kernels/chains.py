"""Best paths and marginals of many chains at once, in time linear in their total length.

A chain passes through states; a state has a label, and one successor for each label that may come next, numbered one
after the other: `successor[s, c]` is `successor[s, 0] + c`. For label order 1 the states are the labels themselves; for
order 2 they are the first label of a chain, and pairs of labels.
`offsets[i]:offsets[i + 1]` are the positions of chain i. All scores are logarithms, and may be minus infinity.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["add_expected", "forward_backward", "label_scores", "viterbi"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# What underflow loses in scaled probabilities weighs at most 1e-308 times the factor it would have met later. Below
# this factor that is nothing; a chain that exceeds it is done again in logarithms.
MOST, LEAST = 1e250, 1e-250


@njit(cache=True, nogil=True)
def label_scores(cells: NDArray[np.int32], emission: Floats, truth: Integers, margin: float) -> Floats:
    """Score of each label at each position: what its observations add, and `margin` if it is not the true one.

    `cells[t, j]` is the row of `emission` that child j of position t has, -1 where it is missing and adds nothing.
    """
    n_labels = emission.shape[1]
    scores = np.zeros((len(cells), n_labels))
    for t in range(len(cells)):
        for j in range(cells.shape[1]):
            cell = cells[t, j]
            if cell >= 0:
                for c in range(n_labels):
                    scores[t, c] += emission[cell, c]
        if margin != 0.0:
            for c in range(n_labels):
                if c != truth[t]:
                    scores[t, c] += margin
    return scores


@njit(cache=True, nogil=True)
def viterbi(
    scores: Floats, offsets: Integers, start: Floats, step: Floats, end: Floats, successor: Integers, label_of: Integers
) -> tuple[Integers, Floats]:
    """Labels of the best path of each chain, and its score; of equal paths the one of smaller states.

    `start[s]`, `step[s, c]` (on to `successor[s, c]`) and `end[s]` are the scores of state s.
    """
    n_states = step.shape[0]
    best_to = np.empty((_longest(offsets), n_states))
    labels, best = np.empty(len(scores), np.int64), np.empty(len(offsets) - 1)
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        for s in range(n_states):
            best_to[0, s] = start[s] + scores[first, label_of[s]]
        for t in range(first + 1, last):
            _best_step(best_to[t - first - 1], best_to[t - first], step, successor)
            for s in range(n_states):
                best_to[t - first, s] += scores[t, label_of[s]]
        state, best[i] = _best_state(best_to[last - 1 - first], end)
        # Where the best path came from is looked up along it alone, which is cheaper than noting it for every state.
        for t in range(last - 1, first, -1):
            labels[t] = label_of[state]
            state = _came_from(state, label_of[state], best_to[t - 1 - first], step, successor)
        labels[first] = label_of[state]
    return labels, best


@njit(cache=True, nogil=True)
def _best_step(now: Floats, then: Floats, step: Floats, successor: Integers) -> None:
    """Greatest score with which each state is reached by one step."""
    n_states, n_labels = step.shape
    then[:] = -np.inf
    for s in range(n_states):
        behind, own, reached = now[s], step[s], then[successor[s, 0] : successor[s, 0] + n_labels]
        for c in range(n_labels):
            value = behind + own[c]
            reached[c] = value if value > reached[c] else reached[c]


@njit(cache=True, nogil=True)
def _best_state(now: Floats, end: Floats) -> tuple[int, float]:
    """The state that is best to end in, and the score of doing so."""
    state, best = 0, now[0] + end[0]
    for s in range(1, len(now)):
        if now[s] + end[s] > best:
            state, best = s, now[s] + end[s]
    return state, best


@njit(cache=True, nogil=True)
def _came_from(state: int, label: int, before: Floats, step: Floats, successor: Integers) -> int:
    """The state from which the best path to a state came."""
    found, best = 0, -np.inf
    for s in range(len(before)):
        if successor[s, 0] + label == state and before[s] + step[s, label] > best:
            found, best = s, before[s] + step[s, label]
    return found


@njit(cache=True, nogil=True)
def forward_backward(
    scores: Floats,
    offsets: Integers,
    start: Floats,
    step: Floats,
    end: Floats,
    successor: Integers,
    label_of: Integers,
    weights: Floats,
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Log of the sum over all paths, label marginals, and expected uses of starts, steps and ends.

    Returns, in this order: the log partition of each chain; the probability of each label at each position; and,
    summed over the chains with their weights, the expected number of times that each state starts, that each step is
    made, and that each state ends a chain. Where no path is possible, no label is preferred.
    """
    n_states, n_labels = step.shape
    shifts = (_largest(start), _largest(step.ravel()), _largest(end))
    scaled = (np.exp(start - shifts[0]), np.exp(step - shifts[1]), np.exp(end - shifts[2]))
    longest = _longest(offsets)
    alpha, emit, scale = np.empty((longest, n_states)), np.empty((longest, n_labels)), np.empty(longest)
    log_z, node = np.empty(len(offsets) - 1), np.zeros((len(scores), n_labels))
    starts, steps, ends = np.zeros(n_states), np.zeros((n_states, n_labels)), np.zeros(n_states)
    begun, made, ended = np.empty(n_states), np.empty((n_states, n_labels)), np.empty(n_states)
    for i in range(len(offsets) - 1):
        own, marks = scores[offsets[i] : offsets[i + 1]], node[offsets[i] : offsets[i + 1]]
        made[:] = 0.0
        value = _scaled(own, scaled, successor, label_of, (alpha, emit, scale), marks, (begun, made, ended))
        value += shifts[0] + (len(own) - 1) * shifts[1] + shifts[2]
        if math.isnan(value):
            marks[:], made[:] = 0.0, 0.0
            value = _in_logs(own, (start, step, end), successor, label_of, alpha, marks, (begun, made, ended))
        log_z[i] = value
        starts += weights[i] * begun
        steps += weights[i] * made
        ends += weights[i] * ended
    return log_z, node, starts, steps, ends


@njit(cache=True, nogil=True)
def add_expected(cells: NDArray[np.int32], node: Floats, offsets: Integers, weights: Floats, expected: Floats) -> None:
    """Add to `expected[cell, label]` the weighted probability of the label wherever the cell occurs."""
    n_labels = node.shape[1]
    for i in range(len(offsets) - 1):
        for t in range(offsets[i], offsets[i + 1]):
            for j in range(cells.shape[1]):
                cell = cells[t, j]
                if cell >= 0:
                    for c in range(n_labels):
                        expected[cell, c] += weights[i] * node[t, c]


# Sums may be taken in any order, so that several terms are added at once; infinities and NaN keep their meaning.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _scaled(
    scores: Floats,
    scaled: tuple[Floats, Floats, Floats],
    successor: Integers,
    label_of: Integers,
    buffers: tuple[Floats, Floats, Floats],
    marks: Floats,
    uses: tuple[Floats, Floats, Floats],
) -> float:
    """Marginals of one chain by probabilities that are scaled at each position; NaN where underflow could matter.

    Adds to `marks` and `uses` and returns the log partition of the scaled tables.
    """
    (first, power, last), (alpha, emit, scale), (begun, made, ended) = scaled, buffers, uses
    n_states, n_labels, length = power.shape[0], power.shape[1], len(scores)
    total = _forward(scores, first, power, successor, label_of, alpha, emit, scale)
    z = 0.0
    for s in range(n_states):
        z += alpha[length - 1, s] * last[s]
    if not z > LEAST:
        return np.nan
    beta, ahead = last / z, np.empty(n_states)
    for s in range(n_states):
        ended[s] = alpha[length - 1, s] * beta[s]
        marks[length - 1, label_of[s]] += ended[s]
    for k in range(length - 1, -1, -1):
        for s in range(n_states):
            factor = beta[s] / scale[k]
            if not factor < MOST:
                return np.nan
            ahead[s] = factor * emit[k, label_of[s]]
        if k == 0:
            break
        for s in range(n_states):
            behind, rest, own, own_made = alpha[k - 1, s], 0.0, power[s], made[s]
            reached = ahead[successor[s, 0] : successor[s, 0] + n_labels]
            for c in range(n_labels):
                share = own[c] * reached[c]
                own_made[c] += behind * share
                rest += share
            beta[s] = rest
            marks[k - 1, label_of[s]] += behind * rest
    for s in range(n_states):
        begun[s] = alpha[0, s] * beta[s]
    return float(total + math.log(z))


@njit(cache=True, nogil=True)
def _forward(
    scores: Floats,
    first: Floats,
    power: Floats,
    successor: Integers,
    label_of: Integers,
    alpha: Floats,
    emit: Floats,
    scale: Floats,
) -> float:
    """Probability of each state given what came before and what is observed there; log of all that was divided out."""
    n_states, n_labels = power.shape
    total = 0.0
    for k in range(len(scores)):
        top = _largest(scores[k])
        for c in range(n_labels):
            emit[k, c] = math.exp(scores[k, c] - top)
        now = alpha[k]
        if k == 0:
            now[:] = first
        else:
            now[:] = 0.0
            for s in range(n_states):
                behind, own, reached = alpha[k - 1, s], power[s], now[successor[s, 0] : successor[s, 0] + n_labels]
                for c in range(n_labels):
                    reached[c] += behind * own[c]
        mass = 0.0
        for s in range(n_states):
            now[s] *= emit[k, label_of[s]]
            mass += now[s]
        if not mass > 0.0:
            mass = np.nan
        for s in range(n_states):
            now[s] /= mass
        scale[k] = mass
        total += top + math.log(mass)
    return total


@njit(cache=True, nogil=True)
def _in_logs(
    scores: Floats,
    tables: tuple[Floats, Floats, Floats],
    successor: Integers,
    label_of: Integers,
    log_alpha: Floats,
    marks: Floats,
    uses: tuple[Floats, Floats, Floats],
) -> float:
    """The same by logarithms throughout; where no path is possible, no label is preferred.

    Logarithms are relative to the largest at their position, and shares to their sum there: the sums of a long chain
    would swallow the differences that matter.
    """
    (start, step, end), (begun, made, ended) = tables, uses
    n_states, n_labels, last = step.shape[0], step.shape[1], len(scores) - 1
    log_alpha[0] = start + scores[0][label_of]
    log_z = _lower(log_alpha[0])
    for k in range(1, last + 1):
        for s in range(n_states):
            log_alpha[k, s] = _into(s, log_alpha[k - 1], step, successor) + scores[k, label_of[s]]
        log_z += _lower(log_alpha[k])
    log_z += float(_log_sum(log_alpha[last] + end))
    if log_z == -np.inf:
        marks[:], begun[:], ended[:] = 1.0 / n_labels, 0.0, 0.0
        return float(log_z)
    log_beta, shares = end.copy(), np.empty((n_states, n_labels))
    ended[:] = _distribution(log_alpha[last] + end)
    for s in range(n_states):
        marks[last, label_of[s]] += ended[s]
    for k in range(last - 1, -1, -1):
        ahead = log_beta + scores[k + 1][label_of]
        for s in range(n_states):
            for c in range(n_labels):
                shares[s, c] = log_alpha[k, s] + step[s, c] + ahead[successor[s, c]]
            log_beta[s] = _log_sum(step[s] + ahead[successor[s]])
        _lower(log_beta)
        shares[:] = _distribution(shares.ravel()).reshape(shares.shape)
        made += shares
        for s in range(n_states):
            marks[k, label_of[s]] += shares[s].sum()
    begun[:] = _distribution(log_alpha[0] + log_beta)
    return float(log_z)


@njit(cache=True, nogil=True)
def _lower(values: Floats) -> float:
    """Take the largest of some logarithms from all of them, in place, and return it; where none is possible, -inf."""
    top = -np.inf
    for value in values:
        top = max(top, value)
    if top > -np.inf:
        values -= top
    return float(top)


@njit(cache=True, nogil=True)
def _distribution(logs: Floats) -> Floats:
    """Probabilities that are proportional to the exponentials, one of which at least is not zero."""
    chances = np.exp(logs - _largest(logs))
    return np.asarray(chances / chances.sum())


@njit(cache=True, nogil=True)
def _into(state: int, log_alpha: Floats, step: Floats, successor: Integers) -> float:
    """log of the sum of exp(log_alpha[s] + step[s, c]) over the steps into a state; -inf where there is none."""
    top = -np.inf
    for s in range(step.shape[0]):
        for c in range(step.shape[1]):
            if successor[s, c] == state:
                top = max(top, log_alpha[s] + step[s, c])
    if top == -np.inf:
        return top
    total = 0.0
    for s in range(step.shape[0]):
        for c in range(step.shape[1]):
            if successor[s, c] == state:
                total += math.exp(log_alpha[s] + step[s, c] - top)
    return top + math.log(total)


@njit(cache=True, nogil=True)
def _log_sum(values: Floats) -> float:
    top = -np.inf
    for value in values:
        top = max(top, value)
    if top == -np.inf:
        return top
    total = 0.0
    for value in values:
        total += math.exp(value - top)
    return top + math.log(total)


@njit(cache=True, nogil=True)
def _largest(values: Floats) -> float:
    """The largest of the scores, or zero where none is possible."""
    top = -np.inf
    for value in values:
        top = max(top, value)
    return top if top > -np.inf else 0.0


@njit(cache=True, nogil=True)
def _longest(offsets: Integers) -> int:
    """Length of the longest chain."""
    longest = 0
    for i in range(len(offsets) - 1):
        longest = max(longest, offsets[i + 1] - offsets[i])
    return longest
