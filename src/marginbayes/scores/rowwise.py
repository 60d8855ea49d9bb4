"""Scores that judge a structure by the rows it classifies; none of them decomposes over the families."""

from __future__ import annotations

import math
from dataclasses import dataclass

from marginbayes import checks

__all__ = ["RowScore", "row_score"]

NAMES = ("cr", "cl", "sm", "sbm")


@dataclass(frozen=True)
class RowScore:
    """A sum over the rows of something that is at most `ceiling`.

    ``"cr"`` classification rate: 1 where the row is classified correctly. ``"cl"`` conditional log-likelihood: log
    P(class | features). ``"sm"`` soft margin: min(log-margin, gamma), the log-margin being the log-odds of the row's
    class against the best other one (Peharz & Pernkopf 2012, eq. 9). ``"sbm"`` binary soft margin: the same against
    all other classes taken as one (eqs. 21-23).
    """

    name: str
    gamma: float = 1.0

    def __post_init__(self) -> None:
        checks.one_of("score", self.name, NAMES)
        checks.positive("gamma", self.gamma)
        object.__setattr__(self, "gamma", float(self.gamma))  # compiled code knows no other numbers

    @property
    def kind(self) -> int:
        """The kernels' number of this score."""
        return NAMES.index(self.name)

    @property
    def ceiling(self) -> float:
        """The most that one row can add."""
        return {"cr": 1.0, "cl": 0.0}.get(self.name, self.gamma)

    def value(self, loss: float, weight: float) -> float:
        """The score of data of this total weight and loss: a mean for the rate, a sum for the others."""
        total = self.ceiling * weight - loss
        return total / weight if self.name == "cr" else total


def row_score(score: str | RowScore, gamma: float | None = None) -> RowScore:
    """The score of this name; `gamma` defaults to log(0.9 / 0.1)."""
    if isinstance(score, RowScore):
        return score
    return RowScore(score, math.log(9.0) if gamma is None else gamma)
