"""Chains and trees of labels against enumeration of all labellings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginbayes.sequence import ChainModel, TreeModel
from tests.oracles.labellings import chain_sample, every_labelling, slow_features, tree_sample

EXAMPLES = {
    "chain": lambda seed: chain_sample(seed, weights=True),
    "three labels": lambda seed: chain_sample(seed, (1, 3, 2), n_labels=3),
    "window": lambda seed: chain_sample(seed, (2, 1, 4), window=3),
    "order 2": lambda seed: chain_sample(seed, (1, 4, 2), order=2, weights=True),
    "tree": lambda seed: tree_sample(seed, 5),
    "forest": lambda seed: tree_sample(seed, 5, (-1, -1, 1)),
}


def enumerated(examples: Any, weights: np.ndarray, margin: float) -> list[dict[bytes, float]]:
    """Score plus margin times loss of every labelling of each example."""
    values: list[dict[bytes, float]] = [{} for _ in examples.weights]
    for i, labels in every_labelling(examples):
        loss = (labels != examples.labels).sum()
        values[i][labels.tobytes()] = float(slow_features(examples, labels, i) @ weights + margin * loss)
    return values


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("margin", [0.0, 1.5])
def test_the_decoded_labelling_is_the_best_of_all(kind: str, margin: float) -> None:
    for seed in range(3):
        examples = EXAMPLES[kind](seed)
        weights = np.random.default_rng(seed).normal(size=examples.n_weights)
        labels, best = examples.decode(weights, margin)
        for i, values in enumerate(enumerated(examples, weights, margin)):
            assert best[i] == pytest.approx(max(values.values()))
            mixed = examples.labels.copy()
            own = np.isin(np.arange(len(mixed)), where(examples, i))
            mixed[own] = labels[own]
            assert values[mixed.tobytes()] == pytest.approx(best[i])
        assert examples.hinge(weights, margin) >= -1e-9


def where(examples: Any, example: int) -> np.ndarray:
    """Positions of one example in a flat labelling."""
    return examples.labels_of(np.arange(len(examples.labels)), example)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_expectations_are_sums_over_all_labellings(kind: str) -> None:
    examples = EXAMPLES[kind](7)
    weights, margin = np.random.default_rng(7).normal(size=examples.n_weights), 0.7
    found = examples.expect(weights, margin)
    features, loss = np.zeros(examples.n_weights), 0.0
    for i, values in enumerate(enumerated(examples, weights, margin)):
        scores = np.array(list(values.values()))
        total = np.logaddexp.reduce(scores)
        assert found.log_partition[i] == pytest.approx(total)
        for raw, chance in zip(values, np.exp(scores - total), strict=True):
            labels = np.frombuffer(raw, np.int64)
            features += examples.weights[i] * chance * slow_features(examples, labels, i)
            loss += examples.weights[i] * chance * (labels != examples.labels).sum()
    np.testing.assert_allclose(found.features, features, atol=1e-12)
    assert found.loss == pytest.approx(loss)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_expected_features_are_the_gradient_of_the_log_partition(kind: str) -> None:
    examples = EXAMPLES[kind](3)
    rng = np.random.default_rng(3)
    weights, direction, h = rng.normal(size=examples.n_weights), rng.normal(size=examples.n_weights), 1e-5

    def level(step: float, margin: float = 0.4) -> float:
        return float(examples.weights @ examples.expect(weights + step * direction, margin).log_partition)

    found = examples.expect(weights, 0.4)
    assert (level(h) - level(-h)) / (2 * h) == pytest.approx(found.features @ direction, rel=1e-7, abs=1e-7)
    assert (level(0, 0.4 + h) - level(0, 0.4 - h)) / (2 * h) == pytest.approx(found.loss, rel=1e-7)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_features_of_a_labelling_are_counted_cell_by_cell(kind: str) -> None:
    examples = EXAMPLES[kind](5)
    labels = examples.decode(np.random.default_rng(5).normal(size=examples.n_weights))[0]
    each = examples.each_features(labels).toarray()
    for i in range(len(examples.weights)):
        np.testing.assert_array_equal(each[i], slow_features(examples, labels, i))
    np.testing.assert_allclose(examples.joint_features(labels), examples.weights @ each)
    losses = [(labels[where(examples, i)] != examples.labels[where(examples, i)]).sum() for i in range(len(each))]
    np.testing.assert_array_equal(examples.loss(labels), losses)


def test_any_two_labellings_use_equally_many_entries() -> None:
    # Hence the constraints of the published problem are vacuous: a constant added to all weights changes no margin.
    for kind, make in EXAMPLES.items():
        examples = make(1)
        sizes = {(i, slow_features(examples, labels, i).sum()) for i, labels in every_labelling(examples)}
        assert len(sizes) == len(examples.weights), kind


def test_a_window_sees_neighbours_the_outside_and_missing_cells() -> None:
    model = ChainModel(2, (3,), 3)
    # Chains of 2 and 1 positions; the second cell of the first is missing.
    cells = model.cells(np.array([[0, 3, 2]]), np.array([0, 2, 3]))
    outside = 3
    np.testing.assert_array_equal(
        cells, [[0 + outside, 4 + 0, -1], [0 + 0, -1, 7 + outside], [0 + outside, 4 + 2, 7 + outside]]
    )


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_weight_is_in_the_row_that_its_table_says(kind: str) -> None:
    examples = EXAMPLES[kind](0)
    weights = np.random.default_rng(0).normal(size=examples.n_weights)
    sums = examples.rows.sums(np.exp(examples.rows.normalised(weights)))
    np.testing.assert_allclose(sums, 1.0)
    model = examples.model
    if isinstance(model, ChainModel):
        start, steps, emission = model.tables(examples.rows.normalised(weights))
        np.testing.assert_allclose(np.exp(start).sum(), 1.0)
        np.testing.assert_allclose(np.exp(steps).sum(axis=1), 1.0)
        cells = np.split(np.exp(emission), model.first_cells[1:-1])
    else:
        tables, parts = model.tables(examples.rows.normalised(weights))
        for table in tables:
            np.testing.assert_allclose(np.exp(table).sum(axis=1), 1.0)
        cells = [c for part in parts for c in np.split(np.exp(part), model.first_cells[1:-1])]
    for cell in cells:
        np.testing.assert_allclose(cell.sum(axis=0), 1.0)


def test_shapes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="window=4 must be an odd number"):
        ChainModel(2, (2,), 4)
    with pytest.raises(ValueError, match="order=3 must be a whole number from 1 to 2"):
        ChainModel(2, (2,), 1, 3)
    with pytest.raises(ValueError, match="form a cycle"):
        _ = TreeModel((2, 2), (1, 0), (2,)).order
