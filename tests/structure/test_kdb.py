"""k-DB against the recipe of Sahami (1996), step by step in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from marginbayes.data import Rows, Schema
from marginbayes.structure import Constraints, NaiveBayes
from marginbayes.structure.kdb import KDB
from tests.oracles.structure import as_rows, random_rows, violates


def observed(rows: Rows, *variables: int) -> list[tuple[tuple[int, ...], float]]:
    """The values of these variables in the rows that have all of them, and their weights."""
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    every = zip(rows.codes.T.astype(int).tolist(), weights.tolist(), strict=True)
    some = ((tuple(row[v] for v in variables), w) for row, w in every)
    return [(x, w) for x, w in some if all(a < rows.cardinalities[v] for a, v in zip(x, variables, strict=True))]


def counted(pairs: list[tuple[tuple[int, ...], float]], *places: int) -> Counter[tuple[int, ...]]:
    found: Counter[Any] = Counter()
    for x, w in pairs:
        found[tuple(x[p] for p in places)] += w
    return found


def information(rows: Rows, i: int, j: int) -> float:
    """I(i; j | class), less the cost of rows that lack one of them; I(i; class) where j is the class."""
    pairs = [((*x, 0), w) for x, w in observed(rows, i, 0)] if j == 0 else observed(rows, i, j, 0)
    n, both = sum(w for _, w in observed(rows, 0)), sum(w for _, w in pairs)
    all_three, left, right, given = (counted(pairs, *p) for p in ((0, 1, 2), (0, 2), (1, 2), (2,)))
    told = sum(
        w / n * math.log(w * given[c,] / (left[a, c] * right[b, c])) for (a, b, c), w in all_three.items() if w > 0
    )
    cells = math.prod(rows.cardinalities[v] for v in (0, i, j))
    return told if j == 0 else max(0.0, told - cells / 2 * (1 / both - 1 / n))


def plain_kdb(rows: Rows, k: int) -> dict[int, tuple[int, ...]]:
    """Steps 1 to 5 of the paper: order by I(X; C), each takes the k earlier ones of greatest I(X; X' | C)."""
    features = list(range(1, len(rows.cardinalities)))
    ranking = sorted(features, key=lambda i: (-round(information(rows, i, 0), 11), i))
    parents: dict[int, tuple[int, ...]] = {}
    used: list[int] = []
    for i in ranking:
        strength = {j: round(information(rows, i, j), 11) for j in used}
        useful = [j for j in sorted(used, key=lambda j: (-strength[j], j)) if strength[j] > 0]
        parents[i] = tuple(useful[:k])
        used.append(i)
    return parents


def feature_parents(schema: Schema, rows: Rows, learner: KDB) -> dict[int, tuple[int, ...]]:
    dag = learner.learn(schema, rows).dag
    return {i: tuple(p for p in parents if p) for i, parents in enumerate(dag.parents) if i}


@pytest.mark.parametrize("k", [0, 1, 2, 3, 9])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_recipe(k: int, missing: float, weighted: bool) -> None:
    for seed in range(5):
        schema, rows = random_rows(seed, n=100, features=6, missing=missing)
        if weighted:
            rows = rows.reweighted(np.random.default_rng(seed).integers(1, 5, len(rows)).astype(float))
        assert feature_parents(schema, rows, KDB(k)) == plain_kdb(rows, k)


def test_without_feature_parents_it_is_naive_bayes() -> None:
    schema, rows = random_rows(0)
    assert KDB(0).learn(schema, rows).dag == NaiveBayes().learn(schema, rows).dag


def test_edges_without_information_are_left_out() -> None:
    # v2 copies v1; v3 is constant; v4 is independent of all within each class.
    codes = np.array(
        [[0] * 8 + [1] * 8, [0, 0, 0, 0, 1, 1, 1, 1] * 2, [0, 0, 0, 0, 1, 1, 1, 1] * 2, [0] * 16, [0, 1] * 8]
    )
    schema, rows = as_rows(codes, (2, 2, 2, 1, 2))
    assert KDB(3).learn(schema, rows).dag.edges == (
        ("v0", "v1"),
        ("v0", "v2"),
        ("v1", "v2"),
        ("v0", "v3"),
        ("v0", "v4"),
    )


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("k", [1, 2])
def test_constraints_are_obeyed_and_the_rest_is_unchanged(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    schema, rows = random_rows(seed, n=80, features=6)
    names = [f"v{i}" for i in rng.permutation(6) + 1]
    constraints = Constraints(
        required=[(names[0], names[2])],
        forbidden=[("v0", names[5]), (names[1], names[3])],
        tiers=[names[:2], names[2:4]],
        keep=[names[4]],
    )
    result = KDB(k, constraints).learn(schema, rows)
    rules = constraints.compile(schema.names, k)
    parents = [None if i in rules.dropped else tuple(p for p in own if p) for i, own in enumerate(result.dag.parents)]
    assert not violates(rules, parents)
    assert result.dag.parents_of(names[5]) == ()
    assert result.dag.children_of(names[5]) == ()
    assert all("v0" in result.dag.parents_of(name) for name in names[:5])
    free = KDB(k).learn(schema, rows)
    assert KDB(k, Constraints(keep=names)).learn(schema, rows).dag == free.dag


def test_a_required_parent_comes_first_and_counts_as_one_of_the_k() -> None:
    schema, rows = random_rows(2, n=80)
    for a in range(1, 6):
        for b in range(1, 6):
            if a != b:
                dag = KDB(1, Constraints(required=[(f"v{a}", f"v{b}")])).learn(schema, rows).dag
                assert dag.parents_of(f"v{b}") == ("v0", f"v{a}")


def test_weights_are_repetitions() -> None:
    schema, rows = random_rows(3, missing=0.1)
    times = np.random.default_rng(0).integers(0, 4, len(rows))
    repeated = rows.take(np.repeat(np.arange(len(rows)), times))
    assert KDB(2).learn(schema, repeated).dag == KDB(2).learn(schema, rows.reweighted(times.astype(float))).dag


@pytest.mark.parametrize("k", [-1, 1.5, "2"])
def test_a_k_that_is_no_whole_number_is_refused_by_value(k: Any) -> None:
    with pytest.raises(ValueError, match=f"k={k!r} must be a whole number, at least 0"):
        KDB(k).learn(*random_rows(0))
