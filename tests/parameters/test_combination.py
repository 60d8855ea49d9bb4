from __future__ import annotations

import contextlib
import os
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes import Dag, Network
from marginbayes.data import Rows
from marginbayes.parameters import ConditionalLikelihood, MarginHybrid, MaximumLikelihood, ParameterLearner
from marginbayes.parameters.combination import ConvexCombination, stratified_cover
from marginbayes.parameters.design import Design
from marginbayes.parameters.mixture import MarginMixture, best_margin
from marginbayes.parameters.tuning import Tuned
from marginbayes.solvers import Moment
from tests.oracles.brute import random_network, with_holes

TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))
UNMARRIED = Dag.from_edges([("y", "a"), ("y", "b"), ("y", "c"), ("a", "c"), ("b", "c")], names=["y", "a", "b", "c"])
CARDS = (3, 2, 3, 2)


def problem(seed: int, n: int = 120, dag: Dag = TAN, holes: float = 0.0, weighted: bool = True) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, dag, CARDS)
    rows = with_holes(rng, network.sample(n, rng), holes, keep_class=True)
    return network, rows.reweighted(rng.random(n) + 0.5) if weighted else rows


def margins_of(tables: list[np.ndarray], dag: Dag, rows: Rows) -> np.ndarray:
    """log P(class, row) less that of the best other class, by looking up every cell."""
    found = []
    for codes in rows.codes.T.astype(int):
        scores = []
        for c in range(rows.cardinalities[0]):
            at = [c, *codes[1:]]
            families = [[*dag.parents[i], i] for i in range(len(at)) if i == 0 or 0 in dag.parents[i]]
            whole = [f for f in families if all(at[v] < rows.cardinalities[v] for v in f)]
            scores.append(sum(tables[f[-1]][tuple(at[v] for v in f)] for f in whole))
        found.append(scores[codes[0]] - max(s for c, s in enumerate(scores) if c != codes[0]))
    return np.array(found)


def slow_value(margins: np.ndarray, costs: np.ndarray) -> float:
    """Problem (25) by ternary search for gamma: the function is convex."""

    def value(gamma: float) -> float:
        return 0.5 / gamma**2 + costs @ np.maximum(gamma - margins, 0)

    low, high = 1e-4, 1e4
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if value(left) < value(right) else (left, high)
    return value(low)


def value_of(network: Network, rows: Rows, B: float) -> float:
    return slow_value(margins_of(network.tables, network.dag, rows), B * rows.weights)


def members_of(learner: ConvexCombination, network: Network, rows: Rows) -> list[Network]:
    parts = stratified_cover(rows, learner.n_parts, learner.random_state)
    return [learner.base.learn(network.schema, network.dag, part).network for part in parts]


# -- the inner problem


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([-3.0, -0.5, 0.0, 0.4, 0.5, 2.0, 9.0]), st.floats(0.01, 5)), min_size=1),
    st.floats(-1, 1),
)
def test_the_best_margin_is_that_of_a_one_dimensional_solver(pairs: list[tuple[float, float]], shift: float) -> None:
    margins, costs = np.array(pairs).T
    margins = margins + shift
    gamma, value, slopes = best_margin(margins, costs)
    assert value == pytest.approx(slow_value(margins, costs), rel=1e-8)
    assert value == pytest.approx(0.5 / gamma**2 + costs @ np.maximum(gamma - margins, 0))
    # The slopes are multipliers of the problem: within the costs, gamma^-3 in all, and complementary.
    assert slopes.sum() == pytest.approx(gamma**-3)
    assert ((slopes >= 0) & (slopes <= costs * (1 + 1e-9))).all()
    assert (slopes[margins > gamma] == 0).all()
    assert slopes[margins < gamma] == pytest.approx(costs[margins < gamma])


