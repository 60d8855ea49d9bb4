"""One maximum-margin problem made ready for branch and bound: tables of all options, rows of coefficients on demand.

A feature's options are numbered 0 (no parent), 1 (the class) and 2 + j (the class and feature j, counted from 0). The
class has its own parents A, one problem for each A: a feature in A can only take option 0, so that with A fixed the
features alone must be acyclic, which makes every choice a branching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marginbayes.structure.exact.problem import Samples, family_scores, margin_rows

if TYPE_CHECKING:
    from marginbayes.kernels.exact_margins import Tables
    from marginbayes.kernels.exact_space import Space

__all__ = ["Instance", "MemoryLimit", "make_instance"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Margins of the class alone are kept for this many sets of class parents.
KEPT_BASES = 16
# Coefficients that are made all at once, for that takes no time.
SMALL = 200_000


class MemoryLimit(Exception):
    """The next step would need more memory than is allowed; the search ends with what it has."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Everything that does not change during the search, and a store of rows that fills as they are needed.

    Attributes
    ----------
    margin, gamma, smoothing : as in `ExactMargin`
    samples : Samples
    data : Tables
        Codes and log tables of all options.
    tops : tuple of tuples
        The sets of class parents, as variables (the first feature is 1).
    allowed : bool array [feature, option]
        Options that the rules leave, and that no other option makes redundant.
    redundant : tuple of (feature, option, option that adds the same)
    """

    margin: str
    gamma: float
    smoothing: float
    samples: Samples
    data: Tables
    tops: tuple[tuple[int, ...], ...]
    allowed: Flags
    redundant: tuple[tuple[int, int, int], ...]
    max_memory: float
    seed: int = 0
    _known: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.allowed)

    @property
    def n_options(self) -> int:
        """Options of a feature, allowed or not."""
        return int(self.allowed.shape[1])

    @property
    def rivals(self) -> int:
        """Margin rows of each sample."""
        return 1 if self.margin == "sbm" else max(self.samples.cardinalities[0] - 1, 0)

    @property
    def n_rows(self) -> int:
        """Number of margin rows; row r belongs to sample r // rivals."""
        return len(self.samples.weights) * self.rivals

    @property
    def has_matrices(self) -> bool:
        """Whether there are so many options that systems of equations go to the matrix library."""
        from marginbayes.kernels.small_matrices import FEW

        return int(self.allowed.sum()) - self.n_features >= FEW

    @cached_property
    def ceiling(self) -> float:
        """What no structure exceeds: every margin at gamma."""
        return self.gamma * self.samples.total

    @cached_property
    def largest(self) -> float:
        """No option adds more than this to a margin, in absolute value."""
        return 2.0 * float(np.abs(self.data.tables).max(initial=0.0))

    def base(self, top: int) -> Floats:
        """Margin of every row by the class alone, with the parents of the class at this position of `tops`."""
        return self._alone(top)[0]

    def state(self, top: int) -> Floats:
        """Score of every class, or binary margin, of each sample by the class alone."""
        return self._alone(top)[1]

    def _alone(self, top: int) -> tuple[Floats, Floats]:
        """Margins of rows and scores by the class alone; threads may make them twice."""
        found = self._known.get(top)
        if found is None:
            binary, n = self.margin == "sbm", len(self.samples.weights)
            scores = family_scores(self.samples, 0, self.tops[top], binary, self.smoothing)
            sample, own, rival = margin_rows(self.samples, self.margin)
            base = scores if binary else np.asarray(scores[sample, own] - scores[sample, rival])
            found = base, scores.reshape(n, -1)
            if len(self._known) >= KEPT_BASES:
                self._known.clear()
            self._known[top] = found
        return found

    def root(self, top: int) -> Flags:
        """Options of all features in the problem of these class parents."""
        allowed = self.allowed.copy()
        for f in self.tops[top]:
            allowed[f - 1, 1:] = False
        return allowed

    # -- rows on demand

    @cached_property
    def space(self) -> Space:
        """What kernels work on; its rows of coefficients are filled when they are needed."""
        from marginbayes.kernels.exact_margins import fill_rows
        from marginbayes.kernels.exact_space import Space

        width = self.n_features * self.n_options
        # Memory that is never touched is never taken: the rows in use are what counts. But some systems do not even
        # lend more than they have.
        quick = width if 4.0 * width * self.n_rows <= self.max_memory else 0
        try:
            store = np.empty((self.n_rows, width)), np.zeros(self.n_rows, bool)
            short = np.empty((quick, self.n_rows), np.float32), np.zeros(width, bool)
        except MemoryError as error:
            raise MemoryLimit(f"there is no room for the coefficients of {self.n_rows} margin rows: {error}") from None
        columns = np.empty((0, 0))
        if self.n_rows * width <= SMALL and 16.0 * self.n_rows * width <= self.max_memory:
            fill_rows(self.data, np.arange(self.n_rows), store[0])
            store[1][:] = True
            columns = np.ascontiguousarray(store[0].T)
        most = self.max_memory / (8.0 * width)
        return Space(
            self.data, self.rivals, self.gamma, self.samples.total, self.largest, *store, most, columns, *short
        )

    def fill(self, wanted: Ints) -> None:
        """Make rows of coefficients."""
        from marginbayes.kernels.exact_space import fill

        if not fill(self.space, wanted):
            raise self.memory_limit()

    def memory_limit(self) -> MemoryLimit:
        """What to raise where more rows would take too much memory."""
        size = 8.0 * (np.count_nonzero(self.space.filled) + 1) * self.n_features * self.n_options
        return MemoryLimit(
            f"rows of coefficients would take more than {size:.2g} bytes, beyond max_memory={self.max_memory:.2g}"
        )

    def parents(self, top: int, choice: Ints) -> tuple[tuple[int, ...], ...]:
        """Parents of every variable, the class first."""
        sets = {0: (), 1: (0,)}
        return (self.tops[top], *(sets.get(o, (0, o - 1)) for o in choice.tolist()))

    def choice(self, parents: Sequence[Sequence[int]]) -> tuple[int, Ints]:
        """Position in `tops` and option of each feature of one of the structures."""
        same = {(i, o): other for i, o, other in self.redundant}
        chosen = np.zeros(self.n_features, np.int64)
        for i, own in enumerate(parents[1:]):
            option = max(own) + 1 if own else 0  # the class is 0, and a feature above it
            chosen[i] = same.get((i, option), option)
        return self.tops.index(tuple(sorted(parents[0]))), chosen


