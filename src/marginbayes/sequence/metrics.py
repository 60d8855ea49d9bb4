"""Accuracy of whole sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginbayes.sequence.ids import chains_of

__all__ = ["sequence_accuracy", "whole_sequence_scorer"]


def sequence_accuracy(y_true: Any, y_pred: Any, sequence: Any) -> float:
    """Share of the sequences in which every label is right.

    Examples
    --------
    >>> sequence_accuracy([0, 1, 1], [0, 1, 0], ["a", "a", "b"])
    0.5
    """
    right = np.asarray(y_true) == np.asarray(y_pred)
    chains = chains_of(sequence, len(right))
    return float(np.logical_and.reduceat(right[chains.order], chains.offsets[:-1]).mean())


def whole_sequence_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Share of the sequences that a fitted `SequenceLabeler` labels without an error; a scorer for scikit-learn.

    Use it as ``cross_val_score(labeler, X, y, groups=ids, cv=GroupKFold(), scoring=whole_sequence_scorer)``. Most
    probable labellings of whole sequences are what ``decoding="viterbi"`` predicts.
    """
    return sequence_accuracy(y, estimator.predict(X), estimator.sequence_ids(X))
