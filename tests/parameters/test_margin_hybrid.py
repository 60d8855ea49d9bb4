from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from marginbayes import BayesNetClassifier, Dag, Network
from marginbayes.data import Rows, Schema, Variable
from marginbayes.parameters import MarginHybrid, MaximumLikelihood
from marginbayes.solvers import Moment, entropic_interior
from marginbayes.solvers.entropic_path import Path
from marginbayes.solvers.entropic_small import SmallPath
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
    assert found.status.startswith("optimal")
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


@pytest.mark.parametrize("kind", ["laplace", "ess"])
def test_a_table_row_that_all_but_sums_to_one_may_vanish_too(kind: str) -> None:
    # With missing cells: the optimum has a row with the sum exp(-0.0096) and no counts left.
    rng = np.random.default_rng(1039)
    B, target = (float(np.exp(rng.uniform(np.log(a), np.log(b)))) for a, b in ((1e-3, 100), (1e-2, 20)))
    classes, n = int(rng.integers(1, 5)), int(rng.integers(1, 26))
    dag = random_dag(rng, 4, 2)
    network = random_network(rng, dag, (classes, *map(int, rng.integers(1, 4, 3))))
    rows = with_holes(rng, network.sample(n, rng), 0.3, keep_class=True).reweighted(rng.random(n) * 3)
    found = MarginHybrid(B, target, kind=kind).learn(network.schema, dag, rows)
    assert found.certificate.status.startswith("optimal")
    verify(found.certificate.to_document(), rows.codes, rows.weights)


@pytest.mark.parametrize("dag", [NB, TAN, PARENTED], ids=["nb", "tan", "parented"])
def test_the_network_is_that_of_the_certificate(dag: Dag) -> None:
    network, rows = problem(2, dag)
    found = MarginHybrid(2.0, 3.0).learn(network.schema, dag, rows)
    assert found.network.normalized
    own = found.network.log_joint(rows)
    at, weights = np.arange(len(rows)), rows.weights
    rivals = own.copy()
    rivals[at, rows.codes[0]] = -np.inf
    hinges = np.maximum(0.0, 3.0 - own[at, rows.codes[0]] + rivals.max(axis=1))
    with_class = [
        t for t, parents, i in zip(found.network.tables, dag.parents, range(4), strict=True) if 0 in (*parents, i)
    ]
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


def test_a_table_row_that_vanishes_leaves_a_normalised_network_with_the_margins_of_the_optimum() -> None:
    cp = pytest.importorskip("cvxpy")
    # "c" has fewer levels than "a", the parent of its parent: smoothing adds less to c's table than to b's.
    rng = np.random.default_rng(3)
    network = random_network(rng, TAN, (2, 8, 2, 2))
    rows = network.sample(30, rng)
    found = MarginHybrid(100.0, 5.0, tol=1e-8).learn(network.schema, TAN, rows)
    w = [np.asarray(t) for t in np.split(np.asarray(found.certificate.evidence["weights"]), [1, 9, 25])]
    assert np.exp(w[3]).reshape(2, 2, 2).sum(axis=1).min() < 0.9
    assert found.certificate.objective == pytest.approx(margin.hybrid(cp, TAN, rows, 100.0, 5.0), rel=1e-6)
    assert found.network.normalized
    a, b, c = rows.codes[1:].astype(int)
    scores = w[0][0] + w[1][a] + w[2][2 * a + b] + w[3][2 * b + c]
    joint = found.network.log_joint(rows)
    np.testing.assert_allclose(joint[:, 0] - joint[:, 1], scores[:, 0] - scores[:, 1], atol=1e-9)
    verify(found.certificate.to_document(), rows.codes)
    # Smoothing that agrees between tables leaves every row its counts.
    even = (
        MarginHybrid(100.0, 5.0, kind="ess", tol=1e-11).learn(network.schema, TAN, rows).certificate.evidence["weights"]
    )
    np.testing.assert_allclose(np.exp(even[25:]).reshape(2, 2, 2).sum(axis=1), 1.0, atol=1e-9)


# Class, features; the number of levels is a missing cell. The optimal table of the first feature has rows below one.
HOLED = np.array([[1, 0, 1, 2, 0, 1, 2], [0, 1, 2, 2, 3, 2, 2], [0, 1, 0, 1, 0, 0, 1]], np.uint8)


