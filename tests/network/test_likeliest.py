"""The likeliest of all networks that decide alike: against a generic convex solver, and its optimality conditions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import log_softmax

from marginbayes import Dag, Network
from marginbayes.data import Rows
from marginbayes.graph.renormalize import is_renormalizable
from marginbayes.network.likeliest import likeliest
from marginbayes.network.renormalize import renormalize
from marginbayes.parameters import MaximumLikelihood
from tests.oracles.brute import joint_table, random_dag, random_network

NAIVE = Dag.naive(list("yabc"))
TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (2, 0)))
TWO_TREE = Dag(tuple("yabc"), ((), (0,), (0, 1), (1, 0, 2)))
PARENTED = Dag(tuple("yabc"), ((1,), (), (0, 1), (2,)))
GRAPHS = pytest.mark.parametrize("dag", [NAIVE, TAN, TWO_TREE, PARENTED], ids=["nb", "tan", "2-tree", "class below a"])


def wild_tables(rng: np.random.Generator, network: Network) -> list[np.ndarray]:
    return [t + rng.normal(scale=1.5, size=t.shape) for t in network.tables]


def decisions(network: Network) -> np.ndarray:
    """log P(class | all features) for every combination, one axis for each variable."""
    return log_softmax(joint_table(network), axis=0)


def expected_log_likelihood(reference: Network, network: Network) -> float:
    """Mean over rows drawn from the reference, by enumeration."""
    return float((np.exp(joint_table(reference)) * joint_table(network)).sum())


def network_of(reference: Network, tables: list[np.ndarray]) -> Network:
    return Network(reference.schema, reference.dag, tuple(tables))


def literal_optimum(reference: Network, tables: list[np.ndarray]) -> float:
    """Greatest expected log-likelihood over all subnormal tables with these decisions, by a generic solver.

    Every table is free; one equation for each combination of features and class says that the decision stays.
    """
    cvxpy = pytest.importorskip("cvxpy")
    cards, dag = reference.schema.cardinalities, reference.dag
    free = [cvxpy.Variable(t.size) for t in tables]

    def position(i: int, at: tuple[int, ...]) -> int:
        return int(np.ravel_multi_index([at[v] for v in (*dag.parents[i], i)], tables[i].shape))

    def score(at: tuple[int, ...], change: bool) -> object:
        return sum(
            free[i][position(i, at)] if change else tables[i].ravel()[position(i, at)] for i in range(len(cards))
        )

    rules = [
        cvxpy.log_sum_exp(f[k * t.shape[-1] : (k + 1) * t.shape[-1]]) <= 0
        for f, t in zip(free, tables, strict=True)
        for k in range(t.size // t.shape[-1])
    ]
    for features in itertools.product(*map(range, cards[1:])):
        for c in range(1, cards[0]):
            here, there = (c, *features), (0, *features)
            kept = score(here, False) - score(there, False)
            rules.append(score(here, True) - score(there, True) == kept)
    chances = np.exp(joint_table(reference))
    counts = [np.zeros(t.size) for t in tables]
    for at in np.ndindex(*cards):
        for i in range(len(cards)):
            counts[i][position(i, at)] += chances[at]
    goal = cvxpy.Maximize(sum(n @ f for n, f in zip(counts, free, strict=True)))
    return float(cvxpy.Problem(goal, rules).solve(solver="CLARABEL"))


@GRAPHS
@pytest.mark.parametrize("seed", range(2))
def test_no_network_with_the_same_decisions_is_likelier_says_a_generic_solver(dag: Dag, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reference = random_network(rng, dag, (3, 2, 2, 3))
    tables = wild_tables(rng, reference)
    found = network_of(reference, likeliest(reference, tables).tables)
    best = literal_optimum(reference, tables)
    assert expected_log_likelihood(reference, found) == pytest.approx(best, abs=1e-6)


def test_decisions_stay_and_the_features_of_each_family_are_distributed_as_in_the_reference() -> None:
    tried = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        dag = random_dag(rng, 4, 3)
        if not is_renormalizable(dag):
            continue
        reference = random_network(rng, dag, (2, 3, 2, 2))
        tables = wild_tables(rng, reference)
        result = likeliest(reference, tables)
        found, plain = (network_of(reference, t) for t in (result.tables, renormalize(dag, tables)))
        assert found.normalized
        np.testing.assert_allclose(decisions(found), decisions(plain), atol=1e-9)
        chances = [np.exp(joint_table(n)) for n in (found, reference)]
        for i, parents in enumerate(dag.parents):
            rest = tuple({*range(4)} - {*parents, i} | {0})
            np.testing.assert_allclose(*(p.sum(axis=rest) for p in chances), atol=1e-6)
        likelihoods = [expected_log_likelihood(reference, n) for n in (found, plain)]
        assert likelihoods[0] >= likelihoods[1] - 1e-12
        tried += 1
    assert tried > 15


@GRAPHS
def test_the_gain_is_that_in_expected_log_likelihood(dag: Dag) -> None:
    rng = np.random.default_rng(5)
    reference = random_network(rng, dag, (2, 3, 2, 2))
    # The tables of families without the class are the reference's on both sides.
    tables = [
        t if 0 in (i, *dag.parents[i]) else reference.tables[i] for i, t in enumerate(wild_tables(rng, reference))
    ]
    result = likeliest(reference, tables)
    values = [
        expected_log_likelihood(reference, network_of(reference, t)) for t in (result.tables, renormalize(dag, tables))
    ]
    assert result.gain == pytest.approx(values[0] - values[1], abs=1e-9)
    assert result.residual < 1e-7


@GRAPHS
def test_a_network_in_disguise_is_found_again(dag: Dag) -> None:
    """Terms that do not depend on the class hide a network; being likeliest, it is what comes back."""
    rng = np.random.default_rng(7)
    reference = random_network(rng, dag, (2, 3, 2, 2))
    disguised = []
    for i, table in enumerate(reference.tables):
        family = [*dag.parents[i], i]
        shape = [1 if v == 0 else n for v, n in zip(family, table.shape, strict=True)]
        disguised.append(table + rng.normal(scale=2.0, size=shape))
    found = likeliest(reference, disguised, tol=1e-12).tables
    for a, b in zip(found, reference.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_likelier_than_plain_renormalisation_on_the_rows_themselves() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        drawn = random_network(rng, TAN, (2, 2, 3, 2))
        rows = drawn.sample(400, rng)
        reference = MaximumLikelihood(1e-6).learn(drawn.schema, TAN, rows).network
        tables = wild_tables(rng, reference)
        found, plain = likeliest(reference, tables).tables, renormalize(TAN, tables)
        assert network_of(reference, found).log_likelihood(rows) > network_of(reference, plain).log_likelihood(rows)


def test_equal_answers_for_complete_rows_and_others_where_a_feature_is_missing() -> None:
    """A term of one feature moves P(class | the other feature) from 0.63 to 0.70; the data decides between them."""
    dag = Dag.naive(["y", "x", "z"])
    rng = np.random.default_rng(0)
    reference = random_network(rng, dag, (2, 2, 2))
    reference = network_of(
        reference,
        [np.log([0.5, 0.5]), np.log([[0.8, 0.2], [0.4, 0.6]]), np.log([[0.63, 0.37], [0.37, 0.63]])],
    )
    y, x, z = reference.tables
    other = network_of(reference, renormalize(dag, [y, x + np.array([0.9, 0.0]), z]))
    np.testing.assert_allclose(decisions(other), decisions(reference), atol=1e-12)
    only_z = Rows(np.array([[2], [2], [0]], np.uint8), (2, 2, 2))
    answers = [n.posterior(only_z)[0, 0] for n in (reference, other)]
    assert answers == pytest.approx([0.63, 0.70], abs=0.005)
    chosen = network_of(reference, likeliest(reference, list(other.tables)).tables)
    assert chosen.posterior(only_z)[0, 0] == pytest.approx(0.63, abs=1e-6)


def test_what_it_cannot_do_is_refused_by_name() -> None:
    unmarried = Dag(tuple("yab"), ((), (), (0, 1)))
    rng = np.random.default_rng(0)
    reference = random_network(rng, unmarried, (2, 2, 2))
    with pytest.raises(ValueError, match="are parents of 'b' but not joined"):
        likeliest(reference, reference.tables)
    zeros = random_network(rng, NAIVE, (2, 2, 2, 2), zeros=0.4)
    with pytest.raises(ValueError, match="smoothing > 0"):
        likeliest(zeros, zeros.tables)


def test_a_class_without_children_keeps_its_table() -> None:
    alone = random_network(np.random.default_rng(1), Dag(tuple("ya"), ((), ())), (2, 3))
    result = likeliest(alone, [alone.tables[0] - 1.0, alone.tables[1]])
    assert (result.residual, result.gain, result.iterations) == (0.0, 0.0, 0)
    for a, b in zip(result.tables, alone.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
