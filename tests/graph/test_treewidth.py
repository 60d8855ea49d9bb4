"""The treewidth test against all elimination orders and against networkx."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from networkx.algorithms.approximation import treewidth_min_degree, treewidth_min_fill_in

from marginbayes.graph.treewidth import has_treewidth_at_most
from tests.oracles.structure import treewidth

Edges = list[frozenset[int]]


def random_graph(rng: np.random.Generator, n: int, share: float) -> Edges:
    return [frozenset(pair) for pair in combinations(range(n), 2) if rng.random() < share]


def cliques(n: int, edges: Edges) -> list[list[int]]:
    return [[v] for v in range(n)] + [sorted(e) for e in edges]


@pytest.mark.parametrize("share", [0.2, 0.35, 0.5, 0.8])
def test_the_answer_is_that_of_all_elimination_orders(share: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(25):
        edges = random_graph(rng, 6, share)
        truth = treewidth(frozenset(edges))
        for k in range(6):
            found = has_treewidth_at_most(cliques(6, edges), k)
            assert found == (truth <= k) if k <= 2 else found <= (truth <= k)


def test_on_larger_graphs_it_never_claims_less_than_networkx_proves() -> None:
    rng = np.random.default_rng(1)
    narrow = 0
    for share in (0.08, 0.15, 0.25):
        for _ in range(30):
            edges = random_graph(rng, 14, share)
            graph = nx.Graph([tuple(e) for e in edges])
            graph.add_nodes_from(range(14))
            upper = min(treewidth_min_degree(graph)[0], treewidth_min_fill_in(graph)[0])
            if upper <= 2:
                narrow += 1
                assert has_treewidth_at_most(cliques(14, edges), upper)
            assert has_treewidth_at_most(cliques(14, edges), 13)
    assert narrow


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_k_tree_without_some_edges_has_treewidth_k(k: int) -> None:
    # Growing a k-tree: each new vertex is joined to a clique of k earlier ones.
    rng = np.random.default_rng(k)
    for _ in range(10):
        known, edges = [list(range(k))], [frozenset(p) for p in combinations(range(k), 2)]
        for v in range(k, 12):
            base = known[int(rng.integers(len(known)))]
            edges += [frozenset((u, v)) for u in base]
            known += [[*(u for u in base if u != w), v] for w in base]
        assert has_treewidth_at_most(cliques(12, edges), k)
        assert not has_treewidth_at_most(cliques(12, edges), k - 1)
        assert has_treewidth_at_most(cliques(12, [e for e in edges if rng.random() < 0.8]), k)


def test_the_limits_are_those_of_known_graphs() -> None:
    cycle = [[i, (i + 1) % 5] for i in range(5)]
    complete = [list(range(5))]
    grid = [[3 * r + c, 3 * r + c + 1] for r in range(3) for c in range(2)] + [[i, i + 3] for i in range(6)]
    for graph, width in ([[0], [1]], 0), ([[0, 1], [1, 2]], 1), (cycle, 2), (grid, 3), (complete, 4), ([], 0):
        assert [has_treewidth_at_most(graph, k) for k in range(6)] == [k >= width for k in range(6)]