def test_a_row_that_sums_to_less_than_one_at_the_optimum_is_found() -> None:
    cp = pytest.importorskip("cvxpy")
    dag = Dag.naive(["y", "a", "b"])
    schema = Schema(tuple(Variable(n, tuple(range(k))) for n, k in zip(dag.names, (3, 4, 1), strict=True)))
    rows = Rows(HOLED, (3, 4, 1))
    found = MarginHybrid(10.0, 5.0, kind="ess", smoothing=0.1).learn(schema, dag, rows)
    assert found.certificate.status.startswith("optimal")
    verify(found.certificate.to_document(), rows.codes)
    assert found.certificate.objective == pytest.approx(
        margin.hybrid(cp, dag, rows, 10.0, 5.0, smoothing=0.1, kind="ess"), rel=2e-6
    )


def test_multipliers_of_rows_that_touch_no_cell_leave_the_others_their_counts() -> None:
    """The class with two parents: a row without them has huge multipliers, whose rounding must not reach the cells."""
    rng = np.random.default_rng(0)
    dag = Dag(("y", "a", "b"), ((1, 2), (), ()))
    schema = Schema(tuple(Variable(n, (0, 1, 2, 3)) for n in dag.names))
    for seed in range(20):
        codes = with_holes(rng, random_network(rng, dag, (4, 4, 4)).sample(38, rng), 0.7, keep_class=True)
        rows = codes.reweighted(rng.random(38) + 0.01)
        learner = MarginHybrid(10.0 ** (3 + seed % 4), 0.5, kind="ess", smoothing=0.03, tol=1e-2)
        found = learner.learn(schema, dag, rows).certificate
        assert verify(found.to_document(), rows.codes, rows.weights).bound == found.bound


def test_a_row_that_vanishes_below_unjoined_parents_is_scaled_and_the_status_says_so() -> None:
    network, rows = problem(0, UNMARRIED, holes=0.3)
    found = MarginHybrid(10.0, 0.5).learn(network.schema, UNMARRIED, rows)
    assert found.certificate.status == "optimal; rows that sum to less than one were scaled to one"
    assert found.network.normalized


def test_repeated_rows_weigh_as_much_as_weights_and_weight_zero_is_absence() -> None:
    network, rows = problem(8, TAN)
    counts = np.arange(len(rows)) % 3
    repeated = Rows(np.repeat(rows.codes, counts, axis=1), rows.cardinalities)
    weighted = rows.reweighted(counts.astype(float))
    a = MarginHybrid(2.0, 3.0, tol=1e-9).learn(network.schema, TAN, weighted).certificate
    b = MarginHybrid(2.0, 3.0, tol=1e-9).learn(network.schema, TAN, repeated).certificate
    assert a.objective == pytest.approx(b.objective, rel=1e-8)
    verify(a.to_document(), weighted.codes, weighted.weights)
    verify(b.to_document(), weighted.codes[:, counts > 0], weighted.weights[counts > 0])


def test_the_order_of_rows_does_not_matter() -> None:
    network, rows = problem(9, TAN)
    shuffled = rows.take(np.random.default_rng(0).permutation(len(rows)))
    a, b = (MarginHybrid().learn(network.schema, TAN, r).certificate for r in (rows, shuffled))
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    verify(a.to_document(), shuffled.codes, shuffled.weights)


def test_the_callback_sees_bounds_that_only_rise_and_objectives_that_only_fall() -> None:
    network, rows = problem(10, TAN)
    seen: list[Moment] = []
    MarginHybrid(3.0, 4.0, callback=seen.append).learn(network.schema, TAN, rows)
    assert len(seen) > 3
    assert all(b.objective <= a.objective and b.bound >= a.bound for a, b in pairwise(seen))
    assert seen[-1].gap <= 1e-6


def test_interrupting_keeps_the_best_and_says_so() -> None:
    network, rows = problem(11, TAN)
    seen: list[Moment] = []

    def stop(moment: Moment) -> None:
        seen.append(moment)
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = MarginHybrid(3.0, 4.0, callback=stop).learn(network.schema, TAN, rows)
    assert found.certificate.status == "interrupted"
    assert found.certificate.objective == seen[-1].objective
    assert found.network.normalized
    verify(found.certificate.to_document(), rows.codes, rows.weights)


@pytest.mark.parametrize(
    ("limit", "status"), [({"max_iter": 2}, "iteration limit"), ({"time_limit": 1e-9}, "time limit")]
)
def test_limits_keep_the_best_and_say_so(limit: dict[str, Any], status: str) -> None:
    network, rows = problem(11, TAN)
    found = MarginHybrid(3.0, 4.0, **limit).learn(network.schema, TAN, rows)
    assert (found.status, found.certificate.status) == (status, status)
    verify(found.certificate.to_document(), rows.codes, rows.weights)


