"""Exact decomposable scores: the optimum of every kind of parent set, constraint and method, against all orders."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes import BayesNetClassifier, datasets
from marginbayes.data import Rows
from marginbayes.scores.decomposable import DECOMPOSABLE, FamilyScore
from marginbayes.solvers import Moment
from marginbayes.structure import ChowLiuTAN, Constraints, ExactScore
from marginbayes.structure.exact.families import ParentSpace, complete_rows, score_families
from marginbayes.structure.exact.orders import OrderSearch
from marginbayes.verification import verify
from tests.oracles.graphs import all_graphs, best_over_orders, classifier_sets, family_score, is_acyclic, subsets
from tests.oracles.structure import bundled, random_rows


def value(found, score: str) -> float:
    """The objective with the sign that makes greater better."""
    return -found.score if score == "mdl" else found.score


def total(rows: Rows, parents, score: str, ess: float = 1.0) -> float:
    return sum(family_score(rows, i, tuple(own), score, ess) for i, own in enumerate(parents))


# -- the optimum


@pytest.mark.parametrize("score", DECOMPOSABLE)
@pytest.mark.parametrize(("k", "class_parents"), [(0, 0), (1, 0), (1, 2), (2, 1), (3, 2)])
def test_no_classifier_structure_scores_better(score: str, k: int, class_parents: int) -> None:
    schema, rows = random_rows(k + 10 * class_parents, n=50, features=4)
    found = ExactScore(score, k, class_parents).learn(schema, rows)
    best = best_over_orders(rows, classifier_sets(k, class_parents), score)
    assert value(found, score) == pytest.approx(best, rel=1e-9)
    assert found.certificate.status == "optimal"
    assert total(rows, found.dag.parents, score) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("score", DECOMPOSABLE)
@pytest.mark.parametrize("max_parents", [0, 1, 2, 4])
@pytest.mark.parametrize("method", ["auto", "subsets", "tree"])
def test_no_network_scores_better(score: str, max_parents: int, method: str) -> None:
    schema, rows = random_rows(max_parents, n=60, features=4)
    found = ExactScore(score, max_parents=max_parents, method=method, gap=1e-9).learn(schema, rows)
    best = best_over_orders(rows, lambda _, s: len(s) <= max_parents, score)
    assert value(found, score) == pytest.approx(best, rel=1e-8)
    assert found.certificate.status == "optimal"


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_real_rows_and_every_method_agree(name: str) -> None:
    schema, rows = bundled(name, range(4))
    for options in ({"k": 1, "class_parents": 2}, {"k": 2}, {"max_parents": 3}):
        found = [
            ExactScore("bdeu", method=m, ess=2.0, **options).learn(schema, rows) for m in ("auto", "subsets", "tree")
        ]
        assert found[1].score == pytest.approx(found[0].score, rel=1e-9)
        assert found[2].score == pytest.approx(found[0].score, rel=1e-5)


def test_all_graphs_and_all_orders_give_the_same_best() -> None:
    _, rows = random_rows(3, features=3)
    sets = [[s for s in subsets([v for v in range(4) if v != i]) if len(s) <= 2] for i in range(4)]
    best = max(total(rows, graph, "bic") for graph in all_graphs(sets))
    assert best == pytest.approx(best_over_orders(rows, lambda _, s: len(s) <= 2, "bic"), rel=1e-12)


def test_the_best_tree_by_likelihood_is_that_of_chow_and_liu() -> None:
    schema, rows = random_rows(5, n=300, features=8)
    kept = Constraints(keep=schema.names[1:])
    found = ExactScore("ll", constraints=kept).learn(schema, rows)
    tan = ChowLiuTAN().learn(schema, rows).dag
    assert found.score == pytest.approx(total(rows, tan.parents, "ll"), rel=1e-9)


def test_mdl_is_bic_with_the_opposite_sign_and_is_minimised() -> None:
    schema, rows = random_rows(1)
    mdl, bic = (ExactScore(s).learn(schema, rows) for s in ("mdl", "bic"))
    assert mdl.dag == bic.dag
    assert mdl.score == -bic.score
    assert (mdl.certificate.sense, bic.certificate.sense) == ("min", "max")


# -- rows


def test_a_row_of_weight_three_counts_as_three_rows() -> None:
    schema, rows = random_rows(2, n=30)
    weights = np.random.default_rng(0).integers(0, 4, len(rows)).astype(float)
    repeated = rows.take(np.repeat(np.arange(len(rows)), weights.astype(int)))
    for score in ("bic", "bdeu"):
        a, b = (ExactScore(score, max_parents=2).learn(schema, r) for r in (rows.reweighted(weights), repeated))
        assert a.score == pytest.approx(b.score, rel=1e-12)
        assert a.dag == b.dag


def test_small_weights_have_their_own_optimum() -> None:
    schema, rows = random_rows(7, n=40, features=4)
    light = rows.reweighted(np.random.default_rng(1).random(len(rows)) * 0.3)
    for score in ("bdeu", "bic"):
        found = ExactScore(score, max_parents=3).learn(schema, light)
        assert found.score == pytest.approx(best_over_orders(light, lambda _, s: len(s) <= 3, score), rel=1e-9)


def test_rows_with_a_missing_cell_are_left_out() -> None:
    schema, rows = random_rows(4, n=80, missing=0.1)
    whole = rows.take(~rows.is_missing().any(axis=0))
    assert 0 < len(whole) < len(rows)
    expected, emptiest = ExactScore().learn(schema, whole), schema.names[rows.is_missing().sum(axis=1).argmax()]
    said = f"{len(rows) - len(whole)} of 80 rows have a missing cell, and exact scores leave them out; '{emptiest}' is"
    with pytest.warns(UserWarning, match=said):
        found = ExactScore().learn(schema, rows)
    assert (found.dag, found.score) == (expected.dag, pytest.approx(expected.score))
    gone = Rows(np.repeat(np.array(rows.cardinalities, np.uint8)[:, None], 4, axis=1), rows.cardinalities)
    with pytest.raises(ValueError, match="no row is without a missing cell"):
        ExactScore().learn(schema, gone)
    few = Rows(np.concatenate([whole.codes] * 3 + [gone.codes[:, :1]], axis=1), rows.cardinalities)
    assert ExactScore().learn(schema, few).certificate is not None  # a few holes are no matter for a warning


# -- parent sets that are not needed


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), score=st.sampled_from(DECOMPOSABLE), light=st.booleans())
def test_pruning_changes_no_optimum(seed: int, score: str, light: bool) -> None:
    schema, rows = random_rows(seed, n=25, features=3)
    weights = np.random.default_rng(seed).random(len(rows)) if light else None
    rows = complete_rows(rows.reweighted(weights))
    space = ParentSpace.of(schema.names, None, max_parents=3)
    rule = FamilyScore(score, rows.total, 1.0, not light)
    families = [score_families(rows, space, rule, prune=p) for p in (True, False)]
    best = [max(f.total(graph) for graph in all_graphs(f.sets)) for f in families]
    assert best[0] == pytest.approx(best[1], rel=1e-10)
    assert families[0].size <= families[1].size == 4 * 8


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), score=st.sampled_from(DECOMPOSABLE))
def test_no_superset_scores_more_than_the_bound_of_a_set(seed: int, score: str) -> None:
    _, rows = random_rows(seed, n=20, features=4)
    rule = FamilyScore(score, rows.total)
    for parents in subsets([1, 2, 3, 4]):
        configurations = math.prod(rows.cardinalities[p] for p in parents)
        occurring = len({tuple(rows.codes[list(parents), m]) for m in range(len(rows))})
        bound = rule.most(rows.cardinalities[0], configurations, occurring)
        for larger in subsets([1, 2, 3, 4]):
            if set(parents) <= set(larger):
                assert family_score(rows, 0, larger, score) <= bound + 1e-9


def test_scores_of_families_equal_those_counted_in_dictionaries() -> None:
    schema, rows = random_rows(8, n=40, features=4)
    space = ParentSpace.of(schema.names, None, max_parents=4)
    for score in DECOMPOSABLE:
        found = score_families(complete_rows(rows), space, FamilyScore(score, rows.total, 3.0), prune=False)
        for i, own in enumerate(found.sets):
            for s in own:
                assert found.of(i, s) == pytest.approx(family_score(rows, i, s, score, 3.0), rel=1e-10)


# -- constraints


CONSTRAINED = [
    Constraints(required=[("v1", "v2")]),
    Constraints(forbidden=[("v0", "v1"), ("v2", "v3")]),
    Constraints(keep=["v3"], tiers=[["v1"], ["v2", "v3"]]),
    Constraints(required=[("v3", "v0")], forbidden=[("v1", "v0")]),
]


@pytest.mark.parametrize("constraints", CONSTRAINED)
@pytest.mark.parametrize("options", [{"k": 1, "class_parents": 1}, {"k": 2, "class_parents": 1}, {"max_parents": 2}])
@pytest.mark.parametrize("method", ["auto", "tree"])
def test_the_best_that_obeys_the_constraints_is_found(constraints: Constraints, options: dict, method: str) -> None:
    schema, rows = random_rows(11, n=60, features=4)
    found = ExactScore("bic", constraints=constraints, method=method, gap=1e-9, **options).learn(schema, rows)
    edges = set(found.dag.edges)
    assert set(constraints.required) <= edges
    assert not set(constraints.forbidden) & edges
    space = ParentSpace.of(schema.names, constraints, **options)
    assert found.score == pytest.approx(best_over_orders(rows, space.admits, "bic"), rel=1e-8)
    assert verify(found.certificate.to_document(), rows.codes).objective == pytest.approx(found.score)


def test_what_constraints_admit_is_as_they_say() -> None:
    names = ("c", "a", "b", "d")
    space = ParentSpace.of(names, Constraints(forbidden=[("c", "a")], keep=["b"], required=[("b", "d")]), k=1)
    assert [s for s in subsets([0, 2, 3]) if space.admits(1, s)] == [()]
    assert [s for s in subsets([0, 1, 3]) if space.admits(2, s)] == [(0,), (0, 3)]
    assert [s for s in subsets([0, 1, 2]) if space.admits(3, s)] == [(0, 2)]
    plain = ParentSpace.of(names, Constraints(forbidden=[("c", "a")], keep=["b"]), max_parents=2)
    assert [s for s in subsets([0, 2, 3]) if plain.admits(1, s)] == [(), (2,), (3,), (2, 3)]
    assert [s for s in subsets([0, 1, 3]) if plain.admits(2, s)] == [(0,), (0, 1), (0, 3)]


@pytest.mark.parametrize(
    ("constraints", "options", "said"),
    [
        (Constraints(required=[("v1", "v0")]), {}, "'v1' must be parents of 'v0', which may have at most 0"),
        (Constraints(required=[("v1", "v0"), ("v0", "v1")]), {"class_parents": 1}, "form a cycle"),
        (
            Constraints(required=[("v1", "v0")], forbidden=[("v1", "v0")]),
            {"class_parents": 1},
            "is required, but it is forbidden",
        ),
        (Constraints(required=[("v1", "v2"), ("v0", "v2")]), {"max_parents": 1}, "may have at most 1"),
        (Constraints(forbidden=[("v9", "v0")]), {}, "'v9' is not a feature"),
    ],
)
def test_constraints_that_contradict_each_other_are_named(constraints: Constraints, options: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ExactScore(constraints=constraints, **options).learn(*random_rows(0))


# -- how it runs


@pytest.mark.parametrize("options", [{"method": "tree"}, {"method": "subsets"}])
def test_a_run_without_time_has_a_structure_and_a_bound_that_hold(options: dict) -> None:
    schema, rows = random_rows(0, n=100, features=6)
    found = ExactScore("bic", max_parents=3, time_limit=0.0, **options).learn(schema, rows)
    best = ExactScore("bic", max_parents=3).learn(schema, rows)
    assert found.certificate.status in ("time limit", "optimal")
    assert found.status == ("finished" if found.certificate.status == "optimal" else "time limit")
    assert found.certificate.objective <= best.score + 1e-9 <= found.certificate.bound + 1e-6
    verify(found.certificate.to_document(), rows.codes)


def test_an_interrupted_run_keeps_the_best_so_far() -> None:
    schema, rows = random_rows(3, n=100, features=6)

    def interrupt(_: Moment) -> None:
        raise KeyboardInterrupt

    found = ExactScore("ll", max_parents=2, method="tree", callback=interrupt).learn(schema, rows)
    assert found.status == "interrupted"
    assert is_acyclic(found.dag.parents)
    verify(found.certificate.to_document(), rows.codes)


def test_the_callback_sees_the_bound_close_in_on_the_objective() -> None:
    moments: list[Moment] = []
    found = ExactScore("mdl", max_parents=3, method="tree", callback=moments.append).learn(*random_rows(9, features=6))
    assert moments[-1].objective == found.score
    assert all(m.bound <= m.objective for m in moments)
    assert found.certificate.trace[-1][1:] == (found.score, found.certificate.bound)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"score": "cr"}, "score='cr' is no sum over families; choose one of 'mdl'"),
        ({"ess": 0.0}, "ess=0.0 must be above 0 and at most 100000"),
        ({"ess": 1e6}, "ess=1000000.0 must be above 0 and at most 100000"),
        ({"method": "magic"}, "method='magic' is not known"),
        ({"k": -1}, "k=-1 must be a whole number"),
        ({"max_parents": 1.5}, "max_parents=1.5 must be a whole number"),
        ({"time_limit": -1}, "time_limit=-1 must be a number that is not negative, or None"),
    ],
)
def test_what_cannot_be_learned_is_refused_with_the_reason(options: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ExactScore(**options).learn(*random_rows(0))


def test_too_many_families_or_variables_are_refused_before_the_work() -> None:
    schema, rows = random_rows(0, features=60)
    with pytest.raises(ValueError, match="parent sets, and at most 5,000,000 can be scored"):
        ExactScore(max_parents=6).learn(schema, rows)
    with pytest.raises(ValueError, match="method='subsets' takes at most 24 variables, not 61"):
        ExactScore(max_parents=1, method="subsets").learn(schema, rows)


def test_a_classifier_with_an_exact_structure_classifies() -> None:
    data = datasets.load("iris")
    classifier = BayesNetClassifier("exact-mdl").fit(data.X, data.y)
    assert classifier.score(data.X, data.y) > 0.9
    assert classifier.structure_result_.certificate.status == "optimal"


def test_more_than_twenty_variables_are_solved_by_the_tree() -> None:
    schema, rows = random_rows(1, n=300, features=21)
    found = ExactScore("bic", max_parents=2, gap=0.02).learn(schema, rows)
    assert found.certificate.evidence["method"] == "tree"
    assert found.certificate.gap <= 0.02
    for a, b in combinations(range(22), 2):  # no two variables are each other's parents
        assert not (a in found.dag.parents[b] and b in found.dag.parents[a])
    verify(found.certificate.to_document(), rows.codes)


def test_ctrl_c_while_orders_are_tried_keeps_the_best_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, improved, moments = 0, OrderSearch.improved, list[Moment]()

    def impatient(self: OrderSearch, *words: Any) -> list[int]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return improved(self, *words)

    monkeypatch.setattr(OrderSearch, "improved", impatient)
    schema, rows = random_rows(3, n=100, features=6)
    learner = ExactScore("bic", max_parents=2, method="tree", callback=moments.append)
    found = learner.learn(schema, rows)
    assert (calls, found.status) == (3, "interrupted")
    assert moments[0].objective <= moments[1].objective <= found.score  # the greedy order, and improved ones
    verify(found.certificate.to_document(), rows.codes)
