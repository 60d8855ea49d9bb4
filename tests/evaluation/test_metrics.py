"""Metrics against scikit-learn's, and against cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as reference

from marginbayes.evaluation import metrics


def _random_case(n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(n_classes, 0.7), 300)
    truth = np.array([rng.choice(n_classes, p=p) for p in chances])
    return truth, np.log(chances)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_metrics_equal_those_of_scikit_learn(n_classes: int, seed: int) -> None:
    truth, logs = _random_case(n_classes, seed)
    chances, labels = np.exp(logs), list(range(n_classes))
    assert metrics.accuracy(truth, logs) == pytest.approx(reference.accuracy_score(truth, chances.argmax(axis=1)))
    assert metrics.log_loss(truth, logs) == pytest.approx(reference.log_loss(truth, chances, labels=labels))
    brier = reference.brier_score_loss(truth, chances, labels=labels)
    assert metrics.brier_score(truth, logs) == pytest.approx(brier)
    scores = chances[:, 1] if n_classes == 2 else chances
    area = reference.roc_auc_score(truth, scores, multi_class="ovr", average="macro")
    assert metrics.area_under_curve(truth, logs) == pytest.approx(area)
    confusion = reference.confusion_matrix(truth, chances.argmax(axis=1), labels=labels)
    assert metrics.confusion_matrix(truth, logs).tolist() == confusion.tolist()


def test_four_rows_worked_by_hand() -> None:
    truth = np.array([0, 0, 1, 1])
    logs = np.log([[0.8, 0.2], [0.4, 0.6], [0.5, 0.5], [0.1, 0.9]])
    assert metrics.accuracy(truth, logs) == 0.5  # the tie of the third row goes to the first class
    assert metrics.log_loss(truth, logs) == pytest.approx(-np.log(0.8 * 0.4 * 0.5 * 0.9) / 4)
    assert metrics.brier_score(truth, logs) == pytest.approx((0.04 + 0.36 + 0.25 + 0.01) / 4)
    # Of the four pairs (negative, positive) only (0.6, 0.5) is in the wrong order.
    assert metrics.area_under_curve(truth, logs) == 0.75
    assert metrics.confusion_matrix(truth, logs).tolist() == [[1, 1], [1, 1]]


def test_equal_scores_count_half_in_the_area() -> None:
    assert metrics.area_under_curve(np.array([0, 1]), np.log(np.full((2, 2), 0.5))) == 0.5


def test_the_area_tells_apart_probabilities_that_round_to_one() -> None:
    odds = np.array([800.0, 900.0])  # both probabilities are 1.0 in floating point
    logs = np.stack([-odds, np.zeros(2)], axis=1)
    assert metrics.area_under_curve(np.array([0, 1]), logs) == 1.0
    assert metrics.area_under_curve(np.array([1, 0]), logs) == 0.0


def test_the_log_loss_is_finite_where_a_probability_underflows() -> None:
    logs = np.array([[0.0, -2000.0]])
    assert metrics.log_loss(np.array([1]), logs) == 2000.0


def test_a_class_that_no_row_has_is_left_out_of_the_area() -> None:
    truth, logs = _random_case(3, 5)
    kept = truth != 2
    rows, scores = truth[kept], logs[kept]
    by_hand = [reference.roc_auc_score(rows == k, np.exp(scores[:, k])) for k in (0, 1)]
    assert metrics.area_under_curve(rows, scores) == pytest.approx(np.mean(by_hand))


def test_the_area_is_undefined_when_all_rows_have_one_class() -> None:
    assert np.isnan(metrics.area_under_curve(np.array([1, 1]), np.log(np.full((2, 2), 0.5))))


@pytest.mark.parametrize("seed", range(30))
def test_equal_probabilities_are_ties_with_several_classes_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chances = rng.multinomial(10, [0.4, 0.3, 0.3], 20) / 10 * 0.97 + 0.01
    truth = np.r_[0, 1, 2, rng.integers(0, 3, 17)]
    expected = reference.roc_auc_score(truth, chances, multi_class="ovr", average="macro")
    assert metrics.area_under_curve(truth, np.log(chances)) == pytest.approx(expected, abs=1e-12)
