"""`ExactMargin` against every structure, scored from the definition."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from marginbayes.structure import Constraints
from marginbayes.structure.exact import node, tree
from marginbayes.structure.exact.learner import ExactMargin, gaps
from marginbayes.structure.exact.problem import dense_problem
from marginbayes.verification import verify
from tests.oracles.exact import all_structures, best_structure, random_problem, soft_margin


@pytest.fixture(autouse=True, params=["listing", "dividing", "diving", "diving far"])
def _way(request, monkeypatch) -> None:
    """Small problems are finished off by a list of their structures; without that, by a search of many parts.

    Larger ones are searched depth first, some parts at a time.
    """
    if request.param != "listing":
        for name in ("MANY", "FEW", "LITTLE"):
            monkeypatch.setattr(node, name, 0)
    if request.param.startswith("diving"):
        monkeypatch.setattr(tree, "SMALL", 1)
        monkeypatch.setattr(tree, "PAYS", 0.0)
        monkeypatch.setattr(tree, "WIDE", 1 if request.param == "diving far" else 1000)


def assert_best(learner: ExactMargin, schema, rows) -> None:
    """The optimum of all structures, its own score, a bound that is not below it, and a certificate that holds."""
    found = learner.learn(schema, rows)
    gamma = math.log(learner.p / (1 - learner.p)) if learner.gamma is None else learner.gamma
    best = best_structure(schema, rows, learner.margin, gamma, learner.k, learner.class_parents, learner.constraints)
    assert found.certificate.status == "optimal"
    assert found.certificate.objective == pytest.approx(best, abs=1e-9 * max(1, abs(best)))
    assert soft_margin(rows, found.dag.parents, learner.margin, gamma) == pytest.approx(best, abs=1e-9)
    assert best <= found.certificate.bound <= best + 1e-6 * max(1, abs(best))
    report = verify(found.certificate.to_document(), rows.codes, rows.weights)
    assert report.objective == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("margin", ["sm", "sbm"])
@pytest.mark.parametrize("p", [0.501, 0.7, 0.9, 0.999])
@pytest.mark.parametrize("seed", range(3))
def test_no_structure_has_a_greater_soft_margin(margin: str, p: float, seed: int) -> None:
    schema, rows = random_problem(seed, [3, 2, 3, 2, 3], 40 + 10 * seed)
    assert_best(ExactMargin(margin, p=p), schema, rows)


@pytest.mark.parametrize("margin", ["sm", "sbm"])
@pytest.mark.parametrize("class_parents", [1, 2])
def test_parents_of_the_class_are_chosen_among_all_sets(margin: str, class_parents: int) -> None:
    for seed in range(3):
        schema, rows = random_problem(seed + 10, [3, 2, 3, 2], 50)
        assert_best(ExactMargin(margin, p=0.95, class_parents=class_parents), schema, rows)


@pytest.mark.parametrize("margin", ["sm", "sbm"])
def test_weights_missing_cells_and_ties_are_treated_as_defined(margin: str) -> None:
    schema, rows = random_problem(1, [3, 2, 2, 3, 2], 40, weights=True, missing=0.15)
    assert_best(ExactMargin(margin, p=0.9, class_parents=1), schema, rows)
    schema, rows = random_problem(2, [2, 2, 2, 1, 2], 12)  # few distinct rows, and a feature of one level
    assert_best(ExactMargin(margin, p=0.8, class_parents=1), schema, rows)


def test_five_features_are_searched_completely() -> None:
    schema, rows = random_problem(3, [2, 3, 2, 2, 3, 2], 45)
    assert_best(ExactMargin("sm", p=0.9), schema, rows)


def test_without_feature_parents_features_are_selected() -> None:
    schema, rows = random_problem(4, [3, 2, 3, 2, 2, 2], 40)
    assert_best(ExactMargin("sm", p=0.9, k=0, class_parents=1), schema, rows)


@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(required=[("v1", "v2")]),
        Constraints(forbidden=[("v1", "v2"), ("v3", "v2"), ("v0", "v4")]),
        Constraints(tiers=[["v3", "v4"], ["v1", "v2"]], keep=["v2"]),
        Constraints(required=[("v2", "v1"), ("v0", "v4")], forbidden=[("v4", "v3")]),
    ],
)
def test_constraints_are_obeyed_exactly(constraints: Constraints) -> None:
    schema, rows = random_problem(5, [3, 2, 3, 2, 2], 50)
    assert_best(ExactMargin("sm", p=0.9, constraints=constraints), schema, rows)


@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(required=[("v1", "v0")]),
        Constraints(forbidden=[("v1", "v0"), ("v2", "v0")], keep=["v3"]),
    ],
)
def test_constraints_on_the_parents_of_the_class_are_obeyed(constraints: Constraints) -> None:
    schema, rows = random_problem(6, [3, 2, 3, 2], 50)
    assert_best(ExactMargin("sbm", p=0.9, class_parents=2, constraints=constraints), schema, rows)


def test_both_margins_are_the_same_for_two_classes() -> None:
    schema, rows = random_problem(7, [2, 3, 2, 3, 2, 2], 60)
    found = [ExactMargin(margin, p=0.95).learn(schema, rows) for margin in ("sm", "sbm")]
    assert found[0].certificate.objective == pytest.approx(found[1].certificate.objective, abs=1e-9)


def test_the_order_of_rows_and_their_repetition_change_nothing() -> None:
    schema, rows = random_problem(8, [3, 2, 3, 2, 3], 40)
    twice = rows.take(np.repeat(np.arange(40), 2)).reweighted(np.full(80, 0.5))
    mixed = twice.take(np.random.default_rng(0).permutation(80))
    one, other = (ExactMargin(p=0.9).learn(schema, r) for r in (rows, mixed))
    assert one.dag == other.dag
    assert one.certificate.objective == pytest.approx(other.certificate.objective, abs=1e-9)
    verify(one.certificate.to_document(), mixed.codes, mixed.weights)


def test_the_result_does_not_depend_on_the_number_of_threads() -> None:
    schema, rows = random_problem(9, [3, 3, 3, 3, 2, 3, 3], 90)
    found = [ExactMargin(p=0.8, node_limit=40, n_jobs=jobs).learn(schema, rows) for jobs in (1, 2, 1)]
    for other in found[1:]:
        assert other.dag == found[0].dag
        assert other.certificate.bound == found[0].certificate.bound
        assert other.certificate.evidence["proof"] == found[0].certificate.evidence["proof"]


def test_a_class_of_one_level_leaves_nothing_to_gain() -> None:
    schema, rows = random_problem(1, [1, 2, 2], 10)
    found = ExactMargin(gamma=2.0).learn(schema, rows)
    assert found.certificate.objective == found.certificate.bound == 20.0


def test_margins_that_lack_nothing_have_lost_nothing() -> None:
    """The bound lies above the objective by the rounding it allows for, which is no share of what is lacking."""
    schema, rows = random_problem(3, [2, 2, 3], 40)
    codes = rows.codes[[0, 0, 2]]  # a feature that is the class
    found = ExactMargin(gamma=0.3).learn(schema, replace(rows, codes=codes))
    assert found.certificate.bound >= found.certificate.objective >= 0.3 * 40 * (1 - 1e-12)
    assert gaps(found.certificate)["lost margin"] == 0


def test_the_lost_margin_is_at_most_all_of_it() -> None:
    schema, rows = random_problem(4, [3, 2, 3, 2], 60)
    found = ExactMargin(p=0.8, time_limit=0).learn(schema, rows)
    assert 0 < gaps(found.certificate)["lost margin"] <= 1


def test_an_objective_below_zero_has_no_ratio_of_the_paper() -> None:
    schema, rows = random_problem(14, [4, 2, 2], 30)
    rows = rows.take(np.arange(30))
    found = ExactMargin(p=0.51).learn(schema, rows)
    report = gaps(found.certificate)
    assert report["relative"] <= 1e-6
    assert 0 <= report["lost margin"] <= 1e-6 * max(1, abs(found.certificate.objective))
    assert (report["paper"] is None) == (found.certificate.objective <= 0)


def test_the_dense_problem_scores_structures_by_the_definition() -> None:
    schema, rows = random_problem(11, [3, 2, 3, 2], 30, weights=True, missing=0.2)
    for margin in ("sm", "sbm"):
        problem = dense_problem(schema, rows, margin=margin, gamma=1.5, k=2, class_parents=2)
        place = {(o.variable, o.parents): n for n, o in enumerate(problem.options)}
        for parents in list(all_structures(3, 2, 2))[::7]:
            chosen = [place[v, own] for v, own in enumerate(parents)]
            assert problem.objective(chosen) == pytest.approx(soft_margin(rows, parents, margin, 1.5), abs=1e-9)
            assert problem.dag(chosen).parents == parents


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"margin": "cr"}, "margin='cr' is not known"),
        ({"p": 0.5}, "p=0.5 must be above 0.5"),
        ({"gamma": -1.0}, "gamma=-1.0 must be a positive number"),
        ({"k": -1}, "k=-1 must be a whole number"),
        ({"class_parents": 3}, "class_parents=3 must be"),
        ({"smoothing": 0.0}, "smoothing=0.0 must be a positive number"),
        ({"gap": -1.0}, "gap=-1.0 must be a number that is not negative"),
        ({"constraints": Constraints(required=[("v1", "v0")])}, "class_parents=0 allows fewer"),
    ],
)
def test_bad_choices_are_refused_by_name(choices: dict, message: str) -> None:
    schema, rows = random_problem(0, [2, 2, 2], 20)
    with pytest.raises(ValueError, match=message):
        ExactMargin(**choices).learn(schema, rows)


@pytest.mark.parametrize("margin", ["sm", "sbm"])
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_a_parent_of_one_level_says_something_where_it_is_missing(margin: str, seed: int) -> None:
    schema, rows = random_problem(seed, [2, 2, 2, 1, 2], 30, missing=0.3)
    assert_best(ExactMargin(margin, p=0.9), schema, rows)


@pytest.mark.parametrize("margin", ["sm", "sbm"])
@pytest.mark.parametrize("seed", [0, 2, 3, 6, 9])
def test_a_bound_that_leaves_a_gap_covers_the_options_that_were_taken_out(margin: str, seed: int) -> None:
    """With a wide gap, options are taken out that lead above the best structure: the bound must say so."""
    schema, rows = random_problem(seed, [3, 3, 3, 3, 2], 80)
    best = best_structure(schema, rows, margin, math.log(0.55 / 0.45))
    for gap in (0.1, 0.03):
        found = ExactMargin(margin, p=0.55, gap=gap).learn(schema, rows).certificate
        assert found.objective <= best + 1e-9
        assert best <= found.bound + 1e-9
        assert found.bound - found.objective <= gap * max(1, abs(found.objective)) + 1e-9
        assert verify(found.to_document(), rows.codes).bound == found.bound
