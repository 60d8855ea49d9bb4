"""Certificates of exact structures: what a change to any part of one does, and what it takes to fool the check."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from marginbayes.structure import Constraints, ExactScore
from marginbayes.structure.exact.general import learn_general
from marginbayes.verification import CertificateError, verify
from marginbayes.verification.document import seal
from tests.oracles.structure import random_rows

SCHEMA, ROWS = random_rows(14, n=50, features=4)
MADE = {
    "branchings": ExactScore("mdl", k=1, class_parents=1).learn(SCHEMA, ROWS),
    "subsets": ExactScore("bdeu", max_parents=2).learn(SCHEMA, ROWS),
    "tree": ExactScore("ll", max_parents=2, method="tree").learn(SCHEMA, ROWS),
    "general": learn_general(SCHEMA, ROWS, gamma=1.0, k=2),
}


def document(name: str) -> dict[str, Any]:
    return copy.deepcopy(MADE[name].certificate.to_document())


def resealed(changed: dict[str, Any]) -> dict[str, Any]:
    del changed["digest"]
    return seal(changed)


@pytest.mark.parametrize("name", MADE)
def test_what_the_learner_claims_is_what_the_check_computes(name: str) -> None:
    report = verify(document(name), ROWS.codes)
    found = MADE[name].certificate
    assert report.objective == pytest.approx(found.objective, rel=1e-10)
    assert report.bound == pytest.approx(found.bound, rel=1e-10)
    assert report.gap <= 1e-6


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the numbers, strings and empty lists of a document are."""
    if isinstance(value, dict):
        return [p for k, v in value.items() for p in leaves_of(v, (*path, k))]
    if isinstance(value, list) and value:
        return [p for i, v in enumerate(value) for p in leaves_of(v, (*path, i))]
    return [path]


@pytest.mark.parametrize("name", MADE)
def test_a_change_of_any_single_field_is_noticed(name: str) -> None:
    whole = document(name)
    places = leaves_of(whole)
    rng = np.random.default_rng(0)
    for place in [places[i] for i in rng.permutation(len(places))[:60]]:
        changed = document(name)
        inner = changed
        for key in place[:-1]:
            inner = inner[key]
        old = inner[place[-1]]
        inner[place[-1]] = old + "x" if isinstance(old, str) else [1] if isinstance(old, list) else 12345
        with pytest.raises(CertificateError):
            verify(changed, ROWS.codes)