def test_the_subgradient_lies_below_the_function() -> None:
    network, rows = problem(0)
    rng = np.random.default_rng(0)
    tables = [random_network(rng, TAN, CARDS).tables for _ in range(4)]
    mixture = MarginMixture.of(Design.of(TAN, rows), tables, 0.3)
    points = rng.dirichlet(np.ones(4), 30)
    for at in points:
        value, slope = mixture.loss(at)
        combined = [sum(a * t[i] for a, t in zip(at, tables, strict=True)) for i in range(4)]
        assert value == pytest.approx(value_of(Network(network.schema, TAN, tuple(combined)), rows, 0.3), rel=1e-8)
        for other in points:
            assert mixture.loss(other)[0] >= value + slope @ (other - at) - 1e-9


# -- the weights


@pytest.mark.parametrize("D", [0.0, 0.5, 5.0, 1e3])
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_the_weights_have_the_optimum_of_a_cone_solver(D: float, holes: float) -> None:
    cp = pytest.importorskip("cvxpy")
    network, rows = problem(1, holes=holes)
    learner = ConvexCombination(4, D, MaximumLikelihood(), B=0.2, random_state=0, tol=1e-8)
    certificate = learner.learn(network.schema, TAN, rows).certificate
    design = Design.of(TAN, rows)
    tables = [m.tables for m in members_of(learner, network, rows)]
    mixture = MarginMixture.of(design, tables, 0.2)
    alpha, gamma, slack = cp.Variable(4, nonneg=True), cp.Variable(), cp.Variable(len(mixture.costs), nonneg=True)
    rules = [cp.sum(alpha) == 1]
    rules += [mixture.margins[:, r] @ alpha >= gamma - slack for r in range(2)]
    aim = 0.5 * cp.power(gamma, -2) + mixture.costs @ slack + D * cp.norm(alpha - 0.25)
    wanted = cp.Problem(cp.Minimize(aim), rules).solve(solver="CLARABEL")
    assert certificate.status == "optimal"
    assert certificate.gap <= 1e-8
    assert certificate.objective == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("base", [MaximumLikelihood(), ConditionalLikelihood(max_iter=30)], ids=["ml", "cl"])
def test_without_pull_the_objective_on_all_rows_is_never_worse_than_that_of_the_best_member(
    seed: int, base: ParameterLearner
) -> None:
    network, rows = problem(seed)
    learner = ConvexCombination(5, 0.0, base, B=0.5, random_state=seed)
    found = learner.learn(network.schema, TAN, rows)
    best = min(value_of(m, rows, 0.5) for m in members_of(learner, network, rows))
    assert found.certificate.objective <= best * (1 + 1e-9)
    # Renormalising changes no margin, so the network itself has that objective.
    assert value_of(found.network, rows, 0.5) == pytest.approx(found.certificate.objective, rel=1e-7)


@pytest.mark.parametrize("D", [0.0, 1.0, 10.0, 1e4])
def test_the_margin_problem_is_never_worse_than_that_of_the_plain_average(D: float) -> None:
    network, rows = problem(7)
    learner = ConvexCombination(5, D, MaximumLikelihood(), random_state=0)
    found = learner.learn(network.schema, TAN, rows)
    members = members_of(learner, network, rows)
    average = [sum(m.tables[i] for m in members) / 5 for i in range(4)]
    plain = slow_value(margins_of(average, TAN, rows), rows.weights)
    assert value_of(found.network, rows, 1.0) <= plain * (1 + 1e-8)


def test_weights_are_equal_from_the_stated_pull_on_and_not_below() -> None:
    network, rows = problem(8)
    start = ConvexCombination(5, 1e9, MaximumLikelihood(), random_state=0, tol=1e-9)
    threshold = start.learn(network.schema, TAN, rows).certificate.evidence["equal_from"]
    for factor, equal in ((1.001, True), (0.9, False)):
        learner = ConvexCombination(5, factor * threshold, MaximumLikelihood(), random_state=0, tol=1e-9)
        weights = learner.learn(network.schema, TAN, rows).certificate.evidence["weights"]
        assert (np.abs(weights - 0.2).max() == 0) == equal


