from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from marginbayes.data.rows import Rows
from marginbayes.scores import aic, bdeu, bic, conditional_mutual_information, log_likelihood, mutual_information
from marginbayes.scores import information as module


def rows_with_holes(seed: int, holes: float, weighted: bool = False) -> Rows:
    rng = np.random.default_rng(seed)
    cards = (3, 2, 4, 1, 5)
    codes = np.stack([rng.integers(0, c, 400) for c in cards]).astype(np.uint8)
    codes[2] = np.where(rng.random(400) < 0.5, (codes[0] + codes[1]) % 4, codes[2])
    gone = rng.random(codes.shape) < holes
    gone[0] = False
    codes[gone] = np.broadcast_to(np.array(cards)[:, None], codes.shape)[gone]
    return Rows(codes, cards, rng.integers(1, 4, 400).astype(float) if weighted else None)


def slow_information(rows: Rows, i: int, j: int) -> float:
    """Weighted mean over the classes of scikit-learn's mutual information, on the rows that have both."""
    weights = np.ones(len(rows), int) if rows.weights is None else rows.weights.astype(int)
    codes = np.repeat(rows.codes, weights, axis=1)
    both = (codes[i] < rows.cardinalities[i]) & (codes[j] < rows.cardinalities[j])
    c, a, b = codes[0][both], codes[i][both], codes[j][both]
    return sum(np.mean(c == k) * mutual_info_score(a[c == k], b[c == k]) for k in np.unique(c))


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("product", [False, True])
def test_both_ways_give_scikit_learns_mutual_information(
    monkeypatch: pytest.MonkeyPatch, holes: float, weighted: bool, product: bool
) -> None:
    monkeypatch.setattr(module, "_matrix_product_pays", lambda _: product)
    rows = rows_with_holes(0, holes, weighted)
    found = conditional_mutual_information(rows)
    for i in range(4):
        for j in range(4):
            expected = 0.0 if i == j else slow_information(rows, i + 1, j + 1)
            assert found[i, j] == pytest.approx(expected, abs=1e-12)


def test_mutual_information_with_the_class_is_scikit_learns() -> None:
    rows = rows_with_holes(1, 0.2)
    for i, value in enumerate(mutual_information(rows), start=1):
        there = rows.codes[i] < rows.cardinalities[i]
        assert value == pytest.approx(mutual_info_score(rows.codes[0][there], rows.codes[i][there]), abs=1e-12)


def test_the_log_likelihood_is_the_sum_of_log_frequencies() -> None:
    counts = np.array([[3, 1], [0, 4], [0, 0]])
    assert log_likelihood(counts) == pytest.approx(3 * np.log(0.75) + np.log(0.25))
    assert aic(counts) == pytest.approx(log_likelihood(counts) - 3)
    assert bic(counts) == pytest.approx(log_likelihood(counts) - 1.5 * np.log(8))


def test_bdeu_is_the_product_of_predictive_probabilities() -> None:
    # The marginal likelihood, one observation after the other.
    sequence = [(0, 1), (1, 0), (0, 1), (0, 0), (1, 1), (1, 1)]
    seen, value = np.zeros((2, 2)), 0.0
    for row, level in sequence:
        value += np.log((seen[row, level] + 0.75) / (seen[row].sum() + 1.5))
        seen[row, level] += 1
    assert bdeu(seen, 3.0) == pytest.approx(value)
