"""Chains of labels: a tied table of transitions with start and end, and tables of the observed children."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.sequence.examples import Examples, Expectation, TableRows

__all__ = ["ChainExamples", "ChainModel", "ChainScores"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Cells = NDArray[np.int32]


class ChainScores(NamedTuple):
    """Weights arranged as the kernels want them: start[s], step[s, label], end[s], emission[cell, label]."""

    start: Floats
    step: Floats
    end: Floats
    emission: Floats


@dataclass(frozen=True)
class ChainModel:
    """Hidden-Markov-shaped model: the label depends on the last `order` labels, the observed children on the label.

    Parameters
    ----------
    n_labels : int
        Number of different labels.
    cardinalities : tuple of int
        Levels of each observed feature.
    window : int, default=1
        Odd number of positions whose features are children of a label (Figure 8 of Guo, Wilkinson & Schuurmans 2005):
        with 7, those up to three before and after it. A neighbour outside the sequence is a level of its own.
    order : {1, 2}, default=1
        How many labels before it a label depends on.

    Notes
    -----
    A weight vector holds one row for the first label; one row for each state with all next labels and the end; and for
    each child one column of labels for each level. A missing observation adds nothing to a score, which in normalised
    tables means that it is summed out.
    """

    n_labels: int
    cardinalities: tuple[int, ...]
    window: int = 1
    order: int = 1

    def __post_init__(self) -> None:
        checks.number("window", self.window, _is_odd, "an odd number of positions, such as 1 or 7")
        checks.whole("order", self.order, 1, 2, note=": a label may depend on the last 1 or 2 labels")

    # -- the shape

    @cached_property
    def children(self) -> tuple[tuple[int, int], ...]:
        """Feature and shift of each child of a label; the label's own position has the shift 0."""
        reach = self.window // 2
        return tuple((f, shift) for f in range(len(self.cardinalities)) for shift in range(-reach, reach + 1))

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Levels of each child; neighbours have one more, for positions outside the sequence."""
        return tuple(self.cardinalities[f] + (shift != 0) for f, shift in self.children)

    @cached_property
    def first_cells(self) -> Integers:
        """Number of the first cell of each child, and behind them the number of all cells."""
        return np.concatenate([[0], np.cumsum(self.levels, dtype=np.int64)])

    @cached_property
    def label_of(self) -> Integers:
        """Label of each state: the labels themselves; for order 2 the first labels, then pairs of labels."""
        labels = np.arange(self.n_labels)
        return labels if self.order == 1 else np.concatenate([labels, np.tile(labels, self.n_labels)])

    @cached_property
    def successor(self) -> Integers:
        """State after each state and next label."""
        labels = np.arange(self.n_labels)
        if self.order == 1:
            return np.tile(labels, (self.n_labels, 1))
        return np.asarray(self.n_labels + self.label_of[:, None] * self.n_labels + labels)

    @property
    def n_states(self) -> int:
        """Number of states."""
        return len(self.label_of)

    @cached_property
    def n_weights(self) -> int:
        """Length of a weight vector."""
        return int(self.n_labels + self.n_states * (self.n_labels + 1) + self.first_cells[-1] * self.n_labels)

    @cached_property
    def rows(self) -> TableRows:
        """Rows of the tables: the start, one for each state, one for each child and label."""
        start = np.zeros(self.n_labels, np.int64)
        steps = 1 + np.repeat(np.arange(self.n_states), self.n_labels + 1)
        child = np.repeat(np.arange(len(self.levels)), self.levels)
        emission = 1 + self.n_states + child[:, None] * self.n_labels + np.arange(self.n_labels)
        return TableRows(np.concatenate([start, steps, emission.ravel()]))

    # -- weights

    def flatten(self, start: Floats, steps: Floats, emission: Floats) -> Floats:
        """Weight vector of the first labels, the steps (the end last), and the cells."""
        return np.concatenate([start, steps.ravel(), emission.ravel()])

    def tables(self, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """First labels; steps of each state, the end last; labels of each cell."""
        first, second = self.n_labels, self.n_labels + self.n_states * (self.n_labels + 1)
        steps = weights[first:second].reshape(self.n_states, self.n_labels + 1)
        return weights[:first], steps, weights[second:].reshape(-1, self.n_labels)

    def scores(self, weights: Floats) -> ChainScores:
        """The same as the kernels want it: arrays of their own, since a model read from disk may be read-only."""
        first, steps, emission = self.tables(weights)
        start = np.full(self.n_states, -np.inf)
        start[: self.n_labels] = first
        return ChainScores(start, steps[:, :-1].copy(), steps[:, -1].copy(), emission.copy())

    def tables_of(self, own: ChainScores) -> tuple[Floats, Floats, Floats, Integers, Integers]:
        """What inference needs besides the scores of labels: starts, steps, ends, successors, labels of states."""
        return own.start, own.step, own.end, self.successor.copy(), self.label_of.copy()

    # -- observations

    def cells(self, codes: NDArray[Any], offsets: Integers) -> Cells:
        """Cell of each child at each position, -1 where missing, from the codes (features x positions)."""
        n = codes.shape[1]
        chain = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        cells = np.empty((n, len(self.children)), np.int32)
        for j, (feature, shift) in enumerate(self.children):
            at = np.arange(n) + shift
            near = np.clip(at, 0, max(n - 1, 0))
            inside = (at == near) & (chain[near] == chain)
            code = np.where(inside, codes[feature][near].astype(np.int64), -1)
            missing = code == self.cardinalities[feature]
            code[~inside] = self.cardinalities[feature]
            cells[:, j] = np.where(missing, -1, self.first_cells[j] + code)
        return cells

    def decode(self, weights: Floats, cells: Cells, offsets: Integers) -> tuple[Integers, Floats]:
        """Best labels of each chain, and their score."""
        from marginbayes.kernels.chains import label_scores, viterbi

        own = self.scores(weights)
        scores = label_scores(cells, own.emission, np.empty(0, np.int64), 0.0)
        labels, best = viterbi(scores, offsets, *self.tables_of(own))
        return labels, best

    def marginals(self, weights: Floats, cells: Cells, offsets: Integers) -> tuple[Floats, Floats]:
        """Probability of each label at each position, and the log of the sum over all labellings of each chain."""
        from marginbayes.kernels.chains import forward_backward, label_scores

        own = self.scores(weights)
        scores = label_scores(cells, own.emission, np.empty(0, np.int64), 0.0)
        log_z, node, *_ = forward_backward(scores, offsets, *self.tables_of(own), np.ones(len(offsets) - 1))
        return node, log_z

    def log_marginals(self, weights: Floats, cells: Cells, offsets: Integers) -> Floats:
        """Log probability of each label at each position, of labels too improbable for a number as well."""
        from marginbayes.kernels.chain_logs import log_marginals
        from marginbayes.kernels.chains import label_scores

        own = self.scores(weights)
        scores = label_scores(cells, own.emission, np.empty(0, np.int64), 0.0)
        return np.asarray(log_marginals(scores, offsets, *self.tables_of(own)))


class ChainExamples(Examples):
    """Labelled chains.

    Parameters
    ----------
    model : ChainModel
        Which weights there are.
    cells : array of shape (positions, children)
        From `ChainModel.cells`.
    offsets : array of int
        Chain i has the positions ``offsets[i]:offsets[i + 1]``.
    labels : array of int
        Label of each position.
    weights : array of float, default=None
        Weight of each chain.
    """

    def __init__(
        self, model: ChainModel, cells: Cells, offsets: Integers, labels: Integers, weights: Floats | None = None
    ) -> None:
        self.model, self.cells, self.offsets = model, cells, np.asarray(offsets, np.int64)
        self.labels = np.asarray(labels, np.int64)
        self.weights = np.ones(len(offsets) - 1) if weights is None else np.asarray(weights, np.float64)
        self.rows = model.rows
        self._chain = np.repeat(np.arange(len(self.weights)), np.diff(self.offsets))
        self._position_weights = self.weights[self._chain]

    def describe(self) -> dict[str, Any]:
        """Shape of the model, and lengths of the chains."""
        model = self.model
        return {
            "model": "chain",
            "labels": model.n_labels,
            "cardinalities": list(model.cardinalities),
            "window": int(model.window),
            "order": int(model.order),
            "lengths": np.diff(self.offsets),
        }

    def labels_of(self, labels: Integers, example: int) -> Integers:
        """The part of a labelling that belongs to one chain."""
        return labels[self.offsets[example] : self.offsets[example + 1]]

    def loss(self, labels: Integers) -> Floats:
        """Number of wrong labels in each chain."""
        return np.bincount(self._chain, labels != self.labels, len(self.weights)).astype(np.float64, copy=False)

    def joint_features(self, labels: Integers) -> Floats:
        """Weighted sum over the chains of the features of a labelling."""
        index, chain = self._uses(labels)
        counts = np.bincount(index, self.weights[chain], self.model.n_weights)
        return counts.astype(np.float64, copy=False)

    def each_features(self, labels: Integers) -> Any:
        """Features of each chain under a labelling, not weighted."""
        from scipy.sparse import csr_array

        index, chain = self._uses(labels)
        shape = (len(self.weights), self.model.n_weights)
        return csr_array((np.ones(len(index)), (chain, index)), shape=shape)

    def _uses(self, labels: Integers) -> tuple[Integers, Integers]:
        """Every weight that a labelling uses, as often as it does, and the chain that uses it."""
        model, first, last = self.model, self.offsets[:-1], self.offsets[1:] - 1
        states = labels.copy()
        inner = np.ones(len(labels), bool)
        inner[first] = False
        later = np.flatnonzero(inner)
        if model.order == 2:
            states[later] = model.n_labels * (1 + labels[later - 1]) + labels[later]
        steps = model.n_labels + states * (model.n_labels + 1)
        position, child = np.nonzero(self.cells >= 0)
        cells = model.n_weights - model.first_cells[-1] * model.n_labels
        cells = cells + self.cells[position, child].astype(np.int64) * model.n_labels + labels[position]
        index = np.concatenate([labels[first], steps[later - 1] + labels[later], steps[last] + model.n_labels, cells])
        at = np.concatenate([first, later, last, position])
        return index, self._chain[at]

    def decode(self, weights: Floats, margin: float = 0.0) -> tuple[Integers, Floats]:
        """The labelling of greatest score plus `margin` times loss, by a Viterbi pass."""
        from marginbayes.kernels.chains import label_scores, viterbi

        own = self.model.scores(weights)
        scores = label_scores(self.cells, own.emission, self.labels, margin)
        labels, best = viterbi(scores, self.offsets, *self.model.tables_of(own))
        return labels, best

    def expect(self, weights: Floats, margin: float = 0.0) -> Expectation:
        """Log partition and expectations, by a forward and a backward pass."""
        from marginbayes.kernels.chains import add_expected, forward_backward, label_scores

        model, own = self.model, self.model.scores(weights)
        scores = label_scores(self.cells, own.emission, self.labels, margin)
        tables = model.tables_of(own)
        log_z, node, starts, steps, ends = forward_backward(scores, self.offsets, *tables, self.weights)
        emission = np.zeros_like(own.emission)
        add_expected(self.cells, node, self.offsets, self.weights, emission)
        features = model.flatten(starts[: model.n_labels], np.column_stack([steps, ends]), emission)
        wrong = 1.0 - node[np.arange(len(node)), self.labels]
        return Expectation(log_z, features, float((wrong * self._position_weights).sum()))


def _is_odd(window: float) -> bool:
    return isinstance(window, (int, np.integer)) and window > 0 and window % 2 == 1
