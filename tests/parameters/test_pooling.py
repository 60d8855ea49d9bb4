"""Deviations in common: a metric for the penalty, against the metric written out with loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import minimize

from marginbayes import Dag, Network
from marginbayes.data import Rows, Schema, Variable
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


def kernel(design: Design, ordered: Sequence[bool]) -> np.ndarray:
    """Identity, plus 1 for each choice of members, the child among them and not all, in which two cells agree.

    Of ordered members, two and four neighbouring levels agree too, counted from the first level and from half of the
    way, unless that makes all levels of the child one, or no two cells.
    """
    blocks = [np.eye(design.sizes[0])]
    for i in design.families[1:]:
        members = [v for v in (*design.dag.parents[i], i) if v]
        cells = list(np.ndindex(*(design.cardinalities[v] for v in members)))
        last = len(members) - 1
        block = np.eye(len(cells))
        for size in range(last):
            for chosen in combinations(range(last), size):
                block += agreement([tuple(cell[k] for k in (*chosen, last)) for cell in cells])
        for width, shift in ((2, 0), (2, 1), (4, 0), (4, 2)):
            if any(ordered[v] for v in members):
                coarse = [
                    tuple((x + shift) // width if ordered[v] else x for v, x in zip(members, cell, strict=True))
                    for cell in cells
                ]
                if len({key[-1] for key in coarse}) > 1 and len(set(coarse)) < len(cells):
                    block += agreement(coarse)
        blocks.append(block)
    return block_diag(*blocks)


def agreement(keys: list[tuple[int, ...]]) -> np.ndarray:
    return np.array([[float(a == b) for b in keys] for a in keys])


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
@pytest.mark.parametrize("ordered", [(False,) * 4, (False, True, False, True)], ids=["unordered", "two ordered"])
def test_the_optimum_is_that_of_the_penalty_in_the_metric_of_the_pools(dag: Dag, ordered: Sequence[bool]) -> None:
    network, rows = problem(1, dag)
    design = Design.of(dag, rows)
    task = Concave(design, MaximumLikelihood().learn(network.schema, dag, rows).network, 0.5, pool=True)
    task.pooling = Pooling.of(design, ordered)
    metric = np.linalg.inv(kernel(design, ordered))

    def literal(point: np.ndarray) -> tuple[float, np.ndarray]:
        shift = point[1:].reshape(task.reference.shape)
        loss, slope = design.loss(point[0] * task.reference + shift)
        gradient, excess = slope + 0.5 * metric @ shift, max(0.0, point[0] - 1.0)
        value = loss + 0.25 * (float((shift * (metric @ shift)).sum()) + excess**2)
        return value, np.concatenate([[(slope * task.reference).sum() + 0.5 * excess], gradient.ravel()])

    start = np.zeros(1 + task.reference.size)
    expected = minimize(literal, start, jac=True, method="BFGS", options={"gtol": 1e-7}).fun
    best = descend(task, task.start(), tol=1e-10, max_iter=2000).point
    assert task.objective(best)[0] == pytest.approx(expected, rel=1e-8)


@GRAPHS
def test_parts_add_up_to_the_deviations_they_were_made_from(dag: Dag) -> None:
    design = Design.of(dag, problem(2, dag)[1])
    pooling = Pooling.of(design, (False, False, True, True))
    wanted = np.random.default_rng(3).normal(size=design.shape)
    parts = pooling.parts(wanted)
    np.testing.assert_allclose(pooling.total(parts), wanted, atol=1e-12)
    assert float(parts @ parts) < float((wanted * wanted).sum())
    # Slopes go back by the transposed map.
    other = np.random.default_rng(4).normal(size=pooling.size)
    assert float(pooling.back(wanted) @ other) == pytest.approx(float((wanted * pooling.total(other)).sum()))


def test_naive_bayes_has_no_pools_but_those_of_ordered_levels() -> None:
    dag = Dag.naive(list("yabc"))
    design = Design.of(dag, problem(5, dag)[1])
    assert Pooling.of(design, (False,) * 4).size == Pooling.none(design).size == design.shape[0] * design.shape[1]
    pools = Pooling.of(design, (False, False, True, False)).members.toarray()
    # b has three levels, cells 3 to 5: {0, 1}, {2}; {0}, {1, 2}; four at once hold all of them, but from the middle on.
    assert [set(np.flatnonzero(p)) for p in pools.T] == [{3, 4}, {5}, {3}, {4, 5}, {3, 4}, {5}]


def test_discretised_numbers_are_ordered_and_categories_are_not() -> None:
    cuts = Variable("b", ("low", "middle", "high"), cuts=(0.0, 1.0))
    words = Variable("b", ("low", "middle", "high"))
    counts = []
    for variable in (cuts, words):
        schema = Schema((Variable("y", (0, 1)), variable))
        rows = Rows(np.array([[0, 1, 0, 1], [0, 1, 2, 2]], np.uint8), (2, 3))
        dag = Dag.naive(["y", "b"])
        network = MaximumLikelihood().learn(schema, dag, rows).network
        counts.append(Concave(Design.of(dag, rows), network, 1.0, pool=True).pooling.members.shape[1])
    assert counts == [6, 0]


@GRAPHS
def test_the_learner_returns_a_normalised_network_and_starts_where_it_is_told(dag: Dag) -> None:
    network, rows = problem(6, dag)
    learner = ConditionalLikelihood(0.1, pool=True, tol=1e-8)
    cold = learner.learn(network.schema, dag, rows)
    warm = learner.learn(network.schema, dag, rows, start=network)
    assert cold.network.normalized
    assert cold.path[-1] == pytest.approx(warm.path[-1], rel=1e-7)
    assert cold.path[-1] > ConditionalLikelihood(0.1, pool=False, tol=1e-8).learn(network.schema, dag, rows).path[-1]
