"""Certificates of margin problems over label vectors, checked by code of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes.sequence import ChainExamples, ChainModel, StructuredConvex, StructuredHybrid, StructuredMarkov
from marginbayes.solvers import Certificate
from marginbayes.verification import CertificateError, verify
from tests.oracles.labellings import chain_sample, tree_sample


def codes_of(examples: Any) -> tuple[np.ndarray, np.ndarray]:
    """Codes (labels first) and row weights, found back from the cells."""
    model = examples.model
    if hasattr(model, "window"):
        reach = model.window // 2
        columns = []
        for f, levels in enumerate(model.cardinalities):
            child = f * model.window + reach
            cell = examples.cells[:, child]
            columns.append(np.where(cell < 0, levels, cell - model.first_cells[child]))
        return np.array([examples.labels, *columns]), np.repeat(examples.weights, np.diff(examples.offsets))
    dense = examples.cells.toarray()
    parts = np.split(dense, model.first_cells[1:-1], axis=1)
    columns = [np.where(part.any(axis=1), part.argmax(axis=1), part.shape[1]) for part in parts]
    return np.array([*examples.truth.T, *columns]), examples.weights


EXAMPLES = {
    "chain": lambda seed: chain_sample(seed, weights=True),
    "window": lambda seed: chain_sample(seed, (3, 1, 5, 2), window=3),
    "order 2": lambda seed: chain_sample(seed, (1, 4, 2, 3), order=2, n_labels=3),
    "tree": lambda seed: tree_sample(seed, 15),
}
LEARNERS = [
    StructuredHybrid(2.0, 1.5),
    StructuredHybrid(max_iter=3),
    StructuredHybrid(2.0, 1.5, method="cuts"),
    StructuredMarkov(),
    StructuredMarkov(method="cuts"),
    StructuredConvex(),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_certificate_is_borne_out_by_another_inference(kind: str, learner: Any) -> None:
    examples = EXAMPLES[kind](0)
    certificate = learner.learn(examples).certificate
    report = verify(certificate.to_document(), *codes_of(examples))
    assert report.objective == pytest.approx(certificate.objective, rel=1e-9, abs=1e-9)
    assert report.bound == certificate.bound
    assert report.gap == pytest.approx(certificate.gap, abs=1e-8)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["tables", "ball"]), st.floats(0.01, 20.0), st.floats(0.0, 5.0))
def test_every_potentials_prove_a_bound_below_every_objective(
    seed: int, regularizer: str, strength: float, potential_margin: float
) -> None:
    rng = np.random.default_rng(seed)
    examples = EXAMPLES[rng.choice(list(EXAMPLES))](seed % 5)
    weights, potentials = rng.normal(0, 2, (2, examples.n_weights))
    if regularizer == "tables":
        weights = examples.rows.normalised(weights)
    evidence = {
        "regularizer": regularizer,
        "strength": strength,
        "margin": float(rng.uniform(0.1, 3.0)),
        "smoothing": 1.0,
        "weights": weights,
        "potentials": potentials,
        "potential_margin": potential_margin,
        "share": 1.0,
        **examples.describe(),
    }
    codes, row_weights = codes_of(examples)
    objective, bound = recomputed(evidence, codes, row_weights)
    assert bound <= objective


def recomputed(evidence: dict[str, Any], codes: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Objective and bound of made-up evidence; the share is lowered until no table entry is overdrawn."""
    from marginbayes.verification.sequences import check_sequence_margin

    while True:
        try:
            document = {"sense": "min", "evidence": evidence}
            return check_sequence_margin(document, codes, weights)
        except CertificateError as error:
            assert "takes more from a table entry" in str(error)  # noqa: PT017
            evidence = {**evidence, "share": evidence["share"] / 2}


def changed(certificate: Certificate, **evidence: Any) -> dict[str, Any]:
    return replace(certificate, evidence={**certificate.evidence, **evidence}).to_document()


def test_whatever_is_changed_in_a_certificate_is_noticed() -> None:
    examples = EXAMPLES["chain"](1)
    codes, weights = codes_of(examples)
    certificate = StructuredHybrid().learn(examples).certificate
    assert certificate is not None
    found = np.array(certificate.evidence["weights"])
    lies = [
        (changed(certificate, weights=found - 0.01), "the objective is"),
        (changed(certificate, weights=found + 0.1), "more than one"),
        (changed(certificate, potentials=0.99 * np.array(certificate.evidence["potentials"])), "only the bound"),
        (changed(certificate, potentials=np.zeros(3)), "do not fit"),
        (changed(certificate, share=2.0), "no part of a whole"),
        (changed(certificate, regularizer="none"), "not known"),
        (changed(certificate, model="ring"), "the model 'ring' is not known"),
        (changed(certificate, lengths=[1, 2]), "rows, the data"),
        (replace(certificate, bound=certificate.objective).to_document(), "only the bound"),
    ]
    for document, message in lies:
        with pytest.raises(CertificateError, match=message):
            verify(document, codes, weights)
    with pytest.raises(CertificateError, match="digest"):
        verify({**certificate.to_document(), "bound": certificate.objective}, codes, weights)
    with pytest.raises(CertificateError, match=r"the objective is|different weights"):
        verify(certificate.to_document(), codes, weights * np.linspace(1, 2, len(weights)))
    wrong = codes.copy()
    wrong[0, 0] = 1 - wrong[0, 0]
    with pytest.raises(CertificateError, match="the objective is"):
        verify(certificate.to_document(), wrong, weights)


def test_multipliers_beyond_the_weight_of_an_example_prove_nothing() -> None:
    examples = chain_sample(3, (3,) * 12, missing=0.5)
    codes, weights = codes_of(examples)
    certificate = StructuredConvex().learn(examples).certificate
    assert certificate is not None
    multipliers = np.array(certificate.evidence["multipliers"])
    with pytest.raises(CertificateError, match="more than its weight"):
        verify(changed(certificate, multipliers=2 * multipliers), codes, weights)
    with pytest.raises(CertificateError, match="negative"):
        verify(changed(certificate, multipliers=-multipliers), codes, weights)
    with pytest.raises(CertificateError, match="does not end with 'within"):
        verify(changed(certificate, radius=1e-3), codes, weights)
    smaller = replace(certificate, status="optimal within |u| <= 0.001")
    with pytest.raises(CertificateError, match="outside the radius"):
        verify(changed(smaller, radius=1e-3), codes, weights)


def test_a_certificate_of_a_high_cost_holds_although_its_potentials_are_large() -> None:
    model, offsets = ChainModel(3, (3, 3), 1, 2), np.array([0, 2, 3, 4, 7])
    codes = np.array([[0, 2, 1, 1, 0, 2, 0], [0, 2, 2, 1, 0, 0, 0], [1, 1, 1, 1, 0, 1, 1]])
    examples = ChainExamples(model, model.cells(codes[1:], offsets), offsets, codes[0], None)
    certificate = StructuredMarkov(100.0).learn(examples).certificate
    assert certificate is not None
    assert np.abs(certificate.evidence["potentials"]).max() > 1e5
    verify(certificate.to_document(), codes)