def test_scaled_members_scale_the_problem_and_leave_the_weights() -> None:
    # Members of the literal problem have the scale B^(-1/3); then B is a unit of the objective and nothing else.
    _, rows = problem(9)
    rng = np.random.default_rng(0)
    tables = [random_network(rng, TAN, CARDS).tables for _ in range(4)]
    design, B = Design.of(TAN, rows), 0.03
    one = MarginMixture.of(design, tables, 1.0)
    other = MarginMixture.of(design, [[t * B ** (-1 / 3) for t in member] for member in tables], B)
    for point in rng.dirichlet(np.ones(4), 10):
        (value, slope), (scaled, scaled_slope) = one.loss(point), other.loss(point)
        assert scaled == pytest.approx(B ** (2 / 3) * value)
        np.testing.assert_allclose(scaled_slope, B ** (2 / 3) * slope)


# -- the network


@pytest.mark.parametrize("dag", [TAN, Dag.naive(list("yabc"))], ids=["tan", "naive"])
@pytest.mark.parametrize("normalize", ["likeliest", "plain"])
def test_the_network_decides_as_the_combination_of_log_tables(dag: Dag, normalize: str) -> None:
    network, rows = problem(2, dag=dag)
    learner = ConvexCombination(4, 1.0, MaximumLikelihood(), random_state=1, normalize=normalize)
    found = learner.learn(network.schema, dag, rows)
    weights = found.certificate.evidence["weights"]
    logs = sum(w * m.log_joint(rows) for w, m in zip(weights, members_of(learner, network, rows), strict=True))
    ours = found.network.log_joint(rows)
    assert found.network.normalized
    np.testing.assert_allclose(ours - ours[:, :1], logs - logs[:, :1], atol=1e-9)


def test_the_likeliest_network_is_likelier_than_plain_renormalisation() -> None:
    network, rows = problem(2)
    learner = ConvexCombination(4, 1.0, ConditionalLikelihood(max_iter=20), random_state=1)
    likeliest, plain = (
        learner.set_params(normalize=n).learn(network.schema, TAN, rows).network for n in ("likeliest", "plain")
    )
    assert likeliest.log_likelihood(rows) > plain.log_likelihood(rows)


def test_tuning_chooses_among_pulls() -> None:
    network, rows = problem(2)
    learner = ConvexCombination(4, 1.0, MaximumLikelihood(), random_state=1, tune={"D": [1e6, 0.0]})
    found = learner.learn(network.schema, TAN, rows)
    assert found.best in ({"D": 1e6}, {"D": 0.0})
    assert len(found.result.members) == 4
    assert found.certificate.evidence["D"] == found.best["D"]
    tried = learner.set_params(tune={"base__smoothing": [1.0, 5.0]}).learn(network.schema, TAN, rows).trials
    assert len({trial.scores for trial in tried}) == 2


def test_parameters_of_the_usual_base_can_be_tuned() -> None:
    network, rows = problem(2)
    found = ConvexCombination(2, random_state=1, tune={"base__B": [0.1, 10.0]}).learn(network.schema, TAN, rows)
    assert len({trial.scores for trial in found.trials}) == 2


def test_the_parts_are_learned_with_the_smoothing_of_the_combination() -> None:
    network, rows = problem(2)
    few, many = (ConvexCombination(2, smoothing=s, random_state=1) for s in (0.1, 20.0))
    base = MarginHybrid(smoothing=20.0)
    same = ConvexCombination(2, base=base, smoothing=20.0, random_state=1).learn(network.schema, TAN, rows)
    found = many.learn(network.schema, TAN, rows)
    assert found.members == same.members
    assert found.members != few.learn(network.schema, TAN, rows).members


