from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from marginbayes.graph.walks import above, below, components
from tests.oracles.brute import random_dag


@pytest.mark.parametrize("seed", range(20))
def test_walks_are_those_of_networkx(seed: int) -> None:
    dag = random_dag(np.random.default_rng(seed), 9, 2)
    graph = nx.DiGraph([(p, c) for c, own in enumerate(dag.parents) for p in own])
    graph.add_nodes_from(range(9))
    for v in range(9):
        assert above(dag.parents, [v]) == nx.ancestors(graph, v) | {v}
        assert below(dag.parents, v) == nx.descendants(graph, v) | {v}
    assert components(dag.parents) == sorted(sorted(part) for part in nx.weakly_connected_components(graph))


def test_a_variable_left_out_has_nothing_above_it() -> None:
    parents = [(), None, (0,)]
    assert above(parents, [1, 2]) == {0, 1, 2}
    assert below(parents, 0) == {0, 2}
    assert components(parents) == [[0, 2], [1]]
