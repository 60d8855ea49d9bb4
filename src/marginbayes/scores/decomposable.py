"""Scores of one family from its counts; a structure's score is the sum over its families."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlogy

from marginbayes import checks

__all__ = ["DECOMPOSABLE", "FamilyScore", "aic", "bdeu", "bic", "log_likelihood"]

Counts = NDArray[Any]

DECOMPOSABLE = ("mdl", "bic", "aic", "bdeu", "ll")


def log_likelihood(counts: ArrayLike) -> float:
    """Maximised log-likelihood of a family; axes are the parents, then the child."""
    counts = np.asarray(counts, np.float64)
    return float(xlogy(counts, counts).sum() - _xlogx_rows(counts))


def bic(counts: ArrayLike) -> float:
    """Log-likelihood less half a log n for each free parameter (the negative of the MDL score)."""
    counts = np.asarray(counts, np.float64)
    return log_likelihood(counts) - 0.5 * float(np.log(max(counts.sum(), 1.0))) * _free(counts)


def aic(counts: ArrayLike) -> float:
    """Log-likelihood less one for each free parameter."""
    counts = np.asarray(counts, np.float64)
    return log_likelihood(counts) - _free(counts)


def bdeu(counts: ArrayLike, equivalent_sample_size: float = 1.0) -> float:
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


@dataclass(frozen=True)
class FamilyScore:
    """One of these scores by name, from the rows of a family's table that occur: the others add nothing.

    Greater is better. The description length ("mdl") is given with the opposite sign, which makes it the BIC.

    Parameters
    ----------
    name : {"mdl", "bic", "aic", "bdeu", "ll"}
    total : float
        Number (weight) of the rows of the data.
    equivalent_sample_size : float, default=1.0
        Of the prior of BDeu.
    whole : bool, default=True
        Whether no row of the data weighs less than one.
    """

    name: str
    total: float
    equivalent_sample_size: float = 1.0
    whole: bool = True

    def __post_init__(self) -> None:
        if self.name not in DECOMPOSABLE:
            raise ValueError(
                f"score={self.name!r} is no sum over families; choose one of {', '.join(map(repr, DECOMPOSABLE))}"
            )
        checks.positive("equivalent_sample_size", self.equivalent_sample_size)

    def value(self, counts: Counts, configurations: float) -> float:
        """Score of a family with so many configurations of the parents, of which `counts` has those that occur."""
        if self.name != "bdeu":
            return log_likelihood(counts) - self._penalty(configurations, counts.shape[-1])
        row = self.equivalent_sample_size / configurations
        cell = row / counts.shape[-1]
        occurring = counts[counts > 0]
        rows = counts.sum(axis=-1)
        cells = float((gammaln(occurring + cell) - gammaln(cell)).sum())
        return cells - float((gammaln(rows + row) - gammaln(row)).sum())

    def most(self, levels: int, configurations: float, occurring: int) -> float:
        """No family with this child, and these parents or more, scores better.

        The likelihood is at most one, and more parents mean more parameters (de Campos & Ji 2011). The first row with a
        configuration has probability 1 / levels under BDeu's prior, and the others at most one.
        """
        if self.name == "bdeu":
            return -occurring * math.log(levels) if self.whole else 0.0
        return -self._penalty(configurations, levels)

    def _penalty(self, configurations: float, levels: int) -> float:
        each = {"ll": 0.0, "aic": 1.0}.get(self.name, 0.5 * math.log(max(self.total, 1.0)))
        return each * configurations * (levels - 1)
