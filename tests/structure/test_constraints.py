"""What the user knows: contradictions are named, and every learner obeys."""

from __future__ import annotations

import sys
from itertools import combinations, product

import numpy as np
import pytest
from sklearn.base import clone

from marginbayes.data import Rows, Schema, Variable
from marginbayes.graph import Dag
from marginbayes.scores.rowwise import row_score
from marginbayes.structure import KDB, ChowLiuTAN, Constraints, Greedy, OrderBased, StructureLearner, SuperParent
from marginbayes.structure.engine import Engine
from marginbayes.structure.orders import ORDERS, feature_order
from tests.oracles import structure as slow
from tests.oracles.structure import Oracle, Structure, dag_of, is_sound, random_rows, violates

NAMES = ("v0", "v1", "v2", "v3", "v4", "v5")
SEARCHES = [
    Greedy("cl", 1),
    Greedy("cr", 2),
    SuperParent("cl", 1),
    SuperParent("cr", 2),
    SuperParent("cl", 3),
    *(OrderBased(order, "cl", k, random_state=0) for order in ORDERS for k in (1, 2)),
    *(OrderBased(order, "cl", k, literal=True, random_state=0) for order in ("mi", "random") for k in (1, 2)),
]


def obeys(dag: Dag, constraints: Constraints) -> bool:
    """Read off the graph, rule by rule."""
    edges, place = set(dag.edges), {n: t for t, tier in enumerate(constraints.tiers) for n in tier}
    ordered = all(place[a] <= place[b] for a, b in edges if a in place and b in place)
    kept = all((dag.names[0], n) in edges for n in constraints.keep)
    return ordered and kept and set(constraints.required) <= edges and not set(constraints.forbidden) & edges


def random_constraints(rng: np.random.Generator, k: int, drop: bool) -> Constraints:
    """Constraints without contradiction: what they ask for is read off a random structure."""
    order = [int(i) for i in rng.permutation(np.arange(1, 6))]
    dropped = order.pop() if drop else None
    required = []
    for place, child in enumerate(order):
        parents = rng.choice(order[:place], min(place, int(rng.integers(0, k + 1))), replace=False)
        required += [(f"v{p}", f"v{child}") for p in parents if rng.random() < 0.5]
    free = [(f"v{a}", f"v{b}") for a, b in product(range(1, 6), repeat=2) if a != b]
    forbidden = [e for e in free if e not in required and rng.random() < 0.3]
    cut = int(rng.integers(1, len(order)))
    tiers = [[f"v{i}" for i in order[:cut]], [f"v{i}" for i in order[cut:]]] if rng.random() < 0.6 else []
    gone = [] if dropped is None else [("v0", f"v{dropped}")]
    return Constraints(required, forbidden + gone, tiers, [f"v{order[0]}"])


def slow_rules(constraints: Constraints) -> tuple[slow.Legal, Structure]:
    """Whether a structure obeys, and the structure to start from."""
    gone = {b for a, b in constraints.forbidden if a == "v0"}
    start: Structure = {
        i: None if f"v{i}" in gone else tuple(int(a[1:]) for a, b in constraints.required if b == f"v{i}" and a != "v0")
        for i in range(1, 6)
    }
    return lambda structure: obeys(dag_of(NAMES, structure), constraints), start


