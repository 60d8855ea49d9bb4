"""Running tasks: the same answers as a plain loop, one outcome at a time."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from marginbayes.estimators import BayesNetClassifier
from marginbayes.evaluation import holdout, run, stratified_tasks


def test_outcomes_equal_a_plain_loop() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    labels = np.array(["s", "c", "v"])[y]
    models = {"gauss": GaussianNB(), "tan": BayesNetClassifier("tan")}
    classes = np.unique(labels)
    outcomes = list(run(models, stratified_tasks(X, labels, 3), classes))
    assert [o.name for o in outcomes] == ["gauss", "tan"] * 3
    for outcome in outcomes:
        train = np.setdiff1d(np.arange(len(y)), outcome.rows)
        fitted = clone(models[outcome.name]).fit(X.iloc[train], labels[train])
        expected = fitted.predict_log_proba(X.iloc[outcome.rows])
        np.testing.assert_array_equal(outcome.log_proba, expected)
        assert classes[outcome.truth].tolist() == labels[outcome.rows].tolist()
        assert outcome.correct.mean() == fitted.score(X.iloc[outcome.rows], labels[outcome.rows])
        assert outcome.n_train == len(train)


def test_nothing_is_fitted_before_it_is_asked_for() -> None:
    fits = []

    class Counted(GaussianNB):  # type: ignore[misc]
        def fit(self, X: object, y: object, sample_weight: object = None) -> object:
            fits.append(1)
            return super().fit(X, y, sample_weight)

    X, y = load_iris(return_X_y=True)
    found = list(islice(run({"one": Counted()}, stratified_tasks(X, y, 5), np.unique(y)), 2))
    assert len(found) == len(fits) == 2


def test_the_estimators_themselves_stay_unfitted() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = BayesNetClassifier("nb")
    list(run({"nb": model}, stratified_tasks(X, y, 2), np.unique(y)))
    assert not hasattr(model, "classes_")


def test_a_class_that_only_the_test_rows_have_gets_probability_zero() -> None:
    X = pd.DataFrame({"x": ["a", "b"] * 4})
    task = holdout(X, np.array(["no", "yes"] * 4), X.iloc[:2], np.array(["maybe", "yes"]))
    (outcome,) = run({"nb": BayesNetClassifier("nb")}, [task], np.array(["maybe", "no", "yes"]))
    assert outcome.log_proba[:, 0].tolist() == [-np.inf, -np.inf]
    np.testing.assert_allclose(np.exp(outcome.log_proba).sum(axis=1), 1)
    assert outcome.truth.tolist() == [0, 2]


def test_classes_that_lack_a_label_or_are_in_another_order_are_refused() -> None:
    X, y = load_iris(return_X_y=True)
    tasks = list(stratified_tasks(X, y, 3))
    with pytest.raises(ValueError, match=r"the label 1 is none of the classes \[0, 2\]; name all labels there"):
        list(run({"one": GaussianNB()}, tasks, [0, 2]))
    lacking = holdout(X[y < 2], y[y < 2], X, y)
    with pytest.raises(ValueError, match=r"the label 2 is none of the classes \[0, 1\]"):
        list(run({"one": GaussianNB()}, [lacking], [0, 1]))
    for classes in ([1, 0, 2], [0, 1, 1, 2]):
        with pytest.raises(ValueError, match="classes must be sorted, and each label there once"):
            list(run({"one": GaussianNB()}, tasks, classes))


class CutShort(GaussianNB):
    """Pressed Ctrl-C while it learns, it answers with what it has, as learners do that keep their best so far."""

    fits = 0

    def fit(self, X, y):
        CutShort.fits += 1
        if CutShort.fits == 2:
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(10)
        return super().fit(X, y)


def test_a_fit_that_ctrl_c_cuts_short_is_no_outcome():
    X, y = load_iris(return_X_y=True)
    outcomes = run({"cut": CutShort()}, stratified_tasks(X, y, 5, random_state=0), np.unique(y))
    next(outcomes)
    with pytest.raises(KeyboardInterrupt):
        next(outcomes)
    assert CutShort.fits == 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
