"""Pictures by matplotlib, written to files without a screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from marginbayes.writing import replacing

__all__ = ["save_picture"]


def save_picture(draw: Callable[[], Any], path: Path) -> None:
    """Write the figure of the display that `draw` returns; the ending of the name tells the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = draw().figure_
    try:
        with replacing(path) as file:
            figure.savefig(file, format=path.suffix[1:] or None, dpi=150, bbox_inches="tight")
    finally:
        plt.close(figure)
