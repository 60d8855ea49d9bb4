"""Certificates made up to look right, with a proper seal: each tries another way around the checks."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from marginbayes import BayesNetClassifier, Dag
from marginbayes.data import Rows
from marginbayes.parameters.hybrid import MarginHybrid
from marginbayes.parameters.markov import MarginMarkov
from marginbayes.sequence import StructuredMarkov
from marginbayes.solvers import Certificate
from marginbayes.structure.exact.learner import ExactMargin
from marginbayes.verification import CertificateError, verify
from marginbayes.verification.document import seal
from tests.oracles.brute import random_network
from tests.oracles.labellings import chain_sample, tree_sample
from tests.oracles.records import with_lists
from tests.sequence.test_sequence_certificates import codes_of

XOR = np.array([[0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1]])  # class, a, b, and a once more
NAIVE = [[], [0], [0], [0]]


def refuse(document: dict[str, Any], codes: Any, weights: Any = None, match: str | None = None) -> None:
    with pytest.raises(CertificateError, match=match):
        verify(document, codes, weights)


def resealed(document: dict[str, Any]) -> dict[str, Any]:
    return seal({key: value for key, value in document.items() if key != "digest"})


def exclusive_or() -> tuple[Any, Any, Any]:
    """Table, classes and codes of a problem that needs an edge between two features."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (300, 3))
    y = np.where(rng.random(300) < 0.05, 1, 0) ^ X[:, 0] ^ X[:, 1]
    return X.astype(str), y, np.vstack([y, X.T])


def exact(k: int) -> tuple[dict[str, Any], Any]:
    X, y, codes = exclusive_or()
    model = BayesNetClassifier(ExactMargin("sm", k=k)).fit(X, y)
    return model.structure_result_.certificate.to_document(), codes


def test_options_of_all_features_cannot_be_taken_out_at_once() -> None:
    document, codes = exact(k=0)
    verify(document, codes)
    forged = with_lists(document)
    forged["evidence"]["k"] = 1
    everything = [[[0, 1, 2], hex(1 << (2 + j)), 0] for j in range(3)]
    forged["evidence"]["proof"]["fixes"][0] = everything + forged["evidence"]["proof"]["fixes"][0]
    refuse(resealed(forged), codes, match="the feature of a fix")


@pytest.mark.parametrize("place", [-1, True, 1.0, [0], 99])
def test_places_in_a_record_are_whole_numbers_in_range(place: Any) -> None:
    document, codes = exact(k=1)
    for change in ("fix", "multipliers", "redundant feature", "redundant option"):
        forged = with_lists(document)
        evidence = forged["evidence"]
        if change == "fix":
            evidence["proof"]["fixes"][0] = [[place, "0x0", 0]]
        elif change == "multipliers":
            evidence["proof"]["fixes"][0] = [[0, "0x0", place]]
        else:
            evidence["redundant"] = [[place, 2, 1] if change == "redundant feature" else [0, place, 1]]
        refuse(resealed(forged), codes, match="not a whole number")


def test_labels_that_wrap_around_are_no_labelling() -> None:
    examples = tree_sample(0, 15)
    codes, weights = codes_of(examples)
    certificate = StructuredMarkov(method="cuts").learn(examples).certificate
    assert certificate is not None
    cards = np.array(certificate.evidence["label_cardinalities"])
    evidence = {
        **certificate.evidence,
        "weights": np.zeros_like(certificate.evidence["weights"]),
        "labellings": (codes[: len(cards)].T - cards).tolist(),
        "owners": list(range(codes.shape[1])),
        "multipliers": certificate.evidence["strength"] * weights,
    }
    value = certificate.evidence["strength"] * certificate.evidence["margin"] * float(weights.sum()) * len(cards)
    forged = replace(certificate, objective=value, bound=value, status="optimal", evidence=evidence)
    refuse(forged.to_document(), codes, weights, match="a label")


@pytest.mark.parametrize(("labels", "said"), [([0], "labels for"), ([-1, 0, 0], "a label is"), ([0, 9, 0], "a label")])
def test_labellings_of_chains_have_a_label_for_every_position(labels: list[int], said: str) -> None:
    examples = chain_sample(3, (3,) * 12)
    codes, weights = codes_of(examples)
    certificate = StructuredMarkov(method="cuts").learn(examples).certificate
    assert certificate is not None
    evidence = {**certificate.evidence, "labellings": [labels], "owners": [0], "multipliers": [1e-3]}
    refuse(replace(certificate, evidence=evidence).to_document(), codes, weights, match=said)


def learned(learner: Any, seed: int = 0) -> tuple[Certificate, Rows]:
    rng = np.random.default_rng(seed)
    dag = Dag(tuple("yab"), ((), (0,), (0, 1)))
    network = random_network(rng, dag, (3, 2, 3))
    rows = network.sample(60, rng).merged()[0]
    certificate = learner.learn(network.schema, dag, rows).certificate
    assert certificate is not None
    return certificate, rows


@pytest.mark.parametrize("learner", [MarginHybrid(), MarginMarkov()], ids=str)
def test_a_claim_that_is_no_number_is_no_claim(learner: Any) -> None:
    certificate, rows = learned(learner)
    for field in ("objective", "bound"):
        forged = resealed({**certificate.to_document(), field: "nan"})
        refuse(forged, rows.codes, rows.weights, match="nan")


