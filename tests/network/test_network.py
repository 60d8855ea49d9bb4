from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from marginbayes import Dag, Network
from marginbayes.data import Rows, Schema, Variable
from marginbayes.network import evaluate
from tests.oracles.brute import joint_table, log_joint, random_dag, random_network, with_holes


@pytest.mark.parametrize("seed", range(15))
def test_posteriors_with_missing_cells_equal_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_dag(rng, 6, 3))
    rows = with_holes(rng, network.sample(40, rng), float(rng.random()))
    target = int(rng.integers(6))
    expected = log_joint(network, rows, target)
    name = f"v{target}"
    np.testing.assert_allclose(network.log_joint(rows, name), expected, atol=1e-12)
    posterior = np.exp(expected - np.logaddexp.reduce(expected, axis=1, keepdims=True))
    np.testing.assert_allclose(network.posterior(rows, name), posterior, atol=1e-12)


def test_a_network_that_is_not_normalised_is_summed_as_it_is() -> None:
    rng = np.random.default_rng(2)
    full = random_network(rng, random_dag(rng, 5, 2), (2, 3, 2, 3, 2))
    network = Network(full.schema, full.dag, tuple(t - rng.random(t.shape[:-1])[..., None] for t in full.tables))
    assert full.normalized
    assert not network.normalized
    rows = with_holes(rng, full.sample(40, rng), 0.4)
    np.testing.assert_allclose(network.log_joint(rows), log_joint(network, rows), atol=1e-12)


def test_four_hundred_features_of_twenty_levels_do_not_underflow() -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, Dag.naive(["y", *(f"x{i}" for i in range(400))]), (3, *((20,) * 400)))
    rows = network.sample(20, rng)
    joint = network.log_joint(rows)
    assert joint.max() < -745  # exp of it is zero
    posterior = network.posterior(rows)
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)
    expected = network.tables[0] + sum(network.tables[i][:, rows.codes[i]].T for i in range(1, 401))
    np.testing.assert_allclose(joint, expected, rtol=1e-12)


def test_a_row_that_is_impossible_gets_a_uniform_posterior() -> None:
    schema = Schema((Variable("y", (0, 1)), Variable("x", (0, 1))))
    with np.errstate(divide="ignore"):
        network = Network(schema, Dag.naive(["y", "x"]), (np.log([0.3, 0.7]), np.log([[1.0, 0.0], [1.0, 0.0]])))
    rows = Rows(np.array([[2, 2], [0, 1]], np.uint8), (2, 2))
    np.testing.assert_allclose(network.posterior(rows), [[0.3, 0.7], [0.5, 0.5]])


def test_sampling_draws_from_the_joint() -> None:
    rng = np.random.default_rng(1)
    network = random_network(rng, random_dag(rng, 4, 2), (2, 3, 2, 2))
    rows = network.sample(200_000, 0)
    seen = np.zeros(network.schema.cardinalities)
    np.add.at(seen, tuple(rows.codes), 1 / 200_000)
    expected = np.exp(joint_table(network))
    assert np.abs(seen - expected).max() < 5 * np.sqrt(expected.max() / 200_000)
    assert np.array_equal(rows.codes, network.sample(200_000, 0).codes)


def test_the_log_likelihood_sums_over_rows_and_missing_classes() -> None:
    rng = np.random.default_rng(1)
    network = random_network(rng, random_dag(rng, 4, 2), (2, 3, 2, 2))
    rows = with_holes(rng, network.sample(30, rng), 0.3).reweighted(rng.random(30))
    joint = log_joint(network, rows)
    each = [j[c] if c < 2 else np.logaddexp.reduce(j) for j, c in zip(joint, rows.codes[0], strict=True)]
    assert network.log_likelihood(rows) == pytest.approx(np.dot(each, rows.weights))


def test_tables_are_checked_and_frozen() -> None:
    schema = Schema((Variable("y", (0, 1)), Variable("x", (0, 1, 2))))
    dag = Dag.naive(["y", "x"])
    good = (np.log([0.5, 0.5]), np.log(np.full((2, 3), 1 / 3)))
    network = Network(schema, dag, good)
    with pytest.raises(ValueError, match="read-only"):
        network.tables[0][0] = 0.0
    with pytest.raises(ValueError, match=r"'x' has the shape \(3,\), but its family needs \(2, 3\)"):
        Network(schema, dag, (good[0], good[1][0]))
    with pytest.raises(ValueError, match="'y' has a row whose probabilities sum to more than one"):
        Network(schema, dag, (np.log([0.6, 0.6]), good[1]))
    with pytest.raises(ValueError, match="different variables"):
        Network(schema, Dag.naive(["y", "z"]), good)
    assert network.n_parameters == 1 + 4
    assert repr(network) == "Network(2 variables, 1 edges, 5 free parameters)"


def test_networks_are_equal_when_all_bits_are() -> None:
    rng = np.random.default_rng(1)
    dag = random_dag(rng, 4, 2)
    one = random_network(np.random.default_rng(0), dag, (2, 3, 2, 2))
    two = random_network(np.random.default_rng(0), dag, (2, 3, 2, 2))
    other = random_network(np.random.default_rng(1), dag, (2, 3, 2, 2))
    assert one == two
    assert one != other


@pytest.mark.parametrize("plain_cells", [0, evaluate.PLAIN_CELLS])
def test_rows_do_not_influence_each_other(monkeypatch: pytest.MonkeyPatch, plain_cells: int) -> None:
    monkeypatch.setattr(evaluate, "PLAIN_CELLS", plain_cells)
    rng = np.random.default_rng(3)
    network = random_network(rng, random_dag(rng, 6, 2))
    rows = with_holes(rng, network.sample(50, rng), 0.3)
    all_at_once = network.log_joint(rows)
    one_by_one = np.concatenate([network.log_joint(rows.take(np.array([n]))) for n in range(50)])
    assert np.array_equal(all_at_once, one_by_one)


def test_no_rows_give_no_answers() -> None:
    network = random_network(np.random.default_rng(0), Dag.naive(["y", "x"]), (2, 2))
    empty = Rows(np.zeros((2, 0), np.uint8), (2, 2))
    assert network.posterior(empty).shape == (0, 2)
    assert network.log_joint(empty).shape == (0, 2)


def test_plans_for_answers_are_not_copied_with_a_network() -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, random_dag(rng, 6, 2))
    size = len(pickle.dumps(network))
    rows = network.sample(10, rng)
    expected = network.posterior(rows)
    assert network.normalized
    for again in (pickle.loads(pickle.dumps(network)), copy.deepcopy(network)):
        assert again == network
        np.testing.assert_array_equal(again.posterior(rows), expected)
    assert len(pickle.dumps(network)) < size + 100


def test_a_row_of_a_pandas_frame_is_evidence() -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, random_dag(rng, 4, 2))
    given = {name: network.schema[name].levels[0] for name in network.schema.names[1:]}
    series = pd.Series(given, dtype=object)
    np.testing.assert_array_equal(network.query("v0", series), network.query("v0", given))
    assert network.most_probable(series) == network.most_probable(given)


@pytest.mark.parametrize("n", [-1, 2.5, "3", True])
def test_what_is_no_number_of_rows_cannot_be_drawn(n: object) -> None:
    net = random_network(np.random.default_rng(0), Dag.naive(["y", "a"]))
    with pytest.raises(ValueError, match=f"n={n!r} must be a whole number, at least 0"):
        net.sample(n)
    assert len(net.sample(0)) == 0
