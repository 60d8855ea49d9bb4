"""Margins of a data set under every option, and what multipliers make of them.

For multipliers on the margin rows that are not negative, and in a sample sum to at most its weight w,

    w * min(gamma, margins) <= gamma * (w - sum of multipliers) + sum of multiplier * margin

holds for every structure. Summed over the samples the right side is a constant and a value for each option, so that its
greatest value over acyclic structures is a maximum-weight branching (Edmonds).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError

__all__ = ["Margins", "check_amounts", "check_weight", "merged"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
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

    def values(self, rows: Ints, multipliers: Floats, columns: Ints) -> Floats:
        """For some options, counted through all features, the sum over rows of multiplier times what it adds.

        Multipliers of several sets are lines of a matrix; so are then their sums.
        """
        if 8.0 * self.n_rows * self.n * (self.n + 2) > KEPT_BYTES:
            return np.asarray(multipliers @ self._columns(rows, columns))
        if self._dense is None:
            self._dense = self._columns(np.arange(self.n_rows), np.arange(self.n * (self.n + 2)))
        return np.asarray(multipliers @ self._dense.take(rows, axis=0).take(columns, axis=1))

    def _columns(self, rows: Ints, columns: Ints) -> Floats:
        out = np.zeros((len(rows), len(columns)))
        for place, (i, option) in enumerate(zip(*divmod(columns, self.n + 2), strict=True)):
            if option != 2 + i:
                out[:, place] = self.column(int(i), int(option), rows)
        return out

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
