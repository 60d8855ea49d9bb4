from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes import Dag
from marginbayes.data import Rows
from marginbayes.parameters import MaximumLikelihood
from marginbayes.parameters.combination import ConvexCombination
from marginbayes.parameters.design import Design
from marginbayes.parameters.mixture import MarginMixture
from marginbayes.solvers import Certificate
from marginbayes.solvers.level import minimise_on_simplex
from marginbayes.verification import CertificateError, verify
from marginbayes.verification.combination import check_combination
from tests.oracles.brute import random_network, with_holes

TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))
CARDS = (3, 2, 3, 2)


def problem(seed: int, n: int = 60, holes: float = 0.1) -> tuple[Certificate, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, TAN, CARDS)
    rows = with_holes(rng, network.sample(n, rng), holes).reweighted(rng.random(n) + 0.5)
    learner = ConvexCombination(
        int(rng.integers(1, 6)),
        float(rng.choice([0.0, 1.0, 30.0])),
        MaximumLikelihood(),
        B=float(10 ** rng.uniform(-3, 1)),
        max_iter=int(rng.integers(0, 30)),
        normalize="plain",
        random_state=seed,
    )
    return learner.learn(network.schema, TAN, rows).certificate, rows


def reclaimed(certificate: Certificate, **changes) -> dict:
    """The document of the certificate with other numbers in it, sealed anew."""
    numbers = {key: changes.pop(key, getattr(certificate, key)) for key in ("objective", "bound")}
    evidence = {**certificate.evidence, **changes}
    return Certificate(certificate.kind, "min", *numbers.values(), "optimal", 0.0, evidence=evidence).to_document()


def drawn(seed: int) -> tuple[MarginMixture, Rows, float, int]:
    """Members that nobody learned and a few rows with missing cells; D, and a number of steps that may be too few."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    rows = with_holes(rng, random_network(rng, TAN, CARDS).sample(n, rng), 0.2, keep_class=True)
    rows = rows.reweighted(rng.random(n) + 0.1)
    members = [random_network(rng, TAN, CARDS).tables for _ in range(int(rng.integers(1, 4)))]
    mixture = MarginMixture.of(Design.of(TAN, rows), members, float(10 ** rng.uniform(-3, 1)))
    return mixture, rows, float(rng.choice([0.0, 0.1, 1.0, 30.0])), int(rng.integers(0, 5))


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 10**6))
def test_no_combination_beats_the_bound_that_is_proved(seed: int) -> None:
    mixture, rows, pull, steps = drawn(seed)
    k = mixture.weights.shape[-1]
    found = minimise_on_simplex(mixture.loss, k, pull=pull, tol=1e-9, max_iter=steps)
    bound, evidence = mixture.proof(found, pull)
    objective, proved = check_combination(
        {"sense": "min", "evidence": evidence}, rows.codes.astype(np.int64), rows.weights
    )
    assert objective == pytest.approx(found.value, rel=1e-9)
    assert bound <= proved + 1e-9 * max(1.0, abs(proved))
    for point in [*np.eye(k), *np.random.default_rng(seed).dirichlet(np.ones(k), 10)]:
        value = mixture.loss(point)[0] + pull * float(np.linalg.norm(point - 1 / k))
        assert proved <= value + 1e-9 * max(1.0, value)


@pytest.mark.parametrize("seed", range(10))
def test_the_certificate_of_a_learned_combination_holds_after_a_trip_through_json(seed: int) -> None:
    certificate, rows = problem(seed)
    report = verify(json.loads(json.dumps(certificate.to_document())), rows.codes, rows.weights)
    assert report.objective == pytest.approx(certificate.objective, rel=1e-9)
    assert report.bound == pytest.approx(certificate.bound, rel=1e-9)


def test_rows_may_come_in_another_order() -> None:
    certificate, rows = problem(1)
    again = rows.take(np.random.default_rng(0).permutation(len(rows)))
    report = verify(certificate.to_document(), again.codes, again.weights)
    assert report.objective == pytest.approx(certificate.objective, rel=1e-9)


def test_other_data_and_false_claims_are_refused() -> None:
    certificate, rows = problem(3)
    with pytest.raises(CertificateError, match="objective is"):
        verify(certificate.to_document(), rows.codes, rows.weights * 2)
    with pytest.raises(CertificateError, match="objective is"):
        verify(reclaimed(certificate, objective=certificate.objective + 1e-3), rows.codes, rows.weights)
    weaker = reclaimed(certificate, duals={"rows": [], "classes": [], "values": []})
    with pytest.raises(CertificateError, match="is proved"):
        verify(weaker, rows.codes, rows.weights)


@pytest.mark.parametrize("field", ["weights", "pull", "duals", "B", "D", "parents"])
def test_evidence_that_breaks_the_rules_is_refused(field: str) -> None:
    certificate, rows = problem(3)
    evidence = certificate.evidence
    duals = {**evidence["duals"], "values": evidence["duals"]["values"] * 1.5}
    wrong = {
        "weights": evidence["weights"] - 0.1,
        "pull": np.full(len(evidence["pull"]) + 1, 0.0),
        "duals": duals,
        "B": -1.0,
        "D": -1.0,
        "parents": evidence["parents"][:-1],
    }
    with pytest.raises(CertificateError):
        verify(reclaimed(certificate, **{field: wrong[field]}), rows.codes, rows.weights)


def test_a_pull_that_is_too_long_proves_no_more_than_one_that_is_not() -> None:
    certificate, rows = problem(3)
    longer = reclaimed(certificate, pull=certificate.evidence["pull"] * 100, bound=-1e300, gap=np.inf)
    report = verify(longer, rows.codes, rows.weights)
    assert report.objective == pytest.approx(certificate.objective)
