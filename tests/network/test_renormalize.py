from __future__ import annotations

import numpy as np
import pytest

from marginbayes import Dag, Network
from marginbayes.graph.renormalize import is_renormalizable, unmarried_parents
from marginbayes.network.renormalize import renormalize
from tests.oracles.brute import random_dag, random_network


def posteriors(cards: tuple[int, ...], dag: Dag, tables: list[np.ndarray]) -> np.ndarray:
    """P(first variable | all others) for every assignment, from tables of any size."""
    joint = np.zeros(cards)
    for at in np.ndindex(*cards):
        joint[at] = sum(t[tuple(at[p] for p in dag.parents[i])][at[i]] for i, t in enumerate(tables))
    joint -= joint.max(axis=0)
    return np.exp(joint) / np.exp(joint).sum(axis=0)


def test_every_renormalisable_graph_keeps_its_decisions() -> None:
    tried = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        dag = random_dag(rng, 5, 3)
        if not is_renormalizable(dag):
            continue
        network = random_network(rng, dag, (2, 3, 2, 2, 3))
        wild = [t + rng.normal(scale=2, size=t.shape) for t in network.tables]
        tables = renormalize(dag, wild)
        cards = network.schema.cardinalities
        assert Network(network.schema, dag, tuple(tables)).normalized
        np.testing.assert_allclose(posteriors(cards, dag, tables), posteriors(cards, dag, wild), atol=1e-9)
        tried += 1
    assert tried > 50


def test_weights_beyond_all_probabilities_still_make_rows_that_sum_to_one() -> None:
    rng = np.random.default_rng(0)
    dag = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 1, 2)))
    network = random_network(rng, dag, (3, 4, 2, 5))
    huge = [t + rng.normal(scale=1e12, size=(*t.shape[:-1], 1)) for t in network.tables]
    assert Network(network.schema, dag, tuple(renormalize(dag, huge))).normalized


def test_trees_and_2_trees_under_the_class_are_renormalisable() -> None:
    assert is_renormalizable(Dag.naive(["y", "a", "b"]))
    assert is_renormalizable(Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 1, 2))))


def test_parents_that_are_not_joined_are_named() -> None:
    # A child of the class with two further parents that are not joined to each other (the failing graph of Figure 2).
    dag = Dag.from_edges([("y", "x"), ("a", "x"), ("b", "x"), ("y", "a"), ("y", "b")], names=["y", "a", "b", "x"])
    assert unmarried_parents(dag) == ("a", "b", "x")
    with pytest.raises(ValueError, match="'a' and 'b' are parents of 'x' but not joined"):
        renormalize(dag, [np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2, 2, 2))])


def test_families_away_from_the_class_do_not_matter() -> None:
    dag = Dag.from_edges([("y", "x"), ("a", "c"), ("b", "c")], names=["y", "x", "a", "b", "c"])
    assert is_renormalizable(dag)
