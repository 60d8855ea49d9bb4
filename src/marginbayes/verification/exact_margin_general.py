"""Check of a greatest soft margin with parent sets of any size: margins are computed anew, bounds from multipliers.

For multipliers l >= 0 of margin rows whose sum over the rows of a sample is at most its weight, the soft margin is no
more than gamma * (W - sum l) + sum of l * margin: a sum over families, which cluster multipliers bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.check import CHECKS
from marginbayes.verification.document import CertificateError, check_sense
from marginbayes.verification.exact_margin_bound import check_amounts, check_weight, merged
from marginbayes.verification.parentsets import (
    Scores,
    cardinalities,
    check_structure,
    parent_sets,
    raised,
    tree_bound,
)

__all__ = ["check_exact_margin_general"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# Multipliers of a sample may exceed its weight by rounding.
ROUNDING = 1e-12


def check_exact_margin_general(document: Mapping[str, Any], codes: Ints, weights: Floats) -> tuple[float, float]:
    """Soft margin of the structure and the bound that the evidence proves."""
    evidence = document["evidence"]
    check_sense(document, "max")
    if evidence["margin"] not in ("sm", "sbm"):
        raise CertificateError(f"the margin {evidence['margin']!r} is neither 'sm' nor 'sbm'")
    margins = _Margins(evidence, cardinalities(document, len(codes)), codes, weights)
    check_weight(evidence, margins.weights)
    n = len(margins.cards)
    admitted: Scores = [dict.fromkeys(parent_sets(evidence["space"], n, child), 0.0) for child in range(n)]
    parents = [frozenset(own) for own in evidence["parents"]]
    check_structure(admitted, parents)
    sums = np.array([margins.family(child, own) for child, own in enumerate(parents)]).sum(axis=0)
    objective = float(margins.weights @ np.minimum(sums.min(axis=1, initial=np.inf), margins.gamma))
    return objective, _bound(evidence, margins, admitted)


class _Margins:
    """Distinct rows whose class is known, sorted, and what a family adds to the margin of each over each rival."""

    def __init__(self, evidence: Mapping[str, Any], cards: list[int], codes: Ints, weights: Floats) -> None:
        (self.codes, self.weights), self.cards = merged(codes, weights, cards), cards
        self.binary = evidence["margin"] == "sbm"
        self.gamma, self.smoothing = float(evidence["gamma"]), float(evidence["smoothing"])
        check_amounts(self.gamma, self.smoothing)
        labels = self.codes[0]
        if self.binary:
            self.rivals = labels[:, None]
        else:
            others = [[c for c in range(cards[0]) if c != own] for own in labels]
            self.rivals = np.array(others, np.int64).reshape(len(labels), cards[0] - 1)

    def family(self, child: int, parents: frozenset[int]) -> Floats:
        """Coefficients alpha of (12), or of (23) in the one column of the binary margin: sample x rival."""
        if child and 0 not in parents:
            return np.zeros(self.rivals.shape)
        features = [p for p in sorted(parents) if p]
        counts = self._counts(child, features)  # sample x class (x level of a child that is a feature)
        here = np.arange(len(self.weights))
        labels = self.codes[0]
        if child == 0:
            logs = np.log(counts + self.smoothing)
            rest = np.log(counts.sum(axis=1, keepdims=True) - counts + self.smoothing)
        else:
            level = np.minimum(self.codes[child], self.cards[child] - 1)
            seen = (self.codes[child] < self.cards[child])[:, None]
            logs = np.where(seen, self._share(counts)[here, :, level], 0.0)
            rest = np.where(seen, self._share(counts.sum(axis=1, keepdims=True) - counts)[here, :, level], 0.0)
        if self.binary:
            return np.asarray((logs - rest)[here, labels][:, None])
        return np.asarray(logs[here, labels][:, None] - np.take_along_axis(logs, self.rivals, axis=1))

    def _share(self, counts: Floats) -> Floats:
        return np.asarray(np.log((counts + self.smoothing) / (counts + self.smoothing).sum(axis=-1, keepdims=True)))

    def _counts(self, child: int, features: Sequence[int]) -> Floats:
        """For each sample the counts of class (and level) among the rows that agree on those parents it knows."""
        shape = (self.cards[0], self.cards[child]) if child else (self.cards[0],)
        out = np.zeros((len(self.weights), *shape))
        known = np.array([self.codes[p] < self.cards[p] for p in features], bool).reshape(len(features), len(out))
        for pattern in {tuple(column) for column in known.T.tolist()}:
            members = [p for p, there in zip(features, pattern, strict=True) if there]
            key = np.zeros(len(self.weights), np.int64)
            for p in members:
                key = np.unique(key * (self.cards[p] + 1) + self.codes[p], return_inverse=True)[1].reshape(-1)
            table = np.zeros((int(key.max()) + 1, *shape))
            usable = self.codes[child] < self.cards[child]
            cells = (key, self.codes[0], self.codes[child]) if child else (key, self.codes[0])
            np.add.at(table, tuple(c[usable] for c in cells), self.weights[usable])
            mine = (known == np.array(pattern, bool)[:, None]).all(axis=0)
            out[mine] = table[key[mine]]
        return out


def _bound(evidence: Mapping[str, Any], margins: _Margins, admitted: Scores) -> float:
    """Greatest bound of the leaves of the tree."""
    multipliers = [_multipliers(proof, margins) for proof in evidence["proofs"]]
    scores: list[Scores] = [[{} for _ in admitted] for _ in multipliers]
    for child, own in enumerate(admitted):
        for parents in own:
            added = margins.family(child, parents)
            for proof, multiplier in zip(scores, multipliers, strict=True):
                proof[child][parents] = float((added * multiplier).sum())
    proved = []
    for values, clusters, multiplier in zip(scores, evidence["proofs"], multipliers, strict=True):
        higher, total = raised(values, clusters)
        unused = np.maximum(0.0, margins.weights - multiplier.sum(axis=1))
        proved.append((higher, margins.gamma * float(unused.sum()) - total))
    return tree_bound(evidence, proved)


def _multipliers(proof: Mapping[str, Any], margins: _Margins) -> Floats:
    """Multipliers of the margin rows, sample x rival, after a look at their signs and sums."""
    found = np.zeros(margins.rivals.shape)
    for sample, rival, value in zip(proof["samples"], proof["rivals"], proof["values"], strict=True):
        places = np.flatnonzero(margins.rivals[sample] == rival)
        if not len(places) or sample < 0 or not 0 <= value < math.inf:
            raise CertificateError(f"sample {sample} has no margin over class {rival}, or a multiplier below 0")
        found[sample, places[0]] += value
    sums = found.sum(axis=1)
    if (sums > margins.weights * (1.0 + ROUNDING)).any():
        raise CertificateError("the multipliers of a sample sum to more than its weight")
    # What rounding has put above the weight is taken away.
    share = np.minimum(1.0, np.divide(margins.weights, sums, out=np.ones_like(sums), where=sums > 0))
    return np.asarray(found * share[:, None])


CHECKS["exact-margin-general"] = check_exact_margin_general
