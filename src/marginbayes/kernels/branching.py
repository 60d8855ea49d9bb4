"""Best arborescence on a dense matrix in O(n^2): Edmonds' algorithm, cycles contracted along a growing path.

`weights[u, v]` is the weight of the edge from u to v; the last line, u = n, is the root that stands above all nodes, so
that ``weights[n, v]`` is what v adds without a parent. An edge of weight minus infinity cannot be used.

Every node, and every contracted cycle S, has a dual value z[S]: the weight of its best entering edge at the time, less
what was subtracted before. The weight of an edge less the values of all sets it enters is its reduced weight. It is
never positive, and no arborescence that holds the edge weighs more than the best one plus that reduced weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit

__all__ = ["forced_bounds", "maximum_arborescence", "option_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@njit(cache=True, nogil=True)
def _best_entering(matrix: Floats, alive: Ints, n_alive: int, slot: int) -> int:
    """The slot whose edge into this one is heaviest; the smallest in a tie, the root last."""
    best, top = -1, -np.inf
    for a in range(n_alive):
        u = alive[a]
        if u != slot and matrix[u, slot] > top:
            best, top = u, matrix[u, slot]
    return best


@njit(cache=True, nogil=True)
def _contract(
    matrix: Floats, source: Ints, target: Ints, alive: Ints, n_alive: int, cycle: Ints, length: int, entering: Floats
) -> int:
    """Make one slot, the first of the cycle, of all its slots; how many slots are left.

    `entering[k]` is the weight of the cycle's own edge into its k-th slot.
    """
    keep = cycle[0]
    inside = np.zeros(len(matrix), np.bool_)
    for k in range(length):
        inside[cycle[k]] = True
    for a in range(n_alive):
        u = alive[a]
        if inside[u]:
            continue
        best = 0
        for k in range(1, length):  # into the cycle: what is gained over the edge that it replaces
            if matrix[u, cycle[k]] - entering[k] > matrix[u, cycle[best]] - entering[best]:
                best = k
        weight, into = matrix[u, cycle[best]] - entering[best], cycle[best]
        source[u, keep], target[u, keep] = source[u, into], target[u, into]
        matrix[u, keep] = weight
        if u == len(matrix) - 1:
            continue
        best = 0
        for k in range(1, length):  # out of the cycle: the heaviest
            if matrix[cycle[k], u] > matrix[cycle[best], u]:
                best = k
        out = cycle[best]
        source[keep, u], target[keep, u] = source[out, u], target[out, u]
        matrix[keep, u] = matrix[out, u]
    left = 0
    for a in range(n_alive):
        if not inside[alive[a]] or alive[a] == keep:
            alive[left] = alive[a]
            left += 1
    return left


@njit(cache=True, nogil=True)
def _grow(weights: Floats, above: Ints, via_source: Ints, via_target: Ints, dual: Floats) -> int:
    """Contract until every node hangs from the root; the number of sets, or -1 if some node cannot be reached.

    A set is a node or a contracted cycle: `above` is the cycle it became part of, `via_*` are the ends of the edge that
    enters it.
    """
    n = weights.shape[1]
    matrix = np.full((n + 1, n + 1), -np.inf)
    source, target = np.empty((n + 1, n + 1), np.int64), np.empty((n + 1, n + 1), np.int64)
    for u in range(n + 1):
        for v in range(n):
            matrix[u, v], source[u, v], target[u, v] = weights[u, v], u, v
    alive, n_alive = np.arange(n + 1), n + 1
    label = np.arange(n + 1)  # the set that a slot stands for
    done, place = np.zeros(n + 1, np.bool_), np.full(n + 1, -1)
    done[n] = True
    path, entering = np.empty(n + 1, np.int64), np.empty(n + 1)
    n_sets = n
    for start in range(n):
        if done[start] or above[start] >= 0:
            continue
        path[0], place[start], length = start, 0, 1
        while True:
            slot = path[length - 1]
            best = _best_entering(matrix, alive, n_alive, slot)
            if best < 0:
                return -1
            entering[length - 1] = matrix[best, slot]
            own = label[slot]
            dual[own], via_source[own], via_target[own] = matrix[best, slot], source[best, slot], target[best, slot]
            if done[best]:
                break
            if place[best] < 0:
                path[length], place[best] = best, length
                length += 1
                continue
            first = place[best]
            for k in range(first, length):
                above[label[path[k]]] = n_sets
                place[path[k]] = -1
            n_alive = _contract(
                matrix, source, target, alive, n_alive, path[first:length], length - first, entering[first:length]
            )
            label[path[first]], place[path[first]] = n_sets, first
            n_sets += 1
            length = first + 1
        for k in range(length):
            done[path[k]], place[path[k]] = True, -1
    return int(n_sets)


@njit(cache=True, nogil=True)
def _reduce(weights: Floats, above: Ints, dual: Floats, reduced: Floats) -> None:
    """Weight of every edge less the dual values of the sets that it enters."""
    n = weights.shape[1]
    holds = np.zeros(2 * n + 1, np.bool_)
    for u in range(n + 1):
        s = u if u < n else -1
        while s >= 0:
            holds[s] = True
            s = above[s]
        for v in range(n):
            left, s = weights[u, v], v
            if u != v and left > -np.inf:
                while s >= 0 and not holds[s]:
                    left -= dual[s]
                    s = above[s]
                reduced[u, v] = min(left, 0.0)
            else:
                reduced[u, v] = -np.inf
        s = u if u < n else -1
        while s >= 0:
            holds[s] = False
            s = above[s]


@njit(cache=True, nogil=True)
def maximum_arborescence(weights: Floats, parents: Ints, reduced: Floats) -> float:
    """Weight of the best arborescence; the parent of every node goes to `parents`, n for the root.

    `reduced` (n + 1 lines, or none) receives the reduced weight of every edge. Minus infinity where no arborescence
    exists. Ties go to the smaller parent, the root last.
    """
    n = weights.shape[1]
    above = np.full(2 * n + 1, -1)
    via_source, via_target = np.empty(2 * n + 1, np.int64), np.empty(2 * n + 1, np.int64)
    dual = np.zeros(2 * n + 1)
    n_sets = _grow(weights, above, via_source, via_target, dual)
    if n_sets < 0:
        return -np.inf
    entered = np.zeros(n_sets, np.bool_)
    # From the outside in: the edge that enters a set enters all sets inside it that hold its end.
    for s in range(n_sets - 1, -1, -1):
        if not entered[s]:
            inner = via_target[s]
            parents[inner] = via_source[s]
            while inner != s:
                entered[inner] = True
                inner = above[inner]
    if len(reduced):
        _reduce(weights, above, dual, reduced)
    total = 0.0
    for v in range(n):
        total += weights[parents[v], v]
    return total


@njit(cache=True, nogil=True)
def option_bound(values: Floats, allowed: Flags, chosen: Ints, reduced: Floats) -> float:
    """Greatest sum of values over acyclic choices of one allowed option for each feature.

    Option 0 is no parent at all, option 1 the class alone, option 2 + j the class and feature j; `values[i, option]`.
    `chosen[i]` receives the option; `reduced` (as `values`, or no lines) a bound on the loss by forcing an option.
    """
    n = len(values)
    weights = np.full((n + 1, n), -np.inf)
    for i in range(n):
        for j in range(n):
            if allowed[i, 2 + j] and i != j:
                weights[j, i] = values[i, 2 + j]
        for o in range(2):
            if allowed[i, o]:
                weights[n, i] = max(weights[n, i], values[i, o])
    parents = np.empty(n, np.int64)
    rest = np.empty((n + 1, n) if len(reduced) else (0, n))
    total = float(maximum_arborescence(weights, parents, rest))
    if total == -np.inf:
        return total
    for i in range(n):
        if parents[i] < n:
            chosen[i] = 2 + parents[i]
        else:
            chosen[i] = 0 if allowed[i, 0] and (not allowed[i, 1] or values[i, 0] >= values[i, 1]) else 1
    if len(reduced):
        for i in range(n):
            for j in range(n):
                reduced[i, 2 + j] = rest[j, i] if allowed[i, 2 + j] else -np.inf
            for o in range(2):
                reduced[i, o] = rest[n, i] + values[i, o] - weights[n, i] if allowed[i, o] else -np.inf
    return total


@njit(cache=True, nogil=True)
def _losses_of_leaving(values: Floats, allowed: Flags, chosen: Ints, i: int, below: Flags, loss: Floats) -> None:
    """For each feature below i, what it loses at least if its parent must not be i, nor below i; itself not counted.

    `below` receives which features these are.
    """
    n = len(chosen)
    for k in range(n):
        node = chosen[k] - 2
        while node >= 0 and node != i:
            node = chosen[node] - 2
        below[k] = node == i
    for k in range(n):
        if below[k]:
            top = -np.inf
            for o in range(n + 2):
                if allowed[k, o] and (o < 2 or (o - 2 != i and not below[o - 2])):
                    top = max(top, values[k, o])
            loss[k] = values[k, chosen[k]] - top


@njit(cache=True, nogil=True)
def _change(values: Floats, chosen: Ints, i: int, o: int, below: Flags, loss: Floats) -> float:
    """What the sum changes at least when i takes an option, and, if that closes a cycle, one feature on it leaves."""
    gain = float(values[i, o] - values[i, chosen[i]])
    if o < 2 or not below[o - 2]:
        return gain
    least, node = np.inf, o - 2
    while node != i:
        least = min(least, loss[node])
        node = chosen[node] - 2
    return gain - least


@njit(cache=True, nogil=True)
def forced_bounds(values: Floats, allowed: Flags, limit: float, out: Floats) -> float:
    """Bound on the sum of values with each option forced, at most that of the best choice, which comes back.

    Exact unless the reduced weight alone brings it to the limit, or a choice near the best one shows that nothing can;
    minus infinity where forcing leaves no choice.
    """
    n, n_options = values.shape
    chosen = np.empty(n, np.int64)
    best = float(option_bound(values, allowed, chosen, out))
    if best == -np.inf:
        out[:] = -np.inf
        return best
    none = np.empty((0, n_options))
    spare = np.empty(n, np.int64)
    trial = allowed.copy()
    below, loss = np.zeros(n, np.bool_), np.zeros(n)
    for i in range(n):
        _losses_of_leaving(values, allowed, chosen, i, below, loss)
        for o in range(n_options):
            if not allowed[i, o]:
                out[i, o] = -np.inf
                continue
            out[i, o] += best
            if out[i, o] <= limit or o == chosen[i]:
                continue
            if best + _change(values, chosen, i, o, below, loss) <= limit:
                trial[i] = False
                trial[i, o] = True
                out[i, o] = min(out[i, o], option_bound(values, trial, spare, none))
                trial[i] = allowed[i]
    return best
