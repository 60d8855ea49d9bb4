"""From weights of any size to one proper table of steps with an end, the same for every position and every length.

Rows of emissions are normalised first, and what that takes is absorbed into the steps. Let M(y, y') be the weight of
the step from y to y' with everything absorbed, f(y) the weight of ending in y, and s a number below one over the
largest eigenvalue of M. Then v = (I - s M)^-1 f is finite and positive, and

    P(y' | y) = s M(y, y') v(y') / v(y),    P(end | y) = f(y) / v(y)

are proper: the rows sum to one by the definition of v. Along a labelling all v cancel but the first, and the powers
of s count its length, so for observations of a given length P(labels | observations) is unchanged. The factor s is
free: it decides how long sequences are, and is set so that their mean length is that of the training data.
`marginbayes.sequence.likeliest` uses what else is free.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from marginbayes import checks
from marginbayes.network.logs import log_sum
from marginbayes.sequence.model import ChainModel
from marginbayes.sequence.pairs import PairSteps, UnsettledError

__all__ = ["MANY_LABELS", "log_inverse_times", "renormalize_chain"]

Floats = NDArray[np.float64]

# The steps of a walk are doubled until what is left is below this share.
NEGLIGIBLE = 1e-18
MOST_DOUBLINGS = 200
# Log of how far the factor stays below its limit, as a share of it.
NEAREST = -20.0
# Sums of products of numbers up to one that exceed this have lost nothing to underflow.
SMALLEST = 1e-250
# Doublings after which the growth of a power is known to the last digit.
ROUNDS = 60
# From so many labels on, pairs of labels are too many for a matrix over them; sums have at most so many terms.
MANY_LABELS, MOST_TERMS = 8, 20_000


def renormalize_chain(model: ChainModel, weights: Floats, mean_length: float) -> Floats:
    """Normalised weights with the same P(labels | observations) for complete sequences of every length.

    Parameters
    ----------
    model : ChainModel
    weights : array
    mean_length : float
        More than one; the mean length of sequences under the result.
    """
    checks.number("mean_length", mean_length, lambda mean: mean > 1, "more than 1, or no sequence could go on")
    start, steps, emission = model.tables(weights)
    emission, gained = _normalised_emission(model, emission)
    start, log_end = start + gained, steps[:, -1]
    log_step = steps[:, :-1] + gained
    log_scale, ahead = _scaled_sums(model, log_step, log_end, start, mean_length)
    new_steps = log_step + log_scale + ahead[model.successor] - ahead[:, None]
    new_end = log_end - ahead
    first = start + ahead[: model.n_labels]
    return model.rows.normalised(model.flatten(first - log_sum(first), np.column_stack([new_steps, new_end]), emission))


def _scaled_sums(
    model: ChainModel, log_step: Floats, log_end: Floats, start: Floats, mean_length: float
) -> tuple[float, Floats]:
    """log s, and log of v = (I - s M)^-1 f: term by term for many pairs of labels, unless that takes too many terms."""
    if model.order == 2 and model.n_labels >= MANY_LABELS:
        with suppress(UnsettledError):
            steps = PairSteps.of(model, log_step, MOST_TERMS)
            log_scale = steps.scale_for(log_end, start, mean_length, NEAREST)
            return log_scale, steps.ahead(log_end, log_scale)
    matrix = _matrix(model, log_step)
    log_scale = _scale_for(matrix, log_end, _padded(model, start), mean_length)
    return log_scale, log_inverse_times(matrix + log_scale, log_end)


def log_inverse_times(matrix: Floats, vector: Floats) -> Floats:
    """log of (I - A)^-1 b for matrices of logarithms, by doubling the sum b + A b + A^2 b + ...; nothing is subtracted.

    Examples
    --------
    >>> float(np.exp(log_inverse_times(np.log([[0.5]]), np.log([3.0])))[0])
    6.0
    """
    total, power = vector.copy(), matrix
    for _ in range(MOST_DOUBLINGS):
        more = _times(power, total)
        total = np.logaddexp(total, more)
        if (more - total).max() < np.log(NEGLIGIBLE):
            return total
        power = _product(power)
    raise ValueError("the weights of the steps are too large: their sum over all lengths is infinite")


def _times(matrix: Floats, vector: Floats) -> Floats:
    return np.asarray(log_sum(matrix + vector, axis=1))


def _normalised_emission(model: ChainModel, emission: Floats) -> tuple[Floats, Floats]:
    """Emissions whose levels sum to one for each child and label, and for each label the log of what was taken."""
    result, gained = emission.copy(), np.zeros(model.n_labels)
    for first, last in zip(model.first_cells[:-1], model.first_cells[1:], strict=True):
        level = log_sum(emission[first:last], axis=0)
        result[first:last] -= level
        gained += level
    return result, gained


def _matrix(model: ChainModel, log_step: Floats) -> Floats:
    """Logs of the steps as a square matrix over states."""
    matrix = np.full((model.n_states, model.n_states), -np.inf)
    matrix[np.arange(model.n_states)[:, None], model.successor] = log_step
    return matrix


def _padded(model: ChainModel, start: Floats) -> Floats:
    return np.concatenate([start, np.full(model.n_states - model.n_labels, -np.inf)])


def _log_radius(matrix: Floats) -> float:
    """log of the largest eigenvalue of a matrix of logarithms: its 2^k-th power grows like that power of it."""
    total, power = 0.0, matrix
    for k in range(ROUNDS):
        top = float(power.max())
        total += top / 2.0**k
        power = _product(power - top)
    return total


def _product(matrix: Floats) -> Floats:
    """log of the square of a matrix of logarithms, each entry to the last digits."""
    rows, columns = _tops(matrix, 1), _tops(matrix, 0)
    square = np.exp(matrix - rows) @ np.exp(matrix - columns)
    reached = (possible := np.isfinite(matrix).astype(np.float64)) @ possible > 0
    if square.min(where=reached, initial=1.0) < SMALLEST:  # a sum may have lost what it consists of
        return np.array([log_sum(row[:, None] + matrix, axis=0) for row in matrix])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(square) + rows + columns)


def _tops(matrix: Floats, axis: int) -> Floats:
    top = matrix.max(axis=axis, keepdims=True)
    return np.where(top > -np.inf, top, 0.0)


def _scale_for(matrix: Floats, log_end: Floats, start: Floats, mean_length: float) -> float:
    """log s for which the mean length is as wanted; the mean grows with s, from one to infinity."""
    limit = -_log_radius(matrix)

    def excess(log_rest: float) -> float:
        log_scale = limit + np.log1p(-np.exp(log_rest))
        ahead = log_inverse_times(matrix + log_scale, log_end)
        more = log_inverse_times(matrix + log_scale, _times(matrix + log_scale, ahead))
        return float(np.log(mean_length - 1.0) - log_sum(start + more) + log_sum(start + ahead))

    low, high = NEAREST, -1e-12
    # Where steps on are so improbable that no usable factor makes sequences that long, the longest have to do.
    found = low if excess(low) > 0 else high if excess(high) < 0 else brentq(excess, low, high, xtol=1e-12)
    return float(limit + np.log1p(-np.exp(found)))
