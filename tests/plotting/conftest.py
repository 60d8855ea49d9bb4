"""Plots are drawn without a window, and closed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    mpl = pytest.importorskip("matplotlib", reason="plots are an extra")
    with mpl.rc_context():
        mpl.use("agg")
        yield
        import matplotlib.pyplot as plt

        plt.close("all")
