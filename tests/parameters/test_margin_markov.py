from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import LinearSVC

from marginbayes import BayesNetClassifier, Dag, Network
from marginbayes.data import Rows, Schema, Variable
from marginbayes.parameters import MaximumLikelihood
from marginbayes.parameters.markov import MarginMarkov
from marginbayes.solvers import Moment
from marginbayes.verification import verify
from tests.oracles import margin
from tests.oracles.brute import random_dag, random_network, with_holes

NB = Dag.naive(list("yabc"))
TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))
PARENTED = Dag.from_edges([("a", "y"), ("y", "b"), ("b", "c")], names=["y", "a", "b", "c"])
# Guo et al., Figure 2: x has the parents y, a and b, and a and b are not joined.
UNMARRIED = Dag.from_edges([("y", "x"), ("a", "x"), ("b", "x"), ("y", "a"), ("y", "b")], names=["y", "a", "b", "x"])
# Figure 1: the same with the parents joined; and a chain of features under the class.
MARRIED = Dag.from_edges(
    [("y", "x"), ("a", "x"), ("b", "x"), ("y", "a"), ("y", "b"), ("a", "b")], names=["y", "a", "b", "x"]
)


def problem(seed: int, dag: Dag, n: int = 40, holes: float = 0.0, classes: int = 3) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, dag, (classes, 2, 3, 2))
    rows = with_holes(rng, network.sample(n, rng), holes, keep_class=True)
    return network, rows.reweighted(rng.random(n) + 0.5)


@pytest.mark.parametrize("dag", [NB, TAN, PARENTED, MARRIED, UNMARRIED], ids=["nb", "tan", "parented", "fig1", "fig2"])
@pytest.mark.parametrize(("holes", "solver"), [(0.0, "CLARABEL"), (0.3, "CLARABEL"), (0.0, "SCS")])
def test_the_optimum_is_that_of_a_generic_solver(dag: Dag, holes: float, solver: str) -> None:
    cp = pytest.importorskip("cvxpy")
    network, rows = problem(0, dag, holes=holes)
    found = MarginMarkov(0.3, subnormal=True, tol=1e-8).learn(network.schema, dag, rows).certificate
    wanted = margin.markov(cp, dag, rows, 0.3, solver, None, 0.0)
    assert found.objective == pytest.approx(wanted, rel=1e-6 if solver == "CLARABEL" else 1e-3)
    assert found.status == "optimal"


@pytest.mark.parametrize("dag", [NB, TAN])
def test_shrinkage_towards_maximum_likelihood_has_the_optimum_of_a_generic_solver(dag: Dag) -> None:
    cp = pytest.importorskip("cvxpy")
    for seed, C in [(1, 0.05), (2, 0.5), (3, 5.0)]:
        network, rows = problem(seed, dag)
        ml = MaximumLikelihood().learn(network.schema, dag, rows).network
        reference = np.concatenate([t.ravel() for t in ml.tables])
        found = MarginMarkov(C, shrink="ml", tol=1e-7).learn(network.schema, dag, rows).certificate
        wanted = margin.markov(cp, dag, rows, C, "CLARABEL", reference, 1e-3 * C * rows.total)
        assert found.objective == pytest.approx(wanted, rel=1e-6)
        assert found.gap <= 1e-7


def test_the_scale_of_what_tables_shrink_to_may_be_negative() -> None:
    cp = pytest.importorskip("cvxpy")
    schema = Schema(tuple(Variable(name, tuple(range(card))) for name, card in (("y", 3), ("a", 2), ("b", 2))))
    codes = np.array([[0, 1, 2, 1, 1, 0], [2, 1, 1, 1, 0, 2], [0, 1, 2, 0, 0, 0]], np.uint8)
    rows, dag = Rows(codes, (3, 2, 2)), Dag(("y", "a", "b"), ((), (0,), (0,)))
    reference = np.concatenate([t.ravel() for t in MaximumLikelihood().learn(schema, dag, rows).network.tables])
    found = MarginMarkov(1.0, shrink="ml").learn(schema, dag, rows).certificate
    assert found.status == "optimal"
    assert found.evidence["scale"] < 0
    assert found.objective == pytest.approx(margin.markov(cp, dag, rows, 1.0, "CLARABEL", reference, 6e-3), rel=2e-6)


