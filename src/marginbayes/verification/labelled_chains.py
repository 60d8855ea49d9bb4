"""Labelled chains for the check of their certificates: all chains side by side, one position after the other."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, whole

__all__ = ["LabelledChains"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# By how much rounding may move probabilities.
ROUNDING = 1e-9


class LabelledChains:
    """Chains with tied tables: what a labelling scores, the best labelling, and expectations over all of them."""

    def __init__(self, evidence: Mapping[str, Any], codes: Integers, weights: Floats) -> None:
        self.n_labels, self.window = int(evidence["labels"]), whole(evidence["window"], 1000, "the window")
        self.order = 1 + whole(evidence["order"] - 1, 2, "the order less one")
        if self.window % 2 == 0:
            raise CertificateError(f"a window of {self.window} rows has no middle")
        self.cardinalities = [int(c) for c in evidence["cardinalities"]]
        if len(codes) != 1 + len(self.cardinalities):
            raise CertificateError(f"{len(codes) - 1} features were given, {len(self.cardinalities)} are certified")
        self.positions = _positions(evidence, codes.shape[1])
        self.weights = np.array([weights[p[0]] for p in self.positions])
        for own, weight in zip(self.positions, self.weights, strict=True):
            if (weights[own] != weight).any():
                raise CertificateError("the rows of one sequence have different weights")
        self.labels = codes[0]
        self.children = self._children(codes)
        self.order_by_length = np.argsort([-len(p) for p in self.positions], kind="stable")

    def _children(self, codes: Integers) -> list[tuple[int, Integers]]:
        """For each feature and shift the number of levels and the level at each row, -1 where missing."""
        found, reach = [], self.window // 2
        for levels, column in zip(self.cardinalities, codes[1:], strict=True):
            for shift in range(-reach, reach + 1):
                seen = np.full(len(column), levels)  # outside the sequence
                for own in self.positions:
                    there = np.arange(len(own)) + shift
                    inside = (there >= 0) & (there < len(own))
                    values = column[own[there[inside]]]
                    seen[own[inside]] = np.where(values < levels, values, -1)
                found.append((levels + (shift != 0), seen))
        return found

    @property
    def n_states(self) -> int:
        """Labels; for order 2 first labels and pairs."""
        return self.n_labels if self.order == 1 else self.n_labels * (1 + self.n_labels)

    def split(self, vector: Floats) -> tuple[Floats, Floats, list[Floats]]:
        """Start, steps (states x next labels and the end), and a table (levels x labels) for each child."""
        ends = np.cumsum([self.n_labels, self.n_states * (self.n_labels + 1)])
        sizes = [levels * self.n_labels for levels, _ in self.children]
        if len(vector) != ends[-1] + sum(sizes):
            raise CertificateError(f"{len(vector)} weights do not fit the tables of the certified model")
        start, steps, rest = np.split(vector, ends)
        tables = np.split(rest, np.cumsum(sizes)[:-1])
        return start, steps.reshape(self.n_states, -1), [t.reshape(-1, self.n_labels) for t in tables]

    def largest_row_sum(self, vector: Floats) -> float:
        """The largest sum of the probabilities of one row."""
        start, steps, tables = self.split(vector)
        sums = [np.exp(start).sum(), *np.exp(steps).sum(axis=1)]
        return float(max([*sums, *(np.exp(t).sum(axis=0).max() for t in tables)]))

    def row_totals(self, vector: Floats) -> Floats:
        """For each entry the sum of its row."""
        start, steps, tables = self.split(vector)
        parts = [np.full_like(start, start.sum()), np.broadcast_to(steps.sum(axis=1)[:, None], steps.shape)]
        parts += [np.broadcast_to(t.sum(axis=0), t.shape) for t in tables]
        return np.concatenate([np.ravel(part) for part in parts])

    def true_features(self) -> Floats:
        """Weighted counts of all entries under the true labels."""
        return self.features([self.labels[own] for own in self.positions], range(len(self.positions)), self.weights)

    def features(self, labellings: list[Any], owners: Any, amounts: Any) -> Floats:
        """Sum over labellings of single chains of an amount times their features."""
        start, steps = np.zeros(self.n_labels), np.zeros((self.n_states, self.n_labels + 1))
        tables = [np.zeros((levels, self.n_labels)) for levels, _ in self.children]
        for labels, owner, amount in zip(labellings, owners, amounts, strict=True):
            states = self._states(labels)
            start[labels[0]] += amount
            np.add.at(steps, (states[:-1], labels[1:]), amount)
            steps[states[-1], -1] += amount
            for (_, seen), table in zip(self.children, tables, strict=True):
                level = seen[self.positions[owner]]
                np.add.at(table, (level[level >= 0], np.asarray(labels)[level >= 0]), amount)
        return np.concatenate([start, steps.ravel(), *(t.ravel() for t in tables)])

    def _states(self, labels: Any) -> list[int]:
        if self.order == 1:
            return list(labels)
        pairs = [self.n_labels * (1 + a) + b for a, b in pairwise(labels)]
        return [labels[0], *pairs]

    def check_labellings(self, labellings: list[Any], owners: Any) -> None:
        """Refuse labellings that are not one label for each position of their chain."""
        for labels, owner in zip(labellings, owners, strict=True):
            if len(labels) != len(self.positions[owner]):
                raise CertificateError(
                    f"a labelling has {len(labels)} labels for {len(self.positions[owner])} positions"
                )
            for label in labels:
                whole(label, self.n_labels, "a label")

    def losses(self, labellings: list[Any], owners: Any) -> Floats:
        """Number of wrong labels of each labelling of a single chain."""
        pairs = zip(labellings, owners, strict=True)
        return np.array([(np.asarray(y) != self.labels[self.positions[i]]).sum() for y, i in pairs], np.float64)

    # -- all labellings at once

    def _scores(self, vector: Floats, margin: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Start and end by state, steps as a matrix of states, and what each row adds to each state."""
        start, steps, tables = self.split(vector)
        label_of = np.arange(self.n_states) % self.n_labels
        first = np.full(self.n_states, -np.inf)
        first[: self.n_labels] = start
        matrix = np.full((self.n_states, self.n_states), -np.inf)
        for s in range(self.n_states):
            for c in range(self.n_labels):
                to = c if self.order == 1 else self.n_labels * (1 + label_of[s]) + c
                matrix[s, to] = steps[s, c]
        own = np.where(np.arange(self.n_labels) == self.labels[:, None], 0.0, margin)
        for (_, seen), table in zip(self.children, tables, strict=True):
            own = own + np.where(seen[:, None] >= 0, table[seen], 0.0)
        return first, steps[:, -1], matrix, own[:, label_of]

    def _rows_at(self, t: int) -> Integers:
        """Row of position t of each chain that is long enough, longer chains first."""
        chains = (self.positions[i] for i in self.order_by_length)
        return np.array([own[t] for own in chains if len(own) > t], np.int64)

    def _truths(self, first: Floats, matrix: Floats) -> tuple[Integers, Floats]:
        """State of each row under the true labels, and the score of the step to it."""
        states, steps = np.empty(len(self.labels), np.int64), np.empty(len(self.labels))
        for rows in self.positions:
            states[rows] = at = np.array(self._states(self.labels[rows]))
            steps[rows] = [first[at[0]], *matrix[at[:-1], at[1:]]]
        return states, steps

    def hinges(self, vector: Floats, margin: float) -> Floats:
        """For each chain how far the greatest score plus margin times loss is above the score of the truth.

        What the truth scores (it has no loss) is taken off at each position, so that sums stay small however long a
        chain is.
        """
        first, end, matrix, own = self._scores(vector, margin)
        states, steps = self._truths(first, matrix)
        own = own - own[np.arange(len(own)), states][:, None]
        rows = self._rows_at(0)
        best, value = np.empty(len(self.positions)), first - steps[rows, None] + own[rows]
        for t in range(1, len(self.positions[self.order_by_length[0]]) + 1):
            rows = self._rows_at(t)
            best[self.order_by_length[len(rows) : len(value)]] = (value[len(rows) :] + end).max(axis=1)
            value = (value[: len(rows), :, None] + matrix).max(axis=1) - steps[rows, None] + own[rows]
        return np.asarray(best - end[states[[rows[-1] for rows in self.positions]]])

    def expected(self, vector: Floats, margin: float) -> tuple[Floats, float]:
        """Weighted sums of expected features and expected loss under exp(score + margin * loss), normalised.

        Messages keep no sums along the chain, which would cost digits: at each position they are known up to a factor,
        and the probabilities there are normalised. That they are those of one distribution is checked: the pairs of
        neighbouring states must agree with the states.
        """
        first, end, matrix, own = self._scores(vector, margin)
        weights, longest = self.weights[self.order_by_length], len(self.positions[self.order_by_length[0]])
        rows = [self._rows_at(t) for t in range(longest)]
        forward = [_levelled(first + own[rows[0]])]
        for at in rows[1:]:
            forward.append(_levelled(_log_sum(forward[-1][: len(at), :, None] + matrix, 1) + own[at]))
        steps, node = np.zeros((self.n_states, self.n_labels + 1)), np.zeros((len(own), self.n_states))
        behind = np.empty((0, self.n_states))
        for t in range(longest - 1, -1, -1):
            on = len(behind)  # so many chains go on
            ahead = np.tile(end, (len(rows[t]), 1))
            ahead[:on] = _log_sum(matrix + behind[:, None, :], 2)
            node[rows[t]] = _distributions(forward[t] + ahead)
            steps[:, -1] += weights[on : len(rows[t])] @ node[rows[t][on:]]
            if on:
                both = _distributions(forward[t][:on, :, None] + matrix + behind[:, None, :])
                _check_agree(both.sum(axis=2), node[rows[t][:on]])
                _check_agree(both.sum(axis=1), node[rows[t + 1]])
                self._add_steps(steps, np.einsum("n,nij->ij", weights[:on], both))
            behind = _levelled(ahead + own[rows[t]])
        return self._gathered(weights @ node[rows[0]][:, : self.n_labels], steps, node)

    def _add_steps(self, steps: Floats, pairs: Floats) -> None:
        for s in range(self.n_states):
            first = 0 if self.order == 1 else self.n_labels * (1 + s % self.n_labels)
            steps[s, :-1] += pairs[s, first : first + self.n_labels]

    def _gathered(self, start: Floats, steps: Floats, node: Floats) -> tuple[Floats, float]:
        """Features from the expectations of states, and the expected loss."""
        by_label = node.reshape(len(node), -1, self.n_labels).sum(axis=1)
        row_weights = np.zeros(len(node))
        for own, weight in zip(self.positions, self.weights, strict=True):
            row_weights[own] = weight
        weighted = by_label * row_weights[:, None]
        tables = []
        for levels, seen in self.children:
            table = np.zeros((levels, self.n_labels))
            np.add.at(table, seen[seen >= 0], weighted[seen >= 0])
            tables.append(table)
        wrong = weighted.sum() - weighted[np.arange(len(node)), self.labels].sum()
        return np.concatenate([start, steps.ravel(), *(t.ravel() for t in tables)]), float(wrong)


