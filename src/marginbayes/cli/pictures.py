"""Pictures by matplotlib, written to files without a screen."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["save_picture"]


def save_picture(draw: Callable[[], Any], path: Path) -> None:
    """Write the figure of the display that `draw` returns; the ending of the name tells the format."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = draw().figure_
    # Beside its place first: whoever interrupts finds the whole picture or none.
    beside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        figure.savefig(beside, dpi=150, bbox_inches="tight")
        os.replace(beside, path)
    finally:
        plt.close(figure)
        beside.unlink(missing_ok=True)
