from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import marginbayes.network.query as questions
from marginbayes import Dag, Network
from marginbayes.data import Schema, Variable
from tests.oracles.brute import joint_table, random_dag, random_network


def conditional(
    network: Network, asked: list[int], given: dict[int, int], likelihood: dict[int, list[float]]
) -> np.ndarray:
    """P(asked | given, likelihood) by weighing every entry of the joint table."""
    joint = np.exp(joint_table(network))
    for v, values in likelihood.items():
        joint = joint * np.array(values).reshape([-1 if i == v else 1 for i in range(joint.ndim)])
    for v, x in given.items():
        mask = np.zeros(joint.shape[v])
        mask[x] = 1
        joint = joint * mask.reshape([-1 if i == v else 1 for i in range(joint.ndim)])
    rest = tuple(i for i in range(joint.ndim) if i not in asked)
    table = np.moveaxis(joint.sum(axis=rest, keepdims=True), asked, range(len(asked)))
    table = table.reshape([network.schema.cardinalities[i] for i in asked])
    return table / table.sum()


@pytest.mark.parametrize("seed", range(25))
def test_any_question_with_hard_and_soft_evidence_equals_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_dag(rng, 6, 3))
    order = [int(i) for i in rng.permutation(6)]
    asked, given, soft = order[:2], order[2 : 2 + seed % 3], order[4 : 4 + seed % 2]
    cards = network.schema.cardinalities
    evidence = {i: int(rng.integers(cards[i])) for i in given}
    likelihood = {i: rng.random(cards[i]).tolist() for i in soft}
    found = network.query(
        [f"v{i}" for i in asked],
        {f"v{i}": x for i, x in evidence.items()},
        {f"v{i}": values for i, values in likelihood.items()},
    )
    np.testing.assert_allclose(found, conditional(network, asked, evidence, likelihood), atol=1e-12)


@pytest.mark.parametrize("seed", range(15))
def test_the_most_probable_explanation_is_the_best_of_all_assignments(seed: int) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_dag(rng, 6, 3))
    v = int(rng.integers(6))
    given = {v: int(rng.integers(network.schema.cardinalities[v]))}
    joint = joint_table(network)
    best = max(
        (a for a in itertools.product(*map(range, joint.shape)) if all(a[i] == x for i, x in given.items())),
        key=lambda a: joint[a],
    )
    levels, value = network.most_probable({f"v{i}": x for i, x in given.items()})
    assert value == pytest.approx(joint[best])
    assert joint[tuple(levels[f"v{i}"] for i in range(6))] == pytest.approx(joint[best])
    assert all(levels[f"v{i}"] == x for i, x in given.items())


def test_a_query_and_the_row_kernel_agree() -> None:
    rng = np.random.default_rng(7)
    network = random_network(rng, random_dag(rng, 8, 3))
    rows = network.sample(1, rng)
    codes = rows.codes.copy()
    codes[[2, 5, 6]] = np.array(rows.cardinalities)[[2, 5, 6], None]
    given = {f"v{i}": int(codes[i, 0]) for i in (1, 3, 4, 7)}
    by_rows = network.posterior(type(rows)(codes, rows.cardinalities), "v0")[0]
    np.testing.assert_allclose(network.query("v0", given), by_rows, atol=1e-12)


def test_edge_information_is_that_of_the_joint_table() -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, Dag(tuple("cab"), ((), (0,), (0, 1))), (2, 3, 2))
    joint = np.exp(joint_table(network))

    def entropy(p: np.ndarray) -> float:
        return float(-(p * np.log(p)).sum())

    found = network.edge_information()
    full = entropy(joint)
    assert found["a", "b"] == pytest.approx(
        entropy(joint.sum(1)) + entropy(joint.sum(2)) - entropy(joint.sum((1, 2))) - full
    )
    assert found["c", "b"] == pytest.approx(
        entropy(joint.sum(0)) + entropy(joint.sum(2)) - entropy(joint.sum((0, 2))) - full
    )
    two = joint.sum(2)
    assert found["c", "a"] == pytest.approx(entropy(two.sum(0)) + entropy(two.sum(1)) - entropy(two))


