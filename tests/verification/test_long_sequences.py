"""Certificates of long sequences and high strengths: what rounding does to sums along a chain must not matter."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from marginbayes.sequence import ChainExamples, ChainModel, StructuredHybrid, StructuredMarkov
from marginbayes.sequence.learners import multipliers
from marginbayes.verification import CertificateError, verify
from marginbayes.verification.labelled_chains import ROUNDING, LabelledChains
from marginbayes.verification.sequences import check_sequence_margin
from tests.oracles.labellings import chain_sample
from tests.sequence.test_sequence_certificates import codes_of


def long_chains(seed: int, n_chains: int, length: int, window: int = 7) -> tuple[ChainExamples, np.ndarray]:
    """Chains of three labels that two of four observed features decide, and their codes, labels first."""
    rng = np.random.default_rng(seed)
    observed = rng.integers(0, 4, (4, n_chains * length))
    labels = (observed[0] == 0).astype(np.int64) + (observed[1] == 1)
    model, offsets = ChainModel(3, (4,) * 4, window), np.arange(n_chains + 1) * length
    return ChainExamples(model, model.cells(observed, offsets), offsets, labels), np.vstack([labels, observed])


def exact(chains: LabelledChains, vector: np.ndarray, margin: float) -> tuple[Any, Any]:
    """The same by numbers of more digits."""
    return chains.expected(vector.astype(np.longdouble), np.longdouble(margin))


def test_the_certificate_of_two_sequences_of_a_thousand_rows_holds() -> None:
    examples, codes = long_chains(0, 2, 1000)
    certificate = StructuredHybrid(10.0, max_iter=250).learn(examples).certificate
    assert certificate is not None
    assert np.isfinite(certificate.bound)
    verify(certificate.to_document(), codes)


@pytest.mark.parametrize(("seed", "strength"), [(0, 1e4), (4, 1e6)])
def test_the_certificate_of_a_high_strength_holds(seed: int, strength: float) -> None:
    examples, codes = long_chains(seed, 4, 200)
    certificate = StructuredHybrid(strength, 3.0, max_iter=300).learn(examples).certificate
    assert certificate is not None
    verify(certificate.to_document(), codes)


@pytest.mark.skipif(np.finfo(np.longdouble).eps >= np.finfo(float).eps, reason="there are no longer numbers here")
def test_expectations_of_a_chain_of_a_million_nats_lose_no_digit() -> None:
    examples, codes = long_chains(1, 1, 1000)
    vector = np.random.default_rng(0).normal(0, 150, examples.n_weights)
    chains = LabelledChains(examples.describe(), codes, np.ones(codes.shape[1]))
    found, wrong = chains.expected(vector, 5.0)
    exactly, wrong_exactly = exact(chains, vector, 5.0)
    np.testing.assert_allclose(found, exactly.astype(float), rtol=1e-10, atol=1e-10)
    assert wrong == pytest.approx(float(wrong_exactly), rel=1e-10)


def test_a_chain_is_no_further_from_its_truth_for_being_long() -> None:
    # No labelling beats the truth, so that the hinge is zero to the last digit.
    examples, codes = long_chains(2, 1, 1000)
    vector = examples.true_features / 7.0 + 1e4
    chains = LabelledChains(examples.describe(), codes, np.ones(codes.shape[1]))
    labels, _ = examples.decode(vector)
    chains.labels = labels
    assert chains.hinges(vector, 0.0)[0] == 0.0
    assert ChainExamples(examples.model, examples.cells, examples.offsets, labels).hinge(vector, 0.0) == 0.0


def test_learners_are_stricter_with_rounding_than_the_check() -> None:
    assert multipliers.SPOILT < ROUNDING


@pytest.mark.parametrize("order", [1, 2])
def test_no_potentials_prove_more_than_the_optimum_whatever_rounding_does_to_them(order: int) -> None:
    examples = chain_sample(1, (1, 4, 2, 3, 6), order=order)
    codes, weights = codes_of(examples)
    certificate = StructuredMarkov(5.0).learn(examples).certificate
    assert certificate is not None
    potentials, rng = np.array(certificate.evidence["potentials"]), np.random.default_rng(0)
    bounds = []
    for size in (0.0, 1e6, 1e12, 1e16, 1e18, 1e300):
        for shift in (np.full(len(potentials), size), rng.normal(0, size, len(potentials))):
            evidence = {**certificate.evidence, "potentials": potentials + shift}
            document = {"sense": "min", "evidence": evidence, "status": "optimal"}
            with np.errstate(all="ignore"), suppress(CertificateError):
                bounds.append(check_sequence_margin(document, codes, weights)[1])
    assert bounds[0] == pytest.approx(certificate.bound, rel=1e-8)  # the potentials as they were
    assert max(bounds) <= certificate.objective
