"""The way of a search: its score after every change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes.plotting.axes import dress, new_axes, title_of
from marginbayes.structure.base import Step, StructureResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ScorePathDisplay"]

AXES = {"changes": "changes", "seconds": "seconds"}
START = "start"  # what stands for a change where there was none yet


@dataclass(eq=False)
class ScorePathDisplay:
    """Score of one or several searches against the number of changes or against time.

    Where a result tells the score before the first change, it stands at change 0. A search that also goes down has a
    faint line for where it was and a strong one for the best it had seen. A dot marks where the best was found. Make
    one with `from_result`, `from_results` or `from_estimator`; `plot` draws it.

    Parameters
    ----------
    paths : mapping from label to sequence of Step
        What to draw; the labels are for the legend.
    x : {"changes", "seconds"}
        Number of changes made, which for learners that only add edges is the number of edges added; or time.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of these axes.
    lines_ : dict from label to matplotlib line
        The best score so far of each search.

    Examples
    --------
    >>> from marginbayes.structure import Step
    >>> path = [Step("add", "a", "b", 0.90, 0.01), Step("add", "a", "c", 0.93, 0.02)]
    >>> ScorePathDisplay({"greedy": path}).best("greedy")
    array([0.9 , 0.93])
    """

    paths: Mapping[str, Sequence[Step]]
    x: str = "changes"

    def __post_init__(self) -> None:
        if self.x not in AXES:
            raise ValueError(f"x={self.x!r} is not known; choose one of {', '.join(map(repr, AXES))}")
        for label, path in self.paths.items():
            if not path:
                raise ValueError(f"the path of {label!r} is empty: its learner does not search, or made no change")

    @classmethod
    def from_result(
        cls, result: StructureResult, *, label: str = "score", x: str = "changes", ax: Axes | None = None
    ) -> ScorePathDisplay:
        """The display, drawn, of what one structure learner returned."""
        return cls.from_results({label: result}, x=x, ax=ax)

    @classmethod
    def from_results(
        cls, results: Mapping[str, StructureResult], *, x: str = "changes", ax: Axes | None = None
    ) -> ScorePathDisplay:
        """The display, drawn, of several learners that share a score, by label."""
        return cls({label: _with_start(result) for label, result in results.items()}, x).plot(ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, x: str = "changes", ax: Axes | None = None) -> ScorePathDisplay:
        """The display, drawn, of how a fitted classifier's structure was found."""
        if not hasattr(estimator, "structure_result_"):
            raise TypeError(f"{type(estimator).__name__} has no structure_result_; give a fitted BayesNetClassifier")
        return cls.from_result(estimator.structure_result_, label=title_of(estimator.structure), x=x, ax=ax)

    def places(self, label: str) -> Any:
        """Where the steps of a search stand on the x axis."""
        path = self.paths[label]
        if self.x == "seconds":
            return np.array([step.seconds for step in path])
        return np.arange(len(path)) + (path[0].change != START)

    def scores(self, label: str) -> Any:
        """Score after each step of a search."""
        return np.array([step.score for step in self.paths[label]])

    def best(self, label: str) -> Any:
        """Best score up to each step of a search."""
        return np.maximum.accumulate(self.scores(label))

    def plot(self, ax: Axes | None = None) -> ScorePathDisplay:
        """This display, after drawing it into these axes or into a new figure."""
        ax = new_axes(ax)
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_ = {label: self._draw(ax, label, f"C{i % 10}") for i, label in enumerate(self.paths)}
        dress(ax, AXES[self.x], "score on the training rows", legend="lower right")
        if self.x == "changes":
            ax.locator_params(axis="x", integer=True, min_n_ticks=1)
        return self

    def _draw(self, ax: Axes, label: str, colour: str) -> Any:
        at, scores, best = self.places(label), self.scores(label), self.best(label)
        if (scores < best).any():
            ax.plot(at, scores, color=colour, alpha=0.3, linewidth=0.8)
        told = f"{label}: {best[-1]:.5g}"
        # A search of one step is a dot, and so it is in the legend.
        look = {"linewidth": 1.8} if len(at) > 1 else {"linestyle": "", "marker": "o", "markersize": 5}
        (line,) = ax.plot(at, best, color=colour, drawstyle="steps-post", label=told, **look)
        top = int(scores.argmax())
        ax.plot(at[top], scores[top], "o", color=colour, markersize=5)
        return line


def _with_start(result: StructureResult) -> tuple[Step, ...]:
    """The path of a search, after where it began if that is known."""
    if result.start is None or not result.path:
        return result.path
    return Step(START, None, None, result.start, 0.0), *result.path
