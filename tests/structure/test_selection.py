"""The number of changes chosen by cross-validation, against folds that are learned and counted by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from marginbayes.data import Rows
from marginbayes.graph import Dag
from marginbayes.parameters import MaximumLikelihood
from marginbayes.structure import Greedy, OrderBased, Step, SuperParent
from marginbayes.structure.search import SearchLearner
from marginbayes.structure.selection import held_out_rates
from tests.oracles import structure as slow
from tests.oracles.brute import log_joint
from tests.oracles.structure import Oracle, as_rows, bundled, dag_of, random_rows

WAYS = {
    "greedy": (Greedy(k=2, selection="cv", random_state=3), lambda oracle: slow.greedy(oracle, 2)),
    "order": (
        OrderBased("mi", k=2, selection="cv", random_state=3),
        lambda oracle: slow.along(oracle, slow.order_by(oracle, slow.rules(oracle)["mi"]), 2),
    ),
}


def slow_choice(rows: Rows, way: object, seed: int) -> tuple[int, slow.Way]:
    """The number of changes with the greatest mean rate on held-out rows, and the way on all rows."""
    fold_of = np.random.default_rng(seed).permutation(len(rows)) % 5
    by_fold = []
    for fold in range(5):
        train, test = Oracle(rows.take(fold_of != fold)), slow.sample_of(rows.take(fold_of == fold))
        right = [sum(train.predict(s, row) == row[0] for row in test.rows) for s, _ in way(train)]
        by_fold.append([Fraction(count, len(test.rows)) for count in right])
    longest = max(map(len, by_fold))
    means = [sum(rates[min(m, len(rates) - 1)] for rates in by_fold) for m in range(longest)]
    complete = way(Oracle(rows))
    return min(means.index(max(means)), len(complete) - 1), complete


@pytest.mark.parametrize(("name", "seed", "n"), [("greedy", 44, 67), ("order", 16, 60), ("order", 53, 60)])
def test_of_equal_held_out_rates_the_one_of_fewer_changes_is_taken_whatever_their_rounding(
    name: str, seed: int, n: int
) -> None:
    """Means over folds that are equal as fractions differ here as floats, and the greater one has more changes."""
    learner, way = WAYS[name]
    schema, rows = random_rows(seed, n=n)
    assert len(learner.learn(schema, rows).path) == slow_choice(rows, way, 3)[0]


@pytest.mark.parametrize("name", WAYS)
def test_the_number_of_changes_is_that_of_the_best_held_out_rate(name: str) -> None:
    learner, way = WAYS[name]
    chosen, lengths = set(), set()
    for seed in range(6):
        schema, rows = random_rows(seed, n=(40, 60, 67)[seed % 3])
        most, complete = slow_choice(rows, way, 3)
        result = learner.learn(schema, rows)
        structure, score = complete[most]
        assert set(result.dag.edges) == set(dag_of(schema.names, structure).edges)
        assert result.score == pytest.approx(score, abs=1e-10)
        assert len(result.path) == most
        chosen.add(most)
        lengths.add(len(complete) - 1)
    assert len(chosen) > 1
    assert min(chosen) < max(lengths)


def test_the_choice_agrees_on_real_data() -> None:
    schema, rows = bundled("wine", (0, 3, 6, 9, 12), n=100)
    learner, way = WAYS["greedy"]
    most, complete = slow_choice(rows, way, 3)
    assert set(learner.learn(schema, rows).dag.edges) == set(dag_of(schema.names, complete[most][0]).edges)


@pytest.mark.parametrize(
    "learner",
    [Greedy("cl", 2), SuperParent("cl", 2), OrderBased("mi", "cl", 2), OrderBased("mi", literal=True)],
    ids=lambda x: str(x),
)
def test_the_chosen_structure_lies_on_the_way_of_the_search_itself(learner: SearchLearner) -> None:
    shorter = 0
    for seed in range(4):
        schema, rows = random_rows(seed, missing=0.05 * (seed == 0))
        complete = learner.learn(schema, rows)
        settings = {**learner.get_params(), "selection": "cv", "random_state": 0}
        result = type(learner)(**settings).learn(schema, rows)
        assert [s.score for s in result.path] == [s.score for s in complete.path[: len(result.path)]]
        assert result.score == (result.path[-1].score if result.path else pytest.approx(start(rows, learner.score)))
        shorter += len(result.path) < len(complete.path)
        assert type(learner)(**settings).learn(schema, rows).dag == result.dag
    assert shorter


def start(rows: Rows, score: str) -> float:
    oracle = Oracle(rows, score)
    return oracle.score(slow.naive(oracle))


def test_noise_is_left_out() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (6, 100))
    codes[1] = np.where(rng.random(100) < 0.7, codes[0], codes[1])
    schema, rows = as_rows(codes, (3,) * 6)
    assert len(Greedy("cl", 2).learn(schema, rows).path) > 5
    assert Greedy("cl", 2, selection="cv", random_state=0).learn(schema, rows).path == ()


@pytest.mark.parametrize("kind", ["laplace", "ess", "floor"])
def test_a_held_out_rate_is_that_of_the_network_with_missing_cells_summed_out(kind: str) -> None:
    schema, rows = random_rows(4, n=80, missing=0.15)
    train, test = rows.take(np.arange(80) < 50), rows.take(np.arange(80) >= 50)
    test = test.reweighted(np.random.default_rng(0).choice([0.5, 1.0, 2.0], 30))
    ways = [{1: (), 2: (), 3: (), 4: (), 5: ()}, {1: (), 2: (1,), 3: (1, 2), 4: None, 5: (3,)}]
    dags = [dag_of(schema.names, structure) for structure in ways]
    rates = held_out_rates(schema, dags, train, test, 0.5, kind)
    for dag, rate in zip(dags, rates, strict=True):
        network = MaximumLikelihood(0.5, kind).learn(schema, dag, train).network
        right = log_joint(network, test).argmax(axis=1) == test.codes[0]
        assert rate == pytest.approx(test.weights[right].sum() / test.weights.sum(), abs=1e-12)


def test_a_row_without_a_class_is_no_error_of_any_structure() -> None:
    schema, rows = random_rows(1)
    codes = rows.codes.copy()
    codes[0, ::4] = rows.cardinalities[0]
    known = np.arange(len(rows)) % 4 > 0
    dag = Dag.naive(schema.names)
    rates = [
        held_out_rates(schema, [dag], rows, test, 1.0, "laplace")[0]
        for test in (Rows(codes, rows.cardinalities), rows.take(known))
    ]
    assert rates[0] == pytest.approx(rates[1])


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_few_rows_are_enough(n: int) -> None:
    schema, rows = random_rows(0)
    result = Greedy(selection="cv", random_state=0).learn(schema, rows.take(np.arange(n)))
    assert result.status == "finished"


def test_the_callback_sees_only_the_search_on_all_rows() -> None:
    schema, rows = random_rows(2)
    seen: list[Step] = []
    result = Greedy("cl", 2, selection="cv", random_state=0, callback=seen.append).learn(schema, rows)
    assert seen[: len(result.path)] == list(result.path)
    assert len(seen) == len(Greedy("cl", 2).learn(schema, rows).path)


def test_an_interruption_among_the_folds_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt(args)

    schema, rows = random_rows(2)
    monkeypatch.setattr(Greedy, "run", interrupted)
    try:
        result = Greedy("cl", 2, selection="cv", random_state=0).learn(schema, rows)
    except KeyboardInterrupt:
        pytest.fail("the interruption went through")
    assert result.status == "interrupted"


def test_selection_leaves_rows_out_that_cannot_be_judged() -> None:
    schema, rows = random_rows(0, 30)
    codes = rows.codes.copy()
    codes[0, :10] = rows.cardinalities[0]  # no class
    weights = np.r_[np.ones(20), np.zeros(10)]
    chosen = Greedy(selection="cv", random_state=0)
    found = chosen.learn(schema, Rows(codes, rows.cardinalities, weights))
    expected = chosen.learn(schema, Rows(codes, rows.cardinalities, weights).take(np.arange(10, 20)))
    assert found.dag == expected.dag
    alone = np.zeros(30)
    alone[12] = 1.0
    assert chosen.learn(schema, Rows(codes, rows.cardinalities, alone)).status == "finished"
