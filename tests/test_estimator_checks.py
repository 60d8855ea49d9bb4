"""scikit-learn's own checks, with nothing excused."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginbayes import AODEClassifier, BayesNetClassifier

ESTIMATORS = [
    BayesNetClassifier(structure="nb"),
    BayesNetClassifier(structure="tan"),
    BayesNetClassifier(structure="tan", missing="em"),
    BayesNetClassifier(structure="tan", missing="level"),
    BayesNetClassifier(structure="kdb2"),
    BayesNetClassifier(structure="snb"),
    BayesNetClassifier(structure="exact-mdl"),
    BayesNetClassifier(structure="tan", parameters="cl"),
    BayesNetClassifier(structure="nb", parameters="mm-hybrid"),
    AODEClassifier(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: {})
def test_passes_every_check_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)
