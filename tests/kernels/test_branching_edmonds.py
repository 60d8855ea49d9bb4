"""Edmonds' kernel against enumeration and networkx."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest

from marginbayes.kernels.branching import forced_bounds, maximum_arborescence, option_bound


def reaches_root(parents) -> bool:
    n = len(parents)
    for v in range(n):
        node, steps = v, 0
        while node != n:
            node, steps = parents[node], steps + 1
            if steps > n:
                return False
    return True


def all_arborescences(weights):
    """(parents, weight) of everything that hangs from the last node."""
    n = weights.shape[1]
    for parents in product(range(n + 1), repeat=n):
        if all(p != v for v, p in enumerate(parents)) and reaches_root(parents):
            yield parents, sum(weights[p, v] for v, p in enumerate(parents))


def draw(rng, n, trial):
    weights = rng.integers(-2, 3, (n + 1, n)).astype(float) if trial % 2 else rng.normal(size=(n + 1, n))
    weights[rng.random(weights.shape) < 0.15 * (trial % 3)] = -np.inf
    return weights


def test_no_arborescence_is_heavier() -> None:
    rng = np.random.default_rng(0)
    for trial in range(60):
        n = int(rng.integers(1, 5))
        weights = draw(rng, n, trial)
        parents, reduced = np.empty(n, np.int64), np.empty((n + 1, n))
        found = maximum_arborescence(weights, parents, reduced)
        everything = list(all_arborescences(weights))
        best = max((w for _, w in everything), default=-np.inf)
        assert found == pytest.approx(best, abs=1e-9)
        if best > -np.inf:
            assert reaches_root(parents)
            assert sum(weights[p, v] for v, p in enumerate(parents)) == pytest.approx(best, abs=1e-9)
            for chosen, weight in everything:  # the reduced weight of an edge bounds whatever holds it
                for v, p in enumerate(chosen):
                    assert weight <= best + reduced[p, v] + 1e-9


def test_networkx_finds_the_same_weight_on_larger_graphs() -> None:
    rng = np.random.default_rng(1)
    for n in (7, 12):
        weights = rng.normal(size=(n + 1, n))
        graph = nx.DiGraph()
        for p in range(n + 1):
            for v in range(n):
                if p != v:
                    graph.add_edge(p, v, weight=weights[p, v])
        best = nx.maximum_spanning_arborescence(graph).size("weight")
        assert maximum_arborescence(weights, np.empty(n, np.int64), np.empty((0, n))) == pytest.approx(best)


def test_a_long_cycle_of_cycles_is_opened_at_the_right_place() -> None:
    # Heavy pairs, held together by lighter cycles: contracted sets within contracted sets.
    n = 8
    weights = np.full((n + 1, n), -50.0)
    for v in range(0, n, 2):
        weights[v, v + 1], weights[v + 1, v] = 10.0, 9.0
        weights[v, (v + 2) % n] = 5.0
    weights[n] = -np.arange(n, dtype=float)
    found = maximum_arborescence(weights, np.empty(n, np.int64), np.empty((0, n)))
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((p, v, weights[p, v]) for p in range(n + 1) for v in range(n) if p != v)
    assert found == pytest.approx(nx.maximum_spanning_arborescence(graph).size("weight"))


def all_choices(values, allowed):
    n = len(values)
    for choice in product(*(np.flatnonzero(line) for line in allowed)):
        if reaches_root([n if o < 2 else o - 2 for o in choice]):
            yield choice, sum(values[i, o] for i, o in enumerate(choice))


@pytest.mark.parametrize("trial", range(60))
def test_options_are_valued_by_the_best_choice_and_ruled_out_where_no_choice_that_takes_them_passes_the_limit(
    trial,
) -> None:
    rng = np.random.default_rng([2, trial])
    n = int(rng.integers(1, 6))
    values = rng.normal(size=(n, n + 2)).round(trial % 2 * 4)
    allowed = rng.random((n, n + 2)) < 0.75
    allowed[np.arange(n), np.arange(n) + 2] = False
    everything = list(all_choices(values, allowed))
    best = max((w for _, w in everything), default=-np.inf)
    chosen = np.empty(n, np.int64)
    assert option_bound(values, allowed, chosen, np.empty((0, n + 2))) == pytest.approx(best, abs=1e-9)
    forced = np.empty((n, n + 2))
    if best == -np.inf:
        assert forced_bounds(values, allowed, 0.0, forced) == -np.inf
        return
    assert any(tuple(chosen) == choice and w == pytest.approx(best) for choice, w in everything)
    exact = np.full((n, n + 2), -np.inf)
    for choice, w in everything:
        for i, o in enumerate(choice):
            exact[i, o] = max(exact[i, o], w)
    for below in (0.1, 0.6, 1.7, 4.1):  # no sum of rounded values lies at such a limit
        assert forced_bounds(values, allowed, best - below, forced) == pytest.approx(best, abs=1e-9)
        assert (forced >= exact - 1e-9).all()
        assert (forced <= best + 1e-9).all()
        assert ((forced <= best - below) == (exact <= best - below)).all()