def test_a_parameter_of_the_usual_base_can_be_set_with_the_smoothing_beside_it() -> None:
    for learner in (ConvexCombination(smoothing=2.0), ConvexCombination()):
        learner.set_params(base__B=3.0, smoothing=2.0)
        assert (learner.base.B, learner.base.smoothing) == (3.0, 2.0)


def test_a_grid_of_smoothings_reaches_the_parts() -> None:
    network, rows = problem(2)
    plain = ConvexCombination(2, smoothing=20.0, random_state=1).learn(network.schema, TAN, rows)
    tuned = ConvexCombination(2, random_state=1, tune={"smoothing": [20.0]}).learn(network.schema, TAN, rows)
    assert tuned.result.members == plain.members


def test_without_smoothing_the_parts_need_a_base_that_does_without() -> None:
    network, rows = problem(2)
    learner = ConvexCombination(2, smoothing=0.0, normalize="plain", random_state=1)
    with pytest.raises(ValueError, match=r"smoothing=0\.0 must be a positive number"):
        learner.learn(network.schema, TAN, rows)
    learner.set_params(base=MarginHybrid()).learn(network.schema, TAN, rows)


def test_parameters_that_are_given_back_leave_the_usual_base() -> None:
    learner = ConvexCombination()
    learner.set_params(**learner.get_params())
    assert learner.base is None
    assert learner.set_params(smoothing=5.0)._base().smoothing == 5.0
    with pytest.raises(ValueError, match="Invalid parameter 'bogus'"):
        learner.set_params(base__bogus=None)
    assert learner.base is None


BASES = [MaximumLikelihood(), Tuned(MaximumLikelihood(), {"smoothing": np.array([1.0, 5.0])}, cv=2, random_state=0)]


@pytest.mark.parametrize("base", BASES, ids=lambda base: type(base).__name__)
def test_for_another_pull_the_parts_are_not_learned_again(base: ParameterLearner) -> None:
    network, rows = problem(2)
    learner = ConvexCombination(4, 1.0, base, random_state=1)
    first = learner.learn(network.schema, TAN, rows)
    again = learner.set_params(D=0.0).learn(network.schema, TAN, rows, previous=first)
    assert all(a is b for a, b in zip(first.members, again.members, strict=True))
    fresh = learner.learn(network.schema, TAN, rows)
    assert again.network == fresh.network
    other = learner.set_params(base=MaximumLikelihood(0.5)).learn(network.schema, TAN, rows, previous=first)
    assert other.members != first.members


def test_the_members_are_returned_in_the_order_of_the_parts() -> None:
    network, rows = problem(2)
    learner = ConvexCombination(4, 1.0, MaximumLikelihood(), random_state=1, n_jobs=2)
    assert list(learner.learn(network.schema, TAN, rows).members) == members_of(learner, network, rows)


def test_the_parts_are_learned_by_likelihood_and_margin_unless_something_else_is_wanted() -> None:
    network, rows = problem(2)
    default = ConvexCombination(3, 0.0, random_state=1).learn(network.schema, TAN, rows)
    spelled = ConvexCombination(3, 0.0, MarginHybrid(), random_state=1).learn(network.schema, TAN, rows)
    assert default.members == spelled.members
    best = min(value_of(member, rows, 1.0) for member in default.members)
    assert default.certificate.objective <= best * (1 + 1e-9)


def test_one_part_is_the_base_learner() -> None:
    network, rows = problem(3)
    alone = MaximumLikelihood().learn(network.schema, TAN, rows).network
    found = ConvexCombination(1, 1e3, MaximumLikelihood()).learn(network.schema, TAN, rows)
    np.testing.assert_allclose(found.network.posterior(rows), alone.posterior(rows), atol=1e-12)
    assert found.certificate.gap <= 1e-12


