from __future__ import annotations

import math
import pickle
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginbayes import MDLPDiscretizer
from marginbayes.data.mdlp import mdlp_all

NAN = math.nan


@parametrize_with_checks(
    [MDLPDiscretizer(), MDLPDiscretizer(dtype=np.int32, n_jobs=2)], expected_failed_checks=lambda _: {}
)
def test_passes_every_check_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture
def petals() -> tuple[pd.DataFrame, pd.Series]:
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X[["petal length (cm)", "petal width (cm)"]], y.map({0: "setosa", 1: "versicolor", 2: "virginica"})


@pytest.fixture
def fitted(petals: tuple[pd.DataFrame, pd.Series]) -> MDLPDiscretizer:
    X, y = petals
    return MDLPDiscretizer().fit(X.to_numpy(), y)


def test_the_cut_points_are_those_of_the_algorithm() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    for weight in (None, weights):
        discretizer = MDLPDiscretizer(n_jobs=2).fit(X, np.array(["no", "yes"])[y], sample_weight=weight)
        expected = mdlp_all(X.T, y, 2, weight)
        assert [c.tolist() for c in discretizer.cut_points_] == [c.tolist() for c in expected]
        assert discretizer.n_bins_.tolist() == [len(c) + 1 for c in expected]
        assert discretizer.n_features_in_ == 30


def test_intervals_are_closed_on_the_right(fitted: MDLPDiscretizer) -> None:
    values = np.array([[2.45, 0.8], [np.nextafter(2.45, 3), np.nextafter(0.8, 1)], [4.75, 99.0], [-99.0, 1.75]])
    assert fitted.transform(values).tolist() == [[0, 0], [1, 1], [1, 2], [0, 1]]


@pytest.mark.parametrize("dtype", [np.float64, "float32", np.float16])
def test_a_floating_type_marks_missing_by_nan(fitted: MDLPDiscretizer, dtype: Any) -> None:
    codes = fitted.set_params(dtype=dtype).transform([[1.0, NAN], [NAN, 1.0]])
    assert codes.dtype == dtype
    np.testing.assert_array_equal(codes, [[0, NAN], [NAN, 1]])


@pytest.mark.parametrize("dtype", [int, "int8", np.int16])
def test_a_signed_integer_type_marks_missing_by_minus_one(fitted: MDLPDiscretizer, dtype: Any) -> None:
    codes = fitted.set_params(dtype=dtype).transform([[1.0, NAN], [NAN, 1.0]])
    assert codes.dtype == np.dtype(dtype)
    assert codes.tolist() == [[0, -1], [-1, 1]]


@pytest.mark.parametrize("dtype", ["uint8", bool, object, "datetime64[s]"])
def test_a_type_without_a_mark_for_missing_is_refused(dtype: Any) -> None:
    with pytest.raises(ValueError, match="no mark for a missing value; use a floating type"):
        MDLPDiscretizer(dtype=dtype).fit([[1.0], [2.0]], [0, 1])


def test_a_type_too_narrow_for_the_intervals_is_refused_by_column() -> None:
    y = np.repeat(np.arange(200), 4)
    X = pd.DataFrame({"constant": np.zeros(800), "identity": y})
    discretizer = MDLPDiscretizer(dtype="int8").fit(X, y)
    with pytest.raises(ValueError, match="column 'identity' has 200 intervals, more than the type int8 can number"):
        discretizer.transform(X)
    assert discretizer.set_params(dtype="int16").transform(X)[:, 1].max() == 199


@pytest.mark.parametrize(("dtype", "largest"), [("float16", 2**11), ("int8", 2**7 - 1)])
def test_a_type_has_room_up_to_the_last_number_that_it_holds_exactly(dtype: str, largest: int) -> None:
    discretizer = MDLPDiscretizer(dtype=dtype).fit([[0.0], [1.0]], [0, 1])
    for n_cuts in (largest, largest + 1):
        discretizer.cut_points_, discretizer.n_bins_ = [np.arange(n_cuts) + 0.5], np.array([n_cuts + 1])
        values = np.arange(n_cuts + 1.0)[:, None]
        if n_cuts == largest:
            np.testing.assert_array_equal(discretizer.transform(values).astype(float), values)
        else:
            with pytest.raises(ValueError, match=f"column 0 has {largest + 2} intervals, more than the type {dtype}"):
                discretizer.transform(values)


