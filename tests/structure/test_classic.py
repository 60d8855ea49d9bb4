from __future__ import annotations

import itertools

import numpy as np
import pytest

from marginbayes import Dag
from marginbayes.data import Rows, Schema, Variable
from marginbayes.scores import conditional_mutual_information
from marginbayes.structure import ChowLiuTAN, Constraints, Fixed, NaiveBayes
from marginbayes.structure.constraints import Rules
from tests.oracles.brute import random_network
from tests.oracles.structure import violates


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


def test_tan_obeys_constraints_and_is_the_best_that_does() -> None:
    names = ("y", "a", "b", "c", "d")
    schema = Schema(tuple(Variable(n, (0, 1, 2)) for n in names))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = Rows(rng.integers(0, 3, (5, 60)).astype(np.uint8), (3,) * 5)
        constraints = Constraints(
            required=[("a", "b")] if seed % 2 else [],
            forbidden=[("b", "c"), ("y", "d")] if seed % 3 else [],
            tiers=[["a", "b"], ["c"]],
        )
        dag = ChowLiuTAN(constraints=constraints).learn(schema, rows).dag
        information = conditional_mutual_information(rows)
        rules = constraints.compile(names, 1)
        assert not violates(rules, [() if not i else _feature_parents(dag, i, rules) for i in range(5)])

        def value(parents: tuple[int, ...], information: np.ndarray = information) -> float:
            return sum(information[p - 1, i] for i, p in enumerate(parents) if p > 0)

        feasible = []
        for parents in itertools.product(*[[-1, 1, 2, 3, 4]] * 4):
            own: list[tuple[int, ...] | None] = [(), *(() if p < 0 else (p,) for p in parents)]
            for i in rules.dropped:
                own[i] = None if parents[i - 1] < 0 and i not in parents else (0, 0, 0)
            if any(p == i + 1 for i, p in enumerate(parents)) or violates(rules, own):
                continue
            try:
                Dag(names, tuple(p or () for p in own))
            except ValueError:
                continue
            feasible.append(parents)
        found = tuple(next((p for p in dag.parents[i] if p), -1) for i in range(1, 5))
        assert value(found) == pytest.approx(max(map(value, feasible)))


def _feature_parents(dag: Dag, i: int, rules: Rules) -> tuple[int, ...] | None:
    return None if i in rules.dropped else tuple(p for p in dag.parents[i] if p)


def test_naive_bayes_drops_what_must_be_dropped() -> None:
    schema = Schema((Variable("y", (0, 1)), Variable("a", (0, 1)), Variable("b", (0, 1))))
    rows = Rows(np.zeros((3, 1), np.uint8), (2, 2, 2))
    dag = NaiveBayes(Constraints(forbidden=[("y", "a")])).learn(schema, rows).dag
    assert dag.edges == (("y", "b"),)
    with pytest.raises(ValueError, match="'b' has 1 required feature parents, but k=0"):
        NaiveBayes(Constraints(required=[("a", "b")])).learn(schema, rows)


def test_a_root_that_the_constraints_speak_against_is_refused() -> None:
    schema = Schema(tuple(Variable(n, (0, 1)) for n in ("y", "a", "b", "c")))
    rows = Rows(np.random.default_rng(0).integers(0, 2, (4, 50)).astype(np.uint8), (2,) * 4)
    below = ChowLiuTAN("b", Constraints(required=[("a", "b")]))
    with pytest.raises(ValueError, match="root='b' has no feature as parent, but the constraints require 'a' -> 'b'"):
        below.learn(schema, rows)
    dropped = ChowLiuTAN("b", Constraints(forbidden=[("y", "b")]))
    with pytest.raises(ValueError, match="root='b' takes no part: the constraints forbid its edge from the class"):
        dropped.learn(schema, rows)
    assert ChowLiuTAN("a", below.constraints).learn(schema, rows).dag.parents_of("a") == ("y",)
