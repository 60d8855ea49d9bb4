"""Renormalisation to one tied table with an end, for every length."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes.sequence import ChainModel
from marginbayes.sequence.renormalize import _product, log_inverse_times, renormalize_chain
from tests.oracles.labellings import tree_sample


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.floats(0.1, 20.0), st.floats(1.01, 300.0))
def test_labels_given_observations_do_not_change_at_any_length(
    seed: int, order: int, spread: float, mean: float
) -> None:
    rng = np.random.default_rng(seed)
    model = ChainModel(3, (2, 3), 3, order)
    weights = rng.normal(0, spread, model.n_weights)
    proper = renormalize_chain(model, weights, mean)
    np.testing.assert_allclose(model.rows.log_sums(proper), 0.0, atol=1e-12)
    lengths = [1, 2, 3, 7, 30]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = np.array([rng.integers(0, c, offsets[-1]) for c in model.cardinalities])
    cells = model.cells(codes, offsets)
    before, _ = model.marginals(weights, cells, offsets)
    after, _ = model.marginals(proper, cells, offsets)
    np.testing.assert_allclose(after, before, atol=1e-9)


def test_the_probabilities_of_all_sequences_of_all_lengths_sum_to_one_with_the_mean_length_asked_for() -> None:
    model = ChainModel(2, (2,))
    weights = np.random.default_rng(0).normal(size=model.n_weights)
    proper = renormalize_chain(model, weights, 1.7)
    total, mean = 0.0, 0.0
    for length in range(1, 13):
        sequences = np.array(list(product((0, 1), repeat=length))).ravel()
        offsets = np.arange(0, len(sequences) + 1, length)
        _, log_z = model.marginals(proper, model.cells(sequences[None], offsets), offsets)
        total += np.exp(log_z).sum()
        mean += length * np.exp(log_z).sum()
    assert total == pytest.approx(1.0, abs=1e-3)
    assert mean == pytest.approx(1.7, abs=1e-2)
    # What is left are the longer ones: the chain of labels alone tells the exact mean.
    start, steps, _ = model.tables(proper)
    visits = np.linalg.solve(np.eye(2) - np.exp(steps[:, :2]).T, np.exp(start))
    assert visits.sum() == pytest.approx(1.7, rel=1e-9)


def test_sums_over_all_powers_are_those_of_the_inverse() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.random((4, 4))
    matrix *= 0.95 / np.abs(np.linalg.eigvals(matrix)).max()
    vector = rng.random(4)
    expected = np.linalg.solve(np.eye(4) - matrix, vector)
    np.testing.assert_allclose(np.exp(log_inverse_times(np.log(matrix), np.log(vector))), expected, rtol=1e-11)
    with pytest.raises(ValueError, match="infinite"):
        log_inverse_times(np.log(matrix * 2), np.log(vector))


@pytest.mark.parametrize("spread", [1.0, 50.0, 400.0])
def test_squares_of_matrices_of_logarithms_lose_no_digit(spread: float) -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(0, spread, (6, 6))
    matrix[rng.random((6, 6)) < 0.4] = -np.inf
    matrix[:, 2] = -np.inf  # a state that nothing leads to
    found = _product(matrix)
    for i, j in product(range(6), repeat=2):
        exact = np.logaddexp.reduce(matrix[i] + matrix[:, j])
        assert found[i, j] == pytest.approx(exact, rel=1e-13, abs=1e-12)


def test_weights_of_hundreds_of_nats_neither_overflow_nor_lose_a_digit() -> None:
    model = ChainModel(2, (2,))
    weights = np.array([-300.0, 200.0, 500.0, -400.0, 0.0, 100.0, 300.0, -700.0, 50.0, -50.0, 80.0, 10.0])
    proper = renormalize_chain(model, weights[: model.n_weights], 5.0)
    assert np.isfinite(proper).all()
    np.testing.assert_allclose(model.rows.log_sums(proper), 0.0, atol=1e-9)
    cells, offsets = model.cells(np.array([[0, 1, 1, 0]]), np.array([0, 4])), np.array([0, 4])
    assert model.decode(proper, cells, offsets)[0].tolist() == model.decode(weights, cells, offsets)[0].tolist()


def test_a_mean_length_of_one_is_refused() -> None:
    model = ChainModel(2, (2,))
    with pytest.raises(ValueError, match="must be more than 1"):
        renormalize_chain(model, np.zeros(model.n_weights), 1.0)


@pytest.mark.parametrize("parents", [(-1, 0, 0), (-1, 0, 1), (-1, -1, 0)])
def test_a_tree_renormalises_bottom_up_without_changing_an_answer(parents: tuple[int, ...]) -> None:
    examples = tree_sample(0, 10, parents)
    # Only complete rows keep their answers.
    codes = np.random.default_rng(0).integers(0, 2, (2, 10))
    model = examples.model
    weights = np.random.default_rng(1).normal(0, 3, model.n_weights)
    proper = model.renormalize(weights)
    np.testing.assert_allclose(model.rows.log_sums(proper), 0.0, atol=1e-12)
    cells = model.cells(codes)
    for before, after in zip(
        model.marginals(weights, [cells @ own for own in model.tables(weights)[1]])[0],
        model.marginals(proper, [cells @ own for own in model.tables(proper)[1]])[0],
        strict=True,
    ):
        np.testing.assert_allclose(after, before, atol=1e-12)
