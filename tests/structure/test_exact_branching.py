"""Edmonds' branchings and the cluster multipliers that prove them; cluster inequalities and what violates them."""

from __future__ import annotations

import contextlib
import math
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes.structure.exact.branching import BranchingSearch, ClusterProof, arborescence, best_forest
from marginbayes.structure.exact.clusters import LinearRelaxation, bound_of, cluster_matrix, violated_clusters
from marginbayes.structure.exact.clustertree import ClusterTree, everything
from marginbayes.structure.exact.families import Families
from marginbayes.structure.exact.orders import OrderSearch
from tests.oracles.graphs import all_graphs, is_acyclic


def random_values(seed: int, n: int, gaps: float, ties: bool) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.integers(-4, 5, (n, n)).astype(float) if ties else rng.normal(size=(n, n))
    values[rng.random((n, n)) < gaps] = -np.inf
    return values


def tree_value(values: np.ndarray, tree) -> float:
    return sum(values[p, c] for c, p in enumerate(tree) if c)


def best_tree(values: np.ndarray) -> float:
    """Greatest value of all trees away from node 0, by trying them all."""
    n = len(values)
    choices = product(*([p for p in range(n) if p != c and values[p, c] > -np.inf] for c in range(1, n)))
    good = [(0, *c) for c in choices if is_acyclic([(), *((p,) for p in c)])]
    return max((tree_value(values, c) for c in good), default=-math.inf)


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 5), gaps=st.sampled_from([0.0, 0.4]), ties=st.booleans())
def test_a_tree_is_best_and_its_multipliers_prove_it(seed: int, n: int, gaps: float, ties: bool) -> None:
    values = random_values(seed, n, gaps, ties)
    found, best = arborescence(values), best_tree(values)
    if found is None:
        assert best == -math.inf
        return
    tree, proof = found
    assert tree_value(values, tree) == pytest.approx(best, abs=1e-9)
    bound = -proof.total
    for c in range(1, n):
        around = [(set(k), m) for k, m in zip(proof.clusters, proof.multipliers, strict=True) if c in k]
        bound += max(values[p, c] + sum(m for k, m in around if p not in k) for p in range(n) if p != c)
    assert bound == pytest.approx(best, abs=1e-9)
    assert all(m >= 0 for m in proof.multipliers)


@pytest.mark.parametrize("seed", range(3))
def test_a_tree_of_thirty_nodes_is_that_of_networkx(seed: int) -> None:
    values = random_values(seed, 30, 0.0, ties=False)
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((p, c, values[p, c]) for p in range(30) for c in range(1, 30) if p != c)
    expected = nx.maximum_spanning_arborescence(graph)
    assert tree_value(values, arborescence(values)[0]) == pytest.approx(expected.size("weight"))


def random_families(seed: int, n: int, most: int) -> Families:
    rng = np.random.default_rng(seed)
    sets, scores = [], []
    for i in range(n):
        others = [v for v in range(n) if v != i]
        own = [s for size in range(most + 1) for s in combinations(others, size)]
        kept = [own[0], *(s for s in own[1:] if rng.random() < 0.6)]
        values = rng.normal(size=len(kept)) + 0.7 * np.array([len(s) for s in kept])
        order = np.argsort(-values)
        sets.append(tuple(kept[o] for o in order))
        scores.append(values[order])
    return Families(tuple(sets), tuple(scores))


def brute(families: Families) -> float:
    return max(families.total(graph) for graph in all_graphs(families.sets))


@pytest.mark.parametrize("seed", range(8))
def test_a_forest_over_all_variables_is_best(seed: int) -> None:
    families = random_families(seed, 5, 1)
    parents, proof = best_forest(families)
    assert families.total(parents) == pytest.approx(brute(families))
    assert bound_of(*LinearRelaxation(families).raised(proof), everything(families)) == pytest.approx(brute(families))


