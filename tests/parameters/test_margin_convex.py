from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes import BayesNetClassifier, Dag, Network
from marginbayes.data import Rows
from marginbayes.parameters.convex import MarginConvex
from marginbayes.parameters.design import Design
from marginbayes.parameters.redundant import redundant_cells
from marginbayes.solvers import Moment, hinge
from marginbayes.verification import CertificateError, verify
from marginbayes.verification.document import seal
from tests.oracles import margin
from tests.oracles.brute import random_dag, random_network, with_holes

NB = Dag.naive(list("yabc"))
TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))
UNMARRIED = Dag.from_edges([("y", "x"), ("a", "x"), ("b", "x"), ("y", "a"), ("y", "b")], names=["y", "a", "b", "x"])


def problem(seed: int, dag: Dag, n: int = 60, classes: int = 3) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, dag, (classes, 2, 3, 2))
    return network, network.sample(n, rng).reweighted(rng.random(n) + 0.5)


def separable() -> tuple[Network, Rows]:
    """The class is a function of the features: it is 1 exactly where both are."""
    codes = np.array([[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0]], np.uint8)
    return random_network(np.random.default_rng(0), NB, (2, 2, 2, 2)), Rows(codes, (2, 2, 2, 2))


@pytest.mark.parametrize("dag", [NB, TAN, UNMARRIED], ids=["nb", "tan", "unmarried"])
def test_the_optimum_is_that_of_a_conic_solver_on_the_published_problem(dag: Dag) -> None:
    cp = pytest.importorskip("cvxpy")
    network, rows = problem(3, dag)  # one on which the conic solver reaches its own tolerance; on many it does not
    for B in (0.1, 2.0):
        value, gamma, _ = margin.convex(cp, dag, rows, B)
        found = MarginConvex(B, subnormal=True).learn(network.schema, dag, rows).certificate
        assert found.objective == pytest.approx(value, rel=1e-6)
        assert found.evidence["gamma"] == pytest.approx(gamma, rel=1e-4)
        assert found.status.startswith("optimal within |u| <= ")


@settings(max_examples=1000, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.2]), st.integers(2, 4), st.integers(2, 20))
def test_certificates_are_never_wrong_and_the_value_is_that_of_the_hinge_program(
    seed: int, holes: float, classes: int, n: int
) -> None:
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, 5, 3)
    network = random_network(rng, dag, (classes, *map(int, rng.integers(1, 4, 4))))
    rows = with_holes(rng, network.sample(n, rng), holes, keep_class=True).reweighted(rng.random(n) + 0.1)
    least = margin.least_hinge(dag, rows)
    found = MarginConvex(subnormal=True, normalize="plain").learn(network.schema, dag, rows).certificate
    report = verify(found.to_document(), rows.codes, rows.weights)
    assert report.bound <= 1.5 * least ** (2 / 3) * (1 + 1e-7) + 1e-9
    if least < 1e-9:
        assert found.status.startswith("not attained: the rows are separable")
    else:
        assert found.status.startswith("optimal within")
        assert found.objective == pytest.approx(1.5 * least ** (2 / 3), rel=1e-6)
        assert found.evidence["gamma"] == pytest.approx(least ** (-1 / 3), rel=1e-6)


@pytest.mark.parametrize("tol", [0.0, 1e-15])
def test_a_gap_finer_than_rounding_is_neither_reached_nor_harmful(tol: float) -> None:
    for seed in range(12):
        network, rows = problem(seed, TAN)
        found = MarginConvex(tol=tol).learn(network.schema, TAN, rows).certificate
        verify(found.to_document(), rows.codes, rows.weights)
        assert found.gap < 1e-10


def test_the_cost_changes_the_temperature_and_no_decision() -> None:
    network, rows = problem(2, TAN)
    results = [MarginConvex(B).learn(network.schema, TAN, rows) for B in (0.01, 1.0, 100.0)]
    joints = [r.network.log_joint(rows) for r in results]
    for B, joint, result in zip((0.01, 1.0, 100.0), joints, results, strict=True):
        np.testing.assert_array_equal(joint.argmax(axis=1), joints[1].argmax(axis=1))
        gaps, base = joint - joint[:, :1], joints[1] - joints[1][:, :1]
        np.testing.assert_allclose(gaps, base * B ** (-1 / 3), atol=1e-9)
        assert result.certificate.evidence["gamma"] == pytest.approx(
            results[1].certificate.evidence["gamma"] * B ** (-1 / 3)
        )


