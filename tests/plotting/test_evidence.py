"""Evidence charts: the bars are the explanation, in order, and sum to the log-odds."""

from __future__ import annotations

import math
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.transforms import Bbox
from sklearn.datasets import load_breast_cancer, load_iris

from marginbayes import AODEClassifier, BayesNetClassifier
from marginbayes.estimators.explain import Explanation
from marginbayes.plotting.evidence import AGAINST, FOR, EvidenceDisplay, percent, statement


def _explanation(weights: list[float], values: list[object] | None = None, prior: float = 0.3) -> Explanation:
    n = len(weights)
    levels = np.empty((1, n), object)
    levels[0] = [f"v{i}" for i in range(n)] if values is None else values
    return Explanation(
        tuple(f"f{i}" for i in range(n)),
        np.array([weights]),
        np.array([prior]),
        np.array(["yes"]),
        np.array(["no"]),
        levels,
    )


@pytest.mark.parametrize("structure", ["nb", "tan"])
@pytest.mark.parametrize("most", [1, 4, 15, 100])
def test_prior_bars_and_rest_sum_to_the_log_odds_of_the_model(structure: str, most: int) -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.1)
    model = BayesNetClassifier(structure).fit(X, y)
    explanation = model.explain(X.iloc[:20])
    logs = model.predict_log_proba(X.iloc[:20])
    for row in range(20):
        display = EvidenceDisplay.from_explanation(explanation, row, most)
        assert display.prior + sum(display.weights) + display.other == pytest.approx(display.log_odds)
        assert display.log_odds == pytest.approx(logs[row, 1] - logs[row, 0])
        assert display.probability == pytest.approx(math.exp(logs[row, 1]))
        assert display.n_missing == X.iloc[row].isna().sum()
        assert len(display.names) + display.n_other + display.n_missing == X.shape[1]


def test_the_heaviest_are_shown_sorted_from_for_to_against() -> None:
    display = EvidenceDisplay.from_explanation(_explanation([0.1, -2.0, 1.0, -0.2, 3.0]), max_features=3)
    assert display.names == ("f4", "f2", "f1")
    assert display.weights == (3.0, 1.0, -2.0)
    assert display.other == pytest.approx(-0.1)
    assert display.n_other == 2


def test_missing_features_have_no_bar_but_a_missing_level_has() -> None:
    display = EvidenceDisplay.from_explanation(_explanation([0.5, 0.0, -0.7], ["a", None, None]))
    assert display.names == ("f0", "f2")
    assert display.n_missing == 1
    assert "f2 = missing" in [label for label, _, _ in display.bars()]


def test_a_missing_level_is_as_heavy_as_any_other() -> None:
    display = EvidenceDisplay.from_explanation(_explanation([0.5, 5.0, 0.1], ["a", None, "b"]), max_features=1)
    assert display.names == ("f1",)
    assert display.other == pytest.approx(0.6)


def test_bars_are_drawn_as_long_as_their_weights() -> None:
    display = EvidenceDisplay.from_explanation(_explanation([0.5, -1.5])).plot()
    assert [bar.get_width() for bar in display.bars_] == pytest.approx([0.3, 0.5, -1.5, -0.7])
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == ["prior", "f0 = v0", "f1 = v1", "log-odds"]
    colors = [mpl.colors.to_hex(bar.get_facecolor()) for bar in display.bars_]
    assert colors[1:3] == [FOR, AGAINST]
    before, after = percent(display.prior_probability), percent(display.probability)
    assert display.ax_.get_title() == f"P(yes) against no:  {before} before,  {after} after"


def test_every_label_lies_inside_the_picture() -> None:
    weights = [4.0, -0.01, -3.9, 0.02]
    display = EvidenceDisplay.from_explanation(_explanation(weights, ["x" * 60, "y", "z", "w"])).plot()
    canvas = display.figure_.canvas
    canvas.draw()
    frame = display.figure_.bbox
    for text in [*display.ax_.get_yticklabels(), *display.ax_.texts, display.ax_.title]:
        box = text.get_window_extent()
        assert frame.x0 <= box.x0 < box.x1 <= frame.x1
        assert frame.y0 <= box.y0 < box.y1 <= frame.y1


SIDES = [
    ("malignant tumour (operate)", "benign tumour (watchful waiting)"),
    ("relapse within twelve months after discharge", "no relapse"),
    ("no relapse within twelve months after discharge", "relapse within twelve months after discharge"),
    ("x" * 90 + "a" + "x" * 90, "x" * 90 + "b" + "x" * 90),
]


def _of_classes(target: str, against: str) -> EvidenceDisplay:
    given = _explanation([4.0, -3.9], ["x" * 60, "y"])
    return EvidenceDisplay.from_explanation(replace(given, target=np.array([target]), against=np.array([against])))


@pytest.mark.parametrize(("target", "against"), SIDES)
def test_title_and_captions_of_long_classes_lie_inside_the_picture_and_apart(target: str, against: str) -> None:
    display = _of_classes(target, against).plot()
    display.figure_.canvas.draw()
    captions = [text for text in display.ax_.texts if "for " in text.get_text()]
    boxes = [text.get_window_extent() for text in (*captions, display.ax_.title)]
    assert all(display.figure_.bbox.containsx(x) for box in boxes for x in box.intervalx)
    assert all(display.figure_.bbox.containsy(y) for box in boxes for y in box.intervaly)
    left, right, title = boxes
    assert left.x1 < right.x0
    assert Bbox.intersection(left, title) is None
    assert captions[0].get_text().removeprefix("◀ ") != captions[1].get_text().removesuffix(" ▶")


