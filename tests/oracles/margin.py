"""Margin problems as dense matrices over all table entries, for generic solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from marginbayes.data import Rows
from marginbayes.graph import Dag

Floats = NDArray[np.float64]


def features(dag: Dag, cards: tuple[int, ...], cells: list[int]) -> Floats:
    """phi(class, row): for each family with the class one 1 at its entry; nothing where a member is missing."""
    parts = []
    for i, parents in enumerate(dag.parents):
        family = (*parents, i)
        if 0 not in family:
            continue
        table = np.zeros([cards[v] for v in family])
        if all(cells[v] < cards[v] for v in family):
            table[tuple(cells[v] for v in family)] = 1.0
        parts.append(table.ravel())
    return np.concatenate(parts)


def differences(dag: Dag, rows: Rows) -> list[Floats]:
    """For each row the matrix of phi(own class) - phi(other class), a line for each other class."""
    found = []
    for column in rows.codes.T.tolist():
        own = features(dag, rows.cardinalities, column)
        others = [c for c in range(rows.cardinalities[0]) if c != column[0]]
        found.append(np.array([own - features(dag, rows.cardinalities, [c, *column[1:]]) for c in others]))
    return found


def weights_of(rows: Rows) -> Floats:
    return np.ones(len(rows)) if rows.weights is None else rows.weights


def least_hinge(dag: Dag, rows: Rows) -> float:
    """L = min_u sum_n weight_n max(0, 1 - min_c Delta_nc u), by HiGHS."""
    pieces = differences(dag, rows)
    size = pieces[0].shape[1]
    blocks = [np.hstack([-d, -np.eye(len(pieces))[[n] * len(d)]]) for n, d in enumerate(pieces)]
    matrix = np.vstack(blocks)
    cost = np.concatenate([np.zeros(size), weights_of(rows)])
    bounds = [(None, None)] * size + [(0, None)] * len(pieces)
    return float(linprog(cost, matrix, -np.ones(len(matrix)), bounds=bounds, method="highs").fun)


def _hinges(cp: Any, dag: Dag, rows: Rows, w: Any, gamma: Any) -> Any:
    """sum_n weight_n max(0, gamma - min_c Delta_nc w)."""
    each = [
        k * cp.max(cp.hstack([cp.pos(gamma - d @ w), 0.0]))
        for k, d in zip(weights_of(rows), differences(dag, rows), strict=True)
    ]
    return cp.sum(cp.hstack(each))


def markov(cp: Any, dag: Dag, rows: Rows, C: float, solver: str, reference: Floats | None, pull: float) -> float:
    """Optimum of |U|^2/2 + pull s^2/2 + C hinges(U + s reference)."""
    size = differences(dag, rows)[0].shape[1]
    free, scale = cp.Variable(size), cp.Variable()
    w = free if reference is None else free + scale * reference
    goal = cp.sum_squares(free) / 2 + pull * cp.square(scale) / 2 + C * _hinges(cp, dag, rows, w, 1.0)
    return float(cp.Problem(cp.Minimize(goal)).solve(solver=solver))


def convex(cp: Any, dag: Dag, rows: Rows, B: float) -> tuple[float, float, Floats]:
    """Optimum, gamma and w of (14): 1/(2 gamma^2) + B hinges, rows of tables summing to at most one, by Clarabel."""
    size = differences(dag, rows)[0].shape[1]
    w, gamma, term = cp.Variable(size), cp.Variable(), cp.Variable()
    rules, start = [cp.power(gamma, -2) <= 2 * term], 0
    for i, parents in enumerate(dag.parents):
        family = (*parents, i)
        if 0 not in family:
            continue
        levels = rows.cardinalities[i]
        for _ in range(int(np.prod([rows.cardinalities[v] for v in parents]))):
            rules.append(cp.log_sum_exp(w[start : start + levels]) <= 0)
            start += levels
    problem = cp.Problem(cp.Minimize(term + B * _hinges(cp, dag, rows, w, gamma)), rules)
    value = problem.solve(solver="CLARABEL")
    return float(value), float(gamma.value), np.asarray(w.value)


def hybrid(
    cp: Any, dag: Dag, rows: Rows, B: float, target: float, kind: str = "laplace", smoothing: float = 1.0
) -> float:
    """Optimum of -a.w + B hinges, rows of tables summing to at most one, by Clarabel; a the smoothed counts."""
    cards, amounts, rules, start = rows.cardinalities, [], [], 0
    own = sum(
        k * features(dag, cards, column) for k, column in zip(weights_of(rows), rows.codes.T.tolist(), strict=True)
    )
    w = cp.Variable(len(own))
    for i, parents in enumerate(dag.parents):
        if 0 not in (*parents, i):
            continue
        lines = int(np.prod([cards[v] for v in parents]))
        amounts.append(np.full(lines * cards[i], smoothing / (1 if kind == "laplace" else lines * cards[i])))
        rules += [cp.log_sum_exp(w[start + k * cards[i] : start + (k + 1) * cards[i]]) <= 0 for k in range(lines)]
        start += lines * cards[i]
    goal = -(own + np.concatenate(amounts)) @ w + B * _hinges(cp, dag, rows, w, target)
    return float(cp.Problem(cp.Minimize(goal), rules).solve(solver="CLARABEL"))
