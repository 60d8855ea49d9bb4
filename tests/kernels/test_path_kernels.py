from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginbayes.kernels.path_modes import system_matrix
from marginbayes.kernels.path_solve import correct, solve
from marginbayes.kernels.path_step import _smallest
from marginbayes.kernels.path_values import Change, Local, appraise, class_sums, class_totals, differences
from marginbayes.solvers.entropic import EntropicHinge, Layout
from marginbayes.solvers.entropic_path import CAREFUL
from marginbayes.solvers.entropic_small import SmallPath

# A class block of one cell, a block of four levels, and one of two levels under two values of a parent.
BLOCKS = np.repeat([0, 1, 2], [1, 4, 4])
CHUNKS = np.array([0, 1, 1, 1, 1, 2, 2, 3, 3], np.int32)
CELLS = len(CHUNKS)


def problem(seed: int, n: int, classes: int) -> EntropicHinge:
    rng = np.random.default_rng(seed)
    cells = np.column_stack([np.zeros(n, int), rng.integers(1, 5, n), rng.integers(5, 9, n)]).astype(np.int32)
    cells[:, 1:][rng.random((n, 2)) < 0.2] = -1
    layout = Layout(cells, rng.integers(0, classes, n), rng.random((CELLS, classes)) * 5 + 0.5, BLOCKS, CHUNKS)
    return EntropicHinge(layout, rng.random(n) + 0.1, 2.0)


def dense(layout: Layout) -> np.ndarray:
    """One-hot rows: rows x cells."""
    out = np.zeros((len(layout.labels), CELLS))
    for n, line in enumerate(layout.cells):
        out[n, line[line >= 0]] = 1.0
    return out


def path_of(given: EntropicHinge) -> SmallPath:
    weights = given.layout.normalised(np.log(given.layout.counts))
    return SmallPath(given, weights, 0.3, CAREFUL)


def system(layout: Layout, k: Local) -> np.ndarray:
    """The matrix by its definition."""
    onehot, classes, matrix = dense(layout), k.h.shape[1], np.diag(k.h.ravel())
    for number in np.unique(CHUNKS):
        for c in range(1 if number == 0 else classes):
            group = np.zeros_like(k.h)
            of = slice(None) if number == 0 else c
            group[number == CHUNKS, of] = k.h[number == CHUNKS, of]
            matrix += np.outer(group, group) / k.kappa[number, c]
    for n, label in enumerate(layout.labels):
        d = np.array([np.outer(onehot[n], np.eye(classes)[label] - np.eye(classes)[c]).ravel() for c in range(classes)])
        matrix += d.T @ (np.diag(k.theta[n]) - np.outer(k.theta[n], k.theta[n]) / k.total[n]) @ d
    return matrix


def local(given: EntropicHinge, seed: int, stiff: float) -> Local:
    """Curvature of any size."""
    layout, rng = given.layout, np.random.default_rng(seed)
    n, classes = len(given.caps), layout.counts.shape[1]
    theta = rng.random((n, classes)) * stiff * 10.0 ** rng.integers(-3, 3, (n, classes))
    theta[np.arange(n), layout.labels] = 0.0
    tau = rng.random(n) * stiff
    h, kappa = rng.random((CELLS, classes)) + 0.01, layout.group_sums(rng.random((CELLS, classes)))
    return Local(h, h, kappa, theta, tau, tau + theta.sum(axis=1), h, kappa)


@pytest.mark.parametrize("classes", [1, 2, 3, 5, 9])
def test_sums_over_rows_are_products_with_the_one_hot_rows(classes: int) -> None:
    given = problem(0, 20, classes)
    g, onehot, rng = path_of(given).given, dense(given.layout), np.random.default_rng(1)
    weights, values = rng.normal(size=(CELLS, classes)), rng.normal(size=(20, classes))
    np.testing.assert_allclose(class_totals(g, weights), onehot @ weights, atol=1e-12)
    np.testing.assert_allclose(class_sums(g, values), onehot.T @ values, atol=1e-12)
    eta = np.where(np.arange(classes) == given.layout.labels[:, None], 0.0, rng.random((20, classes)))
    np.testing.assert_allclose(differences(g, eta), given.layout.differences(eta), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_a_point_is_worth_what_the_problem_says(seed: int) -> None:
    given = problem(seed, 20, 3)
    path = path_of(given)
    path.point.weights[:] += np.random.default_rng(seed).normal(size=(CELLS, 3))
    weights, eta = np.empty((CELLS, 3)), np.empty((20, 3))
    objective, bound, overdrawn, vanishing = appraise(path.given, path.point, 1e-2, weights, eta)
    np.testing.assert_allclose(weights, given.layout.normalised(path.point.weights), atol=1e-12)
    assert objective == pytest.approx(given.primal(weights), rel=1e-12)
    amounts = given.layout.counts + given.layout.differences(eta)
    assert amounts.min() >= 0.0
    assert bound == pytest.approx(given.dual(eta, amounts), rel=1e-12)
    assert overdrawn == ((given.layout.counts + given.layout.differences(path.point.eta)).min() < 0.0)
    assert not vanishing


def test_a_group_that_has_lost_its_counts_is_noticed() -> None:
    path = path_of(problem(0, 20, 3))
    path.totals[1] *= 1e-3
    path.point.weights[:] -= 0.1
    assert appraise(path.given, path.point, 1e-2, np.empty((CELLS, 3)), np.empty((20, 3)))[3]


@pytest.mark.parametrize(("n", "whole"), [(8, False), (400, True)])
@pytest.mark.parametrize("most", [10, 1000])
@pytest.mark.parametrize("stiff", [1e-3, 1.0, 1e4])
def test_the_system_is_solved_with_any_number_of_strong_modes_and_as_a_whole(
    stiff: float, most: int, n: int, whole: bool
) -> None:
    given = problem(4, n, 3)
    layout, k = given.layout, local(given, 5, stiff)
    g, memory = path_of(given).given, np.empty(max(most, 27) ** 2)
    modes, matrix = system_matrix(g, k, most, 0.0, memory)
    assert len(modes.rows) <= most
    if stiff == 1e4:
        assert (len(matrix) > len(modes.rows)) == whole
    factor = np.linalg.cholesky(np.tril(matrix) + np.tril(matrix, -1).T)
    right = np.random.default_rng(6).normal(size=(CELLS, 3))
    found = np.empty((CELLS, 3))
    solve(g, k, modes, factor, right.copy(), 1e-22, 0.0, 3000, found)
    definition = system(layout, k)
    wanted = np.linalg.solve(definition, right.ravel()).reshape(CELLS, 3)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8 * np.abs(wanted).max())
    change = Change(found, k.kappa, np.zeros((n, 3)), np.zeros((n, 3)), np.zeros(n), np.zeros(n))
    correct(g, k, modes, factor, right, change)
    np.testing.assert_allclose(change.eta.sum(axis=1) + change.spare, 0.0, atol=1e-7)
    if len(matrix) > len(modes.rows):
        rows_part = definition @ wanted.ravel() - (k.h * wanted).ravel()
        rows_part -= (k.h * layout.spread(layout.group_sums(k.h * wanted) / k.kappa)).ravel()
        np.testing.assert_allclose(layout.differences(change.eta).ravel(), -rows_part, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_the_value_of_a_rank_is_that_of_sorting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values: Any = rng.integers(0, 6, 15).astype(float) if seed % 2 else rng.normal(size=1 + seed)
    rank = int(rng.integers(len(values)))
    assert _smallest(values.copy(), rank) == np.sort(values)[rank]
