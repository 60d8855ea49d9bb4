"""Folds: every row tested once, classes spread evenly, same seed same folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes import BayesNetClassifier
from marginbayes.evaluation import holdout, small_classes, stratified_tasks


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=12, max_size=80), st.integers(2, 6), st.integers(0, 9))
def test_every_row_of_a_class_with_two_rows_is_tested_once(labels: list[int], folds: int, seed: int) -> None:
    y = np.array(labels)
    tasks = list(stratified_tasks(np.arange(len(y))[:, None], y, folds, random_state=seed))
    tested = np.concatenate([task.rows for task in tasks])
    sizes = {label: labels.count(label) for label in labels}
    assert sorted(tested) == [i for i, label in enumerate(labels) if sizes[label] > 1]
    for task in tasks:
        assert set(task.X_train[:, 0]) | set(task.rows) == set(range(len(y)))
        assert not set(task.X_train[:, 0]) & set(task.rows)
        assert set(task.y_test) <= set(task.y_train)


@pytest.mark.parametrize("folds", [2, 5, 7])
def test_folds_have_the_same_share_of_each_class_up_to_one_row(folds: int) -> None:
    y = np.repeat(["a", "b", "c"], [50, 23, 9])
    tasks = list(stratified_tasks(pd.DataFrame({"x": range(len(y))}), y, folds))
    for label in "abc":
        counts = [int((task.y_test == label).sum()) for task in tasks]
        assert max(counts) - min(counts) <= 1
    sizes = [len(task.rows) for task in tasks]
    assert max(sizes) - min(sizes) <= 1


def test_rows_features_and_labels_of_a_task_belong_together() -> None:
    y = np.array([0, 1] * 10)
    X = pd.DataFrame({"x": np.arange(20) * 10}, index=np.arange(100, 120))
    for task in stratified_tasks(X, y, 4, n_repeats=2):
        assert task.X_test["x"].tolist() == (task.rows * 10).tolist()
        assert task.y_test.tolist() == y[task.rows].tolist()
        assert (task.X_train["x"] // 10 % 2).tolist() == task.y_train.tolist()


@pytest.mark.parametrize("kind", [pa.table, pl.DataFrame])
def test_tables_of_every_library_are_dealt(kind: Callable[[Any], Any]) -> None:
    y = np.array([0, 1] * 10)
    for task in stratified_tasks(kind({"x": np.arange(20) * 10}), y, 4):
        assert isinstance(task.X_test, type(kind({})))
        assert np.asarray(task.X_test["x"]).tolist() == (task.rows * 10).tolist()
        assert BayesNetClassifier("nb").fit(task.X_train, task.y_train).predict(task.X_test).shape == task.rows.shape


def test_the_seed_decides_and_repeats_differ() -> None:
    y = np.array([0, 1] * 30)
    one, same, other = ([t.rows.tolist() for t in stratified_tasks(y[:, None], y, 3, 2, seed)] for seed in (1, 1, 2))
    assert one == same != other
    assert one[:3] != one[3:]


def test_the_only_row_of_a_class_always_trains() -> None:
    y = np.array(["rare", *["a", "b"] * 6])
    for task in stratified_tasks(y[:, None], y, 3):
        assert "rare" in task.y_train
        assert "rare" not in task.y_test


@pytest.mark.parametrize(
    ("y", "folds", "repeats", "words"),
    [
        ([0, 1] * 5, 1, 1, "n_folds=1 must be a whole number, at least 2"),
        ([0, 1] * 5, 2, 0, "n_repeats=0 must be a whole number, at least 1"),
        ([0, 0, 1, 2, 3], 3, 1, "3 folds need at least 3 rows"),
    ],
)
def test_impossible_folds_are_refused(y: list[int], folds: int, repeats: int, words: str) -> None:
    labels = np.array(y)
    with pytest.raises(ValueError, match=words):
        next(iter(stratified_tasks(labels[:, None], labels, folds, repeats)))


def test_small_classes_are_those_with_fewer_rows_than_folds() -> None:
    assert small_classes(["a"] * 5 + ["b"] * 4 + ["c"], 5) == {"b": 4, "c": 1}


def test_a_holdout_keeps_both_tables_as_they_are() -> None:
    X = pd.DataFrame({"x": [1, 2]})
    task = holdout(X, ["a", "b"], X.iloc[:1], ["a"])
    assert task.X_train is X
    assert task.rows.tolist() == [0]
    assert task.y_test.tolist() == ["a"]


def test_weights_go_with_their_rows_by_position() -> None:
    X, y = pd.DataFrame({"x": range(8)}), np.array([0, 1] * 4)
    weights = pd.Series(np.arange(8.0)).sort_values(ascending=False)
    for own in (weights, weights.tolist()):
        for task in stratified_tasks(X, y, 2, sample_weight=own):
            np.testing.assert_array_equal(task.weights, 7.0 - task.X_train["x"])
        np.testing.assert_array_equal(holdout(X, y, X, y, own).weights, 7.0 - np.arange(8))
    with pytest.raises(ValueError, match="8 rows to train with"):
        next(stratified_tasks(X, y, 2, sample_weight=[1.0]))