@pytest.mark.parametrize("learner", [MarginHybrid(), MarginMarkov()], ids=str)
def test_what_is_far_from_its_bound_is_not_optimal(learner: Any) -> None:
    certificate, rows = learned(learner)
    verify(certificate.to_document(), rows.codes, rows.weights)
    assert certificate.status == "optimal"
    weaker = replace(certificate, bound=certificate.bound - 0.01 * abs(certificate.objective))
    refuse(weaker.to_document(), rows.codes, rows.weights, match="more than that of an optimum")
    verify(replace(weaker, status="time limit").to_document(), rows.codes, rows.weights)


def margin_document(kind: str, **changes: Any) -> dict[str, Any]:
    """A certificate of the published problem for naive Bayes on `XOR`, whose margins are all zero."""
    evidence = {
        "parents": NAIVE,
        "cardinalities": [2, 2, 2, 2],
        "B": 1.0,
        "gamma": 1.0,
        "weights": np.full((7, 2), -5.0),
        "separable": True,
        "levels": np.zeros((7, 2), int),
        "core": np.zeros((7, 2)),
        "radius": 5.0,
        "method": "exact",
        "duals": {"rows": [], "classes": [], "values": []},
    }
    claims = {"objective": 0.0, "bound": np.inf, "status": "unbounded"}
    if kind == "margin-convex":
        claims = {"objective": 4.5, "bound": 0.0, "status": "not attained: the rows are separable"}
    claims |= {key: changes.pop(key) for key in claims.keys() & changes.keys()}
    sense = "max" if kind == "margin-hard" else "min"
    return Certificate(kind, sense, seconds=0.0, evidence={**evidence, **changes}, **claims).to_document()


@pytest.mark.parametrize("kind", ["margin-hard", "margin-convex"])
def test_a_witness_of_separability_that_only_rounding_makes_is_refused(kind: str) -> None:
    core = np.zeros((7, 2))
    core[2, 0], core[6, 0] = 2.0**60, -(2.0**60)  # a, and a once more, cancel: but for what rounding eats in between
    core[1, 1], core[5, 1] = 2.0**60, -(2.0**60)
    core[3], core[4] = 1.0, -1.0
    refuse(margin_document(kind, core=core), XOR, match="does not separate")


def test_a_witness_on_rows_that_are_separable_holds() -> None:
    codes = XOR.copy()
    codes[0] = codes[1]
    core = np.zeros((7, 2))
    core[1], core[2] = [1.0, 0.0], [0.0, 1.0]
    assert verify(margin_document("margin-hard", core=core), codes).objective == 0.0


def test_a_bound_within_no_radius_is_none() -> None:
    gamma = 4 ** (-1 / 3)
    numbers = {"objective": 1 / (2 * gamma**2) + 4 * gamma, "bound": 1.5 * 4 ** (2 / 3)}
    duals = {"rows": [0, 1, 2, 3], "classes": [1, 1, 0, 0], "values": [1.0] * 4}
    claim = {**numbers, "separable": False, "gamma": gamma, "duals": duals}
    for status in ("time limit", "optimal"):
        refuse(margin_document("margin-convex", status=status, radius=0.0, **claim), XOR, match="within")
    separable = XOR.copy()
    separable[0] = separable[1]
    forged = margin_document("margin-convex", status="time limit within |u| <= 0", radius=0.0, **claim)
    refuse(forged, separable, match="says nothing")


@pytest.mark.parametrize("part", ["structure", "parameters"])
def test_classes_of_the_schema_cannot_be_left_out(part: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (200, 3)).astype(str), rng.integers(0, 3, 200)
    structure = ExactMargin("sm") if part == "structure" else "nb"
    whole, two = (BayesNetClassifier(structure, MarginHybrid()).fit(X[y < n], y[y < n]) for n in (3, 2))
    result = two.structure_result_ if part == "structure" else two.parameter_result_
    entries = [
        {"name": v.name, "levels": [str(level) for level in v.levels], "cuts": None} for v in whole.schema_.variables
    ]
    document = result.certificate.to_document(entries)
    refuse(document, np.vstack([y, X.astype(int).T]), match="the numbers of levels differ from those of the schema")


def test_evidence_that_is_no_evidence_is_refused_in_one_sentence() -> None:
    certificate, rows = learned(MarginHybrid())
    for name in certificate.evidence:
        for nonsense in (None, "x", [], {}):
            forged = replace(certificate, evidence={**certificate.evidence, name: nonsense})
            refuse(forged.to_document(), rows.codes, rows.weights)


@pytest.mark.parametrize("learner", [MarginMarkov(), MarginHybrid()], ids=["markov", "hybrid"])
@pytest.mark.parametrize("far", [1e7, 1e15, 1e200])
def test_weights_as_bad_as_can_be_make_no_room_for_a_false_bound(learner: Any, far: float) -> None:
    X, y, codes = exclusive_or()
    proof = BayesNetClassifier("nb", learner).fit(X, y).parameter_result_.certificate.to_document()
    better, forged = proof["objective"], copy.deepcopy(proof)
    weights = np.array(forged["evidence"]["weights"])
    forged["evidence"]["weights"] = (weights * far if isinstance(learner, MarginMarkov) else weights - far).tolist()
    forged.update(bound=2 * better, status="iteration limit")
    with pytest.raises(CertificateError) as refused:
        verify(resealed({**forged, "bound": -1e300}), codes)
    found = str(refused.value).removeprefix("the objective is ").split(", not")[0]
    forged["objective"] = found if found == "inf" else float(found)  # said honestly
    refuse(resealed(forged), codes)
