"""Branchings of the check and what options cost, against all choices, and side by side against each alone."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes.verification.exact_margin_branching import OptionCosts, best_branchings
from tests.oracles.exact import acyclic_choices


def random_options(rng, n):
    options = rng.random((n, n + 2)) < 0.7
    options[:, 1] |= ~options.any(axis=1)
    options[np.arange(n), np.arange(n) + 2] = False
    return options


@pytest.mark.parametrize("seed", range(60))
def test_the_best_choice_is_the_best_of_all_and_none_is_worth_more_than_it_less_costs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    values, options = rng.normal(size=(n, n + 2)).round(int(rng.integers(0, 3))), random_options(rng, n)
    found = OptionCosts(values[None], options[None])
    best, costs = found.totals[0], found.of(np.zeros(n, np.int64), np.arange(n))
    assert best == pytest.approx(best_branchings(values[None], options[None])[0], abs=1e-12)
    assert (costs[options] >= -1e-12).all()
    assert np.isinf(costs[~options]).all()
    sums, slacks = [], []
    for choice in acyclic_choices(options):
        own = np.arange(n), list(choice)
        sums.append(values[own].sum())
        slacks.append(best - costs[own].sum() - sums[-1])
    assert best == pytest.approx(max(sums, default=-np.inf), abs=1e-12)
    assert min(slacks, default=0.0) >= -1e-12


@pytest.mark.parametrize("seed", range(20))
def test_branchings_side_by_side_are_those_of_each_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    # Few digits make ties and so many cycles; few options leave some problems without a branching.
    values = rng.normal(size=(30, n, n + 2)).round(int(rng.integers(0, 4)))
    options = rng.random(values.shape) < rng.uniform(0.1, 1.0, (30, 1, 1))
    options[:, np.arange(n), np.arange(n) + 2] = False
    problem, feature = (each.reshape(-1) for each in np.divmod(np.arange(30 * n), n))
    together = OptionCosts(values, options)
    assert np.array_equal(together.totals, best_branchings(values, options))
    costs = together.of(problem, feature).reshape(values.shape)
    for i in range(30):
        alone = OptionCosts(values[i : i + 1], options[i : i + 1])
        assert alone.totals[0] == together.totals[i]
        assert np.array_equal(alone.of(np.zeros(n, np.int64), np.arange(n)), costs[i])
