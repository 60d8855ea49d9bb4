"""Finishing a part off: all structures that its multipliers do not bound, one after the other.

Multipliers bound a structure by the sum of its options' values, and that is at most the best sum less what each option
costs (`branching.option_bound`). Near the end of a search few structures are above the cutoff by that measure. Many of
those are seen to lack too much when some of their features have chosen, whatever the others choose.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_margins import Tables, add_option, option_losses, sample_losses

__all__ = ["best_listed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Of so many structures it pays to ask early what their samples lack at least.
PAYS = 1000


class Candidates(NamedTuple):
    """Options of each feature that are within the budget, cheapest first; features in ascending number of them."""

    options: Ints  # [feature, place]
    counts: Ints
    features: Ints
    costs: Floats  # [feature, option]


@njit(cache=True, nogil=True)
def _candidates(reduced: Floats, budget: float) -> Candidates:
    (n, k), costs = reduced.shape, -reduced
    options, counts = np.empty((n, k), np.int64), np.zeros(n, np.int64)
    for i in range(n):
        for o in range(k):
            if costs[i, o] < budget:
                place = counts[i]
                while place > 0 and costs[i, options[i, place - 1]] > costs[i, o]:
                    options[i, place] = options[i, place - 1]
                    place -= 1
                options[i, place] = o
                counts[i] += 1
    return Candidates(options, counts, np.argsort(counts, kind="mergesort"), costs)


@njit(cache=True, nogil=True)
def _gains(data: Tables, base: Floats, of: Candidates) -> Floats:
    """What the features from each depth on can add to the margin over each class at most, [depth, sample, class].

    Of a binary margin there is one column. The first depth is of no use, and left out of the sums.
    """
    n, classes = len(of.features), data.n_classes
    gains = np.zeros((n + 1, *base.shape))
    best = np.empty(base.shape)
    for depth in range(n - 1, 0, -1):
        i = of.features[depth]
        own, best[:] = data.codes[i], -np.inf
        for place in range(of.counts[i]):
            o = of.options[i, place]
            first, radix = data.offset[i, o], data.levels[o - 2] + 1 if o > 1 else 1
            parent = data.codes[o - 2] if o > 1 else own
            for m in range(len(base)):
                at = (first + (own[m] * radix + parent[m] if o > 1 else own[m])) * classes
                label = data.labels[m]
                for c in range(base.shape[1]):
                    added = 0.0
                    if o > 0:
                        added = data.tables[at + label] - (0.0 if data.binary else data.tables[at + c])
                    best[m, c] = max(best[m, c], added)
        gains[depth] = gains[depth + 1] + best
    return gains


@njit(cache=True, nogil=True)
def _is_hopeless(data: Tables, state: Floats, gains: Floats, order: Ints, gamma: float, limit: float) -> bool:
    """Whether the samples lack more than the limit, whatever the features choose that have not chosen yet."""
    total = 0.0
    for k in range(len(order)):
        m, low = order[k], gamma
        own = data.labels[m]
        for c in range(state.shape[1]):
            if data.binary:
                low = min(low, state[m, 0] + gains[m, 0])
            elif c != own:
                low = min(low, state[m, own] - state[m, c] + gains[m, c])
        total += data.weights[m] * (gamma - low)
        if total > limit:
            return True
    return False


@njit(cache=True, nogil=True)
def _closes_cycle(choice: Ints, i: int, o: int) -> bool:
    """Whether an option of a feature closes a cycle with what others have chosen; -1 is no choice yet."""
    node = o - 2
    while node >= 0 and node != i:
        node = choice[node] - 2
    return node == i


@njit(cache=True, nogil=True)
def _next(of: Candidates, choice: Ints, depth: int, at: Ints, left: Floats) -> bool:
    """Let the feature at this depth take its next option; whether there is one within what is left of the budget."""
    i = of.features[depth]
    choice[i] = -1
    at[depth] += 1
    while at[depth] < of.counts[i] and of.costs[i, of.options[i, at[depth]]] < left[depth]:
        o = of.options[i, at[depth]]
        if not _closes_cycle(choice, i, o):
            choice[i], left[depth + 1] = o, left[depth] - of.costs[i, o]
            return True
        at[depth] += 1
    at[depth] = -1
    return False


@njit(cache=True, nogil=True)
def _last_options(of: Candidates, choice: Ints, left: float, free: Flags) -> int:
    """Mark the options that the last feature can take; how many there are."""
    i, count = of.features[-1], 0
    free[:] = False
    for place in range(of.counts[i]):
        o = of.options[i, place]
        if of.costs[i, o] >= left:
            break
        if not _closes_cycle(choice, i, o):
            free[o] = True
            count += 1
    return count


@njit(cache=True, nogil=True)
def _counted(of: Candidates, budget: float, most: int) -> int:
    """Structures within the budget, counted up to the most; those that begin alike count at each feature once more."""
    last = len(of.features) - 1
    choice, at = np.full(last + 1, -1), np.full(last + 1, -1)
    left, free = np.empty(last + 1), np.empty(of.costs.shape[1], np.bool_)
    left[0], depth, count = budget, 0, 0
    while depth >= 0 and count <= most:
        if depth == last:
            count += _last_options(of, choice, left[depth], free)
            depth -= 1
        elif _next(of, choice, depth, at, left):
            depth += 1
            count += 1
        else:
            depth -= 1
    return count


@njit(cache=True, nogil=True)
def best_listed(
    data: Tables, base: Floats, gamma: float, reduced: Floats, budget: float, limit: float, most: int, best: Ints
) -> float:
    """The least loss of a structure whose options cost less than the budget together; -1 if these are too many.

    `reduced` are minus the costs, `base` the scores by the class alone. Only losses below the limit count; infinity
    where there is none, else `best` receives the structure.
    """
    of, last = _candidates(reduced, budget), len(best) - 1
    if last < 0 or of.counts[of.features[0]] == 0:
        return -1.0
    count = _counted(of, budget, most)
    if count > most:
        return -1.0
    states, choice = np.empty((last + 1, *base.shape)), np.full(last + 1, -1)
    states[last] = base
    for i in range(last + 1):
        add_option(data, states[last], i, of.options[i, 0], 1.0)
    # Samples that lack most in the cheapest structure lack much in others.
    order = np.argsort(-sample_losses(data, states[last], gamma))
    gains = _gains(data, base, of) if count > PAYS else np.empty((0, *base.shape))
    at, left, free = np.full(last + 1, -1), np.empty(last + 1), np.empty(reduced.shape[1], np.bool_)
    states[0], left[0], depth, least = base, budget, 0, np.inf
    while depth >= 0:
        if depth == last:
            if _last_options(of, choice, left[depth], free):
                losses = option_losses(data, states[depth], order, gamma, of.features[last], free, min(limit, least))
                o = np.argmin(losses)
                if losses[o] < min(limit, least):
                    least, best[:] = losses[o], choice
                    best[of.features[last]] = o
            depth -= 1
        elif _next(of, choice, depth, at, left):
            i = of.features[depth]
            states[depth + 1] = states[depth]
            add_option(data, states[depth + 1], i, choice[i], 1.0)
            depth += 1
            if count > PAYS and _is_hopeless(data, states[depth], gains[depth], order, gamma, min(limit, least)):
                depth -= 1
        else:
            depth -= 1
    return float(least)
