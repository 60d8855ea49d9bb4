"""Check of a best decomposable score: all families are scored anew, and the bound is computed from the multipliers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.check import CHECKS
from marginbayes.verification.document import CertificateError, check_sense
from marginbayes.verification.parentsets import (
    Scores,
    cardinalities,
    check_structure,
    parent_sets,
    raised,
    summed,
    tree_bound,
)

__all__ = ["check_exact_score"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_SUBSET_VARIABLES = 24
# Two scores nearer than this, relative to their size, may differ by rounding alone.
SAME = 1e-11
# Beyond this equivalent sample size, what counts add to a score is lost in rounding.
LARGEST_PRIOR = 1e6


def check_exact_score(document: Mapping[str, Any], codes: Ints, weights: Floats) -> tuple[float, float]:
    """Score of the structure and the bound that the evidence proves."""
    evidence = document["evidence"]
    minimised = evidence["score"] == "mdl"
    check_sense(document, "min" if minimised else "max")
    cards = cardinalities(document, len(codes))
    complete = (codes < np.array(cards)[:, None]).all(axis=0) & (weights > 0)
    codes, weights = codes[:, complete], weights[complete]
    if not len(weights):
        raise CertificateError("the data have no row without a missing cell")
    scores = [
        {
            parents: _family(codes, weights, cards, child, parents, evidence)
            for parents in parent_sets(evidence["space"], len(cards), child)
        }
        for child in range(len(cards))
    ]
    parents = [frozenset(own) for own in evidence["parents"]]
    check_structure(scores, parents)
    objective = math.fsum(scores[child][own] for child, own in enumerate(parents))
    methods = {"branchings": _by_branchings, "subsets": _by_subsets, "tree": _by_tree}
    bound = methods[evidence["method"]](scores, evidence)
    return (-objective, -bound) if minimised else (objective, bound)


# -- families


def _family(
    codes: Ints, weights: Floats, cards: Sequence[int], child: int, parents: frozenset[int], evidence: Mapping[str, Any]
) -> float:
    """Score of one family; greater is better."""
    key = np.zeros(len(weights), np.int64)
    for p in sorted(parents):
        key = np.unique(key * cards[p] + codes[p], return_inverse=True)[1].reshape(-1)
    cells, rows = (
        np.asarray(counts[counts > 0], np.float64)
        for counts in (np.bincount(key * cards[child] + codes[child], weights), np.bincount(key, weights))
    )
    configurations = math.prod(cards[p] for p in parents)
    if evidence["score"] == "bdeu":
        prior = float(evidence["equivalent_sample_size"]) / configurations
        if not 0 < prior * configurations <= LARGEST_PRIOR:
            raise CertificateError("the equivalent sample size must be positive, and not too large for its scores")
        return _log_rising(cells, prior / cards[child]) - _log_rising(rows, prior)
    likelihood = float((cells * np.log(cells)).sum() - (rows * np.log(rows)).sum())
    each = {"ll": 0.0, "aic": 1.0, "bic": 0.5 * math.log(max(1.0, weights.sum()))}
    each["mdl"] = each["bic"]
    return likelihood - each[evidence["score"]] * configurations * (cards[child] - 1)


def _log_rising(counts: Floats, start: float) -> float:
    """Sum of log Gamma(start + count) - log Gamma(start)."""
    distinct, times = np.unique(counts, return_counts=True)
    base = math.lgamma(start)
    return math.fsum(
        t * (math.lgamma(start + c) - base) for c, t in zip(distinct.tolist(), times.tolist(), strict=True)
    )


# -- bounds


def _by_branchings(scores: Scores, evidence: Mapping[str, Any]) -> float:
    """For each parent set of the class the best of the proofs; its members are then no children of the class."""
    best = dict.fromkeys(scores[0], math.inf)
    for proof in evidence["proofs"]:
        higher, total = raised(scores, proof)
        free = [max(own.values(), default=-math.inf) for own in higher]
        apart = [max((v for s, v in own.items() if 0 not in s), default=-math.inf) for own in higher]
        for top in best:
            below = summed([apart[i] if i in top else free[i] for i in range(1, len(scores))])
            best[top] = min(best[top], summed([higher[0][top], below, -total]))
    return max(best.values(), default=-math.inf)


def _by_tree(scores: Scores, evidence: Mapping[str, Any]) -> float:
    """Greatest bound of the leaves, which must make up the whole space."""
    needed, lost = _needed(scores)
    proved = [(own, -total) for own, total in (raised(needed, proof) for proof in evidence["proofs"])]
    return tree_bound(evidence, proved) + lost


def _needed(scores: Scores) -> tuple[Scores, float]:
    """The parent sets that beat all their subsets, and what may be lost by equating scores that hardly differ.

    In any graph a set can give way to its subset, so a best graph needs no others.
    """
    kept: Scores = []
    lost = 0.0
    for own in scores:
        kept.append({s: v for s, v in own.items() if all(v > w + SAME * max(1.0, abs(w)) for w in _below(own, s))})
        largest = max((len(s) for s in own), default=0)
        lost += largest * SAME * max((max(1.0, abs(v)) for v in kept[-1].values()), default=0.0)
    return kept, lost


def _below(own: Mapping[frozenset[int], float], parents: frozenset[int]) -> Iterator[float]:
    """Scores of the subsets of a parent set."""
    for size in range(len(parents)):
        for chosen in combinations(sorted(parents), size):
            if (part := frozenset(chosen)) in own:
                yield own[part]


def _by_subsets(scores: Scores, _: Mapping[str, Any]) -> float:
    """The optimum itself, by dynamic programming: the best structures over all sets of variables, larger and larger."""
    n = len(scores)
    if n > MOST_SUBSET_VARIABLES:
        raise CertificateError(f"{n} variables are too many to try all subsets")
    everything = np.arange(1 << n)
    gain = np.full((n, 1 << n), -np.inf, np.float64)
    for child, own in enumerate(scores):
        for parents, score in own.items():
            gain[child, sum(1 << p for p in parents)] = score
        for p in range(n):  # parents among a set are parents among a larger one
            larger = everything[everything >> p & 1 == 1]
            gain[child, larger] = np.maximum(gain[child, larger], gain[child, larger - (1 << p)])
    reached = np.full(1 << n, -np.inf)
    reached[0] = 0.0
    size = sum((everything >> v) & 1 for v in range(n))
    for count in range(n):
        here = everything[size == count]
        for new in range(n):
            start = here[here >> new & 1 == 0]
            np.maximum.at(reached, start | 1 << new, reached[start] + gain[new, start])
    return float(reached[-1])


CHECKS["exact-score"] = check_exact_score
