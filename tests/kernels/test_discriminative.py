"""Losses of rows against a loop over rows, families and classes; also run with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginbayes.parameters.rowloss import CONDITIONAL, MarginLoss, RowLoss
from marginbayes.solvers.deviations import Deviations


def sample(seed: int, missing: float, n: int = 9) -> tuple[np.ndarray, list[int], np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = [1, 3, 4, 2]
    firsts = np.cumsum([0, *sizes[:-1]])
    draws = [np.minimum(rng.integers(0, s, n), rng.integers(0, s, n)) for s in sizes]
    cells = np.stack(draws, axis=1) + firsts
    cells = np.where(rng.random(cells.shape) < missing, -1, cells).astype(np.int32)
    return cells, sizes, rng.normal(size=(sum(sizes), 3)), rng.integers(0, 3, n), rng.random(n)


def plain_loss(kind: RowLoss, score: list[float], label: int) -> float:
    if kind is CONDITIONAL:
        return math.log(sum(math.exp(s - score[label]) for s in score))
    rivals = [s for c, s in enumerate(score) if c != label]
    margin = score[label] - math.log(sum(math.exp(kind.sharpness * s) for s in rivals)) / kind.sharpness
    t = margin / kind.target
    return 0.5 - t if t <= 0 else 0.5 * (1 - t) ** 2 if t < 1 else 0.0


def plain_total(kind: RowLoss, cells: np.ndarray, weights: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> float:
    total = 0.0
    for used, label, weight in zip(cells, labels, rows, strict=True):
        score = [sum(float(weights[cell, c]) for cell in used if cell >= 0) for c in range(weights.shape[1])]
        total += weight * plain_loss(kind, score, int(label))
    return total


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("kind", [CONDITIONAL, MarginLoss(2.0, 1.5), MarginLoss(0.3, 7.0)])
def test_loss_and_gradient_are_those_of_the_plain_loop(kind: RowLoss, missing: float) -> None:
    cells, sizes, weights, labels, rows = sample(0, missing)
    value, gradient = Deviations.of(cells, sizes).loss(kind.kernel(), weights, labels, rows, None)
    assert value == pytest.approx(plain_total(kind, cells, weights, labels, rows), abs=1e-12)
    for at in np.ndindex(*weights.shape):
        step = np.zeros_like(weights)
        step[at] = 1e-6
        up, down = (plain_total(kind, cells, weights + s, labels, rows) for s in (step, -step))
        assert gradient[at] == pytest.approx((up - down) / 2e-6, abs=1e-7)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_scores_and_sums_over_cells_are_those_of_the_plain_loop(missing: float) -> None:
    cells, sizes, weights, _, _ = sample(1, missing)
    found = Deviations.of(cells, sizes)
    there = [[cell for cell in row if cell >= 0] for row in cells]
    np.testing.assert_allclose(found.scores(weights), [weights[row].sum(axis=0) for row in there], atol=1e-12)
    values = np.random.default_rng(2).random((len(cells), 3))
    expected = np.zeros_like(weights)
    for row, value in zip(there, values, strict=True):
        expected[row] += value
    np.testing.assert_allclose(found.add_up(values), expected, atol=1e-12)


def test_more_rows_than_a_block_and_more_classes_than_are_added_at_once() -> None:
    rng = np.random.default_rng(3)
    cells, sizes, _, _, rows = sample(3, 0.2, n=300)
    weights, labels = rng.normal(size=(sum(sizes), 6)), rng.integers(0, 6, 300)
    value, gradient = Deviations.of(cells, sizes).loss(CONDITIONAL.kernel(), weights, labels, rows, None)
    assert value == pytest.approx(plain_total(CONDITIONAL, cells, weights, labels, rows))
    np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-10)  # a term for all classes changes nothing


def test_nothing_costs_nothing() -> None:
    cells, sizes, weights, labels, rows = sample(4, 0.0, n=0)
    value, gradient = Deviations.of(cells, sizes).loss(CONDITIONAL.kernel(), weights, labels, rows, None)
    assert value == 0.0
    assert not gradient.any()


def test_a_class_without_rivals_has_any_margin() -> None:
    cells, sizes, weights, labels, rows = sample(5, 0.0)
    kernel = MarginLoss(1.0, 1.0).kernel()
    value, gradient = Deviations.of(cells, sizes).loss(kernel, weights[:, :1].copy(), labels * 0, rows, None)
    assert value == 0.0
    assert not gradient.any()
