from __future__ import annotations

import networkx as nx
import numpy as np

from marginbayes.graph.tree import maximum_spanning_forest


def total(weights: np.ndarray, parents: list[int]) -> float:
    return float(sum(weights[i, p] for i, p in enumerate(parents) if p >= 0))


def test_the_weight_is_that_of_networkx() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 12))
        weights = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
        weights += weights.T
        parents = maximum_spanning_forest(weights, int(rng.integers(n)))
        expected = nx.maximum_spanning_tree(nx.from_numpy_array(weights)).size(weight="weight")
        assert np.isclose(total(weights, parents), expected)


def test_the_forest_has_no_cycle_and_the_root_has_no_parent() -> None:
    rng = np.random.default_rng(0)
    weights = rng.random((20, 20))
    weights += weights.T
    parents = maximum_spanning_forest(weights, 7)
    assert parents[7] == -1
    assert parents.count(-1) == 1
    for node in range(20):
        steps = 0
        while node >= 0:
            node, steps = parents[node], steps + 1
            assert steps <= 20


def test_an_edge_without_weight_is_left_out() -> None:
    weights = np.zeros((4, 4))
    weights[0, 2] = weights[2, 0] = 1.0
    assert maximum_spanning_forest(weights) == [-1, -1, 0, -1]


def test_ties_go_to_the_smaller_index() -> None:
    assert maximum_spanning_forest(np.ones((4, 4))) == [-1, 0, 0, 0]
