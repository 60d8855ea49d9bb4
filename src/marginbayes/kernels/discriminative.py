"""Losses of rows by the scores of their classes, and the gradients, by index arrays instead of one-hot rows.

A row is described by how it deviates from the usual row, see `kernels.deviations`.

Scores, losses and gradients are computed for a few rows at a time, in loops of their own: these loops are short enough
for the compiler to add several classes at once, and the scores between them stay near the processor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.deviations import gather, scatter

__all__ = ["conditional_loss", "margin_loss"]

Floats = NDArray[np.float64]
Indices = NDArray[np.integer[Any]]

BLOCK = 128


@njit(cache=True, nogil=True)
def conditional_loss(
    starts: Indices,
    cells: Indices,
    base: Floats,
    changes: Floats,
    n_classes: int,
    labels: Indices,
    row_weights: Floats,
    gradient: Floats,
    total: Floats,
) -> float:
    """Sum over the rows of -log P(label | row).

    Its derivatives by the scores are added up: to `total` over all rows, to `gradient[cell]` over those with the cell.
    """
    loss = 0.0
    buffer = np.empty((min(BLOCK, len(labels)), changes.shape[1]))
    for first in range(0, len(labels), BLOCK):
        scores = buffer[: min(BLOCK, len(labels) - first)]
        gather(starts[first:], cells, base, changes, scores)
        loss += _conditional(scores, n_classes, labels[first:], row_weights[first:])
        scatter(starts[first:], cells, scores, gradient, total)
    return loss


@njit(cache=True, nogil=True)
def margin_loss(
    starts: Indices,
    cells: Indices,
    base: Floats,
    changes: Floats,
    n_classes: int,
    labels: Indices,
    row_weights: Floats,
    gradient: Floats,
    total: Floats,
    target: float,
    sharpness: float,
) -> float:
    """Sum over the rows of the smoothed hinge of (log-margin / target); derivatives as in `conditional_loss`."""
    loss = 0.0
    buffer = np.empty((min(BLOCK, len(labels)), changes.shape[1]))
    for first in range(0, len(labels), BLOCK):
        scores = buffer[: min(BLOCK, len(labels) - first)]
        gather(starts[first:], cells, base, changes, scores)
        loss += _margin(scores, n_classes, labels[first:], row_weights[first:], 1.0 / target, sharpness)
        scatter(starts[first:], cells, scores, gradient, total)
    return loss


@njit(cache=True, nogil=True)
def _conditional(scores: Floats, n_classes: int, labels: Indices, row_weights: Floats) -> float:
    """Losses of a block, summed; scores are replaced by the derivatives, P(class | row) - [class = label], weighted."""
    loss = 0.0
    for n in range(len(scores)):
        score, label, weight = scores[n], labels[n], row_weights[n]
        top = score[0]
        for c in range(1, n_classes):
            top = max(top, score[c])
        own = score[label] - top
        total = 0.0
        for c in range(n_classes):
            score[c] = math.exp(score[c] - top)
            total += score[c]
        loss += weight * (math.log(total) - own)
        for c in range(n_classes):
            score[c] *= weight / total
        score[label] -= weight
    return loss


@njit(cache=True, nogil=True)
def _margin(
    scores: Floats, n_classes: int, labels: Indices, row_weights: Floats, scale: float, sharpness: float
) -> float:
    """Losses of a block, summed; scores are replaced by the derivatives.

    The margin is the label's score less log(sum of exp(sharpness * score)) / sharpness over its rivals. Of
    t = scale * margin the loss is 1/2 - t below 0, (1 - t)^2 / 2 up to 1, and 0 above.
    """
    loss = 0.0
    for n in range(len(scores)):
        score, label, weight = scores[n], labels[n], row_weights[n]
        own, top = score[label], -np.inf
        for c in range(n_classes):
            if c != label:
                top = max(top, score[c])
        total = 0.0
        for c in range(n_classes):
            score[c] = 0.0 if c == label else math.exp(sharpness * (score[c] - top))
            total += score[c]
        t = np.inf if total == 0.0 else scale * (own - top - math.log(total) / sharpness)
        slope = min(1.0, max(0.0, 1.0 - t))
        if slope > 0.0:
            loss += weight * (0.5 - t if t <= 0.0 else 0.5 * slope * slope)
        slope *= weight * scale
        for c in range(n_classes):
            score[c] *= slope / max(total, 1.0)
        score[label] = -slope
    return loss
