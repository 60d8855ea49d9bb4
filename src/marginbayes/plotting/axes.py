"""How lines over time or steps look, in all displays alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["dress", "new_axes", "title_of"]


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
