"""Intervals for proportions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

__all__ = ["wilson_interval"]

Floats = NDArray[np.float64]


def wilson_interval(successes: ArrayLike, trials: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Lower and upper ends of Wilson's interval for a proportion; 0 and 1 where there are no trials.

    Parameters
    ----------
    successes : array-like
        How many of the trials were successes; may be fractional, as averages over repetitions are.
    trials : array-like
        How many there were.
    confidence : float
        Probability with which the interval covers the true proportion.

    Examples
    --------
    >>> low, high = wilson_interval(8, 10)
    >>> print(f"{low:.3f} {high:.3f}")
    0.490 0.943
    """
    k, n = np.asarray(successes, np.float64), np.asarray(trials, np.float64)
    z = float(ndtri(0.5 + confidence / 2))
    share = np.divide(k, n, out=np.full(np.broadcast(k, n).shape, 0.5), where=n > 0)
    centre = share * n + z**2 / 2
    half = z * np.sqrt(share * (1 - share) * n + z**2 / 4)
    low, high = (centre - half) / (n + z**2), (centre + half) / (n + z**2)
    # Rounding must not push an end past the share itself, nor out of [0, 1].
    low = np.where(n > 0, np.clip(np.minimum(low, share), 0, 1), 0.0)
    high = np.where(n > 0, np.clip(np.maximum(high, share), 0, 1), 1.0)
    return low, high
