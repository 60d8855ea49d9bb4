"""How a part of the search is divided: the options of one feature are parted in two."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.instance import Instance
from marginbayes.structure.exact.relaxation import Relaxed, restricted
from marginbayes.structure.exact.working import Working

__all__ = ["division"]

Flags = NDArray[np.bool_]


def division(instance: Instance, top: int, relaxed: Relaxed, allowed: Flags, band: float) -> tuple[int, Flags]:
    """The feature to divide, and the options of one side: the division that should lower the relaxation most.

    The options are parted where they differ most in what they do to margins near the hinge. To divide by undecided
    edges, whichever way they point, is better on some sets and worse on others (docs/results/exact-margin.md).
    """
    from marginbayes.kernels.exact_split import division_by_options

    shares = restricted(relaxed.shares, allowed)
    work = Working(instance, top, allowed, shares)
    work.open_rows(relaxed.multipliers)
    work.select_rows(band)
    inside = np.zeros(instance.n_options, bool)
    feature, _ = division_by_options(
        instance.rows(work.rows),
        work.rows,
        work.start,
        instance.samples.weights[work.groups],
        instance.gamma,
        work.margins[work.rows],
        shares,
        allowed,
        inside,
    )
    if feature < 0:  # every share is whole: one option against the rest of the feature with most options
        feature = int(np.argmax(allowed.sum(axis=1)))
        inside = np.arange(instance.n_options) == np.argmax(shares[feature])
    return feature, inside & allowed[feature]
