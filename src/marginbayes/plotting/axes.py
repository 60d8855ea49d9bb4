"""What displays share: how lines over time or steps look, and text that fits the room it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from marginbayes.graph.labels import FONT, shorten_all, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["dress", "fitted", "inches", "joined", "new_axes", "title_of", "width_of"]


def new_axes(ax: Axes | None) -> Axes:
    """These axes, or those of a new figure."""
    import matplotlib.pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    return ax


def title_of(learner: Any) -> str:
    """How a legend calls a learner: by the short name it was given by, else by its class."""
    return learner if isinstance(learner, str) else type(learner).__name__


def dress(ax: Axes, x: str, y: str, legend: str) -> None:
    """Titles of both axes, a faint grid, and a legend in which a dollar sign is no formula."""
    ax.set_xlabel(x, fontsize="small")
    ax.set_ylabel(y, fontsize="small")
    ax.tick_params(labelsize="small")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(visible=True, color="#e4e6ea", linewidth=0.7)
    ax.set_axisbelow(True)
    for text in ax.legend(frameon=False, fontsize="small", loc=legend).get_texts():
        text.set_parse_math(False)


def inches(text: str, size: str) -> float:
    """Width of a text in a font of this size, such as "small", rather too large than too small."""
    return text_width(text, _points(size)) / 72


def fitted(names: Iterable[Any], room: float, size: str) -> tuple[str, ...]:
    """The names, shortened to this many inches where they are longer, and still different."""
    return shorten_all(map(str, names), 72 * room * FONT / _points(size))


def joined(pieces: Iterable[str], room: float, size: str) -> str:
    """The pieces one after the other, in lines of this many inches."""
    lines: list[str] = []
    for piece in pieces:
        longer = f"{lines[-1]} {piece}" if lines else piece
        if lines and inches(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(piece.strip())
    return "\n".join(lines)


def width_of(ax: Axes) -> float:
    """Inches from the left side of the axes to the right."""
    return ax.get_window_extent().width / ax.figure.dpi


def _points(size: str) -> float:
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=size).get_size_in_points()