def test_constraints_without_any_graph_are_told() -> None:
    loop = Families((((1,),), ((0,),)), (np.zeros(1), np.zeros(1)))
    with pytest.raises(ValueError, match="no acyclic graph obeys"):
        best_forest(loop)
    classes = Families((((1,),), ((0,),)), (np.zeros(1), np.zeros(1)))
    with pytest.raises(ValueError, match="no acyclic graph obeys"):
        BranchingSearch(classes)


@pytest.mark.parametrize("seed", range(6))
def test_any_multipliers_give_a_bound(seed: int) -> None:
    families, rng = random_families(seed, 4, 3), np.random.default_rng(seed)
    clusters = tuple(c for size in (2, 3, 4) for c in combinations(range(4), size))
    proof = ClusterProof(clusters, tuple(rng.exponential(size=len(clusters))))
    assert bound_of(*LinearRelaxation(families).raised(proof), everything(families)) >= brute(families) - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_relaxation_with_all_clusters_is_between_the_optimum_and_that_without(seed: int) -> None:
    families = random_families(seed, 4, 2)
    relaxation, allowed = LinearRelaxation(families), everything(families)
    clusters = [c for size in (2, 3, 4) for c in combinations(range(4), size)]
    with_all, without = relaxation.solve(allowed, clusters), relaxation.solve(allowed, [])
    assert brute(families) - 1e-7 <= with_all.bound <= without.bound + 1e-7


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_that_is_interrupted_again_and_again_ends_where_an_undisturbed_one_does(seed: int) -> None:
    families = random_families(seed, 5, 3)
    search = OrderSearch(families)
    start = search.parents(search.greedy())
    tree = ClusterTree(LinearRelaxation(families), start, lambda _: [], gap=1e-9)

    def interrupt(_: ClusterTree) -> None:
        raise KeyboardInterrupt

    for _ in range(3):
        with contextlib.suppress(KeyboardInterrupt):
            tree.run(bool, interrupt)
        paths = [leaf.decisions for leaf in tree.leaves]
        assert sum(0.5 ** len(path) for path in paths) == 1.0  # the parts make up the whole
        assert tree.bound >= brute(families) - 1e-9
    assert tree.run(bool, lambda _: None)
    assert tree.value <= brute(families) + 1e-9 <= tree.bound + 1e-7


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_no_move_of_one_variable_improves_an_improved_order(seed: int) -> None:
    families = random_families(seed, 5, 2)
    search = OrderSearch(families)
    order = search.improved(search.greedy(), bool)
    assert search.total(order) == pytest.approx(families.total(search.parents(order)))
    values = [search.total(better) for better in search.iterated(3, 0, bool)]
    assert values[0] == search.total(order)
    assert values == sorted(values)
    for i in order:
        rest = [v for v in order if v != i]
        for at in range(5):
            assert search.total([*rest[:at], i, *rest[at:]]) <= search.total(order) + 1e-8


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(3, 5), most=st.integers(1, 3))
def test_a_violated_cluster_is_found_exactly_where_there_is_one(seed: int, n: int, most: int) -> None:
    families, rng = random_families(seed, n, most), np.random.default_rng(seed)
    shares = [rng.dirichlet(np.full(len(own), 0.3)) for own in families.sets]
    clusters = [c for size in range(2, n + 1) for c in combinations(range(n), size)]
    sides = cluster_matrix(families.sets, clusters) @ np.concatenate(shares)
    found = violated_clusters(families.sets, shares)
    assert bool(found) == bool(sides.min() < 1 - 1e-4)
    assert all(sides[clusters.index(c)] < 1 - 1e-4 for c in found)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_whole_solution_violates_a_cluster_exactly_where_it_has_a_cycle(seed: int) -> None:
    families, rng = random_families(seed, 5, 2), np.random.default_rng(seed)
    places = [rng.integers(len(own)) for own in families.sets]
    shares = [np.eye(len(own))[p] for own, p in zip(families.sets, places, strict=True)]
    graph = [own[p] for own, p in zip(families.sets, places, strict=True)]
    assert bool(violated_clusters(families.sets, shares, thorough=False)) == (not is_acyclic(graph))
