"""Rows as the cells of tables that they use, computed anew from codes: for checks of margins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, whole

__all__ = ["OneHot", "check_cost", "check_graph", "pair_values"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Beyond this, scores lose digits that count when they are subtracted.
LARGE = 1e4
# From this cost of a missing margin on, digits count sooner; beyond the other nothing can be said.
DEAR, DEAREST = 1e3, 1e9


@dataclass(frozen=True)
class OneHot:
    """Distinct rows in lexicographic order of (class, cells), with summed weights.

    A cell is an assignment of the members of a family besides the class, families in the order of their variables, the
    class itself first; -1 where a member is missing. `groups` lists, for each family, its entries (cells x classes,
    flat) as an array (rows of its table x levels).
    """

    labels: Integers
    cells: Integers
    weights: Floats
    n_cells: int
    n_classes: int
    groups: list[Integers]

    @classmethod
    def of(cls, evidence: Mapping[str, Any], codes: Integers, weights: Floats) -> OneHot:
        """From the graph in the evidence and the codes, class first, but rows without a class or of weight zero."""
        parents, cards = evidence["parents"], evidence["cardinalities"]
        check_graph(parents, len(cards))
        known = (codes[0] < cards[0]) & (weights > 0)
        codes, weights = codes[:, known], weights[known]
        columns, groups, start = [codes[0]], [], 0
        for child in [i for i in range(len(codes)) if i == 0 or 0 in parents[i]]:
            family = [*parents[child], child]
            others = [v for v in family if v != 0]
            columns.append(_cells(codes, others, cards, start))
            sizes = [cards[v] for v in others]
            entries = start * cards[0] + np.arange(math.prod(sizes) * cards[0]).reshape(*sizes, cards[0])
            groups.append(np.moveaxis(entries, -1, family.index(0)).reshape(-1, cards[child]))
            start += math.prod(sizes)
        keys, inverse = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
        summed = np.bincount(inverse.reshape(-1), weights, minlength=len(keys)).astype(np.float64)
        return cls(keys[:, 0], keys[:, 1:], summed, start, cards[0], groups)

    def scores(self, table: Floats) -> Floats:
        """Score of every class in every row; `table` is cells x classes."""
        padded = np.vstack([table, np.zeros((1, self.n_classes))])  # the cell -1 is the last line
        total = np.zeros((len(self.labels), self.n_classes))
        for column in self.cells.T:
            total += padded[column]
        return total

    def margins(self, table: Floats, cost: float = 1.0) -> Floats:
        """Own score less that of each class, infinite for the own class; exact where rounding would show."""
        at, scores, sizes = np.arange(len(self.labels)), self.scores(table), self.scores(np.abs(table))
        found: Floats = scores[at, self.labels][:, None] - scores
        sizes += sizes[at, self.labels][:, None]
        for n, c in zip(*np.nonzero((sizes * max(1.0, cost / DEAR) > LARGE) & np.isfinite(sizes)), strict=True):
            found[n, c] = self.margin(table, n, c)
        found[at, self.labels] = np.inf
        return found

    def margin(self, table: Floats, row: int, rival: int) -> float:
        """The margin of one row over one class, rounded once."""
        used = self.cells[row][self.cells[row] >= 0]
        return math.fsum([*table[used, self.labels[row]], *-table[used, rival]])

    def gathered(self, duals: Floats) -> Floats:
        """Sum over pairs (row, rival) of the dual times the difference of their features; cells x classes."""
        signed = -duals
        signed[np.arange(len(self.labels)), self.labels] += duals.sum(axis=1)
        out = np.zeros((self.n_cells + 1, self.n_classes))
        for column in self.cells.T:
            for c in range(self.n_classes):
                out[:, c] += np.bincount(column % (self.n_cells + 1), signed[:, c], minlength=self.n_cells + 1)
        return out[:-1]


def check_cost(name: str, cost: float) -> None:
    """Refuse a cost of missing margins that is none, or with which rounding decides."""
    if not 0 < cost <= DEAREST:
        raise CertificateError(f"{name}={cost!r} must be positive, and at most {DEAREST:g}")


def check_graph(parents: Sequence[Sequence[int]], n: int) -> None:
    """Refuse what is no acyclic graph of n variables."""
    if len(parents) != n:
        raise CertificateError(f"the graph has {len(parents)} variables, the certificate is about {n}")
    waiting = {child: {whole(p, n, "a parent") for p in own} for child, own in enumerate(parents)}
    if any(len(own) != len(set(own)) for own in parents):
        raise CertificateError("a variable has one parent twice")
    while waiting:
        ready = [child for child, own in waiting.items() if not own & waiting.keys()]
        if not ready:
            raise CertificateError(f"the graph has a cycle among the variables {sorted(waiting)}")
        for child in ready:
            del waiting[child]


def pair_values(evidence: Mapping[str, Any], rows: OneHot, caps: Floats) -> Floats:
    """The duals of the evidence as rows x classes: not negative, none for the own class, within each row's cap."""
    given = evidence["duals"]
    at, classes = (np.asarray(given[key], np.int64) for key in ("rows", "classes"))
    values = np.asarray(given["values"], np.float64)
    if not (values >= 0).all():
        raise CertificateError("a multiplier is negative")
    odd = (at < 0) | (at >= len(rows.labels)) | (classes < 0) | (classes >= rows.n_classes)
    if odd.any() or (classes == rows.labels[at]).any():
        raise CertificateError("a multiplier belongs to no pair of a row and another class")
    duals = np.zeros((len(rows.labels), rows.n_classes))
    np.add.at(duals, (at, classes), values)
    sums = duals.sum(axis=1)
    if (sums > caps * (1 + 1e-9)).any():
        raise CertificateError("the multipliers of a row sum to more than its cost")
    # What rounding has put above the cap is taken away, so that the bound holds without any tolerance.
    share: Floats = np.minimum(1.0, np.divide(caps, sums, out=np.ones_like(sums), where=sums > 0))
    return np.asarray(duals * share[:, None])


def _cells(codes: Integers, members: list[int], cards: list[int], start: int) -> Integers:
    index = np.zeros(codes.shape[1], np.int64)
    missing = np.zeros(codes.shape[1], bool)
    for v in members:
        index = index * cards[v] + codes[v]
        missing |= codes[v] == cards[v]
    return np.where(missing, -1, index + start)
