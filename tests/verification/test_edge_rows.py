"""Certificates and rows at the edge: of weight zero, of levels nobody certified, of texts that look like numbers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest

from marginbayes import BayesNetClassifier, MultiLabelClassifier, SequenceLabeler
from marginbayes.data import Rows, Schema, Variable
from marginbayes.parameters.convex import MarginConvex
from marginbayes.sequence import StructuredConvex, StructuredHybrid
from marginbayes.structure import ExactMargin, ExactScore
from marginbayes.verification import CertificateError, verify, verify_table
from marginbayes.verification.document import seal
from marginbayes.verification.table import encode
from tests.oracles.labellings import chain_sample
from tests.sequence.test_sequence_certificates import codes_of


def resealed(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    forged = copy.deepcopy({key: value for key, value in document.items() if key != "digest"})
    forged["evidence"] |= changes.pop("evidence", {})
    return seal(forged | changes)


# -- optimal within a radius is optimal


def test_a_bad_solution_is_not_optimal_within_a_radius() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (3, 60)).astype(np.uint8)
    model = BayesNetClassifier("nb", MarginConvex()).fit(codes[1:].T.astype(str), codes[0])
    document = model.parameter_result_.certificate.to_document()
    assert document["status"].startswith("optimal within")
    verify(document, codes)
    nothing = {
        "weights": [[float(np.log(0.2))] * 2] * 5,
        "gamma": 1.0,
        "duals": {"rows": [], "classes": [], "values": []},
    }
    with pytest.raises(CertificateError, match="more than that of an optimum"):
        verify(resealed(document, evidence=nothing, objective=60.5, bound=0.0), codes)


def test_a_bad_labelling_is_not_optimal_within_a_radius() -> None:
    examples = chain_sample(3, (3,) * 12, missing=0.5)
    codes, weights = codes_of(examples)
    document = StructuredConvex(radius=10.0).learn(examples).certificate.to_document()
    verify(document, codes, weights)
    zeros = [0.0] * len(document["evidence"]["weights"])
    evidence = {"weights": zeros, "owners": [], "multipliers": [], "labellings": []}
    with pytest.raises(CertificateError, match="more than that of an optimum"):
        verify(resealed(document, evidence=evidence, objective=36.0, bound=0.0), codes, weights)


# -- separability does not depend on the scale of the weights


def mixed_sequences() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    ids, x, y = np.repeat(np.arange(10), 4), rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    return np.column_stack([ids, x]).astype(float), y


@pytest.mark.parametrize("weight", [1e-7, 1.0, 1e5])
def test_sequences_that_cannot_be_separated_are_not_whatever_they_weigh(weight: float) -> None:
    X, y = mixed_sequences()
    labeler = SequenceLabeler(sequence=0, parameters=StructuredConvex(), categorical_features=[1])
    labeler.fit(X, y, sample_weight=np.full(40, weight))
    proof = labeler.certificate_
    assert proof.status == "optimal within |u| <= 10"
    assert proof.objective == pytest.approx(39.0 * weight, rel=1e-4)
    document = proof.to_document()
    verify(document, np.array([y, X[:, 1].astype(int)]), np.full(40, weight))
    forged = resealed(document, status="separable: no optimum is attained")
    with pytest.raises(CertificateError, match="do not separate"):
        verify(forged, np.array([y, X[:, 1].astype(int)]), np.full(40, weight))


def test_sequences_that_can_be_separated_are_whatever_they_weigh() -> None:
    ids, y = np.repeat(np.arange(5), 4), np.tile([0, 1, 1, 0], 5)
    X = np.column_stack([ids, y]).astype(float)
    for weight in (1e-7, 1.0, 1e5):
        labeler = SequenceLabeler(sequence=0, parameters=StructuredConvex(), categorical_features=[1])
        labeler.fit(X, y, sample_weight=np.full(20, weight))
        assert labeler.certificate_.status.startswith("separable")
        verify(labeler.certificate_.to_document(), np.array([y, y]), np.full(20, weight))


# -- rows of weight zero are as if absent


def test_sequences_of_weight_zero_are_as_if_absent() -> None:
    X, y = mixed_sequences()
    weights = np.where(X[:, 0] == 3, 0.0, 1.0)
    labeler = SequenceLabeler(sequence=0, categorical_features=[1]).fit(X, y, sample_weight=weights)
    report = verify(labeler.certificate_.to_document(), np.array([y, X[:, 1].astype(int)]), weights)
    assert report.objective == pytest.approx(labeler.certificate_.objective)


def test_rows_with_labels_of_weight_zero_are_as_if_absent() -> None:
    rng = np.random.default_rng(0)
    X, Y, weights = rng.integers(0, 2, (30, 2)), rng.integers(0, 2, (30, 2)), np.ones(30)
    weights[:5] = 0.0
    model = MultiLabelClassifier(parameters=StructuredHybrid(method="cuts"))
    model.fit(X.astype(str), Y, sample_weight=weights)
    report = verify(model.certificate_.to_document(), np.vstack([Y.T, X.T]), weights)
    assert report.objective == pytest.approx(model.certificate_.objective)


# -- codes that nobody certified


@pytest.mark.parametrize("learner", [ExactScore("bic"), ExactMargin("sm", k=2), ExactMargin("sm", k=1)])
def test_codes_beyond_the_certified_levels_are_refused(learner: Any) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, (3, 40)).astype(np.uint8)
    schema = Schema(tuple(Variable(name, (0, 1)) for name in "yab"))
    document = learner.learn(schema, Rows(codes, (2, 2, 2))).certificate.to_document()
    for strange in ([0, 3, 1], [0, -1, 1], [-1, 0, 1]):
        more = np.column_stack([codes.astype(np.int64), strange])
        with pytest.raises(CertificateError, match="codes beyond"):
            verify(document, more)


# -- cells as they are spelled


@pytest.mark.parametrize(
    "levels",
    [
        *(("01", "1", "x"), ("007", "7", "x"), ("1.0", "1", "x"), ("1_0", "10", "x"), ("inf", "Infinity", "x")),
        *(("nan", "a", "x"), ("", "a", "x"), ("1", "2", "3"), (1, 2, 3), (1.5, 2, 3), (2**60, 2**60 + 1, 0)),
    ],
)
def test_texts_are_levels_letter_by_letter_and_numbers_by_value(levels: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 80)
    y = np.where(rng.random(80) < 0.2, 1 - a % 2, a % 2)
    schema = Schema((Variable("y", (0, 1)), Variable("a", levels)))
    certificate = ExactScore("bic").learn(schema, Rows(np.array([y, a], np.uint8), (2, 3))).certificate
    document = certificate.to_document(
        [{"name": v.name, "levels": list(v.levels), "cuts": None} for v in schema.variables]
    )
    cells = [levels[i] for i in a]
    tables = [{"y": y.tolist(), "a": cells}]
    if not isinstance(levels[0], str):
        tables.append({"y": [str(c) for c in y], "a": [str(c) for c in cells]})
    for table in tables:
        assert verify_table(document, table).objective == pytest.approx(certificate.objective)


@pytest.mark.filterwarnings(r"ignore:\d+ of \d+ rows have a missing cell")
@pytest.mark.parametrize("hole", [None, "", float("nan"), pd.NA, pd.NaT])
def test_whatever_stands_for_a_missing_cell_is_one(hole: Any) -> None:
    y, a = [0, 1, 0, 1, 1, 0], [0, 1, 0, 1, 2, 2]  # 2 of 2 levels: missing
    schema = Schema((Variable("y", (0, 1)), Variable("a", ("p", "q"))))
    certificate = ExactScore("bic").learn(schema, Rows(np.array([y, a], np.uint8), (2, 2))).certificate
    document = certificate.to_document(
        [{"name": v.name, "levels": list(v.levels), "cuts": None} for v in schema.variables]
    )
    table = {"y": y, "a": [["p", "q", hole][c] for c in a]}
    assert verify_table(document, table).objective == pytest.approx(certificate.objective)


def test_underscores_between_digits_are_no_number() -> None:
    schema = [
        {"name": "y", "levels": [0, 1], "cuts": None},
        {"name": "x", "levels": ["low", "high"], "cuts": [5.0]},
        {"name": "z", "levels": [10, 11], "cuts": None},
    ]
    columns = {"y": [0, 1], "x": ["4", "6"], "z": ["10", "1_0"]}
    assert encode(schema, columns).tolist() == [[0, 1], [0, 1], [0, 2]]  # 1_0 is no level that is known
    with pytest.raises(CertificateError, match="'x' should hold numbers but holds '1_0'"):
        encode(schema, {**columns, "x": ["4", "1_0"]})