def test_what_is_compiled_at_its_first_use_does_not_count_as_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real, ahead = time.perf_counter, []
    monkeypatch.setattr(time, "perf_counter", lambda: real() + sum(ahead))
    monkeypatch.setattr("marginbayes.parameters.hybrid._compile_kernels", lambda: ahead.append(1e6))
    network, rows = problem(3, NB)
    MarginHybrid().learn(network.schema, NB, rows)
    assert not ahead  # without a limit there is no need
    found = MarginHybrid(time_limit=1000.0).learn(network.schema, NB, rows)
    assert ahead == [1e6]
    assert found.certificate.status == "optimal"


def test_rows_without_any_weight_give_what_smoothing_alone_says() -> None:
    network, rows = problem(12, NB)
    nothing = rows.reweighted(np.zeros(len(rows)))
    found = MarginHybrid().learn(network.schema, NB, nothing)
    assert found.certificate.status == "optimal"
    for table in found.network.tables:
        np.testing.assert_allclose(np.exp(table), 1 / table.shape[-1])
    verify(found.certificate.to_document(), nothing.codes, nothing.weights)


def test_one_class_and_one_row_are_no_trouble() -> None:
    for classes, n in [(1, 5), (3, 1)]:
        network, rows = problem(12, NB, n=n, classes=classes)
        found = MarginHybrid().learn(network.schema, NB, rows)
        assert found.network.normalized
        assert found.certificate.status == "optimal"
        verify(found.certificate.to_document(), rows.codes, rows.weights)


