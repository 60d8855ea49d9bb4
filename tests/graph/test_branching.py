from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest

from marginbayes.graph.branching import maximum_branching


def weight(weights: np.ndarray, parents: list[int]) -> float:
    return float(sum(weights[p, c] for c, p in enumerate(parents) if p >= 0))


def is_forest(parents: list[int]) -> bool:
    for node in range(len(parents)):
        steps = 0
        while node >= 0:
            node, steps = parents[node], steps + 1
            if steps > len(parents):
                return False
    return True


@pytest.mark.parametrize("seed", range(60))
def test_the_weight_is_the_best_of_all_forests(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    weights = rng.normal(size=(n, n)) + 0.5
    weights[rng.random((n, n)) < 0.2] = -np.inf
    found = maximum_branching(weights)
    assert is_forest(found)
    choices = itertools.product(*[[-1, *(p for p in range(n) if p != c)] for c in range(n)])
    assert weight(weights, found) == pytest.approx(max(weight(weights, list(p)) for p in choices if is_forest(list(p))))


@pytest.mark.parametrize("seed", range(15))
def test_the_weight_is_that_of_networkx(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 25))
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.4)
    graph = nx.from_numpy_array(weights, create_using=nx.DiGraph)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    found = maximum_branching(weights)
    assert is_forest(found)
    assert weight(weights, found) == pytest.approx(nx.maximum_branching(graph).size(weight="weight"))


def test_equal_weights_both_ways_give_a_spanning_tree() -> None:
    rng = np.random.default_rng(0)
    weights = rng.random((12, 12))
    weights = weights + weights.T
    found = maximum_branching(weights)
    assert found.count(-1) == 1
    expected = nx.maximum_spanning_tree(nx.from_numpy_array(weights)).size(weight="weight")
    assert weight(weights, found) == pytest.approx(expected)