def test_parents_that_are_not_joined_are_named_and_a_subnormal_network_decides_alike() -> None:
    network, rows = problem(4, dag=UNMARRIED)
    with pytest.raises(ValueError, match="'a' and 'b' are parents of 'c' but not joined"):
        ConvexCombination(4, base=MaximumLikelihood()).learn(network.schema, UNMARRIED, rows)
    learner = ConvexCombination(4, 0.0, MaximumLikelihood(), subnormal=True, random_state=0)
    found = learner.learn(network.schema, UNMARRIED, rows)
    assert value_of(found.network, rows, 1.0) == pytest.approx(found.certificate.objective, rel=1e-7)


def test_one_class_gives_an_objective_of_zero() -> None:
    _, rows = problem(5)
    rows = Rows(np.vstack([np.zeros_like(rows.codes[:1]), rows.codes[1:]]), (1, *CARDS[1:]), rows.weights)
    schema = random_network(np.random.default_rng(0), TAN, rows.cardinalities).schema
    found = ConvexCombination(3, base=MaximumLikelihood()).learn(schema, TAN, rows)
    assert (found.certificate.objective, found.certificate.gap) == (0.0, 0.0)


# -- the rows


def test_the_order_of_the_rows_does_not_matter() -> None:
    network, rows = problem(10)
    learner = ConvexCombination(5, 1.0, MaximumLikelihood(), random_state=3, tol=1e-9)
    shuffled = rows.take(np.random.default_rng(1).permutation(len(rows)))
    one, two = (learner.learn(network.schema, TAN, r).network for r in (rows, shuffled))
    np.testing.assert_allclose(one.posterior(rows), two.posterior(rows), atol=1e-6)


def test_rows_of_weight_zero_and_rows_without_a_class_do_not_matter() -> None:
    network, rows = problem(11)
    extra = network.sample(40, np.random.default_rng(1)).codes.copy()
    extra[0, 20:] = CARDS[0]
    weights = np.concatenate([rows.weights, np.zeros(20), np.ones(20)])
    more = Rows(np.hstack([rows.codes, extra]), CARDS, weights)
    learner = ConvexCombination(4, 1.0, ConditionalLikelihood(max_iter=20), random_state=0)
    one, two = (learner.learn(network.schema, TAN, r).certificate for r in (rows, more))
    np.testing.assert_allclose(one.evidence["weights"], two.evidence["weights"], atol=1e-9)
    assert one.objective == pytest.approx(two.objective)


def test_weights_of_rows_count_like_repetitions_in_the_margin_problem() -> None:
    _, rows = problem(12, 30, weighted=False)
    times = np.random.default_rng(0).integers(1, 4, 30)
    tables = [random_network(np.random.default_rng(s), TAN, CARDS).tables for s in range(3)]
    weighted = MarginMixture.of(Design.of(TAN, rows.reweighted(times.astype(float))), tables, 0.7)
    repeated = MarginMixture.of(Design.of(TAN, rows.take(np.repeat(np.arange(30), times))), tables, 0.7)
    point = np.array([0.2, 0.5, 0.3])
    assert weighted.loss(point)[0] == pytest.approx(repeated.loss(point)[0])
    np.testing.assert_allclose(weighted.loss(point)[1], repeated.loss(point)[1])


# -- running


def test_the_result_is_the_same_for_a_seed_whatever_the_number_of_jobs() -> None:
    network, rows = problem(13)
    learner = ConvexCombination(5, 1.0, ConditionalLikelihood(max_iter=20))
    one, two, other = (
        learner.set_params(random_state=seed, n_jobs=n).learn(network.schema, TAN, rows)
        for seed, n in ((0, 1), (0, 2), (1, 1))
    )
    assert one.network == two.network != other.network
    np.testing.assert_array_equal(one.certificate.evidence["weights"], two.certificate.evidence["weights"])