def test_separable_rows_have_a_witness_that_is_checked() -> None:
    network, rows = separable()
    found = MarginConvex(gamma_limit=5.0).learn(network.schema, NB, rows)
    document = found.certificate.to_document()
    assert found.certificate.status.startswith("not attained")
    assert found.certificate.bound == 0.0
    assert found.certificate.objective == pytest.approx(1 / 50)
    verify(document, rows.codes)
    joint = found.network.log_joint(rows)
    own = joint[np.arange(4), rows.codes[0]]
    assert (own - joint[np.arange(4), 1 - rows.codes[0]] >= 5.0 - 1e-9).all()
    # With one label turned round the witness proves nothing.
    turned = rows.codes.copy()
    turned[0, 0] = 1
    wrong = {**document, "evidence": {**document["evidence"], "gamma": 1e-6}, "objective": 5e11}
    with pytest.raises(CertificateError, match=r"witness|objective"):
        verify(seal({k: v for k, v in wrong.items() if k != "digest"}), turned)


def test_a_false_witness_is_refused() -> None:
    network, rows = separable()
    document = MarginConvex().learn(network.schema, NB, rows).certificate.to_document()
    empty = np.zeros_like(np.array(document["evidence"]["levels"])).tolist()
    forged = {**document, "evidence": {**document["evidence"], "levels": empty, "core": empty}}
    with pytest.raises(CertificateError, match="witness does not separate"):
        verify(seal({k: v for k, v in forged.items() if k != "digest"}), rows.codes)


FORGERIES = {
    "a negative radius": ({"radius": -1.0}, "radius"),
    "a multiplier of the own class, counted from the end": ({"duals": {"rows": [59], "classes": [-1]}}, "no pair"),
    "a class that there is not": ({"duals": {"rows": [0], "classes": [3]}}, "no pair"),
    "weights that are no numbers": ({"weights": np.nan}, "outside"),
    "optimality within a larger radius": ({"radius": 1e-3}, "what is proved"),
}


@pytest.mark.parametrize(("change", "reason"), FORGERIES.values(), ids=FORGERIES.keys())
def test_forged_evidence_is_refused(change: dict[str, object], reason: str) -> None:
    network, rows = problem(3, NB)
    document = MarginConvex().learn(network.schema, NB, rows).certificate.to_document()
    evidence = dict(document["evidence"])
    if "duals" in change:
        change = {"duals": {**change["duals"], "values": [0.1]}}
    if "weights" in change:
        change = {"weights": np.full(np.shape(evidence["weights"]), "nan").tolist()}
    forged = {**document, "evidence": {**evidence, **change}}
    with pytest.raises(CertificateError, match=reason):
        verify(seal({k: v for k, v in forged.items() if k != "digest"}), rows.codes, rows.weights)


def test_separability_cannot_be_claimed_without_a_witness() -> None:
    network, rows = problem(3, NB)
    document = MarginConvex().learn(network.schema, NB, rows).certificate.to_document()
    forged = {**document, "status": "not attained: the rows are separable"}
    with pytest.raises(CertificateError, match="nothing shows that the rows are separable"):
        verify(seal({k: v for k, v in forged.items() if k != "digest"}), rows.codes, rows.weights)


def test_the_hard_problem_is_unbounded_for_separable_rows_and_refused_for_others() -> None:
    network, rows = separable()
    for limit in (1.0, 100.0):
        found = MarginConvex(hard=True, gamma_limit=limit).learn(network.schema, NB, rows).certificate
        assert (found.kind, found.sense, found.status) == ("margin-hard", "max", "unbounded")
        assert found.objective >= limit * (1 - 1e-9)
        verify(found.to_document(), rows.codes)
    network, rows = problem(3, NB)
    with pytest.raises(ValueError, match="the largest least margin is 0"):
        MarginConvex(hard=True).learn(network.schema, NB, rows)