def _changed(document: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The document with other claims or evidence, sealed anew as a forger would."""
    claims = {k: v for k, v in changes.items() if k in document}
    evidence = {k: v for k, v in changes.items() if k not in document}
    return seal({**document, **claims, "evidence": {**document["evidence"], **evidence}})


def test_certificates_that_were_tampered_with_are_refused() -> None:
    network, rows = problem(5, TAN)
    document = MarginHybrid(2.0, 3.0).learn(network.schema, TAN, rows).certificate.to_document()
    verify(_changed(document), rows.codes, rows.weights)
    evidence = document["evidence"]
    duals, values = evidence["duals"], np.asarray(evidence["duals"]["values"])
    lifted = (np.asarray(evidence["weights"]) + 0.1).tolist()
    for forged, says in [
        ({"objective": document["objective"] * 0.99}, "objective"),
        ({"bound": document["objective"]}, "only the bound"),
        ({"weights": lifted}, "sums to more than one"),
        ({"duals": {**duals, "values": (1.5 * values).tolist()}}, "more than its cost"),
        ({"duals": {**duals, "values": (-values).tolist()}}, "negative"),
        ({"B": 2.1}, "objective"),
        ({"target": 3.1}, "objective"),
        ({"smoothing": 2.0}, "objective"),
        ({"smoothing": 0.0}, "smoothing"),
        ({"kind": "other"}, "other"),
        ({"B": -1.0}, "B=-1"),
    ]:
        with pytest.raises(CertificateError, match=says):
            verify(_changed(document, **forged), rows.codes, rows.weights)


def test_multipliers_that_overdraw_a_cell_prove_nothing() -> None:
    network, rows = problem(5, TAN)
    document = MarginHybrid(100.0, 3.0).learn(network.schema, TAN, rows).certificate.to_document()
    duals = document["evidence"]["duals"]
    most = {**duals, "values": [50.0 / len(duals["values"])] * len(duals["values"])}
    one = {"rows": duals["rows"][:1], "classes": duals["classes"][:1], "values": [40.0]}
    with pytest.raises(CertificateError, match="more from a cell than it has"):
        verify(_changed(document, duals=one), rows.codes, rows.weights)
    with pytest.raises(CertificateError, match="only the bound"):
        verify(_changed(document, duals={**most, "values": [0.0] * len(duals["values"])}), rows.codes, rows.weights)


def test_tuning_chooses_from_the_grid_and_starts_at_neighbours() -> None:
    network, rows = problem(6, TAN, n=80)
    grid = {"B": [0.1, 10.0], "target": ["auto", 4.0]}
    found = MarginHybrid(tune=grid, random_state=0).learn(network.schema, TAN, rows)
    assert [t.parameters for t in found.trials] == [  # type: ignore[attr-defined]
        {"B": 0.1, "target": "auto"},
        {"B": 0.1, "target": 4.0},
        {"B": 10.0, "target": 4.0},
        {"B": 10.0, "target": "auto"},
    ]
    again = MarginHybrid(**found.best).learn(network.schema, TAN, rows)  # type: ignore[attr-defined]
    assert found.certificate.objective == pytest.approx(again.certificate.objective, rel=2e-6)


def test_a_start_at_the_solution_needs_fewer_steps() -> None:
    network, rows = problem(7, TAN, n=200)
    cold = MarginHybrid(10.0, 4.0).learn(network.schema, TAN, rows)
    warm = MarginHybrid(10.0, 4.2).learn(network.schema, TAN, rows, start=cold.network)
    fresh = MarginHybrid(10.0, 4.2).learn(network.schema, TAN, rows)
    assert warm.certificate.objective == pytest.approx(fresh.certificate.objective, rel=2e-6)
    assert len(warm.path) < len(fresh.path)


def test_the_number_of_threads_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("marginbayes.solvers.threads.MANY", 10)
    network, rows = problem(7, TAN, n=200)
    one, two = (MarginHybrid(n_jobs=k).learn(network.schema, TAN, rows).network for k in (1, 2))
    assert one == two


def test_the_target_by_default_is_the_median_margin_of_maximum_likelihood() -> None:
    network, rows = problem(7, TAN, n=201)
    rows = rows.reweighted(None)
    found = MarginHybrid().learn(network.schema, TAN, rows).certificate.evidence["target"]
    joint = MaximumLikelihood().learn(network.schema, TAN, rows).network.log_joint(rows)
    rivals = joint.copy()
    rivals[np.arange(201), rows.codes[0]] = -np.inf
    assert found == pytest.approx(np.median(joint[np.arange(201), rows.codes[0]] - rivals.max(axis=1)))


def test_the_target_by_default_is_at_least_a_tenth_and_at_most_ten() -> None:
    labels = np.repeat([0, 1], 20).astype(np.uint8)
    alike, alternating = np.tile(labels, (8, 1)), np.tile(np.arange(40) % 2, (8, 1)).astype(np.uint8)
    schema = Schema(tuple(Variable(name, (0, 1)) for name in "yabcdefgh"))
    for features, target in ((alike, 10.0), (alternating, 0.1)):
        rows = Rows(np.vstack([labels, features]), (2,) * 9)
        found = MarginHybrid().learn(schema, Dag.naive(list(schema.names)), rows).certificate.evidence
        assert found["target"] == target


def test_class_weights_of_the_estimator_are_costs_of_missing_margin() -> None:
    rows = problem(9, NB, n=60, classes=2)[1]
    X, y = rows.codes[1:].T.astype(str), rows.codes[0]
    plain = BayesNetClassifier("nb", MarginHybrid(5.0)).fit(X, y)
    heavy = BayesNetClassifier("nb", MarginHybrid(5.0), class_weight={0: 1.0, 1: 20.0}).fit(X, y)
    assert (heavy.predict(X) == 1).sum() > (plain.predict(X) == 1).sum()
    named = BayesNetClassifier("nb", "mm-hybrid").fit(X, y)
    assert named.parameter_result_.certificate.gap <= 1e-6


@pytest.mark.parametrize(
    "arguments",
    [
        *({"B": 0.0}, {"B": np.inf}, {"target": "x"}, {"target": -1.0}, {"smoothing": 0.0}, {"kind": "floor"}),
        *({"tol": -1.0}, {"max_iter": 0}, {"time_limit": -1.0}),
    ],
)
def test_wrong_choices_are_refused_by_name(arguments: dict[str, Any]) -> None:
    network, rows = problem(13, NB)
    with pytest.raises(ValueError, match=next(iter(arguments))):
        clone(MarginHybrid(**arguments)).learn(network.schema, NB, rows)


def test_a_path_that_lost_its_rows_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmallPath, "suits", lambda problem: False)  # noqa: ARG005
    monkeypatch.setattr(entropic_interior, "LARGE", 0.0)  # with care from the beginning, so for as long as it takes
    network, rows = problem(3, TAN)
    steps: list[object] = []
    step = Path.step

    def losing(self: Any) -> None:
        step(self)
        steps.append(self)
        if len(steps) == 3:  # all rows go to their borders, long before the gap is closed
            self.room[:] *= 1e-12
            self.slack[:] *= 1e-12

    monkeypatch.setattr(Path, "step", losing)
    found = MarginHybrid(10.0, 5.0).learn(network.schema, TAN, rows).certificate
    assert found.status == "optimal"
    assert len({id(path) for path in steps}) == 2
    needed = len(steps)
    steps.clear()
    monkeypatch.setattr(entropic_interior, "LOST", 0.0)
    lost = MarginHybrid(10.0, 5.0, max_iter=needed).learn(network.schema, TAN, rows).certificate
    assert lost.status != "optimal"
    verify(lost.to_document(), rows.codes, rows.weights)