def test_classes_of_ordinary_length_are_whole_in_title_and_captions() -> None:
    display = _of_classes(*SIDES[0]).plot()
    said = " ".join([display.ax_.get_title(), *(text.get_text() for text in display.ax_.texts)])
    assert all(said.count(name) == 2 for name in SIDES[0])


def test_captions_in_given_axes_stay_apart() -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2)
    display = _of_classes(*SIDES[1]).plot(axes[1])
    figure.canvas.draw()
    left, right = (text.get_window_extent() for text in display.ax_.texts if "for " in text.get_text())
    assert left.x1 < right.x0


@pytest.mark.parametrize("most", [1, 3])
def test_a_long_feature_is_not_taken_for_another_whether_that_is_shown_or_not(most: int) -> None:
    names = tuple(f"how_often_in_the_last_four_weeks_did_you_feel_item_{i}_of_the_questionnaire" for i in (1, 2, 3))
    explanation = replace(_explanation([3.0, 2.0, 1.0]), features=names)
    bars = EvidenceDisplay.from_explanation(explanation, 0, most).bars()[1 : 1 + most]
    assert [f"…{i}_of" in label for i, (label, _, _) in enumerate(bars, 1)] == [True] * most


def test_infinite_and_undefined_weights_can_be_drawn() -> None:
    display = EvidenceDisplay.from_explanation(_explanation([1.0, -math.inf, math.nan])).plot()
    display.figure_.canvas.draw()
    assert all(math.isfinite(bar.get_width()) for bar in display.bars_)
    texts = [text.get_text() for text in display.ax_.texts]
    assert "-∞" in texts
    assert "undefined" in texts


def test_names_with_dollar_signs_are_no_mathematics() -> None:
    explanation = _explanation([1.0, 2.0], ["$\\frac$", "b$ and $c{"])
    display = EvidenceDisplay.from_explanation(explanation).plot()
    display.figure_.canvas.draw()
    labels = " ".join(label.get_text() for label in display.ax_.get_yticklabels())
    assert "frac" in labels
    assert "b" in labels


def test_from_estimator_explains_the_row_that_is_named() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = BayesNetClassifier("tan").fit(X, y)
    display = EvidenceDisplay.from_estimator(model, X, 60, target=2, against=1)
    assert (display.target, display.against) == (2, 1)
    logs = model.predict_log_proba(X.iloc[[60]])[0]
    assert display.log_odds == pytest.approx(logs[2] - logs[1])


def test_given_axes_are_drawn_into() -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    assert EvidenceDisplay.from_explanation(_explanation([1.0])).plot(ax).ax_ is ax


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("(-inf, 2.45]", "x ≤ 2.45"),
        ("(2.45, 5]", "2.45 < x ≤ 5"),
        ("(5, inf)", "x > 5"),
        ("(-inf, inf)", "x: any"),
        ("(-1.5e-05, 0.10880000000000001]", "-1.5e-05 < x ≤ 0.1088"),
        ("(1999.5, 2000.5]", "1999.5 < x ≤ 2000.5"),
        ("(12345.5, inf)", "x > 12345.5"),
        ("red", "x = red"),
        ("(a, b]", "x = (a, b]"),
        (3, "x = 3"),
        (None, "x = missing"),
    ],
)
def test_levels_are_said_the_way_people_say_them(value: object, said: str) -> None:
    assert statement("x", value) == said


def test_intervals_of_the_discretiser_are_recognised() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 30})
    y = np.array([0, 0, 1, 1] * 30)
    display = EvidenceDisplay.from_explanation(BayesNetClassifier("nb").fit(X, y).explain(X), 3)
    assert display.bars()[1][0] == "x > 2.5"


@pytest.mark.parametrize(
    ("chance", "said"),
    [
        (0.5, "50.0 %"),
        (1.0, "100.0 %"),
        (0.99999, "> 99.9 %"),
        (1e-9, "< 0.1 %"),
        (0.0, "0.0 %"),
        (math.nan, "undefined"),
    ],
)
def test_percentages_never_claim_certainty_that_is_not_there(chance: float, said: str) -> None:
    assert percent(chance) == said


def test_a_row_that_is_not_there_is_refused() -> None:
    with pytest.raises(IndexError, match="row=3 is not there: the explanation has 1 rows"):
        EvidenceDisplay.from_explanation(_explanation([1.0]), 3)
    with pytest.raises(ValueError, match="max_features=0"):
        EvidenceDisplay.from_explanation(_explanation([1.0]), 0, 0)


def test_a_classifier_that_explains_nothing_is_refused_in_a_sentence() -> None:
    X, y = pd.DataFrame({"a": ["p", "q"] * 5}), [0, 1] * 5
    with pytest.raises(TypeError, match="AODEClassifier explains no row; BayesNetClassifier does"):
        EvidenceDisplay.from_estimator(AODEClassifier().fit(X, y), X)
