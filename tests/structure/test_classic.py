from __future__ import annotations

import numpy as np
import pytest

from marginbayes import Dag
from marginbayes.data import Rows, Schema, Variable
from marginbayes.structure import ChowLiuTAN, Fixed, NaiveBayes
from tests.oracles.brute import random_network


def chain(n: int = 5) -> Dag:
    return Dag(("class", *(f"x{i}" for i in range(1, n))), ((), (0,), *((0, i) for i in range(1, n - 1))))


def test_tan_recovers_the_tree_that_made_the_data() -> None:
    dag = chain(7)
    network = random_network(np.random.default_rng(3), dag, (2, *((3,) * 6)))
    found = ChowLiuTAN().learn(network.schema, network.sample(20000, 0)).dag
    assert found == dag


def test_the_root_only_turns_the_edges() -> None:
    network = random_network(np.random.default_rng(3), chain(7), (2, *((3,) * 6)))
    rows = network.sample(2000, 0)
    first = ChowLiuTAN().learn(network.schema, rows).dag
    other = ChowLiuTAN(root="x4").learn(network.schema, rows).dag
    assert other.parents_of("x4") == ("class",)
    assert {frozenset(e) for e in other.edges} == {frozenset(e) for e in first.edges}
    with pytest.raises(ValueError, match="root='nope' is not a feature"):
        ChowLiuTAN(root="nope").learn(network.schema, rows)


def test_constant_features_stay_alone() -> None:
    schema = Schema((Variable("y", (0, 1)), Variable("a", (0, 1)), Variable("b", (0,)), Variable("c", (0, 1))))
    codes = np.array([[0, 1] * 10, [0, 0, 1, 1] * 5, [0] * 20, [0, 0, 1, 1] * 5], np.uint8)
    dag = ChowLiuTAN().learn(schema, Rows(codes, schema.cardinalities)).dag
    assert dag.parents_of("b") == ("y",)
    assert dag.parents_of("c") == ("y", "a")


def test_a_fixed_graph_is_taken_by_name() -> None:
    schema = Schema((Variable("y", (0, 1)), Variable("a", (0, 1)), Variable("b", (0, 1))))
    rows = Rows(np.zeros((3, 1), np.uint8), (2, 2, 2))
    given = Dag.from_edges([("y", "b"), ("b", "a")], names=["b", "a", "y"])
    assert Fixed(given).learn(schema, rows).dag.edges == (("b", "a"), ("y", "b"))
    with pytest.raises(ValueError, match=r"not in the graph \['b'\], not in the names \['z'\]"):
        Fixed(Dag.naive(["y", "a", "z"])).learn(schema, rows)


def test_naive_bayes_has_the_class_as_only_parent() -> None:
    schema = Schema((Variable("y", (0, 1)), Variable("a", (0, 1)), Variable("b", (0, 1))))
    dag = NaiveBayes().learn(schema, Rows(np.zeros((3, 1), np.uint8), (2, 2, 2))).dag
    assert dag.edges == (("y", "a"), ("y", "b"))
