"""Several correlated labels per row: a tree over the labels, and observed children of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logsumexp

from marginbayes.sequence.examples import Examples, Expectation, TableRows

__all__ = ["TreeExamples", "TreeModel"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class TreeModel:
    """Labels with at most one label as parent each; every feature is a child of every label.

    Parameters
    ----------
    cardinalities : tuple of int
        Levels of each label.
    parents : tuple of int
        Parent of each label, -1 for a root. Several roots make a forest.
    features : tuple of int
        Levels of each observed feature.

    Notes
    -----
    The weights hold one table for each label (rows: the parent's level), then for each label the cells of all features.
    Each label has copies of the features of its own, as in the window of a chain.
    """

    cardinalities: tuple[int, ...]
    parents: tuple[int, ...]
    features: tuple[int, ...]

    def __post_init__(self) -> None:
        _parents_first(self.parents)  # a cycle is refused

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Labels, parents first."""
        return _parents_first(self.parents)

    @cached_property
    def first_cells(self) -> Integers:
        """Number of the first cell of each feature, and behind them the number of all cells."""
        return np.concatenate([[0], np.cumsum(self.features, dtype=np.int64)])

    def _rows_of(self, k: int) -> int:
        return self.cardinalities[self.parents[k]] if self.parents[k] >= 0 else 1

    @cached_property
    def _shapes(self) -> tuple[tuple[int, int], ...]:
        """Shapes of all tables: of the labels, then of the cells of each label."""
        labels = [(self._rows_of(k), c) for k, c in enumerate(self.cardinalities)]
        return (*labels, *((int(self.first_cells[-1]), c) for c in self.cardinalities))

    @cached_property
    def rows(self) -> TableRows:
        """Rows of all tables."""
        parts, count = [], 0
        for k, (height, width) in enumerate(self._shapes):
            if k < len(self.cardinalities):
                parts.append(count + np.repeat(np.arange(height), width))
                count += height
            else:
                feature = np.repeat(np.arange(len(self.features)), self.features)
                parts.append((count + feature[:, None] * width + np.arange(width)).ravel())
                count += len(self.features) * width
        return TableRows(np.concatenate(parts).astype(np.int64))

    @property
    def n_weights(self) -> int:
        """Length of a weight vector."""
        return sum(height * width for height, width in self._shapes)

    def tables(self, weights: Floats) -> tuple[list[Floats], list[Floats]]:
        """Table of each label (parent's level x own), and its cells (cell x level)."""
        ends = np.cumsum([height * width for height, width in self._shapes])
        parts = [p.reshape(shape) for p, shape in zip(np.split(weights, ends[:-1]), self._shapes, strict=True)]
        return parts[: len(self.cardinalities)], parts[len(self.cardinalities) :]

    def flatten(self, tables: Sequence[Floats], cells: Sequence[Floats]) -> Floats:
        """Weight vector of such tables."""
        return np.concatenate([np.ravel(part) for part in (*tables, *cells)])

    def cells(self, codes: NDArray[Any]) -> Any:
        """One column for each level of each feature, 1 where a row has it (rows x cells, sparse)."""
        n = codes.shape[1]
        columns, rows = [], []
        for f, levels in enumerate(self.features):
            seen = np.flatnonzero(codes[f] < levels)
            rows.append(seen)
            columns.append(self.first_cells[f] + codes[f][seen].astype(np.int64))
        at, column = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.ones(len(at)), (at, column)), shape=(n, int(self.first_cells[-1])))

    # -- inference

    def decode(self, weights: Floats, unary: Sequence[Floats]) -> tuple[Integers, Floats]:
        """Best labels of each row (rows x labels) and their score; `unary` holds the score of each label's levels."""
        tables, _ = self.tables(weights)
        up, best_child = [u.copy() for u in unary], {}
        total = np.zeros(len(unary[0]))
        for k in reversed(self.order):
            together = up[k][:, None, :] + tables[k]
            best_child[k] = together.argmax(axis=2)
            value = together.max(axis=2)
            if self.parents[k] >= 0:
                up[self.parents[k]] += value
            else:
                total += value[:, 0]
        labels = np.empty((len(total), len(self.cardinalities)), np.int64)
        for k in self.order:
            above = labels[:, self.parents[k]] if self.parents[k] >= 0 else np.zeros(len(total), np.int64)
            labels[:, k] = best_child[k][np.arange(len(total)), above]
        return labels, total

    def marginals(self, weights: Floats, unary: Sequence[Floats]) -> tuple[list[Floats], Floats]:
        """P(parent's level, own level) for each row and label, and the log of the sum over all label vectors."""
        given, log_z = self._upwards(weights, unary)
        pairs: dict[int, Floats] = {}
        for k in self.order:
            above = pairs[self.parents[k]].sum(axis=1) if self.parents[k] >= 0 else np.ones((len(log_z), 1))
            pairs[k] = above[:, :, None] * np.exp(given[k], out=given[k])
        return [pairs[k] for k in range(len(self.cardinalities))], log_z

    def log_marginals(self, weights: Floats, unary: Sequence[Floats]) -> list[Floats]:
        """log P(own level) for each row and label, of levels too improbable for a number as well."""
        given, log_z = self._upwards(weights, unary)
        logs: dict[int, Floats] = {}
        for k in self.order:
            above = logs[self.parents[k]] if self.parents[k] >= 0 else np.zeros((len(log_z), 1))
            own = logsumexp(above[:, :, None] + given[k], axis=1)
            logs[k] = own - logsumexp(own, axis=1, keepdims=True)
        return [logs[k] for k in range(len(self.cardinalities))]

    def _upwards(self, weights: Floats, unary: Sequence[Floats]) -> tuple[dict[int, Floats], Floats]:
        """log P(own level | parent's level, everything below) for each row and label, and the log of the sum."""
        tables, _ = self.tables(weights)
        up, log_z = [u.copy() for u in unary], np.zeros(len(unary[0]))
        given: dict[int, Floats] = {}
        for k in reversed(self.order):
            together = up[k][:, None, :] + tables[k]
            value = logsumexp(together, axis=2)
            given[k] = _log_shares(together, value[:, :, None])
            if self.parents[k] >= 0:
                up[self.parents[k]] += value
            else:
                log_z += value[:, 0]
        return given, log_z

    def renormalize(self, weights: Floats) -> Floats:
        """Normalised weights with the same P(labels | features) for complete rows: bottom up, Proposition 2."""
        tables, cells = (list(map(np.copy, part)) for part in self.tables(weights))
        for k in reversed(self.order):
            for first, last in zip(self.first_cells[:-1], self.first_cells[1:], strict=True):
                level = logsumexp(cells[k][first:last], axis=0)
                cells[k][first:last] -= level
                tables[k] += level
            level = logsumexp(tables[k], axis=1, keepdims=True)
            tables[k] -= level
            if self.parents[k] >= 0:
                tables[self.parents[k]] += level[:, 0]
        return self.flatten(tables, cells)


