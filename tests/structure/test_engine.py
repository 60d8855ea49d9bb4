"""The state of a search against tables and scores that are computed anew each time."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from marginbayes.data import Rows, Schema
from marginbayes.parameters import MaximumLikelihood
from marginbayes.scores.rowwise import RowScore, row_score
from marginbayes.structure.engine import Engine, structure_dag
from tests.oracles.structure import Oracle, Structure, as_rows, dag_of, is_sound, naive, random_rows

SCORES = ("cr", "cl", "sm", "sbm")
KINDS = [("laplace", 1.0), ("laplace", 0.1), ("ess", 2.0), ("floor", 1e-5)]


def engine(schema: Schema, rows: Rows, score: str = "cr", smoothing: float = 1.0, kind: str = "laplace") -> Engine:
    return Engine(schema, rows, row_score(score), smoothing, kind, 1e7)


def random_change(rng: np.random.Generator, structure: Structure, k: int = 2) -> tuple[int, tuple[int, ...] | None]:
    """A feature and new parents of it (None: it is dropped) that leave the structure sound."""
    while True:
        child = int(rng.choice(list(structure)))
        parents = rng.choice([i for i in structure if i != child], int(rng.integers(0, k + 1)), replace=False)
        new = None if rng.random() < 0.1 else tuple(int(p) for p in parents)
        if is_sound({**structure, child: new}, k):
            return child, new


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("kind", "smoothing"), KINDS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_score_after_many_changes_is_the_score_from_scratch(
    score: str, kind: str, smoothing: float, missing: float
) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        schema, rows = random_rows(seed, missing=missing)
        rows = rows.reweighted(rng.choice([0.25, 1.0, 2.0], len(rows)))
        own, oracle = engine(schema, rows, score, smoothing, kind), Oracle(rows, score, None, smoothing, kind)
        structure = naive(oracle)
        assert own.value == pytest.approx(oracle.score(structure), abs=1e-10)
        for _ in range(12):
            child, parents = random_change(rng, structure)
            structure[child] = parents
            own.set_parents(child, parents)
            assert own.value == pytest.approx(oracle.score(structure), abs=1e-10)


@pytest.mark.parametrize(("kind", "smoothing"), KINDS)
def test_the_vectors_are_the_log_joint_of_the_network_with_the_same_tables(kind: str, smoothing: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        schema, rows = random_rows(seed)
        own = engine(schema, rows, "cl", smoothing, kind)
        structure: Structure = dict.fromkeys(own.features, ())
        for _ in range(6):
            child, parents = random_change(rng, structure)
            structure[child] = parents
            own.set_parents(child, parents)
        # A dropped feature has its own table in the network, the same for every class.
        network = MaximumLikelihood(smoothing, kind).learn(schema, dag_of(schema.names, structure), rows).network
        known = Rows(own.codes.astype(np.uint8), rows.cardinalities)
        expected = network.log_joint(known)
        np.testing.assert_allclose(own.state - own.state[:, :1], expected - expected[:, :1], atol=1e-10)
        assert structure_dag(schema.names, own.parents) == network.dag


def test_a_class_that_never_occurs_gets_the_share_of_the_network() -> None:
    codes = np.array([[0, 0, 2, 2, 0], [0, 1, 1, 0, 1], [1, 1, 0, 0, 0]])
    schema, rows = as_rows(codes, (3, 2, 2))
    for kind, smoothing in KINDS:
        own = engine(schema, rows, "cl", smoothing, kind)
        network = (
            MaximumLikelihood(smoothing, kind).learn(schema, structure_dag(schema.names, own.parents), rows).network
        )
        expected = network.log_joint(Rows(own.codes.astype(np.uint8), rows.cardinalities))
        np.testing.assert_allclose(own.state - own.state[:, :1], expected - expected[:, :1], atol=1e-10)


@pytest.mark.parametrize("kind", ["laplace", "ess", "floor"])
@pytest.mark.parametrize("score", SCORES)
def test_without_smoothing_no_score_is_lost_to_infinities(score: str, kind: str) -> None:
    # v1 tells the classes apart, so that each row is impossible under the other class.
    codes = np.array([[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1], [0, 0, 1, 0, 1, 1]])
    schema, rows = as_rows(codes, (2, 2, 2, 2))
    own, oracle = engine(schema, rows, score, 0.0, kind), Oracle(rows, score, smoothing=0.0, kind=kind)
    structure = naive(oracle)
    for child, parents in [(2, (1,)), (1, (3,)), (1, ()), (3, (2,))]:
        structure[child] = parents
        own.set_parents(child, parents)
        assert not np.isnan(own.state).any()
        assert own.value == pytest.approx(oracle.score(structure), abs=1e-10)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("kind", "smoothing"), KINDS)
def test_a_trial_is_the_loss_after_the_change_unless_that_is_above_the_limit(
    score: str, kind: str, smoothing: float
) -> None:
    schema, rows = random_rows(5, missing=0.1)
    own = engine(schema, rows, score, smoothing, kind)
    own.set_parents(2, (3,))
    tried = own.try_parents(4, (1,), [2, 3, 5], math.inf)
    losses = []
    for parent in (2, 3, 5):
        changed = engine(schema, rows, score, smoothing, kind)
        changed.set_parents(2, (3,))
        changed.set_parents(4, (1, parent))
        losses.append(changed.loss)
    kept = np.isfinite(tried)
    np.testing.assert_allclose(tried[kept], np.array(losses)[kept], atol=1e-10)
    assert (np.array(losses)[~kept] > min(losses)).all()
    assert np.isfinite(tried[int(np.argmin(losses))])
    assert np.isinf(own.try_parents(4, (1,), [2, 3, 5], min(losses) - 1e-6)).all()
    np.testing.assert_array_equal(tried, own.try_parents(4, (1,), [2, 3, 5], math.inf, own.rest(own.without(4))))
    assert own.try_parents(4, (1,), [], math.inf).size == 0


def test_the_margin_and_the_binary_margin_agree_for_two_classes() -> None:
    rng = np.random.default_rng(1)
    for kind, smoothing in KINDS:
        codes = rng.integers(0, [[2], [3], [2], [3]], (4, 50))
        schema, rows = as_rows(codes, (2, 3, 2, 3))
        margin, binary = (engine(schema, rows, score, smoothing, kind) for score in ("sm", "sbm"))
        for child, parents in [(1, ()), (2, (1,)), (3, (1, 2)), (2, ())]:
            margin.set_parents(child, parents)
            binary.set_parents(child, parents)
            assert margin.value == pytest.approx(binary.value, abs=1e-10)
            np.testing.assert_allclose(margin.losses_of(margin.state), binary.losses_of(binary.state), atol=1e-10)


@pytest.mark.parametrize("score", SCORES)
def test_weights_are_repetitions_and_the_order_of_rows_does_not_matter(score: str) -> None:
    schema, rows = random_rows(2, missing=0.1)
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, len(rows))
    repeated = rows.take(rng.permutation(np.repeat(np.arange(len(rows)), times)))
    weighted = rows.reweighted(times.astype(float))
    for one, other in pairwise([repeated, weighted, weighted.take(rng.permutation(len(rows)))]):
        engines = [engine(schema, r, score) for r in (one, other)]
        for child, parents in [(1, (2,)), (3, (2, 1)), (1, ())]:
            for e in engines:
                e.set_parents(child, parents)
            assert engines[0].value == pytest.approx(engines[1].value, abs=1e-10)
            trials = [e.try_parents(4, (), [1, 2, 3], math.inf) for e in engines]
            np.testing.assert_allclose(trials[0], trials[1], atol=1e-10)


def test_rows_without_a_class_are_not_looked_at() -> None:
    schema, rows = random_rows(2)
    codes = rows.codes.copy()
    codes[0, ::3] = rows.cardinalities[0]
    own = engine(schema, Rows(codes, rows.cardinalities))
    some = engine(schema, rows.take(np.arange(len(rows)) % 3 > 0))
    np.testing.assert_array_equal(own.state, some.state)
    assert own.total == some.total < len(rows)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("kind", "smoothing"), KINDS)
def test_a_parent_that_is_always_missing_changes_nothing(score: str, kind: str, smoothing: float) -> None:
    schema, rows = random_rows(3)
    codes = rows.codes.copy()
    codes[2] = rows.cardinalities[2]
    own = engine(schema, Rows(codes, rows.cardinalities), score, smoothing, kind)
    before = own.state.copy()
    own.set_parents(1, (2,))
    np.testing.assert_allclose(own.state, before, atol=1e-10)
    own.set_parents(2, (3,))
    np.testing.assert_allclose(own.state, before, atol=1e-10)


def test_a_missing_parent_is_left_out_of_the_condition_and_a_missing_child_adds_nothing() -> None:
    # Class 0 only; v1 given v2. Missing is 2. Laplace 1.
    codes = np.array([[0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 2], [0, 0, 1, 2, 2, 1]])
    schema, rows = as_rows(codes, (2, 2, 2))
    own = engine(schema, rows, "cl")
    own.set_parents(1, (2,))
    own.set_parents(2, None)
    prior = math.log(7 / 8)
    found = {tuple(int(x) for x in row[1:]): v for row, v in zip(own.codes.T, own.state[:, 0] - prior, strict=True)}
    assert found[0, 0] == pytest.approx(math.log(3 / 4))  # two rows with both observed and v2 = 0
    assert found[1, 1] == pytest.approx(math.log(2 / 3))
    assert found[0, 2] == pytest.approx(math.log(4 / 7))  # all five rows with v1 observed
    assert found[1, 2] == pytest.approx(math.log(3 / 7))
    assert found[2, 1] == pytest.approx(0.0)


def test_equal_probabilities_of_classes_are_seen_as_a_tie() -> None:
    # Class 1 is class 0 with its features turned by one place: where all have the same value, both classes have the
    # same factors in another order. Such a row is a tie, goes to class 0, and rounding must not decide otherwise.
    for seed in range(12):
        half = np.random.default_rng(seed).choice(2, (4, 30), p=[0.6, 0.4])
        codes = np.vstack([np.repeat([0, 1], 30), np.hstack([half, np.roll(half, 1, axis=0)])])
        schema, rows = as_rows(codes, (2,) * 5)
        own, oracle = engine(schema, rows), Oracle(rows)
        values = [own.value]
        for child in own.features:
            own.set_parents(child, (child % 4 + 1,))
            own.set_parents(child, ())
            values.append(own.value)
        assert values == pytest.approx([oracle.score(naive(oracle))] * 5)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_table_that_is_too_large_is_refused_by_name(k: int) -> None:
    schema, rows = random_rows(0)
    own = Engine(schema, rows, row_score("cr"), 1.0, "laplace", 1e7)
    own.max_table = 1 + k
    with pytest.raises(ValueError, match=r"the table of 'v3' given 'v0'.* more than max_table=.*lower k"):
        own.set_parents(3, tuple(range(1, k + 1)))
    if k:
        with pytest.raises(ValueError, match=r"the table of 'v3' given 'v0'.* more than max_table="):
            own.try_parents(3, tuple(range(1, k)), [4, 5], math.inf)


def test_a_table_of_exactly_the_greatest_size_is_allowed() -> None:
    schema, rows = as_rows(np.array([[0, 1], [0, 1], [1, 1]]), (2, 2, 2))
    own = Engine(schema, rows, row_score("cr"), 1.0, "laplace", 8)
    own.set_parents(2, (1,))
    with pytest.raises(ValueError, match="more than max_table=7"):
        Engine(schema, rows, row_score("cr"), 1.0, "laplace", 7).set_parents(2, (1,))


@pytest.mark.parametrize("smoothing", [-1.0, math.nan, math.inf])
def test_a_smoothing_that_is_no_number_from_zero_on_is_refused(smoothing: float) -> None:
    with pytest.raises(ValueError, match="smoothing="):
        engine(*random_rows(0), smoothing=smoothing)


def test_a_smoothing_that_a_search_cannot_use_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="kind='dirichlet' is no smoothing for a search; choose one of laplace"):
        engine(*random_rows(0), kind="dirichlet")


def test_a_score_says_its_name_its_ceiling_and_what_it_refuses() -> None:
    assert [row_score(name).ceiling for name in SCORES] == [1.0, 0.0, math.log(9), math.log(9)]
    assert row_score("sm", 2.0) == RowScore("sm", 2.0) == row_score(RowScore("sm", 2.0))
    assert row_score("cr").value(3.0, 12.0) == 0.75
    assert row_score("cl").value(3.0, 12.0) == -3.0
    assert row_score("sm", 2.0).value(3.0, 12.0) == 21.0
    with pytest.raises(ValueError, match="score='accuracy' is not known; choose one of 'cr'"):
        row_score("accuracy")
    with pytest.raises(ValueError, match=r"gamma=0.0 must be a positive number"):
        row_score("sm", 0.0)


def test_levels_for_missing_cells_count_as_part_of_a_table() -> None:
    rng = np.random.default_rng(0)
    codes = np.vstack([rng.integers(0, 2, 40), rng.integers(0, 3, (21, 40))])
    codes[1:, 0], codes[1:, 1], codes[1:, 2] = 0, 1, 2  # two levels, and a missing cell
    schema, rows = as_rows(codes, (2,) * 22)
    own = Engine(schema, rows, row_score("cr"), 1.0, "laplace", 1e7)
    with pytest.raises(ValueError, match="more than max_table"):
        own.set_parents(21, tuple(range(1, 21)))
    own.max_table = math.inf  # 3^21 cells are more than an index of 32 bits can tell apart
    with pytest.raises(ValueError, match="more than max_table"):
        own.set_parents(21, tuple(range(1, 21)))
