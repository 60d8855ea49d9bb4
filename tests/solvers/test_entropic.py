from __future__ import annotations

import numpy as np
import pytest

from marginbayes.solvers.entropic import EntropicHinge, Layout
from marginbayes.solvers.entropic_interior import minimise
from marginbayes.solvers.entropic_small import SmallPath
from marginbayes.solvers.entropic_system import Curvature, System

K = 3
# A class block of one cell, a block of four levels, and one of two levels under two values of a parent.
BLOCKS = np.repeat([0, 1, 2], [1, 4, 4])
CHUNKS = np.array([0, 1, 1, 1, 1, 2, 2, 3, 3], np.int32)


def problem(seed: int, n: int = 30, holes: bool = True) -> EntropicHinge:
    rng = np.random.default_rng(seed)
    cells = np.column_stack([np.zeros(n, int), rng.integers(1, 5, n), rng.integers(5, 9, n)]).astype(np.int32)
    if holes:
        cells[rng.random((n, 3)) < 0.2] = -1
        cells[:, 0] = 0
    labels = rng.integers(0, K, n)
    layout = Layout(cells, labels, rng.random((9, K)) * 5 + 0.5, BLOCKS, CHUNKS)
    return EntropicHinge(layout, rng.random(n) + 0.1, 2.0)


def dense(layout: Layout) -> np.ndarray:
    """One-hot rows: rows x cells."""
    out = np.zeros((len(layout.labels), len(layout.counts)))
    for n, line in enumerate(layout.cells):
        out[n, line[line >= 0]] = 1.0
    return out


def test_scores_and_their_transpose_are_products_with_the_one_hot_rows() -> None:
    layout = problem(0).layout
    rng = np.random.default_rng(1)
    weights, values = rng.normal(size=(9, K)), rng.normal(size=(30, K))
    np.testing.assert_allclose(layout.scores(weights), dense(layout) @ weights, atol=1e-12)
    np.testing.assert_allclose(layout.sums(values), dense(layout).T @ values, atol=1e-12)


