"""The score path: what stands on the axes, and the best score so far of searches that also go down."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from marginbayes import BayesNetClassifier, Dag
from marginbayes.plotting.path import ScorePathDisplay
from marginbayes.structure import Greedy, Step, StructureResult
from marginbayes.structure.localsearch import LocalSearch
from tests.oracles.structure import random_rows

UP = [Step("add", "a", "b", 0.5, 0.1), Step("add", "a", "c", 0.7, 0.4), Step("add", "b", "d", 0.8, 0.5)]
DOWN = [Step("add", "a", "b", 0.5, 0.1), Step("drop", None, "c", 0.3, 0.2), Step("return", None, None, 0.5, 0.3)]


@pytest.mark.parametrize(("x", "places"), [("changes", [1, 2, 3]), ("seconds", [0.1, 0.4, 0.5])])
def test_the_line_is_the_score_against_changes_or_seconds(x: str, places: list[float]) -> None:
    display = ScorePathDisplay({"greedy": UP}, x).plot()
    at, scores = display.lines_["greedy"].get_data()
    assert list(at) == places
    assert list(scores) == [0.5, 0.7, 0.8]
    assert display.ax_.get_xlabel() == x


def test_a_search_that_goes_down_has_a_second_line() -> None:
    display = ScorePathDisplay({"up": UP, "down": DOWN}).plot()
    assert list(display.lines_["down"].get_data()[1]) == [0.5, 0.5, 0.5]
    drawn = [list(line.get_data()[1]) for line in display.ax_.lines]
    assert [0.5, 0.3, 0.5] in drawn
    assert len(drawn) == 2 + 1 + 2  # a line and a dot for each, and one more


def test_a_search_begins_at_the_score_before_its_first_change() -> None:
    dag = Dag(("a",), ((),))
    results = {"told": StructureResult(dag, path=tuple(UP), start=0.2), "not": StructureResult(dag, path=tuple(UP))}
    for x, places in (("changes", [0, 1, 2, 3]), ("seconds", [0.0, 0.1, 0.4, 0.5])):
        display = ScorePathDisplay.from_results(results, x=x)
        assert [list(values) for values in display.lines_["told"].get_data()] == [places, [0.2, 0.5, 0.7, 0.8]]
        assert [list(values) for values in display.lines_["not"].get_data()] == [places[1:], [0.5, 0.7, 0.8]]


def test_the_legend_names_each_search_and_its_best_score() -> None:
    display = ScorePathDisplay({"$greedy$": UP, "other": DOWN}).plot()
    display.figure_.canvas.draw()
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["$greedy$: 0.8", "other: 0.5"]


def test_results_of_learners_are_drawn(tmp_path: Path) -> None:
    schema, rows = random_rows(0)
    results = {
        "greedy": Greedy("cl").learn(schema, rows),
        "iterated": LocalSearch("cl", random_state=0, max_iter=3).learn(schema, rows),
    }
    display = ScorePathDisplay.from_results(results, x="seconds")
    for label, result in results.items():
        assert display.best(label)[-1] == result.score
        assert (np.diff(display.places(label)) >= 0).all()
    display.figure_.savefig(tmp_path / "path.svg")
    assert (tmp_path / "path.svg").stat().st_size > 1000
    assert list(ScorePathDisplay.from_result(results["greedy"]).lines_) == ["score"]


def test_a_fitted_classifier_shows_how_its_structure_was_found() -> None:
    from sklearn.datasets import load_iris

    data = load_iris(as_frame=True)
    classifier = BayesNetClassifier(Greedy("cl")).fit(data.data, data.target)
    display = ScorePathDisplay.from_estimator(classifier)
    found = classifier.structure_result_
    assert list(display.scores("Greedy")) == [found.start, *(step.score for step in found.path)]


def test_given_axes_are_used() -> None:
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, 2)
    display = ScorePathDisplay({"a": UP}).plot(axes[1])
    assert display.ax_ is axes[1]
    assert not axes[0].lines


def test_what_cannot_be_drawn_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="x='hours' is not known; choose one of 'changes', 'seconds'"):
        ScorePathDisplay({"a": UP}, "hours")
    with pytest.raises(ValueError, match="the path of 'score' is empty"):
        ScorePathDisplay.from_result(StructureResult(Dag.naive(["y", "a"])))
    with pytest.raises(TypeError, match="BayesNetClassifier has no structure_result_; give a fitted"):
        ScorePathDisplay.from_estimator(BayesNetClassifier())


def test_a_structure_given_by_name_is_called_so_in_the_legend() -> None:
    from sklearn.datasets import load_iris

    data = load_iris(as_frame=True)
    classifier = BayesNetClassifier("tan-cr").fit(data.data, data.target)
    assert list(ScorePathDisplay.from_estimator(classifier).lines_) == ["tan-cr"]


def test_a_path_of_one_step_is_a_dot_in_the_legend_too() -> None:
    (handle,) = ScorePathDisplay({"short": UP[:1]}).plot().ax_.get_legend().legend_handles
    assert (handle.get_linestyle(), handle.get_marker()) == ("None", "o")
    (handle,) = ScorePathDisplay({"long": UP}).plot().ax_.get_legend().legend_handles
    assert (handle.get_linestyle(), handle.get_marker()) == ("-", "None")


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_changes_are_counted_in_whole_numbers(steps: int) -> None:
    ax = ScorePathDisplay({"search": UP[:steps]}).plot().ax_
    low, high = ax.get_xlim()
    shown = [tick for tick in ax.get_xticks() if low <= tick <= high]
    assert shown
    assert all(tick == round(tick) for tick in shown)
