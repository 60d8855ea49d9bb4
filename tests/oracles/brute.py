"""Slow answers by enumeration: the whole joint table of a small network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginbayes.data import Rows, Schema, Variable
from marginbayes.graph import Dag
from marginbayes.network import Network

Floats = NDArray[np.float64]


def random_dag(rng: np.random.Generator, n: int, most_parents: int) -> Dag:
    """A graph whose order of variables has nothing to do with their indices."""
    order = rng.permutation(n)
    parents: list[tuple[int, ...]] = [()] * n
    for k, i in enumerate(order):
        count = min(k, int(rng.integers(0, most_parents + 1)))
        parents[i] = tuple(int(p) for p in rng.choice(order[:k], count, replace=False))
    return Dag(tuple(f"v{i}" for i in range(n)), tuple(parents))


def random_network(
    rng: np.random.Generator, dag: Dag, cardinalities: tuple[int, ...] | None = None, zeros: float = 0.0
) -> Network:
    """Random tables; a share `zeros` of the entries is zero."""
    cards = cardinalities or tuple(int(c) for c in rng.integers(1, 4, len(dag.names)))
    tables = []
    for i, parents in enumerate(dag.parents):
        table = rng.dirichlet(np.ones(cards[i]), size=tuple(cards[p] for p in parents))
        table = np.where(rng.random(table.shape) < zeros, 0.0, table)
        table[..., 0] += table.sum(axis=-1) == 0
        with np.errstate(divide="ignore"):
            tables.append(np.log(table / table.sum(axis=-1, keepdims=True)))
    schema = Schema(tuple(Variable(n, tuple(range(c))) for n, c in zip(dag.names, cards, strict=True)))
    return Network(schema, dag, tuple(tables))


def joint_table(network: Network) -> Floats:
    """Log probability of every assignment of all variables, one axis for each."""
    cards = network.schema.cardinalities
    joint = np.zeros(cards)
    for assignment in np.ndindex(*cards):
        for i, table in enumerate(network.tables):
            joint[assignment] += table[tuple(assignment[p] for p in network.dag.parents[i])][assignment[i]]
    return joint


def log_joint(network: Network, rows: Rows, target: int = 0) -> Floats:
    """log P(target, observed cells) for each row, by summing the joint table."""
    joint, answers = joint_table(network), []
    for codes in rows.codes.T:
        at = tuple(slice(None) if i == target or c == rows.cardinalities[i] else int(c) for i, c in enumerate(codes))
        free = [i for i, s in enumerate(at) if isinstance(s, slice)]
        with np.errstate(divide="ignore"):
            answers.append(logsumexp(joint[at], axis=tuple(k for k, i in enumerate(free) if i != target)))
    return np.array(answers)


def with_holes(rng: np.random.Generator, rows: Rows, share: float, keep_class: bool = False) -> Rows:
    """The same rows with a share of their cells missing."""
    codes = rows.codes.copy()
    gone = rng.random(codes.shape) < share
    if keep_class:
        gone[0] = False
    codes[gone] = np.broadcast_to(np.array(rows.cardinalities)[:, None], codes.shape)[gone]
    return Rows(codes, rows.cardinalities, rows.weights)
