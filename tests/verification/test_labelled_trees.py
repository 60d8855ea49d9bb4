"""The checker's own sums over label vectors of a tree, against all of them written out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from marginbayes.data.frame import read_frame
from marginbayes.sequence import MultiLabelClassifier
from marginbayes.verification import verify
from marginbayes.verification.labelled_trees import LabelledTrees

FORESTS = [(-1,), (-1, 0, 1, 2), (2, -1, 1, 1), (-1, -1, 0, 1), (3, 0, -1, 2), (-1, -1, -1, -1)]


@pytest.mark.parametrize("parents", FORESTS)
@pytest.mark.parametrize("seed", range(3))
def test_hinges_and_expectations_are_those_of_all_label_vectors(parents: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    cards, features, n = [2, 3, 2, 4][: len(parents)], [2, 3], 6
    codes = np.array([rng.integers(0, c, n) for c in cards] + [rng.integers(0, f + 1, n) for f in features])  # holes
    weights = rng.uniform(0.5, 2.0, n)
    evidence = {"label_cardinalities": cards, "parents": list(parents), "cardinalities": features}
    trees = LabelledTrees(evidence, codes, weights)
    size = len(trees.true_features())
    vector, margin = rng.normal(0, 2, size), 0.7
    vectors = np.array(list(product(*map(range, cards))))
    expected, loss, hinges = np.zeros(size), 0.0, []
    for row in range(n):
        single = np.array([trees.features([v], [row], [1.0]) for v in vectors])
        losses = trees.losses(vectors, [row] * len(vectors))
        score = single @ vector + margin * losses
        hinges.append(score.max() - float(trees.features([codes[: len(cards), row]], [row], [1.0]) @ vector))
        chances = weights[row] * np.exp(score) / np.exp(score).sum()
        expected += chances @ single
        loss += float(chances @ losses)
    np.testing.assert_allclose(trees.hinges(vector, margin), hinges, rtol=1e-12, atol=1e-12)
    ours, ours_loss = trees.expected(vector, margin)
    np.testing.assert_allclose(ours, expected, rtol=1e-10, atol=1e-12)
    assert ours_loss == pytest.approx(loss, rel=1e-12)


def test_a_certificate_of_more_targets_than_can_be_enumerated_is_checked() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (60, 3)).astype(str)
    Y = np.where(rng.random((60, 40)) < 0.8, X[:, [0]] == "1", rng.random((60, 40)) < 0.5).astype(int)
    clf = MultiLabelClassifier("mm-hybrid").fit(X, Y)
    frame = read_frame(X)
    codes = np.vstack([*Y.T, *(v.encode(frame.column(i)) for i, v in enumerate(clf.schema_.variables[40:]))])
    assert clf.certificate_ is not None
    report = verify(clf.certificate_.to_document(), codes)
    assert report.objective == pytest.approx(clf.certificate_.objective, rel=1e-9)
    assert report.gap < 1e-3


def test_a_level_that_cannot_be_has_no_share() -> None:
    evidence = {"label_cardinalities": [2, 2], "parents": [-1, 0], "cardinalities": [2]}
    trees = LabelledTrees(evidence, np.array([[0, 1], [0, 1], [0, 1]]), np.ones(2))
    vector = np.zeros(len(trees.true_features()))
    vector[2:4] = -np.inf  # below the first level of the first label nothing can be
    expected, _ = trees.expected(vector, 0.0)
    np.testing.assert_allclose(expected[:6], [0.0, 2.0, 0.0, 0.0, 1.0, 1.0])
