"""Orders of the features and the parents chosen along them, against slow versions of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from marginbayes.data import Rows, Schema
from marginbayes.parameters import ConditionalLikelihood, MaximumLikelihood
from marginbayes.parameters.parametrisation import Concave
from marginbayes.scores.rowwise import row_score
from marginbayes.structure import Constraints, OrderBased, Step, StructureResult
from marginbayes.structure.engine import Engine
from marginbayes.structure.orders import ORDERS, feature_order
from tests.oracles import structure as slow
from tests.oracles.structure import Oracle, Parents, Structure, as_rows, bundled, dag_of, random_rows, width

BUNDLED = [
    ("iris", (0, 1, 2, 3)),
    ("wine", (0, 3, 6, 9, 12)),
    ("breast_cancer", (1, 4, 9, 21, 27)),
    ("digits", (10, 21, 28, 43)),
]
RULED = [order for order in ORDERS if order != "random"]


def engine(schema: Schema, rows: Rows) -> Engine:
    return Engine(schema, rows, row_score("cr"), 1.0, "laplace", 1e7)


def assert_same(result: StructureResult, way: slow.Way, schema: Schema) -> None:
    assert set(result.dag.edges) == set(dag_of(schema.names, way[-1][0]).edges)
    assert [result.score, *(step.score for step in result.path)] == pytest.approx(
        [way[-1][1], *(score for _, score in way[1:])], abs=1e-10
    )


def feature_parents(result: StructureResult) -> Structure:
    return {i: tuple(q for q in p if q) for i, p in enumerate(result.dag.parents[1:], start=1)}


# -- orders


@pytest.mark.parametrize("order", RULED)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_the_order_is_that_of_the_entropies(order: str, missing: float) -> None:
    for seed in range(12):
        schema, rows = random_rows(seed, n=(12, 40, 200)[seed % 3], features=6, missing=missing)
        rows = rows.reweighted(np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], len(rows)))
        oracle = Oracle(rows)
        assert feature_order(engine(schema, rows), order) == slow.order_by(oracle, slow.rules(oracle)[order])


@pytest.mark.parametrize("order", RULED)
@pytest.mark.parametrize(("name", "columns"), BUNDLED)
def test_the_order_agrees_on_real_data(order: str, name: str, columns: tuple[int, ...]) -> None:
    schema, rows = bundled(name, columns)
    oracle = Oracle(rows)
    assert feature_order(engine(schema, rows), order) == slow.order_by(oracle, slow.rules(oracle)[order])


@pytest.mark.parametrize("order", ["mi", "mi_sp", "mi_min"])
@pytest.mark.parametrize("epsilon", [1e-5, 1e-3, 0.02])
def test_the_correction_for_patterns_that_do_not_occur_is_that_of_the_paper(order: str, epsilon: float) -> None:
    for seed in range(10):
        schema, rows = random_rows(seed, n=40)
        oracle = Oracle(rows)
        expected = slow.order_by(oracle, slow.rules(oracle, epsilon)[order])
        assert feature_order(engine(schema, rows), order, epsilon) == expected


def test_a_row_without_weight_is_no_pattern_that_occurs() -> None:
    for seed in range(40):
        schema, rows = random_rows(seed, n=24)
        weights = np.repeat([1.0, 0.0], 12)
        found = feature_order(engine(schema, rows.reweighted(weights)), "mi", 0.02)
        assert found == feature_order(engine(schema, rows.take(weights > 0)), "mi", 0.02)


def test_a_large_correction_puts_features_of_few_levels_first() -> None:
    rng = np.random.default_rng(0)
    cards = (2, 20, 5, 15, 10)
    schema, rows = as_rows(rng.integers(0, np.array(cards)[:, None], (5, 8)), cards)
    assert feature_order(engine(schema, rows), "mi", 0.3) == [2, 4, 3, 1]


def test_the_correction_survives_more_patterns_than_a_float_can_hold() -> None:
    rng = np.random.default_rng(0)
    cards = (2, *([8] * 345), 3)  # 8^345 is more than 1e311
    schema, rows = as_rows(rng.integers(0, np.array(cards)[:, None], (347, 6)), cards)
    order = feature_order(engine(schema, rows), "mi", 1e-2)
    assert order.index(346) <= 1
    assert sorted(order) == list(range(1, 347))


def test_once_all_patterns_are_unique_ties_go_to_omisp_then_to_the_class_then_to_the_column() -> None:
    # v1 numbers the rows: given it, nothing is left to know, and I(C; X | v1) = 0 as well. I(C; X) decides.
    n = 12
    label = np.arange(n) % 2
    half = np.where(np.arange(n) < 8, label, 1 - label)
    codes = np.array([label, np.arange(n), np.zeros(n), half, label, half, np.zeros(n)])
    schema, rows = as_rows(codes, (2, n, 2, 2, 2, 2, 2))
    assert feature_order(engine(schema, rows), "mi_sp") == [1, 4, 3, 5, 2, 6]
    # v1 and v4 tell the class completely; v1 has the smaller index.
    assert feature_order(engine(schema, rows), "mi") == [1, 4, 3, 5, 2, 6]
    assert feature_order(engine(schema, rows), "cr") == [1, 4, 3, 5, 2, 6]


def test_the_random_order_is_fixed_by_its_seed() -> None:
    schema, rows = random_rows(0, features=9)
    orders = [tuple(feature_order(engine(schema, rows), "random", 0.0, seed)) for seed in (0, 0, 1, 2)]
    assert orders[0] == orders[1]
    assert len(set(orders)) == 3
    assert all(sorted(order) == list(range(1, 10)) for order in orders)


# -- parents along the order


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("score", ["cr", "cl", "sm", "sbm"])
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_parents_are_those_of_the_slow_one(order: str, score: str, missing: float) -> None:
    for seed in range(2):
        schema, rows = random_rows(seed, missing=missing)
        oracle = Oracle(rows, score)
        along = slow_order(schema, rows, oracle, order, seed)
        for k in (1, 2, 3):
            result = OrderBased(order, score, k, random_state=seed).learn(schema, rows)
            assert_same(result, slow.along(oracle, along, k), schema)


@pytest.mark.parametrize(("name", "columns"), BUNDLED)
def test_order_based_agrees_on_real_data(name: str, columns: tuple[int, ...]) -> None:
    schema, rows = bundled(name, columns)
    for order, score, k in [("mi", "cr", 1), ("mi", "cr", 2), ("mi_sp", "cl", 1), ("cr", "cr", 1), ("random", "cr", 3)]:
        oracle = Oracle(rows, score)
        result = OrderBased(order, score, k, random_state=4).learn(schema, rows)
        assert_same(result, slow.along(oracle, slow_order(schema, rows, oracle, order, 4), k), schema)


class Trained(Oracle):
    """Scores structures by the networks that `ConditionalLikelihood` makes of them."""

    def __init__(self, schema: Schema, rows: Rows, learner: ConditionalLikelihood | None = None) -> None:
        super().__init__(rows)
        self.schema, self.rows, self.learner = schema, rows, learner or ConditionalLikelihood()
        hidden = rows.codes.copy()
        hidden[0] = rows.cardinalities[0]
        self.unlabelled = Rows(hidden, rows.cardinalities)

    def _score(self, structure: tuple[tuple[int, Parents], ...]) -> float:
        dag = dag_of(self.schema.names, dict(structure))
        network = self.learner.learn(self.schema, dag, self.rows).network
        return float(np.mean(network.log_joint(self.unlabelled).argmax(axis=1) == self.rows.codes[0]))


LITERAL = ConditionalLikelihood(
    l2=0.0, pool=False, form="softmax", solver="cg", max_iter=5, smoothing=1e-5, kind="floor"
)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("inner", ["cl", LITERAL], ids=["cl", "as published"])
def test_trained_tables_choose_as_networks_trained_one_by_one(seed: int, inner: str | ConditionalLikelihood) -> None:
    schema, rows = random_rows(seed, n=80, features=4)
    oracle = Trained(schema, rows, None if isinstance(inner, str) else inner)
    along = slow_order(schema, rows, oracle, "mi", seed)
    for k in (1, 2):
        result = OrderBased("mi", "cr", k, inner_parameters=inner).learn(schema, rows)
        assert len(result.path) > 0
        assert_same(result, slow.along(oracle, along, k), schema)


@pytest.mark.parametrize("inner", ["m3n", None, MaximumLikelihood(), ConditionalLikelihood(tune=True)])
def test_what_cannot_train_candidates_is_refused(inner: Any) -> None:
    with pytest.raises(ValueError, match="inner_parameters"):
        OrderBased(inner_parameters=inner).learn(*random_rows(0, n=20, features=2))


def test_ctrl_c_while_a_candidate_is_trained_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, rows = random_rows(0, n=80, features=4)
    trainings = 0

    def objective(self: Concave, point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal trainings
        trainings += not point[1:].any()  # where a training starts
        if trainings > 3:
            raise KeyboardInterrupt
        return evaluate(self, point)

    evaluate = Concave.objective
    monkeypatch.setattr(Concave, "objective", objective)
    assert OrderBased("mi", "cr", inner_parameters="cl").learn(schema, rows).status == "interrupted"
    assert trainings == 4


def slow_order(schema: Schema, rows: Rows, oracle: Oracle, order: str, seed: int) -> list[int]:
    if order == "random":
        return feature_order(engine(schema, rows), "random", 0.0, seed)
    return slow.order_by(oracle, slow.rules(oracle)[order])


@pytest.mark.parametrize("kind", ["laplace", "ess", "floor"])
@pytest.mark.parametrize("score", ["cr", "cl"])
def test_any_smoothing_of_the_tables_can_be_used(kind: str, score: str) -> None:
    for seed in range(4):
        schema, rows = random_rows(seed, n=60)
        oracle = Oracle(rows, score, smoothing=0.01, kind=kind)
        way = slow.along(oracle, slow.order_by(oracle, slow.rules(oracle)["mi"]), 2)
        assert_same(OrderBased("mi", score, 2, smoothing=0.01, kind=kind).learn(schema, rows), way, schema)


@pytest.mark.parametrize("order", ORDERS)
def test_the_rate_is_never_below_that_of_naive_bayes(order: str) -> None:
    for seed in range(10):
        schema, rows = random_rows(seed, n=80, features=7, missing=0.1)
        result = OrderBased(order, "cr", 1 + seed % 3, random_state=seed).learn(schema, rows)
        oracle = Oracle(rows)
        scores = [oracle.score(slow.naive(oracle)), *(step.score for step in result.path)]
        assert (np.diff(scores) > 0).all()
        assert result.score == pytest.approx(oracle.score(feature_parents(result)), abs=1e-10)
        assert result.score >= scores[0] - 1e-12


def test_a_tie_goes_to_the_smaller_set_then_to_features_that_come_first() -> None:
    # The class is the parity of v1 and v2, of which v3 and v4 are copies; v5 tells nothing.
    one, two, three = np.array(np.meshgrid(*[[0, 1]] * 3)).reshape(3, -1).repeat(4, axis=1)
    schema, rows = as_rows(np.array([one ^ two, one, two, one, two, three]), (2,) * 6)
    assert feature_order(engine(schema, rows), "mi") == [1, 2, 3, 4, 5]
    for k in (1, 2, 3):
        result = OrderBased("mi", "cr", k).learn(schema, rows)
        assert feature_parents(result) == {1: (), 2: (1,), 3: (), 4: (), 5: ()}


# -- Algorithm 1 as printed


@pytest.mark.parametrize("order", RULED)
@pytest.mark.parametrize("score", ["cr", "cl"])
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_the_literal_mode_is_algorithm_1(order: str, score: str, missing: float) -> None:
    for seed in range(4):
        schema, rows = random_rows(seed, missing=missing)
        oracle = Oracle(rows, score)
        for k in (1, 2):
            result = OrderBased(order, score, k, literal=True).learn(schema, rows)
            assert_same(result, slow.algorithm_1(oracle, slow.rules(oracle)[order], k), schema)


@pytest.mark.parametrize(("name", "columns"), BUNDLED)
def test_the_literal_mode_agrees_on_real_data(name: str, columns: tuple[int, ...]) -> None:
    schema, rows = bundled(name, columns)
    oracle = Oracle(rows)
    for order in ("mi", "mi_sp", "cr"):
        way = slow.algorithm_1(oracle, slow.rules(oracle)[order], 1)
        assert_same(OrderBased(order, literal=True).learn(schema, rows), way, schema)


def test_the_literal_mode_corrects_the_entropies_of_the_first_pair_too() -> None:
    for seed in range(6):
        schema, rows = random_rows(seed)
        oracle = Oracle(rows)
        way = slow.algorithm_1(oracle, slow.rules(oracle, 0.005)["mi"], 1, epsilon=0.005)
        assert_same(OrderBased("mi", literal=True, epsilon=0.005).learn(schema, rows), way, schema)


def test_the_literal_mode_joins_a_pair_and_gives_the_third_feature_a_parent_whatever_it_costs() -> None:
    # Strong smoothing weakens whatever has a further parent, so every edge costs likelihood.
    rng = np.random.default_rng(0)
    label = np.arange(60) % 2
    schema, rows = as_rows(np.array([label, *(label ^ (rng.random((4, 60)) < 0.2))]), (2,) * 5)
    plain = OrderBased("mi", "cl", smoothing=30.0).learn(schema, rows)
    literal = OrderBased("mi", "cl", smoothing=30.0, literal=True).learn(schema, rows)
    assert plain.path == ()
    assert len(literal.path) == 2
    assert literal.path[1].score < literal.path[0].score < plain.score
    assert_same(literal, slow.algorithm_1(*slow_pair(rows)), schema)


def slow_pair(rows: Rows) -> tuple[Oracle, slow.Rule, int]:
    oracle = Oracle(rows, "cl", smoothing=30.0)
    return oracle, slow.rules(oracle)["mi"], 1


# -- what all searches share


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("k", [1, 2])
def test_weights_are_repetitions_and_neither_order_nor_threads_matter(literal: bool, k: int) -> None:
    for seed in range(4):
        schema, rows = random_rows(seed, missing=0.1)
        rng = np.random.default_rng(seed)
        times = rng.integers(0, 4, len(rows))
        repeated = rows.take(rng.permutation(np.repeat(np.arange(len(rows)), times)))
        expected = OrderBased(k=k, literal=literal).learn(schema, repeated)
        for other in (rows.reweighted(times.astype(float)), repeated.merged()[0], repeated.take(slice(None, None, -1))):
            for n_jobs in (None, 2):
                result = OrderBased(k=k, literal=literal, n_jobs=n_jobs).learn(schema, other)
                assert result.dag == expected.dag
                assert result.score == pytest.approx(expected.score, abs=1e-10)


@pytest.mark.parametrize("k", [1, 2])
def test_the_features_stay_a_partial_k_tree_when_asked(k: int) -> None:
    grown = 0
    for seed in (0, 12, 16):
        schema, rows = random_rows(seed, n=60, features=6)
        oracle = Oracle(rows, "cl")
        along = slow.order_by(oracle, slow.rules(oracle)["mi"])
        grown += width(feature_parents(OrderBased("mi", "cl", k).learn(schema, rows))) > k
        narrow = OrderBased("mi", "cl", k, treewidth=True).learn(schema, rows)
        assert width(feature_parents(narrow)) <= k
        assert_same(narrow, slow.along(oracle, along, k, lambda s, k=k: width(s) <= k), schema)
    assert (grown > 0) == (k > 1)


def test_only_the_strongest_candidates_become_parents() -> None:
    for seed in range(6):
        schema, rows = random_rows(seed, features=6)
        sample = slow.sample_of(rows)

        def information(i: int, j: int, sample: slow.Sample = sample) -> float:
            return round(
                slow.entropy(sample, [0, i]) + slow.entropy(sample, [0, j]) - slow.entropy(sample, [0, i, j]), 9
            )

        for child, parents in feature_parents(OrderBased("mi", "cl", 2, candidates=2).learn(schema, rows)).items():
            others = [j for j in range(1, 7) if j != child]
            assert set(parents) <= set(sorted(others, key=lambda j, i=child: -information(i, j))[:2])


def test_an_interrupted_search_keeps_the_best_structure_so_far() -> None:
    def stop(step: Step) -> None:
        raise KeyboardInterrupt(step.change)

    for literal in (False, True):
        schema, rows = random_rows(1, n=60)
        complete = OrderBased("mi", "cl", 2, literal=literal).learn(schema, rows)
        result = OrderBased("mi", "cl", 2, literal=literal, callback=stop).learn(schema, rows)
        oracle = Oracle(rows, "cl")
        start = oracle.score(slow.naive(oracle))
        assert result.status == "interrupted"
        assert result.score == pytest.approx(max(start, complete.path[0].score), abs=1e-10)
        assert result.score == pytest.approx(oracle.score(feature_parents(result)), abs=1e-10)


def test_a_step_names_every_parent_it_adds() -> None:
    for seed in range(5):
        result = OrderBased("mi", "cl", 3, smoothing=0.1).learn(*random_rows(seed, n=60))
        text = {step.child: str(step) for step in result.path}
        assert all(parent in text[child] for parent, child in result.dag.edges if parent != "v0")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": "best"}, "order='best' is not known; choose one of 'mi', 'mi_sp'"),
        ({"epsilon": -0.1}, r"epsilon=-0.1 must be at least 0 and below 1"),
        ({"epsilon": 1.0}, r"epsilon=1.0 must be at least 0 and below 1"),
        ({"k": -1}, "k=-1 must be a whole number"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_value(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        OrderBased(**settings).learn(*random_rows(0))


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("order", ORDERS)
def test_the_informative_edge_is_found_in_95_of_100_samples(order: str, k: int, literal: bool) -> None:
    for score in ("cr", "cl"):
        learner = OrderBased(order, score, k, literal=literal, random_state=0)
        results = [learner.learn(*slow.informative(seed)) for seed in range(100)]
        assert sum(bool({("v1", "v3"), ("v3", "v1")} & set(result.dag.edges)) for result in results) >= 95


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("k", [1, 2])
def test_features_of_one_level_are_passed_over_as_the_slow_search_finds(k: int, literal: bool) -> None:
    for seed in range(3):
        _, rows = random_rows(seed)
        codes, cards = np.insert(rows.codes, [2, 4], 0, axis=0), np.insert(rows.cardinalities, [2, 4], 1)
        schema, rows = as_rows(codes, cards)
        oracle = Oracle(rows, "cr")
        rule = slow.rules(oracle)["mi"]
        order = slow.order_by(oracle, rule)
        way = slow.algorithm_1(oracle, rule, k) if literal else slow.along(oracle, order, k)
        assert_same(OrderBased("mi", "cr", k, literal=literal).learn(schema, rows), way, schema)


def test_ctrl_c_in_the_first_training_leaves_what_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    def objective(*words: object) -> None:
        raise KeyboardInterrupt(words)

    schema, rows = random_rows(0, n=80, features=4)
    monkeypatch.setattr(Concave, "objective", objective)
    constraints = Constraints(required=[("v1", "v2")], forbidden=[("v0", "v4")])
    found = OrderBased("mi", "cr", inner_parameters="cl", constraints=constraints).learn(schema, rows)
    assert found.status == "interrupted"
    assert found.score is None
    assert found.dag.parents == ((), (0,), (0, 1), (0,), ())
