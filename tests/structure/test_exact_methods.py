"""The other ways of `ExactMargin`: a general solver as second opinion, and more than one feature parent."""

from __future__ import annotations

import math

import pytest

from marginbayes.graph import Dag
from marginbayes.structure import Constraints, ExactMargin, NaiveBayes
from marginbayes.structure.exact.learner import gaps
from marginbayes.structure.exact.milp import Formulation
from marginbayes.structure.exact.problem import dense_problem
from marginbayes.verification import verify
from tests.oracles.graphs import all_graphs
from tests.oracles.structure import bundled, random_rows


@pytest.mark.parametrize("margin", ["sm", "sbm"])
@pytest.mark.parametrize("class_parents", [0, 2])
@pytest.mark.parametrize("acyclicity", ["order", "clusters", "both"])
def test_the_second_opinion_is_the_same(margin: str, class_parents: int, acyclicity: str) -> None:
    schema, rows = random_rows(5, n=40, features=4)
    ours = ExactMargin(margin, p=0.8, class_parents=class_parents).learn(schema, rows)
    other = ExactMargin(margin, p=0.8, class_parents=class_parents, method="milp", acyclicity=acyclicity)
    found = other.learn(schema, rows)
    assert found.certificate.status == "optimal"
    assert found.score == pytest.approx(ours.score, abs=1e-6)


def test_scip_agrees() -> None:
    pytest.importorskip("pyscipopt")
    schema, rows = random_rows(6, n=30, features=4)
    found = ExactMargin(method="milp", solver="scip", acyclicity="clusters").learn(schema, rows)
    assert found.score == pytest.approx(ExactMargin().learn(schema, rows).score, abs=1e-6)


def test_two_feature_parents_are_solved_to_the_best_of_all_structures() -> None:
    schema, rows = random_rows(7, n=40, features=4)
    found = ExactMargin(p=0.9, k=2).learn(schema, rows)
    form = Formulation(dense_problem(schema, rows, gamma=math.log(9.0), k=2))
    assert found.certificate.status == "optimal"
    assert found.score == pytest.approx(max(form.value(graph) for graph in all_graphs(form.sets)), abs=1e-6)
    assert found.score > ExactMargin(p=0.9, k=1).learn(schema, rows).score  # else this test would show little
    verify(found.certificate.to_document(), rows.codes)
    assert gaps(found.certificate)["lost margin"] <= 1e-6


def test_two_feature_parents_begin_at_a_given_structure_and_obey_constraints() -> None:
    schema, rows = random_rows(8, n=40, features=4)
    constraints = Constraints(forbidden=[("v1", "v2")], required=[("v3", "v4")])
    one = ExactMargin(k=1, constraints=constraints).learn(schema, rows)
    two = ExactMargin(k=2, constraints=constraints, start=one).learn(schema, rows)
    assert two.score >= one.score
    assert 3 in two.dag.parents[4]
    assert 1 not in two.dag.parents[2]
    verify(two.certificate.to_document(), rows.codes)


@pytest.mark.parametrize("method", ["branch-and-bound", "milp"])
def test_a_time_limit_leaves_a_structure_and_a_bound(method: str) -> None:
    schema, rows = bundled("digits", range(9), n=150)
    found = ExactMargin(k=2, method=method, time_limit=0.01).learn(schema, rows)
    assert found.certificate.status == "time limit"
    assert found.certificate.bound > found.certificate.objective + 1.0
    assert found.dag.names == schema.names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "simplex"}, "method='simplex' is not known"),
        ({"k": -1}, "k=-1 must be a whole number"),
        ({"k": 1.5}, "k=1.5 must be a whole number"),
        ({"k": 2, "checkpoint": "x.npz"}, "checkpoint='x.npz' is not for k=2"),
        ({"method": "milp", "node_limit": 3}, "node_limit=3 is not for method='milp'"),
        ({"method": "milp", "solver": "cplex"}, "solver='cplex' is not known"),
        ({"method": "milp", "acyclicity": "none"}, "acyclicity='none' is not known"),
    ],
)
def test_what_a_way_cannot_do_is_said(options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ExactMargin(**options).learn(*random_rows(0, n=20, features=3))


def test_a_start_is_not_for_the_general_solver() -> None:
    schema, rows = random_rows(0, n=20, features=3)
    start = NaiveBayes().learn(schema, rows)
    with pytest.raises(ValueError, match="is not for method='milp'"):
        ExactMargin(method="milp", start=start).learn(schema, rows)


@pytest.mark.parametrize("k", [1, 2])
def test_a_start_in_which_a_feature_lacks_the_class_is_one_without_that_feature(k: int) -> None:
    schema, rows = random_rows(8, n=40, features=3)
    lacking = Dag(schema.names, ((), (0,), (1,), (0,)))
    found = ExactMargin(k=k, start=lacking, time_limit=0.0).learn(schema, rows)
    same = ExactMargin(k=k, start=Dag(schema.names, ((), (0,), (), (0,))), time_limit=0.0).learn(schema, rows)
    assert (found.dag, found.score) == (same.dag, same.score)
