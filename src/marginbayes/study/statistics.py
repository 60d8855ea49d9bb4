"""The papers' statistics: intervals, one-sided tests, ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr, stdtrit
from scipy.stats import binom, rankdata, studentized_range

from marginbayes.study.kinds import unpack
from marginbayes.study.records import Record

__all__ = ["Cell", "Ranking", "beats", "cell", "over_sets", "paired_t", "ranking", "weighted_mean"]

LEVELS = (0.32, 0.05)  # 68 % and 95 %
# Digits of an accuracy that count; those behind differ by the order in which equal folds are summed.
DIGITS = 9


@dataclass(frozen=True)
class Cell:
    """Accuracy of one method on one data set, in per cent.

    Parameters
    ----------
    accuracy : float
        The middle of the 95 % interval.
    half_width : float
        Half the width of that interval (Mitchell 1997): of a proportion for one test set, Student's t over folds.
    tested : int
        Rows tested.
    seconds : float
        Mean time of a fit.
    records : tuple of Record
        What it was computed from.
    """

    accuracy: float
    half_width: float
    tested: int
    seconds: float
    records: tuple[Record, ...]

    @property
    def folds(self) -> NDArray[np.float64]:
        """Accuracy of each fold."""
        return np.array([record.result["accuracy"] for record in self.records])


def cell(records: Sequence[Record]) -> Cell:
    """Summary of the records of one method on one data set."""
    ordered = tuple(sorted(records, key=lambda r: r.split))
    rates = np.array([r.result["accuracy"] for r in ordered])
    tested = sum(r.result["tested"] for r in ordered)
    mean = float(rates.mean())
    if len(rates) == 1:
        half = float(ndtri(0.975)) * math.sqrt(mean * (1 - mean) / tested)
    else:
        half = float(stdtrit(len(rates) - 1, 0.975) * rates.std(ddof=1) / math.sqrt(len(rates)))
    seconds = float(np.mean([r.result.get("fit_seconds", r.seconds) for r in ordered]))
    return Cell(100 * mean, 100 * half, tested, seconds, ordered)


def beats(first: Cell, second: Cell) -> float:
    """P-value of the one-sided test that the first method is better than the second on the same rows.

    Several folds: a paired t-test over them. One test set: a binomial test over the rows on which the two differ.
    """
    if len(first.records) != len(second.records):
        raise ValueError("only results on the same splits can be compared")
    if len(first.records) > 1:
        return paired_t(first.folds - second.folds)
    ours, theirs = (unpack(c.records[0].result["correct"], c.records[0].result["tested"]) for c in (first, second))
    gained, lost = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    return float(binom.sf(gained - 1, gained + lost, 0.5)) if gained + lost else 1.0


def paired_t(gains: NDArray[np.float64]) -> float:
    """P-value of the one-sided paired t-test that the gains are above zero; 1 where all are zero."""
    gains = np.round(gains, DIGITS)
    spread = float(gains.std(ddof=1))
    if spread == 0:
        return 0.0 if gains.mean() > 0 else 1.0
    return float(stdtr(len(gains) - 1, -gains.mean() / (spread / math.sqrt(len(gains)))))


def over_sets(first: Sequence[Cell], second: Sequence[Cell]) -> float:
    """P-value of the one-sided paired t-test that the first method is better, over data sets."""
    return paired_t(np.array([a.accuracy - b.accuracy for a, b in zip(first, second, strict=True)]))


def weighted_mean(cells: Sequence[Cell]) -> float:
    """Accuracy averaged with the number of test rows as weight."""
    return float(np.average([c.accuracy for c in cells], weights=[c.tested for c in cells]))


@dataclass(frozen=True)
class Ranking:
    """Mean rank of each method over data sets, and the difference that is significant at 95 % (Nemenyi)."""

    ranks: Mapping[str, float]
    critical: float
    n_sets: int

    @property
    def groups(self) -> list[list[str]]:
        """Largest groups of methods that do not differ significantly."""
        order = sorted(self.ranks, key=lambda name: self.ranks[name])
        found: list[list[str]] = []
        for i, first in enumerate(order):
            group = [name for name in order[i:] if self.ranks[name] - self.ranks[first] <= self.critical]
            if len(group) > 1 and not (found and set(group) <= set(found[-1])):
                found.append(group)
        return found


def ranking(table: Mapping[str, Mapping[str, Cell]], methods: Sequence[str]) -> Ranking | None:
    """Ranks over the data sets that all of the methods finished; None where there are fewer than two."""
    rows: list[Any] = [
        [cells[m].accuracy for m in methods] for cells in table.values() if all(m in cells for m in methods)
    ]
    if len(rows) < 2 or len(methods) < 2:
        return None
    ranks = rankdata(-np.round(rows, DIGITS), axis=1).mean(axis=0)
    k, n = len(methods), len(rows)
    critical = float(studentized_range.ppf(0.95, k, np.inf)) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n))
    return Ranking(dict(zip(methods, map(float, ranks), strict=True)), critical, n)
