"""The heat map of edge strengths: every cell, every name, the numbers where there is room."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marginbayes import BayesNetClassifier
from marginbayes.estimators.stability import EdgeStrength
from marginbayes.plotting.strength import EdgeStrengthDisplay


def strength(d: int = 4, seed: int = 0) -> EdgeStrength:
    rng = np.random.default_rng(seed)
    directed = np.triu(rng.random((d + 1, d + 1)), 1)
    directed[0, 1:] = 1.0
    return EdgeStrength(("class", *(f"x{i}" for i in range(1, d + 1))), directed, 20)


def test_every_cell_is_the_frequency_of_its_edge() -> None:
    found = strength()
    display = EdgeStrengthDisplay.from_strength(found)
    cells = np.ma.filled(display.image_.get_array(), np.nan)
    assert cells.shape == (5, 4)
    for row, parent in enumerate(found.names):
        for column, child in enumerate(found.names[1:]):
            assert np.isnan(cells[row, column]) if parent == child else cells[row, column] == found[parent, child]
    assert display.image_.get_clim() == (0.0, 1.0)


def test_parents_stand_at_the_side_with_the_class_on_top_and_children_below() -> None:
    ax = EdgeStrengthDisplay(strength()).plot().ax_
    assert [t.get_text() for t in ax.get_yticklabels()] == ["class", "x1", "x2", "x3", "x4"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x1", "x2", "x3", "x4"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("child", "parent")


def test_numbers_are_percentages_of_edges_that_occurred() -> None:
    found = strength()
    texts = [t.get_text() for t in EdgeStrengthDisplay(found).plot().ax_.texts]
    assert texts == [f"{100 * f:.0f}" for f in found.directed[:, 1:].ravel() if f > 0]
    assert not EdgeStrengthDisplay(strength(20)).plot().ax_.texts


def test_of_many_features_those_with_the_strongest_edges_are_shown() -> None:
    directed = np.zeros((31, 31))
    directed[0, 1:], directed[7, 3], directed[20, 25] = 1.0, 0.9, 0.8
    found = EdgeStrength(("y", *(f"x{i}" for i in range(1, 31))), directed, 10)
    display = EdgeStrengthDisplay(found, max_features=4).plot()
    assert display.names_ == ("x3", "x7", "x20", "x25")
    assert "26 features not shown" in display.ax_.get_title()


@pytest.mark.parametrize("name", ["$x_1$", "$\\frac{$", "100 %", "", "a name that is much too long for one axis"])
def test_names_are_not_read_as_formulas_and_long_ones_are_cut(name: str) -> None:
    display = EdgeStrengthDisplay(EdgeStrength(("class", name), np.array([[0.0, 1.0], [0.0, 0.0]]), 5)).plot()
    display.figure_.canvas.draw()
    shown = display.ax_.get_xticklabels()[0].get_text()
    assert shown == name if len(name) <= 24 else shown.startswith("a name") and shown.endswith("axis")


def test_features_that_differ_anywhere_have_different_labels() -> None:
    middle = [f"blood_pressure_{part}_mean_first_24_hours" for part in ("systolic", "diastolic")]
    late = [f"temperature_of_the_patient_on_day_{day}" for day in (1, 2)]
    names = ("a class whose name is longer than others", *middle, *late)
    display = EdgeStrengthDisplay(EdgeStrength(names, np.zeros((5, 5)), 5)).plot()
    assert len({text.get_text() for text in display.ax_.get_yticklabels()}) == 5
    assert len({text.get_text() for text in display.ax_.get_xticklabels()}) == 4


def test_a_feature_shown_is_not_taken_for_one_that_is_not() -> None:
    names = ("class", *(f"how_often_did_you_feel_item_{i}_in_the_last_four_weeks" for i in range(1, 5)))
    display = EdgeStrengthDisplay(EdgeStrength(names, np.zeros((5, 5)), 5), max_features=1).plot()
    assert "1" in display.ax_.get_xticklabels()[0].get_text()


def test_given_axes_are_used() -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2)
    display = EdgeStrengthDisplay.from_strength(strength(), ax=axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert not axes[0].images


def test_a_classifier_is_bootstrapped_and_drawn(tmp_path: Path) -> None:
    from sklearn.datasets import load_iris

    data = load_iris(as_frame=True)
    display = EdgeStrengthDisplay.from_estimator(
        BayesNetClassifier("tan"), data.data, data.target, n_boot=3, random_state=0
    )
    assert display.strength.n_boot == 3
    assert display.names_ == tuple(data.data.columns)
    display.figure_.savefig(tmp_path / "strength.png")
    assert (tmp_path / "strength.png").stat().st_size > 1000


def test_no_features_at_all_are_refused_by_value() -> None:
    with pytest.raises(ValueError, match="max_features=0 should be at least 1"):
        EdgeStrengthDisplay(strength(), max_features=0)
