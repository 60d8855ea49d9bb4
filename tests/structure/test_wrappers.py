"""Selective naive Bayes, FSSJ and BSEJ against literal versions that score every network anew."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from marginbayes.data import Rows, Schema
from marginbayes.graph import Dag
from marginbayes.parameters import MaximumLikelihood
from marginbayes.structure import Constraints, Step, StructureResult
from marginbayes.structure.search import SearchLearner
from marginbayes.structure.wrappers import BackwardJoin, ForwardJoin, SelectiveNaiveBayes
from tests.oracles.structure import as_rows, random_rows, violates

LEARNERS: list[type[SearchLearner]] = [SelectiveNaiveBayes, ForwardJoin, BackwardJoin]
SCORES = ("cr", "cl", "sm")
GAMMA = np.log(9.0)

Groups = tuple[tuple[int, ...], ...]


# -- literal versions


class Slow:
    """Scores groups of joined features by the network they stand for, with smoothed maximum-likelihood tables."""

    def __init__(self, schema: Schema, rows: Rows, score: str) -> None:
        self.schema, self.rows, self.score = schema, rows, score
        self.features = range(1, len(schema.names))
        self.value = cache(self._value)

    def dag(self, groups: Groups) -> Dag:
        parents: list[tuple[int, ...]] = [()] * len(self.schema.names)
        for group in groups:
            for place, member in enumerate(group):
                parents[member] = (0, *group[:place])
        return Dag(self.schema.names, tuple(parents))

    def _value(self, groups: Groups) -> float:
        joint = MaximumLikelihood().learn(self.schema, self.dag(groups), self.rows).network.log_joint(self.rows)
        label, each = self.rows.codes[0].astype(int), np.arange(len(self.rows))
        weights = np.ones(len(self.rows)) if self.rows.weights is None else self.rows.weights
        own, rival = joint[each, label], joint.copy()
        rival[each, label] = -np.inf
        if self.score == "cr":
            return float(np.average(np.round(joint, 9).argmax(axis=1) == label, weights=weights))
        if self.score == "cl":
            return float(weights @ (own - np.logaddexp.reduce(joint, axis=1)))
        return float(weights @ np.minimum(own - rival.max(axis=1), GAMMA))


def forward(groups: Groups, features: range, k: int) -> Iterator[Groups]:
    """Take a feature alone; or join it to a group, small features first, then small groups."""
    unused = [i for i in features if not any(i in g for g in groups)]
    yield from ((*groups, (i,)) for i in unused)
    for i in unused:
        for host in sorted(groups, key=lambda g: (len(g), g)):
            if len(host) <= k:
                yield (*(g for g in groups if g != host), (*host, i))


def backward(groups: Groups, features: range, k: int) -> Iterator[Groups]:  # noqa: ARG001
    """Drop a group; or join two of them, the larger (then the one with the smaller feature) in front."""
    groups = tuple(sorted(groups, key=min))
    yield from (tuple(g for g in groups if g != gone) for gone in groups)
    joins = []
    for pair in combinations(groups, 2):
        host, guest = sorted(pair, key=lambda g: (-len(g), min(g)))
        if len(host) + len(guest) <= k + 1:
            joins.append((len(guest) == 1, min(guest), len(host), host, guest))
    for *_, host, guest in sorted(joins):
        yield (*(g for g in groups if g not in (host, guest)), (*host, *guest))


def literal(slow: Slow, name: str, k: int) -> list[tuple[Groups, float]]:
    """Every place on the way: the best change is made while it improves the score."""
    start: Groups = tuple((i,) for i in slow.features) if name == "BackwardJoin" else ()
    change = backward if name == "BackwardJoin" else forward
    way = [(start, slow.value(start))]
    while True:
        best = way[-1]
        for new in change(way[-1][0], slow.features, k):
            if slow.value(new) > best[1] + 1e-9 * max(1.0, abs(best[1])):
                best = new, slow.value(new)
        if best is way[-1]:
            return way
        way.append(best)


def learner_of(kind: type[SearchLearner], k: int, **options: Any) -> SearchLearner:
    return kind(**options) if kind is SelectiveNaiveBayes else kind(k=k, **options)


def same(one: Dag, other: Dag) -> bool:
    return [set(p) for p in one.parents] == [set(p) for p in other.parents]


@pytest.mark.parametrize(("kind", "k"), [(SelectiveNaiveBayes, 0), *product((ForwardJoin, BackwardJoin), range(4))])
@pytest.mark.parametrize("score", SCORES)
def test_it_takes_the_way_of_the_literal_version(kind: type[SearchLearner], score: str, k: int) -> None:
    for seed in range(4):
        schema, rows = random_rows(seed, n=60)
        slow = Slow(schema, rows, score)
        way = literal(slow, kind.__name__, k)
        result = learner_of(kind, k, score=score).learn(schema, rows)
        assert [step.score for step in result.path] == pytest.approx([s for _, s in way[1:]], abs=1e-10)
        assert result.score == pytest.approx(way[-1][1], abs=1e-10)
        assert same(result.dag, slow.dag(way[-1][0]))


@pytest.mark.parametrize("kind", LEARNERS)
def test_weights_are_repetitions_and_weighted_scores_are_those_of_the_literal_version(
    kind: type[SearchLearner],
) -> None:
    schema, rows = random_rows(7, n=50)
    times = np.random.default_rng(1).integers(1, 5, len(rows))
    weighted = rows.reweighted(times.astype(float))
    found = learner_of(kind, 1).learn(schema, weighted)
    repeated = learner_of(kind, 1).learn(schema, rows.take(np.repeat(np.arange(len(rows)), times)))
    assert found.dag == repeated.dag
    way = literal(Slow(schema, weighted, "cr"), kind.__name__, 0 if kind is SelectiveNaiveBayes else 1)
    assert found.score == pytest.approx(way[-1][1], abs=1e-10)


# -- what the structures look like


def groups_of(result: StructureResult) -> list[tuple[int, ...]]:
    """Groups by their last members, each checked to be a complete graph with the class on top."""
    parents = {i: p for i, p in enumerate(result.dag.parents) if p}
    ends = [i for i in parents if not any(i in p for p in parents.values())]
    for end in ends:
        for place, member in enumerate(parents[end][1:]):
            assert parents[member] == (0, *parents[end][1 : place + 1])
    return [(*parents[end][1:], end) for end in ends]


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_structure_is_made_of_saturated_groups_of_limited_size(kind: type[SearchLearner], missing: float) -> None:
    sizes = set()
    for seed in range(6):
        schema, rows = random_rows(seed, n=80, features=7, missing=missing)
        groups = groups_of(learner_of(kind, 2, score="cl").learn(schema, rows))
        assert len({i for g in groups for i in g}) == sum(map(len, groups))
        sizes |= set(map(len, groups))
    assert max(sizes) == (1 if kind is SelectiveNaiveBayes else 3)


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_score_rises_with_every_step(kind: type[SearchLearner]) -> None:
    schema, rows = random_rows(5, n=100, features=7)
    path = learner_of(kind, 2, score="cl").learn(schema, rows).path
    assert all(b.score > a.score for a, b in pairwise(path))
    assert {step.change for step in path} <= {"select", "join", "drop"}


def test_forward_selection_without_a_useful_feature_leaves_the_class_alone() -> None:
    schema, rows = as_rows(np.array([[0, 0, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1]]), (2, 2))
    result = SelectiveNaiveBayes().learn(schema, rows)
    assert result.dag.edges == ()
    assert result.score == pytest.approx(4 / 6)
    assert result.path == ()


def test_joining_finds_what_no_single_feature_shows() -> None:
    """The class is the exclusive or of two features; a third one is the class with noise."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 400))
    noisy = np.where(rng.random(400) < 0.8, a ^ b, 1 - (a ^ b))
    schema, rows = as_rows(np.array([a ^ b, a, b, noisy]), (2, 2, 2, 2))
    found = BackwardJoin("cl").learn(schema, rows)
    assert {frozenset(g) for g in groups_of(found)} >= {frozenset({1, 2})}
    assert BackwardJoin("cr").learn(schema, rows).score == 1.0


