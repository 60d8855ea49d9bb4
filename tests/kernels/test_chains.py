"""Chains against enumeration of all paths; also run with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from marginbayes.kernels.chains import add_expected, forward_backward, label_scores, viterbi

K = 3
ORDER_1 = (np.tile(np.arange(K), (K, 1)), np.arange(K))
_LABELS_2 = np.concatenate([np.arange(K), np.tile(np.arange(K), K)])
ORDER_2 = (K + _LABELS_2[:, None] * K + np.arange(K), _LABELS_2)
OFFSETS = np.array([0, 1, 4, 6])


def chains(order: int, seed: int, scale: float = 1.0) -> tuple[np.ndarray, ...]:
    """Scores of chains of lengths 1, 3 and 2, and the tables of a chain model."""
    rng = np.random.default_rng(seed)
    successor, label_of = ORDER_1 if order == 1 else ORDER_2
    n_states = len(label_of)
    start = np.full(n_states, -np.inf)
    start[:K] = rng.normal(0, scale, K)
    step, end = rng.normal(0, scale, (n_states, K)), rng.normal(0, scale, n_states)
    return rng.normal(0, scale, (6, K)), OFFSETS, start, step, end, successor, label_of


def paths(scores: np.ndarray, start, step, end, successor, label_of) -> dict[tuple[int, ...], float]:
    """Score of every labelling of one chain, one path at a time."""
    found = {}
    for labels in product(range(K), repeat=len(scores)):
        state, total = labels[0], start[labels[0]] + scores[0, labels[0]]
        for t in range(1, len(labels)):
            total += step[state, labels[t]] + scores[t, labels[t]]
            state = successor[state, labels[t]]
            assert label_of[state] == labels[t]
        found[labels] = total + end[state]
    return found


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 30.0, 2000.0])
def test_the_best_path_is_the_best_of_all(order: int, scale: float) -> None:
    for seed in range(4):
        scores, offsets, *tables = chains(order, seed, scale)
        labels, best = viterbi(scores, offsets, *tables)
        for i in range(3):
            part = slice(offsets[i], offsets[i + 1])
            every = paths(scores[part], *tables)
            assert best[i] == pytest.approx(max(every.values()))
            assert tuple(labels[part]) == max(every, key=every.__getitem__)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("scale", [1.0, 30.0, 2000.0])
def test_marginals_are_sums_over_all_paths(order: int, scale: float) -> None:
    scores, offsets, *tables = chains(order, 7, scale)
    successor = tables[3]
    weights = np.array([0.5, 2.0, 1.0])
    log_z, node, starts, steps, ends = forward_backward(scores, offsets, *tables, weights)
    expected_node, expected = np.zeros_like(node), [np.zeros_like(a) for a in (starts, steps, ends)]
    for i in range(3):
        every = paths(scores[offsets[i] : offsets[i + 1]], *tables)
        values = np.array(list(every.values()))
        total = np.logaddexp.reduce(values)
        assert log_z[i] == pytest.approx(total, rel=1e-13)
        for labels, chance in zip(every, np.exp(values - total), strict=True):
            state = labels[0]
            expected[0][state] += weights[i] * chance
            expected_node[offsets[i] + np.arange(len(labels)), labels] += chance
            for c in labels[1:]:
                expected[1][state, c] += weights[i] * chance
                state = successor[state, c]
            expected[2][state] += weights[i] * chance
    np.testing.assert_allclose(node, expected_node, atol=1e-12)
    for found, right in zip((starts, steps, ends), expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-12)


def test_a_step_that_is_impossible_is_never_made() -> None:
    scores, offsets, start, step, end, successor, label_of = chains(1, 3)
    step[0, 1] = step[2, 2] = -np.inf
    labels, best = viterbi(scores, offsets, start, step, end, successor, label_of)
    log_z, node, _, steps, _ = forward_backward(scores, offsets, start, step, end, successor, label_of, np.ones(3))
    assert steps[0, 1] == steps[2, 2] == 0
    assert not {(0, 1), (2, 2)} & {(labels[t], labels[t + 1]) for t in (1, 2, 4)}
    assert (best <= log_z).all()
    np.testing.assert_allclose(node.sum(axis=1), 1.0)


def test_scores_far_apart_neither_overflow_nor_vanish() -> None:
    # Label 1 is impossible but for the middle, where everything else is even less probable.
    scores = np.array([[0.0, -900.0, -950.0], [-2000.0, 0.0, -1500.0], [0.0, -900.0, -950.0]])
    step = np.array([[0.0, -800.0, -900.0], [-700.0, 0.0, -10.0], [0.0, -1000.0, 0.0]])
    tables = (np.zeros(K), step, np.zeros(K), *ORDER_1)
    log_z, node, _, steps, _ = forward_backward(scores, np.array([0, 3]), *tables, np.ones(1))
    every = paths(scores, *tables)
    assert log_z[0] == pytest.approx(np.logaddexp.reduce(list(every.values())), rel=1e-14)
    best = max(every, key=every.__getitem__)
    np.testing.assert_allclose(node[np.arange(3), best], 1.0)
    assert steps.sum() == pytest.approx(2.0)


def test_a_long_chain_of_scores_far_apart_has_labels_whose_chances_sum_to_one() -> None:
    rng, length = np.random.default_rng(0), 20_000
    scores = 1000.0 * rng.standard_normal((length, 3))
    start, step, end = np.zeros(3), np.where(np.eye(3) > 0, 0.0, -1000.0), np.zeros(3)
    successor = np.tile(np.arange(3), (3, 1))
    offsets, label_of = np.array([0, length]), np.arange(3)
    log_z, node, starts, steps, ends = forward_backward(
        scores, offsets, start, step, end, successor, label_of, np.ones(1)
    )
    best = viterbi(scores, offsets, start, step, end, successor, label_of)[1][0]
    assert best - 1e-6 <= log_z[0] <= best + 1e-5 * best  # few paths come near to the best one
    np.testing.assert_allclose(node.sum(axis=1), 1.0, atol=1e-12)
    assert steps.sum() == pytest.approx(length - 1, abs=1e-6)
    assert starts.sum() == pytest.approx(1.0) == ends.sum()


def test_a_chain_without_a_possible_path_prefers_no_label_and_counts_nothing() -> None:
    scores, offsets, start, step, end, successor, label_of = chains(1, 3)
    scores[2] = -np.inf  # the middle of the second chain
    log_z, node, starts, steps, ends = forward_backward(
        scores, offsets, start, step, end, successor, label_of, np.ones(3)
    )
    assert np.isneginf(log_z).tolist() == [False, True, False]
    np.testing.assert_allclose(node[1:4], 1 / 3)
    np.testing.assert_allclose(node.sum(axis=1), 1.0)
    assert [starts.sum(), steps.sum(), ends.sum()] == pytest.approx([2.0, 1.0, 2.0])


def test_scores_of_labels_add_what_is_observed_and_the_margin_of_the_wrong_ones() -> None:
    cells = np.array([[0, 2], [-1, 1], [-1, -1]], np.int32)
    emission = np.arange(9.0).reshape(3, 3)
    truth = np.array([0, 1, 2])
    plain = label_scores(cells, emission, truth, 0.0)
    np.testing.assert_array_equal(plain, [emission[0] + emission[2], emission[1], np.zeros(3)])
    np.testing.assert_array_equal(label_scores(cells, emission, truth, 0.5), plain + 0.5 * (1 - np.eye(3)))


def test_expected_cells_are_weighted_sums_of_marginals() -> None:
    cells = np.array([[0, 2], [-1, 2], [1, -1]], np.int32)
    node = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    expected = np.ones((3, 2))
    add_expected(cells, node, np.array([0, 2, 3]), np.array([2.0, 3.0]), expected)
    np.testing.assert_allclose(expected, [[1.4, 2.6], [4.0, 1.0], [2.4, 3.6]])
