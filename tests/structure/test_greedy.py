"""Greedy edge adding and the superparent heuristic against slow versions of them."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes.data import Rows, Schema
from marginbayes.structure import Greedy, Step, StructureLearner, StructureResult, SuperParent, greedy
from tests.oracles import structure as slow
from tests.oracles.structure import Oracle, Structure, as_rows, bundled, dag_of, random_rows, width

SCORES = ("cr", "cl", "sm", "sbm")
KINDS = [("laplace", 1.0), ("ess", 2.0), ("floor", 1e-5)]
BUNDLED = [
    ("iris", (0, 1, 2, 3)),
    ("wine", (0, 3, 6, 9, 12)),
    ("breast_cancer", (1, 4, 9, 21, 27)),
    ("digits", (10, 21, 28, 43)),
]


def assert_same(result: StructureResult, way: slow.Way, schema: Schema) -> None:
    """The structure and the score of the last place on a way."""
    structure, score = way[-1]
    assert edges(result) == set(dag_of(schema.names, structure).edges)
    assert result.score == pytest.approx(score, abs=1e-10)


def edges(result: StructureResult) -> set[tuple[str, str]]:
    return set(result.dag.edges)


def feature_parents(result: StructureResult) -> Structure:
    pairs = enumerate(result.dag.parents[1:], start=1)
    return {i: None if 0 not in p else tuple(q for q in p if q) for i, p in pairs}


# -- greedy


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("kind", "smoothing"), KINDS)
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_greedy_takes_the_way_of_the_slow_one(score: str, kind: str, smoothing: float, missing: float) -> None:
    for seed, k in [(0, 1), (0, 2), (2, 1), (2, 3), (4, 2)]:
        schema, rows = random_rows(seed, missing=missing)
        result = Greedy(score, k, smoothing=smoothing, kind=kind).learn(schema, rows)
        way = slow.greedy(Oracle(rows, score, None, smoothing, kind), k)
        assert_same(result, way, schema)
        assert [step.score for step in result.path] == pytest.approx([s for _, s in way[1:]], abs=1e-10)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("name", "columns"), BUNDLED)
def test_greedy_agrees_on_real_data(score: str, name: str, columns: tuple[int, ...]) -> None:
    schema, rows = bundled(name, columns)
    for k in (1, 2):
        assert_same(Greedy(score, k).learn(schema, rows), slow.greedy(Oracle(rows, score), k), schema)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 10.0])
def test_the_margin_that_is_enough_is_honoured(gamma: float) -> None:
    schema, rows = random_rows(1, n=60)
    for score in ("sm", "sbm"):
        assert_same(Greedy(score, gamma=gamma).learn(schema, rows), slow.greedy(Oracle(rows, score, gamma), 1), schema)


@pytest.mark.parametrize("score", SCORES)
def test_the_score_rises_with_every_edge_and_each_step_names_its_edge(score: str) -> None:
    for seed in range(5):
        schema, rows = random_rows(seed, n=60, features=7, missing=0.1)
        result = Greedy(score, k=3).learn(schema, rows)
        scores = [Oracle(rows, score).score(dict.fromkeys(range(1, 8), ())), *(s.score for s in result.path)]
        assert (np.diff(scores) > 0).all()
        assert result.score == scores[-1]
        named = [(step.parent, step.child) for step in result.path]
        assert set(named) | {("v0", f"v{i}") for i in range(1, 8)} == edges(result)
        assert len(set(named)) == len(named)
        assert {step.change for step in result.path} == {"add"}
        assert all(a.seconds <= b.seconds for a, b in zip(result.path, result.path[1:], strict=False))


def test_a_tie_goes_to_the_smaller_child_then_to_the_smaller_parent() -> None:
    # v1 and v2 together are the class; v3 is a copy of v1, v4 of v2.
    one, two = np.repeat([0, 0, 1, 1], 5), np.repeat([0, 1, 0, 1], 5)
    schema, rows = as_rows(np.array([one ^ two, one, two, one, two]), (2,) * 5)
    for score in SCORES:
        first = Greedy(score).learn(schema, rows).path[0]
        assert (first.parent, first.child) == ("v2", "v1")


@pytest.mark.parametrize("score", ["cl", "sm", "sbm"])
def test_both_directions_of_an_edge_tie_where_they_mean_the_same(score: str) -> None:
    # With an equivalent sample size P(a) P(b | a) = P(b) P(a | b), so the first edge always leads to its smaller end.
    for seed in range(12):
        schema, rows = random_rows(seed)
        path = Greedy(score, kind="ess", smoothing=1.0).learn(schema, rows).path
        assert path
        assert path[0].child < path[0].parent


# -- superparent


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("missing", [0.0, 0.15])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_superparent_takes_the_way_of_the_slow_one(score: str, missing: float, k: int) -> None:
    for seed in range(4):
        schema, rows = random_rows(seed, missing=missing)
        result, way = SuperParent(score, k).learn(schema, rows), slow.superparent(Oracle(rows, score), k)
        assert_same(result, way, schema)
        # A round of several edges is several steps.
        passed = [step.score for step in result.path]
        assert all(any(abs(score - p) < 1e-10 for p in passed) for _, score in way[1:])


@pytest.mark.parametrize(("name", "columns"), BUNDLED)
@pytest.mark.parametrize("k", [1, 2])
def test_superparent_agrees_on_real_data(name: str, columns: tuple[int, ...], k: int) -> None:
    schema, rows = bundled(name, columns)
    assert_same(SuperParent(k=k).learn(schema, rows), slow.superparent(Oracle(rows), k), schema)


# -- both


@pytest.mark.parametrize(("score", "k"), [("cr", 1), ("cl", 1), ("cl", 2)])
def test_what_superparents_add_may_be_kept_or_computed_anew(
    score: str, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema, rows = bundled("digits", (10, 20, 21, 28, 34, 36, 43, 51), n=400)
    kept = SuperParent(score, k).learn(schema, rows)
    assert len(kept.path) > 2
    for room in (0.0, 3 * 400 * 10 * 8.0):  # for none, or for three of the eight features
        monkeypatch.setattr(greedy, "KEPT_BYTES", room)
        anew = SuperParent(score, k).learn(schema, rows)
        assert anew.dag == kept.dag
        assert anew.score == pytest.approx(kept.score, rel=1e-12)


LEARNERS = [Greedy(k=2), Greedy("cl", 2), SuperParent(k=1), SuperParent("cl", 2), SuperParent("sm", 3)]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_weights_are_repetitions_and_neither_order_nor_threads_matter(learner: StructureLearner) -> None:
    for seed in range(3):
        schema, rows = random_rows(seed, missing=0.1)
        rng = np.random.default_rng(seed)
        times = rng.integers(0, 4, len(rows))
        repeated = rows.take(rng.permutation(np.repeat(np.arange(len(rows)), times)))
        expected = learner.learn(schema, repeated)
        threads = type(learner)(**{**learner.get_params(), "n_jobs": 2})
        for other in (rows.reweighted(times.astype(float)), repeated.merged()[0], repeated.take(slice(None, None, -1))):
            for result in (learner.learn(schema, other), threads.learn(schema, other)):
                assert result.dag == expected.dag
                assert result.score == pytest.approx(expected.score, abs=1e-10)


@pytest.mark.parametrize("learner", [Greedy, SuperParent])
@pytest.mark.parametrize("k", [1, 2])
def test_only_the_strongest_candidates_become_parents(learner: type[Greedy], k: int) -> None:
    for seed in range(3):
        schema, rows = random_rows(seed)
        allowed = strongest(rows, 2)

        def legal(structure: Structure, allowed: set[tuple[int, int]] = allowed) -> bool:
            return all((p, i) in allowed for i, own in structure.items() for p in own or ())

        way = {Greedy: slow.greedy, SuperParent: slow.superparent}[learner](Oracle(rows, "cl"), k, legal)
        assert_same(learner("cl", k, candidates=2).learn(schema, rows), way, schema)


def strongest(rows: Rows, most: int) -> set[tuple[int, int]]:
    """(parent, child) for the parents of greatest I(parent; child | class), by entropies."""
    sample, found = slow.sample_of(rows), set()
    features = range(1, len(sample.cards))
    for i in features:
        value = {
            j: slow.entropy(sample, [0, i]) + slow.entropy(sample, [0, j]) - slow.entropy(sample, [0, i, j])
            for j in features
            if j != i
        }
        found |= {(j, i) for j in sorted(value, key=lambda j: (-round(value[j], 9), j))[:most]}
    return found


@pytest.mark.parametrize("learner", [Greedy, SuperParent])
def test_the_features_stay_a_partial_k_tree_when_asked(learner: type[Greedy]) -> None:
    grown = 0
    for seed in (3, 21, 34):
        schema, rows = random_rows(seed, n=60, features=6)
        grown += width(feature_parents(learner("cl", 2).learn(schema, rows))) > 2
        narrow = learner("cl", 2, treewidth=True).learn(schema, rows)
        way = {Greedy: slow.greedy, SuperParent: slow.superparent}[learner]
        assert width(feature_parents(narrow)) <= 2
        assert_same(narrow, way(Oracle(rows, "cl"), 2, lambda s: width(s) <= 2), schema)
    assert grown


def test_a_table_that_is_too_large_ends_the_search_with_its_name() -> None:
    schema, rows = random_rows(0)
    for learner in (Greedy, SuperParent):
        with pytest.raises(ValueError, match=r"the table of 'v\d' given 'v0', 'v\d' would have .* max_table=20"):
            learner(max_table=20).learn(schema, rows)


@pytest.mark.parametrize("learner", [Greedy(k=2), SuperParent(), SuperParent(k=2), SuperParent("cl", 3)], ids=str)
def test_an_interrupted_search_keeps_the_best_structure_so_far(learner: Greedy) -> None:
    cut = 0
    for seed in range(8):
        schema, rows = random_rows(seed, n=60)
        complete = learner.learn(schema, rows)
        for after in range(1, len(complete.path)):
            seen: list[Step] = []

            def stop(step: Step, seen: list[Step] = seen, after: int = after) -> None:
                seen.append(step)
                if len(seen) == after:
                    raise KeyboardInterrupt

            result = type(learner)(**{**learner.get_params(), "callback": stop}).learn(schema, rows)
            oracle = Oracle(rows, learner.score)
            start = oracle.score(slow.naive(oracle))
            assert result.status == "interrupted"
            assert result.score == pytest.approx(max([start, *(s.score for s in seen)]), abs=1e-10)
            assert oracle.score(feature_parents(result)) == pytest.approx(result.score, abs=1e-10)
            cut += 1
    assert cut
    assert complete.status == "finished"


def test_the_callback_sees_every_step_and_other_errors_go_through() -> None:
    schema, rows = random_rows(0)
    seen: list[Step] = []
    result = Greedy("cl", 2, callback=seen.append).learn(schema, rows)
    assert tuple(seen) == result.path
    assert str(seen[0]) == f"add {seen[0].parent} -> {seen[0].child}: {seen[0].score:.6g}"

    def broken(step: Step) -> None:
        raise RuntimeError(step.change)

    with pytest.raises(RuntimeError, match="add"):
        Greedy("cl", callback=broken).learn(schema, rows)


def test_where_nothing_can_be_learned_naive_bayes_comes_back() -> None:
    schema, rows = random_rows(0)
    for learner in (Greedy(k=0), SuperParent(k=0)):
        result = learner.learn(schema, rows)
        assert result.dag == dag_of(schema.names, dict.fromkeys(range(1, 6), ()))
        assert result.path == ()
    single, only = as_rows(np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1]]), (1, 2, 2))
    for score in SCORES:
        assert Greedy(score, 2).learn(single, only).dag.edges == (("v0", "v1"), ("v0", "v2"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": -1}, "k=-1 must be a whole number, at least 0"),
        ({"k": 1.5}, "k=1.5 must be a whole number, at least 0"),
        ({"selection": "bic"}, "selection='bic' is not known; choose one of None, 'cv'"),
        ({"candidates": 0}, "candidates=0 must be a whole number, at least 1"),
        ({"score": "auc"}, "score='auc' is not known"),
        ({"kind": "dirichlet"}, "kind='dirichlet' is no smoothing for a search"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_value(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Greedy(**settings).learn(*random_rows(0))


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("learner", [Greedy, SuperParent])
def test_the_informative_edge_is_found_in_95_of_100_samples(learner: type[Greedy], score: str, k: int) -> None:
    results = [learner(score, k).learn(*slow.informative(seed)) for seed in range(100)]
    assert sum(bool({("v1", "v3"), ("v3", "v1")} & edges(result)) for result in results) >= 95
