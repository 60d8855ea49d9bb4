"""Reliability diagrams: bins, intervals and labels against scikit-learn, scipy and hand-worked cases."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris

from marginbayes.estimators import BayesNetClassifier
from marginbayes.plotting.reliability import ReliabilityDisplay


def _case(seed: int = 0, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    chances = rng.beta(0.7, 0.9, n)
    return rng.random(n) < chances**1.3, chances


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("bins", [1, 5, 10])
def test_the_curve_is_that_of_scikit_learn(strategy: str, bins: int) -> None:
    truth, chances = _case()
    display = ReliabilityDisplay.compute(truth, chances, n_bins=bins, strategy=strategy)
    true, predicted = calibration_curve(truth, chances, n_bins=bins, strategy=strategy)
    np.testing.assert_allclose(display.prob_true, true)
    np.testing.assert_allclose(display.prob_pred, predicted)
    assert display.counts.sum() == len(truth)
    assert (display.low <= display.prob_true).all()
    assert (display.prob_true <= display.high).all()


def test_four_predictions_worked_by_hand() -> None:
    display = ReliabilityDisplay.compute(["no", "yes", "yes", "no"], [0.1, 0.4, 0.8, 1.0], n_bins=2)
    np.testing.assert_allclose(display.prob_pred, [0.25, 0.9])
    np.testing.assert_allclose(display.prob_true, [0.5, 0.5])
    assert display.brier == pytest.approx((0.01 + 0.36 + 0.04 + 1.0) / 4)
    assert display.calibration_error == pytest.approx((0.25 + 0.4) / 2)
    assert display.event == "class 'yes'"


def test_the_positive_class_can_be_chosen() -> None:
    truth, chances = _case()
    one = ReliabilityDisplay.compute(truth, chances)
    other = ReliabilityDisplay.compute(~truth, chances, pos_label=False)
    np.testing.assert_array_equal(one.prob_true, other.prob_true)


def test_the_drawing_shows_curve_intervals_and_histogram() -> None:
    truth, chances = _case()
    display = ReliabilityDisplay.from_predictions(truth, chances, name="tan", event="rain")
    line = display.errorbar_.lines[0]
    np.testing.assert_array_equal(line.get_xydata(), np.stack([display.prob_pred, display.prob_true], axis=1))
    assert display.histogram_ax_ is not None
    assert sum(bar.get_height() for bar in display.histogram_ax_.patches) == len(truth)
    assert display.histogram_ax_.get_xlabel() == "predicted probability of rain"
    assert "tan" in display.ax_.get_legend().get_texts()[0].get_text()


def test_predictions_of_the_same_rows_count_as_these_rows() -> None:
    truth, chances = _case()
    once = ReliabilityDisplay.compute(truth, chances)
    often = ReliabilityDisplay.compute(np.tile(truth, 5), np.tile(chances, 5), repeats=5, score="their score").plot()
    np.testing.assert_allclose([often.low, often.high], [once.low, once.high])
    assert often.counts.sum() == 5 * len(truth)
    assert sum(bar.get_height() for bar in often.histogram_ax_.patches) == pytest.approx(len(truth))
    assert "their score 0." in often.ax_.get_legend().get_texts()[0].get_text()


def test_given_axes_are_drawn_into_and_nothing_else_is() -> None:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots()
    display = ReliabilityDisplay.from_predictions(*_case(), ax=ax)
    assert display.ax_ is ax
    assert figure.axes == [ax]
    assert display.histogram_ax_ is None


def test_a_name_with_dollar_signs_is_no_mathematics() -> None:
    display = ReliabilityDisplay.from_predictions(*_case(), name="$\\frac$", event="$\\bad{ $")
    display.figure_.canvas.draw()
    texts = [text.get_text() for text in display.figure_.findobj(lambda artist: hasattr(artist, "get_text"))]
    assert any("frac" in text for text in texts)
    assert any("bad" in text for text in texts)


@pytest.mark.parametrize("histogram", [True, False])
@pytest.mark.parametrize(
    "event", ["class 'no relapse within twelve months after discharge from the hospital'", "class " + "x" * 200]
)
def test_long_names_lie_inside_the_picture(event: str, histogram: bool) -> None:
    display = ReliabilityDisplay.compute([0, 1, 1, 0], [0.1, 0.9, 0.6, 0.4], event=event, name="n" * 99)
    display.plot(histogram=histogram).figure_.canvas.draw()
    ax = display.histogram_ax_ if histogram else display.ax_
    frame = display.figure_.bbox
    for text in (ax.xaxis.label, *display.ax_.get_legend().get_texts()):
        box = text.get_window_extent()
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1


def test_an_estimator_with_two_classes_is_drawn() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = BayesNetClassifier("nb").fit(X, y)
    display = ReliabilityDisplay.from_estimator(model, X, y, pos_label=0)
    expected = ReliabilityDisplay.compute(y, model.predict_proba(X)[:, 0], pos_label=0)
    np.testing.assert_array_equal(display.prob_true, expected.prob_true)
    assert display.name == "BayesNetClassifier"


@pytest.mark.parametrize("positive", ["class_0", "class_2"])
def test_of_three_classes_one_is_drawn_against_the_rest(positive: str) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = y.map(lambda k: f"class_{k}")
    model = BayesNetClassifier("nb").fit(X, names)
    chances = model.predict_proba(X)[:, int(positive[-1])]
    expected = ReliabilityDisplay.compute(names == positive, chances, pos_label=True, n_bins=4, strategy="quantile")
    options = {"pos_label": positive, "n_bins": 4, "strategy": "quantile"}
    for display in (
        ReliabilityDisplay.from_estimator(model, X, names, **options),
        ReliabilityDisplay.from_predictions(names, chances, **options),
    ):
        np.testing.assert_array_equal(display.prob_true, expected.prob_true)
        np.testing.assert_array_equal(display.prob_pred, expected.prob_pred)
        assert display.event == f"class '{positive}'"
    wider = ReliabilityDisplay.from_estimator(model, X, names, confidence=0.99, **options)
    assert (wider.high - wider.low > expected.high - expected.low).all()


def test_which_of_three_classes_must_be_said() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = BayesNetClassifier("nb").fit(X, y)
    with pytest.raises(ValueError, match="has 3 classes; say with pos_label which one, 0, 1 and 2"):
        ReliabilityDisplay.from_estimator(model, X, y)
    with pytest.raises(ValueError, match="pos_label=7 is none of the labels 0, 1 and 2"):
        ReliabilityDisplay.from_predictions(y, np.full(len(y), 0.5), pos_label=7)
    with pytest.raises(ValueError, match="no label of y, such as '0', is a class; the classes are 0, 1 and 2"):
        ReliabilityDisplay.from_estimator(model, X, y.astype(str), pos_label=1)


def test_a_class_that_is_not_there_is_refused() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    with pytest.raises(ValueError, match="pos_label=7 is not a class"):
        ReliabilityDisplay.from_estimator(BayesNetClassifier("nb").fit(X, y), X, y, pos_label=7)


@pytest.mark.parametrize(
    ("truth", "chances", "options", "words"),
    [
        ([0, 1], [0.5, 1.5], {}, r"y_prob\[1\] is 1.5"),
        ([0, 1], [0.5, np.nan], {}, "no probability"),
        ([0, 1], [[0.5, 0.5]], {}, "one probability for each row"),
        ([0, 1, 2], [0.5, 0.5, 0.5], {}, "3 different labels"),
        ([0, 1, 1], [0.5, 0.5], {}, "3 labels but 2 probabilities"),
        ([0, 1], [0.5, 0.5], {"strategy": "best"}, "'uniform' or 'quantile'"),
        ([0, 1], [0.5, 0.5], {"n_bins": 0}, "at least 1"),
    ],
)
def test_impossible_input_gets_a_sentence(truth: object, chances: object, options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ReliabilityDisplay.compute(truth, chances, **options)


@pytest.mark.parametrize("none", [[0, 0, 0], [False] * 3])
def test_what_never_happened_did_not_happen(none: list[int]) -> None:
    display = ReliabilityDisplay.compute(none, [0.1, 0.2, 0.1])
    assert display.prob_true.max() == 0.0
    assert display.brier == pytest.approx(0.02)
    assert ReliabilityDisplay.compute([1, 1], [0.9, 0.9]).prob_true.min() == 1.0


def test_the_class_that_is_predicted_must_be_known() -> None:
    with pytest.raises(ValueError, match="the label 'a' alone; say with pos_label"):
        ReliabilityDisplay.compute(["a", "a"], [0.1, 0.2])
    with pytest.raises(ValueError, match="pos_label='z' is none of the labels 'a' and 'b'"):
        ReliabilityDisplay.compute(["a", "b"], [0.1, 0.2], pos_label="z")
    assert ReliabilityDisplay.compute(["a", "a"], [0.1, 0.2], pos_label="b").prob_true.max() == 0.0
