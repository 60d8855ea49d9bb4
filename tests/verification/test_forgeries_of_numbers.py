"""Certificates with a proper seal whose numbers are chosen so that rounding, infinities or odd places lie for them."""

from __future__ import annotations

import base64
import copy
import math
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from marginbayes import BayesNetClassifier
from marginbayes.parameters.combination import ConvexCombination
from marginbayes.parameters.convex import MarginConvex
from marginbayes.parameters.hybrid import MarginHybrid
from marginbayes.parameters.markov import MarginMarkov
from marginbayes.sequence import StructuredConvex, StructuredMarkov
from marginbayes.solvers import Certificate
from marginbayes.structure import ExactScore
from marginbayes.structure.exact.learner import ExactMargin
from marginbayes.verification import read_document, verify, verify_table
from marginbayes.verification.document import CertificateError
from tests.oracles.labellings import chain_sample, tree_sample
from tests.sequence.test_sequence_certificates import codes_of
from tests.verification.test_forgeries import exact, exclusive_or, learned, refuse, resealed


def test_a_margin_without_limit_proves_nothing() -> None:
    document, codes = exact(k=1)
    forged = copy.deepcopy(document)
    samples = len(np.unique(codes, axis=1).T)
    places, shares = np.r_[0, np.ones(samples - 1)].astype("<i4"), np.full(samples, 1 << 24, "<i4")
    everything = base64.b64encode(zlib.compress(np.concatenate([places, shares]).tobytes())).decode()
    record = {"parent": [-1], "slots": [[0]], "taken": [False], "fixes": [[]], "closed": [0]}
    forged["evidence"] |= {
        "gamma": "inf",
        "redundant": [],
        "parents": [[], [], [], []],
        "proof": {**record, "multipliers": [everything]},
    }
    for claim in (5.2, 0.0, "inf"):
        refuse(
            resealed({**forged, "objective": claim, "bound": claim, "status": "optimal"}),
            codes,
            match="positive numbers",
        )


@pytest.mark.parametrize("kind", ["margin", "score"])
@pytest.mark.parametrize(("first", "others"), [(2.0**50, 2.0**59), (2.0**55, 2.0**55), (1e300, 1e300)])
def test_multipliers_of_clusters_that_swallow_the_scores_prove_nothing(kind: str, first: float, others: float) -> None:
    X, y, codes = exclusive_or()
    learner = ExactMargin("sm", gamma=2.0, k=2) if kind == "margin" else ExactScore("bic", max_parents=2)
    found = BayesNetClassifier(learner).fit(X, y).structure_result_.certificate
    assert found.status == "optimal"
    document = found.to_document()
    clusters = {"clusters": [[i] for i in range(4)], "multipliers": [first, *[others] * 3]}
    nothing = {"samples": [], "rivals": [], "values": []} if kind == "margin" else {}
    forged = copy.deepcopy(document)
    forged["evidence"] |= {"proofs": [nothing | clusters], "leaves": [{"decisions": [], "proof": 0}], "fixes": []}
    if kind == "score":
        forged["evidence"]["method"] = "tree"
    lower = found.objective - 1e-3 * abs(found.objective)
    refuse(resealed({**forged, "bound": lower, "status": "time limit"}), codes, match="only the bound")


@pytest.mark.parametrize("entry", ["-inf", "inf", "nan"])
def test_a_member_of_a_combination_with_an_infinite_weight_is_refused(entry: str) -> None:
    certificate, rows = learned(ConvexCombination(2))
    members = np.array(certificate.evidence["members"])
    members.flat[3] = float(entry)
    forged = replace(
        certificate, objective=0.0, bound=0.0, status="optimal", evidence={**certificate.evidence, "members": members}
    )
    refuse(forged.to_document(), rows.codes, rows.weights, match="is no number")


@pytest.mark.parametrize("power", [44, 50, 52, 60])
def test_potentials_whose_probabilities_are_rounding_stand_for_no_distribution(power: int) -> None:
    examples = chain_sample(1, (3,) * 20)
    codes, weights = codes_of(examples)
    certificate = StructuredMarkov(0.2).learn(examples).certificate
    assert certificate is not None
    evidence = dict(certificate.evidence)
    verify(certificate.to_document(), codes, weights)
    potentials = np.array(evidence["potentials"])
    potentials[: evidence["labels"]] += 2.0**power
    refuse(replace(certificate, evidence={**evidence, "potentials": potentials}).to_document(), codes, weights)


