"""Structured models by enumeration: every labelling of every example, written out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import minimize

from marginbayes.sequence import ChainExamples, ChainModel, TreeExamples, TreeModel


def chain_sample(
    seed: int,
    lengths: tuple[int, ...] = (1, 3, 2, 4),
    *,
    n_labels: int = 2,
    window: int = 1,
    order: int = 1,
    missing: float = 0.1,
    weights: bool = False,
) -> ChainExamples:
    """Small random labelled chains with two features, the first of which tells something of the label."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(offsets[-1])
    labels = rng.integers(0, n_labels, n)
    first = np.where(rng.random(n) < 0.7, labels % 3, rng.integers(0, 3, n))
    second = np.where(rng.random(n) < missing, 2, rng.integers(0, 2, n))
    model = ChainModel(n_labels, (3, 2), window, order)
    amounts = rng.choice([0.5, 1.0, 2.0], len(lengths)) if weights else None
    return ChainExamples(model, model.cells(np.array([first, second]), offsets), offsets, labels, amounts)


def tree_sample(seed: int, n: int = 12, parents: tuple[int, ...] = (-1, 0, 0)) -> TreeExamples:
    """Small random rows with three labels and two features, one cell in ten missing."""
    rng = np.random.default_rng(seed)
    cards = (2, 3, 2)[: len(parents)]
    labels = np.array([rng.integers(0, c, n) for c in cards]).T
    codes = np.array([np.where(rng.random(n) < 0.7, labels[:, 0], rng.integers(0, 3, n)), rng.integers(0, 3, n)])
    model = TreeModel(cards, parents, (3, 2))
    return TreeExamples(model, model.cells(codes), labels)


def sizes(examples: Any) -> list[tuple[int, ...]]:
    """Numbers of levels of the labels of each example."""
    if isinstance(examples, ChainExamples):
        return [(examples.model.n_labels,) * int(n) for n in np.diff(examples.offsets)]
    return [examples.model.cardinalities] * len(examples.weights)


def every_labelling(examples: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Each labelling of one example, the others being right: the example and the flat labels of all."""
    start = 0
    for i, cards in enumerate(sizes(examples)):
        for vector in product(*map(range, cards)):
            labels = examples.labels.copy()
            labels[start : start + len(cards)] = vector
            yield i, labels
        start += len(cards)


def slow_features(examples: Any, labels: np.ndarray, example: int) -> np.ndarray:
    """Joint features of one example, cell by cell."""
    if isinstance(examples, ChainExamples):
        return _chain_features(examples, labels, example)
    return _tree_features(examples, labels.reshape(examples.truth.shape), example)


def _chain_features(examples: ChainExamples, labels: np.ndarray, i: int) -> np.ndarray:
    model, first, last = examples.model, examples.offsets[i], examples.offsets[i + 1]
    start, steps, emission = (np.zeros_like(t) for t in model.tables(np.zeros(model.n_weights)))
    start[labels[first]] += 1
    state = labels[first]
    for t in range(first, last):
        if t > first:
            steps[state, labels[t]] += 1
            state = labels[t] if model.order == 1 else model.n_labels * (1 + labels[t - 1]) + labels[t]
        for cell in examples.cells[t]:
            if cell >= 0:
                emission[cell, labels[t]] += 1
    steps[state, -1] += 1
    return model.flatten(start, steps, emission)


def _tree_features(examples: TreeExamples, labels: np.ndarray, i: int) -> np.ndarray:
    model = examples.model
    tables, cells = ([np.zeros_like(t) for t in part] for part in model.tables(np.zeros(model.n_weights)))
    for k, parent in enumerate(model.parents):
        tables[k][labels[i, parent] if parent >= 0 else 0, labels[i, k]] += 1
        for cell in np.flatnonzero(examples.cells.toarray()[i]):
            cells[k][cell, labels[i, k]] += 1
    return model.flatten(tables, cells)


def written_out(examples: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every labelling of every example: the example, the lead of the truth in features, and the loss."""
    owners, leads, losses = [], [], []
    for i, labels in every_labelling(examples):
        owners.append(i)
        leads.append(slow_features(examples, examples.labels, i) - slow_features(examples, labels, i))
        losses.append(float((labels != examples.labels).sum()))
    return np.array(owners), np.array(leads), np.array(losses)


def margin_optimum(examples: Any, strength: float, margin: float, counts: np.ndarray | None) -> float:
    """Optimum of the margin problem by a generic solver (SLSQP) with a constraint for every labelling.

    With counts: likelihood + margin over tables; without: half the squared length of the weights.
    """
    owners, leads, losses = written_out(examples)
    d, n = leads.shape[1], len(examples.weights)
    pick = np.eye(n)[owners]

    def value(z: np.ndarray) -> tuple[float, np.ndarray]:
        w, slack = z[:d], z[d:]
        own = 0.5 * w @ w if counts is None else -counts @ w
        slope = w if counts is None else -counts
        return own + strength * examples.weights @ slack, np.concatenate([slope, strength * examples.weights])

    constraints: list[dict[str, Any]] = [
        {
            "type": "ineq",
            "fun": lambda z: leads @ z[:d] + pick @ z[d:] - margin * losses,
            "jac": lambda _: np.hstack([leads, pick]),
        }
    ]
    if counts is not None:
        rows = np.eye(examples.rows.count)[:, examples.rows.row_of]
        constraints.append(
            {
                "type": "ineq",
                "fun": lambda z: 1.0 - rows @ np.exp(z[:d]),
                "jac": lambda z: np.hstack([-rows * np.exp(z[:d]), np.zeros((len(rows), n))]),
            }
        )
    start = np.zeros(d) if counts is None else examples.rows.normalised(np.log(counts))
    slack = np.full(n, margin * losses.max() - (leads @ start).min())
    options = {"maxiter": 1000, "ftol": 1e-9}
    found = minimize(
        value, np.concatenate([start, slack]), jac=True, method="SLSQP", constraints=constraints, options=options
    )
    assert found.success, found.message
    return float(found.fun)
