from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from marginbayes import BayesNetClassifier, Dag, Network
from marginbayes.data import Rows
from marginbayes.parameters import MarginHybrid, MaximumLikelihood
from marginbayes.solvers import Moment
from marginbayes.verification import CertificateError, verify
from marginbayes.verification.document import seal
from tests.oracles import margin
from tests.oracles.brute import random_dag, random_network, with_holes

NB = Dag.naive(list("yabc"))
TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))
PARENTED = Dag.from_edges([("a", "y"), ("y", "b"), ("b", "c")], names=["y", "a", "b", "c"])
UNMARRIED = Dag.from_edges([("y", "x"), ("a", "x"), ("b", "x"), ("y", "a"), ("y", "b")], names=["y", "a", "b", "x"])
MARRIED = Dag.from_edges(
    [("y", "x"), ("a", "x"), ("b", "x"), ("y", "a"), ("y", "b"), ("a", "b")], names=["y", "a", "b", "x"]
)


def problem(seed: int, dag: Dag, n: int = 40, holes: float = 0.0, classes: int = 3) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, dag, (classes, 2, 3, 2))
    rows = with_holes(rng, network.sample(n, rng), holes, keep_class=True)
    return network, rows.reweighted(rng.random(n) + 0.5)


@pytest.mark.parametrize("dag", [NB, TAN, PARENTED, MARRIED, UNMARRIED], ids=["nb", "tan", "parented", "fig1", "fig2"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize(("B", "target"), [(0.3, 1.0), (10.0, 0.5), (2.0, 8.0)])
def test_the_optimum_is_that_of_a_generic_solver(dag: Dag, holes: float, B: float, target: float) -> None:
    cp = pytest.importorskip("cvxpy")
    network, rows = problem(0, dag, holes=holes)
    found = MarginHybrid(B, target, tol=1e-8).learn(network.schema, dag, rows).certificate
    assert found.status == "optimal"
    assert found.objective == pytest.approx(margin.hybrid(cp, dag, rows, B, target), rel=1e-6)


def test_smoothing_spread_over_tables_has_the_optimum_of_a_generic_solver() -> None:
    cp = pytest.importorskip("cvxpy")
    network, rows = problem(1, TAN)
    found = MarginHybrid(3.0, 4.0, kind="ess", tol=1e-8).learn(network.schema, TAN, rows).certificate
    assert found.objective == pytest.approx(margin.hybrid(cp, TAN, rows, 3.0, 4.0, "ess"), rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(
    st.integers(0, 10**6),
    st.floats(1e-3, 100),
    st.floats(1e-2, 20),
    st.sampled_from([0.0, 0.3]),
    st.integers(1, 4),
    st.integers(1, 25),
    st.sampled_from(["laplace", "ess"]),
)
def test_certificates_are_never_wrong(
    seed: int, B: float, target: float, holes: float, classes: int, n: int, kind: str
) -> None:
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, 4, 2)
    network = random_network(rng, dag, (classes, *map(int, rng.integers(1, 4, 3))))
    rows = with_holes(rng, network.sample(n, rng), holes, keep_class=True).reweighted(rng.random(n) * 3)
    rough = MarginHybrid(B, target, kind=kind, tol=0.1, max_iter=3).learn(network.schema, dag, rows)
    fine = MarginHybrid(B, target, kind=kind).learn(network.schema, dag, rows)
    first, second = rough.certificate, fine.certificate
    for found in (rough, fine):
        report = verify(found.certificate.to_document(), rows.codes, rows.weights)
        assert report.bound <= report.objective + 1e-9 * max(1.0, abs(report.objective))
        assert found.network.normalized
    slack = 1e-9 * max(1.0, abs(second.objective))
    assert first.bound <= second.objective + slack
    assert second.bound <= first.objective + slack
    assert second.status.startswith("optimal")


@pytest.mark.parametrize("dag", [NB, TAN, PARENTED, UNMARRIED], ids=["nb", "tan", "parented", "fig2"])
def test_the_network_is_that_of_the_certificate(dag: Dag) -> None:
    network, rows = problem(2, dag)
    found = MarginHybrid(2.0, 3.0).learn(network.schema, dag, rows)
    assert found.network.normalized
    own = found.network.log_joint(rows)
    at, weights = np.arange(len(rows)), rows.weights
    rivals = own.copy()
    rivals[at, rows.codes[0]] = -np.inf
    hinges = np.maximum(0.0, 3.0 - own[at, rows.codes[0]] + rivals.max(axis=1))
    with_class = [t for t, parents, i in zip(found.network.tables, dag.parents, range(4), strict=True) if 0 in (*parents, i)]
    features = np.array([margin.features(dag, rows.cardinalities, c) for c in rows.codes.T.tolist()])
    flat = np.concatenate([t.ravel() for t in with_class])
    expected = -(weights @ features + 1.0) @ flat + 2.0 * weights @ hinges
    assert found.certificate.objective == pytest.approx(expected, rel=1e-10)


def test_little_cost_gives_maximum_likelihood() -> None:
    network, rows = problem(3, TAN)
    likeliest = MaximumLikelihood().learn(network.schema, TAN, rows).network
    found = MarginHybrid(1e-9, tol=1e-12).learn(network.schema, TAN, rows).network
    for a, b in zip(found.tables, likeliest.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_more_cost_gives_fewer_hinges_and_less_likelihood() -> None:
    network, rows = problem(4, NB)
    seen = [MarginHybrid(B, 2.0, tol=1e-9).learn(network.schema, NB, rows).certificate for B in (0.1, 1.0, 10.0)]
    # objective = likelihood part + B hinge part; the parts follow from two objectives at the same weights
    hinges = [_hinge(c, rows) for c in seen]
    fits = [c.objective - B * h for c, B, h in zip(seen, (0.1, 1.0, 10.0), hinges, strict=True)]
    assert hinges[0] > hinges[1] > hinges[2]
    assert fits[0] < fits[1] < fits[2]


def _hinge(certificate: Any, rows: Rows) -> float:
    flat = np.asarray(certificate.evidence["weights"])  # cells x classes, as the tables of naive Bayes transposed
    start, tables = 0, []
    for k in (1, *rows.cardinalities[1:]):
        tables.append(flat[start : start + k].T.ravel())
        start += k
    w = np.concatenate(tables)
    pairs = zip(margin.differences(NB, rows), margin.weights_of(rows), strict=True)
    return float(sum(k * max(0.0, 2.0 - (d @ w).min()) for d, k in pairs))


def test_a_table_row_that_vanishes_leaves_a_normalised_network_with_the_decisions_of_the_optimum() -> None:
    # "c" has fewer levels than "a", the parent of its parent, so smoothing counts more for "b" in its own table.
    network, rows = vanishing(3)
    found = MarginHybrid(100.0, 5.0, tol=1e-8).learn(network.schema, TAN, rows)
    weights = np.asarray(found.certificate.evidence["weights"])
    sums = np.exp(weights[-6:]).reshape(3, 2, 2).sum(axis=1)
    assert sums.min() < 0.9
    cp = pytest.importorskip("cvxpy")
    assert found.certificate.objective == pytest.approx(margin.hybrid(cp, TAN, rows, 100.0, 5.0), rel=1e-6)
    assert found.network.normalized
    verify(found.certificate.to_document(), rows.codes)


def vanishing(seed: int) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, TAN, (2, 5, 3, 2))
    return network, network.sample(12, rng)
