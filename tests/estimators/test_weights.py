"""Weights of rows and of classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.preprocessing import KBinsDiscretizer

from marginbayes import AODEClassifier, BayesNetClassifier
from marginbayes.estimators.weights import check_weights


def rows(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1])
    return np.where(rng.random((n, 3)) < 0.3, "z", y[:, None]), y


@pytest.mark.parametrize("class_weight", ["balanced", {"a": 2.0, "c": 0.5}])
@pytest.mark.parametrize("estimator", [BayesNetClassifier, AODEClassifier])
def test_a_weight_of_two_is_the_row_twice_also_with_weights_of_classes(estimator: type, class_weight: object) -> None:
    X, y = rows()
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = estimator(class_weight=class_weight).fit(X, y, sample_weight=times)
    repeated = estimator(class_weight=class_weight).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("discretizer", ["mdlp", KBinsDiscretizer(4, encode="ordinal", strategy="kmeans")])
@pytest.mark.parametrize("estimator", [BayesNetClassifier("nb"), AODEClassifier()])
def test_numbers_are_cut_without_the_weights_of_classes(estimator: BaseEstimator, discretizer: object) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.01).astype(int)
    X, weights = rng.normal(np.column_stack([2 * y, 0 * y]), 1.0), rng.integers(0, 3, len(y))
    estimator = estimator.set_params(discretizer=discretizer)
    for class_weight in ("balanced", {0: 1.0, 1: 100.0}):
        plain = clone(estimator).fit(X, y, sample_weight=weights)
        heavy = clone(estimator).set_params(class_weight=class_weight).fit(X, y, sample_weight=weights)
        assert heavy.schema_ == plain.schema_
        assert heavy.predict(X).sum() > 2 * plain.predict(X).sum()
    absent = clone(estimator).set_params(class_weight={0: 0.0}).fit(X, y, sample_weight=weights)
    assert absent.classes_.tolist() == [1]


def test_balanced_classes_weigh_the_same_and_all_rows_what_they_weighed() -> None:
    _, y = rows()
    given = np.random.default_rng(2).random(len(y)) * (y != "c")
    weights = check_weights(given, "balanced", y)
    assert weights is not None
    np.testing.assert_allclose([weights[y == label].sum() for label in "ab"], given.sum() / 2)
    assert not weights[y == "c"].any()


def test_a_class_may_be_absent_from_a_batch_or_weigh_nothing_but_must_exist() -> None:
    X, y = rows()
    batches = (np.flatnonzero(y != "a"), np.flatnonzero(y == "a"))
    for estimator in (BayesNetClassifier("nb"), AODEClassifier()):
        estimator.set_params(class_weight={"a": 3.0})
        for batch in batches:
            estimator.partial_fit(X[batch], y[batch], classes=["a", "b", "c"])
        streamed = estimator.predict_proba(X)
        np.testing.assert_allclose(streamed, estimator.fit(X, y).predict_proba(X), rtol=1e-12)
        estimator.fit(X, y, sample_weight=y != "a")
        with pytest.raises(ValueError, match="class_weight names 'd', which is none of the classes"):
            estimator.set_params(class_weight={"d": 3.0}).fit(X, y)
        estimator.set_params(class_weight={"a": 1.0, "b": 1.0, "c": 1.0, "d": 3.0}).fit(X, y)


@pytest.mark.parametrize(
    ("sample_weight", "class_weight", "message"),
    [
        (math.nan, None, "NaN or infinity passed to sample_weight: row 0"),
        (-1.0, None, "Negative values in data passed to sample_weight: row 0"),
        (None, {"a": -1.0}, r"class_weight\['a'\]=-1.0 must be a number that is not negative"),
        (None, {"a": math.nan}, r"class_weight\['a'\]=nan must be a number"),
        (["a", "b", "c"], None, r"sample_weight must be one number for each row, not \['a', 'b', 'c'\]"),
        ("heavy", None, "sample_weight must be one number for each row, not 'heavy'"),
        (None, {"a": "heavy"}, r"class_weight\['a'\]='heavy' must be a number"),
        (1e300, {"a": 1e300}, "NaN or infinity passed to class_weight: row 1"),
        (None, "heavy", "class_weight='heavy' is not known"),
    ],
)
def test_weights_that_are_no_amounts_are_refused_by_name(
    sample_weight: object, class_weight: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        check_weights(sample_weight, class_weight, np.array(["b", "a", "b"]))
