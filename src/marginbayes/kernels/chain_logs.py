"""Marginals of chains as logarithms, for labels whose probability is too small for a number; see `chains`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["log_marginals"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@njit(cache=True, nogil=True)
def log_marginals(
    scores: Floats, offsets: Integers, start: Floats, step: Floats, end: Floats, successor: Integers, label_of: Integers
) -> Floats:
    """log P(label) at each position of each chain; where no path is possible, no label is preferred."""
    n_states, n_labels = step.shape
    node = np.full((len(scores), n_labels), -np.inf)
    for i in range(len(offsets) - 1):
        own, marks = scores[offsets[i] : offsets[i + 1]], node[offsets[i] : offsets[i + 1]]
        log_alpha = np.full((len(own), n_states), -np.inf)
        log_alpha[0] = start + own[0][label_of]
        for k in range(1, len(own)):
            for s in range(n_states):
                for c in range(n_labels):
                    then = successor[s, c]
                    log_alpha[k, then] = _log_add(log_alpha[k, then], log_alpha[k - 1, s] + step[s, c])
            log_alpha[k] += own[k][label_of]
        log_beta = end.copy()
        for k in range(len(own) - 1, -1, -1):
            for s in range(n_states):
                marks[k, label_of[s]] = _log_add(marks[k, label_of[s]], log_alpha[k, s] + log_beta[s])
            _normalise(marks[k])
            ahead = log_beta + own[k][label_of]
            for s in range(n_states):
                log_beta[s] = -np.inf
                for c in range(n_labels):
                    log_beta[s] = _log_add(log_beta[s], step[s, c] + ahead[successor[s, c]])
    return node


@njit(cache=True, nogil=True)
def _log_add(one: float, other: float) -> float:
    """log(exp(one) + exp(other)), of minus infinities as well."""
    more, less = max(one, other), min(one, other)
    return more if less == -np.inf else more + math.log1p(math.exp(less - more))


@njit(cache=True, nogil=True)
def _normalise(logs: Floats) -> None:
    """Make the exponentials sum to one; equal where all are zero."""
    total = -np.inf
    for value in logs:
        total = _log_add(total, value)
    for c in range(len(logs)):
        logs[c] = -math.log(len(logs)) if total == -np.inf else logs[c] - total