# -- rules


def random_rules(seed: int) -> Constraints:
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in rng.permutation(6) + 1]
    return Constraints(
        required=[(names[0], names[2])],
        forbidden=[("v0", names[5]), (names[1], names[3]), (names[3], names[1]), (names[3], names[2])],
        tiers=[names[:2], names[2:5]],
        keep=[names[4]],
    )


@pytest.mark.parametrize("kind", [ForwardJoin, BackwardJoin])
@pytest.mark.parametrize("seed", range(8))
def test_no_structure_on_the_way_breaks_a_rule(kind: type[SearchLearner], seed: int) -> None:
    schema, rows = random_rows(seed, n=80, features=6)
    constraints = random_rules(seed)
    for k in (1, 2, 3):
        learner = kind("cl", k, constraints=constraints)
        rules = constraints.compile(schema.names, k)
        search = learner._searched(schema, rows, None)
        assert search.status == "finished"
        for parents in search.structures:
            assert not violates(rules, parents)
            assert all(parents[i] is None for i in rules.dropped)
        groups_of(learner.learn(schema, rows))


def test_features_that_must_be_kept_are_selected_from_the_start() -> None:
    schema, rows = random_rows(0, n=80)
    kept = SelectiveNaiveBayes(constraints=Constraints(keep=["v2", "v4"], forbidden=[("v0", "v1")]))
    dag = kept.learn(schema, rows).dag
    assert set(dag.children_of("v0")) >= {"v2", "v4"}
    assert dag.parents_of("v1") == ()
    all_kept = SelectiveNaiveBayes(constraints=Constraints(keep=schema.names[1:])).learn(schema, rows)
    assert all_kept.dag == Dag.naive(schema.names)