def make_instance(
    samples: Samples,
    sets: Sequence[Sequence[tuple[int, ...]]],
    *,
    margin: str,
    gamma: float,
    smoothing: float,
    max_memory: float,
    seed: int = 0,
) -> Instance:
    """Instance for these samples and parent sets (`problem.parent_sets` with k of 0 or 1)."""
    allowed = _allowed(sets)
    data = _tables(samples, allowed, margin, smoothing, max_memory)
    allowed, redundant = _without_copies(allowed, data)
    return Instance(margin, gamma, smoothing, samples, data, tuple(sets[0]), allowed, redundant, max_memory, seed)


def _allowed(sets: Sequence[Sequence[tuple[int, ...]]]) -> Flags:
    n = len(sets) - 1
    allowed = np.zeros((n, n + 2), bool)
    for i, own in enumerate(sets[1:]):
        for parents in own:
            allowed[i, 0 if not parents else 1 if len(parents) == 1 else 1 + parents[1]] = True
    return allowed


def _tables(samples: Samples, allowed: Flags, margin: str, smoothing: float, max_memory: float) -> Tables:
    from marginbayes.kernels.exact_margins import Tables, fill_tables

    classes = samples.cardinalities[0]
    levels = np.array(samples.cardinalities[1:], np.int64)
    made = allowed.copy()
    made[:, 0], made[:, 1] = False, allowed.any(axis=1)
    sizes = np.where(made, np.outer(levels + 1, np.concatenate([[0, 1], levels + 1])), 0)
    ends = np.cumsum(sizes).reshape(sizes.shape)
    offset, size = np.where(made, ends - sizes, -1), int(sizes.sum())
    if 8.0 * size * classes > max_memory:
        raise ValueError(
            f"the tables of all options would take {8.0 * size * classes:.2g} bytes, more than "
            f"max_memory={max_memory:.2g}; merge levels, forbid edges, or raise it"
        )
    data = Tables(
        np.ascontiguousarray(samples.codes[1:].astype(np.int32)),
        samples.labels.astype(np.int64),
        samples.weights,
        levels,
        classes,
        margin == "sbm",
        offset,
        np.zeros(size * classes),
    )
    fill_tables(data, smoothing)
    return data


def _without_copies(allowed: Flags, data: Tables) -> tuple[Flags, tuple[tuple[int, int, int], ...]]:
    """Take out options that add to every margin what an option without feature parents adds as well.

    So it is with a feature of one level, alone or, if it is never missing, as a parent: where it is, a table given it
    has other counts. A structure stays acyclic when such an edge goes.
    """
    alone = data.levels == 1
    if not alone.any():
        return allowed, ()
    parents = np.concatenate([[False, False], alone & (data.codes < data.levels[:, None]).all(axis=1)])
    none = allowed & (alone & allowed[:, 0])[:, None]
    none[:, 0] = False
    single = allowed & parents & allowed[:, 1:2] & ~none
    found = [(i, o, 0 if none[i, o] else 1) for i, o in np.argwhere(none | single).tolist()]
    return allowed & ~(none | single), tuple(found)
