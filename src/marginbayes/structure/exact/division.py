"""How a part of the search is divided: by an edge, whichever way it points, or by the options of one feature.

Turning an edge between two features hardly changes a margin (without smoothing, and where nothing else changes, not at
all), so to ban one direction only is of little use: what counts is whether the edge is there. The shares of a
relaxation say which edges are undecided; among those, and the features that may leave the class, the one is taken whose
presence and absence should both cost most. Where all edges are decided, the options of one feature are divided.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.instance import Instance
from marginbayes.structure.exact.relaxation import Relaxed, restricted
from marginbayes.structure.exact.working import Working

__all__ = ["division"]

Flags = NDArray[np.bool_]


def division(instance: Instance, top: int, relaxed: Relaxed, allowed: Flags, band: float) -> tuple[int, ...]:
    """Options to divide by, as feature * number of options + option: one piece takes none of them, the other one."""
    from marginbayes.kernels.exact_split import division_by_edge, division_by_options

    shares = restricted(relaxed.shares, allowed)
    work = Working(instance, top, allowed, shares)
    work.open_rows(relaxed.multipliers)
    work.select_rows(band)
    numbers = (
        instance.rows(work.rows),
        work.rows,
        work.start,
        instance.samples.weights[work.groups],
        instance.gamma,
        work.margins[work.rows],
        shares,
    )
    child, parent, _ = division_by_edge(*numbers)
    n_options = instance.n_options
    if child >= 0:
        edge = [child * n_options] if parent < 0 else [child * n_options + 2 + parent, parent * n_options + 2 + child]
        return tuple(int(slot) for slot in edge if allowed.flat[slot])
    right = np.zeros(n_options, bool)
    feature, _ = division_by_options(*numbers, allowed, right)
    if feature < 0:  # every share is whole: one option against the rest of the feature with most options
        feature = int(np.argmax(allowed.sum(axis=1)))
        right = np.arange(n_options) == np.argmax(shares[feature])
    return tuple((feature * n_options + np.flatnonzero(right & allowed[feature])).tolist())