GRAPHS = [
    ([[], [0, -3], [0]], "a parent is -3"),
    ([[], [0, 3], [0]], "a parent is 3"),
    ([[], [0, 2], [0, 1]], "a cycle among the variables"),
    ([[], [0, 1], [0]], "a cycle among the variables"),
    ([[], [0, 0], [0]], "one parent twice"),
    ([[], [0]], "the graph has 2 variables"),
]


@pytest.mark.parametrize(("parents", "said"), GRAPHS)
@pytest.mark.parametrize("learner", [MarginHybrid(), MarginMarkov(), MarginConvex(), ConvexCombination(2)], ids=str)
def test_a_graph_is_one_of_these_variables_and_has_no_cycle(learner: Any, parents: list[list[int]], said: str) -> None:
    certificate, rows = learned(learner)
    forged = replace(certificate, evidence={**certificate.evidence, "parents": parents})
    refuse(forged.to_document(), rows.codes, rows.weights, match=said)


@pytest.mark.parametrize("parents", [[-2, 0], [1, 0], [0, -1], [-1, 5]])
def test_targets_hang_together_as_a_tree(parents: list[int]) -> None:
    examples = tree_sample(0, 15)
    codes, weights = codes_of(examples)
    certificate = StructuredMarkov(method="cuts").learn(examples).certificate
    assert certificate is not None
    whole = [*parents, *certificate.evidence["parents"][2:]]
    forged = replace(certificate, evidence={**certificate.evidence, "parents": whole})
    refuse(forged.to_document(), codes, weights, match="a parent is|a cycle")


@pytest.mark.parametrize("learner", [MarginHybrid(), MarginMarkov(), MarginConvex(), ConvexCombination(2)], ids=str)
def test_a_minimum_cannot_be_claimed_as_a_maximum(learner: Any) -> None:
    certificate, rows = learned(learner)
    document = certificate.to_document()
    for sense in ("max", "either"):
        forged = resealed({**document, "sense": sense, "bound": document["objective"]})
        refuse(forged, rows.codes, rows.weights, match="the sense of such a certificate is 'min'")


def test_margins_of_huge_weights_are_not_what_rounding_makes_of_them() -> None:
    """Weights of 2^60 cancel in every row; what is left is lost when they are summed as they come."""
    codes = np.array([[0, 1], [0, 1], [0, 1]])
    table = np.zeros((5, 2))
    table[1:3], table[3:5] = -(2.0**60), -1.0
    table[[3, 4], [0, 1]] = -3.0
    table[0] = -1.0
    gamma = 1.0
    evidence = {
        "parents": [[], [0], [0]],
        "cardinalities": [2, 2, 2],
        "B": 1.0,
        "gamma": gamma,
        "weights": table,
        "separable": False,
        "radius": 1.16e18,
        "method": "exact",
        "gap": 1e-6,
        "duals": {"rows": [], "classes": [], "values": []},
    }
    true = 1 / (2 * gamma**2) + 2 * (gamma + 2.0)
    assert true == 1 / (2 * gamma**2) + sum(gamma - math.fsum([-1, -(2.0**60), -3, 1, 2.0**60, 1]) for _ in range(2))
    for objective, holds in ((true, True), (1 / (2 * gamma**2) + 2 * gamma, False)):
        document = Certificate(
            "margin-convex", "min", objective, 0.0, "time limit", 0.0, evidence=evidence
        ).to_document()
        if holds:
            assert verify(document, codes).objective == objective
        else:
            refuse(document, codes, match="the objective is")


def test_rows_of_a_class_that_the_certificate_does_not_know_are_not_left_out(tmp_path) -> None:
    rng = np.random.default_rng(0)
    X = np.array([rng.choice(list("pq"), 60), rng.choice(list("rs"), 60)]).T
    y = rng.choice(["no", "yes"], 60)
    half = np.arange(60) < 30
    path = tmp_path / "half.json"
    BayesNetClassifier("nb", MarginHybrid()).fit(X[half], y[half]).save_certificates(path)
    document = read_document(path)
    names = [variable["name"] for variable in document["schema"]]
    columns = {names[0]: np.where(half, y, "maybe").tolist(), names[1]: X[:, 0].tolist(), names[2]: X[:, 1].tolist()}
    with pytest.raises(CertificateError, match=r"'maybe' in .* is no level of the certificate"):
        verify_table(document, columns)
    verify_table(document, columns, half.astype(float))
    columns[names[0]] = [label if there else None for label, there in zip(y.tolist(), half, strict=True)]
    verify_table(document, columns)


