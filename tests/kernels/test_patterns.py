"""Entropies and rates of patterns against dictionaries; also run with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest

from marginbayes.kernels.patterns import entropy_sums, pair_sums, saturated_rates, split_runs


def sample(seed: int, weights: list[float]) -> tuple[np.ndarray, ...]:
    """Groups sorted into runs, and codes, labels and weights of the rows."""
    rng = np.random.default_rng(seed)
    group = np.unique(rng.integers(0, 12, 30), return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(group))])
    codes, labels = rng.integers(0, 3, 30).astype(np.uint8), rng.integers(0, 2, 30)
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
    difference, seen, seen_full = entropy_sums(order, starts, codes[None], np.array([3]), np.array([0]), labels, 2, w)
    assert difference[0] == pytest.approx(expected, abs=1e-12)
    assert (seen[0], seen_full[0]) == (len(without), len(full))


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_runs_are_split_by_the_codes_and_may_leave_out_those_of_one_class(seed: int, mixed: bool) -> None:
    group, order, starts, codes, labels, w = sample(seed, [0.5, 1.0, 3.0])
    new_order, new_starts, base = split_runs(order, starts, codes, 3, labels, 2, w, mixed)
    members: dict[tuple[int, int], list[int]] = {}
    for n in range(len(group)):
        members.setdefault((int(group[n]), int(codes[n])), []).append(n)
    wanted = [rows for _, rows in sorted(members.items()) if not mixed or len({int(labels[n]) for n in rows}) > 1]
    assert [new_order[a:b].tolist() for a, b in pairwise(new_starts)] == wanted
    expected = 0.0
    for rows in members.values():
        total = sum(w[rows])
        parts = [sum(w[n] for n in rows if labels[n] == c) for c in (0, 1)]
        expected += total * math.log(total) - sum(p * math.log(p) for p in parts if p)
    assert base == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_runs_of_one_class_change_no_sum(seed: int) -> None:
    _, order, starts, codes, labels, w = sample(seed, [0.5, 1.0, 3.0])
    other = np.random.default_rng(seed).integers(0, 3, (1, 30)).astype(np.uint8)
    sums = [
        entropy_sums(
            *split_runs(order, starts, codes, 3, labels, 2, w, mixed)[:2],
            other,
            np.array([3]),
            np.array([0]),
            labels,
            2,
            w,
        )
        for mixed in (False, True)
    ]
    assert sums[0][0][0] == pytest.approx(sums[1][0][0], abs=1e-12)


@pytest.mark.parametrize("weights", [[1.0], [0.0, 0.5, 1.0, 3.0]])
@pytest.mark.parametrize("seed", range(3))
def test_the_rate_is_the_weight_of_the_most_frequent_class_of_each_pattern(seed: int, weights: list[float]) -> None:
    group, order, starts, codes, labels, w = sample(seed, weights)
    votes = Counter()
    for g, x, c, weight in zip(group, codes, labels, w, strict=True):
        votes[g, x, c] += weight
    expected = sum(max(votes[g, x, 0], votes[g, x, 1]) for g, x in {(g, x) for g, x, _ in votes})
    given = order, starts, codes[None], np.array([3]), np.array([0]), labels, 2, w
    assert saturated_rates(*given)[0] == pytest.approx(expected)


def test_the_sums_of_pairs_are_those_of_counted_pairs() -> None:
    rng = np.random.default_rng(0)
    cards = np.array([3, 2, 4, 1, 3])
    codes = rng.integers(0, cards[:, None] + (np.arange(5)[:, None] > 0), (5, 25)).astype(np.uint8)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], 25)
    found = pair_sums(codes, np.append(3, cards[1:] + 1), weights)
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
