import numpy as np
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics import mutual_info_score

from marginbayes import BayesNetClassifier
from marginbayes.data import Rows, Schema, Variable
from marginbayes.scores.independence import Independence
from marginbayes.structure import Constraints, DependencyAnalysis
from tests.oracles.brute import random_dag


def copy(source, rng, keep):
    return np.where(rng.random(len(source)) < keep, source, rng.integers(0, 2, len(source)))


def learn(columns, names="yabcd", cards=None, weights=None, **options):
    codes = np.array(columns, np.uint8)
    cards = cards or tuple(int(c.max()) + 1 for c in codes)
    schema = Schema(tuple(Variable(n, tuple(range(c))) for n, c in zip(names, cards, strict=False)))
    return DependencyAnalysis(**options).learn(schema, Rows(codes, cards, weights)).dag


def adjacent(dag):
    return {frozenset(edge) for edge in dag.edges}


def test_information_is_that_of_the_slices():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (4, 400)).astype(np.uint8)
    codes[1] = copy(codes[0] % 2, rng, 0.7)
    rows = Rows(codes, (3, 3, 3, 3))
    test = Independence(rows, 0.0, None)
    whole = 0.0
    for z in range(3):
        for w in range(3):
            own = (codes[2] == z) & (codes[3] == w)
            whole += own.mean() * mutual_info_score(codes[0, own], codes[1, own])
    assert test.information(0, 1, [2, 3]) == pytest.approx(whole / np.log(2))
    assert test.information(1, 0) == pytest.approx(mutual_info_score(codes[0], codes[1]) / np.log(2))


def test_the_test_of_a_pair_is_the_g_test():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, 80)
    y = np.where(rng.random(80) < 0.2, x, rng.integers(0, 3, 80))
    table = np.zeros((3, 3))
    np.add.at(table, (x, y), 1)
    wanted = chi2_contingency(table, correction=False, lambda_="log-likelihood").pvalue
    rows = Rows(np.array([x, y], np.uint8), (3, 3))
    assert not Independence(rows, 0.0, wanted * 0.999).dependent(0, 1)
    assert Independence(rows, 0.0, wanted * 1.001).dependent(0, 1)


def test_rows_with_a_missing_cell_are_left_out_and_weights_count():
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 2, (3, 300)).astype(np.uint8)
    holes = codes.copy()
    holes[1, :100] = 2
    kept = Independence(Rows(codes[:, 100:], (2, 2, 2)), 0.0, None)
    assert Independence(Rows(holes, (2, 2, 2)), 0.0, None).information(0, 1, [2]) == kept.information(0, 1, [2])
    weights = rng.integers(1, 4, 300).astype(float)
    repeated = Independence(Rows(np.repeat(codes, weights.astype(int), axis=1), (2, 2, 2)), 0.0, None)
    weighted = Independence(Rows(codes, (2, 2, 2), weights), 0.0, None)
    assert weighted.information(0, 1, [2]) == pytest.approx(repeated.information(0, 1, [2]))


def test_a_chain_is_found_and_leads_away_from_the_class():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 3000)
    a = copy(y, rng, 0.8)
    b = copy(a, rng, 0.8)
    assert learn([y, a, b]).edges == (("y", "a"), ("a", "b"))


def test_a_collider_at_the_class_gives_the_class_parents():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 2, (2, 4000))
    y = copy(a | b, rng, 0.9)
    assert set(learn([y, a, b]).edges) == {("a", "y"), ("b", "y")}


def test_an_edge_that_drafting_passed_over_is_added_by_thickening():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 5000)
    a = copy(y, rng, 0.8)
    b = np.where(rng.random(5000) < 0.6, a, copy(y, rng, 0.7))
    assert adjacent(learn([y, a, b])) == {frozenset("ya"), frozenset("ab"), frozenset("yb")}


def test_independent_variables_stay_alone():
    rng = np.random.default_rng(6)
    dag = learn(rng.integers(0, 2, (5, 3000)))
    assert dag.edges == ()


@pytest.mark.parametrize("seed", range(6))
def test_skeletons_of_strong_trees_are_recovered(seed):
    rng = np.random.default_rng(seed)
    columns, edges = [rng.integers(0, 2, 6000)], set()
    for i in range(1, 6):
        parent = int(rng.integers(i))
        columns.append(copy(columns[parent], rng, 0.8))
        edges.add(frozenset("yabcde"[v] for v in (parent, i)))
    assert adjacent(learn(columns, "yabcde")) == edges


@pytest.mark.parametrize("seed", range(5))
def test_any_data_give_a_graph_without_cycles_that_classifies(seed):
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, 6, 2)
    codes = np.zeros((6, 300), np.uint8)
    for v in dag.order:
        noise = rng.integers(0, 3, 300)
        mixed = codes[list(dag.parents[v])].sum(axis=0) % 3 if dag.parents[v] else noise
        codes[v] = np.where(rng.random(300) < 0.8, mixed, noise)
    X = np.array([[f"l{c}" for c in row] for row in codes[1:].T], object)
    clf = BayesNetClassifier(DependencyAnalysis()).fit(X, codes[0])
    assert np.allclose(clf.predict_proba(X).sum(axis=1), 1)


