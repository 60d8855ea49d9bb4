"""The any-time curve: what was found and what was proved, against time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marginbayes import BayesNetClassifier, Dag
from marginbayes.plotting.bound import BoundDisplay
from marginbayes.solvers import Certificate
from marginbayes.structure import ExactScore, StructureResult
from tests.oracles.structure import random_rows

TRACE = [(0.1, 3.0, np.inf), (0.2, 2.0, 9.0), (0.5, 4.0, 5.0), (2.0, 4.0, 4.5)]
FOUND = Certificate("example", "max", 4.0, 4.5, "time limit", 2.0, TRACE)


def test_lines_are_the_best_so_far_and_the_best_bound_so_far() -> None:
    display = BoundDisplay({"run": FOUND}).plot()
    assert list(display.lines_["run"].get_data()[1]) == [3.0, 3.0, 4.0, 4.0]
    seconds, bounds = display.bounds_["run"].get_data()
    assert list(bounds) == [9.0, 5.0, 4.5]
    assert list(seconds) == [0.2, 0.5, 2.0]
    np.testing.assert_allclose(display.gaps("run")[1:], [2.0, 0.25, 0.125])


def test_a_minimised_objective_falls_and_its_bound_rises() -> None:
    found = Certificate(
        "example", "min", 4.0, 3.5, "time limit", 1.0, [(0.1, 6.0, 1.0), (0.2, 7.0, 0.5), (1.0, 4.0, 3.5)]
    )
    display = BoundDisplay({"run": found}).plot()
    assert list(display.lines_["run"].get_data()[1]) == [6.0, 6.0, 4.0]
    assert list(display.bounds_["run"].get_data()[1]) == [1.0, 1.0, 3.5]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_the_scale_of_time_is_the_one_asked_for(scale: str, tmp_path: Path) -> None:
    display = BoundDisplay.from_certificate(FOUND, scale=scale)
    assert display.ax_.get_xscale() == scale
    assert display.ax_.get_xlabel() == "seconds"
    display.figure_.savefig(tmp_path / "bound.svg")
    assert (tmp_path / "bound.svg").stat().st_size > 1000


def test_the_legend_tells_status_objective_bound_and_gap() -> None:
    display = BoundDisplay.from_certificates({"$a$": FOUND})
    display.figure_.canvas.draw()
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts == ["$a$: 4, time limit", "bound: 4.5, gap 0.12"]


def test_results_of_learners_and_fitted_classifiers_are_drawn() -> None:
    from sklearn.datasets import load_iris

    result = ExactScore("bic", max_parents=2, method="tree").learn(*random_rows(0, features=4))
    assert BoundDisplay.from_result(result).lines_["objective"].get_data()[1][-1] == result.score
    data = load_iris(as_frame=True)
    classifier = BayesNetClassifier(ExactScore("mdl")).fit(data.data, data.target)
    assert list(BoundDisplay.from_estimator(classifier).lines_) == ["ExactScore"]
    named = BayesNetClassifier("exact-mdl").fit(data.data, data.target)
    assert list(BoundDisplay.from_estimator(named).lines_) == ["exact-mdl"]


def test_given_axes_are_used() -> None:
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2)
    assert BoundDisplay({"a": FOUND}).plot(axes[1]).ax_ is axes[1]
    assert not axes[0].lines


def test_what_cannot_be_drawn_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="scale='days' is not known; choose one of 'linear', 'log'"):
        BoundDisplay({"a": FOUND}, "days")
    with pytest.raises(ValueError, match="has no certificate: its learner proves nothing"):
        BoundDisplay.from_result(StructureResult(Dag.naive(["y", "a"])))
    bare = Certificate("example", "max", 1.0, 1.0, "optimal", 0.0)
    with pytest.raises(ValueError, match="'objective' has no trace"):
        BoundDisplay.from_certificate(bare)
    with pytest.raises(ValueError, match="draw them apart"):
        BoundDisplay({"a": FOUND, "b": Certificate("example", "min", 1.0, 1.0, "optimal", 0.0, [(0.0, 1.0, 1.0)])})
    with pytest.raises(TypeError, match="BayesNetClassifier has no structure_result_; give a fitted"):
        BoundDisplay.from_estimator(BayesNetClassifier())
