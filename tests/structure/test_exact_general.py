"""The soft margin with parent sets of any size: against all structures, and against formulation (19) in HiGHS."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes.data import Rows, Schema, Variable
from marginbayes.graph import Dag
from marginbayes.solvers import Moment
from marginbayes.structure import Constraints, ExactMargin, StructureResult
from marginbayes.structure.exact import general
from marginbayes.structure.exact.branching import ClusterProof
from marginbayes.structure.exact.clusters import bound_of
from marginbayes.structure.exact.clustertree import everything
from marginbayes.structure.exact.families import ParentSpace
from marginbayes.structure.exact.general import learn_general, learn_milp
from marginbayes.structure.exact.marginlp import MarginProof, MarginRelaxation, climb
from marginbayes.structure.exact.milp import Formulation
from marginbayes.structure.exact.problem import DenseProblem, dense_problem, parent_sets
from marginbayes.verification import CertificateError, verify
from tests.oracles.graphs import all_graphs, is_acyclic
from tests.oracles.structure import bundled, random_rows


def best_of_all(schema, rows: Rows, **options) -> float:
    form = Formulation(dense_problem(schema, rows, **options))
    return max(form.value(graph) for graph in all_graphs(form.sets))


@pytest.mark.parametrize("margin", ["sm", "sbm"])
@pytest.mark.parametrize(
    ("k", "class_parents", "p"), [(2, 0, 0.9), (2, 1, 0.99), (2, 2, 0.6), (3, 0, 0.7), (1, 2, 0.9)]
)
def test_no_structure_has_a_greater_margin(margin: str, k: int, class_parents: int, p: float) -> None:
    schema, rows = random_rows(k + class_parents, n=30, features=3)
    options = {"margin": margin, "gamma": math.log(p / (1 - p)), "k": k, "class_parents": class_parents}
    found = learn_general(schema, rows, **options)
    assert found.certificate.status == "optimal"
    assert found.score == pytest.approx(best_of_all(schema, rows, **options), abs=1e-6)
    report = verify(found.certificate.to_document(), rows.codes)
    assert report.objective == pytest.approx(found.score, rel=1e-9)


def test_the_last_structure_of_a_part_is_looked_at() -> None:
    """Seven rows on which neither the best parents along an order nor a climb from there are the optimum."""
    codes = np.array([[0, 1, 0, 1, 1, 0, 1], [0, 1, 1, 1, 1, 1, 0], [0, 1, 1, 0, 1, 0, 1]], np.uint8)
    schema = Schema(tuple(Variable(n, (0, 1)) for n in "yab"))
    options = {"gamma": math.log(1.5), "k": 2}
    found = learn_general(schema, Rows(codes, (2, 2, 2)), **options)
    assert found.score == pytest.approx(best_of_all(schema, Rows(codes, (2, 2, 2)), **options), abs=1e-9)
    verify(found.certificate.to_document(), codes)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_small_problems_are_solved_to_the_end(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = int(rng.integers(2, 4))
    schema, rows = random_rows(seed, n=int(rng.integers(2, 25)), features=features)
    options = {
        "margin": str(rng.choice(["sm", "sbm"])),
        "gamma": float(10 ** rng.uniform(-3, 1)),
        "k": int(rng.integers(2, 4)),
        "class_parents": int(rng.integers(0, 3)),
        "smoothing": float(10 ** rng.uniform(-1, 1)),
    }
    found = learn_general(schema, rows, **options)
    assert found.certificate.status == "optimal"
    assert found.score == pytest.approx(best_of_all(schema, rows, **options), abs=2e-6)
    verify(found.certificate.to_document(), rows.codes)


def test_missing_cells_and_weights_count_as_they_do_in_all_structures() -> None:
    schema, rows = random_rows(3, n=40, features=3, missing=0.15)
    rows = rows.reweighted(np.random.default_rng(0).random(len(rows)) * 2)
    options = {"margin": "sm", "gamma": 1.5, "k": 2, "class_parents": 1}
    found = learn_general(schema, rows, **options)
    assert found.score == pytest.approx(best_of_all(schema, rows, **options), abs=1e-6)
    verify(found.certificate.to_document(), rows.codes, rows.weights)


def test_a_general_solver_agrees_on_real_rows() -> None:
    schema, rows = bundled("iris", range(4), n=80)
    options = {"margin": "sm", "gamma": math.log(9), "k": 2}
    found, reference = learn_general(schema, rows, **options), learn_milp(schema, rows, **options)
    assert found.score == pytest.approx(reference.score, abs=1e-5)
    assert reference.certificate.status == "optimal"
    assert is_acyclic(reference.dag.parents)


def test_the_word_of_a_general_solver_cannot_be_verified() -> None:
    schema, rows = random_rows(0, n=20, features=2)
    found = learn_milp(schema, rows, gamma=1.0)
    with pytest.raises(CertificateError, match="no check is known for a certificate of kind 'exact-margin-milp'"):
        verify(found.certificate.to_document(), rows.codes)


def test_constraints_are_obeyed_and_recorded() -> None:
    schema, rows = random_rows(8, n=40, features=3)
    constraints = Constraints(required=[("v1", "v2")], forbidden=[("v3", "v2")], keep=["v3"])
    options = {"margin": "sm", "gamma": 1.0, "k": 2, "class_parents": 1, "constraints": constraints}
    found = learn_general(schema, rows, **options)
    assert {("v1", "v2"), ("v0", "v3")} <= set(found.dag.edges)
    assert ("v3", "v2") not in found.dag.edges
    assert found.score == pytest.approx(best_of_all(schema, rows, **options), abs=1e-6)
    verify(found.certificate.to_document(), rows.codes)
    assert [1, 2] in found.certificate.evidence["space"]["required"]


@pytest.mark.parametrize(
    "constraints",
    [
        None,
        Constraints(required=[("v1", "v2")], tiers=[["v1"], ["v3"]]),
        Constraints(forbidden=[("v0", "v1"), ("v2", "v0")], keep=["v3"]),
        Constraints(required=[("v3", "v0")]),
    ],
)
def test_the_evidence_admits_the_parent_sets_that_were_searched(constraints: Constraints | None) -> None:
    names = ("v0", "v1", "v2", "v3")
    for k, class_parents in ((1, 1), (2, 2)):
        searched = parent_sets(names, k, class_parents, constraints)
        space = ParentSpace.of(names, constraints, k, class_parents)
        for child, own in enumerate(searched):
            others = [v for v in range(4) if v != child]
            subsets = [tuple(v for i, v in enumerate(others) if bits >> i & 1) for bits in range(8)]
            assert sorted(own) == sorted(s for s in subsets if space.admits(child, s))


def test_a_start_is_improved_and_a_wrong_one_is_named() -> None:
    schema, rows = random_rows(1, n=40, features=4)
    start = Dag.from_edges([("v0", "v1"), ("v0", "v2"), ("v1", "v2")], schema.names)
    found = learn_general(schema, rows, gamma=1.0, k=2, start=start, time_limit=0.0)
    form = Formulation(dense_problem(schema, rows, gamma=1.0, k=2))
    assert found.score >= form.value([(), (0,), (0, 1), (), ()])
    wrong = Dag.from_edges([("v1", "v2")], schema.names)
    with pytest.raises(ValueError, match="the start gives 'v2' parents that are not allowed here: 'v1'"):
        learn_general(schema, rows, gamma=1.0, k=2, start=wrong)


def test_without_time_there_is_a_structure_and_a_bound_that_hold() -> None:
    schema, rows = random_rows(2, n=40, features=4)
    moments: list[Moment] = []
    none = learn_general(schema, rows, gamma=0.5, k=2, time_limit=0.0)
    full = learn_general(schema, rows, gamma=0.5, k=2, callback=moments.append)
    assert none.score <= full.score + 1e-9 <= none.certificate.bound + 1e-6
    verify(none.certificate.to_document(), rows.codes)
    assert [m.bound for m in moments] == sorted((m.bound for m in moments), reverse=True)


def test_an_interrupted_search_keeps_its_best() -> None:
    def interrupt(_: Moment) -> None:
        raise KeyboardInterrupt

    schema, rows = random_rows(4, n=60, features=5)
    found = learn_general(schema, rows, gamma=0.5, k=2, callback=interrupt)
    assert found.status == "interrupted"
    verify(found.certificate.to_document(), rows.codes)


def test_any_multipliers_within_the_weights_give_a_bound() -> None:
    schema, rows = random_rows(5, n=30, features=3)
    problem = dense_problem(schema, rows, margin="sm", gamma=1.0, k=2)
    relaxation, rng = MarginRelaxation(problem), np.random.default_rng(0)
    best = max(relaxation.value(graph) for graph in all_graphs(relaxation.form.sets))
    per_sample = np.bincount(problem.sample)[problem.sample]
    for _ in range(10):
        values = problem.weights[problem.sample] / per_sample * rng.random(len(problem.sample))
        clusters = ClusterProof(((1, 2), (1, 2, 3)), tuple(rng.exponential(size=2)))
        proof = MarginProof(np.arange(len(values)), values, clusters)
        assert bound_of(*relaxation.raised(proof), everything(relaxation.families)) >= best - 1e-9


def test_no_single_change_improves_what_was_climbed() -> None:
    schema, rows = random_rows(6, n=40, features=4)
    form = Formulation(dense_problem(schema, rows, margin="sm", gamma=1.0, k=2))
    parents = climb(form, ((),) * 5)
    value = form.value(parents)
    for v, own in enumerate(form.sets):
        for s in own:
            changed = tuple(s if i == v else p for i, p in enumerate(parents))
            if is_acyclic(changed):
                assert form.value(changed) <= value + 1e-8


def test_a_problem_too_large_for_memory_is_refused_with_the_remedy() -> None:
    schema, rows = random_rows(0)
    with pytest.raises(ValueError, match="more than max_memory=1e\\+03"):
        learn_general(schema, rows, gamma=1.0, k=2, max_memory=1e3)


def test_a_class_of_one_level_leaves_nothing_to_find() -> None:
    schema = Schema((Variable("y", (0,)), Variable("a", (0, 1)), Variable("b", (0, 1))))
    codes = np.random.default_rng(0).integers(0, 2, (3, 20)).astype(np.uint8)
    codes[0] = 0
    rows = Rows(codes, (1, 2, 2))
    found = ExactMargin("sm", gamma=1.5, k=2).learn(schema, rows)
    assert found.certificate.status == "optimal"
    assert found.score == pytest.approx(1.5 * 20)
    verify(found.certificate.to_document(), codes)


@pytest.mark.parametrize("seed", range(3))
def test_large_weights_are_no_other_problem(seed: int) -> None:
    schema, rows = random_rows(seed, n=40, features=4)
    light = learn_general(schema, rows, gamma=2.0, k=2, smoothing=1e-7)
    heavy = learn_general(schema, rows.reweighted(np.full(len(rows), 1e7)), gamma=2.0, k=2, smoothing=1.0)
    assert heavy.certificate.status == "optimal"
    assert heavy.score == pytest.approx(1e7 * light.score, rel=1e-6)
    report = verify(heavy.certificate.to_document(), rows.codes, np.full(len(rows), 1e7))
    assert report.objective == pytest.approx(heavy.score, rel=1e-9)


def test_a_search_ends_although_no_gap_is_allowed() -> None:
    for seed in range(4):
        assert (
            learn_general(*random_rows(seed, n=30, features=3), gamma=2.0, k=2, gap=0.0).certificate.status == "optimal"
        )


def test_a_general_solver_that_is_interrupted_leaves_a_structure() -> None:
    schema, rows = random_rows(0, n=30, features=3)

    def stop(_: Moment) -> None:
        raise KeyboardInterrupt

    found = ExactMargin(method="milp", callback=stop).learn(schema, rows)
    assert found.status == found.certificate.status == "interrupted"
    assert found.certificate.bound >= found.certificate.objective


@pytest.mark.parametrize("solve", [learn_general, learn_milp])
def test_ctrl_c_while_coefficients_are_computed_leaves_a_structure_and_its_bound(
    solve: Callable[..., StructureResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    def disturbed(*words: Any, **settings: Any) -> DenseProblem:
        signal.raise_signal(signal.SIGINT)
        return dense_problem(*words, **settings)

    schema, rows = random_rows(4, n=60, features=4)
    monkeypatch.setattr(general, "dense_problem", disturbed)
    found = solve(schema, rows, gamma=0.5, k=2)
    assert found.status == found.certificate.status == "interrupted"
    best = learn_milp(schema, rows, gamma=0.5, k=1).score
    assert found.score <= best + 1e-9 <= found.certificate.bound + 1e-6
