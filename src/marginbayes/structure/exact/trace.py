"""The course of a search: seconds, objective and bound, in so many points that they can be drawn."""

from __future__ import annotations

import numpy as np

__all__ = ["Point", "noted"]

Point = tuple[float, float, float]  # seconds, objective, bound

MOST = 2000


def noted(trace: list[Point], point: Point) -> list[Point]:
    """The course with another point, if it says anything new; thinned where it grows long."""
    if trace and trace[-1][1:] == point[1:]:
        return trace
    trace.append(point)
    return thinned(trace, MOST // 2) if len(trace) > MOST else trace


def thinned(trace: list[Point], most: int) -> list[Point]:
    """At most so many points, even in the logarithm of time, as a curve that flattens wants them."""
    times = np.log(np.maximum([seconds for seconds, _, _ in trace], 1e-3))
    wanted = np.linspace(times[0], times[-1], most)
    return [trace[k] for k in np.unique(np.searchsorted(times, wanted))]