def _positions(evidence: Mapping[str, Any], n_rows: int) -> list[Integers]:
    """Rows of each chain, in order."""
    chain_of_row = evidence.get("chain_of_row")
    if chain_of_row is None:
        lengths = [int(n) for n in evidence["lengths"]]
        if sum(lengths) != n_rows or min(lengths, default=0) < 1:
            raise CertificateError(f"the certified sequences have {sum(lengths)} rows, the data {n_rows}")
        return np.split(np.arange(n_rows), np.cumsum(lengths)[:-1])
    if len(chain_of_row) != n_rows:
        raise CertificateError(f"the certified sequences have {len(chain_of_row)} rows, the data {n_rows}")
    chain = np.asarray(chain_of_row, np.int64)
    order = np.argsort(chain, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(chain[order])) + 1)


def _levelled(messages: Floats) -> Floats:
    """Logarithms with the largest of each line zero."""
    return np.asarray(messages - messages.max(axis=1, keepdims=True))


def _distributions(logs: Floats) -> Floats:
    """Probabilities, those of the first index summing to one; refuses logarithms that are those of none."""
    lines = logs.reshape(len(logs), -1)
    chances = np.exp(lines - lines.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    _check_agree(chances.sum(axis=1), 1.0)
    return np.asarray(chances.reshape(logs.shape))


def _check_agree(sums: Floats, wanted: Any) -> None:
    """Refuse potentials whose probabilities rounding has spoilt: they stand for no distribution."""
    if not (np.abs(sums - wanted) <= ROUNDING).all():
        raise CertificateError("the potentials stand for no distribution: their probabilities do not sum to one")


def _log_sum(values: Floats, axis: int) -> Floats:
    top = values.max(axis=axis, keepdims=True, initial=-np.inf)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - safe).sum(axis=axis)) + np.squeeze(safe, axis))
