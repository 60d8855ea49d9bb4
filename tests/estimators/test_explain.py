from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from marginbayes import BayesNetClassifier, Dag, Network
from marginbayes.data import Rows
from tests.oracles.brute import random_network, with_holes


@pytest.mark.parametrize("structure", ["nb", "tan", "parents"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_the_weights_add_up_to_the_log_odds_of_every_row(structure: str, holes: float) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    if structure == "parents":
        structure = Dag.from_edges(
            [("petal width (cm)", "target"), ("target", "petal length (cm)"), ("petal width (cm)", "sepal width (cm)")],
            names=["target", *X.columns],
        )
    clf = BayesNetClassifier(structure).fit(X, y)
    X = X.mask(np.random.default_rng(0).random(X.shape) < holes)
    found = clf.explain(X)
    logs = clf.predict_log_proba(X)
    first = np.searchsorted(clf.classes_, found.target)
    second = np.searchsorted(clf.classes_, found.against)
    each = np.arange(len(X))
    np.testing.assert_allclose(found.log_odds, logs[each, first] - logs[each, second], atol=1e-9)
    assert np.array_equal(found.target, clf.predict(X))
    np.testing.assert_allclose(found.weights[X.isna().to_numpy()], 0.0, atol=1e-12)


def test_in_naive_bayes_a_weight_is_the_log_ratio_of_two_table_entries() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = BayesNetClassifier("nb").fit(X, y)
    found = clf.explain(X.iloc[:5])
    assert found.target.tolist() == [1] * 5  # two classes: the second against the first
    codes = clf._rows(X.iloc[:5]).codes
    for j, name in enumerate(X.columns):
        table = clf.network_.tables[clf.dag_.index(name)]
        np.testing.assert_allclose(found.weights[:, j], table[1, codes[j + 1]] - table[0, codes[j + 1]], atol=1e-12)
    np.testing.assert_allclose(found.prior, clf.network_.tables[0][1] - clf.network_.tables[0][0], atol=1e-12)


def test_a_row_lists_the_heaviest_feature_first_with_its_level() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = BayesNetClassifier("nb").fit(X, y)
    row = clf.explain(X.iloc[[100]]).row(0)
    weights = [abs(w) for _, _, w in row]
    assert weights == sorted(weights, reverse=True)
    name, level, _ = row[0]
    assert level in clf.schema_[name].levels


def test_the_sides_can_be_chosen() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = BayesNetClassifier().fit(X, y)
    forth, back = clf.explain(X, target=0, against=2), clf.explain(X, target=2, against=0)
    np.testing.assert_allclose(forth.weights, -back.weights, atol=1e-12)
    assert set(clf.explain(X, against=1).target) <= {0, 2}
    with pytest.raises(ValueError, match="target=7 is not a class"):
        clf.explain(X, target=7)
    with pytest.raises(ValueError, match="the same class"):
        clf.explain(X, target=1, against=1)
    with pytest.raises(ValueError, match="only one class"):
        BayesNetClassifier().fit(X, np.zeros(len(X))).explain(X)


def test_the_frame_has_a_column_for_each_feature() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    found = BayesNetClassifier().fit(X, y).explain(X)
    frame = found.to_frame()
    assert list(frame.columns) == ["target", "against", "prior", *X.columns, "log_odds"]
    pd.testing.assert_series_equal(frame[["prior", *X.columns]].sum(axis=1), frame["log_odds"], check_names=False)


def test_impossible_rows_give_no_nan() -> None:
    X = pd.DataFrame({"a": list("xyxyxy"), "b": list("uuuvvv")})
    clf = BayesNetClassifier("nb", smoothing=0.0).fit(X, [0, 1, 0, 1, 0, 1])
    rows = pd.DataFrame({"a": ["x", "y", "x"], "b": ["u", "v", "v"]})
    found = clf.explain(rows, target=0, against=1)
    assert not np.isnan(found.weights).any()
    assert found.log_odds[0] == np.inf
    assert found.log_odds[1] == -np.inf
    assert not np.isnan(clf.predict_log_proba(rows)).any()
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(rows)), clf.predict_proba(rows))


def test_a_class_without_any_possible_rival_is_compared_with_the_first_other_one() -> None:
    X = pd.DataFrame({"a": list("xxyyzz")})
    clf = BayesNetClassifier("nb", smoothing=0.0).fit(X, [0, 0, 1, 1, 2, 2])
    found = clf.explain(X)
    assert list(found.to_frame()["target"]) == [0, 0, 1, 1, 2, 2]
    assert list(found.to_frame()["against"]) == [1, 1, 0, 0, 0, 0]
    assert (found.log_odds == np.inf).all()


def test_features_called_like_a_column_of_the_frame_lose_nothing() -> None:
    X = pd.DataFrame({"target": list("ab") * 50, "prior": list("aabb") * 25, "log_odds": list("ba") * 50})
    explanation = BayesNetClassifier("nb").fit(X, [0, 1] * 50).explain(X[:2])
    frame = explanation.to_frame()
    assert list(frame) == ["target", "against", "prior", "target_", "prior_", "log_odds_", "log_odds"]
    np.testing.assert_array_equal(frame["target"], explanation.target)
    np.testing.assert_array_equal(frame["target_"], explanation.weights[:, 0])
    np.testing.assert_allclose(frame["log_odds"], explanation.log_odds)


@pytest.mark.parametrize("parents", [((), (0,), (0, 1), (0, 2)), ((1,), (), (0,), (0, 1)), ((), (0,), (0,), (1, 2))])
@pytest.mark.parametrize("normalized", [True, False])
def test_every_step_is_the_joint_of_what_is_seen_by_then(
    parents: tuple[tuple[int, ...], ...], normalized: bool
) -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, Dag(tuple("yabc"), parents), (3, 2, 3, 2))
    if not normalized:
        network = Network(network.schema, network.dag, tuple(table - 0.1 for table in network.tables))
    rows = with_holes(rng, random_network(rng, Dag.naive(list("yabc")), (3, 2, 3, 2)).sample(50, rng), 0.3)
    codes = np.repeat(np.array(rows.cardinalities, rows.codes.dtype)[:, None], 50, axis=1)
    unseen = [i for i in network.dag.order if i]
    for k, found in enumerate(network.log_joint_by_prefix(rows)):
        if k:
            codes[unseen[k - 1]] = rows.codes[unseen[k - 1]]
        np.testing.assert_allclose(found, network.log_joint(Rows(codes, rows.cardinalities)), atol=1e-12)
    assert k == 3