def test_presolve_descends_through_many_levels() -> None:
    # Row n uses cell n and cell n + 1: each is freed only when the one before it is done.
    k = 8
    first = np.arange(k, dtype=np.uint8)
    codes = np.array([np.arange(k) % 2, first, np.minimum(first + 1, k - 1)], np.uint8)
    dag = Dag.naive(["y", "a", "b"])
    network = random_network(np.random.default_rng(0), dag, (2, k, k))
    rows = Rows(codes, (2, k, k))
    found = MarginConvex().learn(network.schema, dag, rows)
    assert found.certificate.status.startswith("not attained")
    verify(found.certificate.to_document(), rows.codes)
    assert (found.network.posterior(rows).argmax(axis=1) == codes[0]).all()


@pytest.mark.parametrize("seed", range(25))
def test_cells_called_redundant_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, 5, 3)
    network = random_network(rng, dag, (2, 2, 3, 2, 3))
    rows = with_holes(rng, network.sample(80, rng), float(rng.choice([0.0, 0.05])), keep_class=True)
    design = Design.of(dag, rows)
    onehot = np.zeros((len(design.labels), design.shape[0] + 1))
    for column in design.cells.T:
        onehot[np.arange(len(onehot)), column] = 1.0
    onehot = onehot[:, :-1]
    kept = onehot[:, ~redundant_cells(design)]
    assert np.linalg.matrix_rank(kept) == np.linalg.matrix_rank(onehot)


def test_naive_bayes_keeps_all_levels_but_one_of_each_feature() -> None:
    _, rows = problem(4, NB)
    assert redundant_cells(Design.of(NB, rows)).sum() == 3


def test_repeated_rows_weigh_as_much_as_weights() -> None:
    network, rows = problem(5, TAN)
    counts = np.arange(len(rows)) % 3 + 1
    repeated = Rows(np.repeat(rows.codes, counts, axis=1), rows.cardinalities)
    a = MarginConvex().learn(network.schema, TAN, rows.reweighted(counts.astype(float)))
    b = MarginConvex().learn(network.schema, TAN, repeated)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-12)


def test_rows_of_weight_zero_do_not_matter() -> None:
    # With them the rows could not be separated.
    network, rows = separable()
    codes = np.hstack([rows.codes, np.vstack([1 - rows.codes[:1], rows.codes[1:]])])
    both = Rows(codes, rows.cardinalities, np.array([1.0] * 4 + [0.0] * 4))
    found = MarginConvex().learn(network.schema, NB, both).certificate
    assert found.status.startswith("not attained")
    verify(found.to_document(), both.codes, both.weights)


def test_weights_of_classes_are_weights_of_rows() -> None:
    _, rows = problem(5, TAN)
    X, y = rows.codes[1:].T.astype(float), rows.codes[0]
    cost = {0: 3.0, 1: 1.0, 2: 0.5}
    by_class = BayesNetClassifier("nb", MarginConvex(), class_weight=cost, discretizer=None).fit(X, y)
    by_row = BayesNetClassifier("nb", MarginConvex(), discretizer=None).fit(X, y, [cost[c] for c in y])
    plain = BayesNetClassifier("nb", MarginConvex(), discretizer=None).fit(X, y)
    values = [clf.parameter_result_.certificate.objective for clf in (by_class, by_row, plain)]
    assert values[0] == values[1] != values[2]


def test_another_cost_needs_no_second_linear_program() -> None:
    network, rows = problem(6, TAN)
    calls: list[Moment] = []
    first = MarginConvex(1.0).learn(network.schema, TAN, rows)
    again = MarginConvex(8.0, callback=calls.append).learn(network.schema, TAN, rows, previous=first)
    assert not calls
    assert again.certificate.objective == pytest.approx(4 * first.certificate.objective)
    verify(again.certificate.to_document(), rows.codes, rows.weights)
    # What is known of other rows is not used.
    other = rows.take(np.arange(1, len(rows)))
    found = MarginConvex(8.0, callback=calls.append).learn(network.schema, TAN, other, previous=first)
    assert calls
    verify(found.certificate.to_document(), other.codes, other.weights)


