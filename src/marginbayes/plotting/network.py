"""Pictures of networks in matplotlib, with the same layout as the SVG ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, Protocol

from sklearn.utils.validation import check_is_fitted

from marginbayes.graph.boxes import MARGIN, Layout, Point
from marginbayes.graph.dag import Dag
from marginbayes.graph.labels import FONT
from marginbayes.graph.layout import lay_out
from marginbayes.graph.svg import (
    ACCENT,
    FAINT,
    FAINTNESS,
    LEGEND,
    SAMPLE,
    SMALL,
    STRENGTH,
    arrow,
    check_widths,
    legend_samples,
    line_width,
)

__all__ = ["NetworkDisplay"]

FOOT = 26.0  # height of the legend
LARGEST = 24.0  # inches; a larger picture is scaled down

EdgeWidth = Literal["information"] | None


class _HasGraph(Protocol):
    """What is drawn of a network."""

    @property
    def dag(self) -> Dag: ...

    def edge_information(self) -> Mapping[tuple[str, str], float]: ...


class NetworkDisplay:
    """Drawing of a network: the class on top, edges as wide as the information they carry.

    Use `from_estimator` or `from_network`; the constructor takes what they compute.

    Parameters
    ----------
    dag : Dag
        The graph; its first variable is the class.
    information : mapping from (parent, child) to float, optional
        Nats that each edge carries. Without it all edges have the same width.
    class_edges : bool
        Whether to draw the edges that leave the class.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        Where the network was drawn.
    figure_ : matplotlib.figure.Figure
        The figure around it.
    boxes_ : dict from name to matplotlib patch
        The box of each variable.
    edges_ : dict from (parent, child) to matplotlib patch
        The line of each edge that was drawn.

    Examples
    --------
    >>> from marginbayes.graph import Dag
    >>> display = NetworkDisplay(Dag.naive(["class", "a", "b"])).plot()  # doctest: +SKIP
    >>> display.figure_.savefig("network.svg")  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any
    boxes_: dict[str, Any]
    edges_: dict[tuple[str, str], Any]

    def __init__(
        self,
        dag: Dag,
        *,
        information: Mapping[tuple[str, str], float] | None = None,
        class_edges: bool = True,
    ) -> None:
        self.dag = dag
        self.information = information
        self.class_edges = class_edges

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Any = None,
        edge_width: EdgeWidth = "information",
        class_edges: bool = True,
    ) -> NetworkDisplay:
        """Display of the network of a fitted classifier.

        Parameters
        ----------
        estimator : BayesNetClassifier
            Fitted; anything with a `network_`.
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure of fitting size by default.
        edge_width : {"information"} or None
            Whether an edge is as wide as its information, or all are thin.
        class_edges : bool
            Whether to draw the edges that leave the class.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "network_"):
            raise TypeError(
                f"{type(estimator).__name__} has no network_ to draw; give a classifier with one network, "
                "such as BayesNetClassifier"
            )
        return cls.from_network(estimator.network_, ax=ax, edge_width=edge_width, class_edges=class_edges)

    @classmethod
    def from_network(
        cls,
        network: _HasGraph,
        *,
        ax: Any = None,
        edge_width: EdgeWidth = "information",
        class_edges: bool = True,
    ) -> NetworkDisplay:
        """Display of a network; parameters as for `from_estimator`."""
        if edge_width not in ("information", None):
            raise ValueError(f"edge_width is {edge_width!r}; give 'information' or None")
        information = network.edge_information() if edge_width else None
        return cls(network.dag, information=information, class_edges=class_edges).plot(ax)

    def plot(self, ax: Any = None) -> NetworkDisplay:
        """The display itself, drawn into these axes or into a new figure of fitting size."""
        _require_matplotlib()
        information = check_widths(self.dag, self.information)
        layout, most = lay_out(self.dag), max(information.values(), default=0.0)
        height = layout.height + (FOOT if most else 0.0)
        width = max(layout.width, legend_samples(most)[1])
        self.ax_ = _new_axes(width, height) if ax is None else ax
        self.figure_ = self.ax_.figure
        pen = _Pen(self.ax_, width, height, (width - layout.width) / 2)
        self.edges_ = self._draw_edges(pen, layout, information, most)
        self.boxes_ = self._draw_boxes(pen, layout)
        if most:
            pen.legend(layout.height, most)
        return self

    def _draw_edges(
        self, pen: _Pen, layout: Layout, information: Mapping[tuple[int, int], float], most: float
    ) -> dict[tuple[str, str], Any]:
        drawn = {}
        if self.class_edges and layout.rails:
            pen.curves(layout.rails, 1.0, faint=True)
        for route in layout.routes:
            faint = route.parent == 0
            if self.class_edges or not faint:
                wide = line_width(information.get((route.parent, route.child)), most)
                line, corners = arrow(route, wide)
                edge = (self.dag.names[route.parent], self.dag.names[route.child])
                drawn[edge] = pen.curves([line], wide, faint)
                pen.head(corners, faint)
        return drawn

    def _draw_boxes(self, pen: _Pen, layout: Layout) -> dict[str, Any]:
        drawn = {}
        for i, (name, label, box) in enumerate(zip(self.dag.names, layout.labels, layout.boxes, strict=True)):
            lone = not self.dag.parents[i] and not self.dag.children[i]
            drawn[name] = pen.box((box.left, box.top), (box.width, box.height), filled=i == 0, dashed=lone)
            pen.text((box.x, box.y), label, FONT, bold=i == 0)
        return drawn


class _Pen:
    """Draws in pixels of the layout, whatever the size of the axes."""

    def __init__(self, ax: Any, width: float, height: float, shift: float) -> None:
        from matplotlib import rcParams

        ax.set(xlim=(-shift, width - shift), ylim=(height, 0.0), aspect="equal")
        ax.set_axis_off()
        ax.apply_aspect()
        self.ax, self.ink = ax, rcParams["text.color"]
        paper = rcParams["figure.facecolor"]
        self.faint = _blend(FAINT, paper, FAINTNESS)
        self.strong = _blend(self.ink, paper, STRENGTH)
        inches = ax.get_window_extent().width / ax.figure.dpi
        self.points = 72.0 * inches / width  # per pixel of the layout

    def curves(self, lines: Iterable[Sequence[Point]], width: float, faint: bool) -> Any:
        """One patch along all lines."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        lines = list(lines)
        codes = list(chain.from_iterable([Path.MOVETO, *[Path.CURVE4] * (len(line) - 1)] for line in lines))
        path = Path([point for line in lines for point in line], codes)
        colour = self.faint if faint else self.strong
        patch = PathPatch(path, fill=False, edgecolor=colour, linewidth=width * self.points, capstyle="butt")
        return self._add(patch, 1 if faint else 2)

    def head(self, corners: Sequence[Point], faint: bool) -> None:
        """Head of an arrow."""
        from matplotlib.patches import Polygon

        colour = self.faint if faint else self.strong
        self._add(Polygon(corners, closed=True, linewidth=0, facecolor=colour), 1 if faint else 2)

    def box(self, corner: Point, size: Point, filled: bool, dashed: bool) -> Any:
        """Box with round corners."""
        from matplotlib.colors import to_rgba
        from matplotlib.patches import FancyBboxPatch

        look = {"facecolor": ACCENT, "edgecolor": ACCENT} if filled else {}
        plain = {"facecolor": to_rgba(self.ink, 0.05), "edgecolor": to_rgba(self.ink, 0.5)}
        style = "round,pad=0,rounding_size=6"
        dashes = (0, (3, 3)) if dashed and not filled else "solid"
        patch = FancyBboxPatch(
            corner, *size, boxstyle=style, linewidth=self.points, linestyle=dashes, **(look or plain)
        )
        return self._add(patch, 3)

    def text(self, at: Point, text: str, size: float, bold: bool = False, align: str = "center") -> None:
        """Text in the middle of a box, or from a point to the right."""
        self.ax.text(
            *at,
            text,
            fontsize=size * self.points,
            ha=align,
            va="center_baseline" if align == "left" else "center",
            weight="bold" if bold else "normal",
            color="white" if bold else self.ink,
            zorder=4,
            parse_math=False,
        )

    def legend(self, top: float, most: float) -> None:
        """A sample line for each of three round values."""
        left, y = self.ax.get_xlim()[0], top + 6.0
        self.text((left + MARGIN, y), LEGEND, SMALL, align="left")
        for offset, value in legend_samples(most)[0]:
            x = left + offset
            line = ((x, y), (x, y), (x + SAMPLE, y), (x + SAMPLE, y))
            self.curves([line], line_width(value, most), faint=False)
            self.text((x + SAMPLE + 5.0, y), f"{value:g}", SMALL, align="left")

    def _add(self, patch: Any, zorder: int) -> Any:
        patch.set_zorder(zorder)
        return self.ax.add_patch(patch)


def _blend(colour: Any, paper: Any, share: float) -> tuple[float, ...]:
    """An opaque colour: so much of one, the rest of the paper; where strokes overlap it does not change."""
    from matplotlib.colors import to_rgb

    return tuple(share * c + (1 - share) * p for c, p in zip(to_rgb(colour), to_rgb(paper), strict=True))


def _new_axes(width: float, height: float) -> Any:
    """Axes that fill a figure of 96 pixels to the inch."""
    import matplotlib.pyplot as plt

    scale = min(1.0, LARGEST * 96.0 / max(width, height)) / 96.0
    figure = plt.figure(figsize=(width * scale, height * scale))
    return figure.add_axes((0.0, 0.0, 1.0, 1.0))


def _require_matplotlib() -> None:
    try:
        import matplotlib.pyplot  # noqa: F401
    except ModuleNotFoundError as error:
        raise ImportError(
            'NetworkDisplay draws with matplotlib, which is not installed: pip install "marginbayes[plots]"'
        ) from error
