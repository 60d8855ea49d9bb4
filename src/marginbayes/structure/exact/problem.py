"""The maximum-margin structure problem as numbers: parent sets to choose from, and what each adds to every margin.

`dense_problem` returns the whole of formulation (19) of Peharz & Pernkopf (2012) for problems that fit into memory, as
a plain value that any solver can read:

- ``options`` lists all parent sets, variable by variable (``Option(variable, parents)``; indices of variables, the
  class is 0, so a feature's parents are ``()``, ``(0,)``, ``(0, j)``, ...; those of the class ``()``, ``(a,)``, ...).
  Each variable takes exactly one of its options, and the graph must be acyclic, the class included.
- ``coefficients[row, option]`` is alpha of (12), or of (23) for the binary margin; ``sample[row]`` is the merged sample
  that the row belongs to: one row for each other class (soft margin), or one row alone (binary soft margin).
- a structure's objective is the sum over samples of ``weights[s] * min(gamma, min over its rows of the sum of the
  chosen options' coefficients)``: (9), or its binary counterpart.

Equal rows of data are merged. A row whose class is missing, or that has no weight, takes no part. A feature that is
missing adds nothing to its row; a missing parent is summed over, which leaves the feature given its other parents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.structure.constraints import Constraints, Rules

__all__ = [
    "DenseProblem",
    "Option",
    "Samples",
    "check_start",
    "dense_problem",
    "family_scores",
    "merged_samples",
    "parent_sets",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MARGINS = ("sm", "sbm")


@dataclass(frozen=True)
class Option:
    """One parent set of one variable, by index; the class is 0."""

    variable: int
    parents: tuple[int, ...]


@dataclass(frozen=True)
class Samples:
    """Distinct rows whose class is known, and their weights; ``codes[variable, sample]``, the class first."""

    codes: Ints
    weights: Floats
    cardinalities: tuple[int, ...]

    @property
    def labels(self) -> Ints:
        """Class of each sample."""
        return np.asarray(self.codes[0])

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())


@dataclass(frozen=True)
class DenseProblem:
    """Options, coefficients and weights of (19); see the top of this module."""

    names: tuple[str, ...]
    margin: str
    gamma: float
    options: tuple[Option, ...]
    coefficients: Floats  # [row, option]
    sample: Ints  # [row]
    weights: Floats  # [sample]

    def options_of(self, variable: int) -> list[int]:
        """Positions of a variable's options."""
        return [o for o, option in enumerate(self.options) if option.variable == variable]

    def objective(self, chosen: Sequence[int]) -> float:
        """Soft margin of the structure that takes these options, one for each variable."""
        margins = np.full(len(self.weights), self.gamma)
        np.minimum.at(margins, self.sample, self.coefficients[:, list(chosen)].sum(axis=1))
        return float(self.weights @ margins)

    def dag(self, chosen: Sequence[int]) -> Dag:
        """The graph of these options; raises where it has a cycle."""
        parents: list[tuple[int, ...]] = [()] * len(self.names)
        for o in chosen:
            parents[self.options[o].variable] = self.options[o].parents
        return Dag(self.names, tuple(parents))


def dense_problem(
    schema: Schema,
    rows: Rows,
    *,
    margin: str = "sm",
    gamma: float,
    k: int = 1,
    class_parents: int = 0,
    constraints: Constraints | None = None,
    smoothing: float = 1.0,
    max_memory: float = 2e9,
) -> DenseProblem:
    """All options and coefficients of (19), for at most k feature parents of a feature and some of the class."""
    samples = merged_samples(rows)
    sets = parent_sets(schema.names, k, class_parents, constraints)
    options = tuple(Option(v, parents) for v, own in enumerate(sets) for parents in own)
    per_sample = 1 if margin == "sbm" else max(schema.cardinalities[0] - 1, 0)
    size = 8.0 * len(samples.weights) * per_sample * len(options)
    if size > max_memory:
        raise ValueError(
            f"{len(samples.weights)} samples x {per_sample} rivals x {len(options)} options need {size:.2g} bytes, "
            f"more than max_memory={max_memory:.2g}; use fewer options (k, constraints), margin='sbm', or raise it"
        )
    sample, own, rival = margin_rows(samples, margin)
    coefficients = np.empty((len(sample), len(options)))
    for o, option in enumerate(options):
        scores = family_scores(samples, option.variable, option.parents, margin == "sbm", smoothing)
        coefficients[:, o] = scores if margin == "sbm" else scores[sample, own] - scores[sample, rival]
    return DenseProblem(schema.names, margin, float(gamma), options, coefficients, sample, samples.weights)


def merged_samples(rows: Rows) -> Samples:
    """The distinct rows that count."""
    merged = rows.labelled().merged()[0]
    if not len(merged):
        raise ValueError("no row with a label has a weight above zero, so there is no margin to learn from")
    weights = np.ones(len(merged)) if merged.weights is None else merged.weights
    order = np.lexsort(merged.codes[::-1])  # by class, then by feature after feature: the same for any order of rows
    return Samples(merged.codes.take(order, axis=1).astype(np.int64), weights[order], merged.cardinalities)


def margin_rows(samples: Samples, margin: str) -> tuple[Ints, Ints, Ints]:
    """For each margin row its sample, its own class and the rival class (its own for the binary margin)."""
    n, classes = len(samples.weights), samples.cardinalities[0]
    if margin == "sbm":
        return np.arange(n), samples.labels, samples.labels
    sample = np.repeat(np.arange(n), max(classes - 1, 0))
    rival = np.tile(np.arange(max(classes - 1, 0)), n)
    own = samples.labels[sample]
    return sample, own, rival + (rival >= own)


