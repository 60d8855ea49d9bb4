"""The likeliest of all tables that label complete observations alike."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from marginbayes.datasets import synthetic
from marginbayes.sequence import MultiLabelClassifier, SequenceLabeler, StructuredConditional
from marginbayes.sequence.likeliest import likeliest_chain, likeliest_tree
from marginbayes.sequence.renormalize import renormalize_chain
from tests.oracles.labellings import chain_sample, tree_sample


def observed_shares(counts: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Relative frequencies of the levels of each child, with one count spread over them."""
    parts = []
    for first, last in pairwise(bounds):
        own = counts[first:last] + 1 / (last - first)
        parts.append(own / own.sum())
    return np.concatenate(parts)


@pytest.mark.parametrize(("order", "window"), [(1, 1), (1, 3), (2, 1)])
def test_every_level_is_expected_as_often_as_it_was_counted(order: int, window: int) -> None:
    examples = chain_sample(2, (3, 5, 2, 4), window=window, order=order)
    model, mean = examples.model, 3.5
    weights = np.random.default_rng(0).normal(0, 2, model.n_weights)
    found = likeliest_chain(examples, weights, mean).weights
    np.testing.assert_allclose(model.rows.log_sums(found), 0.0, atol=1e-9)
    start, steps, emission = (np.exp(part) for part in model.tables(found))
    walk = np.zeros((model.n_states, model.n_states))
    for s, c in product(range(model.n_states), range(model.n_labels)):
        walk[s, model.successor[s, c]] = steps[s, c]
    begin = np.concatenate([start, np.zeros(model.n_states - model.n_labels)])
    visits = np.linalg.solve((np.eye(model.n_states) - walk).T, begin)
    assert visits.sum() == pytest.approx(mean, rel=1e-6)
    uses = np.array([visits[model.label_of == c].sum() for c in range(model.n_labels)])
    counts = model.tables(examples.true_features)[2].sum(axis=1)
    np.testing.assert_allclose(emission @ uses / mean, observed_shares(counts, model.first_cells), atol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_no_label_of_a_complete_sequence_changes_and_the_likelihood_grows(order: int) -> None:
    examples = chain_sample(3, (3, 5, 2, 4), window=3, order=order, missing=0.0)
    model = examples.model
    weights = np.random.default_rng(1).normal(0, 2, model.n_weights)
    found, plain = likeliest_chain(examples, weights, 3.5).weights, renormalize_chain(model, weights, 3.5)
    before, _ = model.marginals(weights, examples.cells, examples.offsets)
    after, log_z = model.marginals(found, examples.cells, examples.offsets)
    np.testing.assert_allclose(after, before, atol=1e-9)
    assert log_z.sum() > model.marginals(plain, examples.cells, examples.offsets)[1].sum() + 1.0


def test_the_features_of_every_target_are_expected_as_often_as_they_were_counted() -> None:
    examples = tree_sample(4, 12)
    model = examples.model
    weights = np.random.default_rng(2).normal(0, 2, model.n_weights)
    found = likeliest_tree(examples, weights).weights
    tables, cells = model.tables(found)
    counts = [c.sum(axis=1) for c in model.tables(examples.true_features)[1]]
    expected = [np.zeros(len(c)) for c in counts]
    for labels in product(*map(range, model.cardinalities)):
        chance = 1.0
        for k, parent in enumerate(model.parents):
            chance *= np.exp(tables[k][labels[parent] if parent >= 0 else 0, labels[k]])
        for k, level in enumerate(labels):
            expected[k] += chance * np.exp(cells[k][:, level])
    for own, count in zip(expected, counts, strict=True):
        np.testing.assert_allclose(own, observed_shares(count, model.first_cells), atol=1e-5)
    complete = np.flatnonzero(np.diff(examples.cells.indptr) == len(model.features))
    assert len(complete)
    answers = [
        model.marginals(w, [np.asarray(examples.cells @ own) for own in model.tables(w)[1]])[0]
        for w in (weights, found)
    ]
    for before, after in zip(*answers, strict=True):
        np.testing.assert_allclose(after[complete], before[complete], atol=1e-9)


def test_weights_that_are_hundreds_of_nats_apart_give_proper_tables() -> None:
    examples = chain_sample(1)
    weights = np.random.default_rng(0).normal(0, 200, examples.model.n_weights)
    found = likeliest_chain(examples, weights, 2.5).weights
    assert np.isfinite(found).all()
    np.testing.assert_allclose(examples.model.rows.log_sums(found), 0.0, atol=1e-9)


def test_a_conditional_labeler_is_not_much_behind_maximum_likelihood_where_most_cells_are_missing() -> None:
    data = synthetic.skewed_chain(150, 300, length=5, n_children=4, beta=0.75, random_state=3)
    X = data.X.assign(id=data.ids["seq_id"].to_numpy())
    hidden = X.mask(np.random.default_rng(0).random(X.shape) < 0.7).assign(id=X["id"])
    scores = []
    for learner in ("ml", StructuredConditional(1.0)):
        labeler = SequenceLabeler(parameters=learner, sequence="id", decoding="marginal")
        labeler.fit(X.iloc[data.train], data.y.iloc[data.train])
        scores.append(labeler.score(hidden.iloc[data.test], data.y.iloc[data.test]))
    assert scores[1] > scores[0] - 0.02


def test_tables_that_are_proper_already_are_left_alone() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.integers(0, 3, (60, 2)), rng.integers(0, 2, (60, 2))
    classifier = MultiLabelClassifier("ml", discretizer=None).fit(X, Y)
    assert classifier.weights_ is classifier.parameter_result_.weights
