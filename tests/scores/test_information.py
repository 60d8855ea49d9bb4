from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from marginbayes.data import Schema, Variable, counts
from marginbayes.data.rows import Rows
from marginbayes.scores import aic, bdeu, bic, conditional_mutual_information, log_likelihood, mutual_information
from marginbayes.scores import information as module
from marginbayes.structure import KDB, ChowLiuTAN


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
    """Mean over the classes of scikit-learn's mutual information, where both are there, less the cost of lost rows."""
    weights = np.ones(len(rows), int) if rows.weights is None else rows.weights.astype(int)
    codes = np.repeat(rows.codes, weights, axis=1)
    both = (codes[i] < rows.cardinalities[i]) & (codes[j] < rows.cardinalities[j])
    c, a, b = codes[0][both], codes[i][both], codes[j][both]
    cost = np.prod([rows.cardinalities[v] for v in (0, i, j)]) / 2 * (1 / both.sum() - 1 / len(both))
    told = both.mean() * sum(np.mean(c == k) * mutual_info_score(a[c == k], b[c == k]) for k in np.unique(c))
    return max(0.0, told - cost)


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
            assert found[i, j] == pytest.approx(expected, abs=module.RESOLUTION / 1.9)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_of_any_width_and_pieces_of_any_size_give_the_same(
    monkeypatch: pytest.MonkeyPatch, holes: float, weighted: bool
) -> None:
    rows = rows_with_holes(2, holes, weighted)
    expected = conditional_mutual_information(rows)
    monkeypatch.setattr(module, "_matrix_product_pays", lambda _: True)
    for width in (1, 4, 7, 100):
        for least_rows in (7, 1000):
            monkeypatch.setattr(module, "LEAST_LEVELS", width)
            monkeypatch.setattr(module, "CELL_BYTES", 1 << 40)
            monkeypatch.setattr(module, "PIECE_BYTES", 1)
            monkeypatch.setattr(counts, "LEAST_ROWS", least_rows)
            np.testing.assert_allclose(conditional_mutual_information(rows), expected, atol=1e-13)
    pairs = np.stack([p.astype(float) for p in counts.pairs_by_class(rows)])
    monkeypatch.setattr(module, "WIDTH", 5)
    classes = np.bincount(rows.codes[0], rows.weights)
    found = module.information_of_pairs(pairs, rows.cardinalities[1:], classes)
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_no_rows_have_no_information() -> None:
    rows = rows_with_holes(3, 0.0)
    assert not conditional_mutual_information(rows.take(np.zeros(len(rows), bool))).any()


@pytest.mark.parametrize("size", [(1800, 55, 10), (3000, 200, 4), (6000, 100, 2)])
def test_the_working_memory_of_a_wide_set_stays_below_its_rows_and_tables(size: tuple[int, int, int]) -> None:
    n, d, classes = size
    levels, rng = 4, np.random.default_rng(0)
    codes = np.vstack([rng.integers(0, classes, n), rng.integers(0, levels, (d, n))]).astype(np.uint8)
    rows = Rows(codes, (classes, *(levels,) * d))
    assert module._matrix_product_pays(rows)
    conditional_mutual_information(rows)  # what is loaded at first use
    tracemalloc.start()
    conditional_mutual_information(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    tables = 8 * classes * levels**2 * d
    assert codes.nbytes + peak < 2 * (codes.nbytes + tables)


def test_mutual_information_with_the_class_is_scikit_learns() -> None:
    rows = rows_with_holes(1, 0.2)
    for i, value in enumerate(mutual_information(rows), start=1):
        there = rows.codes[i] < rows.cardinalities[i]
        expected = there.mean() * mutual_info_score(rows.codes[0][there], rows.codes[i][there])
        assert value == pytest.approx(expected, abs=module.RESOLUTION / 1.9)


def test_rows_without_a_class_are_no_rows_of_an_information(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_with_holes(4, 0.2, weighted=True)
    codes = np.concatenate([rows.codes, rows.codes[:, :50]], axis=1)
    codes[0, 400:] = rows.cardinalities[0]
    weights = np.concatenate([rows.weights, rows.weights[:50]])
    more = Rows(codes, rows.cardinalities, weights)
    np.testing.assert_array_equal(mutual_information(more), mutual_information(rows))
    for product in (False, True):
        monkeypatch.setattr(module, "_matrix_product_pays", lambda _, way=product: way)
        np.testing.assert_array_equal(conditional_mutual_information(more), conditional_mutual_information(rows))


@pytest.mark.parametrize("learner", [ChowLiuTAN(), KDB(1)])
def test_a_column_of_noise_that_is_all_but_empty_draws_no_edges(learner: ChowLiuTAN | KDB) -> None:
    rng, n = np.random.default_rng(0), 3000
    y = rng.integers(0, 2, n)
    a = np.where(rng.random(n) < 0.6, y, rng.integers(0, 2, n))
    others = [np.where(rng.random(n) < 0.3, a, np.where(rng.random(n) < 0.5, y, 1 - y)) for _ in range(4)]
    tested = np.where(rng.random(n) < 0.01, rng.integers(0, 8, n), 8)
    cards = (2, 2, 2, 2, 2, 2, 8)
    schema = Schema(tuple(Variable(name, tuple(range(c))) for name, c in zip("yabcdet", cards, strict=True)))
    dag = learner.learn(schema, Rows(np.array([y, a, *others, tested], np.uint8), cards)).dag
    assert not any("t" in edge and "y" not in edge for edge in dag.edges)
    assert sum("y" not in edge for edge in dag.edges) == 4


def test_the_log_likelihood_is_the_sum_of_log_frequencies() -> None:
    counts = np.array([[3, 1], [0, 4], [0, 0]])
    assert log_likelihood(counts) == pytest.approx(3 * np.log(0.75) + np.log(0.25))
    assert aic(counts) == pytest.approx(log_likelihood(counts) - 3)
    assert bic(counts) == pytest.approx(log_likelihood(counts) - 1.5 * np.log(8))
    assert [f(counts.tolist()) for f in (log_likelihood, aic, bic, bdeu)] == [
        f(counts) for f in (log_likelihood, aic, bic, bdeu)
    ]


def test_bdeu_is_the_product_of_predictive_probabilities() -> None:
    # The marginal likelihood, one observation after the other.
    sequence = [(0, 1), (1, 0), (0, 1), (0, 0), (1, 1), (1, 1)]
    seen, value = np.zeros((2, 2)), 0.0
    for row, level in sequence:
        value += np.log((seen[row, level] + 0.75) / (seen[row].sum() + 1.5))
        seen[row, level] += 1
    assert bdeu(seen, 3.0) == pytest.approx(value)