def check_start(
    names: Sequence[str], sets: Sequence[Sequence[tuple[int, ...]]], parents: Sequence[tuple[int, ...]]
) -> None:
    """Refuse a structure to begin with that is none of those searched."""
    for name, allowed, own in zip(names, sets, parents, strict=True):
        if own not in allowed:
            listed = ", ".join(repr(names[p]) for p in own) or "none"
            raise ValueError(f"the start gives {name!r} parents that are not allowed here: {listed}")


def parent_sets(
    names: Sequence[str], k: int, class_parents: int, constraints: Constraints | None = None
) -> list[list[tuple[int, ...]]]:
    """For each variable its parent sets: none, the class, or the class and up to k features; for the class, features.

    A feature that must be kept always has the class as a parent. A feature whose edge from the class is forbidden takes
    no part at all.
    """
    rules, required, forbidden = _rules(names, k, class_parents, constraints)
    free = [f for f in range(1, len(names)) if f not in rules.dropped]
    above = [f for f in free if f not in forbidden and f not in rules.keep]
    tops = [a for n in range(class_parents + 1) for a in combinations(above, n) if required <= set(a)]
    return [tops, *(_feature_sets(f, k, rules, free) for f in range(1, len(names)))]


def _feature_sets(child: int, k: int, rules: Rules, free: Sequence[int]) -> list[tuple[int, ...]]:
    if child in rules.dropped:
        return [()]
    others = [p for p in free if p != child and rules.allowed[p, child]]
    chosen = [c for n in range(k + 1) for c in combinations(others, n) if set(rules.required[child]) <= set(c)]
    sets: list[tuple[int, ...]] = [(0, *c) for c in chosen]
    return sets if child in rules.keep else [(), *sets]


def _rules(
    names: Sequence[str], k: int, class_parents: int, constraints: Constraints | None
) -> tuple[Rules, set[int], set[int]]:
    """Rules among the features, and the features that must, and must not, be parents of the class."""
    rules, required, forbidden = Constraints.given(constraints).compile_below(names, k)
    if len(required) > class_parents:
        listed = ", ".join(repr(names[f]) for f in sorted(required))
        raise ValueError(
            f"{listed} must be parents of the class {names[0]!r}, but class_parents={class_parents} allows fewer"
        )
    for f in sorted(required & (forbidden | rules.dropped | rules.keep)):
        raise ValueError(
            f"the edge {names[f]!r} -> {names[0]!r} is required, but it is forbidden, or {names[f]!r} must be dropped "
            "or be a child of the class"
        )
    return rules, required, forbidden


def family_scores(samples: Samples, variable: int, parents: Sequence[int], binary: bool, smoothing: float) -> Floats:
    """What a family adds to each sample: ``[sample, class]`` log probabilities with the class replaced by each class.

    `binary`: one number for each sample, the log of (20) for its own class less that for all other classes as one.
    A family without the class adds the same to all classes, hence zeros.
    """
    n, classes = len(samples.weights), samples.cardinalities[0]
    if variable and 0 not in parents:
        return np.zeros(n) if binary else np.zeros((n, classes))
    counts = _counts(samples, variable, [p for p in parents if p])
    if variable:
        levels = samples.cardinalities[variable]
        table = _log_shares(counts, smoothing, levels, axis=0)
        rest = _log_shares(counts.sum(axis=-1, keepdims=True) - counts, smoothing, levels, axis=0) if binary else 0.0
        family = [variable, *(p for p in parents if p)]
    else:  # the class is the child; one against the rest is a class of two levels
        if binary:
            table = np.log(counts + smoothing)
            rest = np.log(counts.sum(axis=-1, keepdims=True) - counts + smoothing)
        else:
            table = _log_shares(counts, smoothing, classes, axis=-1)
        family = list(parents)
    cells = tuple(samples.codes[v] for v in family)
    if not binary:
        return np.asarray(table[cells] + np.zeros((n, 1)))
    return np.asarray((table - rest)[(*cells, samples.labels)])


def _counts(samples: Samples, variable: int, parents: Sequence[int]) -> Floats:
    """Weights by (child, parents, class), one level more for a missing cell; a missing parent stands for any level."""
    family = [variable, *parents, 0] if variable else [*parents, 0]
    shape = [samples.cardinalities[v] + 1 for v in family[:-1]] + [samples.cardinalities[0]]
    counts = np.zeros(shape)
    np.add.at(counts, tuple(samples.codes[v] for v in family), samples.weights)
    for axis in range(1 if variable else 0, len(family) - 1):
        last: list[slice | int] = [slice(None)] * len(shape)
        last[axis] = -1
        counts[tuple(last)] = counts.sum(axis=axis)
    return counts


def _log_shares(counts: Floats, smoothing: float, levels: int, axis: int) -> Floats:
    """Log of the smoothed shares along an axis; beyond the levels, where the child is missing, zero."""
    here = np.moveaxis(counts, axis, 0)[:levels]
    shares = np.log((here + smoothing) / (here.sum(axis=0) + smoothing * levels))
    missing = np.zeros((len(np.moveaxis(counts, axis, 0)) - levels, *shares.shape[1:]))
    return np.moveaxis(np.concatenate([shares, missing]), 0, axis)