def test_groups_are_normalised_over_levels_and_the_first_block_over_classes() -> None:
    layout = problem(0).layout
    weights = np.exp(layout.normalised(np.random.default_rng(2).normal(size=(9, K))))
    assert weights[0].sum() == pytest.approx(1.0)
    for cells in ([1, 2, 3, 4], [5, 6], [7, 8]):
        np.testing.assert_allclose(weights[cells].sum(axis=0), 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_is_the_sum_of_complementarity_and_divergences(seed: int) -> None:
    # P - D = sum_n [cap max(0, max_c z) - eta.z] + sum over groups of V KL(v / V || e^w), for every normalised w.
    given = problem(seed)
    layout, rng = given.layout, np.random.default_rng(seed)
    w = layout.normalised(rng.normal(size=(9, K)))
    eta = rng.random((30, K)) * given.caps[:, None] / K * 0.2
    eta[np.arange(30), layout.labels] = 0.0
    eta, v = given.repaired(eta)
    assert (v >= 0).all()
    z = given.shortfalls(w)
    rivals = np.where(np.arange(K) == layout.labels[:, None], -np.inf, z).max(axis=1)
    slack = (given.caps * np.maximum(0.0, rivals)).sum() - (eta * z).sum()
    shares = v / layout.spread(layout.group_sums(v))
    divergence = (v * (np.log(shares) - w)).sum()
    assert slack >= 0
    assert divergence >= 0
    assert given.primal(w) - given.dual(eta, v) == pytest.approx(slack + divergence, rel=1e-10)


def test_overdrawn_cells_are_repaired() -> None:
    given = problem(3)
    layout = given.layout
    eta = np.full((30, K), 3.0)
    eta[np.arange(30), layout.labels] = 0.0
    before = layout.counts + layout.differences(eta)
    assert before.min() < 0
    smaller, amounts = given.repaired(eta)
    assert amounts.min() >= 0
    assert (smaller <= eta).all()
    np.testing.assert_allclose(amounts, layout.counts + layout.differences(smaller), atol=1e-10)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("stiff", [1e-3, 1.0, 1e4])
def test_the_system_is_solved_with_any_number_of_strong_modes_and_as_a_whole(
    stiff: float, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(System, "_prefers_whole", lambda self, strong: whole)  # noqa: ARG005
    given = problem(4, n=40)
    layout, rng = given.layout, np.random.default_rng(5)
    theta = rng.random((40, K)) * stiff * 10.0 ** rng.integers(-3, 3, (40, K))
    theta[np.arange(40), layout.labels] = 0.0
    tau = rng.random(40) * stiff
    total = tau + theta.sum(axis=1)
    h, kappa = rng.random((9, K)) + 0.01, layout.group_sums(rng.random((9, K)))
    system = System(layout, Curvature(theta, tau, total, h, kappa))
    right = rng.normal(size=(9, K))
    # The matrix, column by column, from its definition.
    onehot, matrix = dense(layout), np.diag(h.ravel())
    for number in np.unique(layout.chunks):
        for c in range(K):
            group = np.zeros((9, K))
            group[layout.chunks == number] = h[layout.chunks == number] if number == 0 else 0.0
            if number:
                group[layout.chunks == number, c] = h[layout.chunks == number, c]
            if number or c == 0:
                matrix += np.outer(group, group) / kappa[number, c]
    for n in range(40):
        d = np.array([np.outer(onehot[n], np.eye(K)[layout.labels[n]] - np.eye(K)[c]).ravel() for c in range(K)])
        m = np.diag(theta[n]) - np.outer(theta[n], theta[n]) / total[n]
        matrix += d.T @ m @ d
    np.testing.assert_allclose(system.product(right).ravel(), matrix @ right.ravel(), rtol=1e-9)
    found = system.solve(right, 1e-22, lambda: None)
    wanted = np.linalg.solve(matrix, right.ravel()).reshape(9, K)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8 * np.abs(wanted).max())
    # What a residual is taken out of: the multipliers, by what the rows' curvature makes of the solution.
    d_eta, d_spare = np.zeros((40, K)), np.zeros(40)
    system.correct(right, d_eta, d_spare)
    np.testing.assert_allclose(d_eta.sum(axis=1) + d_spare, 0.0, atol=1e-9)
    if whole:
        assert system.iterations <= 3
        rows_part = matrix @ wanted.ravel() - (h * wanted).ravel()
        rows_part -= (h * layout.spread(layout.group_sums(h * wanted) / kappa)).ravel()
        np.testing.assert_allclose(layout.differences(d_eta).ravel(), -rows_part, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_the_solution_closes_the_gap_from_any_start(seed: int) -> None:
    given = problem(seed)
    cold = minimise(given, tol=1e-9)
    far = minimise(given, np.random.default_rng(seed).normal(size=(9, K)) * 5, tol=1e-9)
    assert cold.status == far.status == "optimal"
    assert cold.objective == pytest.approx(far.objective, rel=1e-8)
    assert given.primal(cold.weights) == pytest.approx(cold.objective, rel=1e-14)
    assert (cold.eta >= 0).all()
    assert (cold.eta.sum(axis=1) <= given.caps * (1 + 1e-12)).all()


def test_a_gap_below_rounding_ends_by_saying_so() -> None:
    found = minimise(problem(0), tol=0.0, max_iter=400)
    assert found.status in ("stalled", "iteration limit", "optimal")
    assert found.objective - found.bound <= 1e-9 * abs(found.objective)


def test_many_stiff_rows_over_few_weights_are_factorised_by_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallPath, "suits", lambda problem: False)  # noqa: ARG005
    given = problem(0, n=1500)
    given = EntropicHinge(given.layout, 10 * given.caps, given.target)
    sides = []
    plain = System._prefers_whole
    monkeypatch.setattr(System, "_prefers_whole", lambda self, strong: sides.append(plain(self, strong)) or sides[-1])
    found = minimise(given)
    assert found.status == "optimal"
    assert found.objective - found.bound <= 1e-6 * found.objective
    assert any(sides)
    monkeypatch.setattr(System, "_prefers_whole", lambda self, strong: False)  # noqa: ARG005
    assert minimise(given).objective == pytest.approx(found.objective, rel=2e-6)
