"""Summaries: hand-worked rates, intervals that repetitions do not narrow, values that JSON can hold."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from marginbayes.evaluation import Outcome, summarise


def outcome(truth: list[int], predicted: list[int], *, repeat: int = 0, fold: int = 0, name: str = "m") -> Outcome:
    """An outcome with certain predictions of two (or more) classes, rows numbered from zero."""
    n_classes = max(2, *truth, *predicted) + (1 if max(*truth, *predicted) >= 2 else 0)
    chances = np.full((len(truth), n_classes), 0.1 / (n_classes - 1))
    chances[np.arange(len(truth)), predicted] = 0.9
    rows = np.arange(len(truth)) + 1000 * fold
    return Outcome(name, repeat, fold, rows, np.array(truth), np.log(chances), 10, 0.5, 0.25)


# 10 sick (code 1) of whom 8 are found; 20 healthy of whom 3 are called sick.
TRUTH = [1] * 10 + [0] * 20
PREDICTED = [1] * 8 + [0] * 2 + [1] * 3 + [0] * 17


def test_rates_of_two_classes_worked_by_hand() -> None:
    result = summarise([outcome(TRUTH, PREDICTED)], ["healthy", "sick"])
    assert result.positive == "sick"
    assert result.confusion.tolist() == [[17, 3], [2, 8]]
    values = {name: rate.value for name, rate in result.rates.items()}
    assert values == pytest.approx({"sensitivity": 8 / 10, "specificity": 17 / 20, "PPV": 8 / 11, "NPV": 17 / 19})
    assert result.accuracy.value == pytest.approx(25 / 30)


def test_the_other_positive_class_swaps_the_rates() -> None:
    one = summarise([outcome(TRUTH, PREDICTED)], ["healthy", "sick"], positive="sick")
    two = summarise([outcome(TRUTH, PREDICTED)], ["healthy", "sick"], positive="healthy")
    assert one.rates["sensitivity"] == two.rates["specificity"]
    assert one.rates["PPV"] == two.rates["NPV"]


def test_intervals_are_those_of_scipy() -> None:
    result = summarise([outcome(TRUTH, PREDICTED)], ["healthy", "sick"])
    for interval, (k, n) in ((result.accuracy, (25, 30)), (result.rates["PPV"], (8, 11))):
        expected = binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))


def test_repetitions_add_predictions_but_do_not_narrow_the_interval() -> None:
    once = summarise([outcome(TRUTH, PREDICTED)], ["healthy", "sick"])
    thrice = summarise([outcome(TRUTH, PREDICTED, repeat=r) for r in range(3)], ["healthy", "sick"])
    assert (thrice.n_rows, thrice.n_predictions) == (30, 90)
    assert thrice.accuracy == once.accuracy
    assert thrice.rates == once.rates
    assert thrice.fit_seconds == 1.5


def test_folds_are_pooled_and_not_averaged() -> None:
    small, large = outcome([1], [0], fold=0), outcome([1, 1, 0], [1, 1, 0], fold=1)
    result = summarise([small, large], [0, 1])
    assert result.accuracy.value == 0.75
    assert result.fold_accuracy == (0.0, 1.0)
    assert result.n_rows == 4


def test_a_rate_without_rows_is_undefined_and_null_in_json() -> None:
    result = summarise([outcome([1, 1], [1, 1])], [0, 1])
    assert np.isnan(result.rates["specificity"].value)
    assert (result.rates["specificity"].low, result.rates["specificity"].high) == (0.0, 1.0)
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert document["rates"]["specificity"]["value"] is None
    assert document["auc"] is None


def test_three_classes_have_no_rates() -> None:
    result = summarise([outcome([0, 1, 2], [0, 1, 1])], ["a", "b", "c"])
    assert result.rates == {}
    assert result.positive is None


def test_an_unknown_or_needless_positive_class_is_refused() -> None:
    with pytest.raises(ValueError, match="'ill' is not a class; the classes are 'healthy', 'sick'"):
        summarise([outcome(TRUTH, PREDICTED)], ["healthy", "sick"], positive="ill")
    with pytest.raises(ValueError, match="needs two classes, but there are 3"):
        summarise([outcome([0, 1, 2], [0, 1, 1])], ["a", "b", "c"], positive="a")


def test_other_classes_than_those_of_the_outcomes_are_refused() -> None:
    with pytest.raises(ValueError, match="there are 2 classes, but 3 were given to run"):
        summarise([outcome([0, 1, 2], [0, 1, 1])], ["a", "b"])


def test_no_outcome_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="no outcome"):
        summarise([], [0, 1])
