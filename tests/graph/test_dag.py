from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from marginbayes.graph import Dag, moral_graph
from tests.oracles.brute import random_dag


def as_networkx(dag: Dag) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(dag.names)
    graph.add_edges_from(dag.edges)
    return graph


def test_a_cycle_is_refused_and_named() -> None:
    with pytest.raises(ValueError, match=r"cycle: a -> b -> c -> a|cycle: b -> c -> a -> b|cycle: c -> a -> b -> c"):
        Dag.from_edges([("a", "b"), ("b", "c"), ("c", "a"), ("x", "a")])


@pytest.mark.parametrize(
    ("names", "parents", "message"),
    [
        (("a", "a"), ((), ()), "two variables are called 'a'"),
        (("a", "b"), ((), (2,)), "'b' has the parent 2"),
        (("a", "b"), ((), (0, 0)), "same parent twice"),
        (("a", "b"), ((),), "2 names but 1 lists"),
    ],
)
def test_a_wrong_graph_is_refused_with_its_fault(
    names: tuple[str, ...], parents: tuple[tuple[int, ...], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Dag(names, parents)


def test_an_edge_to_an_unknown_variable_is_refused() -> None:
    with pytest.raises(ValueError, match="'z'"):
        Dag.from_edges([("a", "z")], names=["a", "b"])


def test_graphs_with_equal_edges_are_equal_and_hash_alike() -> None:
    one = Dag.from_edges([("c", "a"), ("c", "b")])
    two = Dag(("c", "a", "b"), ((), (0,), (0,)))
    assert one == two
    assert hash(one) == hash(two)
    assert one != Dag.from_edges([("c", "a"), ("a", "b")])


def test_parents_come_before_children_in_the_order() -> None:
    for seed in range(30):
        dag = random_dag(np.random.default_rng(seed), 12, 4)
        place = {v: k for k, v in enumerate(dag.order)}
        assert all(place[p] < place[c] for c, parents in enumerate(dag.parents) for p in parents)


def test_d_separation_agrees_with_networkx() -> None:
    verdicts = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        dag = random_dag(rng, 7, 3)
        a, b, *rest = rng.permutation(dag.names)
        given = [n for n in rest if rng.random() < 0.4]
        verdicts.append(dag.d_separated(a, b, given))
        assert verdicts[-1] == nx.is_d_separator(as_networkx(dag), {a}, {b}, set(given))
    assert 0 < sum(verdicts) < len(verdicts)


def test_d_separation_refuses_a_variable_that_is_also_given() -> None:
    with pytest.raises(ValueError, match="'a'"):
        Dag.naive(["c", "a", "b"]).d_separated("a", "b", ["a"])


def test_the_markov_blanket_separates_a_variable_from_all_others() -> None:
    for seed in range(30):
        dag = random_dag(np.random.default_rng(seed), 8, 3)
        for name in dag.names:
            blanket = dag.markov_blanket(name)
            others = set(dag.names) - {name, *blanket}
            assert all(dag.d_separated(name, other, blanket) for other in others)
            # and none of it can be left out
            assert not any(dag.d_separated(name, m, set(blanket) - {m}) for m in blanket)


def test_the_moral_graph_agrees_with_networkx() -> None:
    dag = random_dag(np.random.default_rng(3), 9, 3)
    expected = nx.moral_graph(as_networkx(dag))
    assert {(a, b) for a, others in moral_graph(dag).items() for b in others} == {
        (dag.index(a), dag.index(b)) for u, v in expected.edges for a, b in ((u, v), (v, u))
    }


def test_the_hamming_distance_counts_missing_and_reversed_edges_once() -> None:
    one = Dag.from_edges([("a", "b"), ("b", "c")], names="abcd")
    two = Dag.from_edges([("b", "a"), ("c", "d")], names="abcd")
    assert one.structural_hamming_distance(two) == 3
    assert one.structural_hamming_distance(one) == 0
    assert one.structural_hamming_distance(one.reindexed("dcba")) == 0


def test_reindexing_keeps_every_edge() -> None:
    dag = random_dag(np.random.default_rng(1), 9, 3)
    other = dag.reindexed(dag.names[::-1])
    assert set(other.edges) == set(dag.edges)
    with pytest.raises(ValueError, match="'v0'"):
        dag.reindexed([*dag.names[1:], "new"])


def test_an_unknown_name_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(KeyError, match="there are 'c', 'a'"):
        Dag.naive(["c", "a"]).index("b")
