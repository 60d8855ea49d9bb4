from __future__ import annotations

import numpy as np
import pytest

from marginbayes.kernels.hinge import cascade, gather_pairs, lower_level, newton_matrix, pair_margins


def example(seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    n, n_classes = 7, 3
    cells = np.column_stack([rng.integers(0, 2, n), 2 + rng.integers(0, 3, n), 5 + rng.integers(0, 2, n)])
    cells = np.where(rng.random(cells.shape) < 0.2, -1, cells).astype(np.int32)
    labels = rng.integers(0, n_classes, n)
    work = rng.random((n, n_classes)) < 0.7
    work[np.arange(n), (labels + 1) % n_classes] = True
    work[np.arange(n), labels] = False
    start = np.concatenate([[0], np.cumsum(work.sum(axis=1))])
    return cells, labels, start, np.nonzero(work)[1]


def dense(cells: np.ndarray, labels: np.ndarray, start: np.ndarray, rivals: np.ndarray) -> np.ndarray:
    """A line for each pair: +1 at the own class's entries, -1 at the rival's."""
    lines = []
    for n in range(len(cells)):
        for rival in rivals[start[n] : start[n + 1]]:
            line = np.zeros((7, 3))
            for cell in cells[n][cells[n] >= 0]:
                line[cell, labels[n]] += 1
                line[cell, rival] -= 1
            lines.append(line.ravel())
    return np.array(lines)


@pytest.mark.parametrize("seed", range(5))
def test_products_with_pairs_are_those_of_the_dense_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = example(seed)
    matrix = dense(*pairs)
    weights, values = rng.normal(size=(7, 3)), rng.normal(size=len(matrix))
    margins, gathered = np.empty(len(matrix)), np.zeros((7, 3))
    pair_margins(*pairs, weights, margins)
    gather_pairs(*pairs, values, gathered)
    np.testing.assert_allclose(margins, matrix @ weights.ravel(), atol=1e-12)
    np.testing.assert_allclose(gathered.ravel(), matrix.T @ values, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_newton_matrix_is_the_dense_product(classes: int) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        cells, labels, start, rivals = example(seed)
        matrix = dense(cells, labels, start, rivals)
        d, e = rng.random(len(rivals)) + 0.01, rng.random(len(cells)) + 0.01
        inner = np.zeros((len(rivals), len(rivals)))
        total = np.empty(len(cells))
        for n in range(len(cells)):
            part = slice(start[n], start[n + 1])
            total[n] = e[n] + d[part].sum()
            inner[part, part] = np.diag(d[part]) - np.outer(d[part], d[part]) / total[n]
        keep = np.tile(np.arange(3) < classes, 7)
        expected = (matrix.T @ inner @ matrix)[np.ix_(keep, keep)]
        out = np.zeros((7 * classes, 7 * classes))
        newton_matrix(cells, labels, start, rivals, d, e, total, classes, out)
        np.testing.assert_allclose(np.tril(out), np.tril(expected), atol=1e-12)


def literal_cascade(cells: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Level at which each pair is satisfied, by sets; 0 where never."""
    alive = {(n, c) for n in range(len(cells)) for c in range(n_classes) if c != labels[n]}
    killed, level = np.zeros((len(cells), n_classes), int), 0
    while True:
        level += 1
        living = {n for n, _ in alive}
        used = {(cell, labels[n]) for n in living for cell in cells[n] if cell >= 0}
        gone = {(n, c) for n, c in alive if any(cell >= 0 and (cell, c) not in used for cell in cells[n])}
        if not gone:
            return killed
        for pair in gone:
            killed[pair] = level
        alive -= gone


@pytest.mark.parametrize("seed", range(20))
def test_the_presolve_satisfies_the_pairs_that_it_says_and_no_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = np.column_stack([np.full(9, 0), 1 + rng.integers(0, 4, 9), 5 + rng.integers(0, 4, 9)]).astype(np.int32)
    cells[rng.random(cells.shape) < 0.1] = -1
    labels = rng.integers(0, 3, 9)
    levels, killed = np.zeros((9, 3), np.int32), np.zeros((9, 3), np.int32)
    depth = cascade(cells, labels, levels, killed)
    np.testing.assert_array_equal(np.maximum(killed, 0), literal_cascade(cells, labels, 3))
    assert depth == killed.max()
    weights = rng.normal(size=(9, 3)) * (levels == 0)
    core = weights.copy()
    for level in range(depth, 0, -1):
        weights[levels == level] -= 1.01 * lower_level(cells, labels, levels, killed, level, weights)
    padded = np.vstack([weights, np.zeros((1, 3))])
    scores = padded[cells].sum(axis=1)
    margins = scores[np.arange(9), labels][:, None] - scores
    assert (margins[killed > 0] >= 1 - 1e-9).all()
    before = np.vstack([core, np.zeros((1, 3))])[cells].sum(axis=1)
    untouched = (before[np.arange(9), labels][:, None] - before)[killed == 0]
    np.testing.assert_allclose(margins[killed == 0], untouched, atol=1e-12)