class Stopping(MaximumLikelihood):
    """Maximum likelihood that is interrupted at its third call, and may keep that to itself, as other learners do."""

    calls: list[int]

    def learn(self, schema, dag, rows):
        type(self).calls.append(1)
        if len(type(self).calls) == 3:
            if self.kind != "ess":
                raise KeyboardInterrupt
            with contextlib.suppress(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
        return super().learn(schema, dag, rows)


@pytest.mark.parametrize(("kind", "kept"), [("laplace", 2), ("ess", 3)], ids=["raised", "kept by the base"])
def test_interrupting_keeps_the_parts_that_are_done(kind: str, kept: int) -> None:
    network, rows = problem(14)
    Stopping.calls = []
    found = ConvexCombination(6, 1.0, Stopping(kind=kind), random_state=0).learn(network.schema, TAN, rows)
    assert found.certificate.status == "interrupted"
    assert found.certificate.evidence["weights"].shape == (kept,)
    assert found.certificate.gap <= 1e-6
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupting_parts_that_run_side_by_side_keeps_those_that_are_done() -> None:
    network, rows = problem(14)
    seen: list[Moment] = []

    def stop(moment: Moment) -> None:
        seen.append(moment)
        if len(seen) == 3:
            raise KeyboardInterrupt

    learner = ConvexCombination(8, 1.0, MaximumLikelihood(), random_state=0, n_jobs=2, callback=stop)
    found = learner.learn(network.schema, TAN, rows)
    assert found.certificate.status == "interrupted"
    assert found.certificate.evidence["weights"].shape == (3,)


def test_interrupting_before_any_part_is_done_ends_learning() -> None:
    network, rows = problem(14)
    Stopping.calls = [1, 1]
    with pytest.raises(KeyboardInterrupt):
        ConvexCombination(6, base=Stopping()).learn(network.schema, TAN, rows)


def test_progress_tells_of_parts_and_then_of_the_gap() -> None:
    network, rows = problem(15)
    seen: list[Moment] = []
    found = ConvexCombination(3, 0.0, MaximumLikelihood(), callback=seen.append).learn(network.schema, TAN, rows)
    assert [m.note for m in seen[:3]] == ["1 of 3 parts", "2 of 3 parts", "3 of 3 parts"]
    assert seen[-1].objective == found.certificate.objective
    assert (np.diff([m.seconds for m in seen]) >= 0).all()


@pytest.mark.parametrize(
    "arguments",
    [{"n_parts": 0}, {"n_parts": 121}, {"n_parts": 2.5}, {"D": -1.0}, {"D": np.inf}, {"B": 0.0}, {"normalize": "x"}],
)
def test_wrong_values_are_refused_by_name(arguments: dict[str, object]) -> None:
    network, rows = problem(16)
    name, value = next(iter(arguments.items()))
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        ConvexCombination(**arguments, base=MaximumLikelihood()).learn(network.schema, TAN, rows)


def test_members_with_probabilities_of_zero_are_refused() -> None:
    network, rows = problem(17)
    with pytest.raises(ValueError, match="smooth its learner"):
        ConvexCombination(8, base=MaximumLikelihood(0.0)).learn(network.schema, TAN, rows)


def test_few_rows_are_dealt_into_as_many_parts_as_there_are() -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, Dag.naive(["y", "a", "b"]), (2, 2, 2))
    few = Rows(rng.integers(0, 2, (3, 9)).astype(np.uint8), (2, 2, 2))
    assert len(ConvexCombination().learn(network.schema, network.dag, few).members) == 9


@pytest.mark.parametrize("weight", [1e-6, 1e3, 1e6, 1e9])
def test_the_scale_of_the_weights_does_not_stop_it(weight: float) -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, Dag.naive(["y", "a", "b"]), (2, 3, 3))
    rows = Rows(network.sample(200, rng).codes, (2, 3, 3), np.full(200, weight))
    proof = ConvexCombination(random_state=0).learn(network.schema, network.dag, rows).certificate
    assert proof is not None
    assert proof.bound <= proof.objective
    assert proof.gap < 1e-2
