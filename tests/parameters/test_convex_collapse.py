"""The published convex problem collapses: each step of the proof as a property."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes import Dag
from marginbayes.data import Rows
from marginbayes.parameters.barrier import _Path, _Point
from marginbayes.parameters.certified import distinct_rows, subnormalised
from marginbayes.parameters.convex import MarginConvex, _groups
from marginbayes.parameters.design import Design
from marginbayes.verification import verify
from tests.oracles import margin
from tests.oracles.brute import random_dag, random_network, with_holes

NB = Dag.naive(list("yabc"))
TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))


def drawn(seed: int, dag: Dag | None = None, n: int = 20, holes: float = 0.0) -> tuple[Dag, Rows]:
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, 4, 3) if dag is None else dag
    network = random_network(rng, dag, (3, 2, 3, 2))
    return dag, with_holes(rng, network.sample(n, rng), holes, keep_class=True)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.3]))
def test_differences_of_features_sum_to_zero_in_every_structure(seed: int, holes: float) -> None:
    dag, rows = drawn(seed, holes=holes)
    for lines in margin.differences(dag, rows):
        assert (lines.sum(axis=1) == 0).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 100))
def test_a_shift_makes_any_weights_subnormal_and_moves_no_margin(seed: int, size: float) -> None:
    dag, rows = drawn(seed)
    design = Design.of(dag, rows)
    weights = np.random.default_rng(seed).normal(scale=size, size=design.shape)
    lowered = subnormalised(design, weights)
    assert (np.bincount(_groups(design).ravel(), np.exp(lowered).ravel()) <= 1.0).all()
    before, after = (distinct_rows(design).scores(w) for w in (weights, lowered))
    np.testing.assert_allclose(after - after[:, :1], before - before[:, :1], atol=1e-11 * size * 50)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(1.0, 50.0))
def test_feasible_weights_stay_feasible_when_they_are_scaled_up(seed: int, factor: float) -> None:
    dag, rows = drawn(seed)
    design = Design.of(dag, rows)
    weights = subnormalised(design, np.random.default_rng(seed).normal(size=design.shape))
    assert (np.bincount(_groups(design).ravel(), np.exp(factor * weights).ravel()) <= 1.0).all()


def path_of(dag: Dag, rows: Rows, B: float = 1.0) -> tuple[_Path, Design]:
    design = Design.of(dag, rows)
    return _Path(distinct_rows(design), _groups(design), B, 1e9, None), design


def test_the_barrier_falls_without_end_along_an_entry_that_no_row_of_its_class_uses() -> None:
    # No row of class 2 has a = 1.
    codes = np.array([[0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 0], [0, 1, 2, 0, 1, 2], [0, 1, 1, 0, 0, 1]], np.uint8)
    path, design = path_of(NB, Rows(codes, (3, 2, 3, 2)))
    weights = np.full(design.shape, -2.0)
    values = []
    for depth in (0.0, 10.0, 100.0, 1000.0, 1e6):
        weights[2, 2] = -2.0 - depth  # cell 2 is a = 1: one cell of the class's own family and a = 0 come before
        values.append(path.value(_Point(weights.copy(), 1.0, np.full(len(path.pairs.labels), 2.0)), 1.0))
    assert (np.diff(values) < 0).all()
    # Each of the two pairs with rival 2 in rows with a = 1 gives -log(depth), for ever.
    assert values[-1] < values[-2] - 1.9 * np.log(1000)


def test_lowering_all_weights_together_always_lowers_the_barrier() -> None:
    path, design = path_of(*drawn(3, TAN))
    weights = subnormalised(design, np.random.default_rng(0).normal(size=design.shape)) - 0.1
    slack = np.full(len(path.pairs.labels), 50.0)
    values = [path.value(_Point(weights - shift, 1.0, slack), 0.5) for shift in (0.0, 0.5, 1.0, 2.0, 4.0)]
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("n", [8, 2])
def test_the_newton_step_of_the_barrier_is_that_of_finite_differences(n: int) -> None:
    dag, rows = drawn(4, TAN, n=n)
    path, design = path_of(dag, rows.reweighted(np.random.default_rng(0).random(n) + 0.5))
    assert (len(path.system.unused) > 10) == (n == 2)
    start = np.random.default_rng(1).normal(scale=0.3, size=design.shape) - 3.0
    size, n = start.size, len(path.pairs.labels)
    at = np.concatenate([start.ravel(), [0.7], np.full(n, 3.0)])
    mu, step = 0.3, 1e-4

    def value(x: np.ndarray) -> float:
        return path.value(_Point(x[:size].reshape(design.shape), float(x[size]), x[size + 1 :]), mu)

    unit = np.eye(len(at)) * step
    slope = np.array([(value(at + e) - value(at - e)) / (2 * step) for e in unit])
    bend = np.array(
        [[value(at + e + f) - value(at + e - f) - value(at - e + f) + value(at - e - f) for f in unit] for e in unit]
    ) / (4 * step**2)
    expected = np.linalg.solve(bend, -slope)
    point = _Point(start, 0.7, np.full(n, 3.0))
    found, promise = path._direction(point, mu)
    together = np.concatenate([found.weights.ravel(), [found.gamma], found.slack])
    np.testing.assert_allclose(together, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())
    assert promise == pytest.approx(-slope @ together, rel=1e-5)


def test_the_barrier_path_ends_near_the_exact_value_but_where_depends_on_its_steps() -> None:
    rng = np.random.default_rng(5)
    network = random_network(rng, NB, (3, 2, 3, 2))
    rows = network.sample(80, rng)
    exact = MarginConvex(1.0).learn(network.schema, NB, rows).certificate
    ends = [
        MarginConvex(1.0, "barrier", outer_steps=k, inner_steps=i).learn(network.schema, NB, rows)
        for k, i in [(7, 20), (7, 3), (3, 20)]
    ]
    assert ends[0].certificate.objective == pytest.approx(exact.objective, rel=1e-3)
    for end in ends:
        assert end.certificate.objective >= exact.bound
        assert end.certificate.status.startswith("end of the path")
        verify(end.certificate.to_document(), rows.codes)
    values = [end.certificate.objective for end in ends]
    assert values[0] < values[2]
    assert len({round(v, 9) for v in values}) == 3


def test_few_rows_under_many_parents_need_little_memory() -> None:
    rng = np.random.default_rng(8)
    network = random_network(rng, TAN, (3, 9, 9, 9))
    rows = network.sample(10, rng)
    size = np.prod(Design.of(TAN, rows).shape)
    found = MarginConvex(0.5, "barrier", max_bytes=8 * (size / 4) ** 2).learn(network.schema, TAN, rows)
    verify(found.certificate.to_document(), rows.codes)
    with pytest.raises(ValueError, match=r"weights that rows use, more than max_bytes=800 allows"):
        MarginConvex(0.5, "barrier", max_bytes=800).learn(network.schema, TAN, rows)


def test_the_barrier_path_is_determined() -> None:
    rng = np.random.default_rng(6)
    network = random_network(rng, TAN, (3, 2, 3, 2))
    rows = network.sample(60, rng)
    a, b = (MarginConvex(0.5, "barrier").learn(network.schema, TAN, rows) for _ in range(2))
    assert a.network == b.network
    assert len(a.path) <= 7 * 20