def test_two_classes_are_a_binary_support_vector_machine() -> None:
    network, rows = problem(4, NB, n=60, classes=2)
    C = 0.2
    found = MarginMarkov(C, tol=1e-9).learn(network.schema, NB, rows).certificate
    # The margin is (w_1 - w_0).x; at the optimum w_0 = -w_1, so |w|^2 / 2 = |v|^2 / 4 with v = w_1 - w_0.
    onehot = np.hstack(
        [np.ones((len(rows), 1)), *(np.eye(k)[c] for k, c in zip((2, 3, 2), rows.codes[1:], strict=True))]
    )
    peer = LinearSVC(C=2 * C, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    peer.fit(onehot, rows.codes[0], sample_weight=rows.weights)
    margins = np.where(rows.codes[0] == 1, 1, -1) * (onehot @ peer.coef_[0])
    expected = (peer.coef_**2).sum() / 4 + C * rows.weights @ np.maximum(0, 1 - margins)
    assert found.objective == pytest.approx(expected, rel=1e-6)


def test_several_classes_are_the_machine_of_crammer_and_singer() -> None:
    network, rows = problem(5, NB, n=80)
    rows = rows.reweighted(None)
    found = MarginMarkov(0.2, tol=1e-9).learn(network.schema, NB, rows).certificate
    onehot = np.hstack([np.ones((80, 1)), *(np.eye(k)[c] for k, c in zip((2, 3, 2), rows.codes[1:], strict=True))])
    peer = LinearSVC(C=0.2, multi_class="crammer_singer", fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    peer.fit(onehot, rows.codes[0])
    given_scores = onehot @ peer.coef_.T
    own = given_scores[np.arange(80), rows.codes[0]][:, None]
    rivals = np.where(np.eye(3)[rows.codes[0]] > 0, -np.inf, 1 - own + given_scores).max(axis=1)
    expected = (peer.coef_**2).sum() / 2 + 0.2 * np.maximum(0, rivals).sum()
    assert found.objective == pytest.approx(expected, rel=1e-6)


@settings(max_examples=1000, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["zero", "ml"]),
    st.floats(1e-3, 30),
    st.sampled_from([0.0, 0.3]),
    st.integers(2, 4),
    st.integers(1, 15),
)
def test_certificates_are_never_wrong(seed: int, shrink: str, C: float, holes: float, classes: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, 4, 2)
    network = random_network(rng, dag, (classes, *map(int, rng.integers(1, 4, 3))))
    rows = with_holes(rng, network.sample(n, rng), holes, keep_class=True).reweighted(rng.random(n) * 3)
    rough = MarginMarkov(C, shrink=shrink, subnormal=True, normalize="plain", tol=0.3, max_iter=10)
    fine = MarginMarkov(C, shrink=shrink, subnormal=True, normalize="plain", tol=1e-6, max_iter=1000)
    first, second = (m.learn(network.schema, dag, rows).certificate for m in (rough, fine))
    for certificate in (first, second):
        report = verify(certificate.to_document(), rows.codes, rows.weights)
        assert report.bound <= report.objective + 1e-9 * max(1.0, report.objective)
    slack = 1e-9 * max(1.0, second.objective)
    assert first.bound <= second.objective + slack
    assert second.bound <= first.objective + slack


@pytest.mark.parametrize("normalize", ["likeliest", "plain"])
@pytest.mark.parametrize("dag", [NB, TAN, PARENTED, MARRIED])
def test_the_network_is_normalised_and_decides_as_the_weights_do(dag: Dag, normalize: str) -> None:
    network, rows = problem(6, dag)
    for shrink in ("zero", "ml"):
        found = MarginMarkov(0.5, shrink=shrink, normalize=normalize).learn(network.schema, dag, rows)
        assert found.network.normalized
        evidence = found.certificate.evidence
        ml = MaximumLikelihood().learn(network.schema, dag, rows).network
        # The evidence has a line for each assignment of a family without the class; the oracle the tables themselves.
        start, tables = 0, []
        for i, parents in enumerate(dag.parents):
            family = [*parents, i]
            if 0 in family:
                shape = [rows.cardinalities[v] for v in family if v]
                size = int(np.prod(shape)) if shape else 1
                part = evidence["weights"][start : start + size].reshape(*shape, -1)
                tables.append(np.moveaxis(part, -1, family.index(0)) + evidence["scale"] * ml.tables[i])
                start += size
        flat = np.concatenate([t.ravel() for t in tables])
        for n, lines in enumerate(margin.differences(dag, rows)):
            joint = found.network.log_joint(rows.take(np.array([n])))[0]
            given_margins = joint[rows.codes[0, n]] - np.delete(joint, rows.codes[0, n])
            np.testing.assert_allclose(given_margins, lines @ flat, atol=1e-9)


def test_unmarried_parents_are_refused_by_name_or_give_a_subnormalised_network() -> None:
    network, rows = problem(7, UNMARRIED)
    with pytest.raises(ValueError, match="'a' and 'b' are parents of 'x' but not joined"):
        MarginMarkov().learn(network.schema, UNMARRIED, rows)
    found = MarginMarkov(subnormal=True).learn(network.schema, UNMARRIED, rows).network
    assert not found.normalized
    assert all((np.exp(t).sum(axis=-1) <= 1 + 1e-12).all() for t in found.tables)
    # It answers with features missing too, by sums over weights that are no probabilities.
    holes = with_holes(np.random.default_rng(0), rows, 0.5, keep_class=True)
    np.testing.assert_allclose(found.posterior(holes).sum(axis=1), 1.0)


def test_repeated_rows_weigh_as_much_as_weights() -> None:
    network, rows = problem(8, TAN)
    counts = np.arange(len(rows)) % 3 + 1
    repeated = Rows(np.repeat(rows.codes, counts, axis=1), rows.cardinalities)
    a = MarginMarkov(0.1).learn(network.schema, TAN, rows.reweighted(counts.astype(float)))
    b = MarginMarkov(0.1).learn(network.schema, TAN, repeated)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-12)
    assert a.network == b.network