def test_wrong_questions_are_refused_with_a_sentence() -> None:
    schema = Schema((Variable("y", ("no", "yes")), Variable("x", ("(-inf, 1]", "(1, inf)"), (1.0,))))
    with np.errstate(divide="ignore"):
        network = Network(schema, Dag.naive(["y", "x"]), (np.log([1.0, 0.0]), np.log([[0.5, 0.5], [0.1, 0.9]])))
    with pytest.raises(ValueError, match="'y' has no level 'maybe'; it has 'no', 'yes'"):
        network.query("x", {"y": "maybe"})
    with pytest.raises(ValueError, match="both asked for and given"):
        network.query("x", {"x": 0.5})
    with pytest.raises(ValueError, match="impossible"):
        network.query("x", {"y": "yes"})
    with pytest.raises(ValueError, match="impossible"):
        network.most_probable({"y": "yes"})
    with pytest.raises(ValueError, match="likelihood of 'y' needs 2 finite numbers"):
        network.query("x", {}, {"y": [1.0, -1.0]})
    with pytest.raises(ValueError, match="one or more different variables"):
        network.query(["x", "x"])
    with pytest.raises(KeyError, match="no variable 'z'"):
        network.query("z")
    np.testing.assert_allclose(network.query("y", {"x": 0.5}), [1.0, 0.0])


def numeric_network() -> Network:
    schema = Schema((Variable("y", ("no", "yes")), Variable("x", ("(-inf, 1]", "(1, inf)"), (1.0,))))
    return Network(schema, Dag.naive(["y", "x"]), (np.log([0.3, 0.7]), np.log([[0.5, 0.5], [0.1, 0.9]])))


@pytest.mark.parametrize("value", [2, 2.0, np.int64(2), np.float32(2)])
def test_any_number_is_evidence_for_the_interval_it_falls_into(value: Any) -> None:
    network = numeric_network()
    np.testing.assert_array_equal(network.query("y", {"x": value}), network.query("y", {"x": "(1, inf)"}))


@pytest.mark.parametrize("value", [float("nan"), None, np.nan, pd.NA])
def test_a_missing_value_is_no_evidence(value: Any) -> None:
    for ask in (lambda n: n.query("y", {"x": value}), lambda n: n.most_probable({"x": value})):
        with pytest.raises(ValueError, match="the value of 'x' is missing"):
            ask(numeric_network())


@pytest.mark.parametrize("value", [float("inf"), -np.inf])
def test_infinity_is_no_evidence(value: float) -> None:
    with pytest.raises(ValueError, match="'x' has no level"):
        numeric_network().query("y", {"x": value})


def test_soft_evidence_about_what_is_given_speaks_for_the_level_given() -> None:
    network = numeric_network()
    given = network.query("y", {"x": 2})
    np.testing.assert_allclose(network.query("y", {"x": 2}, likelihood={"x": [0.5, 0.1]}), given)
    with pytest.raises(ValueError, match="impossible"):
        network.query("y", {"x": 2}, likelihood={"x": [1, 0]})
    with pytest.raises(ValueError, match="finite"):
        network.query("y", {}, likelihood={"x": [1, np.inf]})


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("normalized", [True, False])
def test_edge_information_is_that_of_the_families_whatever_the_graph(seed: int, normalized: bool) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_dag(rng, 5, 3))
    if not normalized:
        network = replace(network, tables=tuple(table - rng.random(table.shape) for table in network.tables))
    names = network.dag.names
    for (parent, child), found in network.edge_information().items():
        others = [p for p in network.dag.parents[names.index(child)] if names[p] != parent]
        joint = network.query([*(names[p] for p in others), parent, child])
        joint = joint.reshape(-1, *joint.shape[-2:])
        apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=2, keepdims=True) / joint.sum((1, 2), keepdims=True)
        used = joint > 0
        assert found == pytest.approx(float((joint[used] * np.log(joint[used] / apart[used])).sum()), abs=1e-12)


def test_nothing_is_drawn_from_tables_that_do_not_sum_to_one() -> None:
    network = random_network(np.random.default_rng(0), random_dag(np.random.default_rng(0), 3, 2))
    network = replace(network, tables=tuple(table - 0.5 for table in network.tables))
    with pytest.raises(ValueError, match="only be drawn from tables whose rows sum to one"):
        network.sample(3)


def test_long_chains_are_asked_in_one_pass_not_one_for_each_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 120
    names = tuple(f"v{i}" for i in range(n))
    schema = Schema(tuple(Variable(name, (0, 1)) for name in names))
    dag = Dag(names, ((), (0,), *((0, i - 1) for i in range(2, n))))
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet([1, 1], size=(2,) * len(own)) for own in dag.parents]
    network = Network(schema, dag, tuple(np.log(t) for t in tables))
    asked = []
    monkeypatch.setattr(questions, "query", lambda *args: asked.append(args))
    assert len(questions.edge_information(network)) == 2 * n - 3
    assert not asked
