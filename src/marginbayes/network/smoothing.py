"""From counts to log probabilities: four ways not to believe a zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "log_table"]

Floats = NDArray[np.float64]


def log_table(counts: NDArray[Any], kind: str, amount: float) -> Floats:
    """Log of the smoothed conditional probabilities; the child is the last axis. A row never seen is uniform."""
    weights = KINDS[kind](np.asarray(counts, np.float64), amount)
    if weights.min(initial=1.0) > 0.0:
        weights /= weights.sum(axis=-1, keepdims=True)
        return np.log(weights, out=weights)
    totals = weights.sum(axis=-1, keepdims=True)
    empty = totals[..., 0] <= 0.0
    weights[empty], totals[empty] = 1.0, weights.shape[-1]
    weights /= totals
    with np.errstate(divide="ignore"):
        return np.log(weights, out=weights)


def _laplace(counts: Floats, amount: float) -> Floats:
    return counts + amount


def _equivalent_sample_size(counts: Floats, amount: float) -> Floats:
    return counts + amount / counts.size


def _dirichlet(counts: Floats, amount: float) -> Floats:
    """`amount` further observations in each row, spread like the child's own distribution (Friedman et al. 1997)."""
    marginal = counts.reshape(-1, counts.shape[-1]).sum(axis=0) + 1.0
    return np.asarray(counts + amount * marginal / marginal.sum())


def _floor(counts: Floats, amount: float) -> Floats:
    """Zero probabilities become `amount`, then the row is scaled to one."""
    totals = counts.sum(axis=-1, keepdims=True)
    chances = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    return np.where(chances > 0, chances, amount)


KINDS: dict[str, Callable[[Floats, float], Floats]] = {
    "laplace": _laplace,
    "ess": _equivalent_sample_size,
    "dirichlet": _dirichlet,
    "floor": _floor,
}