def test_an_edge_that_is_forbidden_one_way_turns_the_group_round() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 400))
    schema, rows = as_rows(np.array([a ^ b, a, b]), (2, 2, 2))
    for forbidden, expected in (([("v1", "v2")], ("v2", "v1")), ([("v2", "v1")], ("v1", "v2"))):
        dag = BackwardJoin("cl", constraints=Constraints(forbidden=forbidden)).learn(schema, rows).dag
        assert expected in dag.edges
    both = Constraints(forbidden=[("v1", "v2"), ("v2", "v1")])
    assert not {("v1", "v2"), ("v2", "v1")} & {*BackwardJoin("cl", constraints=both).learn(schema, rows).dag.edges}


def test_required_edges_are_a_group_from_the_start() -> None:
    schema, rows = random_rows(1, n=80)
    constraints = Constraints(required=[("v4", "v2"), ("v2", "v1")])
    for kind in (ForwardJoin, BackwardJoin):
        search = kind("cl", 2, constraints=constraints)._searched(schema, rows, None)
        assert search.structures[0][1:3] == [(4, 2), (4,)]
        assert search.structures[0][4] == ()
        message = "required edges make one group of 'v1', 'v2', 'v4', but k=1 allows groups of 2"
        with pytest.raises(ValueError, match=message):
            kind("cl", 1, constraints=constraints).learn(schema, rows)
        torn = Constraints(required=[("v4", "v2"), ("v2", "v1")], forbidden=[("v4", "v1")])
        with pytest.raises(ValueError, match="one group of 'v1', 'v2', 'v4', but other rules forbid it"):
            kind("cl", 2, constraints=torn).learn(schema, rows)
    with pytest.raises(ValueError, match="k=0 allows no more"):
        SelectiveNaiveBayes(constraints=constraints).learn(schema, rows)


# -- how it ends


@pytest.mark.parametrize("kind", LEARNERS)
@pytest.mark.parametrize("steps", [1, 2])
def test_an_interrupted_search_keeps_what_it_has(kind: type[SearchLearner], steps: int) -> None:
    schema, rows = random_rows(3, n=100, features=6)
    seen: list[Step] = []

    def stop(step: Step) -> None:
        seen.append(step)
        if len(seen) == steps:
            raise KeyboardInterrupt

    result = learner_of(kind, 1, score="cl", callback=stop).learn(schema, rows)
    whole = learner_of(kind, 1, score="cl").learn(schema, rows)
    assert result.status == "interrupted"
    assert len(result.path) == steps < len(whole.path)
    assert result.score == whole.path[steps - 1].score


@pytest.mark.parametrize("kind", LEARNERS)
def test_held_out_rows_choose_the_number_of_steps(kind: type[SearchLearner]) -> None:
    shorter = 0
    for seed in range(4):
        schema, rows = random_rows(seed, n=60, features=6)
        whole = learner_of(kind, 3, score="cl").learn(schema, rows)
        chosen = learner_of(kind, 3, score="cl", selection="cv", random_state=0).learn(schema, rows)
        scores = [step.score for step in whole.path]
        assert [step.score for step in chosen.path] == scores[: len(chosen.path)]
        shorter += len(chosen.path) < len(whole.path)
    assert shorter


@pytest.mark.parametrize("kind", LEARNERS)
def test_threads_do_not_change_the_result(kind: type[SearchLearner]) -> None:
    schema, rows = random_rows(2, n=100, features=6)
    one, two = (learner_of(kind, 2, score="cl", n_jobs=n).learn(schema, rows) for n in (1, 2))
    assert one.dag == two.dag
    assert [s.score for s in one.path] == [s.score for s in two.path]


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_learner_can_be_cloned(kind: type[SearchLearner]) -> None:
    learner = kind(score="cl", smoothing=0.5, constraints=Constraints(keep=["v1"]))
    assert clone(learner).get_params() == learner.get_params()
    assert ("k" in learner.get_params()) == (kind is not SelectiveNaiveBayes)


def test_a_table_that_is_too_large_is_refused_by_name() -> None:
    schema, rows = random_rows(0, n=80)
    with pytest.raises(ValueError, match=r"more than max_table=.*lower k"):
        BackwardJoin("cl", 3, max_table=20).learn(schema, rows)
