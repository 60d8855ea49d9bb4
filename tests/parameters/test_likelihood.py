from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from marginbayes import Dag, Network
from marginbayes.data import Rows
from marginbayes.network.smoothing import log_table
from marginbayes.parameters import MaximumLikelihood, likelihood
from marginbayes.parameters.likelihood import expectation
from tests.oracles.brute import log_joint, random_network, with_holes

COUNTS = np.array([[[3, 1, 0], [0, 0, 0]], [[0, 4, 4], [1, 0, 0]]])


def test_laplace_adds_one_to_every_cell() -> None:
    expected = [[[4 / 7, 2 / 7, 1 / 7], [1 / 3] * 3], [[1 / 11, 5 / 11, 5 / 11], [2 / 4, 1 / 4, 1 / 4]]]
    np.testing.assert_allclose(np.exp(log_table(COUNTS, "laplace", 1.0)), expected)


def test_equivalent_sample_size_spreads_over_all_cells() -> None:
    np.testing.assert_allclose(np.exp(log_table(COUNTS, "ess", 12.0)), np.exp(log_table(COUNTS, "laplace", 1.0)))


def test_dirichlet_pulls_a_row_towards_the_marginal() -> None:
    # Marginal counts 4, 5, 4 and one more each: 5/16, 6/16, 5/16.
    found = np.exp(log_table(COUNTS, "dirichlet", 5.0))
    np.testing.assert_allclose(found[0, 1], [5 / 16, 6 / 16, 5 / 16])
    np.testing.assert_allclose(found[0, 0], (np.array([3, 1, 0]) + 5 * np.array([5, 6, 5]) / 16) / 9)


def test_the_floor_replaces_zeros_only() -> None:
    found = np.exp(log_table(COUNTS, "floor", 1e-5))
    np.testing.assert_allclose(found[0, 0], np.array([0.75, 0.25, 1e-5]) / (1 + 1e-5))
    np.testing.assert_allclose(found[0, 1], [1 / 3] * 3)


def test_no_smoothing_gives_frequencies_and_a_uniform_row_where_nothing_was_seen() -> None:
    found = np.exp(log_table(COUNTS, "laplace", 0.0))
    np.testing.assert_allclose(found, [[[0.75, 0.25, 0], [1 / 3] * 3], [[0, 0.5, 0.5], [1, 0, 0]]])


def tan_with_holes(seed: int = 0) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    dag = Dag(tuple("cxyz"), ((), (0,), (0, 1), (0, 2)))
    network = random_network(rng, dag, (2, 3, 2, 3))
    return network, with_holes(rng, network.sample(150, rng), 0.3, keep_class=True)


def test_available_cases_count_the_rows_that_have_the_whole_family() -> None:
    network, rows = tan_with_holes()
    learned = MaximumLikelihood().learn(network.schema, network.dag, rows).network
    there = (rows.codes[1] < 3) & (rows.codes[2] < 2)
    for c, x, y in np.ndindex(2, 3, 2):
        cell = there & (rows.codes[0] == c) & (rows.codes[1] == x)
        expected = ((cell & (rows.codes[2] == y)).sum() + 1) / (cell.sum() + 2)
        assert np.exp(learned.tables[2][c, x, y]) == pytest.approx(expected)


def test_em_never_lowers_its_objective_and_beats_available_cases() -> None:
    for seed in range(5):
        network, rows = tan_with_holes(seed)
        path = MaximumLikelihood(missing="em").learn(network.schema, network.dag, rows).path
        assert len(path) > 2
        assert (np.diff(path) >= -1e-9).all()
        assert path[-1] > path[0]


def test_em_that_is_interrupted_keeps_its_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    network, rows = tan_with_holes()
    left = iter(range(3))

    def struck(*args: Any) -> Any:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return expectation(*args)

    monkeypatch.setattr(likelihood, "expectation", struck)
    found = MaximumLikelihood(missing="em", tol=0.0).learn(network.schema, network.dag, rows)
    monkeypatch.undo()
    three = MaximumLikelihood(missing="em", tol=0.0, max_iter=3).learn(network.schema, network.dag, rows)
    assert found.interrupted
    assert not three.interrupted
    assert found.network == three.network
    assert found.path == three.path


def test_em_finds_the_optimum_that_a_generic_optimiser_finds() -> None:
    network, rows = tan_with_holes()
    learner = MaximumLikelihood(missing="em", tol=1e-13, max_iter=5000)
    result = learner.learn(network.schema, network.dag, rows)
    shapes = [t.shape for t in network.tables]
    sizes = np.cumsum([0, *(int(np.prod(s)) for s in shapes)])

    def objective(flat: np.ndarray) -> float:
        tables = [log_softmax(flat[a:b].reshape(s), axis=-1) for a, b, s in zip(sizes, sizes[1:], shapes, strict=False)]
        candidate = Network(network.schema, network.dag, tuple(tables))
        return -(candidate.log_likelihood(rows) + sum(t.sum() for t in tables))

    start = np.concatenate([t.reshape(-1) for t in result.network.tables])
    found = minimize(objective, start + 0.3 * np.sin(np.arange(len(start))), method="BFGS", options={"gtol": 1e-5})
    assert result.path[-1] == pytest.approx(-found.fun, abs=1e-5)


def test_em_counts_are_expectations_over_all_completions() -> None:
    rng = np.random.default_rng(4)
    network, rows = tan_with_holes(4)
    rows = with_holes(rng, rows.take(np.arange(25)), 0.1).reweighted(rng.random(25))
    counts, likelihood = expectation(network, rows)
    cards = rows.cardinalities
    expected = [np.zeros(t.shape) for t in network.tables]
    for codes, weight in zip(rows.codes.T, rows.weights, strict=True):
        free = [range(c) if x == c else [int(x)] for x, c in zip(codes, cards, strict=True)]
        cells = np.array(np.meshgrid(*free, indexing="ij")).reshape(4, -1)
        logs = log_joint(network, Rows(cells.astype(np.uint8), cards))[np.arange(cells.shape[1]), cells[0]]
        shares = np.exp(logs - np.logaddexp.reduce(logs)) * weight
        for i, parents in enumerate(network.dag.parents):
            np.add.at(expected[i], tuple(cells[[*parents, i]]), shares)
    for i, parents in enumerate(network.dag.parents):
        # A family whose child is missing and has nothing observed below adds nothing to what can be learned; where the
        # kernel leaves such rows out, rows of the table lose in proportion.
        gap = expected[i] - counts[i]
        assert (gap > -1e-9).all()
        left_out = gap.sum(axis=-1, keepdims=True) * np.exp(network.tables[i])
        np.testing.assert_allclose(gap, left_out, atol=1e-9, err_msg=str(parents))
    assert likelihood == pytest.approx(network.log_likelihood(rows))


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (MaximumLikelihood(kind="magic"), "kind='magic' is not known; choose one of 'laplace'"),
        (MaximumLikelihood(missing="guess"), "missing='guess'"),
        (MaximumLikelihood(smoothing=-1.0), "smoothing=-1.0"),
        (MaximumLikelihood(kind="floor", missing="em"), "kind='floor' is none"),
    ],
)
def test_wrong_choices_are_refused_by_name(learner: MaximumLikelihood, message: str) -> None:
    network, rows = tan_with_holes()
    with pytest.raises(ValueError, match=message):
        learner.learn(network.schema, network.dag, rows)
