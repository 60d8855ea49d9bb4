"""Entropies and rates of patterns against dictionaries; also run with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from marginbayes.kernels.patterns import entropy_sums, pair_sums, saturated_rate


def sample(seed: int, weights: list[float]) -> tuple[np.ndarray, ...]:
    """Groups sorted into runs, and codes, labels and weights of the rows."""
    rng = np.random.default_rng(seed)
    group = np.unique(rng.integers(0, 12, 30), return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group))])
    codes, labels = rng.integers(0, 3, 30).astype(np.int32), rng.integers(0, 2, 30)
    return group, order, starts, codes, labels, rng.choice(weights, 30)


@pytest.mark.parametrize("weights", [[1.0], [0.5, 1.0, 3.0]])
@pytest.mark.parametrize("seed", range(3))
def test_the_sums_are_those_of_counted_patterns(seed: int, weights: list[float]) -> None:
    group, order, starts, codes, labels, w = sample(seed, weights)
    without, full = Counter(), Counter()
    for g, x, c, weight in zip(group, codes, labels, w, strict=True):
        without[g, x] += weight
        full[g, x, c] += weight
    expected = sum(n * math.log(n) for n in full.values()) - sum(n * math.log(n) for n in without.values())
    difference, seen, seen_full = entropy_sums(order, starts, codes, 3, labels, 2, w)
    assert difference == pytest.approx(expected, abs=1e-12)
    assert (seen, seen_full) == (len(without), len(full))


def test_rows_without_weight_change_nothing_but_runs_of_their_own() -> None:
    group, order, starts, codes, labels, w = sample(3, [0.0, 1.0, 2.0])
    some = w > 0
    kept = np.unique(group[some], return_inverse=True)[1]
    fewer = (np.argsort(kept, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(kept))]))
    left = entropy_sums(order, starts, codes, 3, labels, 2, w)
    right = entropy_sums(*fewer, codes[some], 3, labels[some], 2, w[some])
    assert left[0] == pytest.approx(right[0], abs=1e-12)
    # A run of one row is not looked at, but counts for both numbers, of which only the difference is used.
    assert left[1] - left[2] == right[1] - right[2]


@pytest.mark.parametrize("weights", [[1.0], [0.0, 0.5, 1.0, 3.0]])
@pytest.mark.parametrize("seed", range(3))
def test_the_rate_is_the_weight_of_the_most_frequent_class_of_each_pattern(seed: int, weights: list[float]) -> None:
    group, order, starts, codes, labels, w = sample(seed, weights)
    votes = Counter()
    for g, x, c, weight in zip(group, codes, labels, w, strict=True):
        votes[g, x, c] += weight
    expected = sum(max(votes[g, x, 0], votes[g, x, 1]) for g, x in {(g, x) for g, x, _ in votes})
    assert saturated_rate(order, starts, codes, 3, labels, 2, w) == pytest.approx(expected)


def test_the_sums_of_pairs_are_those_of_counted_pairs() -> None:
    rng = np.random.default_rng(0)
    cards = np.array([3, 2, 4, 1, 3])
    codes = rng.integers(0, cards[:, None] + (np.arange(5)[:, None] > 0), (5, 25)).astype(np.int32)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 25)
    found = pair_sums(codes, cards, codes[0].astype(np.int64), weights)
    for i, j in combinations(range(1, 5), 2):
        without, full = Counter(), Counter()
        for row, weight in zip(codes.T, weights, strict=True):
            without[row[i], row[j]] += weight
            full[row[i], row[j], row[0]] += weight
        expected = sum(n * math.log(n) for n in full.values() if n) - sum(
            n * math.log(n) for n in without.values() if n
        )
        assert found[i, j] == found[j, i] == pytest.approx(expected, abs=1e-12)
    assert not found[0].any()
    assert not found[:, 0].any()