# -- contradictions


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(required=[("v1", "v2"), ("v2", "v3"), ("v3", "v1")]), r"cycle: v\d -> v\d -> v\d -> v\d"),
        (Constraints(required=[("v1", "v2"), ("v2", "v1")]), r"cycle: (v1 -> v2 -> v1|v2 -> v1 -> v2)"),
        (Constraints(required=[("v1", "v1")]), "'v1' -> 'v1' leads from a variable to itself"),
        (Constraints(required=[("v1", "v0")]), "'v1' -> 'v0' is required, but 'v0' is the class"),
        (Constraints(required=[("v1", "v2")], forbidden=[("v1", "v2")]), "'v1' -> 'v2' is both required and forbidden"),
        (Constraints(required=[("v0", "v2")], forbidden=[("v0", "v2")]), "'v0' -> 'v2' is both required and forbidden"),
        (
            Constraints(required=[("v3", "v1")], tiers=[["v1"], ["v2"], ["v3"]]),
            "'v3' -> 'v1' is required, but the tiers",
        ),
        (
            Constraints(required=[("v1", "v4"), ("v2", "v4"), ("v3", "v4")]),
            "'v4' has 3 required feature parents, but k=2",
        ),
        (Constraints(forbidden=[("v0", "v3")], keep=["v3"]), "'v3' must be kept, yet the edge from the class to it"),
        (
            Constraints(required=[("v1", "v2")], forbidden=[("v0", "v1")]),
            "'v1' must be kept, yet the edge from the class",
        ),
        (
            Constraints(required=[("v1", "v2")], forbidden=[("v0", "v2")]),
            "'v2' must be kept, yet the edge from the class",
        ),
        (Constraints(tiers=[["v1", "v2"], ["v2"]]), "'v2' stands in two tiers"),
        (Constraints(tiers=[["v0"], ["v1"]]), "tiers order the features; 'v0' is the class"),
        (Constraints(required=[("v1", "x")]), "name 'x', which is not a variable"),
        (Constraints(forbidden=[("x", "v1")]), "name 'x', which is not a variable"),
        (Constraints(tiers=[["v1"], ["x"]]), "name 'x', which is not a variable"),
        (Constraints(keep=["x"]), "name 'x', which is not a variable"),
    ],
)
def test_a_contradiction_is_refused_with_the_place_it_lies_in(constraints: Constraints, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        constraints.compile(NAMES, 2)
    for learner in (Greedy, SuperParent, OrderBased):
        with pytest.raises(ValueError, match=message):
            learner(k=2, constraints=constraints).learn(*random_rows(0))


def test_required_edges_that_no_k_tree_holds_are_refused_where_one_is_asked_for() -> None:
    # v1 ... v4 have a moral edge between any two of them.
    wide = [("v1", "v2"), ("v1", "v3"), ("v2", "v3"), ("v1", "v4"), ("v2", "v5"), ("v3", "v5"), ("v4", "v5")]
    edges = [e for e in wide if e != ("v2", "v5")] + [("v2", "v4")]
    for learner in (Greedy, SuperParent, OrderBased):
        assert learner(k=2, constraints=Constraints(required=edges)).learn(*random_rows(0))
        with pytest.raises(ValueError, match="treewidth"):
            learner(k=2, treewidth=True, constraints=Constraints(required=edges)).learn(*random_rows(0))


def test_a_name_in_place_of_a_list_of_names_is_refused() -> None:
    with pytest.raises(TypeError, match="tiers"):
        Constraints(tiers=["ab", "c"])
    with pytest.raises(TypeError, match="keep"):
        Constraints(keep="ab")
    with pytest.raises(TypeError, match="required"):
        Constraints(required=["ab"])


# -- what they mean


@pytest.mark.parametrize("seed", range(10))
def test_the_rules_allow_exactly_the_edges_that_obey(seed: int) -> None:
    constraints = random_constraints(np.random.default_rng(seed), 2, bool(seed % 2))
    rules = constraints.compile(NAMES, 2)
    for a, b in product(range(1, 6), repeat=2):
        place = {n: t for t, tier in enumerate(constraints.tiers) for n in tier}
        backwards = place.get(NAMES[a], 0) > place.get(NAMES[b], 9)
        forbidden = a == b or backwards or (NAMES[a], NAMES[b]) in constraints.forbidden
        assert rules.allowed[a, b] == (not forbidden)
    assert {(NAMES[p], NAMES[i]) for i, own in enumerate(rules.required) for p in own} == set(constraints.required)
    assert rules.dropped == {int(b[1:]) for a, b in constraints.forbidden if a == "v0"}


@pytest.mark.parametrize("seed", range(6))
def test_a_structure_violates_the_rules_exactly_when_its_graph_disobeys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    constraints = random_constraints(rng, 2, bool(seed % 2))
    rules, (legal, start) = constraints.compile(NAMES, 2), slow_rules(constraints)
    assert not violates(rules, [(), *(start[i] for i in range(1, 6))])
    answers = set()
    for _ in range(300):
        structure = dict(start)
        for _ in range(int(rng.integers(1, 4))):
            child, other = (int(i) for i in rng.choice(np.arange(1, 6), 2, replace=False))
            own = structure[child] or ()
            structure[child] = (rng.choice([0, 1, 2]) and (*(p for p in own if p != other), other)) or None
        # A dropped feature cannot be a parent, and only graphs can be read.
        if is_sound(structure, 2):
            found = violates(rules, [(), *(structure[i] for i in range(1, 6))])
            assert found == (not legal(structure))
            answers.add(found)
    assert answers == {False, True} or seed


def test_fewer_candidates_never_take_away_what_is_required() -> None:
    rules = Constraints(required=[("v1", "v2")], forbidden=[("v3", "v4")]).compile(NAMES, 2)
    assert np.argwhere(rules.restricted(np.zeros((6, 6), bool)).allowed).tolist() == [[1, 2]]
    np.testing.assert_array_equal(rules.restricted(np.ones((6, 6), bool)).allowed, rules.allowed)
    schema, rows = random_rows(0)
    for a, b in combinations(NAMES[1:], 2):
        learner = Greedy("cl", 1, candidates=1, constraints=Constraints(required=[(a, b)]))
        assert (a, b) in learner.learn(schema, rows).dag.edges


def test_constraints_are_values() -> None:
    given = Constraints(required=[["a", "b"]], tiers=[["a"], ["b"]], keep=["a"])
    assert given == Constraints(required=(("a", "b"),), tiers=(("a",), ("b",)), keep=("a",))
    assert hash(given) == hash(Constraints(required=(("a", "b"),), tiers=(("a",), ("b",)), keep=("a",)))
    assert clone(Greedy(constraints=given)).constraints == given


# -- learners


@pytest.mark.parametrize("learner", SEARCHES, ids=lambda x: str(x).replace("\n", ""))
def test_a_search_obeys(learner: Greedy) -> None:
    for seed in range(12):
        schema, rows = random_rows(seed, n=50, missing=0.05)
        constraints = random_constraints(np.random.default_rng(seed), learner.k, seed % 3 == 0)
        result = with_settings(learner, constraints=constraints).learn(schema, rows)
        assert obeys(result.dag, constraints)
        assert all(len(set(p) - {0}) <= learner.k for p in result.dag.parents)
        few = with_settings(learner, constraints=constraints, candidates=1).learn(schema, rows)
        assert obeys(few.dag, constraints)


def with_settings(learner: StructureLearner, **settings: object) -> StructureLearner:
    return clone(learner).set_params(**settings)


def test_the_tree_of_mutual_information_obeys() -> None:
    for seed in range(20):
        constraints = random_constraints(np.random.default_rng(seed), 1, seed % 3 == 0)
        assert obeys(ChowLiuTAN(constraints=constraints).learn(*random_rows(seed)).dag, constraints)


@pytest.mark.parametrize("score", ["cr", "cl"])
@pytest.mark.parametrize("k", [1, 2])
def test_greedy_and_superparent_are_those_of_the_slow_ones_under_constraints(score: str, k: int) -> None:
    for seed in range(6):
        schema, rows = random_rows(seed)
        constraints = random_constraints(np.random.default_rng(seed), k, seed % 2 == 0)
        legal, start = slow_rules(constraints)
        for learner, way in (Greedy, slow.greedy), (SuperParent, slow.superparent):
            result = learner(score, k, constraints=constraints).learn(schema, rows)
            structure, value = way(Oracle(rows, score), k, legal, start)[-1]
            assert set(result.dag.edges) == set(dag_of(NAMES, structure).edges)
            assert result.score == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("score", ["cr", "cl"])
@pytest.mark.parametrize("k", [1, 2])
def test_order_based_is_that_of_the_slow_one_with_required_parents_moved_forward(score: str, k: int) -> None:
    for seed in range(6):
        schema, rows = random_rows(seed)
        constraints = random_constraints(np.random.default_rng(seed), k, drop=False)
        legal, start = slow_rules(constraints)
        oracle = Oracle(rows, score)
        order: list[int] = []
        for i in slow.order_by(oracle, slow.rules(oracle)["mi"]):
            place(i, start, order)
        structure, value = slow.along(oracle, order, k, legal, start)[-1]
        result = OrderBased("mi", score, k, constraints=constraints).learn(schema, rows)
        assert set(result.dag.edges) == set(dag_of(NAMES, structure).edges)
        assert result.score == pytest.approx(value, abs=1e-10)


def place(i: int, start: Structure, order: list[int]) -> None:
    """Put a feature into an order behind its required parents."""
    if i not in order:
        for p in start[i] or ():
            place(p, start, order)
        order.append(i)


@pytest.mark.parametrize("literal", [False, True])
def test_the_literal_pair_is_the_best_of_those_that_are_allowed(literal: bool) -> None:
    for seed in range(8):
        schema, rows = random_rows(seed)
        forbidden = random_constraints(np.random.default_rng(seed), 1, drop=False).forbidden
        constraints = Constraints(forbidden=forbidden)
        legal, start = slow_rules(constraints)
        oracle = Oracle(rows, "cl")
        rule = slow.rules(oracle)["mi"]
        if literal:
            structure, value = slow.algorithm_1(oracle, rule, 1, legal, start)[-1]
        else:
            structure, value = slow.along(oracle, slow.order_by(oracle, rule), 1, legal, start)[-1]
        result = OrderBased("mi", "cl", literal=literal, constraints=constraints).learn(schema, rows)
        assert set(result.dag.edges) == set(dag_of(NAMES, structure).edges)
        assert result.score == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize(
    "learner", SEARCHES[:5] + SEARCHES[5:9] + SEARCHES[-4:-2], ids=lambda x: str(x).replace("\n", "")
)
@pytest.mark.parametrize("candidates", [None, 2])
def test_dropping_a_feature_is_learning_without_its_column(learner: Greedy, candidates: int | None) -> None:
    for seed in range(5):
        schema, rows = random_rows(seed, missing=0.05)
        gone = 1 + seed
        dropped = with_settings(learner, constraints=Constraints(forbidden=[("v0", f"v{gone}")]), candidates=candidates)
        result = dropped.learn(schema, rows)
        kept = [i for i in range(6) if i != gone]
        cards = tuple(rows.cardinalities[i] for i in kept)
        without = with_settings(learner, candidates=candidates).learn(
            Schema(tuple(schema.variables[i] for i in kept)), Rows(rows.codes[kept], cards)
        )
        assert set(result.dag.edges) == set(without.dag.edges)
        assert result.score == pytest.approx(without.score, abs=1e-10)


def test_the_random_order_is_kept_where_no_edge_is_required() -> None:
    schema, rows = random_rows(3)
    engine = Engine(schema, rows, row_score("cl"), 1.0, "laplace", 1e7)
    place_of = {i: t for t, i in enumerate(feature_order(engine, "random", 0.0, 5))}
    dag = OrderBased("random", "cl", 2, random_state=5, constraints=Constraints(keep=["v1"])).learn(schema, rows).dag
    assert all(place_of[p] < place_of[i] for i, own in enumerate(dag.parents) for p in own if p)


def test_required_parents_come_first_and_all_else_stays_in_order() -> None:
    names = ("y", "a", "b", "c", "d", "e")
    rules = Constraints(required=[("d", "b"), ("c", "b"), ("e", "c")]).compile(names, 2)
    assert rules.parents_first([1, 2, 3, 4, 5]) == [1, 5, 3, 4, 2]
    assert rules.parents_first([4, 1, 2, 3, 5]) == [4, 1, 5, 3, 2]
    assert rules.parents_first([5, 4, 3, 2, 1]) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("learner", [KDB(1), OrderBased("mi", "cr", 1)])
def test_a_chain_of_required_edges_may_be_longer_than_the_stack(learner: StructureLearner) -> None:
    d = sys.getrecursionlimit() + 100
    codes = np.random.default_rng(0).integers(0, 2, (d + 1, 12)).astype(np.uint8)
    codes[d] = codes[0]  # the last feature, below all others, tells most
    names = ("y", *(f"x{i}" for i in range(d)))
    chain = [(f"x{i}", f"x{i + 1}") for i in range(d - 1)]
    schema = Schema(tuple(Variable(name, (0, 1)) for name in names))
    given = clone(learner).set_params(constraints=Constraints(required=chain))
    found = given.learn(schema, Rows(codes, schema.cardinalities))
    assert {edge for edge in found.dag.edges if edge[0] != "y"} == set(chain)
