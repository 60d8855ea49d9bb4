"""Parent sets that a certificate admits, and what cluster multipliers prove about them.

For clusters of variables with multipliers m >= 0, no acyclic graph scores more than the sum over variables of the best
(score of a parent set + m of the clusters that hold the variable and none of these parents), less the sum of all m:
in an acyclic graph every cluster has a member without a parent inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from marginbayes.verification.document import CertificateError, whole
from marginbayes.verification.onehot import check_graph

__all__ = ["Scores", "cardinalities", "check_structure", "parent_sets", "raised", "summed", "tree_bound"]

Scores = list[dict[frozenset[int], float]]
Path = tuple[tuple[int, int, bool], ...]  # decisions: parent, child, whether the edge is there

# Sums in another order may lie this much above a threshold, relative to its size.
ROUNDING = 5e-10
# What rounding may take from a sum of a few numbers, relative to their size.
LOST = 2.0**-50
# A variable has fewer parents than this.
MOST = 1000


def parent_sets(space: Mapping[str, Any], n: int, child: int) -> Iterator[frozenset[int]]:
    """All parent sets that the certificate admits for a variable, none ruled out."""
    required = {p for p, c in space["required"] if c == child}
    forbidden = {p for p, c in space["forbidden"] if c == child}
    others = [p for p in range(n) if p != child and p not in forbidden]
    for size in range(_most(space, child, n) + 1):
        for chosen in combinations(others, size):
            odd = space["max_parents"] is None and child and chosen and 0 not in chosen
            if required <= set(chosen) and not odd:
                yield frozenset(chosen)


def _most(space: Mapping[str, Any], child: int, n: int) -> int:
    if space["max_parents"] is not None:
        return min(whole(space["max_parents"], MOST, "max_parents"), n - 1)
    return min(
        whole(space["class_parents"], MOST, "class_parents") if child == 0 else whole(space["k"], MOST, "k") + 1, n - 1
    )


def cardinalities(document: Mapping[str, Any], n: int) -> list[int]:
    """Numbers of levels, which must agree with the data."""
    cards = [int(c) for c in document["evidence"]["cardinalities"]]
    if len(cards) != n:
        raise CertificateError(f"the certificate is about {len(cards)} variables, the data have {n}")
    return cards


def check_structure(scores: Scores, parents: Sequence[frozenset[int]]) -> None:
    """Refuse a structure that is not admitted or not acyclic."""
    if len(parents) != len(scores):
        raise CertificateError(f"{len(parents)} parent sets are given for {len(scores)} variables")
    for child, own in enumerate(parents):
        if own not in scores[child]:
            raise CertificateError(f"variable {child} may not have the parents {sorted(own)}")
    check_graph([sorted(own) for own in parents], len(scores))


def raised(scores: Scores, proof: Mapping[str, Any]) -> tuple[Scores, float]:
    """Scores with what the clusters add, and the sum of the multipliers."""
    clusters, multipliers = [frozenset(c) for c in proof["clusters"]], [float(m) for m in proof["multipliers"]]
    if len(clusters) != len(multipliers) or not all(0 <= m < math.inf for m in multipliers):
        raise CertificateError("every cluster needs one multiplier that is not negative")
    if not all(c and c <= set(range(len(scores))) for c in clusters):
        raise CertificateError("a cluster is empty or holds what is no variable")
    found: Scores = []
    for child, own in enumerate(scores):
        around = [(c, m) for c, m in zip(clusters, multipliers, strict=True) if child in c]
        found.append({s: summed([v, *(m for c, m in around if not c & s)]) for s, v in own.items()})
    return found, math.fsum(multipliers)


def summed(values: Sequence[float]) -> float:
    """A number that their sum does not exceed: large multipliers could swallow a score in rounding."""
    return math.fsum([*values, *(LOST * abs(v) for v in values if math.isfinite(v))])


def _check_cover(leaves: Sequence[Path]) -> None:
    """Refuse parts that leave something out: each decision must be followed both ways."""
    stack = [list(leaves)]
    while stack:
        part = stack.pop()
        if len(part) == 1 and not part[0]:
            continue
        if not part or any(not rest or rest[0][:2] != part[0][0][:2] for rest in part):
            raise CertificateError("the leaves do not make up the whole search space")
        stack += [[rest[1:] for rest in part if rest[0][2] == there] for there in (True, False)]


def tree_bound(evidence: Mapping[str, Any], proved: Sequence[tuple[Scores, float]]) -> float:
    """Greatest bound of the leaves of a tree, which must make up the whole space, and of what was left out of them.

    `proved` has for each proof a value of every parent set and a constant, whose sum bounds a structure. A fix leaves
    out, within a part, the parent sets with which the bound is below its threshold.
    """
    leaves = [(_path(leaf), int(leaf["proof"])) for leaf in evidence["leaves"]]
    _check_cover([path for path, _ in leaves])
    gone: dict[Path, set[tuple[int, frozenset[int]]]] = {}
    bounds = []
    for fix in evidence["fixes"]:
        path, threshold = _path(fix), float(fix["threshold"])
        bounds.append(threshold + ROUNDING * max(1.0, abs(threshold)))
        scores, constant = proved[fix["proof"]]
        gone.setdefault(path, set()).update(list(_useless(scores, constant, path, gone, bounds[-1])))
    bounds += [_bound(_open(proved[proof][0], path, gone), proved[proof][1]) for path, proof in leaves]
    if any(math.isnan(bound) for bound in bounds):
        raise CertificateError("a proof bounds nothing")
    return float(max(bounds))


def _path(item: Mapping[str, Any]) -> Path:
    return tuple((int(p), int(c), bool(t)) for p, c, t in item["decisions"])


def _useless(
    scores: Scores, constant: float, path: Path, gone: Mapping[Path, set[tuple[int, frozenset[int]]]], threshold: float
) -> Iterator[tuple[int, frozenset[int]]]:
    """The parent sets with any of which the bound on a part does not exceed the threshold."""
    left = _open(scores, path, gone)
    total = _bound(left, constant)
    for child, own in enumerate(left):
        best = max(own.values(), default=-math.inf)
        yield from ((child, s) for s, v in own.items() if summed([total, -best, v]) <= threshold)


def _open(scores: Scores, path: Path, gone: Mapping[Path, set[tuple[int, frozenset[int]]]]) -> Scores:
    """Parent sets that agree with the decisions and were not left out; an edge that is there excludes its reverse."""
    without = set().union(*(gone.get(path[:size], ()) for size in range(len(path) + 1)))
    found: Scores = []
    for child, own in enumerate(scores):
        needed = {p for p, c, there in path if c == child and there}
        banned = {p for p, c, there in path if c == child and not there}
        banned |= {c for p, c, there in path if p == child and there}
        fits = {s: v for s, v in own.items() if needed <= s and not banned & s and (child, s) not in without}
        found.append(fits)
    return found


def _bound(scores: Scores, constant: float) -> float:
    return summed([constant, *(max(own.values(), default=-math.inf) for own in scores)])