def test_rows_of_weight_zero_do_not_matter() -> None:
    network, rows = problem(8, TAN)
    weights = np.where(np.arange(len(rows)) < 30, rows.weights, 0.0)
    a = MarginMarkov(0.1).learn(network.schema, TAN, rows.reweighted(weights))
    b = MarginMarkov(0.1).learn(network.schema, TAN, rows.take(np.arange(30)))
    assert a.certificate.objective == b.certificate.objective
    verify(a.certificate.to_document(), rows.codes, weights)


def test_weights_of_classes_are_weights_of_rows() -> None:
    _, rows = problem(8, TAN)
    X, y = rows.codes[1:].T.astype(float), rows.codes[0]
    cost = {0: 3.0, 1: 1.0, 2: 0.5}
    by_class = BayesNetClassifier("nb", MarginMarkov(0.1), class_weight=cost, discretizer=None).fit(X, y)
    by_row = BayesNetClassifier("nb", MarginMarkov(0.1), discretizer=None).fit(X, y, [cost[c] for c in y])
    plain = BayesNetClassifier("nb", MarginMarkov(0.1), discretizer=None).fit(X, y)
    values = [clf.parameter_result_.certificate.objective for clf in (by_class, by_row, plain)]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("shrink", ["zero", "ml"])
def test_another_cost_can_start_from_the_multipliers_of_the_last(shrink: str) -> None:
    network, rows = problem(9, TAN)
    first = MarginMarkov(0.5, shrink=shrink).learn(network.schema, TAN, rows)
    for C in (0.1, 0.5, 2.0):
        cold = MarginMarkov(C, shrink=shrink).learn(network.schema, TAN, rows)
        warm = MarginMarkov(C, shrink=shrink).learn(network.schema, TAN, rows, previous=first)
        assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=3e-6)
        assert warm.certificate.status == "optimal"
        verify(warm.certificate.to_document(), rows.codes, rows.weights)
        assert C != 0.5 or len(warm.path) <= len(cold.path)


def test_tuning_chooses_a_cost_by_held_out_rows() -> None:
    network, rows = problem(9, TAN, n=120)
    found = MarginMarkov(tune={"C": [1e-6, 0.3]}, random_state=0).learn(network.schema, TAN, rows)
    # So small a cost decides by the counts of each cell alone; held-out rows tell.
    assert found.best == max(found.trials, key=lambda trial: trial.score).parameters
    assert found.certificate.evidence["C"] == found.best["C"]
    assert {trial.parameters["C"] for trial in MarginMarkov(tune=True).learn(network.schema, TAN, rows).trials} == set(
        MarginMarkov.GRID["C"]
    )


