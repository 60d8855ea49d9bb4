"""What becomes of the parts of a depth-first search, noted for the record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.exact_begin import Basis
from marginbayes.kernels.exact_space import Multipliers
from marginbayes.kernels.exact_vertex import Vertex

__all__ = [
    "NODES",
    "STEPS",
    "Dived",
    "Log",
    "Waiting",
    "new_log",
    "note_closed",
    "note_fixes",
    "note_part",
    "note_structure",
    "result",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Flags = NDArray[np.bool_]

# Places in the counts of a log.
PARTS, FIXES, CLOSED, NODES, STEPS = 0, 1, 2, 3, 4


class Dived(NamedTuple):
    """What became of a part: for the record (as `Subtree`), what is open, and the best structure.

    Numbers of parts and multipliers count from 0; -1 is the part, or the multipliers, that were given.
    """

    fits: bool
    parent: Shorts
    taken: Flags
    feature: Shorts
    inside: Flags
    fix_part: Shorts
    fix_feature: Shorts
    fix_options: Flags
    fix_by: Shorts
    closed_part: Shorts
    closed_by: Shorts
    closed_listed: Flags
    start: Ints
    rows: Shorts
    shares: Shorts
    open_part: Shorts
    open_by: Shorts
    open_bound: Floats
    open_allowed: Flags
    open_size: Ints  # how many tight options each open part's vertex has
    open_tight: Shorts  # as in `Basis`, one part's after the other's
    open_free: Shorts
    open_references: Shorts
    clusters: Flags
    pruned: float  # no structure that was put aside is better than this
    nodes: int
    steps: int
    choice: Ints
    objective: float


class Log(NamedTuple):
    """Room for what is noted; `counts` are those of parts, fixes, closed parts, nodes, steps."""

    counts: Ints
    parent: Shorts
    taken: Flags
    feature: Shorts
    inside: Flags
    fix_part: Shorts
    fix_feature: Shorts
    fix_options: Flags
    fix_by: Shorts
    closed_part: Shorts
    closed_by: Shorts
    closed_listed: Flags
    pruned: Floats
    choice: Ints
    objective: Floats


class Waiting(NamedTuple):
    """A part that waits: number, multipliers that bound it, and what these make of its options; bench and vertex."""

    part: int
    by: int
    bound: float
    constant: float
    values: Floats
    allowed: Flags
    bench: int
    vertex: Vertex


@njit(cache=True, nogil=True)
def new_log(budget: int, n: int, k: int) -> Log:
    parts, fixes = 2 * budget + 4, 2 * n * (budget + 2)
    return Log(
        np.zeros(5, np.int64),
        np.zeros(parts, np.int32),
        np.zeros(parts, np.bool_),
        np.zeros(parts, np.int32),
        np.zeros((parts, k), np.bool_),
        np.zeros(fixes, np.int32),
        np.zeros(fixes, np.int32),
        np.zeros((fixes, k), np.bool_),
        np.zeros(fixes, np.int32),
        np.zeros(parts, np.int32),
        np.zeros(parts, np.int32),
        np.zeros(parts, np.bool_),
        np.full(1, -np.inf),
        np.zeros(n, np.int64),
        np.full(1, -np.inf),
    )


@njit(cache=True, nogil=True)
def note_fixes(log: Log, part: int, gone: Flags, by: int) -> None:
    for i in range(len(gone)):
        if gone[i].any():
            f = log.counts[FIXES]
            log.fix_part[f], log.fix_feature[f], log.fix_by[f] = part, i, by
            log.fix_options[f] = gone[i]
            log.counts[FIXES] += 1


@njit(cache=True, nogil=True)
def note_closed(log: Log, part: int, by: int, bound: float, listed: bool) -> None:
    c = log.counts[CLOSED]
    log.closed_part[c], log.closed_by[c], log.closed_listed[c] = part, by, listed
    log.counts[CLOSED] += 1
    log.pruned[0] = max(log.pruned[0], bound)


@njit(cache=True, nogil=True)
def note_part(log: Log, parent: int, taken: bool, feature: int, inside: Flags) -> int:
    p = log.counts[PARTS]
    log.parent[p], log.taken[p], log.feature[p] = parent, taken, feature
    log.inside[p] = inside
    log.counts[PARTS] += 1
    return int(p)


@njit(cache=True, nogil=True)
def note_structure(log: Log, choice: Ints, objective: float) -> None:
    """A structure was found; the best one is kept."""
    if objective > log.objective[0]:
        log.choice[:], log.objective[0] = choice, objective


@njit(cache=True, nogil=True)
def result(
    fits: bool, log: Log, kept: list[Multipliers], waiting: list[Waiting], bases: list[Basis], clusters: Flags
) -> Dived:
    parts, fixes, closed, nodes, steps = log.counts
    start = np.zeros(len(kept) + 1, np.int64)
    for m in range(len(kept)):
        start[m + 1] = start[m] + len(kept[m].rows)
    rows, shares = np.empty(start[-1], np.int32), np.empty(start[-1], np.int32)
    for m in range(len(kept)):
        rows[start[m] : start[m + 1]], shares[start[m] : start[m + 1]] = kept[m].rows, kept[m].shares
    open_part, open_by = np.empty(len(waiting), np.int32), np.empty(len(waiting), np.int32)
    open_bound = np.empty(len(waiting))
    open_allowed = np.empty((len(waiting), len(log.choice), log.inside.shape[1]), np.bool_)
    for w in range(len(waiting)):
        open_part[w], open_by[w], open_bound[w] = waiting[w].part, waiting[w].by, waiting[w].bound
        open_allowed[w] = waiting[w].allowed
    size, free = np.empty(len(bases), np.int64), np.empty(len(bases), np.int64)
    for w in range(len(bases)):
        size[w], free[w] = len(bases[w].tight), len(bases[w].free)
    tight, at = np.empty(size.sum(), np.int32), 0
    open_free, references, place = np.empty(free.sum(), np.int32), np.empty(free.sum(), np.int32), 0
    for w in range(len(bases)):
        tight[at : at + size[w]], at = bases[w].tight, at + size[w]
        open_free[place : place + free[w]] = bases[w].free
        references[place : place + free[w]], place = bases[w].references, place + free[w]
    return Dived(
        fits,
        log.parent[:parts].copy(),
        log.taken[:parts].copy(),
        log.feature[:parts].copy(),
        log.inside[:parts].copy(),
        log.fix_part[:fixes].copy(),
        log.fix_feature[:fixes].copy(),
        log.fix_options[:fixes].copy(),
        log.fix_by[:fixes].copy(),
        log.closed_part[:closed].copy(),
        log.closed_by[:closed].copy(),
        log.closed_listed[:closed].copy(),
        start,
        rows,
        shares,
        open_part,
        open_by,
        open_bound,
        open_allowed,
        size,
        tight,
        open_free,
        references,
        clusters,
        log.pruned[0],
        nodes,
        steps,
        log.choice.copy(),
        log.objective[0],
    )
