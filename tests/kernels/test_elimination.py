"""The elimination kernel against enumeration and finite differences; also run with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes.data import Rows
from marginbayes.graph import Dag
from marginbayes.network import evaluate
from marginbayes.network.evaluate import Evaluator, elimination_order
from tests.oracles.brute import log_joint, random_dag, random_network, with_holes


def evaluator(network, target: int = 0) -> Evaluator:
    return Evaluator(network.dag, network.schema.cardinalities, network.tables, target, network.normalized)


@pytest.mark.parametrize("seed", range(12))
def test_the_log_joint_is_the_sum_over_all_completions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_dag(rng, 5, 3))
    rows = with_holes(rng, network.sample(12, rng), 0.4)
    target = int(rng.integers(5))
    found = evaluator(network, target)._eliminate(rows.codes)
    np.testing.assert_allclose(found, log_joint(network, rows, target), atol=1e-12)


def test_impossible_cells_stay_impossible() -> None:
    rng = np.random.default_rng(5)
    network = random_network(rng, random_dag(rng, 5, 2), (2, 3, 2, 3, 2), zeros=0.4)
    codes = rng.integers(0, np.array(network.schema.cardinalities)[:, None] + 1, (5, 40)).astype(np.uint8)
    rows = Rows(codes, network.schema.cardinalities)
    expected = log_joint(network, rows)
    assert np.isneginf(expected).any()
    np.testing.assert_allclose(evaluator(network)._eliminate(codes), expected, atol=1e-12)


def test_a_missing_hub_of_many_children_does_not_underflow() -> None:
    # 400 observed children of a missing variable: every plain product would be smaller than 1e-400.
    rng = np.random.default_rng(0)
    names = ("class", "hub", *(f"x{i}" for i in range(400)))
    dag = Dag(names, ((), (0,), *(((0, 1),) * 400)))
    network = random_network(rng, dag, (2, 3, *((20,) * 400)))
    rows = network.sample(2, rng)
    codes = rows.codes.copy()
    codes[1] = 3
    found = evaluator(network)._eliminate(codes)
    leaves = np.zeros((2, 2, 3))
    for n in range(2):
        for i in range(2, 402):
            leaves[n] += network.tables[i][:, :, codes[i, n]]
    expected = network.tables[0] + np.logaddexp.reduce(network.tables[1] + leaves, axis=2)
    assert expected.max() < -750
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_expected_counts_are_the_derivatives_of_the_log_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_dag(rng, 5, 2), (2, 3, 2, 2, 3))
    rows = with_holes(rng, network.sample(8, rng), 0.4)
    weights = rng.random((8, 2))
    own = evaluator(network)
    counts, value = own.expected_counts(rows, weights)
    np.testing.assert_allclose(value, (weights * log_joint(network, rows)).sum(), rtol=1e-12)
    step = 1e-6
    for i, table in enumerate(network.tables):
        for at in np.ndindex(*table.shape):
            slopes = []
            for sign in (1, -1):
                moved = [t.copy() for t in network.tables]
                moved[i][at] += sign * step
                # prune=True drops what sums to one, which a moved table no longer does: compare without it.
                full = Evaluator(network.dag, network.schema.cardinalities, tuple(moved), 0, False)
                slopes.append(sign * (weights * full._eliminate(rows.codes)).sum() / (2 * step))
            unpruned = Evaluator(network.dag, network.schema.cardinalities, network.tables, 0, False)
            exact = unpruned.unflatten(unpruned.expected_counts(rows, weights)[0])[i][at]
            assert abs(sum(slopes) - exact) < 1e-6 * max(1.0, abs(exact))
    # Leaving out what drops out changes only the counts of the families that drop out.
    pruned, unpruned_counts = own.unflatten(counts), unpruned.unflatten(unpruned.expected_counts(rows, weights)[0])
    for a, b in zip(pruned, unpruned_counts, strict=True):
        assert (a <= b + 1e-12).all()


def test_the_order_is_leaves_first_on_a_tree() -> None:
    # class -> all, chain x1 -> x2 -> x3 -> x4: no message is ever over more than one variable.
    dag = Dag(("c", "a", "b", "d", "e"), ((), (0,), (0, 1), (0, 2), (0, 3)))
    order, width, cells = elimination_order(dag, (2, 3, 3, 3, 3), 0)
    assert sorted(order) == [1, 2, 3, 4]
    assert width == 1
    assert cells == pytest.approx(3 + 3 + 3 + 1)


def test_a_row_that_needs_more_room_gets_it_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    dag = Dag(tuple("cabdef"), ((), (0,), (0, 1), (0, 1, 2), (0, 2, 3), (0, 3, 4)))
    network = random_network(rng, dag, (2, 4, 4, 4, 4, 4))
    codes = np.array([[2], [4], [4], [4], [4], [1]], np.uint8)
    rows = Rows(codes, network.schema.cardinalities)
    monkeypatch.setattr(evaluate, "FIRST_CAPACITY", 8)
    np.testing.assert_allclose(evaluator(network)._eliminate(codes), log_joint(network, rows), atol=1e-12)
    monkeypatch.setattr(evaluate, "LAST_CAPACITY", 16)
    with pytest.raises(ValueError, match="fewer parents"):
        evaluator(network)._eliminate(codes)