def test_tuning_takes_the_first_cost_because_all_decide_alike() -> None:
    network, rows = problem(7, NB)
    found = MarginConvex(tune=True, random_state=0).learn(network.schema, NB, rows)
    assert found.best == {"B": 0.01}
    assert len({trial.scores for trial in found.trials}) == 1


@pytest.mark.parametrize("seed", range(3))
def test_what_the_classes_of_a_cell_share_is_not_held_against_the_radius(seed: int) -> None:
    """Weights whose tables sum to less than one lie far below zero; no margin sees that."""
    network, rows = problem(seed, NB, n=150)
    found = MarginConvex(1e6, tol=1e-12, normalize="plain").learn(network.schema, NB, rows).certificate
    evidence = found.evidence
    assert found.bound > 0
    assert np.abs(evidence["weights"]).max() > evidence["radius"] * evidence["gamma"]
    verify(found.to_document(), rows.codes, rows.weights)


def test_unmarried_parents_are_refused_by_name() -> None:
    network, rows = problem(6, UNMARRIED)
    for method in ("exact", "barrier"):
        with pytest.raises(ValueError, match="'a' and 'b' are parents of 'x' but not joined"):
            MarginConvex(method=method).learn(network.schema, UNMARRIED, rows)


def test_interrupting_keeps_the_best_and_says_so() -> None:
    network, rows = problem(7, TAN)

    def stop(_: Moment) -> None:
        raise KeyboardInterrupt

    for method in ("exact", "barrier"):
        found = MarginConvex(method=method, callback=stop).learn(network.schema, TAN, rows)
        assert found.certificate.status.startswith("interrupted")
        assert found.network.normalized
        verify(found.certificate.to_document(), rows.codes, rows.weights)


def test_an_interrupt_of_the_first_descent_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The descent answers it with its best so far, which must not pass for a whole one."""
    network, rows = problem(7, TAN)
    whole = hinge.solve_margin
    monkeypatch.setattr(hinge, "solve_margin", lambda *a, **k: replace(whole(*a, **k), status="interrupted"))
    found = MarginConvex().learn(network.schema, TAN, rows)
    assert found.interrupted
    verify(found.certificate.to_document(), rows.codes, rows.weights)


def test_an_interrupt_that_strikes_in_compiled_code_keeps_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    network, rows = problem(7, TAN)

    def struck(*_: object) -> None:
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr(hinge, "interior_point", struck)
    found = MarginConvex().learn(network.schema, TAN, rows)
    assert found.interrupted
    verify(found.certificate.to_document(), rows.codes, rows.weights)


def test_interrupting_the_hard_problem_says_nothing_about_the_rows() -> None:
    network, rows = problem(7, TAN)

    def stop(_: Moment) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        MarginConvex(hard=True, callback=stop).learn(network.schema, TAN, rows)


def test_a_matrix_that_is_too_large_is_refused_with_its_size() -> None:
    network, rows = problem(8, TAN)
    for method in ("exact", "barrier"):
        with pytest.raises(ValueError, match="max_bytes=100"):
            MarginConvex(method=method, max_bytes=100).learn(network.schema, TAN, rows)


def test_one_class_is_separable() -> None:
    network, rows = problem(9, NB, classes=1)
    assert MarginConvex().learn(network.schema, NB, rows).certificate.status.startswith("not attained")


@pytest.mark.parametrize(
    "arguments",
    [
        {"B": 0.0},
        {"method": "x"},
        {"gamma_limit": -1.0},
        {"hard": True, "method": "barrier"},
        {"method": "barrier", "smoothing": 0.0, "normalize": "plain"},
        {"inner_steps": 0},
        {"normalize": "x"},
    ],
)
def test_wrong_choices_are_refused_by_name(arguments: dict[str, object]) -> None:
    network, rows = problem(10, NB)
    with pytest.raises(ValueError, match=r"B=|method|gamma_limit|hard|smoothing|inner_steps|normalize"):
        MarginConvex(**arguments).learn(network.schema, NB, rows)
