from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from marginbayes import AODEClassifier, BayesNetClassifier


def data(seed: int = 0, n: int = 120, holes: float = 0.2) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame({f"f{i}": np.array(list("abc"))[(y + rng.integers(0, 3, n)) % 3] for i in range(4)})
    return frame.mask(rng.random((n, 4)) < holes), y


def definition(X: pd.DataFrame, y: np.ndarray, row: pd.Series, limit: float) -> np.ndarray | None:
    """Mean over the parents of P(c, x_i) prod_j P(x_j | c, x_i), counted with pandas, Laplace smoothed."""
    members = []
    for i in X:
        if pd.isna(row[i]) or (X[i] == row[i]).sum() < limit:
            continue
        values = []
        for c in (0, 1):
            both = (y == c) & (X[i] == row[i])
            p = (both.sum() + 1) / (X[i].notna().sum() + 2 * X[i].nunique())
            for j in X:
                if j != i and pd.notna(row[j]):
                    p *= ((both & (X[j] == row[j])).sum() + 1) / ((both & X[j].notna()).sum() + X[j].nunique())
            values.append(p)
        members.append(values)
    return np.mean(members, axis=0) if members else None


@pytest.mark.parametrize("limit", [0, 1, 30])
def test_the_joint_is_the_mean_of_one_dependence_estimators(limit: int) -> None:
    X, y = data()
    clf = AODEClassifier(frequency_limit=limit).fit(X, y)
    joint = np.exp(clf.predict_joint_log_proba(X))
    compared = 0
    for n in range(0, len(X), 5):
        expected = definition(X, y, X.iloc[n], limit)
        if expected is not None:
            np.testing.assert_allclose(joint[n], expected, rtol=1e-10)
            compared += 1
    assert compared > 10


def test_without_a_parent_it_is_naive_bayes() -> None:
    X, y = data()
    aode = AODEClassifier(frequency_limit=1e9).fit(X, y)
    naive = BayesNetClassifier("nb").fit(X, y)
    np.testing.assert_allclose(aode.predict_proba(X), naive.predict_proba(X), atol=1e-12)


def test_a_row_without_any_feature_gets_the_prior() -> None:
    X, y = data()
    clf = AODEClassifier().fit(X, y)
    empty = pd.DataFrame({c: pd.Series([None], dtype=object) for c in X})
    np.testing.assert_allclose(clf.predict_proba(empty)[0], (np.bincount(y) + 1) / (len(y) + 2))


def test_no_smoothing_gives_no_nan() -> None:
    X, y = data()
    proba = AODEClassifier(smoothing=0.0).fit(X, y).predict_proba(X)
    assert np.isfinite(proba).all()


def test_it_beats_naive_bayes_on_digits() -> None:
    X, y = load_digits(return_X_y=True)
    scores = [clf.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for clf in (AODEClassifier(), BayesNetClassifier("nb"))]
    assert scores[0] > scores[1] + 0.02


def test_a_prior_and_costs_are_understood() -> None:
    X, y = data()
    clf = AODEClassifier().fit(X, y)
    odds = clf.predict_proba(X)[:, 1] / clf.predict_proba(X)[:, 0]
    own = (np.bincount(y) + 1) / (len(y) + 2)
    moved = clf.predict_proba(X, prior=[0.2, 0.8])
    np.testing.assert_allclose(moved[:, 1] / moved[:, 0], odds * (0.8 / own[1]) / (0.2 / own[0]), rtol=1e-9)
    assert clf.predict(X, cost=[[0, 1e9], [1, 0]]).tolist() == [0] * len(X)


def test_negative_parameters_are_refused() -> None:
    X, y = data()
    with pytest.raises(ValueError, match="smoothing=-1"):
        AODEClassifier(smoothing=-1).fit(X, y)
    with pytest.raises(ValueError, match="frequency_limit=-1"):
        AODEClassifier(frequency_limit=-1).fit(X, y)


def test_a_file_gives_back_the_same_answers(tmp_path) -> None:
    X, y = data()
    clf = AODEClassifier(frequency_limit=3, smoothing=0.5).partial_fit(X, y)
    clf.to_json(tmp_path / "aode.json")
    again = AODEClassifier.from_json(tmp_path / "aode.json")
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.get_params() == clf.get_params()
    more = data(1)
    np.testing.assert_allclose(
        again.partial_fit(*more).predict_proba(X), clf.partial_fit(*more).predict_proba(X), atol=1e-12
    )


def test_a_file_keeps_the_weights_of_classes_and_the_columns_that_are_categories(tmp_path) -> None:
    X, y = data()
    X = X.assign(code=np.nan)
    path = tmp_path / "aode.json"
    for class_weight, columns in (({0: 5.0}, ["code"]), (None, [False, *[False] * (X.shape[1] - 2), True])):
        clf = AODEClassifier(class_weight=class_weight, categorical_features=columns).partial_fit(X, y)
        clf.to_json(path)
        again = AODEClassifier.from_json(path)
        later = X.assign(code=np.arange(len(X)) % 5)
        np.testing.assert_array_equal(
            again.partial_fit(later, y).predict_proba(later), clf.partial_fit(later, y).predict_proba(later)
        )
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "categorical_features": ["other"]}))
    with pytest.raises(ValueError, match='"categorical_features" names columns that are not there'):
        AODEClassifier.from_json(path)
    path.write_text(
        json.dumps({k: v for k, v in document.items() if k not in ("class_weight", "categorical_features")})
    )
    assert AODEClassifier.from_json(path).get_params() == AODEClassifier().get_params()  # a file of an earlier version


@pytest.mark.parametrize("damage", ["{", "[]", '{"format": "other"}', '{"format": "marginbayes.aode", "version": 99}'])
def test_a_damaged_file_is_one_clear_error(tmp_path, damage: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(damage)
    with pytest.raises(ValueError, match=r"bad\.json"):
        AODEClassifier.from_json(path)
