"""All metrics of one classifier, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.evaluation import metrics
from marginbayes.evaluation.intervals import wilson_interval
from marginbayes.evaluation.run import Outcome

__all__ = ["Evaluation", "Interval", "summarise"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A number and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float | None]:
        """The three numbers by name; None where undefined."""
        return {"value": finite(self.value), "low": finite(self.low), "high": finite(self.high)}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well one classifier did on rows that it was not trained on.

    The predictions of all folds are pooled: metrics are over rows, not means over folds. Intervals are
    Wilson's 95 % intervals with as many trials as there are different rows (repetitions add predictions,
    but no rows). They tell how far a number may be off because the test rows are a sample; they do not
    cover the choice of the training rows.

    Parameters
    ----------
    name : str
        Of the classifier.
    classes : tuple
        Class labels; the confusion matrix has them in this order.
    positive : class label or None
        With two classes, the one that sensitivity and PPV speak of.
    n_rows : int
        Different rows tested.
    n_predictions : int
        Predictions made: more with repetitions.
    accuracy : Interval
        Share of the rows whose most probable class is the true one.
    log_loss : float
        Mean of minus the logarithm of the true class's probability.
    brier : float
        Brier score; see `marginbayes.evaluation.metrics`.
    auc : float
        Area under the ROC curve; see `marginbayes.evaluation.metrics`.
    rates : dict from str to Interval
        With two classes sensitivity, specificity, PPV and NPV, else empty.
    confusion : array of shape (n_classes, n_classes)
        Number of predictions by true class (row) and predicted class (column).
    fold_accuracy : tuple of float
        Accuracy in each fold of each repetition.
    fit_seconds : float
        Of all fits together.
    predict_seconds : float
        Of the predictions in all folds together.
    """

    name: str
    classes: tuple[Any, ...]
    positive: Any
    n_rows: int
    n_predictions: int
    accuracy: Interval
    log_loss: float
    brier: float
    auc: float
    rates: dict[str, Interval]
    confusion: NDArray[np.int64] = field(repr=False)
    fold_accuracy: tuple[float, ...] = field(repr=False)
    fit_seconds: float
    predict_seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The same as values that JSON can hold; None where a number is undefined."""
        return {
            "name": self.name,
            "n_rows": self.n_rows,
            "n_predictions": self.n_predictions,
            "accuracy": self.accuracy.to_dict(),
            "log_loss": finite(self.log_loss),
            "brier": finite(self.brier),
            "auc": finite(self.auc),
            "positive": self.positive,
            "rates": {name: rate.to_dict() for name, rate in self.rates.items()},
            "classes": list(self.classes),
            "confusion": self.confusion.tolist(),
            "fold_accuracy": list(self.fold_accuracy),
            "fit_seconds": self.fit_seconds,
            "predict_seconds": self.predict_seconds,
        }


def summarise(outcomes: Sequence[Outcome], classes: Any, positive: Any = None) -> Evaluation:
    """Evaluation of one classifier from what it said in every fold.

    Parameters
    ----------
    outcomes : sequence of Outcome
        All of the same classifier; at least one.
    classes : array-like
        Class labels, sorted, as given to `run`.
    positive : class label, optional
        Of two classes; by default the second.
    """
    labels = tuple(np.asarray(classes).tolist())
    truth, log_proba, rows = pooled(outcomes)
    if len(labels) != log_proba.shape[1]:
        raise ValueError(f"there are {len(labels)} classes, but {log_proba.shape[1]} were given to run; give the same")
    n_rows = len(np.unique(rows))
    confusion = metrics.confusion_matrix(truth, log_proba)
    side = _positive_index(labels, positive)
    return Evaluation(
        name=outcomes[0].name,
        classes=labels,
        positive=None if side is None else labels[side],
        n_rows=n_rows,
        n_predictions=len(truth),
        accuracy=_proportion(int(np.trace(confusion)), len(truth), n_rows / len(truth)),
        log_loss=metrics.log_loss(truth, log_proba),
        brier=metrics.brier_score(truth, log_proba),
        auc=metrics.area_under_curve(truth, log_proba),
        rates={} if side is None else _rates(confusion, side, n_rows / len(truth)),
        confusion=confusion,
        fold_accuracy=tuple(float(o.correct.mean()) for o in outcomes),
        fit_seconds=sum(o.fit_seconds for o in outcomes),
        predict_seconds=sum(o.predict_seconds for o in outcomes),
    )


def pooled(
    outcomes: Sequence[Outcome],
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.intp]]:
    """True classes, log probabilities and row numbers of all outcomes behind each other."""
    if not outcomes:
        raise ValueError("there is no outcome to summarise")
    return (
        np.concatenate([o.truth for o in outcomes]),
        np.concatenate([o.log_proba for o in outcomes]),
        np.concatenate([o.rows for o in outcomes]),
    )


def finite(value: float) -> float | None:
    """The number, or None if it is infinite or undefined, for JSON."""
    return value if math.isfinite(value) else None


def _positive_index(classes: tuple[Any, ...], positive: Any) -> int | None:
    if positive is not None and positive not in classes:
        raise ValueError(f"{positive!r} is not a class; the classes are {', '.join(map(repr, classes))}")
    if len(classes) != 2:
        if positive is not None:
            raise ValueError(f"a positive class needs two classes, but there are {len(classes)}")
        return None
    return 1 if positive is None else classes.index(positive)


def _rates(confusion: NDArray[np.int64], side: int, shrink: float) -> dict[str, Interval]:
    """Sensitivity, specificity, PPV and NPV with `side` as the positive class."""
    other = 1 - side
    true_positive, true_negative = int(confusion[side, side]), int(confusion[other, other])
    return {
        "sensitivity": _proportion(true_positive, int(confusion[side].sum()), shrink),
        "specificity": _proportion(true_negative, int(confusion[other].sum()), shrink),
        "PPV": _proportion(true_positive, int(confusion[:, side].sum()), shrink),
        "NPV": _proportion(true_negative, int(confusion[:, other].sum()), shrink),
    }


def _proportion(successes: int, trials: int, shrink: float) -> Interval:
    """Share of successes; its interval counts `shrink` of each trial, since repetitions are no new rows."""
    if not trials:
        return Interval(math.nan, 0.0, 1.0)
    low, high = wilson_interval(successes * shrink, trials * shrink, CONFIDENCE)
    return Interval(successes / trials, float(low), float(high))