def test_the_order_of_rows_does_not_matter() -> None:
    network, rows = problem(9, TAN)
    shuffled = rows.take(np.random.default_rng(0).permutation(len(rows)))
    a, b = (MarginMarkov(0.1).learn(network.schema, TAN, r).certificate for r in (rows, shuffled))
    assert a.objective == pytest.approx(b.objective, rel=1e-9)
    verify(a.to_document(), shuffled.codes, shuffled.weights)


def test_the_callback_sees_bounds_that_only_rise_and_objectives_that_only_fall() -> None:
    network, rows = problem(10, TAN)
    seen: list[Moment] = []
    MarginMarkov(3.0, callback=seen.append).learn(network.schema, TAN, rows)
    assert all(b.objective <= a.objective and b.bound >= a.bound for a, b in pairwise(seen))
    assert seen[-1].gap <= 1e-6


def test_interrupting_keeps_the_best_and_says_so() -> None:
    network, rows = problem(11, TAN)

    def stop(_: Moment) -> None:
        raise KeyboardInterrupt

    for shrink in ("zero", "ml"):
        found = MarginMarkov(3.0, shrink=shrink, tol=1e-12, callback=stop).learn(network.schema, TAN, rows)
        assert found.certificate.status == "interrupted"
        assert found.network.normalized
        verify(found.certificate.to_document(), rows.codes, rows.weights)


def test_one_class_and_one_row_are_no_trouble() -> None:
    for classes, n in [(1, 5), (3, 1)]:
        network, rows = problem(12, NB, n=n, classes=classes)
        found = MarginMarkov().learn(network.schema, NB, rows)
        assert found.network.normalized
        verify(found.certificate.to_document(), rows.codes, rows.weights)


@pytest.mark.parametrize(
    "arguments",
    [{"C": 0.0}, {"C": np.inf}, {"shrink": "x"}, {"scale_penalty": 0.0}, {"max_iter": 0}, {"normalize": "x"}],
)
def test_wrong_choices_are_refused_by_name(arguments: dict[str, object]) -> None:
    network, rows = problem(13, NB)
    with pytest.raises(ValueError, match=next(iter(arguments))):
        MarginMarkov(**arguments).learn(network.schema, NB, rows)


def test_shrinking_towards_tables_with_zeros_is_refused() -> None:
    network, rows = problem(13, NB)
    with pytest.raises(ValueError, match="smoothing=0"):
        MarginMarkov(shrink="ml", normalize="plain", smoothing=0).learn(network.schema, NB, rows)


@pytest.mark.parametrize("shrink", ["ml", "zero"])
def test_rows_that_no_weight_can_help_add_their_cost_and_nothing_else(shrink: str) -> None:
    network, rows = problem(3, PARENTED, classes=2)
    blind = np.arange(len(rows)) % 4 == 0
    codes = rows.codes.copy()
    codes[1:, blind] = np.array(rows.cardinalities[1:])[:, None]  # nothing but the class is known
    learner = MarginMarkov(shrink=shrink)
    found = learner.learn(network.schema, PARENTED, Rows(codes, rows.cardinalities, rows.weights)).certificate
    seen = learner.learn(
        network.schema, PARENTED, Rows(codes[:, ~blind], rows.cardinalities, rows.weights[~blind])
    ).certificate
    assert found.status == seen.status == "optimal"
    if shrink == "zero":  # else what the tables shrink to hangs on all rows
        assert found.objective == pytest.approx(seen.objective + rows.weights[blind].sum(), rel=1e-5)


def test_a_tiny_cost_is_not_exceeded_by_rounding() -> None:
    network, rows = problem(4, NB)
    found = MarginMarkov(C=1e-12).learn(network.schema, NB, rows).certificate
    report = verify(found.to_document(), rows.codes, rows.weights)
    assert report.objective == pytest.approx(found.objective, rel=1e-9, abs=0.0)
    assert 0.0 < report.bound <= report.objective
