"""scikit-learn's own checks, with nothing excused."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginbayes.sequence import MultiLabelClassifier, SequenceLabeler

ESTIMATORS = [
    SequenceLabeler(),
    SequenceLabeler(parameters="cl", window=3, order=2, decoding="marginal"),
    MultiLabelClassifier(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: {})
def test_sequence_estimators_pass_every_check_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