def with_schema(path) -> dict[str, Any]:
    """A certificate of a structure with its schema, from a file."""
    X, y, _ = exclusive_or()
    BayesNetClassifier(ExactMargin("sm")).fit(X, y).save_certificates(path)
    return read_document(path)


def test_the_names_of_the_evidence_are_those_of_the_schema(tmp_path) -> None:
    document = with_schema(tmp_path / "c.json")
    forged = copy.deepcopy(document)
    forged["evidence"]["names"][1:] = forged["evidence"]["names"][:0:-1]
    refuse(resealed(forged), exclusive_or()[2], match="the names of the variables differ")


@pytest.mark.parametrize(
    ("name", "value"), [("cuts", [None, 6.15]), ("cuts", "x"), ("levels", None), ("name", [1]), ("cuts", KeyError)]
)
def test_a_schema_that_is_none_is_refused(tmp_path, name: str, value: Any) -> None:
    forged = copy.deepcopy(with_schema(tmp_path / "c.json"))
    if value is KeyError:
        del forged["schema"][1][name]
    else:
        forged["schema"][1][name] = value
    with pytest.raises(CertificateError, match="the schema does not say of every variable"):
        verify_table(resealed(forged), {})


def test_levels_that_are_no_values_are_refused(tmp_path) -> None:
    forged = copy.deepcopy(with_schema(tmp_path / "c.json"))
    forged["schema"][1]["levels"][0] = [1]
    X, y, _ = exclusive_or()
    columns = {v["name"]: cells.tolist() for v, cells in zip(forged["schema"], [y, *X.T], strict=True)}
    with pytest.raises(CertificateError, match="cannot be compared with cells"):
        verify_table(resealed(forged), columns)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format": "marginbayes-certificate"', "\ud800"])
def test_a_file_that_cannot_be_read_is_no_certificate(tmp_path, text: str) -> None:
    path = tmp_path / "deep.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(CertificateError, match="is not JSON"):
        read_document(path)


def test_numbers_that_json_does_not_know_are_refused(tmp_path) -> None:
    path = tmp_path / "c.json"
    with_schema(path)
    path.write_text(path.read_text().replace('"objective": ', '"objective": NaN, "was": ', 1))
    document = read_document(path)
    del document["was"]
    refuse(document, exclusive_or()[2], match="JSON has no word for")


@pytest.mark.parametrize("k", [1, 2])
def test_absurd_numbers_are_refused_and_not_counted_through(k: int) -> None:
    document, codes = exact(k=k)
    levels = copy.deepcopy(document)
    levels["evidence"]["cardinalities"][0] = 10**12
    refuse(resealed(levels), codes, match="out of all proportion")
    if k == 1:
        parents = copy.deepcopy(document)
        parents["evidence"]["class_parents"] = 10**12
        refuse(resealed(parents), codes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k": 2}, "k is 2"),
        ({"k": 1.0}, "k is 1.0"),
        ({"class_parents": True}, "class_parents is True"),
        ({"redundant": [[0, 0, 1], [1, 0, 1]]}, "was left out"),
        ({"gamma": 1e18}, "not too large"),
        ({"weight": "nan"}, "the rows weigh"),
    ],
)
def test_numbers_of_a_structure_mean_what_they_say(change: dict[str, Any], said: str) -> None:
    document, codes = exact(k=1)
    forged = copy.deepcopy(document)
    forged["evidence"] |= change
    refuse(resealed(forged), codes, match=said)


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("forbidden", lambda names: [[names[0], names[0]]]),
        ("tiers", lambda names: [[names[0]], [names[1]]]),
        ("tiers", lambda names: [[names[1]], [names[1]]]),
        ("keep", lambda names: [names[0]]),
    ],
)
def test_constraints_speak_of_features(rule: str, value: Any) -> None:
    document, codes = exact(k=1)
    forged = copy.deepcopy(document)
    forged["evidence"]["constraints"][rule] = value(document["evidence"]["names"])
    refuse(resealed(forged), codes, match=r"named twice|of the class as of a feature")


