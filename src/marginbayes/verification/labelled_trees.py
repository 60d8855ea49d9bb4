"""Rows with a tree of labels for the check of their certificates: every label vector is written out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, whole
from marginbayes.verification.onehot import check_graph

__all__ = ["LabelledTrees"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# A check by enumeration is out of the question beyond so many label vectors times rows.
MOST = 50_000_000


class LabelledTrees:
    """The same questions as for chains; label vectors are enumerated, which shares nothing with messages in a tree."""

    def __init__(self, evidence: Mapping[str, Any], codes: Integers, weights: Floats) -> None:
        self.cards = [int(c) for c in evidence["label_cardinalities"]]
        self.parents = list(evidence["parents"])
        check_graph([[] if p == -1 else [p] for p in self.parents], len(self.cards))
        self.cardinalities = [int(c) for c in evidence["cardinalities"]]
        n = len(self.cards)
        if len(codes) != n + len(self.cardinalities) or len(self.parents) != n:
            raise CertificateError("the data have another number of targets or features than the certified model")
        if np.prod([float(c) for c in self.cards]) * codes.shape[1] > MOST:
            raise CertificateError("there are too many label vectors to enumerate them")
        self.labels, self.seen, self.weights = codes[:n].T, codes[n:], weights
        self.vectors = np.array(list(product(*map(range, self.cards))), np.int64)

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

    def _scores(self, vector: Floats, margin: float) -> tuple[Floats, Floats]:
        """Score plus margin times loss of every label vector of every row (rows x vectors), and the loss."""
        tables, cells = self.split(vector)
        score = np.zeros((len(self.labels), len(self.vectors)))
        for k, table in enumerate(tables):
            above = self.vectors[:, self.parents[k]] if self.parents[k] >= 0 else 0
            score += table[above, self.vectors[:, k]]
            for column, levels, cell in zip(self.seen, self.cardinalities, cells[k], strict=True):
                own = np.where((column < levels)[:, None], cell[np.minimum(column, levels - 1)], 0.0)
                score += own[:, self.vectors[:, k]]
        loss = (self.vectors[None] != self.labels[:, None, :]).sum(axis=2)
        return score + margin * loss, loss.astype(np.float64)

    def hinges(self, vector: Floats, margin: float) -> Floats:
        """For each row how far the greatest score plus margin times loss is above the score of the truth."""
        score, _ = self._scores(vector, margin)
        truth = np.ravel_multi_index(tuple(self.labels.T), self.cards)  # it has no loss
        return np.asarray(score.max(axis=1) - score[np.arange(len(score)), truth])

    def expected(self, vector: Floats, margin: float) -> tuple[Floats, float]:
        """Weighted sums of expected features and expected loss under exp(score + margin * loss), normalised."""
        score, loss = self._scores(vector, margin)
        chances = np.exp(score - score.max(axis=1, keepdims=True))
        chances *= (self.weights / chances.sum(axis=1))[:, None]
        total = np.zeros(len(vector))
        for labels, share in zip(self.vectors, chances.T, strict=True):
            total += self.features(np.broadcast_to(labels, self.labels.shape), range(len(share)), share)
        return total, float((chances * loss).sum())
