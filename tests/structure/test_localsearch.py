"""Local search against enumeration: every change by its definition, every score from scratch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest

from marginbayes.data import Rows, Schema
from marginbayes.scores.rowwise import row_score
from marginbayes.structure import Constraints, Greedy, Step, StructureResult
from marginbayes.structure.engine import Engine
from marginbayes.structure.localsearch import LocalSearch
from marginbayes.structure.search import Search
from tests.oracles.structure import Oracle, Structure, as_rows, better, dag_of, is_sound, naive, random_rows, violates

SCORES = ("cr", "cl", "sm", "sbm")
METHODS = ("hc", "ils", "sa")
QUICK: dict[str, Any] = {"hc": {}, "ils": {"max_iter": 5}, "sa": {"max_iter": 150}}
KINDS = ("remove", "drop", "restore", "add", "replace", "reverse")

Legal = Callable[[Structure], bool]


def anything(_: Structure) -> bool:
    return True


# -- all changes, by definition


def changed(structure: Structure, kind: str, child: int) -> Iterator[Structure]:
    """All structures that one change of this kind around this feature makes, whether they are sound or not."""
    own = structure[child]
    others = [i for i in structure if i != child]
    if kind == "restore" and own is None:
        yield {**structure, child: ()}
        yield from ({**structure, child: (j,)} for j in others)
    if own is None:
        return
    if kind == "remove":
        yield from ({**structure, child: without(own, p)} for p in sorted(own))
    if kind == "add":
        yield from ({**structure, child: (*own, j)} for j in others if j not in own)
    if kind == "replace":
        yield from ({**structure, child: (*without(own, p), j)} for p in sorted(own) for j in others if j not in own)
    if kind == "reverse":
        for p in sorted(own):
            yield {**structure, child: without(own, p), p: (*(structure[p] or ()), child)}
    if kind == "drop":
        yield {i: None if i == child or p is None else without(p, child) for i, p in structure.items()}


def without(parents: tuple[int, ...], gone: int) -> tuple[int, ...]:
    return tuple(p for p in parents if p != gone)


def has_new_parent(old: Structure, new: Structure, child: int) -> bool:
    return bool(set(new[child] or ()) - set(old[child] or ()))


def neighbours(structure: Structure, k: int, legal: Legal) -> list[Structure]:
    """In the order of the documented ties: no new parent, smaller child, kind, smaller parent."""
    found = [(child, new) for child in structure for kind in KINDS for new in changed(structure, kind, child)]
    found = [(child, new) for child, new in found if is_sound(new, k) and legal(new)]
    found.sort(key=lambda pair: has_new_parent(structure, pair[1], pair[0]))
    return [new for _, new in found]


def slow_climb(oracle: Oracle, k: int, legal: Legal, start: Structure) -> list[tuple[Structure, float]]:
    way = [(start, oracle.score(start))]
    while True:
        best = way[-1]
        for new in neighbours(way[-1][0], k, legal):
            if better(oracle.score(new), best[1]):
                best = new, oracle.score(new)
        if best is way[-1]:
            return way
        way.append(best)


def all_structures(oracle: Oracle, k: int) -> list[Structure]:
    """Every sound structure of few features."""

    def sets(i: int) -> list[tuple[int, ...] | None]:
        others = [j for j in oracle.features if j != i]
        return [None, (), *((a,) for a in others), *((a, b) for a in others for b in others if a < b and k > 1)]

    each = (dict(zip(oracle.features, chosen, strict=True)) for chosen in product(*map(sets, oracle.features)))
    return [structure for structure in each if is_sound(structure, k)]


def structure_of(result: StructureResult) -> Structure:
    return {i: None if 0 not in p else tuple(q for q in p if q) for i, p in enumerate(result.dag.parents) if i}


def normal(structure: Structure) -> dict[int, frozenset[int] | None]:
    return {i: None if p is None else frozenset(p) for i, p in structure.items()}


def searched(learner: LocalSearch, schema: Schema, rows: Rows) -> Search:
    """The whole way of a search, with every structure on it."""
    engine = Engine(
        schema, rows, row_score(learner.score, learner.gamma), learner.smoothing, learner.kind, learner.max_table
    )
    search = Search(engine, learner._rules(schema, rows), learner.treewidth)
    learner.run(search, rows)
    return search


# -- hill climbing


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_hill_climbing_takes_the_way_of_the_slow_one(score: str, k: int, missing: float) -> None:
    for seed in range(4):
        schema, rows = random_rows(seed, features=4, missing=missing)
        oracle = Oracle(rows, score)
        way = slow_climb(oracle, k, anything, naive(oracle))
        result = LocalSearch(score, "hc", k).learn(schema, rows)
        assert [s.score for s in result.path] == pytest.approx([s for _, s in way[1:]], abs=1e-10)
        assert normal(structure_of(result)) == normal(way[-1][0])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("score", SCORES)
def test_no_single_change_improves_the_result(method: str, score: str) -> None:
    for seed, k in ((0, 1), (1, 2), (2, 3)):
        schema, rows = random_rows(seed, features=4)
        result = LocalSearch(score, method, k, random_state=seed, **QUICK[method]).learn(schema, rows)
        oracle, structure = Oracle(rows, score), structure_of(result)
        assert result.score == pytest.approx(oracle.score(structure), abs=1e-10)
        assert not any(better(oracle.score(new), oracle.score(structure)) for new in neighbours(structure, k, anything))


def test_climbing_by_adding_alone_is_the_greedy_learner() -> None:
    for seed in range(4):
        schema, rows = random_rows(seed)
        climbed = LocalSearch("cl", "hc", 2, moves=("add",)).learn(schema, rows)
        greedy = Greedy("cl", 2).learn(schema, rows)
        assert climbed.dag == greedy.dag
        assert climbed.score == greedy.score


@pytest.mark.parametrize("score", SCORES)
def test_the_score_of_hill_climbing_never_falls_and_is_at_least_that_of_naive_bayes(score: str) -> None:
    schema, rows = random_rows(3, n=80, features=6, missing=0.1)
    result = LocalSearch(score, "hc", 2).learn(schema, rows)
    oracle = Oracle(rows, score)
    scores = [oracle.score(naive(oracle)), *(step.score for step in result.path)]
    assert all(b > a for a, b in pairwise(scores))
    assert result.score == scores[-1]


# -- the others


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("k", [1, 2])
def test_iterated_search_finds_the_best_of_all_structures_of_four_features(score: str, k: int) -> None:
    for seed in range(2):
        schema, rows = random_rows(seed, features=4)
        oracle = Oracle(rows, score)
        best = max(map(oracle.score, all_structures(oracle, k)))
        for method in METHODS:
            found = LocalSearch(score, method, k, random_state=0, **QUICK[method]).learn(schema, rows)
            assert found.score is not None
            assert found.score <= best + 1e-9
        assert LocalSearch(score, "ils", k, random_state=0).learn(schema, rows).score == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("kind", "smoothing"), [("laplace", 1.0), ("ess", 2.0), ("floor", 1e-5)])
def test_every_score_on_the_way_is_the_score_from_scratch(method: str, score: str, kind: str, smoothing: float) -> None:
    schema, rows = random_rows(5, features=5, missing=0.1)
    rows = rows.reweighted(np.random.default_rng(0).choice([0.5, 1.0, 3.0], len(rows)))
    options = {**QUICK[method], "random_state": 1, "smoothing": smoothing, "kind": kind}
    search = searched(LocalSearch(score, method, 2, **options), schema, rows)
    oracle = Oracle(rows, score, None, smoothing, kind)
    for parents, step in zip(search.structures[1:], search.path, strict=True):
        assert step.score == pytest.approx(
            oracle.score(dict(zip(oracle.features, parents[1:], strict=True))), abs=1e-10
        )


@pytest.mark.parametrize("method", METHODS)
def test_the_best_structure_of_the_way_is_returned(method: str) -> None:
    schema, rows = random_rows(1, features=6)
    learner = LocalSearch("sm", method, 1, random_state=3, **QUICK[method])
    search, result = searched(learner, schema, rows), learner.learn(schema, rows)
    scores = [search.start_score, *(step.score for step in search.path)]
    assert result.score == max(scores)
    at = scores.index(max(scores))
    assert result.dag == dag_of(schema.names, dict(enumerate(search.structures[at][1:], start=1)))
    assert [s.score for s in result.path] == scores[1:]


def test_each_change_is_one_of_the_moves_that_were_asked_for() -> None:
    schema, rows = random_rows(2, features=5)
    for moves in (("add", "remove"), ("drop", "restore"), ("replace", "add"), KINDS):
        path = LocalSearch("cl", "ils", 2, moves=moves, random_state=0, max_iter=5).learn(schema, rows).path
        assert {step.change for step in path} <= {*moves, "return"}
    assert LocalSearch("cl", "ils", moves=()).learn(schema, rows).path == tuple(
        LocalSearch("cl", "sa", moves=()).learn(schema, rows).path
    )


# -- rules


@cache
def random_constraints(seed: int) -> Constraints:
    """Constraints over v1 .. v5 that do not contradict each other."""
    rng = np.random.default_rng(seed)
    order = [f"v{i}" for i in rng.permutation(5) + 1]
    required = [(order[0], order[2])] if rng.random() < 0.7 else []
    forbidden = [(order[3], order[1]), ("v0", order[4])] if rng.random() < 0.5 else [(order[1], order[0])]
    return Constraints(
        required=required, forbidden=forbidden, tiers=[order[:2], order[2:4]], keep=order[1:2] if seed % 2 else ()
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_no_structure_on_the_way_breaks_a_rule(method: str, seed: int) -> None:
    schema, rows = random_rows(seed)
    constraints = random_constraints(seed)
    for k in (1, 2):
        learner = LocalSearch("cl", method, k, constraints=constraints, random_state=seed, **QUICK[method])
        rules = constraints.compile(schema.names, k)
        for parents in searched(learner, schema, rows).structures:
            structure = dict(enumerate(parents[1:], start=1))
            assert not violates(rules, parents)
            assert all(structure[i] is None for i in rules.dropped)
            assert is_sound(structure, k)


@pytest.mark.parametrize("seed", range(4))
def test_hill_climbing_under_rules_takes_the_way_of_the_slow_one(seed: int) -> None:
    schema, rows = random_rows(seed)
    constraints = random_constraints(seed)
    rules = constraints.compile(schema.names, 2)

    def legal(structure: Structure) -> bool:
        return not violates(rules, [(), *structure.values()])

    start: Structure = {i: None if i in rules.dropped else rules.required[i] for i in range(1, 6)}
    way = slow_climb(Oracle(rows, "sm"), 2, legal, start)
    result = LocalSearch("sm", "hc", 2, constraints=constraints).learn(schema, rows)
    assert [s.score for s in result.path] == pytest.approx([s for _, s in way[1:]], abs=1e-10)
    assert normal(structure_of(result)) == normal(way[-1][0])


@pytest.mark.parametrize("method", METHODS)
def test_the_moralised_graph_keeps_its_treewidth(method: str) -> None:
    wide = 0
    for seed in range(3):
        schema, rows = random_rows(seed, n=60)
        for asked in (True, False):
            learner = LocalSearch("cl", method, 2, treewidth=asked, random_state=seed, **QUICK[method])
            structures = [dict(enumerate(p[1:], start=1)) for p in searched(learner, schema, rows).structures]
            widths = [treewidth(s) for s in structures[:: 1 if asked else 5]]
            wide += not asked and max(widths) > 2
            assert not asked or max(widths) <= 2
    assert wide or method == "hc"  # or the option would be idle here


def test_candidate_parents_are_restricted() -> None:
    schema, rows = random_rows(0, features=6)
    free = {e for e in LocalSearch("cl", "ils", random_state=0).learn(schema, rows).dag.edges if e[0] != "v0"}
    learner = LocalSearch("cl", "ils", candidates=1, random_state=0)
    allowed = learner._rules(schema, rows).allowed
    bound = {e for e in learner.learn(schema, rows).dag.edges if e[0] != "v0"}
    assert free != bound
    assert all(allowed[schema.names.index(a), schema.names.index(b)] for a, b in bound)


def treewidth(structure: Structure) -> int:
    """The smallest, over all orders, of the greatest number of neighbours that a feature has when it is eliminated."""
    edges = {frozenset(e) for i, p in structure.items() if p for e in combinations((i, *p), 2)}

    def width(order: tuple[int, ...]) -> int:
        left, widest = set(edges), 0
        for v in order:
            others = sorted({u for e in left if v in e for u in e} - {v})
            widest = max(widest, len(others))
            left = {e for e in left if v not in e} | {frozenset(e) for e in combinations(others, 2)}
        return widest

    return min(map(width, permutations(structure)))


# -- how it ends


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("steps", [1, 3])
def test_an_interrupted_search_keeps_the_best_so_far(method: str, steps: int) -> None:
    schema, rows = random_rows(1, features=6)
    seen: list[Step] = []

    def stop(step: Step) -> None:
        seen.append(step)
        if len(seen) == steps:
            raise KeyboardInterrupt

    result = LocalSearch("cl", method, callback=stop, random_state=0).learn(schema, rows)
    assert result.status == "interrupted"
    assert list(result.path) == seen
    assert result.score == max(step.score for step in seen)
    assert result.score == pytest.approx(Oracle(rows, "cl").score(structure_of(result)), abs=1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_without_rounds_or_time_the_start_is_returned(method: str) -> None:
    schema, rows = random_rows(1)
    for limit, status in (({"time_limit": 0.0}, "time limit"), ({"max_iter": 0, "moves": ()}, "finished")):
        result = LocalSearch("cr", method, **limit).learn(schema, rows)
        assert result.dag == dag_of(schema.names, naive(Oracle(rows)))
        assert result.status == status
        assert result.score == result.start == pytest.approx(Oracle(rows).score(naive(Oracle(rows))))


def test_what_is_compiled_at_its_first_use_does_not_count_as_time(monkeypatch: pytest.MonkeyPatch) -> None:
    real, ahead = time.perf_counter, []
    monkeypatch.setattr(time, "perf_counter", lambda: real() + sum(ahead))
    monkeypatch.setattr("marginbayes.structure.localsearch._compile_kernels", lambda: ahead.append(1e6))
    schema, rows = random_rows(1)
    LocalSearch("cl", "hc").learn(schema, rows)
    assert not ahead  # without a limit there is no need
    assert LocalSearch("cl", "hc", time_limit=1000.0).learn(schema, rows).status == "finished"
    assert ahead == [1e6]


def test_hill_climbing_makes_at_most_the_given_number_of_changes() -> None:
    schema, rows = random_rows(1, features=6)
    whole = LocalSearch("cl", "hc").learn(schema, rows).path
    assert len(whole) > 2
    some = LocalSearch("cl", "hc", max_iter=2).learn(schema, rows).path
    assert [(s.change, s.parent, s.child, s.score) for s in some] == [
        (s.change, s.parent, s.child, s.score) for s in whole[:2]
    ]


def told(result: StructureResult) -> list[tuple[str, str | None, str | None, float]]:
    return [(s.change, s.parent, s.child, s.score) for s in result.path]


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_way_on_any_number_of_threads(method: str) -> None:
    schema, rows = random_rows(4, n=100, features=6)
    one, two, threads = (
        LocalSearch("sm", method, 2, random_state=7, n_jobs=n, **QUICK[method]).learn(schema, rows) for n in (1, 1, 2)
    )
    assert told(one) == told(two) == told(threads)
    assert one.dag == two.dag == threads.dag


def test_another_seed_gives_another_way() -> None:
    schema, rows = random_rows(4, features=6)
    for method in ("ils", "sa"):
        ways = [LocalSearch("sm", method, random_state=s, **QUICK[method]).learn(schema, rows) for s in (0, 1)]
        assert told(ways[0]) != told(ways[1])


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repetitions(method: str) -> None:
    schema, rows = random_rows(2, missing=0.1)
    times = np.random.default_rng(0).integers(0, 4, len(rows))
    learner = LocalSearch("cr", method, 2, random_state=0, **QUICK[method])
    repeated = learner.learn(schema, rows.take(np.repeat(np.arange(len(rows)), times)))
    weighted = learner.learn(schema, rows.take(times > 0).reweighted(times[times > 0].astype(float)))
    assert repeated.dag == weighted.dag
    assert repeated.score == pytest.approx(weighted.score)


def test_held_out_rows_choose_the_number_of_changes_of_hill_climbing() -> None:
    schema, rows = random_rows(1, n=60, features=7)
    whole = LocalSearch("cr", "hc", 2).learn(schema, rows)
    chosen = LocalSearch("cr", "hc", 2, selection="cv", random_state=0).learn(schema, rows)
    assert len(chosen.path) < len(whole.path)
    assert told(chosen) == told(whole)[: len(chosen.path)]


@pytest.mark.parametrize("method", METHODS)
def test_data_with_nothing_to_search_are_no_problem(method: str) -> None:
    one = as_rows(np.array([[0, 1, 0, 1], [0, 1, 1, 1]]), (2, 2))
    assert LocalSearch("cr", method, random_state=0).learn(*one).score == 0.75
    gone = Constraints(forbidden=[("v0", "v1")])
    assert LocalSearch("cr", method, random_state=0, constraints=gone).learn(*one).dag.edges == ()
    single = as_rows(np.array([[0, 0, 0], [0, 1, 1], [0, 0, 1]]), (1, 2, 2))
    assert LocalSearch("cl", method, random_state=0).learn(*single).dag.edges == (("v0", "v1"), ("v0", "v2"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "tabu"}, "method='tabu' is not known; choose one of 'hc', 'ils', 'sa'"),
        ({"moves": ("add", "swap")}, r"moves=\('add', 'swap'\) should be some of 'remove'"),
        ({"moves": "add"}, "moves='add' should be some of"),
        ({"selection": "cv"}, "method='ils' also goes down; use method='hc'"),
        ({"max_iter": -1}, "max_iter=-1 must be a whole number, at least 0, or None"),
        ({"n_perturb": 0}, "n_perturb=0 must be a whole number, at least 1"),
        ({"time_limit": -1.0}, r"time_limit=-1.0 must be a number that is not negative, or None"),
        ({"temperature": 0.0}, r"temperature=0.0 must be a positive number"),
        ({"cooling": 1.5}, r"cooling=1.5 must be above 0 and at most 1"),
        ({"k": -1}, "k=-1 must be a whole number"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_by_value(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LocalSearch(**options).learn(*random_rows(0))
