"""The matplotlib display: same layout as the SVG, everything drawn, labels inside their boxes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from marginbayes.graph.dag import Dag
from marginbayes.graph.layout import lay_out
from marginbayes.plotting import NetworkDisplay

NAMES = [
    "species",
    "petal length",
    "petal width",
    "sepal length",
    "sepal width",
    "a_long_name_of_a_column_to_cut",
]
TAN = Dag(NAMES, [[], [0], [0, 1], [0, 1], [0, 3], [0, 3]])


@dataclass(frozen=True)
class FakeNetwork:
    dag: Dag = TAN

    def edge_information(self) -> dict[tuple[str, str], float]:
        return {edge: 0.05 * k for k, edge in enumerate(self.dag.edges)}


class FakeClassifier(BaseEstimator):
    """A classifier of one network."""

    def fit(self) -> FakeClassifier:
        self.network_ = FakeNetwork()
        return self


class Average(BaseEstimator):
    """A classifier of many networks."""

    def fit(self) -> Average:
        self.networks_ = [FakeNetwork()]
        return self


def patches(display: NetworkDisplay, kind: str) -> list[Any]:
    return [patch for patch in display.ax_.patches if type(patch).__name__ == kind]


def test_everything_is_drawn_once() -> None:
    display = NetworkDisplay.from_network(FakeNetwork())
    assert len(patches(display, "FancyBboxPatch")) == len(NAMES)
    assert len(patches(display, "Polygon")) == len(TAN.edges)
    rails, samples = 1, 3
    assert len(patches(display, "PathPatch")) == len(TAN.edges) + rails + samples
    assert set(display.edges_) == set(TAN.edges)
    assert list(display.boxes_) == NAMES


def test_every_label_is_written() -> None:
    display = NetworkDisplay(TAN).plot()
    assert [text.get_text() for text in display.ax_.texts] == list(lay_out(TAN).labels)


def test_boxes_stand_where_the_layout_puts_them() -> None:
    display = NetworkDisplay(TAN).plot()
    for name, box in zip(NAMES, lay_out(TAN).boxes, strict=True):
        patch = display.boxes_[name]
        assert (patch.get_x(), patch.get_y()) == (box.left, box.top)
        assert (patch.get_width(), patch.get_height()) == (box.width, box.height)


def test_edge_widths_grow_with_the_information() -> None:
    display = NetworkDisplay.from_network(FakeNetwork())
    widths = [display.edges_[edge].get_linewidth() for edge in TAN.edges]
    assert widths == sorted(widths)
    assert widths[-1] > 3 * widths[0]


def test_without_information_all_edges_are_alike_and_there_is_no_legend() -> None:
    display = NetworkDisplay.from_network(FakeNetwork(), edge_width=None)
    assert len({line.get_linewidth() for line in display.edges_.values()}) == 1
    assert len(display.ax_.texts) == len(NAMES)


def test_edges_of_the_class_can_be_left_out() -> None:
    display = NetworkDisplay.from_network(FakeNetwork(), class_edges=False)
    assert set(display.edges_) == {edge for edge in TAN.edges if edge[0] != "species"}


@pytest.mark.parametrize("size", [None, (4.0, 3.0), (12.0, 3.0)])
def test_every_label_fits_into_its_box(size: tuple[float, float] | None) -> None:
    import matplotlib.pyplot as plt

    ax = None if size is None else plt.subplots(figsize=size)[1]
    display = NetworkDisplay(TAN).plot(ax)
    display.figure_.canvas.draw()
    for text, patch in zip(display.ax_.texts, display.boxes_.values(), strict=True):
        label, box = text.get_window_extent(), patch.get_window_extent()
        assert box.x0 < label.x0
        assert label.x1 < box.x1
        assert box.y0 < label.y0
        assert label.y1 < box.y1


def test_given_axes_are_used() -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2)
    display = NetworkDisplay.from_network(FakeNetwork(), ax=axes[1])
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert not axes[0].patches


def test_a_new_figure_has_the_shape_of_the_picture() -> None:
    layout = lay_out(TAN)
    width, height = NetworkDisplay(TAN).plot().figure_.get_size_inches()
    assert width / height == pytest.approx(layout.width / layout.height)


def test_a_huge_network_gets_a_figure_of_bearable_size() -> None:
    chain = Dag([f"x{i}" for i in range(90)], [[], *([i] for i in range(89))])
    assert max(NetworkDisplay(chain).plot().figure_.get_size_inches()) <= 24


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_the_figure_can_be_saved(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"network.{suffix}"
    NetworkDisplay.from_estimator(FakeClassifier().fit()).figure_.savefig(path)
    assert path.stat().st_size > 1000


@pytest.mark.parametrize("name", ["$x_1$", "$\\frac{$", "a\\b", "100 %", ""])
def test_names_are_not_read_as_formulas(name: str) -> None:
    display = NetworkDisplay(Dag.naive(["class", name])).plot()
    display.figure_.canvas.draw()
    assert display.ax_.texts[1].get_text() == name


@pytest.mark.parametrize("dag", [Dag(["one"], [[]]), Dag(["a", "b"], [[], []]), Dag((), ())], ids=repr)
def test_graphs_without_edges_are_drawn(dag: Dag) -> None:
    display = NetworkDisplay(dag).plot()
    display.figure_.canvas.draw()
    assert len(display.boxes_) == len(dag.names)


def test_the_ink_follows_the_style() -> None:
    with mpl.rc_context({"text.color": "white", "figure.facecolor": "black"}):
        display = NetworkDisplay(TAN).plot()
    feature_edge = display.edges_["petal length", "petal width"].get_edgecolor()
    class_edge = display.edges_["species", "petal length"].get_edgecolor()
    assert min(feature_edge[:3]) > 0.7
    assert sum(class_edge[:3]) < sum(feature_edge[:3])


def test_a_display_can_be_drawn_again() -> None:
    display = NetworkDisplay(TAN).plot()
    first = display.ax_
    assert display.plot() is display
    assert display.ax_ is not first


def test_an_unfitted_classifier_is_refused() -> None:
    with pytest.raises(NotFittedError):
        NetworkDisplay.from_estimator(Average())


def test_a_classifier_without_one_network_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"Average has no network_"):
        NetworkDisplay.from_estimator(Average().fit())


def test_an_unknown_edge_width_is_refused_by_value() -> None:
    with pytest.raises(ValueError, match="'thickness'"):
        NetworkDisplay.from_network(FakeNetwork(), edge_width="thickness")  # type: ignore[arg-type]


def test_without_matplotlib_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "marginbayes\[plots\]"'):
        NetworkDisplay(TAN).plot()


def test_importing_the_displays_does_not_import_matplotlib() -> None:
    import subprocess

    code = "import sys, marginbayes.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_fitted_classifier_is_drawn_with_its_information() -> None:
    from sklearn.datasets import load_iris

    from marginbayes import BayesNetClassifier

    data = load_iris(as_frame=True)
    classifier = BayesNetClassifier("tan").fit(data.data, data.target)
    display = NetworkDisplay.from_estimator(classifier)
    information = classifier.network_.edge_information()
    assert set(display.edges_) == set(information) == set(classifier.network_.dag.edges)
    widest = max(display.edges_, key=lambda edge: display.edges_[edge].get_linewidth())
    assert information[widest] == max(information.values())
