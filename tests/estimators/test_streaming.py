from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from marginbayes import AODEClassifier, BayesNetClassifier
from marginbayes.parameters import MaximumLikelihood
from marginbayes.structure import ChowLiuTAN, Constraints, NaiveBayes


def batches(seed: int, sizes: tuple[int, ...], holes: float = 0.2) -> list[tuple[pd.DataFrame, np.ndarray]]:
    """Categories that turn up late, and holes."""
    rng = np.random.default_rng(seed)
    made = []
    for k, n in enumerate(sizes):
        y = rng.integers(0, 3, n)
        columns = {
            f"f{i}": np.array(list("dbcaefgh"), object)[(y * rng.integers(0, 2, n) + rng.integers(0, 2 + k, n)) % 8]
            for i in range(4)
        }
        frame = pd.DataFrame(columns).mask(rng.random((n, 4)) < holes)
        made.append((frame, y))
    return made


ESTIMATORS = [
    BayesNetClassifier("nb"),
    BayesNetClassifier(NaiveBayes(Constraints(forbidden=[("class", "f1")]))),
    BayesNetClassifier(ChowLiuTAN(constraints=Constraints(forbidden=[("class", "f1"), ("f0", "f2")]))),
    BayesNetClassifier("tan"),
    BayesNetClassifier("tan", missing="level"),
    BayesNetClassifier("tan", parameters=MaximumLikelihood(kind="dirichlet", smoothing=5.0)),
    AODEClassifier(),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_streaming_equals_fitting_the_concatenation(estimator: Any, weighted: bool) -> None:
    parts = batches(0, (60, 1, 80, 200))
    X, y = pd.concat([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
    weights = np.random.default_rng(1).random(len(y)) + 0.1 if weighted else None
    whole = clone(estimator).fit(X, y, sample_weight=weights)
    stream = clone(estimator)
    start = 0
    for k, (frame, labels) in enumerate(parts):
        share = None if weights is None else weights[start : start + len(labels)]
        stream.partial_fit(frame, labels, classes=[0, 1, 2] if k == 0 else None, sample_weight=share)
        start += len(labels)
    assert [v.levels for v in stream.schema_.variables] == [v.levels for v in whole.schema_.variables]
    if isinstance(estimator, BayesNetClassifier):
        assert stream.dag_ == whole.dag_
    np.testing.assert_allclose(stream.predict_joint_log_proba(X), whole.predict_joint_log_proba(X), atol=1e-10)


def test_numeric_columns_keep_the_cuts_of_the_first_batch() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    order = np.random.default_rng(0).permutation(len(y))
    first, second = order[:100], order[100:]
    stream = BayesNetClassifier("tan").partial_fit(X.iloc[first], y.iloc[first], classes=[0, 1, 2])
    cuts = [v.cuts for v in stream.schema_.features]
    stream.partial_fit(X.iloc[second], y.iloc[second])
    assert [v.cuts for v in stream.schema_.features] == cuts
    assert np.exp(stream.network_.tables[0]) == pytest.approx((np.bincount(y) + 1) / 153)


def test_a_new_class_must_be_announced() -> None:
    X, y = load_iris(return_X_y=True)
    stream = BayesNetClassifier("nb").partial_fit(X[:100], y[:100])
    with pytest.raises(ValueError, match="the class 2 is new; name all classes in the first call"):
        stream.partial_fit(X[100:], y[100:])
    assert stream.partial_fit(X[:50], y[:50]).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("estimator", [BayesNetClassifier("nb"), AODEClassifier()], ids=repr)
def test_fit_forgets_what_was_streamed(estimator: Any) -> None:
    X, y = load_iris(return_X_y=True)
    clf = clone(estimator).partial_fit(X, y).fit(X[:100], y[:100])
    assert clf.classes_.tolist() == [0, 1]
    assert np.array_equal(clf.predict_proba(X), clone(estimator).fit(X[:100], y[:100]).predict_proba(X))


def test_a_stream_goes_on_from_the_counts_of_a_fit_and_says_so_where_there_are_none(tmp_path) -> None:
    (X, y), more = batches(0, (90, 60))
    stream = AODEClassifier().partial_fit(X, y)
    clf = AODEClassifier().fit(X, y)
    clf.to_json(tmp_path / "aode.json")
    wanted = stream.partial_fit(*more).predict_proba(X)
    for begun in (clf, AODEClassifier.from_json(tmp_path / "aode.json")):
        assert np.array_equal(begun.partial_fit(*more).predict_proba(X), wanted)
    network = BayesNetClassifier("nb").fit(X, y)
    network.to_json(tmp_path / "nb.json")
    for learned in (network, BayesNetClassifier.from_json(tmp_path / "nb.json").set_params(structure="nb")):
        with pytest.warns(UserWarning, match="partial_fit forgets what this classifier has learned by fit or read"):
            learned.partial_fit(*more)
        anew = BayesNetClassifier("nb").partial_fit(*more)
        assert np.array_equal(learned.partial_fit(X, y).predict_proba(X), anew.partial_fit(X, y).predict_proba(X))


def test_holes_that_come_late_become_a_level_all_the_same() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    late = X.copy()
    late.iloc[::3, 1] = np.nan
    stream = BayesNetClassifier("tan", missing="level").partial_fit(X, y).partial_fit(late, y)
    assert stream.schema_.features[1].levels[-1] is None
    assert None not in stream.schema_.features[0].levels
    assert np.isfinite(stream.predict_proba(late)).all()


def test_learners_that_need_all_rows_have_no_partial_fit() -> None:
    assert not hasattr(BayesNetClassifier(missing="em"), "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'"):
        BayesNetClassifier(missing="em").partial_fit([[1.0]], [0])


@pytest.mark.parametrize("kind", [BayesNetClassifier, AODEClassifier])
def test_a_column_that_is_empty_at_first_is_cut_when_its_numbers_come(kind: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = pd.DataFrame({"a": rng.choice(list("xy"), 300), "lab": y + rng.normal(size=300)})
    model = kind().partial_fit(X[:50].assign(lab=np.nan), y[:50], classes=[0, 1]).partial_fit(X[50:], y[50:])
    fitted = kind().fit(X[50:], y[50:])
    assert model.schema_["lab"].cuts == fitted.schema_["lab"].cuts
    assert model.score(X, y) > 0.6


def test_a_stream_for_naive_bayes_cannot_go_on_as_a_tree() -> None:
    X, y = load_iris(return_X_y=True)
    model = BayesNetClassifier("nb").partial_fit(X, y).set_params(structure="tan")
    with pytest.raises(ValueError, match="counted for naive Bayes"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("estimator", [BayesNetClassifier("nb"), BayesNetClassifier("tan"), AODEClassifier()])
@pytest.mark.parametrize("missing", ["available", "level"])
def test_cells_of_a_column_that_is_empty_at_first_count_as_in_one_fit(estimator: Any, missing: str) -> None:
    estimator = clone(estimator)
    if isinstance(estimator, BayesNetClassifier):
        estimator.set_params(missing=missing)
    y = np.array(["n", "y"] * 20)
    first = pd.DataFrame({"a": ["x", "y", "y", "x"] * 10, "b": [None] * 40})
    second = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["p", "q"] * 20})
    streamed = clone(estimator).partial_fit(first, y).partial_fit(second, y)
    whole = estimator.fit(pd.concat([first, second]), np.concatenate([y, y]))
    assert streamed.schema_.features[1].levels == whole.schema_.features[1].levels
    for frame in (first, second):
        np.testing.assert_allclose(streamed.predict_proba(frame), whole.predict_proba(frame), rtol=1e-12)


def test_a_batch_of_another_type_is_refused_as_predict_would() -> None:
    stream = BayesNetClassifier("nb").partial_fit(pd.DataFrame({"a": ["1", "2"] * 5}), ["n", "y"] * 5)
    with pytest.raises(TypeError, match="column 'a' was learned with values such as '1' but now holds 1"):
        stream.partial_fit(pd.DataFrame({"a": pd.Categorical([1, 2] * 5)}), ["n", "y"] * 5)


@pytest.mark.parametrize("estimator", [BayesNetClassifier("nb"), AODEClassifier()])
def test_balanced_classes_cannot_be_streamed(estimator: Any) -> None:
    with pytest.raises(ValueError, match="class_weight='balanced' needs the sizes of all classes"):
        clone(estimator).set_params(class_weight="balanced").partial_fit([["a"], ["b"]], ["n", "y"])


def test_a_column_without_any_value_changes_nothing_about_the_average_of_estimators() -> None:
    frame, y = batches(5, (80,))[0]
    with_it = AODEClassifier().fit(frame.assign(m=None), y)
    np.testing.assert_allclose(
        with_it.predict_proba(frame.assign(m=None)), AODEClassifier().fit(frame, y).predict_proba(frame), rtol=1e-12
    )


@pytest.mark.parametrize("estimator", [BayesNetClassifier("nb"), AODEClassifier()])
def test_weights_of_classes_leave_the_weights_of_the_caller_alone(estimator: Any) -> None:
    frame, y = batches(6, (60,))[0]
    weights = np.linspace(0.5, 2.0, 60)
    weights.flags.writeable = False
    clone(estimator).set_params(class_weight={0: 1, 1: 3, 2: 2}).fit(frame, y, sample_weight=weights)
    np.testing.assert_array_equal(weights, np.linspace(0.5, 2.0, 60))


@pytest.mark.parametrize("estimator", [BayesNetClassifier("nb"), AODEClassifier()])
def test_other_classes_in_a_later_batch_are_refused(estimator: Any) -> None:
    frame, y = batches(7, (60,))[0]
    stream = clone(estimator).partial_fit(frame, y, classes=[2, 1, 0])
    stream.partial_fit(frame, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match=r"classes=\[0, 1, 2, 3\] is not the same as in the first call"):
        stream.partial_fit(frame, y, classes=[0, 1, 2, 3])


class Counted(str):
    """A category that counts how often one is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)


def test_work_grows_with_the_levels_of_a_column_and_not_with_their_square() -> None:
    n = 1000
    classifier = BayesNetClassifier("nb")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of what looks like an identifier
        for start in (0, n // 2):
            X = np.array([Counted(f"level {start + i}") for i in range(n)], object)[:, None]
            classifier.partial_fit(X, np.arange(n) % 2)
    assert classifier.schema_["x0"].cardinality == n + n // 2
    assert Counted.compared < 50 * n
