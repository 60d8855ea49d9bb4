"""Sums over walks through pairs of labels, term by term, beside those by a matrix over all states."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from marginbayes.sequence import ChainModel, likeliest, renormalize
from marginbayes.sequence.likeliest import likeliest_chain
from marginbayes.sequence.pairs import PairSteps, UnsettledError
from marginbayes.sequence.renormalize import NEAREST, log_inverse_times, renormalize_chain
from tests.oracles.labellings import chain_sample

MANY = 8


def matrix_of(model: ChainModel, log_step: np.ndarray) -> np.ndarray:
    """Logs of the steps as a square matrix over states."""
    matrix = np.full((model.n_states, model.n_states), -np.inf)
    for state in range(model.n_states):
        matrix[state, model.successor[state]] = log_step[state]
    return matrix


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.floats(0.1, 3.0), st.floats(1.01, 100.0))
def test_sums_and_mean_length_are_those_of_the_matrix(seed: int, n_labels: int, spread: float, mean: float) -> None:
    rng, model = np.random.default_rng(seed), ChainModel(n_labels, (2,), 1, 2)
    log_step, log_end = rng.normal(0, spread, (model.n_states, n_labels)), rng.normal(0, spread, model.n_states)
    log_start = rng.normal(0, spread, n_labels)
    walks = PairSteps.of(model, log_step, 20_000)
    log_scale = walks.scale_for(log_end, log_start, mean, NEAREST)
    matrix = matrix_of(model, log_step) + log_scale
    assume(np.abs(np.linalg.eigvals(np.exp(matrix))).max() < 1 - 1e-3)  # else no way tells many digits
    start = np.concatenate([log_start, np.full(model.n_states - n_labels, -np.inf)])
    ahead, behind = walks.ahead(log_end, log_scale), PairSteps.of(model, log_step + log_scale, 20_000).behind(log_start)
    np.testing.assert_allclose(ahead, log_inverse_times(matrix, log_end), atol=1e-9)
    np.testing.assert_allclose(behind, log_inverse_times(matrix.T, start), atol=1e-9)
    uses = np.exp(behind + ahead - np.logaddexp.reduce(log_start + ahead[:n_labels]))
    assert uses.sum() == pytest.approx(mean, rel=1e-9)


def test_a_sum_that_is_infinite_is_infinite() -> None:
    model = ChainModel(3, (2,), 1, 2)
    walks = PairSteps.of(model, np.full((model.n_states, 3), -np.log(3.0)), 100)
    assert np.isfinite(walks.ahead(np.zeros(model.n_states), -1e-3)).all()
    assert np.isposinf(walks.ahead(np.zeros(model.n_states), 1e-3)).all()


def test_steps_that_are_thousands_of_nats_apart_lose_no_digit() -> None:
    rng, model = np.random.default_rng(0), ChainModel(4, (2,), 1, 2)
    walks = PairSteps.of(model, rng.normal(0, 1000, (model.n_states, 4)), 10)
    values = rng.normal(0, 1000, (4, 4))
    ahead = np.logaddexp.reduce(walks.inner + values, axis=2)
    behind = np.logaddexp.reduce(walks.inner + values[:, :, None], axis=0)
    np.testing.assert_allclose(walks._before(values), ahead, rtol=1e-14)
    np.testing.assert_allclose(walks._after(values), behind, rtol=1e-14)


def test_pairs_that_take_turns_are_summed_up_unless_that_takes_too_long() -> None:
    model = ChainModel(2, (2,), 1, 2)
    turns = np.where(model.label_of[:, None] == np.arange(2), -30.0, 0.0)  # a, b, a, b, ...
    ends, start = np.array([0.0, 0.0, 0.0, 3.0, 0.0, 0.0]), np.array([0.0, -1.0])
    walks = PairSteps.of(model, turns, 1000)
    matrix = matrix_of(model, turns)
    np.testing.assert_allclose(walks.ahead(ends, -0.1), log_inverse_times(matrix - 0.1, ends), atol=1e-9)
    padded = np.concatenate([start, np.full(4, -np.inf)])
    by_matrix = renormalize._scale_for(matrix, ends, padded, 10.0)
    assert walks.scale_for(ends, start, 10.0, NEAREST) == pytest.approx(by_matrix, abs=1e-9)
    with pytest.raises(UnsettledError):
        walks.ahead(ends, -1e-6)
    with pytest.raises(UnsettledError):
        walks.scale_for(ends, start, 1e6, NEAREST)
    with pytest.raises(UnsettledError):
        PairSteps.of(model, np.where(turns < 0, -np.inf, turns), 1000)


def test_proper_tables_of_many_labels_are_those_by_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ChainModel(MANY, (3, 2), 1, 2)
    assert renormalize.MANY_LABELS <= MANY
    weights = np.random.default_rng(0).normal(0, 2, model.n_weights)
    by_terms = renormalize_chain(model, weights, 7.5)
    monkeypatch.setattr(renormalize, "MOST_TERMS", 1)  # as where they do not settle
    np.testing.assert_allclose(by_terms, renormalize_chain(model, weights, 7.5), atol=1e-9)


def test_the_likeliest_tables_of_many_labels_are_those_by_the_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = chain_sample(2, (3, 5, 2, 4), order=2, n_labels=MANY)
    weights = np.random.default_rng(0).normal(0, 1, examples.model.n_weights)
    start, steps, _ = examples.model.tables(renormalize_chain(examples.model, weights, 3.5))
    factor = np.random.default_rng(1).normal(-0.1, 0.05, MANY)
    by_terms, tables = (
        likeliest._chain_sums(examples.model, start, steps, factor),
        likeliest_chain(examples, weights, 3.5),
    )
    monkeypatch.setattr(likeliest, "MANY_LABELS", MANY + 1)
    by_matrix = likeliest._chain_sums(examples.model, start, steps, factor)
    assert np.isfinite(by_matrix[0])
    np.testing.assert_allclose(by_terms[0], by_matrix[0], atol=1e-10)
    np.testing.assert_allclose(by_terms[1][0], by_matrix[1][0], atol=1e-10)
    np.testing.assert_allclose(tables.weights, likeliest_chain(examples, weights, 3.5).weights, atol=1e-4)
    assert likeliest._chain_sums(examples.model, start, steps, factor + 9.0)[0] == np.inf
