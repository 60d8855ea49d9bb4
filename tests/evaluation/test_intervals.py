from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from marginbayes.evaluation.intervals import wilson_interval


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 10), (3, 10), (10, 10), (57, 100), (1, 10_000)])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_wilson_intervals_are_those_of_scipy(k: int, n: int, confidence: float) -> None:
    low, high = wilson_interval(k, n, confidence)
    expected = binomtest(k, n).proportion_ci(confidence, method="wilson")
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_without_trials_any_share_is_possible() -> None:
    low, high = wilson_interval([0, 1], [0, 2])
    assert (low[0], high[0]) == (0.0, 1.0)


def test_rounding_pushes_no_end_past_the_share() -> None:
    rng = np.random.default_rng(0)
    for confidence in (0.5, 0.8, 0.95):
        few = np.concatenate([[0.0], 10.0 ** rng.uniform(-18, -15, 10_000)])  # averages over repetitions
        low, _ = wilson_interval(few, 10, confidence)
        assert (low <= few / 10).all()
        trials = np.arange(1, 2000)
        assert (wilson_interval(trials, trials, confidence)[1] == 1).all()
