from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.datasets import load_digits

from marginbayes import BayesNetClassifier, Dag, Network
from marginbayes.data import Rows
from marginbayes.parameters import MaximumLikelihood
from marginbayes.parameters.descent import descend
from marginbayes.parameters.design import Design
from marginbayes.parameters.gradient import MarginGradient
from marginbayes.parameters.parametrisation import Concave, Softmax
from marginbayes.parameters.rowloss import MarginLoss
from tests.oracles.brute import random_network, with_holes

TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))
UNMARRIED = Dag.from_edges([("y", "a"), ("y", "b"), ("y", "c"), ("a", "c"), ("b", "c")], names=["y", "a", "b", "c"])


def problem(seed: int, dag: Dag = TAN, holes: float = 0.0) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, dag, (3, 2, 3, 2))
    return network, with_holes(rng, network.sample(80, rng), holes, keep_class=True).reweighted(rng.random(80) + 0.5)


def published_objective(network: Network, rows: Rows, lam: float, eta: float) -> float:
    """Sum over rows of h(lambda * (log P(c_n, z_n) - log-sum-exp of the rivals at sharpness eta)), written out."""
    joint, labels = network.log_joint(rows), rows.codes[0]
    rivals = np.array([np.delete(line, label) for line, label in zip(joint, labels, strict=True)])
    t = lam * (joint[np.arange(len(rows)), labels] - logsumexp(eta * rivals, axis=1) / eta)
    return float(rows.weights @ np.where(t <= 0, t + 0.5, np.where(t < 1, 1 - (1 - t) ** 2 / 2, 1.0)))


@pytest.mark.parametrize("lam", [0.05, 1.0])
@pytest.mark.parametrize("eta", [1.0, 10.0])
def test_the_loss_is_the_published_objective_turned_round(lam: float, eta: float) -> None:
    network, rows = problem(0)
    design = Design.of(TAN, rows)
    loss = design.loss(design.flatten(network.tables), MarginLoss(1 / lam, eta))[0]
    assert rows.weights.sum() - loss == pytest.approx(published_objective(network, rows, lam, eta))


@pytest.mark.parametrize("dag", [TAN, UNMARRIED], ids=["tan", "unmarried"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("form", [Concave, Softmax])
@pytest.mark.parametrize("loss", [MarginLoss(3.0, 1.0), MarginLoss(0.8, 6.0)])
def test_the_gradient_is_that_of_finite_differences(form: type, loss: MarginLoss, dag: Dag, holes: float) -> None:
    network, rows = problem(1, dag, holes)
    task = form(Design.of(dag, rows), network, 0.3, loss)
    point = task.start() + np.random.default_rng(1).normal(scale=0.3, size=task.start().shape)
    gradient = task.objective(point)[1]
    for i in range(len(point)):
        step = np.zeros(len(point))
        step[i] = 1e-5
        slope = (task.objective(point + step)[0] - task.objective(point - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-5)


def test_the_free_form_is_convex_and_every_start_leads_to_the_same_optimum() -> None:
    network, rows = problem(2)
    task = Concave(Design.of(TAN, rows), network, 0.2, MarginLoss(2.0, 3.0))
    rng = np.random.default_rng(0)
    points = [task.start() + rng.normal(scale=2.0, size=len(task.start())) for _ in range(6)]
    for a, b in zip(points[::2], points[1::2], strict=True):
        middle, ends = task.objective((a + b) / 2)[0], (task.objective(a)[0] + task.objective(b)[0]) / 2
        assert middle <= ends + 1e-9
    values = [task.objective(descend(task, p, tol=1e-9, max_iter=3000).point)[0] for p in (task.start(), *points)]
    np.testing.assert_allclose(values, values[0], rtol=1e-6)


def test_the_softmax_form_ends_where_a_generic_optimiser_does() -> None:
    network, rows = problem(3)
    reference = MaximumLikelihood().learn(network.schema, TAN, rows).network
    shapes = [t.shape for t in reference.tables]
    sizes = np.cumsum([0, *(int(np.prod(s)) for s in shapes)])
    start = np.concatenate([t.ravel() for t in reference.tables])

    def objective(flat: np.ndarray) -> float:
        free = [flat[a:b].reshape(s) for a, b, s in zip(sizes, sizes[1:], shapes, strict=False)]
        tables = tuple(log_softmax(t, axis=-1) for t in free)
        reached = published_objective(Network(network.schema, TAN, tables), rows, 0.5, 2.0)
        return rows.weights.sum() - reached + 0.5 * 0.4 * float(((flat - start) ** 2).sum())

    generic = minimize(objective, start, method="BFGS", options={"gtol": 1e-4})
    learner = MarginGradient(target=2.0, sharpness=2.0, l2=0.4, tol=1e-8, max_iter=2000)
    assert learner.learn(network.schema, TAN, rows).path[-1] == pytest.approx(-generic.fun, rel=1e-5)


@pytest.mark.parametrize("form", ["concave", "softmax"])
@pytest.mark.parametrize("solver", ["lbfgs", "cg"])
def test_the_result_is_a_normalised_network_of_larger_margins(form: str, solver: str) -> None:
    network, rows = problem(4)
    start = MaximumLikelihood().learn(network.schema, TAN, rows).network
    result = MarginGradient(2.0, l2=0.01, form=form, solver=solver).learn(network.schema, TAN, rows)
    assert result.network.normalized
    assert published_objective(result.network, rows, 0.5, 1.0) > published_objective(start, rows, 0.5, 1.0) + 0.5
    assert (np.diff(result.path) >= -1e-9).all()


def test_structures_with_unmarried_parents_are_learned_too() -> None:
    network, rows = problem(5, UNMARRIED)
    assert MarginGradient().learn(network.schema, UNMARRIED, rows).network.normalized
    assert MarginGradient(form="auto").learn(network.schema, UNMARRIED, rows).network.normalized
    with pytest.raises(ValueError, match="form='concave' needs that the parents"):
        MarginGradient(form="concave").learn(network.schema, UNMARRIED, rows)


@pytest.mark.parametrize("form", ["concave", "softmax"])
def test_a_weight_of_two_is_a_row_given_twice(form: str) -> None:
    network, rows = problem(6)
    rows = rows.reweighted(None)
    twice = rows.take(np.concatenate([np.arange(80), np.arange(20)]))
    weights = np.where(np.arange(80) < 20, 2.0, 1.0)
    learner = MarginGradient(form=form, tol=1e-9, max_iter=2000)
    a, b = (learner.learn(network.schema, TAN, r).network for r in (twice, rows.reweighted(weights)))
    for one, other in zip(a.tables, b.tables, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("arguments", [{"target": 0.0}, {"sharpness": -1.0}, {"sharpness": np.inf}, {"form": "x"}])
def test_wrong_choices_are_refused_by_name(arguments: dict[str, object]) -> None:
    network, rows = problem(7)
    with pytest.raises(ValueError, match=next(iter(arguments))):
        MarginGradient(**arguments).learn(network.schema, TAN, rows)


def test_it_beats_maximum_likelihood_on_digits_and_understands_the_short_name() -> None:
    X, y = load_digits(return_X_y=True)
    scores = [BayesNetClassifier("nb", p).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) for p in ("ml", "mm")]
    assert scores[1] > scores[0] + 0.02
