"""Rows with a tree of labels for the check of their certificates: from the leaves to the roots, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, whole
from marginbayes.verification.onehot import check_graph

__all__ = ["LabelledTrees"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Gather = Callable[[Floats], Floats]


class LabelledTrees:
    """The same questions as for chains, of a forest over the labels of one row."""

    def __init__(self, evidence: Mapping[str, Any], codes: Integers, weights: Floats) -> None:
        self.cards = [int(c) for c in evidence["label_cardinalities"]]
        self.parents = list(evidence["parents"])
        check_graph([[] if p == -1 else [p] for p in self.parents], len(self.cards))
        self.cardinalities = [int(c) for c in evidence["cardinalities"]]
        n = len(self.cards)
        if len(codes) != n + len(self.cardinalities) or len(self.parents) != n:
            raise CertificateError("the data have another number of targets or features than the certified model")
        self.labels, self.seen, self.weights = codes[:n].T, codes[n:], weights
        self.below_first = sorted(range(n), key=self._depth, reverse=True)

    def _depth(self, k: int) -> int:
        depth = 0
        while self.parents[k] >= 0:
            k, depth = self.parents[k], depth + 1
        return depth

    def split(self, vector: Floats) -> tuple[list[Floats], list[list[Floats]]]:
        """Table of each label (parent x own), and for each label a table (levels x own) for each feature."""
        heights = [1 if p < 0 else self.cards[p] for p in self.parents]
        shapes = list(zip(heights, self.cards, strict=True))
        shapes += [(levels, c) for c in self.cards for levels in self.cardinalities]
        sizes = [a * b for a, b in shapes]
        if len(vector) != sum(sizes):
            raise CertificateError(f"{len(vector)} weights do not fit the tables of the certified model")
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        tables = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        n, m = len(self.cards), len(self.cardinalities)
        return tables[:n], [tables[n + k * m : n + (k + 1) * m] for k in range(n)]

    def largest_row_sum(self, vector: Floats) -> float:
        """The largest sum of the probabilities of one row."""
        tables, cells = self.split(vector)
        sums = [np.exp(t).sum(axis=1).max() for t in tables]
        return float(max([*sums, *(np.exp(t).sum(axis=0).max() for own in cells for t in own)]))

    def row_totals(self, vector: Floats) -> Floats:
        """For each entry the sum of its row."""
        tables, cells = self.split(vector)
        parts = [np.broadcast_to(t.sum(axis=1)[:, None], t.shape) for t in tables]
        parts += [np.broadcast_to(t.sum(axis=0), t.shape) for own in cells for t in own]
        return np.concatenate([np.ravel(part) for part in parts])

    def true_features(self) -> Floats:
        """Weighted counts of all entries under the true labels."""
        return self.features(self.labels, range(len(self.labels)), self.weights)

    def features(self, labellings: Any, owners: Any, amounts: Any) -> Floats:
        """Sum over label vectors of single rows of an amount times their features."""
        labels, rows, amount = np.asarray(labellings, np.int64), np.asarray(owners, np.int64), np.asarray(amounts)
        tables, cells = self.split(np.zeros(self._size()))
        for k, table in enumerate(tables):
            above = labels[:, self.parents[k]] if self.parents[k] >= 0 else np.zeros(len(labels), np.int64)
            np.add.at(table, (above, labels[:, k]), amount)
            for column, levels, cell in zip(self.seen, self.cardinalities, cells[k], strict=True):
                there = column[rows] < levels
                np.add.at(cell, (column[rows][there], labels[there, k]), amount[there])
        return np.concatenate([np.ravel(part) for part in (*tables, *(t for own in cells for t in own))])

    def _size(self) -> int:
        heights = [1 if p < 0 else self.cards[p] for p in self.parents]
        return sum(h * c for h, c in zip(heights, self.cards, strict=True)) + sum(self.cards) * sum(self.cardinalities)

    def check_labellings(self, labellings: Any, owners: Any) -> None:
        """Refuse label vectors that are not one label for each target of their row."""
        for labels, owner in zip(labellings, owners, strict=True):
            whole(owner, len(self.labels), "the row of a label vector")
            for label, levels in zip(labels, self.cards, strict=True):
                whole(label, levels, "a label")

    def losses(self, labellings: Any, owners: Any) -> Floats:
        """Number of wrong labels of each label vector of a single row."""
        chosen = self.labels[np.asarray(owners, np.int64)]
        return np.asarray((np.asarray(labellings, np.int64) != chosen).sum(axis=1), np.float64)

    # -- all label vectors at once

    def _unary(self, vector: Floats, margin: float) -> tuple[list[Floats], list[Floats]]:
        """Tables of the labels, and for each label what its levels score in each row: cells plus margin where wrong."""
        tables, cells = self.split(vector)
        scores = []
        for k, levels_of_label in enumerate(self.cards):
            score = margin * (np.arange(levels_of_label) != self.labels[:, [k]])
            for column, levels, cell in zip(self.seen, self.cardinalities, cells[k], strict=True):
                score += np.where((column < levels)[:, None], cell[np.minimum(column, levels - 1)], 0.0)
            scores.append(score)
        return tables, scores

    def _gathered(self, tables: list[Floats], unary: list[Floats], gather: Gather) -> tuple[list[Floats], list[Floats]]:
        """For each label, from the leaves: score of each of its levels with all below it, and its word to its parent.

        The word is gathered over its levels, for each level of the parent; that of a root is one number a row.
        """
        inner, words = [score.copy() for score in unary], [np.empty(0)] * len(unary)
        for k in self.below_first:
            words[k] = gather(tables[k] + inner[k][:, None, :])
            if self.parents[k] >= 0:
                inner[self.parents[k]] += words[k]
        return inner, words

    def hinges(self, vector: Floats, margin: float) -> Floats:
        """For each row how far the greatest score plus margin times loss is above the score of the truth."""
        tables, unary = self._unary(vector, margin)
        _, words = self._gathered(tables, unary, lambda scores: scores.max(axis=2))
        rows, lead = np.arange(len(self.labels)), np.zeros(len(self.labels))
        for k, (table, score) in enumerate(zip(tables, unary, strict=True)):
            own, parent = self.labels[:, k], self.parents[k]
            lead -= table[self.labels[:, parent] if parent >= 0 else 0, own] + score[rows, own]  # without any loss
            lead += words[k][:, 0] if parent < 0 else 0.0
        return lead

    def expected(self, vector: Floats, margin: float) -> tuple[Floats, float]:
        """Weighted sums of expected features and expected loss under exp(score + margin * loss), normalised."""
        tables, unary = self._unary(vector, margin)
        inner, words = self._gathered(tables, unary, _log_sum)
        totals, cells = self.split(np.zeros(len(vector)))
        shares, loss = [np.empty(0)] * len(tables), 0.0
        for k in reversed(self.below_first):
            parent = self.parents[k]
            above = self.weights[:, None] if parent < 0 else shares[parent]
            base = np.where(np.isfinite(words[k]), words[k], 0.0)  # what cannot be has no share of it
            both = above[:, :, None] * np.exp(tables[k] + inner[k][:, None, :] - base[:, :, None])
            totals[k] += both.sum(axis=0)
            shares[k] = both.sum(axis=1)
            loss += float((shares[k] * (np.arange(self.cards[k]) != self.labels[:, [k]])).sum())
            for column, levels, cell in zip(self.seen, self.cardinalities, cells[k], strict=True):
                there = column < levels
                np.add.at(cell, column[there], shares[k][there])
        return np.concatenate([np.ravel(part) for part in (*totals, *(t for own in cells for t in own))]), loss


def _log_sum(scores: Floats) -> Floats:
    """Logarithm of the sum of exponentials over the last axis."""
    top = scores.max(axis=2)
    peak = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(peak + np.log(np.exp(scores - peak[:, :, None]).sum(axis=2)))