def test_a_missing_cell_at_fit_does_not_count_in_its_column_only() -> None:
    X, y = load_iris(return_X_y=True)
    holed = X.copy()
    holed[::3, 2] = NAN
    cuts = MDLPDiscretizer().fit(holed, y).cut_points_
    known = np.arange(len(y)) % 3 != 0
    assert cuts[2].tolist() == MDLPDiscretizer().fit(X[known], y[known]).cut_points_[2].tolist()
    assert cuts[3].tolist() == MDLPDiscretizer().fit(X, y).cut_points_[3].tolist()


def test_columns_that_tell_nothing_keep_one_interval() -> None:
    X = np.column_stack([np.ones(50), np.full(50, NAN), np.arange(50.0)])
    discretizer = MDLPDiscretizer(dtype=int).fit(X, np.arange(50) // 25)
    assert discretizer.n_bins_.tolist() == [1, 1, 2]
    assert discretizer.transform([[7.0, 8.0, NAN]]).tolist() == [[0, 0, -1]]
    assert discretizer.inverse_transform([[0, -1, 1]]).tolist() == [["(-inf, inf)", None, "(24.5, inf)"]]


def test_one_row_and_one_class_are_enough_to_fit() -> None:
    assert MDLPDiscretizer().fit([[1.0, 2.0]], ["a"]).n_bins_.tolist() == [1, 1]
    assert MDLPDiscretizer().fit(np.eye(9), ["a"] * 9).n_bins_.tolist() == [1] * 9


# -- labels


@pytest.mark.parametrize("dtype", [float, int])
def test_inverse_transform_names_the_interval_of_each_value(fitted: MDLPDiscretizer, dtype: Any) -> None:
    codes = fitted.set_params(dtype=dtype).transform([[1.0, NAN], [3.0, 1.0], [5.0, 2.0]])
    labels = fitted.inverse_transform(codes)
    assert labels.dtype == object
    assert labels.tolist() == [
        ["(-inf, 2.45]", None],
        ["(2.45, 4.75]", "(0.8, 1.75]"],
        ["(4.75, inf)", "(1.75, inf)"],
    ]


@pytest.mark.parametrize(("code", "shown"), [(3, "3"), (-2, "-2"), (0.5, "0.5")])
def test_a_number_that_is_no_interval_is_refused(fitted: MDLPDiscretizer, code: float, shown: str) -> None:
    with pytest.raises(ValueError, match=rf"column 1 holds {shown}; its intervals are numbered 0 .. 2"):
        fitted.inverse_transform([[0, code]])


def test_inverse_transform_refuses_another_number_of_columns(fitted: MDLPDiscretizer) -> None:
    with pytest.raises(ValueError, match="X has 3 columns; give the 2 columns seen by fit"):
        fitted.inverse_transform([[0, 0, 0]])


# -- frames


def test_names_go_through(petals: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = petals
    discretizer = MDLPDiscretizer().fit(X, y)
    assert discretizer.feature_names_in_.tolist() == list(X.columns)
    assert discretizer.get_feature_names_out().tolist() == list(X.columns)


def test_set_output_gives_pandas_and_polars(petals: tuple[pd.DataFrame, pd.Series]) -> None:
    X, y = petals
    discretizer = MDLPDiscretizer(dtype="int8").fit(X, y)
    codes = discretizer.transform(X)
    as_pandas = discretizer.set_output(transform="pandas").transform(X)
    as_polars = discretizer.set_output(transform="polars").transform(X)
    pd.testing.assert_frame_equal(as_pandas, pd.DataFrame(codes, columns=X.columns))
    assert isinstance(as_polars, pl.DataFrame)
    assert as_polars.columns == list(X.columns)
    np.testing.assert_array_equal(as_polars.to_numpy(), codes)
    np.testing.assert_array_equal(discretizer.inverse_transform(as_polars), discretizer.inverse_transform(codes))


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.array([1, None, 3, 4], "Int64"), "b": pd.array([0.5, 1, 2, None], "Float64")}),
        pl.DataFrame({"a": [1, None, 3, 4], "b": [0.5, 1.0, 2.0, None]}),
    ],
    ids=["pandas", "polars"],
)
def test_na_and_null_are_missing(frame: Any) -> None:
    discretizer = MDLPDiscretizer(dtype=int).fit(frame, [0, 0, 1, 1])
    assert discretizer.transform(frame).tolist() == [[0, 0], [-1, 0], [1, 1], [1, -1]]


