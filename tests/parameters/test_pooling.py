"""Deviations in common: a metric for the penalty, against the metric written out with loops."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from marginbayes import Dag, Network
from marginbayes.data import Rows
from marginbayes.parameters import ConditionalLikelihood, MaximumLikelihood
from marginbayes.parameters.descent import descend
from marginbayes.parameters.design import Design
from marginbayes.parameters.parametrisation import Concave, Softmax
from marginbayes.parameters.pooling import Pooling
from tests.oracles.brute import random_network

TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))
TWO_TREE = Dag(tuple("yabc"), ((), (0,), (0, 1), (1, 0, 2)))
GRAPHS = pytest.mark.parametrize("dag", [TAN, TWO_TREE], ids=["tan", "2-tree"])


def problem(seed: int, dag: Dag) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, dag, (3, 2, 3, 2))
    return network, network.sample(60, rng)


def kernel(design: Design) -> np.ndarray:
    """Identity, plus 1 for each choice of members, the child among them and not all, in which two cells agree."""
    lines = []
    for i in design.families:
        members = [v for v in (*design.dag.parents[i], i) if v]
        lines += [(i, members, levels) for levels in np.ndindex(*(design.cardinalities[v] for v in members))]
    found = np.eye(len(lines))
    for p, (i, members, a) in enumerate(lines):
        for q, (j, _, b) in enumerate(lines):
            if i == j and i != 0:
                for size in range(len(members) - 1):
                    for chosen in combinations(range(len(members) - 1), size):
                        found[p, q] += all(a[k] == b[k] for k in (*chosen, len(members) - 1))
    return found


@GRAPHS
@pytest.mark.parametrize("form", [Concave, Softmax])
def test_the_gradient_is_that_of_finite_differences(form: type, dag: Dag) -> None:
    network, rows = problem(0, dag)
    task = form(Design.of(dag, rows), network, 0.3, pool=True)
    point = task.start() + np.random.default_rng(1).normal(scale=0.3, size=task.start().shape)
    gradient = task.objective(point)[1]
    for i in range(len(point)):
        step = np.zeros(len(point))
        step[i] = 1e-5
        slope = (task.objective(point + step)[0] - task.objective(point - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-6)


@GRAPHS
def test_the_optimum_is_that_of_the_penalty_in_the_metric_of_the_pools(dag: Dag) -> None:
    network, rows = problem(1, dag)
    design = Design.of(dag, rows)
    task = Concave(design, MaximumLikelihood().learn(network.schema, dag, rows).network, 0.5, pool=True)
    metric = np.linalg.inv(kernel(design))

    def literal(point: np.ndarray) -> tuple[float, np.ndarray]:
        shift = point[1:].reshape(task.reference.shape)
        loss, slope = design.loss(point[0] * task.reference + shift)
        gradient = slope + 0.5 * metric @ shift
        value = loss + 0.25 * float((shift * (metric @ shift)).sum())
        return value, np.concatenate([[(slope * task.reference).sum()], gradient.ravel()])

    start = np.zeros(1 + task.reference.size)
    expected = minimize(literal, start, jac=True, method="BFGS", options={"gtol": 1e-7}).fun
    best = descend(task, task.start(), tol=1e-10, max_iter=2000).point
    assert task.objective(best)[0] == pytest.approx(expected, rel=1e-8)


@GRAPHS
def test_parts_add_up_to_the_deviations_they_were_made_from(dag: Dag) -> None:
    design = Design.of(dag, problem(2, dag)[1])
    pooling = Pooling.of(design)
    wanted = np.random.default_rng(3).normal(size=design.shape)
    parts = pooling.parts(wanted)
    np.testing.assert_allclose(pooling.total(parts), wanted, atol=1e-12)
    assert float(parts @ parts) < float((wanted * wanted).sum())
    # Slopes go back by the transposed map.
    other = np.random.default_rng(4).normal(size=pooling.size)
    assert float(pooling.back(wanted) @ other) == pytest.approx(float((wanted * pooling.total(other)).sum()))


def test_naive_bayes_has_no_pools() -> None:
    dag = Dag.naive(list("yabc"))
    design = Design.of(dag, problem(5, dag)[1])
    assert Pooling.of(design).size == design.shape[0] * design.shape[1]


@GRAPHS
def test_the_learner_returns_a_normalised_network_and_starts_where_it_is_told(dag: Dag) -> None:
    network, rows = problem(6, dag)
    learner = ConditionalLikelihood(0.1, pool=True, tol=1e-8)
    cold = learner.learn(network.schema, dag, rows)
    warm = learner.learn(network.schema, dag, rows, start=network)
    assert cold.network.normalized
    assert cold.path[-1] == pytest.approx(warm.path[-1], rel=1e-7)
    assert cold.path[-1] > ConditionalLikelihood(0.1, tol=1e-8).learn(network.schema, dag, rows).path[-1]
