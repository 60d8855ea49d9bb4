"""Heat map of how often each edge was learned from resampled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from marginbayes.estimators.stability import EdgeStrength, edge_strength
from marginbayes.graph.labels import shorten_all

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["EdgeStrengthDisplay"]

LONGEST = 200.0  # width of a name, in a font of 13
NUMBERED = 16  # with more variables there is no room for numbers in the cells
INK, EMPTY = "#3a3f4a", "#e4e6ea"


@dataclass(eq=False)
class EdgeStrengthDisplay:
    """Heat map of edge frequencies: a row for each parent, a column for each child, the class on top.

    The first row says how often each feature was kept, that is, had the class as parent. Make one with `from_strength`
    or `from_estimator`; `plot` draws it.

    Parameters
    ----------
    strength : EdgeStrength
        What `edge_strength` returned.
    max_features : int
        The features with the strongest edges between them are shown, this many at most.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of these axes.
    image_ : matplotlib AxesImage
        The cells.
    names_ : tuple of str
        The features shown, in the order of the table.
    """

    strength: EdgeStrength
    max_features: int = 30

    def __post_init__(self) -> None:
        if self.max_features < 1:
            raise ValueError(f"max_features={self.max_features} should be at least 1")

    @classmethod
    def from_strength(
        cls, strength: EdgeStrength, *, max_features: int = 30, ax: Axes | None = None
    ) -> EdgeStrengthDisplay:
        """The display, drawn, of what `edge_strength` returned."""
        return cls(strength, max_features).plot(ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_boot: int = 100,
        random_state: int | None = None,
        n_jobs: int | None = None,
        sample_weight: Any = None,
        max_features: int = 30,
        ax: Axes | None = None,
    ) -> EdgeStrengthDisplay:
        """The display, drawn, after learning from `n_boot` resamples; see `edge_strength`."""
        found = edge_strength(estimator, X, y, n_boot, random_state, n_jobs, sample_weight)
        return cls.from_strength(found, max_features=max_features, ax=ax)

    def plot(self, ax: Axes | None = None) -> EdgeStrengthDisplay:
        """This display, after drawing it into these axes or into a new figure of fitting size."""
        import matplotlib.pyplot as plt

        shown = self._shown()
        self.names_ = tuple(self.strength.names[i] for i in shown)
        table = self.strength.directed[np.ix_([0, *shown], shown)]
        if ax is None:
            side = min(2.2 + 0.34 * len(shown), 16.0)
            _, ax = plt.subplots(figsize=(side + 1.2, side), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        # No feature is its own parent: those cells stay empty.
        own = np.eye(len(shown) + 1, len(shown), k=-1, dtype=bool)
        self.image_ = ax.imshow(np.where(own, np.nan, table), cmap="Blues", vmin=0.0, vmax=1.0)
        self._label(ax)
        if len(shown) <= NUMBERED:
            self._write_numbers(ax, table, own)
        bar = ax.figure.colorbar(self.image_, ax=ax, shrink=0.8, format="{x:.0%}")
        bar.set_label(f"share of {self.strength.n_boot} resamples", fontsize="small")
        bar.ax.tick_params(labelsize="small")
        bar.outline.set_visible(False)
        return self

    def _shown(self) -> list[int]:
        """Indices of the features with the strongest edges, ascending."""
        among = self.strength.undirected[1:, 1:]
        best = among.max(axis=0, initial=0.0)
        return sorted(int(i) + 1 for i in np.argsort(-best, kind="stable")[: self.max_features])

    def _label(self, ax: Axes) -> None:
        label = dict(zip(self.strength.names, shorten_all(self.strength.names, LONGEST), strict=True))
        names = [label[name] for name in self.names_]
        # A dollar sign in a name is not mathematics.
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
        ax.set_yticks(range(len(names) + 1), [label[self.strength.names[0]], *names], parse_math=False)
        ax.get_yticklabels()[0].set_fontweight("bold")
        ax.tick_params(length=0, labelsize="small")
        ax.set_xlabel("child", fontsize="small")
        ax.set_ylabel("parent", fontsize="small")
        hidden = len(self.strength.names) - 1 - len(names)
        title = f"how often each edge was learned{f' ({hidden} features not shown)' if hidden else ''}"
        ax.set_title(title, fontsize="medium")
        ax.axhline(0.5, color=INK, linewidth=0.9)
        ax.set_facecolor(EMPTY)
        ax.spines[:].set_visible(False)

    def _write_numbers(self, ax: Axes, table: Any, own: Any) -> None:
        for (i, j), share in np.ndenumerate(table):
            if share > 0 and not own[i, j]:
                colour = "white" if share > 0.6 else INK
                ax.text(j, i, f"{100 * share:.0f}", ha="center", va="center", color=colour, fontsize="x-small")