# -- what is refused


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_infinity_is_refused_in_scikit_learns_words(fitted: MDLPDiscretizer, bad: float) -> None:
    with pytest.raises(ValueError, match="Input X contains infinity"):
        MDLPDiscretizer().fit([[bad], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="Input X contains infinity"):
        fitted.transform([[bad, 1.0]])


def test_a_regression_target_is_refused_in_scikit_learns_words() -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        MDLPDiscretizer().fit([[1.0], [2.0], [3.0]], [0.5, 1.2, 3.7])


def test_a_missing_target_is_refused() -> None:
    with pytest.raises(ValueError, match="requires y to be passed"):
        MDLPDiscretizer().fit([[1.0], [2.0]], None)


def test_negative_weights_are_refused() -> None:
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        MDLPDiscretizer().fit([[1.0], [2.0]], [0, 1], sample_weight=[1, -1])


def test_weights_that_sum_to_less_than_two_rows_are_warned_of() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="sample_weight sums to 1 over 150 rows, so no column can be cut"):
        discretizer = MDLPDiscretizer().fit(X, y, sample_weight=np.full(150, 1 / 150))
    assert discretizer.n_bins_.tolist() == [1, 1, 1, 1]


# -- in company


def test_it_works_in_a_pipeline_and_a_grid_search() -> None:
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(MDLPDiscretizer(dtype=int), CategoricalNB(min_categories=4))
    search = GridSearchCV(pipeline, {"mdlpdiscretizer__n_jobs": [None, 2]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_sample_weight_can_be_routed_to_it() -> None:
    X, y = load_iris(return_X_y=True)
    weight = np.arange(150) % 3
    with config_context(enable_metadata_routing=True):
        steps = (
            MDLPDiscretizer(dtype=int).set_fit_request(sample_weight=True),
            CategoricalNB(min_categories=9),
        )
        pipeline = make_pipeline(steps[0], steps[1].set_fit_request(sample_weight=False))
        pipeline.fit(X, y, sample_weight=weight)
    expected = MDLPDiscretizer().fit(X, y, weight).cut_points_
    assert [c.tolist() for c in pipeline[0].cut_points_] == [c.tolist() for c in expected]


def test_a_clone_is_unfitted_and_a_pickle_is_not(fitted: MDLPDiscretizer) -> None:
    assert not hasattr(clone(fitted), "cut_points_")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform([[3.0, 1.0]]), fitted.transform([[3.0, 1.0]]))


@pytest.mark.parametrize("cells", [["a", "b"] * 5, [1.5, "b"] * 5, pd.Categorical(["a", "b"] * 5)])
def test_a_column_of_texts_is_refused_by_its_name(cells: Any) -> None:
    X = pd.DataFrame({"n": np.arange(10.0), "t": cells})
    with pytest.raises(ValueError, match=r"column 't' holds '[ab]', which is no number; choose the columns of numbers"):
        MDLPDiscretizer().fit(X, [0, 1] * 5)


@pytest.mark.parametrize("cells", [pd.Timestamp("2020"), pd.Series([date(2020, 1, 1)] * 2, dtype=object)])
def test_a_date_is_refused_with_a_remedy_that_works(cells: Any) -> None:
    with pytest.raises(TypeError, match=r"column 'when' has the type .*, which is no number") as error:
        MDLPDiscretizer().fit(pd.DataFrame({"x": [1.0, 2.0]}).assign(when=cells), [0, 1])
    assert "string" not in str(error.value)


def test_what_is_masked_is_missing() -> None:
    X, y = load_iris(return_X_y=True)
    mask = np.random.default_rng(0).random(X.shape) < 0.3
    for cells in (X, (10 * X).astype(int)):
        plain = MDLPDiscretizer().fit(np.where(mask, np.nan, cells), y)
        masked = MDLPDiscretizer().fit(np.ma.masked_array(cells, mask), y)
        np.testing.assert_equal(masked.cut_points_, plain.cut_points_)
        np.testing.assert_array_equal(
            masked.transform(np.ma.masked_array(cells, mask)), plain.transform(np.where(mask, np.nan, cells))
        )


def test_labels_are_those_that_the_classifiers_take() -> None:
    X, truths = np.arange(20.0)[:, None], np.arange(20) > 9
    for y in (truths, truths.astype(object), pd.Series(truths, dtype="boolean"), truths.astype(str).tolist()):
        assert MDLPDiscretizer().fit(X, y).cut_points_[0].tolist() == [9.5]
    dates = pd.Series(pd.Timestamp("2026-01-01") + pd.to_timedelta(truths.astype(int), "D"))
    with pytest.raises(ValueError, match="dates and durations are no classes"):
        MDLPDiscretizer().fit(X, dates)
    with pytest.raises(ValueError, match=r"row 0 \(from 0\) has no label"):
        MDLPDiscretizer().fit(X, pd.Series([pd.NA, *"ab" * 9, "a"], dtype="string"))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MDLPDiscretizer().fit(X, truths[1:])