@pytest.mark.parametrize("learner", [MarginHybrid(), MarginMarkov()], ids=str)
def test_what_is_infinite_is_no_optimum(learner: Any) -> None:
    certificate, rows = learned(learner)
    weights = np.full_like(certificate.evidence["weights"], 1e200 if isinstance(learner, MarginMarkov) else -1e307)
    forged = replace(certificate, objective=np.inf, evidence={**certificate.evidence, "weights": weights})
    refuse(forged.to_document(), rows.codes, rows.weights)


@pytest.mark.parametrize(("name", "cost"), [("B", 1e18), ("C", 1e18), ("C", np.inf), ("B", -1.0)])
def test_costs_with_which_rounding_decides_are_refused(name: str, cost: float) -> None:
    certificate, rows = learned(MarginHybrid() if name == "B" else MarginMarkov())
    forged = replace(certificate, evidence={**certificate.evidence, name: cost})
    refuse(forged.to_document(), rows.codes, rows.weights, match=f"{name}=.* must be positive, and at most")


def test_cells_of_levels_that_the_certificate_lacks_are_not_missing(tmp_path) -> None:
    X, y, _ = exclusive_or()
    path = tmp_path / "c.json"
    BayesNetClassifier(ExactScore("bic")).fit(X, y).save_certificates(path)
    document = read_document(path)
    names = [variable["name"] for variable in document["schema"]]
    columns = {names[0]: y.tolist(), **{name: X[:, i].tolist() for i, name in enumerate(names[1:])}}
    verify_table(document, columns)
    columns[names[1]][0] = "z"
    with pytest.raises(CertificateError, match=r"'z' in .* is no level of the certificate"):
        verify_table(document, columns)
    cut = copy.deepcopy(document)
    cut["schema"][1]["cuts"] = [0.5, 0.7]
    with pytest.raises(CertificateError, match="the schema does not say"):
        verify_table(resealed(cut), columns)


@pytest.mark.parametrize(
    ("name", "value"), [("order", 3), ("order", 2.0), ("order", -4), ("window", 2), ("window", 3.0)]
)
def test_order_and_window_of_chains_are_what_they_say(name: str, value: Any) -> None:
    examples = chain_sample(1, (3,) * 10)
    codes, weights = codes_of(examples)
    certificate = StructuredMarkov(0.2).learn(examples).certificate
    assert certificate is not None
    refuse(replace(certificate, evidence={**certificate.evidence, name: value}).to_document(), codes, weights)


def test_within_a_box_the_margin_is_one_and_what_is_separable_has_no_bound() -> None:
    examples = chain_sample(1, (3,) * 10)
    codes, weights = codes_of(examples)
    certificate = StructuredConvex().learn(examples).certificate
    assert certificate is not None
    verify(certificate.to_document(), codes, weights)
    half = replace(certificate, evidence={**certificate.evidence, "margin": 0.5})
    refuse(half.to_document(), codes, weights, match="the margin is 1")


def test_a_strength_with_which_rounding_decides_is_refused() -> None:
    examples = chain_sample(1, (3,) * 10)
    codes, weights = codes_of(examples)
    certificate = StructuredMarkov(0.2).learn(examples).certificate
    assert certificate is not None
    for strength in (1e18, np.inf, -1.0):
        forged = replace(certificate, evidence={**certificate.evidence, "strength": strength})
        refuse(forged.to_document(), codes, weights, match="the strength at most 1e")


@pytest.mark.parametrize("factor", [1.0001, 0.5, -1.0])
def test_the_radius_of_a_bound_is_the_one_that_the_status_names(factor: float) -> None:
    certificate, rows = learned(MarginConvex())
    assert certificate.bound > 0
    assert certificate.status.endswith(f" within |u| <= {certificate.evidence['radius']:.3g}")
    other = {**certificate.evidence, "radius": factor * certificate.evidence["radius"]}
    refuse(replace(certificate, evidence=other).to_document(), rows.codes, rows.weights)
