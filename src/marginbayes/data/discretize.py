"""The Fayyad-Irani discretiser as a scikit-learn transformer."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags, check_array, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from marginbayes import checks
from marginbayes.data.frame import (
    ColumnTypeError,
    Frame,
    LevelColumn,
    is_frame,
    read_frame,
    spells_number,
    without_mask,
)
from marginbayes.data.labels import check_labels
from marginbayes.data.mdlp import interval_labels, mdlp_all

__all__ = ["MDLPDiscretizer"]


class MDLPDiscretizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer that cuts each numeric column into the intervals that tell the classes apart.

    Fayyad and Irani's method: a column is cut where the class entropy is least, and its parts again, as long
    as the cut shortens the description of the classes. The number of intervals is found, not chosen; a column
    that alone says nothing of the class keeps one interval. The cut points are those of Weka and Orange.

    Parameters
    ----------
    dtype : dtype-like, default=numpy.float64
        Type of the interval numbers that `transform` returns. A floating type marks a missing value by NaN, a
        signed integer type by -1.
    n_jobs : int or None, default=None
        Number of threads that `fit` uses, as joblib counts them: None is 1, -1 is all cores.

    Attributes
    ----------
    cut_points_ : list of ndarray
        Ascending cut points of each column. A value v lies in interval i when cut[i - 1] < v <= cut[i].
    n_bins_ : ndarray of shape (n_features_in_,)
        Number of intervals of each column.
    n_features_in_ : int
        Number of columns seen by `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if they all had one.

    See Also
    --------
    marginbayes.data.mdlp.mdlp_cuts : The algorithm for one column.

    Notes
    -----
    NaN is missing: ignored by `fit` in its column only, and handed on by `transform`.

    `sample_weight` counts rows: weight 2 equals the row twice, weight 0 its absence. The weights are not
    scaled, since the method sets evidence against description length; weights that sum to 1 say "one row",
    and then nothing is cut.

    References
    ----------
    U. M. Fayyad and K. B. Irani (1993). Multi-interval discretization of continuous-valued attributes for
    classification learning. IJCAI, 1022-1027.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> discretizer = MDLPDiscretizer(dtype=int).fit(X[:, 2:], y)
    >>> discretizer.cut_points_
    [array([2.45, 4.75]), array([0.8 , 1.75])]
    >>> discretizer.transform([[1.4, 0.2], [5.0, float("nan")]])
    array([[ 0,  0],
           [ 2, -1]])
    >>> discretizer.inverse_transform([[0, 0], [2, -1]])
    array([['(-inf, 2.45]', '(-inf, 0.8]'],
           ['(4.75, inf)', None]], dtype=object)
    """

    def __init__(self, *, dtype: DTypeLike = np.float64, n_jobs: int | None = None) -> None:
        self.dtype = dtype
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """The discretiser with the cut points of these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numeric columns; NaN is missing, infinity is refused.
        y : array-like of shape (n_samples,)
            The class of each row, of any type that the classifiers take.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative number of rows that each row stands for.
        """
        _checked_dtype(self.dtype)
        checks.jobs("n_jobs", self.n_jobs)
        _check_numbers(X)
        if y is None:
            raise ValueError("MDLPDiscretizer requires y to be passed, but the target y is None")
        matrix = validate_data(self, without_mask(X), dtype=np.float64, ensure_all_finite="allow-nan")
        target = check_labels(y)
        check_consistent_length(matrix, target)
        weights = None if sample_weight is None else _checked_weights(sample_weight, matrix)
        classes, codes = np.unique(target, return_inverse=True)
        self.cut_points_ = mdlp_all(matrix.T, codes, len(classes), weights, self.n_jobs)
        self.n_bins_ = np.array([len(cuts) + 1 for cuts in self.cut_points_])
        return self

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The number of the interval in which each value lies, counted from 0, as `dtype`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numeric columns; NaN is missing, infinity is refused.
        """
        check_is_fitted(self)
        dtype = _checked_dtype(self.dtype)
        self._check_room(dtype)
        matrix = validate_data(self, without_mask(X), dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        codes: NDArray[Any] = np.empty(matrix.shape, dtype, order="F")
        for j, cuts in enumerate(self.cut_points_):
            codes[:, j] = np.searchsorted(cuts, matrix[:, j])
        codes[np.isnan(matrix)] = np.nan if dtype.kind == "f" else -1
        return codes

    def inverse_transform(self, X: ArrayLike) -> NDArray[np.object_]:
        """Object array of interval labels, like "(-inf, 2.45]", with None for missing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers of intervals as `transform` returns them, with NaN or -1 for missing.
        """
        check_is_fitted(self)
        codes = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
        if codes.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {codes.shape[1]} columns; give the {self.n_features_in_} columns seen by fit")
        codes = np.where(np.isnan(codes), -1, codes)
        labels = np.empty(codes.shape, object)
        for j, cuts in enumerate(self.cut_points_):
            self._check_codes(codes[:, j], j)
            # None stands last, where the code -1 finds it.
            labels[:, j] = np.array([*interval_labels(cuts), None], object)[codes[:, j].astype(np.intp)]
        return labels

    def _check_room(self, dtype: np.dtype[Any]) -> None:
        largest = np.iinfo(dtype).max if dtype.kind == "i" else 2 ** (np.finfo(dtype).nmant + 1)
        j = int(np.argmax(self.n_bins_))
        if self.n_bins_[j] - 1 > largest:
            many = f"{self._name(j)} has {self.n_bins_[j]} intervals"
            raise ValueError(f"{many}, more than the type {dtype} can number; choose a wider dtype")

    def _check_codes(self, codes: NDArray[np.float64], j: int) -> None:
        wrong = (codes != np.floor(codes)) | (codes < -1) | (codes >= self.n_bins_[j])
        if wrong.any():
            range_ = f"its intervals are numbered 0 .. {self.n_bins_[j] - 1}, and -1 or NaN is missing"
            raise ValueError(f"{self._name(j)} holds {codes[wrong][0]:g}; {range_}")

    def _name(self, j: int) -> str:
        return f"column {self.feature_names_in_[j]!r}" if hasattr(self, "feature_names_in_") else f"column {j}"


def _check_numbers(X: Any) -> None:
    """Refuse a data frame with a column of texts, by its name."""
    if not is_frame(X):
        return
    frame = read_frame(X)
    for i, name in enumerate(frame.names):
        for level in _levels(frame, i):
            if isinstance(level, str) and not spells_number(level):
                raise ValueError(
                    f"column {name!r} holds {level!r}, which is no number; choose the columns of numbers, for instance "
                    "by a ColumnTransformer"
                )


def _levels(frame: Frame, i: int) -> tuple[Any, ...]:
    """The different values of a column that is not one of numbers."""
    if frame.source[:, i].dtype.is_numeric():
        return ()
    try:
        column = frame.column(i)
    except ColumnTypeError as error:
        raise TypeError(
            f"column {frame.names[i]!r} has the type {error.kind}, which is no number; turn it into numbers (for a "
            "date: days since a reference), or leave it out"
        ) from None
    return column.levels if isinstance(column, LevelColumn) else ()


def _checked_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    checked = np.dtype(dtype)
    if checked.kind not in "fi":
        remedy = "use a floating type (NaN) or a signed integer type (-1)"
        raise ValueError(f"dtype={dtype!r} has no mark for a missing value; {remedy}")
    return checked


def _checked_weights(sample_weight: ArrayLike, X: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    total = float(weights.sum())
    if len(X) > 1 and total < 2:
        remedy = "a weight is a number of rows; scale the weights to sum to the number of rows"
        text = f"sample_weight sums to {total:g} over {len(X)} rows, so no column can be cut: {remedy}"
        warnings.warn(text, UserWarning, stacklevel=3)
    return np.asarray(weights)