def _log_shares(logs: Floats, total: Floats) -> Floats:
    """Logs of the shares of the last axis in their sum; equal ones where all is impossible."""
    shares = np.full_like(logs, -np.log(logs.shape[-1]))
    np.subtract(logs, total, out=shares, where=total > -np.inf)
    return shares


def _parents_first(parents: tuple[int, ...]) -> tuple[int, ...]:
    order: list[int] = []
    while len(order) < len(parents):
        ready = [k for k, p in enumerate(parents) if k not in order and (p < 0 or p in order)]
        if not ready:
            raise ValueError(f"the parents {parents} form a cycle")
        order += ready
    return tuple(order)


class TreeExamples(Examples):
    """Rows with several labels each.

    Parameters
    ----------
    model : TreeModel
        Which weights there are.
    cells : sparse matrix
        From `TreeModel.cells`.
    labels : array of shape (rows, labels)
        Level of each target.
    weights : array of float, default=None
        Weight of each row.
    """

    def __init__(self, model: TreeModel, cells: Any, labels: Integers, weights: Floats | None = None) -> None:
        self.model, self.cells, self.rows = model, cells, model.rows
        self.truth = np.asarray(labels, np.int64)
        self.labels = self.truth.ravel()
        self.weights = np.ones(len(self.truth)) if weights is None else np.asarray(weights, np.float64)

    def describe(self) -> dict[str, Any]:
        """Shape of the model."""
        model = self.model
        return {
            "model": "tree",
            "label_cardinalities": list(model.cardinalities),
            "parents": list(model.parents),
            "cardinalities": list(model.features),
        }

    def labels_of(self, labels: Integers, example: int) -> Integers:
        """The part of a labelling that belongs to one row."""
        return np.asarray(labels.reshape(self.truth.shape)[example])

    def loss(self, labels: Integers) -> Floats:
        """Number of wrong labels in each row."""
        return np.asarray((labels.reshape(self.truth.shape) != self.truth).sum(axis=1), np.float64)

    def joint_features(self, labels: Integers) -> Floats:
        """Weighted sum over the rows of the features of a labelling."""
        return np.asarray(self.each_features(labels).T @ self.weights)

    def each_features(self, labels: Integers) -> Any:
        """Features of each row under a labelling, not weighted."""
        chosen, model = labels.reshape(self.truth.shape), self.model
        columns, rows, start = [], [], 0
        entries = self.cells.tocoo()
        for k, (height, width) in enumerate(model._shapes):
            label = k % len(model.cardinalities)
            if k < len(model.cardinalities):
                above = chosen[:, model.parents[k]] if model.parents[k] >= 0 else 0
                columns.append(start + above * width + chosen[:, k])
                rows.append(np.arange(len(chosen)))
            else:
                columns.append(start + entries.col * width + chosen[entries.row, label])
                rows.append(entries.row)
            start += height * width
        at, column = np.concatenate(rows), np.concatenate(columns)
        return csr_array((np.ones(len(at)), (at, column)), shape=(len(chosen), model.n_weights))

    def _unary(self, weights: Floats, margin: float) -> list[Floats]:
        _, cells = self.model.tables(weights)
        scores = [np.asarray(self.cells @ own) + margin for own in cells]
        for k, own in enumerate(scores):
            own[np.arange(len(own)), self.truth[:, k]] -= margin
        return scores

    def decode(self, weights: Floats, margin: float = 0.0) -> tuple[Integers, Floats]:
        """The labelling of greatest score plus `margin` times loss, by messages from the leaves up."""
        labels, values = self.model.decode(weights, self._unary(weights, margin))
        return labels.ravel(), values

    def expect(self, weights: Floats, margin: float = 0.0) -> Expectation:
        """Log partition and expectations, by messages up and down the tree."""
        pairs, log_z = self.model.marginals(weights, self._unary(weights, margin))
        tables, cells, loss = [], [], 0.0
        for k, pair in enumerate(pairs):
            node = pair.sum(axis=1) * self.weights[:, None]
            tables.append(np.einsum("n,nij->ij", self.weights, pair))
            cells.append(np.asarray(self.cells.T @ node))
            loss += float(node.sum() - node[np.arange(len(node)), self.truth[:, k]].sum())
        return Expectation(log_z, self.model.flatten(tables, cells), loss)
