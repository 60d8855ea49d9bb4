"""The linear relaxation of (19) for parent sets of any size, over the rows that matter, and the bound it proves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from marginbayes.graph.walks import below
from marginbayes.structure.exact.branching import ClusterProof
from marginbayes.structure.exact.clusters import (
    RelaxedFamilies,
    bound_of,
    choice_matrix,
    cluster_matrix,
    restricted,
    spread,
    weighty,
)
from marginbayes.structure.exact.families import Families
from marginbayes.structure.exact.milp import Formulation
from marginbayes.structure.exact.problem import DenseProblem

__all__ = ["MarginProof", "MarginRelaxation", "TimeUp", "climb"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Set = tuple[int, ...]

# A row that is violated by less than this is left out; rows that are added at a time.
VIOLATION, MOST_ROWS = 1e-7, 400


class TimeUp(Exception):
    """There is no time to solve the next program."""


@dataclass(frozen=True)
class MarginProof:
    """Multipliers of margin rows, which make the hinge linear, and of clusters."""

    rows: Ints
    values: Floats
    clusters: ClusterProof


class MarginRelaxation:
    """Relaxation for the tree: linear in the parent sets, concave in the margins.

    For multipliers l >= 0 of rows with sum of those of a sample <= its weight, gamma * (W - sum l) + sum over rows of
    l * margin is no less than the soft margin, and it is a sum over families, which cluster multipliers bound. `left`
    says how many seconds a program may take.
    """

    def __init__(self, problem: DenseProblem, left: Callable[[], float] = lambda: math.inf) -> None:
        self.problem, self.form, self.left = problem, Formulation(problem), left
        self.families = Families(tuple(map(tuple, self.form.sets)), tuple(np.zeros(len(own)) for own in self.form.sets))
        self.nothing = MarginProof(np.zeros(0, np.int64), np.zeros(0), ClusterProof())
        self.total = float(problem.weights.sum())
        span = sum(
            float(np.abs(problem.coefficients[:, problem.options_of(v)]).max(initial=0.0))
            for v in range(len(problem.names))
        )
        # To violate a cluster costs more than any two structures differ, so that no program is without solution. No
        # margin is above the span, however large gamma is; a larger price would be lost digits of the bound.
        self.price = 1.0 + self.total * 2.0 * (min(problem.gamma, span) + span)
        self.working = np.zeros(len(problem.sample), bool)

    def value(self, parents: Sequence[Set]) -> float:
        """Soft margin of a structure."""
        return self.form.value(parents)

    def family_values(self, proof: MarginProof) -> list[Floats]:
        """What each parent set adds to the linear function of a proof."""
        return self.form.shares(self.problem.coefficients[proof.rows].T @ proof.values)

    def raised(self, proof: MarginProof) -> tuple[list[Floats], float]:
        """What each parent set adds to the linear function, with what clusters add, and the constant."""
        flat = Families(self.families.sets, tuple(self.family_values(proof)))
        rest = self.problem.gamma * (self.total - float(proof.values.sum()))
        return proof.clusters.shifted(flat), rest - proof.clusters.total

    def solve(self, allowed: Sequence[Mask], clusters: Sequence[Set]) -> RelaxedFamilies | None:
        """Solution over the allowed parent sets; None where a variable has none. Violated rows are taken in."""
        sets, _ = restricted(self.families, allowed)
        if not all(sets):
            return None
        coefficients = self.problem.coefficients[:, np.concatenate(allowed)]
        if not self.working.any():
            self._add_rows(coefficients.mean(axis=1) * len(sets), self.problem.gamma)
        while True:
            program = _Program(self, sets, clusters, coefficients)
            shares, margins, proof = program.solve(self.left())
            if not self._add_rows(coefficients @ shares, margins):
                return RelaxedFamilies(spread(shares, allowed), bound_of(*self.raised(proof), allowed), proof)

    def _add_rows(self, found: Floats, margins: Floats | float) -> bool:
        """Take in the rows whose margin is below what the program assumes; whether there were any."""
        excess = np.broadcast_to(margins, len(self.problem.weights))[self.problem.sample] - found
        excess[self.working] = 0.0
        worst = np.argsort(-excess)[:MOST_ROWS]
        worst = worst[excess[worst] > VIOLATION]
        self.working[worst] = True
        return bool(len(worst))


class _Program:
    """One linear program: columns for parent sets, for samples that have a working row, and for violated clusters."""

    def __init__(
        self, relaxation: MarginRelaxation, sets: list[list[Set]], clusters: Sequence[Set], coefficients: Floats
    ) -> None:
        problem = relaxation.problem
        self.problem, self.clusters = problem, clusters
        self.rows = np.flatnonzero(relaxation.working)
        self.samples, place = np.unique(problem.sample[self.rows], return_inverse=True)
        width, tau, cuts = coefficients.shape[1], len(self.samples), len(clusters)
        own = sparse.csr_matrix((np.ones(len(self.rows)), (np.arange(len(self.rows)), place)), (len(self.rows), tau))
        margin = sparse.hstack(
            [-sparse.csr_matrix(coefficients[self.rows]), own, sparse.csr_matrix((len(self.rows), cuts))]
        )
        parts = [margin]
        if cuts:
            parts.append(
                -sparse.hstack([cluster_matrix(sets, clusters), sparse.csr_matrix((cuts, tau)), sparse.eye(cuts)])
            )
        self.width, self.tau, self.unit = width, tau, relaxation.form.unit
        self.arguments: dict[str, Any] = {
            # In units of the largest weight: the solver's tolerances are absolute.
            "c": np.concatenate([np.zeros(width), -problem.weights[self.samples], np.full(cuts, relaxation.price)])
            / self.unit,
            "A_ub": sparse.vstack(parts).tocsr(),
            "b_ub": np.concatenate([np.zeros(len(self.rows)), -np.ones(cuts)]),
            "A_eq": sparse.hstack([choice_matrix(sets), sparse.csr_matrix((len(sets), tau + cuts))]).tocsr(),
            "b_eq": np.ones(len(sets)),
            "bounds": [(0.0, 1.0)] * width + [(None, problem.gamma)] * tau + [(0.0, None)] * cuts,
        }

    def solve(self, seconds: float) -> tuple[Floats, Floats, MarginProof]:
        """Shares, the margin of every sample, and the proof; raises where the seconds are not enough."""
        from scipy.optimize import linprog

        if seconds <= 0.0:
            raise TimeUp
        options = {} if seconds == math.inf else {"time_limit": seconds}
        found = linprog(method="highs", options=options, **self.arguments)
        if found.status == 1:
            raise TimeUp
        if found.x is None:
            raise RuntimeError(f"the linear program was not solved: {found.message}")
        multipliers = self.unit * np.maximum(0.0, -found.ineqlin.marginals)
        margins = np.full(len(self.problem.weights), self.problem.gamma)
        margins[self.samples] = found.x[self.width : self.width + self.tau]
        proof = self._proof(multipliers[: len(self.rows)], weighty(self.clusters, multipliers[len(self.rows) :]))
        return found.x[: self.width], margins, proof

    def _proof(self, values: Floats, clusters: ClusterProof) -> MarginProof:
        """Multipliers that no tolerance of the solver has made too large."""
        sample = self.problem.sample[self.rows]
        sums = np.bincount(sample, values, len(self.problem.weights))
        values = values * (self.problem.weights / np.maximum(sums, self.problem.weights))[sample]
        some = values > 1e-12
        return MarginProof(self.rows[some], values[some] * (1.0 - 1e-15), clusters)


def climb(form: Formulation, parents: tuple[Set, ...], in_time: Callable[[], bool] = lambda: True) -> tuple[Set, ...]:
    """The structure after changing the parents of one variable at a time to the best ones, as long as one helps."""
    problem, current = form.problem, list(parents)
    place = {(o.variable, o.parents): i for i, o in enumerate(problem.options)}
    sums = problem.coefficients[:, [place[v, own] for v, own in enumerate(current)]].sum(axis=1)
    starts = np.flatnonzero(np.diff(problem.sample, prepend=-1))
    value, idle = _soft_margin(problem, sums[:, None], starts)[0], 0
    turns = cycle(range(len(current)))
    while idle < len(current) and in_time():
        v = next(turns)
        lower = below(current, v)
        options = [o for o in problem.options_of(v) if lower.isdisjoint(problem.options[o].parents)]
        rest = sums - problem.coefficients[:, place[v, current[v]]]
        values = _soft_margin(problem, rest[:, None] + problem.coefficients[:, options], starts)
        best = int(values.argmax())
        if values[best] > value + 1e-9 * max(1.0, abs(value)):
            value, current[v], idle = values[best], problem.options[options[best]].parents, 0
            sums = rest + problem.coefficients[:, options[best]]
        else:
            idle += 1
    return tuple(current)


def _soft_margin(problem: DenseProblem, margins: Floats, starts: Ints) -> Floats:
    """Soft margin of each column of margins; the rows of a sample stand together."""
    each = np.full((len(problem.weights), margins.shape[1]), problem.gamma)
    if len(starts):  # else the class has one level, and no rival falls short
        each = np.minimum(each, np.minimum.reduceat(margins, starts, axis=0))
    return np.asarray(problem.weights @ each)
