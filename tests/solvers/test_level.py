from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from marginbayes.solvers import Moment
from marginbayes.solvers.level import minimise_on_simplex
from marginbayes.solvers.simplex import best_pull, nearest_in_level_set, project_on_simplex


def hinge(seed: int, n: int, rows: int = 60):
    """A convex function with many kinks, and its matrix."""
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(rows, n)) + 0.5 * rng.normal(size=(rows, 1)) + 0.3

    def value(x):
        missed = 1 - matrix @ x
        return float(np.maximum(missed, 0).sum()), -matrix[missed > 0].sum(axis=0)

    return matrix, value


def clarabel(matrix: np.ndarray, pull: float) -> float:
    cp = pytest.importorskip("cvxpy")
    x = cp.Variable(matrix.shape[1])
    distance = cp.norm(x - 1 / matrix.shape[1])
    task = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - matrix @ x)) + pull * distance), [x >= 0, cp.sum(x) == 1])
    return task.solve(solver="CLARABEL")


@pytest.mark.parametrize("n", [2, 5, 20])
@pytest.mark.parametrize("pull", [0.0, 0.3, 5.0, 500.0])
def test_the_optimum_is_that_of_a_cone_solver(n: int, pull: float) -> None:
    matrix, value = hinge(n, n)
    found = minimise_on_simplex(value, n, pull=pull, tol=1e-8)
    wanted = clarabel(matrix, pull)
    assert found.status == "optimal"
    assert found.value == pytest.approx(wanted, rel=1e-6)
    assert found.bound <= wanted + 1e-6 * max(1.0, wanted)
    distance = np.linalg.norm(found.point - 1 / n)
    assert value(found.point)[0] + pull * distance == pytest.approx(found.value, rel=1e-12)
    assert (found.point >= 0).all()
    assert found.point.sum() == pytest.approx(1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0.0, 1.0, 20.0]), st.integers(0, 12))
def test_a_bound_is_never_above_any_value_however_early_it_ends(seed: int, n: int, pull: float, steps: int) -> None:
    _, value = hinge(seed, n, 15)
    found = minimise_on_simplex(value, n, pull=pull, max_iter=steps, tol=0.0)
    rng = np.random.default_rng(seed)
    points = [found.point, np.full(n, 1 / n), *np.eye(n), *rng.dirichlet(np.ones(n), 50)]
    least = min(value(x)[0] + pull * np.linalg.norm(x - 1 / n) for x in points)
    assert found.bound <= least + 1e-9 * max(1.0, least)
    assert found.value >= least - 1e-12
    tangents = [value(p) for p in found.points]
    together = sum(m * g for m, (_, g) in zip(found.multipliers, tangents, strict=True))
    constant = sum(m * (v - g @ p) for m, p, (v, g) in zip(found.multipliers, found.points, tangents, strict=True))
    assert constant + (together + best_pull(together, pull)).min() == pytest.approx(found.bound, rel=1e-9, abs=1e-9)


def test_it_is_never_worse_than_the_centre_and_the_corners() -> None:
    for seed in range(20):
        _, value = hinge(seed, 4)
        found = minimise_on_simplex(value, 4, max_iter=0)
        assert found.value <= min(value(x)[0] for x in (np.full(4, 0.25), *np.eye(4)))


def test_a_strong_pull_ends_at_the_centre_with_one_evaluation() -> None:
    _, value = hinge(0, 8)
    slope = value(np.full(8, 1 / 8))[1]
    found = minimise_on_simplex(value, 8, pull=float(np.linalg.norm(slope - slope.mean())) * 1.001)
    assert len(found.trace) == 1
    np.testing.assert_array_equal(found.point, 1 / 8)


def test_one_coordinate_is_no_problem() -> None:
    found = minimise_on_simplex(lambda x: (float(x[0] ** 2), 2 * x), 1, pull=3.0)
    assert (found.value, found.bound, len(found.trace)) == (1.0, 1.0, 1)


def test_interrupting_keeps_the_best_point_and_a_true_bound() -> None:
    matrix, value = hinge(3, 6)
    seen: list[Moment] = []

    def stop(moment: Moment) -> None:
        seen.append(moment)
        if len(seen) == 9:
            raise KeyboardInterrupt

    found = minimise_on_simplex(value, 6, callback=stop)
    assert found.status == "interrupted"
    assert len(found.trace) == 9
    assert found.bound <= clarabel(matrix, 0.0) <= found.value
    assert "9 evaluations" in str(seen[-1])


def test_the_objective_falls_and_the_bound_rises() -> None:
    _, value = hinge(5, 10)
    _, objective, bound = np.array(minimise_on_simplex(value, 10, tol=1e-9).trace).T
    assert (np.diff(objective) <= 0).all()
    assert (np.diff(bound) >= 0).all()


def test_limits_are_named() -> None:
    _, value = hinge(5, 10)
    assert minimise_on_simplex(value, 10, max_iter=1, tol=0).status == "iteration limit"
    assert minimise_on_simplex(value, 10, time_limit=0.0, tol=0).status == "time limit"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_projections_on_the_simplex_are_those_of_a_general_solver(seed: int, n: int) -> None:
    target = np.random.default_rng(seed).normal(size=n)
    found = project_on_simplex(target)
    sums = {"type": "eq", "fun": lambda x: x.sum() - 1}
    start = np.full(n, 1 / n)
    slow = minimize(lambda x: ((x - target) ** 2).sum(), start, bounds=[(0, 1)] * n, constraints=sums, tol=1e-12)
    np.testing.assert_allclose(found, slow.x, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.floats(0.01, 10))
def test_the_best_pull_gives_the_least_value_of_a_line_with_a_norm(seed: int, n: int, weight: float) -> None:
    slope = np.random.default_rng(seed).normal(size=n)
    pull = best_pull(slope, weight)
    assert np.linalg.norm(pull) <= weight * (1 + 1e-12)
    assert pull.sum() == pytest.approx(0, abs=1e-9)
    bound = (slope + pull).min()
    points = np.random.default_rng(seed + 1).dirichlet(np.full(n, 0.5), 2000)
    values = points @ slope + weight * np.linalg.norm(points - 1 / n, axis=1)
    # At the minimiser itself the bound is reached; it lies in the direction of the pull.
    direction = pull / max(np.linalg.norm(pull), 1e-300)
    lengths = np.linspace(0, 2, 20001)
    line = 1 / n + lengths[:, None] * direction
    line = line[(line >= -1e-12).all(axis=1)]
    reached = (line @ slope + weight * np.linalg.norm(line - 1 / n, axis=1)).min()
    assert bound <= values.min() + 1e-9
    assert bound == pytest.approx(reached, abs=2e-3 * (1 + weight))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_the_nearest_point_of_a_level_set_is_that_of_a_general_solver(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    slopes, inside = rng.normal(size=(5, n)), rng.dirichlet(np.ones(n))
    limits = slopes @ inside + rng.random(5) * 0.1
    centre = rng.dirichlet(np.ones(n))
    found = nearest_in_level_set(centre, slopes, limits)
    rules = [{"type": "eq", "fun": lambda x: x.sum() - 1}, {"type": "ineq", "fun": lambda x: limits - slopes @ x}]
    slow = minimize(
        lambda x: ((x - centre) ** 2).sum(), inside, bounds=[(0, 1)] * n, constraints=rules, options={"ftol": 1e-14}
    )
    assert (slopes @ found <= limits + 1e-6).all()
    assert ((found - centre) ** 2).sum() <= ((slow.x - centre) ** 2).sum() + 1e-6
