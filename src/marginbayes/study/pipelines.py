"""A grid search over the last step of a pipeline, for which the steps before it are fitted once a fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline

__all__ = ["LastStepSearch", "is_about_last_step"]

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def is_about_last_step(estimator: Any, grid: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a grid only sets parameters of a pipeline's last step."""
    return isinstance(estimator, Pipeline) and all(name.startswith(f"{estimator.steps[-1][0]}__") for name in grid)


class LastStepSearch(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What `GridSearchCV` finds by accuracy, faster: encoding a table takes longer than a small classifier on it.

    Parameters
    ----------
    pipeline : Pipeline
    grid : mapping from parameter of the last step (``step__name``) to values
    folds : sequence of (training rows, validation rows)
    """

    def __init__(self, pipeline: Pipeline, grid: Mapping[str, Sequence[Any]], folds: Sequence[Fold]) -> None:
        self.pipeline = pipeline
        self.grid = grid
        self.folds = folds

    def fit(self, X: Any, y: Any) -> LastStepSearch:
        """Choose by the mean over the folds, the first point in a tie, and fit that one to all rows of a data frame."""
        points = list(ParameterGrid(dict(self.grid)))
        rates = np.zeros(len(points))
        for train, test in self.folds:
            front = clone(self.pipeline[:-1])
            seen = front.fit_transform(X.iloc[train], y[train])
            unseen = front.transform(X.iloc[test])
            for i, point in enumerate(points):
                machine = clone(self.pipeline).set_params(**point)[-1]
                rates[i] += machine.fit(seen, y[train]).score(unseen, y[test])
        self.best_params_ = points[int(np.argmax(np.round(rates / len(self.folds), 12)))]
        self.best_estimator_ = clone(self.pipeline).set_params(**self.best_params_).fit(X, y)
        self.classes_ = self.best_estimator_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes by the chosen pipeline."""
        return np.asarray(self.best_estimator_.predict(X))
