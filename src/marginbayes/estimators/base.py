"""What all classifiers share: probabilities from log joints, priors and costs at predict, scikit-learn's tags."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from marginbayes.data.encode import DISTINCT, Encoder, categorical_mask, identifier_doubt
from marginbayes.data.frame import Frame
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema, Variable
from marginbayes.data.spelling import doubt_of
from marginbayes.estimators.validation import Training, check_cost, check_labels, check_prior, read_features
from marginbayes.network.evaluate import normalise_logs

__all__ = ["BaseClassifier", "warn_of_columns"]

Floats = NDArray[np.float64]


class BaseClassifier(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Encodes tables and turns log joints into answers; a subclass learns, and says what its log joint is."""

    classes_: NDArray[Any]
    schema_: Schema
    discretizer: Any
    categorical_features: Any
    n_jobs: int | None

    # -- what a subclass provides

    @abstractmethod
    def _log_joint(self, rows: Rows) -> Floats:
        """log P(class, observed features) for each row and class."""

    @abstractmethod
    def _class_prior(self) -> Floats:
        """P(class) before any feature is seen."""

    # -- answers

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(class, observed features) for each row and class.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            Missing cells, and categories never seen in training, are summed out.
        """
        return self._log_joint(self._rows(X))

    def predict_log_proba(self, X: Any, *, prior: Any = None) -> Floats:
        """log P(class | observed features); see `predict_proba`."""
        joint = self._shifted(self.predict_joint_log_proba(X), prior)
        joint[np.isneginf(joint).all(axis=1)] = 0.0  # impossible under the network: no class is preferred
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any, *, prior: Any = None) -> Floats:
        """P(class | observed features) for each row and class, columns in the order of `classes_`.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            Missing cells, and categories never seen in training, are summed out.
        prior : mapping from class to probability, or sequence in the order of `classes_`, default=None
            How frequent the classes are where the answer is used, if that differs from the training data. The odds
            are corrected by Bayes' rule; nothing is fitted again.
        """
        joint = self._shifted(self.predict_joint_log_proba(X), prior)
        return normalise_logs(joint, joint)

    def predict(self, X: Any, *, prior: Any = None, cost: Any = None) -> NDArray[Any]:
        """The most probable class of each row, or the one of least expected cost.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            Missing cells, and categories never seen in training, are summed out.
        prior : mapping from class to probability, or sequence in the order of `classes_`, default=None
            As in `predict_proba`.
        cost : array or data frame of shape (n_classes, n_classes), default=None
            ``cost[i, j]`` is what it costs to predict class j when class i is true. The rows and columns of a data
            frame go by their labels; where its library has no labels of rows, they come in the order of the columns.
        """
        if cost is None:
            best = self._shifted(self.predict_joint_log_proba(X), prior).argmax(axis=1)
        else:
            matrix = check_cost(cost, self._fitted().classes_)
            best = (self.predict_proba(X, prior=prior) @ matrix).argmin(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows, or of their weight, whose most probable class is the true one.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            Missing cells, and categories never seen in training, are summed out.
        y : array of shape (n_samples,)
            The true classes, of any type that `fit` takes.
        sample_weight : array of shape (n_samples,), default=None
            Weight of each row.
        """
        return float(super().score(X, check_labels(y, warn=False), sample_weight))

    def _shifted(self, joint: Floats, prior: Any) -> Floats:
        if prior is None:
            return joint
        with np.errstate(divide="ignore", invalid="ignore"):
            shifted = joint + np.log(check_prior(prior, self.classes_)) - np.log(self._class_prior())
        return np.where(np.isneginf(joint), -np.inf, shifted)  # whatever the prior says of what cannot be

    # -- from tables to rows

    def _fitted(self) -> BaseClassifier:
        check_is_fitted(self, "schema_")
        return self

    def _rows(self, X: Any) -> Rows:
        frame = read_features(self._fitted(), X)
        return self.schema_.encode(frame, self.n_jobs)

    def _encode(self, data: Training, missing_level: bool) -> tuple[Schema, Rows]:
        """Schema and rows of training data, by the choices in the estimator's parameters.

        Weights of classes count in the rows but not where columns are cut: the description length takes weights for
        numbers of rows, and would set a few rows of a heavy class apart as if they were hundreds.
        """
        named = categorical_mask(self.categorical_features, data.frame.names)
        encoder = Encoder(
            labels=data.labels,
            n_classes=len(data.classes),
            weights=data.given,
            categorical=named,
            discretizer=self.discretizer,
            missing_level=missing_level,
            n_jobs=self.n_jobs,
        )
        schema, rows = encoder.learn(Variable(data.target, tuple(data.classes.tolist()), origin="class"), data.frame)
        warn_of_columns(schema.features, rows.codes[1:], data.frame, named)
        return schema, rows.reweighted(data.weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def warn_of_columns(
    features: Sequence[Variable], codes: NDArray[Any], frame: Frame, categorical: NDArray[np.bool_]
) -> None:
    """Say which columns are categories that nobody can have meant, if nobody declared them to be categories.

    To be called by what `fit` calls: the warning is about the line that calls `fit`. `codes` are features x rows,
    `categorical` are the columns that `categorical_features` names.
    """
    for i, variable in enumerate(features):
        if variable.cuts is not None:
            continue
        text = "" if categorical[i] or frame.is_declared(i) else _doubt(variable, codes[i])
        text = text or identifier_doubt(variable, frame.n_rows)
        if text:
            warnings.warn(f"column {text}", UserWarning, stacklevel=4)


def _doubt(variable: Variable, codes: NDArray[Any]) -> str:
    """A sentence about numbers that their spelling makes categories."""
    if variable.origin == DISTINCT:
        return ""
    doubt = doubt_of([level for level in variable.levels if level is not None], codes)
    remedy = "; if it is a category, name it in categorical_features"
    return "" if doubt is None else doubt.sentence(variable.name) + remedy
