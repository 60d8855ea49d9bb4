"""Scores of one family from its counts; a structure's score is the sum over its families."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

__all__ = ["aic", "bdeu", "bic", "log_likelihood"]

Counts = NDArray[Any]


def log_likelihood(counts: Counts) -> float:
    """Maximised log-likelihood of a family; axes are the parents, then the child."""
    counts = np.asarray(counts, np.float64)
    return float(xlogy(counts, counts).sum() - _xlogx_rows(counts))


def bic(counts: Counts) -> float:
    """Log-likelihood less half a log n for each free parameter (the negative of the MDL score)."""
    return log_likelihood(counts) - 0.5 * float(np.log(max(counts.sum(), 1.0))) * _free(counts)


def aic(counts: Counts) -> float:
    """Log-likelihood less one for each free parameter."""
    return log_likelihood(counts) - _free(counts)


def bdeu(counts: Counts, equivalent_sample_size: float = 1.0) -> float:
    """Log marginal likelihood under a uniform Dirichlet prior of the given equivalent sample size."""
    counts = np.asarray(counts, np.float64)
    cell = equivalent_sample_size / counts.size
    row = cell * counts.shape[-1]
    rows = counts.sum(axis=-1)
    return float((gammaln(counts + cell) - gammaln(cell)).sum() - (gammaln(rows + row) - gammaln(row)).sum())


def _free(counts: Counts) -> int:
    return int(counts.size // counts.shape[-1] * (counts.shape[-1] - 1))


def _xlogx_rows(counts: Counts) -> float:
    rows = counts.sum(axis=-1)
    return float(xlogy(rows, rows).sum())
