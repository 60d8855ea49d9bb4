from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from marginbayes import BayesNetClassifier, Dag, Network
from marginbayes.data import Rows
from marginbayes.parameters import ConditionalLikelihood, MaximumLikelihood
from marginbayes.parameters.descent import descend
from marginbayes.parameters.design import Design
from marginbayes.parameters.parametrisation import Concave, Softmax
from tests.oracles.brute import random_network, with_holes

TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))
UNMARRIED = Dag.from_edges([("y", "a"), ("y", "b"), ("y", "c"), ("a", "c"), ("b", "c")], names=["y", "a", "b", "c"])
PARENTED = Dag.from_edges([("a", "y"), ("y", "b"), ("b", "c")], names=["y", "a", "b", "c"])


def problem(seed: int, dag: Dag = TAN, holes: float = 0.0) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, dag, (3, 2, 3, 2))
    return network, with_holes(rng, network.sample(80, rng), holes, keep_class=True).reweighted(rng.random(80) + 0.5)


def conditional_log_likelihood(network: Network, rows: Rows) -> float:
    logs = log_softmax(network.log_joint(rows), axis=1)[np.arange(len(rows)), rows.codes[0]]
    return float(logs @ rows.weights)


@pytest.mark.parametrize("dag", [TAN, UNMARRIED, PARENTED], ids=["tan", "unmarried", "class with a parent"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("form", [Concave, Softmax])
def test_the_gradient_is_that_of_finite_differences(form: type, dag: Dag, holes: float) -> None:
    network, rows = problem(0, dag, holes)
    task = form(Design.of(dag, rows), network, 0.3)
    point = task.start() + np.random.default_rng(1).normal(scale=0.3, size=task.start().shape)
    gradient = task.objective(point)[1]
    for i in range(len(point)):
        step = np.zeros(len(point))
        step[i] = 1e-5
        slope = (task.objective(point + step)[0] - task.objective(point - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-6)


def test_the_loss_is_minus_the_conditional_log_likelihood_of_the_network() -> None:
    for dag in (TAN, UNMARRIED, PARENTED):
        network, rows = problem(1, dag)
        design = Design.of(dag, rows)
        assert design.loss(design.flatten(network.tables))[0] == pytest.approx(
            -conditional_log_likelihood(network, rows)
        )


def test_weights_and_tables_are_the_same_numbers() -> None:
    network, rows = problem(2, UNMARRIED)
    design = Design.of(UNMARRIED, rows)
    back = design.tables(design.flatten(network.tables), network.tables)
    assert all(np.array_equal(a, b) for a, b in zip(back, network.tables, strict=True))


def test_naive_bayes_has_the_optimum_of_regularised_logistic_regression() -> None:
    network, rows = problem(3, Dag.naive(list("yabc")))
    # With uniform tables as reference the shrinkage is towards zero, as in logistic regression.
    uniform = Network(
        network.schema, network.dag, tuple(np.zeros_like(t) - np.log(t.shape[-1]) for t in network.tables)
    )
    task = Concave(Design.of(network.dag, rows), uniform, 0.7)
    best = descend(task, task.start(), tol=1e-9, max_iter=2000).point
    onehot = OneHotEncoder(sparse_output=False).fit_transform(rows.codes[1:].T)
    design = np.hstack([np.ones((len(rows), 1)), onehot])
    peer = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=10000)
    peer.fit(design, rows.codes[0], sample_weight=rows.weights)
    logs = peer.predict_log_proba(design)[np.arange(len(rows)), rows.codes[0]] @ rows.weights
    expected = -logs + 0.35 * (peer.coef_**2).sum()
    assert task.objective(best)[0] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("form", ["concave", "softmax"])
@pytest.mark.parametrize("solver", ["lbfgs", "cg"])
def test_the_result_is_a_normalised_network_of_greater_conditional_likelihood(form: str, solver: str) -> None:
    network, rows = problem(4)
    start = MaximumLikelihood().learn(network.schema, TAN, rows).network
    result = ConditionalLikelihood(0.01, form=form, solver=solver).learn(network.schema, TAN, rows)
    assert result.network.normalized
    assert conditional_log_likelihood(result.network, rows) > conditional_log_likelihood(start, rows) + 0.5
    assert (np.diff(result.path) >= -1e-9).all()


def test_both_solvers_find_the_same_concave_optimum() -> None:
    network, rows = problem(5)
    values = [
        ConditionalLikelihood(0.1, form="concave", solver=s, tol=1e-8, max_iter=5000)
        .learn(network.schema, TAN, rows)
        .path[-1]
        for s in ("lbfgs", "cg")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_strong_shrinkage_stays_at_the_scaled_maximum_likelihood_network() -> None:
    network, rows = problem(6)
    learned = ConditionalLikelihood(1e9).learn(network.schema, TAN, rows).network
    reference = MaximumLikelihood().learn(network.schema, TAN, rows).network
    a, b = (n.log_joint(rows) for n in (learned, reference))
    slopes = np.diff(a, axis=1) / np.diff(b, axis=1)
    np.testing.assert_allclose(slopes, slopes[0, 0], rtol=1e-3)


def test_the_result_of_another_strength_is_a_start_with_the_same_end() -> None:
    network, rows = problem(10)
    strong = ConditionalLikelihood(1.0, tol=1e-8).learn(network.schema, TAN, rows)
    cold = ConditionalLikelihood(0.3, tol=1e-8).learn(network.schema, TAN, rows)
    warm = ConditionalLikelihood(0.3, tol=1e-8).learn(network.schema, TAN, rows, previous=strong)
    assert warm.path[0] > cold.path[0]
    assert warm.path[-1] == pytest.approx(cold.path[-1], rel=1e-8)
    # A result of another form has other numbers, and is not looked at.
    other = ConditionalLikelihood(0.3, form="softmax", tol=1e-8).learn(network.schema, TAN, rows)
    ignored = ConditionalLikelihood(0.3, tol=1e-8).learn(network.schema, TAN, rows, previous=other)
    assert ignored.path == cold.path


def test_structures_with_unmarried_parents_take_the_softmax_form() -> None:
    network, rows = problem(7, UNMARRIED)
    assert ConditionalLikelihood().learn(network.schema, UNMARRIED, rows).network.normalized
    with pytest.raises(ValueError, match="form='concave' needs that the parents"):
        ConditionalLikelihood(form="concave").learn(network.schema, UNMARRIED, rows)


@pytest.mark.parametrize("arguments", [{"form": "x"}, {"solver": "x"}, {"l2": -1.0}])
def test_wrong_choices_are_refused_by_name(arguments: dict[str, object]) -> None:
    network, rows = problem(8)
    with pytest.raises(ValueError, match=next(iter(arguments))):
        ConditionalLikelihood(**arguments).learn(network.schema, TAN, rows)


def test_interrupting_keeps_the_best_tables_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    network, rows = problem(9)
    calls = []
    original = Design.loss

    def interrupted(self: Design, *args: object) -> tuple[float, np.ndarray]:
        calls.append(1)
        if len(calls) > 25:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(Design, "loss", interrupted)
    result = ConditionalLikelihood().learn(network.schema, TAN, rows)
    start = MaximumLikelihood().learn(network.schema, TAN, rows).network
    assert conditional_log_likelihood(result.network, rows) > conditional_log_likelihood(start, rows)


def test_threads_do_not_change_the_result() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = np.tile(X, (1, 1)) + 0.0, y
    one, two = (
        BayesNetClassifier("nb", ConditionalLikelihood(n_jobs=n, max_iter=5)).fit(X, y).network_ for n in (1, 2)
    )
    assert one == two


def test_it_beats_maximum_likelihood_on_digits_and_understands_the_short_name() -> None:
    X, y = load_digits(return_X_y=True)
    scores = [BayesNetClassifier("nb", p).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for p in ("ml", "cl")]
    assert scores[1] > scores[0] + 0.02
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(ValueError, match="parameters='cl' has no such step"):
        BayesNetClassifier("nb", "cl", missing="em").fit(X, y)


@pytest.mark.parametrize("steps", [9, 10, 11, 19, 20, 21, 40])
def test_a_descent_takes_as_many_steps_as_it_may(steps: int) -> None:
    rng = np.random.default_rng(0)
    drawn = random_network(rng, Dag(tuple("yabcd"), ((), (0,), (0, 1), (0, 2), (0, 3))), (3, 4, 4, 4, 4))
    rows = drawn.sample(3000, rng)
    found = ConditionalLikelihood(l2=1e-3, tol=0.0, max_iter=steps).learn(drawn.schema, drawn.dag, rows)
    assert len(found.path) == steps


@pytest.mark.parametrize("l2", [10.0, 1e3, 1e6])
def test_rows_that_likelihood_has_all_right_do_not_make_it_overconfident(l2: float) -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 30)
    X = np.where(rng.random((30, 150)) < 0.6, y[:, None], 1 - y[:, None]).astype(str)
    likely, shrunk = (BayesNetClassifier("nb", p).fit(X, y) for p in ("ml", ConditionalLikelihood(l2=l2)))
    assert likely.score(X, y) == 1.0
    odds, before = (np.abs(np.diff(clf.predict_log_proba(X), axis=1)).max() for clf in (shrunk, likely))
    assert odds < 1.05 * before
