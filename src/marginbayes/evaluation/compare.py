"""Paired comparison of two classifiers that were tested on the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit
from scipy.stats import binomtest

from marginbayes.evaluation.run import Outcome
from marginbayes.evaluation.summary import CONFIDENCE, Interval, finite

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """Difference of the accuracies of two classifiers, first less second, on the same test rows.

    Parameters
    ----------
    first : str
        Name of the one.
    second : str
        Name of the other.
    difference : Interval
        Its ends are NaN where the folds do not differ, so that there is no interval.
    p_value : float
        Of the hypothesis that both are equally accurate; NaN if there is too little to tell.
    method : str
        How interval and p-value were found.
    """

    first: str
    second: str
    difference: Interval
    p_value: float
    method: str

    def to_dict(self) -> dict[str, Any]:
        """The same as dicts, strings and numbers that JSON can hold."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": self.difference.to_dict(),
            "p_value": finite(self.p_value),
            "method": self.method,
        }


def compare(first: Sequence[Outcome], second: Sequence[Outcome]) -> Comparison:
    """Comparison of two classifiers from their outcomes on the same tasks.

    With several folds: the corrected resampled t-test of Nadeau & Bengio (2003), which allows for the
    training sets of different folds having most of their rows in common. With a single test set:
    McNemar's exact test, and the interval of Bonett & Price (2012).
    """
    _check_paired(first, second)
    if len(first) == 1:
        return _mcnemar(first[0], second[0])
    return _corrected_t(first, second)


def _check_paired(first: Sequence[Outcome], second: Sequence[Outcome]) -> None:
    if not first or len(first) != len(second):
        raise ValueError(f"a paired comparison needs the same folds of both, not {len(first)} and {len(second)}")
    for a, b in zip(first, second, strict=True):
        if not np.array_equal(a.rows, b.rows) or not np.array_equal(a.truth, b.truth):
            raise ValueError("a paired comparison needs the same test rows of both, in the same order")


def _corrected_t(first: Sequence[Outcome], second: Sequence[Outcome]) -> Comparison:
    # Rounded, because the same gain from other rates differs in the last digits, which is no spread.
    gains = np.round([a.correct.mean() - b.correct.mean() for a, b in zip(first, second, strict=True)], 12)
    ratio = float(np.mean([len(a.rows) / a.n_train for a in first]))
    spread = float(gains.var(ddof=1)) if np.ptp(gains) else 0.0
    error = math.sqrt(spread * (1 / len(gains) + ratio))
    mean, freedom = float(gains.mean()), len(gains) - 1
    # Without any spread there is no interval; a gain of zero is no gain, and any other cannot be judged.
    reach, p_value = math.nan, math.nan if mean else 1.0
    if error:
        reach = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) * error
        p_value = 2 * float(stdtr(freedom, -abs(mean) / error))
    return _result(
        first,
        second,
        Interval(mean, mean - reach, mean + reach),
        p_value,
        "corrected resampled t-test over folds",
    )


def _mcnemar(first: Outcome, second: Outcome) -> Comparison:
    gained = int((first.correct & ~second.correct).sum())
    lost = int((second.correct & ~first.correct).sum())
    n = len(first.rows)
    # Bonett & Price add one row to each of the two cells in which the classifiers differ.
    p, q = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    reach = float(ndtri(0.5 + CONFIDENCE / 2)) * math.sqrt((p + q - (p - q) ** 2) / (n + 2))
    interval = Interval((gained - lost) / n, max(-1.0, p - q - reach), min(1.0, p - q + reach))
    p_value = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    return _result([first], [second], interval, p_value, "McNemar's exact test")


def _result(
    first: Sequence[Outcome], second: Sequence[Outcome], difference: Interval, p_value: float, method: str
) -> Comparison:
    return Comparison(first[0].name, second[0].name, difference, p_value, method)