def test_constraints_are_obeyed():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 2000)
    a = copy(y, rng, 0.8)
    b = copy(a, rng, 0.8)
    c = rng.integers(0, 2, 2000)
    edges = set(learn([y, a, b, c], constraints=Constraints(required=[("b", "a")], keep=["c"])).edges)
    assert {("b", "a"), ("y", "c")} <= edges
    apart = learn([y, a, b, c], constraints=Constraints(forbidden=[("y", "a"), ("a", "y")]))
    assert frozenset("ya") not in adjacent(apart)
    late = learn([y, a, b, c], constraints=Constraints(tiers=[["b"], ["a"]]))
    assert ("a", "b") not in late.edges


def test_a_kept_feature_that_leads_to_the_class_becomes_its_parent():
    rng = np.random.default_rng(0)
    v, u = rng.integers(0, 2, (2, 2000))
    w = np.where(rng.random(2000) < 0.9, v | u, rng.integers(0, 2, 2000))
    y = copy(w, rng, 0.9)
    plain = set(learn([y, v, u, w], "yvuw").edges)
    assert plain == {("v", "w"), ("u", "w"), ("w", "y")}
    assert set(learn([y, v, u, w], "yvuw", constraints=Constraints(keep=["v"])).edges) == plain | {("v", "y")}
    with pytest.raises(ValueError, match="'v' must be kept, yet no edge"):
        learn([y, v, u, w], "yvuw", constraints=Constraints(keep=["v"], forbidden=[("v", "y")]))


def test_the_class_may_have_required_parents_and_a_forbidden_child_may_be_one():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 1000)
    a, b = copy(y, rng, 0.8), copy(y, rng, 0.8)
    assert ("a", "y") in learn([y, a, b], constraints=Constraints(required=[("a", "y")])).edges
    assert ("a", "y") in learn([y, a, b], constraints=Constraints(forbidden=[("y", "a")])).edges
    both = Constraints(required=[("a", "b")], forbidden=[("y", "a")])
    assert {("a", "b"), ("a", "y")} <= set(learn([y, a, b], constraints=both).edges)
    with pytest.raises(ValueError, match="cycle"):
        learn([y, a, b], constraints=Constraints(required=[("a", "y"), ("y", "b"), ("b", "a")]))


def test_rows_of_weight_zero_have_no_say_in_a_test():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 60)
    codes = np.array([y, copy(y, rng, 0.5)], np.uint8)
    more = np.column_stack([codes, np.repeat(np.arange(2, 8), 2).reshape(6, 2).T])
    weights = np.r_[np.ones(60), np.zeros(6)]
    few, many = (Independence(Rows(c, (8, 8), w), 0.0, 0.05) for c, w in ((codes, None), (more, weights)))
    assert many._tested(0, 1, frozenset()) == pytest.approx(few._tested(0, 1, frozenset()))


@pytest.mark.parametrize(("options", "name"), [({"threshold": -1}, "threshold"), ({"alpha": 2.0}, "alpha")])
def test_bad_settings_are_named(options, name):
    with pytest.raises(ValueError, match=name):
        learn(np.zeros((2, 4)), cards=(2, 2), **options)


def naive_columns(rng, n, features):
    """A class of three levels, and copies of it that err independently of one another."""
    y = rng.integers(0, 3, n)
    return [y, *(np.where(rng.random(n) < 0.6, y, rng.integers(0, 3, n)) for _ in range(features))]


def test_a_test_with_hardly_a_row_for_a_degree_of_freedom_tells_nothing():
    columns = naive_columns(np.random.default_rng(3), 100, 8)
    rows = Rows(np.array(columns, np.uint8), (3,) * 9)
    others = range(2, 8)
    assert not Independence(rows, 0.01, 0.05).dependent(0, 1, others)  # nearly every row is a slice of its own
    careful = Independence(rows, 0.01, 0.05, power=1.0)
    assert not careful.tells(0, 1, others)
    assert careful.dependent(0, 1, others)
    # 2 x 2 degrees of freedom in each of three slices.
    assert Independence(rows, 0.01, 0.05, power=100 / 12).tells(0, 1, [2])
    assert not Independence(rows, 0.01, 0.05, power=100 / 12 + 1e-9).tells(0, 1, [2])
    assert Independence(rows, 0.01, 0.05, power=1e9).tells(0, 1)


def test_features_are_not_separated_from_the_class_for_want_of_rows():
    rng, n, features = np.random.default_rng(4), 400, 18
    y = rng.integers(0, 3, n)
    hidden = 2.0 * y + rng.normal(0, 1, n)  # so that features depend on each other, too, and cut sets are wide
    columns = [y, *(np.digitize(hidden + rng.normal(0, 1.2, n), [1, 3]) for _ in range(features))]
    names = [f"v{i}" for i in range(features + 1)]
    found = learn(columns, names, max_table=np.inf).markov_blanket("v0")
    published = learn(columns, names, power=0.0, max_table=np.inf).markov_blanket("v0")
    assert len(found) > 2 * len(published)


def test_no_table_has_more_cells_than_there_are_rows_or_as_many_as_are_allowed():
    rng = np.random.default_rng(5)
    causes = rng.integers(0, 2, (5, 60))
    columns = [np.where(rng.random(60) < 0.95, causes.sum(axis=0) > 2, 0), *causes]

    def largest(**options):
        return max(2 ** (1 + len(parents)) for parents in learn(columns, "yabcde", alpha=None, **options).parents)

    assert largest(max_table=np.inf) == 64
    assert largest() == 32
    assert largest(max_table=8.0) == 8
    assert largest(max_table=7.9) == 4