def spoil(path: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def apply(changed: dict[str, Any]) -> None:
        inner: Any = changed
        *way, last = path.split(".")
        for key in way:
            inner = inner[int(key) if key.isdigit() else key]
        last_key = int(last) if last.isdigit() else last
        inner[last_key] = change(inner[last_key])

    return apply


LIES = [
    ("branchings", spoil("objective", lambda v: v - 1.0), "the objective is"),
    ("branchings", spoil("bound", lambda v: v + 1.0), "only the bound"),
    ("branchings", spoil("sense", lambda _: "max"), "the sense of such a certificate is 'min', not 'max'"),
    ("branchings", spoil("evidence.score", lambda _: "aic"), "the sense of such a certificate is"),
    ("branchings", spoil("evidence.parents.1", lambda _: [1]), "may not have the parents"),
    ("branchings", spoil("evidence.parents.1", lambda _: [2]), "may not have the parents"),
    ("branchings", spoil("evidence.parents", lambda v: v[:-1]), "4 parent sets are given for 5 variables"),
    ("branchings", spoil("evidence.proofs", lambda _: []), "bound inf|bound -inf"),
    ("branchings", spoil("evidence.cardinalities.1", lambda v: v + 1), "the objective is|bound"),
    ("branchings", spoil("evidence.cardinalities", lambda v: v[:-1]), "is about 4 variables, the data have 5"),
    ("branchings", spoil("evidence.method", lambda _: "trust"), "the evidence cannot be read: KeyError 'trust'"),
    ("branchings", spoil("evidence.space", lambda _: None), "the evidence cannot be read"),
    ("subsets", spoil("evidence.equivalent_sample_size", lambda _: -1.0), "equivalent sample size must be positive"),
    ("subsets", spoil("evidence.equivalent_sample_size", lambda _: 9.0), "the objective is"),
    ("tree", spoil("evidence.proofs.0.multipliers.0", lambda _: -1.0), "multiplier that is not negative"),
    ("tree", spoil("evidence.proofs.0.multipliers.0", lambda v: v + 5.0), "only the bound"),
    ("tree", spoil("evidence.proofs.0.clusters.0", lambda _: [77]), "holds what is no variable"),
    ("tree", spoil("evidence.leaves", lambda v: v[1:]), "do not make up the whole search space"),
    ("general", spoil("evidence.gamma", lambda v: v + 0.1), "the objective is"),
    ("general", spoil("evidence.smoothing", lambda _: 0.0), "must be positive numbers"),
    ("general", spoil("evidence.margin", lambda _: "huge"), "is neither 'sm' nor 'sbm'"),
    ("general", spoil("evidence.proofs.0.values.0", lambda v: v + 99.0), "sum to more than its weight"),
    ("general", spoil("evidence.proofs.0.values.0", lambda v: -v), "or a multiplier below 0"),
    ("general", spoil("evidence.proofs.0.rivals.0", lambda _: 7), "has no margin over class 7"),
    ("general", spoil("evidence.leaves", lambda v: v[:-1]), "do not make up the whole search space"),
    ("general", spoil("bound", lambda v: v - 1.0), "only the bound|contradicts"),
    ("general", spoil("evidence.fixes.0.threshold", lambda v: v + 5.0), "only the bound"),
    ("general", spoil("evidence.fixes", lambda _: []), "only the bound"),
    ("tree", spoil("evidence.fixes.0.threshold", lambda v: v + 50.0), "only the bound"),
    ("tree", spoil("evidence.fixes.0.proof", lambda _: 10_000), "the evidence cannot be read"),
]


@pytest.mark.parametrize(("name", "lie", "said"), LIES)
def test_a_lie_that_is_sealed_anew_is_refused_with_the_reason(name: str, lie: Any, said: str) -> None:
    changed = document(name)
    lie(changed)
    with pytest.raises(CertificateError, match=said):
        verify(resealed(changed), ROWS.codes)


def test_a_structure_with_a_cycle_is_refused() -> None:
    changed = document("subsets")
    changed["evidence"]["parents"] = [[], [2], [1], [], []]
    with pytest.raises(CertificateError, match=r"a cycle among the variables \[1, 2\]"):
        verify(resealed(changed), ROWS.codes)


def test_parent_sets_that_are_left_out_must_be_forbidden_by_a_constraint_on_record() -> None:
    constraints = Constraints(forbidden=[("v1", "v2")])
    found = ExactScore("ll", max_parents=2, constraints=constraints).learn(SCHEMA, ROWS).certificate
    free = ExactScore("ll", max_parents=2).learn(SCHEMA, ROWS).certificate
    assert found.objective <= free.objective
    lie = found.to_document()
    lie["evidence"]["space"]["forbidden"] = []
    if found.objective < free.objective - 1e-6:
        with pytest.raises(CertificateError, match="only the bound"):
            verify(resealed(lie), ROWS.codes)


@pytest.mark.parametrize("name", MADE)
def test_other_data_do_not_satisfy_it(name: str) -> None:
    codes = ROWS.codes.copy()
    codes[1] = (codes[1] + 1) % ROWS.cardinalities[1]
    codes[1, :10] = 0
    with pytest.raises(CertificateError):
        verify(document(name), codes)
    with pytest.raises(CertificateError):
        verify(document(name), ROWS.codes, np.full(len(ROWS), 2.0))
