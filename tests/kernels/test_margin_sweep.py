from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from marginbayes.kernels.markov import hinge_sum, project, sweep


def by_root_finding(linear: np.ndarray, curvature: float, label: int, cap: float) -> np.ndarray:
    bounds = np.zeros(len(linear))
    bounds[label] = cap

    def point(level: float) -> np.ndarray:
        return np.minimum(bounds, (level - linear) / curvature)

    wide = 10 * (np.abs(linear).max() + curvature * cap + 1)
    return point(brentq(lambda level: point(level).sum(), -wide, wide, xtol=1e-13))


@pytest.mark.parametrize("seed", range(60))
def test_the_subproblem_of_a_row_is_solved_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    linear, curvature = rng.normal(size=n) * 3, float(rng.integers(1, 9))
    label, cap = int(rng.integers(n)), float(rng.random() * 2)
    out = np.empty(n)
    project(linear, curvature, label, cap, out)
    np.testing.assert_allclose(out, by_root_finding(linear, curvature, label, cap), atol=1e-9)


def test_a_sweep_never_lowers_the_dual_and_keeps_weights_and_multipliers_together() -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(-1, 6, size=(12, 3)).astype(np.int32)
    labels, caps = rng.integers(0, 3, 12), rng.random(12) + 0.1
    base, scale = rng.normal(size=(12, 3)), 0.3
    multipliers, weights = np.zeros((12, 3)), np.zeros((6, 3))
    asleep, patience = np.zeros(12, np.int32), np.zeros(12, np.int32)
    values = []
    for _ in range(30):
        order = rng.permutation(12)
        sweep(cells, labels, caps, base, scale, order, multipliers, weights, asleep, patience)
        together = np.zeros((6, 3))
        for n in range(12):
            for cell in cells[n][cells[n] >= 0]:
                together[cell] += multipliers[n]
        np.testing.assert_allclose(weights, together, atol=1e-12)
        own = multipliers[np.arange(12), labels].sum()
        values.append(own - (weights**2).sum() / 2 - scale * (multipliers * base).sum())
    assert (np.diff(values) >= -1e-12).all()
    assert (multipliers[np.arange(12), labels] <= caps + 1e-12).all()
    assert np.abs(multipliers.sum(axis=1)).max() < 1e-12


def test_the_sum_of_hinges_is_its_definition() -> None:
    rng = np.random.default_rng(1)
    cells = rng.integers(-1, 5, size=(9, 2)).astype(np.int32)
    labels, row_weights = rng.integers(0, 4, 9), rng.random(9)
    base, weights = rng.normal(size=(9, 4)), rng.normal(size=(5, 4))
    expected = 0.0
    for n in range(9):
        scores = 0.7 * base[n] + sum((weights[c] for c in cells[n] if c >= 0), np.zeros(4))
        rivals = np.delete(scores, labels[n])
        expected += row_weights[n] * max(0.0, 2.0 - (scores[labels[n]] - rivals.max()))
    found = hinge_sum(cells, labels, row_weights, base, 0.7, 2.0, weights)
    assert found == pytest.approx(expected, abs=1e-12)
