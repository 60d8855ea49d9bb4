"""Formulation (19) in a general solver against all structures, and its linear relaxation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbayes.solvers import Moment
from marginbayes.structure import Constraints, ExactMargin
from marginbayes.structure.exact.milp import Formulation, full_lp_bound, solve_milp
from marginbayes.structure.exact.problem import DenseProblem, dense_problem
from tests.oracles.graphs import all_graphs, is_acyclic
from tests.oracles.structure import Oracle, bundled, random_rows


def best_of_all(problem: DenseProblem) -> float:
    form = Formulation(problem)
    return max(form.value(graph) for graph in all_graphs(form.sets))


@pytest.mark.parametrize("margin", ["sm", "sbm"])
@pytest.mark.parametrize(("k", "class_parents"), [(0, 0), (1, 0), (1, 2), (2, 0)])
@pytest.mark.parametrize("acyclicity", ["order", "clusters", "both"])
def test_the_solver_finds_the_best_of_all_structures(margin: str, k: int, class_parents: int, acyclicity: str) -> None:
    schema, rows = random_rows(k + class_parents, n=30, features=3)
    problem = dense_problem(schema, rows, margin=margin, gamma=math.log(9), k=k, class_parents=class_parents)
    found = solve_milp(problem, acyclicity=acyclicity)
    best = best_of_all(problem)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(best, abs=1e-6)
    assert found.bound >= best - 1e-6
    assert is_acyclic(found.parents)
    assert Formulation(problem).value(found.parents) == found.objective


@pytest.mark.parametrize("margin", ["sm", "sbm"])
@pytest.mark.parametrize("class_parents", [0, 2])
def test_branch_and_bound_finds_what_the_general_solver_finds(margin: str, class_parents: int) -> None:
    schema, rows = bundled("wine", range(5), n=100)
    problem = dense_problem(schema, rows, margin=margin, gamma=1.5, k=1, class_parents=class_parents)
    expected = solve_milp(problem)
    found = ExactMargin(margin, gamma=1.5, class_parents=class_parents).learn(schema, rows)
    assert expected.status == found.certificate.status == "optimal"
    assert found.score == pytest.approx(expected.objective, rel=2e-6)


def test_real_rows_and_constraints_agree_with_all_structures() -> None:
    schema, rows = bundled("wine", range(3), n=60)
    constraints = Constraints(required=[("v1", "v2")], forbidden=[("v3", "v1")])
    problem = dense_problem(schema, rows, margin="sm", gamma=1.0, k=2, class_parents=1, constraints=constraints)
    found = solve_milp(problem)
    assert found.objective == pytest.approx(best_of_all(problem), abs=1e-6)
    assert 1 in found.parents[2]
    assert 3 not in found.parents[1]


def test_the_objective_is_the_soft_margin_counted_by_hand() -> None:
    schema, rows = random_rows(6, n=30, features=3)
    oracle = Oracle(rows, "sm", gamma=0.8)
    problem = dense_problem(schema, rows, margin="sm", gamma=0.8, k=2)
    found = solve_milp(problem)
    structure = {i: (None if 0 not in own else own[1:]) for i, own in enumerate(found.parents) if i}
    # A feature without the class can still be a parent there, which the oracle's structures do not know.
    if not any(structure[p] is None for own in structure.values() if own for p in own):
        assert oracle.score(structure) == pytest.approx(found.objective, abs=1e-9)


@pytest.mark.parametrize("class_parents", [0, 1])
def test_the_full_relaxation_bounds_the_optimum_and_clusters_tighten_it(class_parents: int) -> None:
    schema, rows = random_rows(4, n=40, features=4)
    problem = dense_problem(schema, rows, margin="sm", gamma=2.0, k=1, class_parents=class_parents)
    found = solve_milp(problem)
    full = full_lp_bound(problem)
    assert full.complete
    assert found.objective - 1e-6 <= full.bound <= problem.gamma * problem.weights.sum() + 1e-6


def test_a_time_limit_gives_what_there_is() -> None:
    schema, rows = random_rows(2, n=200, features=9)
    moments: list[Moment] = []
    problem = dense_problem(schema, rows, margin="sm", gamma=0.5, k=1, class_parents=2)
    found = solve_milp(problem, time_limit=0.3, callback=moments.append)
    assert found.status in ("time limit", "optimal")
    assert found.bound >= found.objective
    assert len(moments) == len(found.trace) == 1
    if found.parents is None:
        assert found.objective == -np.inf


def test_scip_agrees_with_highs() -> None:
    pytest.importorskip("pyscipopt")
    schema, rows = random_rows(5, n=30, features=3)
    problem = dense_problem(schema, rows, margin="sm", gamma=math.log(9), k=2, class_parents=1)
    expected = solve_milp(problem).objective
    for acyclicity in ("order", "clusters"):
        found = solve_milp(problem, solver="scip", acyclicity=acyclicity)
        assert found.objective == pytest.approx(expected, abs=1e-6)
        assert found.status == "optimal"
        assert is_acyclic(found.parents)


def test_unknown_words_are_refused() -> None:
    problem = dense_problem(*random_rows(0, features=2), margin="sm", gamma=1.0)
    with pytest.raises(ValueError, match="acyclicity='hope' is not known; choose one of 'order'"):
        solve_milp(problem, acyclicity="hope")
    with pytest.raises(ValueError, match="solver='abacus' is not known; choose one of 'highs', 'scip'"):
        solve_milp(problem, solver="abacus")


@pytest.mark.parametrize("solver", ["highs", "scip"])
@pytest.mark.parametrize("unit", [1e-7, 1e6])
def test_the_unit_of_the_weights_does_not_matter(solver: str, unit: float) -> None:
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    for seed in range(4):
        schema, rows = random_rows(seed, n=40, features=3)
        weighted = rows.reweighted(np.full(len(rows), unit))
        problem = dense_problem(schema, weighted, gamma=math.log(9), k=1, smoothing=unit)
        found, best = solve_milp(problem, solver=solver, acyclicity="both", gap=1e-9), best_of_all(problem)
        assert found.objective == pytest.approx(best, abs=1e-6 * unit)
        assert found.bound == pytest.approx(best, abs=1e-5 * unit)
