"""Limited-memory BFGS against closed forms and SciPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from marginbayes.solvers.lbfgs import lbfgs


def quadratic(n: int, condition: float, seed: int) -> tuple[object, np.ndarray]:
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(n, n)))[0]
    matrix = axes * np.geomspace(1.0, condition, n) @ axes.T
    best = rng.normal(size=n)
    return lambda x: (0.5 * float((x - best) @ matrix @ (x - best)), matrix @ (x - best)), best


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e6])
def test_the_minimum_of_a_quadratic_is_its_centre(condition: float) -> None:
    objective, best = quadratic(30, condition, 0)
    # Rounding leaves a gradient of the size of the largest curvature times the precision.
    found = lbfgs(objective, np.zeros(30), tol=1e-13 * max(condition, 1e4), max_iter=5000)
    np.testing.assert_allclose(found.point, best, atol=1e-6)
    assert found.status == "converged"


def test_with_the_inverse_of_the_second_derivative_it_is_done_at_once_and_with_half_of_it_sooner() -> None:
    objective, best = quadratic(40, 1e5, 2)
    matrix = np.array([objective(best + e)[1] for e in np.eye(40)])
    exact, near = np.linalg.inv(matrix), np.linalg.inv(np.diag(np.diag(matrix)) + 0.5 * matrix)
    plain, half, whole = (
        lbfgs(objective, np.zeros(40), tol=1e-7, max_iter=3000, precondition=None if m is None else m.__matmul__)
        for m in (None, near, exact)
    )
    assert whole.iterations <= 12
    assert half.iterations < plain.iterations
    for found in (plain, half, whole):
        np.testing.assert_allclose(found.point, best, atol=1e-6)


@pytest.mark.parametrize("memory", [1, 5, 30])
def test_a_curved_valley_is_followed_to_its_end(memory: int) -> None:
    found = lbfgs(lambda x: (rosen(x), rosen_der(x)), np.array([-1.2, 1.0]), tol=1e-8, max_iter=5000, memory=memory)
    assert found.status == "converged"
    np.testing.assert_allclose(found.point, 1.0, atol=1e-6)


def test_the_value_never_rises_and_every_step_is_shown() -> None:
    seen: list[float] = []
    found = lbfgs(
        lambda x: (rosen(x), rosen_der(x)), np.array([-1.2, 1.0]), watch=lambda x: seen.append(rosen(x)), tol=1e-9
    )
    assert len(seen) == found.iterations
    assert (np.diff(seen) <= 1e-12).all()


def test_a_region_without_values_is_stepped_back_from() -> None:
    """-log is infinite at zero and below; the first long step lands there."""

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        if (x <= 0).any():
            return np.inf, np.full_like(x, np.nan)
        return float((100 * x - np.log(x)).sum()), 100 - 1 / x

    found = lbfgs(objective, np.array([0.02, 0.5]), tol=1e-8)
    np.testing.assert_allclose(found.point, 0.01, rtol=1e-6)


def test_it_says_why_it_ended() -> None:
    objective, best = quadratic(20, 1e4, 1)
    assert lbfgs(objective, np.zeros(20), max_iter=3).status == "iteration limit"
    assert lbfgs(objective, np.zeros(20), max_iter=3).iterations == 3
    assert lbfgs(objective, best.copy()).iterations == 0
    # 1 / x falls for ever, and less and less.
    slow = lbfgs(lambda x: (float(1 / x[0]), -1 / x**2), np.ones(1), tol=0.0, least_gain=1e-3)
    assert slow.status == "little gain"
    assert slow.value < 2e-3
    # Where the gradient points uphill no step is lower.
    assert lbfgs(lambda x: (float(x @ x), -x), np.ones(2)).status == "no lower value"


def test_it_does_as_many_evaluations_as_others_and_not_many_more() -> None:
    calls = [0, 0]

    def counted(which: int) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
            calls[which] += 1
            return rosen(x), rosen_der(x)

        return objective

    start = np.tile([-1.2, 1.0], 20)
    lbfgs(counted(0), start, tol=1e-6, memory=10, max_iter=2000)
    minimize(counted(1), start, jac=True, method="L-BFGS-B", options={"gtol": 1e-6, "ftol": 0, "maxcor": 10})
    assert calls[0] <= 1.5 * calls[1]
