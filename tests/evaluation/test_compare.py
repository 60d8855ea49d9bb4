"""Paired comparisons against sums written out, and against scipy where it has the same test."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from scipy import stats

from marginbayes.evaluation import Outcome, compare


def _outcome(name: str, correct: np.ndarray, fold: int = 0, n_train: int = 40) -> Outcome:
    truth = np.zeros(len(correct), np.intp)
    chances = np.where(correct[:, None], [0.9, 0.1], [0.1, 0.9])
    return Outcome(name, 0, fold, np.arange(len(correct)), truth, np.log(chances), n_train, 0.0, 0.0)


def _folds(seed: int, n_train: int = 40) -> tuple[list[Outcome], list[Outcome]]:
    rng = np.random.default_rng(seed)
    first = [_outcome("a", rng.random(10) < 0.9, f, n_train) for f in range(5)]
    second = [_outcome("b", rng.random(10) < 0.6, f, n_train) for f in range(5)]
    return first, second


@pytest.mark.parametrize("seed", range(4))
def test_the_corrected_t_test_follows_nadeau_and_bengio(seed: int) -> None:
    first, second = _folds(seed)
    gains = [float(a.correct.mean() - b.correct.mean()) for a, b in zip(first, second, strict=True)]
    error = math.sqrt(statistics.variance(gains) * (1 / 5 + 10 / 40))
    t = statistics.mean(gains) / error
    reach = stats.t(4).ppf(0.975) * error
    result = compare(first, second)
    assert result.difference.value == pytest.approx(statistics.mean(gains))
    assert result.difference.low == pytest.approx(statistics.mean(gains) - reach)
    assert result.difference.high == pytest.approx(statistics.mean(gains) + reach)
    assert result.p_value == pytest.approx(2 * stats.t(4).sf(abs(t)))


def test_without_shared_training_rows_it_is_students_test() -> None:
    first, second = _folds(7, n_train=10**12)
    gains = [a.correct.mean() - b.correct.mean() for a, b in zip(first, second, strict=True)]
    assert compare(first, second).p_value == pytest.approx(stats.ttest_1samp(gains, 0).pvalue)


def test_swapping_the_classifiers_flips_the_sign_only() -> None:
    first, second = _folds(1)
    one, two = compare(first, second), compare(second, first)
    assert one.difference.value == -two.difference.value
    assert one.difference.low == -two.difference.high
    assert one.p_value == two.p_value
    assert (one.first, one.second) == ("a", "b")


def test_mcnemar_is_the_sign_test_of_the_rows_that_differ() -> None:
    a = np.array([True] * 60 + [True] * 9 + [False] * 2 + [False] * 29)
    b = np.array([True] * 60 + [False] * 9 + [True] * 2 + [False] * 29)
    result = compare([_outcome("a", a)], [_outcome("b", b)])
    # P(at most 2 or at least 9 of 11 fair coins), by hand: 2 (1 + 11 + 55) / 2048.
    assert result.p_value == pytest.approx(2 * (1 + 11 + 55) / 2048)
    assert result.difference.value == pytest.approx(0.07)
    assert result.difference.low < 0.07 < result.difference.high
    assert "McNemar" in result.method


def test_the_interval_on_one_test_set_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(600):
        kind = rng.choice(4, p=[0.6, 0.15, 0.05, 0.2], size=120)  # both right, only a, only b, none
        a, b = (kind == 0) | (kind == 1), (kind == 0) | (kind == 2)
        interval = compare([_outcome("a", a)], [_outcome("b", b)]).difference
        covered += interval.low <= 0.1 <= interval.high
    assert 0.93 <= covered / 600 <= 0.98


def test_a_classifier_does_not_differ_from_itself() -> None:
    first, _ = _folds(2)
    for outcomes in (first, first[:1]):
        result = compare(outcomes, outcomes)
        assert result.difference.value == 0
        assert result.p_value == 1.0


def test_a_constant_gain_has_neither_interval_nor_p_value() -> None:
    worse = [_outcome("b", np.array([False, True]), f) for f in range(3)]
    better = [_outcome("a", np.array([True, True]), f) for f in range(3)]
    result = compare(better, worse)
    assert result.difference.value == 0.5
    assert math.isnan(result.p_value)
    assert result.to_dict()["p_value"] is None
    assert result.to_dict()["difference"] == {"value": 0.5, "low": None, "high": None}


def test_the_same_gain_from_other_rates_is_no_spread() -> None:
    counts = (9, 8, 7, 6, 9)
    better = [_outcome("a", np.arange(10) < n, f) for f, n in enumerate(counts)]
    worse = [_outcome("b", np.arange(10) < n - 1, f) for f, n in enumerate(counts)]
    result = compare(better, worse)
    assert result.difference.value == pytest.approx(0.1)
    assert math.isnan(result.p_value)


def test_gains_that_differ_by_a_share_of_a_row_have_a_spread() -> None:
    sizes = (1000, 1001, 999)
    better = [_outcome("a", np.arange(n) < n, f) for f, n in enumerate(sizes)]
    worse = [_outcome("b", np.arange(n) < n - 1, f) for f, n in enumerate(sizes)]
    gains = [1 / n for n in sizes]
    error = math.sqrt(statistics.variance(gains) * (1 / 3 + 1000 / 40))
    result = compare(better, worse)
    assert result.p_value == pytest.approx(2 * stats.t(2).sf(statistics.mean(gains) / error), rel=1e-6)


def test_an_interval_of_few_rows_ends_where_differences_do() -> None:
    right, wrong = _outcome("a", np.ones(3, bool)), _outcome("b", np.zeros(3, bool))
    worst, best = compare([wrong], [right]).difference, compare([right], [wrong]).difference
    assert (worst.value, worst.low) == (-1.0, -1.0)
    assert (best.value, best.high) == (1.0, 1.0)


def test_outcomes_on_other_rows_are_refused() -> None:
    first, second = _folds(3)
    with pytest.raises(ValueError, match="same folds"):
        compare(first, second[:2])
    shorter = [_outcome("b", np.array([True] * 9), f) for f in range(5)]
    with pytest.raises(ValueError, match="same test rows"):
        compare(first, shorter)
