"""Check of an exact maximum-margin structure: margins, objective and every bound of the search, computed anew.

What is to be shown: no structure that the rules allow has a soft margin above the claimed bound. Here the claim is read
and the objective computed; `exact_margin_record` checks that the parts of the search cover all structures and are
bounded, `exact_margin_linear` computes what multipliers make of the margins of `exact_margin_bound`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.check import CHECKS, TELLING, Progress
from marginbayes.verification.document import CertificateError, check_sense, whole
from marginbayes.verification.exact_margin_bound import Margins, check_weight, merged
from marginbayes.verification.exact_margin_list import best_unbounded
from marginbayes.verification.exact_margin_record import Bounds, check_record

__all__ = ["check_exact_margin"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

KEYS = {
    "margin", "gamma", "smoothing", "k", "class_parents", "gap", "names", "cardinalities", "parents", "constraints",
    "redundant", "proof", "nodes", "weight",
}  # fmt: skip


def check_exact_margin(
    document: Mapping[str, Any], codes: NDArray[np.int64], weights: Floats, progress: Progress | None = None
) -> tuple[float, float]:
    """Soft margin of the structure in the certificate, and the bound that its record proves."""
    claim = document["evidence"]
    if claim.keys() != KEYS:
        raise CertificateError(f"the evidence lacks, or has besides what it should, {sorted(KEYS ^ claim.keys())}")
    check_sense(document, "max")
    if claim["margin"] not in ("sm", "sbm"):
        raise CertificateError(f"the margin {claim['margin']!r} is neither 'sm' nor 'sbm'")
    if document["schema"] is not None and claim["names"] != [variable["name"] for variable in document["schema"]]:
        raise CertificateError("the names of the variables differ from those of the schema")
    margins = Margins(*merged(codes, weights, claim["cardinalities"]), claim)
    check_weight(claim, margins.weights)
    tops, allowed = _rules(claim)
    objective = _objective(claim, margins, tops, allowed)
    _leave_out(claim["redundant"], margins, allowed)
    bounds = Bounds(margins, float(document["bound"]), best_unbounded)
    check_record(claim["proof"], tops, lambda top: _root(top, allowed), bounds, progress)
    return objective, max(objective, bounds.largest)


# -- which structures there are


def _rules(claim: Mapping[str, Any]) -> tuple[list[tuple[int, ...]], Flags]:
    """Sets of class parents, and the allowed options [feature, option] of the features.

    Option 0 is no parent, option 1 the class, option 2 + j the class and feature j, counted from 0.
    """
    names, rules, k = claim["names"], claim["constraints"], whole(claim["k"], 2, "k")
    place = {name: i for i, name in enumerate(names)}
    _check_rules(rules, names)
    n, required, forbidden = len(names) - 1, _edges(rules, "required", place), _edges(rules, "forbidden", place)
    dropped = {b - 1 for a, b in forbidden if a == 0}
    kept = {place[name] - 1 for name in rules["keep"]} | {b - 1 for a, b in required if a == 0}
    kept |= {v - 1 for a, b in required if a and b for v in (a, b)}
    allowed = np.zeros((n, n + 2), bool)
    allowed[:, 1] = True
    allowed[:, 2:] = (k >= 1) & ~np.eye(n, dtype=bool)
    for a, b in forbidden:
        if a and b:
            allowed[b - 1, 1 + a] = False
    for earlier, later in combinations(rules["tiers"], 2):
        for a in later:
            for b in earlier:
                allowed[place[b] - 1, 1 + place[a]] = False
    for i in dropped:
        allowed[i], allowed[:, 2 + i] = False, False
    for a, b in required:
        if a and b:
            only = allowed[b - 1, 1 + a]
            allowed[b - 1] = False
            allowed[b - 1, 1 + a] = only
    allowed[:, 0] = [i not in kept for i in range(n)]
    above = {a for a, b in required if b == 0}
    free = [f for f in range(1, n + 1) if f - 1 not in dropped | kept and (f, 0) not in forbidden]
    most = min(whole(claim["class_parents"], 3, "class_parents"), len(free))
    tops = [t for m in range(most + 1) for t in combinations(free, m) if above <= set(t)]
    return tops, allowed


def _check_rules(rules: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse names and rules that could be read in two ways."""
    tiers = [name for tier in rules["tiers"] for name in tier]
    if len(set(names)) < len(names) or len(set(tiers)) < len(tiers):
        raise CertificateError("a variable is named twice")
    if names[0] in (*tiers, *rules["keep"]) or any(a == b for a, b in (*rules["required"], *rules["forbidden"])):
        raise CertificateError("the constraints speak of the class as of a feature, or of an edge to itself")


def _edges(rules: Mapping[str, Any], which: str, place: Mapping[str, int]) -> list[tuple[int, int]]:
    return [(place[a], place[b]) for a, b in rules[which]]


def _root(top: Sequence[int], allowed: Flags) -> Flags:
    """Options of the problem of these class parents, none of which can have the class as a parent."""
    root = allowed.copy()
    for f in top:
        root[f - 1, 1:] = False
    return root


def _objective(claim: Mapping[str, Any], margins: Margins, tops: list[tuple[int, ...]], allowed: Flags) -> float:
    parents = [tuple(p) for p in claim["parents"]]
    top = tuple(sorted(parents[0]))
    if top not in tops or len(parents) != len(claim["names"]):
        raise CertificateError(f"the class cannot have the parents {parents[0]}")
    choice = []
    for i, own in enumerate(parents[1:]):
        option = {(): 0, (0,): 1}.get(own, 1 + own[-1] if len(own) == 2 and own[0] == 0 else -1)
        if option < 0 or option >= allowed.shape[1] or not _root(top, allowed)[i, option]:
            raise CertificateError(f"the feature {claim['names'][i + 1]!r} cannot have the parents {own}")
        choice.append(option)
    for i in range(len(choice)):
        node, steps = i, 0
        while choice[node] >= 2:
            node, steps = choice[node] - 2, steps + 1
            if steps > len(choice):
                raise CertificateError("the structure has a cycle")
    return margins.objective(top, choice)


def _leave_out(redundant: Sequence[Sequence[int]], margins: Margins, allowed: Flags) -> None:
    """Take options out that always add what another option, one without a feature as parent, adds."""
    kept = allowed.copy()
    for place, other_place, other in redundant:
        i, option = (
            whole(number, end, "a place in the list of redundant options")
            for number, end in zip((place, other_place), allowed.shape, strict=True)
        )
        if (
            not option
            or other not in (0, 1)
            or not kept[i, other]
            or option == other
            or not margins.equal(i, option, other)
        ):
            raise CertificateError(f"option {option} of feature {i} was left out, but option {other} is not the same")
        allowed[i, option] = False
    if any(not allowed[i, other] for i, _, other in redundant):
        raise CertificateError("an option was left out for the sake of another one that was left out, too")


CHECKS["exact-margin"] = TELLING["exact-margin"] = check_exact_margin
