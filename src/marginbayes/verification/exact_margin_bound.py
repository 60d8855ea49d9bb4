"""Margins of a data set under every option, and the bound that multipliers prove.

For multipliers on the margin rows that are not negative, and in a sample sum to at most its weight w,

    w * min(gamma, margins) <= gamma * (w - sum of multipliers) + sum of multiplier * margin

holds for every structure. Summed over the samples the right side is a constant and a value for each option, so that its
greatest value over acyclic structures is a maximum-weight branching (Edmonds).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, whole

__all__ = ["Bounds", "Margins", "best_branching", "check_amounts", "check_weight", "merged"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Up to this many bytes all coefficients are kept; beyond, they are computed for each set of multipliers.
KEPT_BYTES = 1 << 30
# Beyond this, what rounding does to a weight is worth more than the margins.
LARGEST_GAMMA = 1e6


def merged(codes: Ints, weights: Floats, cards: Sequence[int]) -> tuple[Ints, Floats]:
    """Distinct rows that count (class known, positive weight), ascending by class and features, and their weights."""
    counts = (codes[0] < cards[0]) & (weights > 0)
    rows, place = np.unique(codes[:, counts].T, axis=0, return_inverse=True)
    return np.ascontiguousarray(rows.T), np.bincount(place.reshape(-1), weights[counts], len(rows)).astype(np.float64)


def check_amounts(gamma: float, smoothing: float) -> None:
    """Refuse a desired margin, or a smoothing, with which nothing can be computed."""
    if not (0 < gamma <= LARGEST_GAMMA and 0 < smoothing < np.inf):
        raise CertificateError(
            f"gamma={gamma!r} and the smoothing {smoothing!r} must be positive numbers, not too large"
        )


def check_weight(claim: Mapping[str, Any], weights: Floats) -> None:
    """Refuse a certificate of rows that weigh something else."""
    if not abs(float(claim["weight"]) - weights.sum()) <= 1e-9 * weights.sum():
        raise CertificateError(f"the rows weigh {float(weights.sum())!r}, not {claim['weight']!r}")


class Margins:
    """What every option adds to every margin row: equations (12) and (23), tables smoothed, of merged rows."""

    def __init__(self, codes: Ints, weights: Floats, claim: Mapping[str, Any]) -> None:
        self.codes, self.weights, self.cards = codes, weights, list(claim["cardinalities"])
        self.gamma, self.smoothing = float(claim["gamma"]), float(claim["smoothing"])
        self.binary = claim["margin"] == "sbm"
        check_amounts(self.gamma, self.smoothing)
        self.rivals = 1 if self.binary else self.cards[0] - 1
        self.n_rows, self.n = len(weights) * self.rivals, len(codes) - 1
        self._tables: dict[tuple[int, int], Floats] = {}
        self._bases: dict[tuple[int, ...], Floats] = {}
        self._dense: Floats | None = None

    def objective(self, top: tuple[int, ...], choice: Sequence[int]) -> float:
        """Soft margin of a structure."""
        if not self.rivals:
            return self.gamma * float(self.weights.sum())
        everything = np.arange(self.n_rows)
        margins = self.base(top) + sum(
            (self.column(i, o, everything) for i, o in enumerate(choice)), np.zeros(self.n_rows)
        )
        return float(self.weights @ np.minimum(self.gamma, margins.reshape(-1, self.rivals).min(axis=1)))

    def base(self, top: tuple[int, ...]) -> Floats:
        """What the class alone, given its parents, adds to every row."""
        if top not in self._bases:
            self._bases = {top: self._base(top)}
        return self._bases[top]

    def column(self, i: int, option: int, rows: Ints) -> Floats:
        """What one option adds to some rows."""
        if option == 0:
            return np.zeros(len(rows))
        members = [i + 1] if option == 1 else [i + 1, option - 1]
        sample = rows // max(self.rivals, 1)
        cells = tuple(self.codes[v, sample] for v in members)
        return self._difference(self._table(i, option), cells, rows, sample)

    def equal(self, i: int, option: int, other: int) -> bool:
        """Whether two options add the same to every row."""
        rows = np.arange(self.n_rows)
        return bool(np.abs(self.column(i, option, rows) - self.column(i, other, rows)).max(initial=0.0) <= 1e-12)

    def values(self, rows: Ints, multipliers: Floats) -> Floats:
        """For every feature and option, the sum over rows of multiplier times what the option adds."""
        if 8.0 * self.n_rows * self.n * (self.n + 2) <= KEPT_BYTES:
            if self._dense is None:
                self._dense = self._columns(np.arange(self.n_rows))
            return np.asarray((multipliers @ self._dense[rows]).reshape(self.n, self.n + 2))
        return np.asarray((multipliers @ self._columns(rows)).reshape(self.n, self.n + 2))

    def _columns(self, rows: Ints) -> Floats:
        out = np.zeros((len(rows), self.n, self.n + 2))
        for i in range(self.n):
            for option in range(1, self.n + 2):
                if option != 2 + i:
                    out[:, i, option] = self.column(i, option, rows)
        return out.reshape(len(rows), self.n * (self.n + 2))

    def _difference(self, table: Floats, cells: tuple[Ints, ...], rows: Ints, sample: Ints) -> Floats:
        own = self.codes[0, sample]
        if self.binary:
            return np.asarray(table[(*cells, own)])
        rival = rows % max(self.rivals, 1)
        rival = rival + (rival >= own)
        return np.asarray(table[(*cells, own)] - table[(*cells, rival)])

    def _counts(self, members: Sequence[int]) -> Floats:
        """Weights by members and class, a level more for a missing one."""
        shape = [*(self.cards[v] + 1 for v in members), self.cards[0]]
        flat = np.ravel_multi_index([*(self.codes[v] for v in members), self.codes[0]], shape)
        return np.bincount(flat, self.weights, int(np.prod(shape))).astype(np.float64).reshape(shape)

    def _table(self, i: int, option: int) -> Floats:
        """Log P(feature | class, parent), a missing feature adding nothing and a missing parent being any."""
        if (i, option) not in self._tables:
            counts = self._counts([i + 1] if option == 1 else [i + 1, option - 1])
            if option > 1:
                counts[:, -1] = counts.sum(axis=1)
            table = self._logs(counts)
            if self.binary:
                table -= self._logs(np.maximum(counts.sum(axis=-1, keepdims=True) - counts, 0.0))
            self._tables[i, option] = table
        return self._tables[i, option]

    def _logs(self, counts: Floats) -> Floats:
        levels = len(counts) - 1
        out = np.zeros_like(counts)
        out[:-1] = np.log(counts[:-1] + self.smoothing) - np.log(counts[:-1].sum(axis=0) + self.smoothing * levels)
        return out

    def _base(self, top: tuple[int, ...]) -> Floats:
        counts = self._counts(top)
        for axis in range(len(top)):
            np.moveaxis(counts, axis, 0)[-1] = counts.sum(axis=axis)
        # The sum over the classes is the same for both sides of a difference.
        table = np.log(counts + self.smoothing)
        if self.binary:
            table -= np.log(np.maximum(counts.sum(axis=-1, keepdims=True) - counts, 0.0) + self.smoothing)
        rows = np.arange(self.n_rows)
        sample = rows // max(self.rivals, 1)
        return self._difference(table, tuple(self.codes[v, sample] for v in top), rows, sample)


class Bounds:
    """Bounds of parts, and the largest of them so far."""

    def __init__(self, margins: Margins, claimed: float, unbounded: Callable[..., float]) -> None:
        self.margins, self.claimed, self.largest, self.unbounded = margins, claimed, -np.inf, unbounded
        self.multipliers: list[tuple[Ints, Floats]] = []
        self._last: tuple[int, tuple[int, ...]] | None = None
        self._linear: tuple[float, Floats] = (0.0, np.empty((0, 0)))

    def check(self, position: int, top: tuple[int, ...], options: Flags, listed: bool = False) -> None:
        """Bound the structures with these options; the largest bound is kept.

        `listed`: structures that the multipliers do not bound are looked at one by one.
        """
        whole(position, len(self.multipliers), "the position of the multipliers that bound a part of the record")
        if not options.any(axis=1).all():
            return
        if self._last != (position, top):
            self._linear, self._last = self._evaluate(position, top), (position, top)
        constant, values = self._linear
        # Without the ban on cycles the bound is weaker, and at once there; most often it is enough.
        bound = constant + float(np.where(options, values, -np.inf).max(axis=1).sum())
        if bound > self.claimed:
            bound = constant + best_branching(values, options)
        if bound > self.claimed and listed:
            bound = self.unbounded(self.margins, top, self._linear, options, self.claimed)
        if np.isnan(bound):
            raise CertificateError("the multipliers of a part of the record bound nothing")
        self.largest = max(self.largest, bound)

    def _evaluate(self, position: int, top: tuple[int, ...]) -> tuple[float, Floats]:
        margins, (rows, multipliers) = self.margins, self.multipliers[position]
        used = np.bincount(rows // max(margins.rivals, 1), multipliers, len(margins.weights))
        unused = float(np.maximum(0.0, margins.weights - used).sum())
        constant = margins.gamma * unused + float(multipliers @ margins.base(top)[rows])
        return constant, margins.values(rows, multipliers)


def best_branching(values: Floats, options: Flags) -> float:
    """Greatest sum of values, one option for each feature, without a cycle; minus infinity where there is none."""
    n = len(values)
    chosen = np.where(options, values, -np.inf)
    weights = np.full((n + 1, n + 1), -np.inf)  # [parent, child]; the last is the root
    weights[n, :n] = chosen[:, :2].max(axis=1)
    weights[:n, :n] = chosen[:, 2:].T
    np.fill_diagonal(weights, -np.inf)
    return _arborescence(weights)


def _arborescence(weights: Floats) -> float:
    """Weight of the best arborescence from the last node: take best parents, contract a cycle, repeat."""
    total = 0.0
    while True:
        root = len(weights) - 1
        best = weights[:, :root].argmax(axis=0)
        top = weights[best, np.arange(root)]
        if not np.isfinite(top).all():
            return -np.inf
        cycle = np.array(_cycle(best, root), np.int64)
        if not len(cycle):
            return total + float(top.sum())
        total += float(top[cycle].sum())
        rest = np.setdiff1d(np.arange(root + 1), cycle)
        smaller = np.full((len(rest) + 1, len(rest) + 1), -np.inf)
        smaller[1:, 1:] = weights[np.ix_(rest, rest)]
        smaller[1:, 0] = (weights[np.ix_(rest, cycle)] - top[cycle]).max(axis=1)
        smaller[0, 1:] = weights[np.ix_(cycle, rest)].max(axis=0)
        weights = smaller


def _cycle(best: Ints, root: int) -> list[int]:
    """The nodes of a cycle of best parents, or none."""
    state = np.zeros(root + 1, np.int64)
    for start in range(root):
        node = start
        while node != root and state[node] == 0:
            state[node] = start + 1
            node = int(best[node])
        if node != root and state[node] == start + 1:
            cycle = [node]
            while int(best[cycle[-1]]) != node:
                cycle.append(int(best[cycle[-1]]))
            return cycle
    return []
