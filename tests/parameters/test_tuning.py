from __future__ import annotations

import inspect
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import load_iris

from marginbayes import BayesNetClassifier, Dag, Network
from marginbayes.data import Rows, Schema, Variable
from marginbayes.parameters import (
    ConditionalLikelihood,
    MarginHybrid,
    MarginMarkov,
    MaximumLikelihood,
    ParameterLearner,
    ParameterResult,
)
from marginbayes.parameters.folds import in_folds, usual_split
from marginbayes.parameters.gradient import MarginGradient
from marginbayes.parameters.tuning import Trial, Tuned, TunedResult
from marginbayes.solvers import Moment
from marginbayes.structure import Greedy, TunedMargin
from tests.oracles.brute import random_network, with_holes

TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))


def problem(seed: int, n: int = 120, holes: float = 0.0) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, TAN, (3, 3, 3, 4))
    return network, with_holes(rng, network.sample(n, rng), holes, keep_class=True)


def literal_scores(
    learner: ParameterLearner, point: dict[str, object], network: Network, rows: Rows, score: str, **how: object
) -> list[float]:
    found = []
    for train, test in usual_split(rows, how.get("cv"), how.get("holdout"), 5, 0):
        learned = clone(learner).set_params(**point).learn(network.schema, network.dag, train).network
        joint = learned.log_joint(
            Rows(np.vstack([np.full(len(test), 3), test.codes[1:]]).astype(np.uint8), rows.cardinalities)
        )
        weights = np.ones(len(test)) if test.weights is None else test.weights
        if score == "accuracy":
            found.append(weights @ (joint.argmax(axis=1) == test.codes[0]) / weights.sum())
        else:
            found.append(weights @ log_softmax(joint, axis=1)[np.arange(len(test)), test.codes[0]] / weights.sum())
    return found


@pytest.mark.parametrize("score", ["accuracy", "log_loss"])
@pytest.mark.parametrize("how", [{"cv": 3}, {"holdout": 0.25}], ids=["folds", "one split"])
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_it_chooses_what_a_loop_without_warm_starts_chooses(score: str, how: dict[str, object], holes: float) -> None:
    network, rows = problem(0, holes=holes)
    rows = rows.reweighted(np.random.default_rng(1).random(len(rows)) + 0.5)
    learner = ConditionalLikelihood(tol=1e-9, max_iter=3000)
    grid = {"smoothing": [1.0, 0.1], "l2": [30.0, 1.0, 0.05]}
    result = Tuned(learner, grid, score=score, random_state=5, **how).learn(network.schema, TAN, rows)
    points = [{"smoothing": s, "l2": v} for s in grid["smoothing"] for v in grid["l2"]]
    expected = [literal_scores(learner, p, network, rows, score, **how) for p in points]
    means = [np.mean(e) for e in expected]
    assert result.best == points[int(np.argmax(np.round(means, 6)))]
    for trial in result.trials:
        assert trial.scores == pytest.approx(expected[points.index(dict(trial.parameters))], abs=1e-4)
    alone = clone(learner).set_params(**result.best).learn(network.schema, TAN, rows).network
    for a, b in zip(result.network.tables, alone.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-3)


def test_neighbours_in_the_grid_differ_in_one_parameter_and_all_points_are_tried() -> None:
    network, rows = problem(1)
    grid = {"smoothing": [2.0, 1.0, 0.5], "kind": ["laplace", "ess"], "missing": ["available", "em"]}
    trials = Tuned(MaximumLikelihood(), grid, cv=2, random_state=0).learn(network.schema, TAN, rows).trials
    points = [tuple(t.parameters.values()) for t in trials]
    assert len(set(points)) == len(points) == 12
    assert all(sum(a != b for a, b in zip(p, q, strict=True)) == 1 for p, q in pairwise(points))


def test_of_equal_scores_the_first_of_the_grid_wins() -> None:
    network, rows = problem(2)
    grid = {"smoothing": [1.0, 1.0001], "max_iter": [5, 6]}  # max_iter does nothing without missing cells
    result = Tuned(MaximumLikelihood(), grid, cv=2, random_state=0).learn(network.schema, TAN, rows)
    assert result.best == {"smoothing": 1.0, "max_iter": 5}


def test_equal_means_tie_whatever_their_rounding() -> None:
    one, two = (0.5, 0.8, 0.75, 0.8, 0.6), (0.6, 0.8, 0.75, 0.8, 0.5)
    assert np.mean(one) != np.mean(two)
    assert Trial({}, one, 0.0).score == Trial({}, two, 0.0).score


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_weight_zero_are_in_no_fold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, weights = rng.integers(0, 2, (3, 12)).astype(np.uint8), np.repeat([1.0, 0.0], 6)
    schema, dag = Schema(tuple(Variable(n, (0, 1)) for n in "yab")), Dag(("y", "a", "b"), ((), (0,), (0,)))
    all_rows = Rows(codes, (2, 2, 2), weights)
    for rows in (all_rows, all_rows.take(weights > 0)):
        learners = (
            Tuned(MaximumLikelihood(), {"smoothing": [1.0, 0.1]}, random_state=seed),
            ConditionalLikelihood(early_stopping="cv-accuracy", random_state=seed),
        )
        found = [learner.learn(schema, dag, rows).network for learner in learners]
        graphs = (Greedy(selection="cv", random_state=seed), TunedMargin(p=(0.9,), random_state=seed))
        found_graphs = [learner.learn(schema, rows).dag for learner in graphs]
        if rows is all_rows:
            networks, structures = found, found_graphs
    for one, other in zip(networks, found, strict=True):
        for ours, theirs in zip(one.tables, other.tables, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)
    assert structures == found_graphs


class Recorder(ParameterLearner):
    """Remembers what it was started from."""

    def __init__(self, a: int = 0, log: list[object] | None = None, stop_at: int | None = None) -> None:
        self.a = a
        self.log = log
        self.stop_at = stop_at

    def __sklearn_clone__(self) -> Recorder:
        return Recorder(self.a, self.log, self.stop_at)

    def learn(self, schema, dag, rows, start=None):
        if len(self.log) == self.stop_at:
            self.log.append("stopped")
            raise KeyboardInterrupt
        result = MaximumLikelihood(1.0 + self.a).learn(schema, dag, rows)
        self.log.append((self.a, len(rows), start))
        return ParameterResult(result.network)


def test_each_point_starts_where_the_one_before_ended_and_all_rows_start_at_the_best() -> None:
    network, rows = problem(3)
    log: list[tuple[int, int, Network | None]] = []
    result = Tuned(Recorder(log=log), {"a": [0, 1, 2]}, cv=2, random_state=0).learn(network.schema, TAN, rows)
    starts = [start for _, _, start in log]
    assert starts[:2] == [None, None]
    train = [part for part, _ in in_folds(rows, 2, 0)]
    for k in range(2, 6):
        before = MaximumLikelihood(1.0 + log[k - 2][0]).learn(network.schema, TAN, train[k % 2]).network
        assert starts[k] == before
    best = MaximumLikelihood(1.0 + result.best["a"]).learn(network.schema, TAN, train[0]).network
    assert log[-1][1:] == (len(rows), best)


def test_interrupting_learns_the_best_so_far_on_all_rows() -> None:
    network, rows = problem(4)
    log: list[object] = []
    learner = Recorder(log=log, stop_at=3)  # in the second fold of the second point
    result = Tuned(learner, {"a": [0, 1, 2]}, cv=2, random_state=0).learn(network.schema, TAN, rows)
    assert result.status == "interrupted"
    assert [dict(t.parameters) for t in result.trials] == [{"a": 0}]
    assert result.best == {"a": 0}
    assert result.network == MaximumLikelihood().learn(network.schema, TAN, rows).network


def test_a_learner_that_was_interrupted_ends_the_search_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from marginbayes.parameters import descent

    network, rows = problem(5)
    original, calls = descent.lbfgs, []

    def interrupted(*args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(descent, "lbfgs", interrupted)
    learner = ConditionalLikelihood(max_iter=10, tune={"l2": [10.0, 1.0, 0.1]}, random_state=0)
    result = learner.learn(network.schema, TAN, rows.take(np.arange(60)))
    assert isinstance(result, TunedResult)
    assert result.status == "interrupted"
    assert len(result.trials) == 0
    assert result.best == {"l2": 10.0}


@pytest.mark.parametrize("learner", [ConditionalLikelihood(max_iter=15), MarginGradient(max_iter=15)])
def test_tune_is_short_for_tuned_with_the_grid_of_the_class(learner: ParameterLearner) -> None:
    network, rows = problem(6, n=60)
    short = clone(learner).set_params(tune=True, random_state=1).learn(network.schema, TAN, rows)
    long = Tuned(clone(learner).set_params(random_state=1), random_state=1).learn(network.schema, TAN, rows)
    assert short.best == long.best
    assert short.network == long.network
    assert min(type(learner).GRID["l2"]) < 0.02


@pytest.mark.parametrize(
    ("learner", "grid"), [(MarginHybrid(), {"B": [0.1, 10.0]}), (MarginMarkov(), {"C": [0.01, 1.0]})]
)
def test_certified_learners_are_compared_roughly_and_the_best_is_solved_in_full(
    learner: MarginHybrid | MarginMarkov, grid: dict[str, list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, rows = problem(6)
    asked: list[float] = []
    learn = type(learner).learn

    def watched(self: MarginHybrid, *args: object, **named: object) -> ParameterResult:
        asked.append(self.tol)
        return learn(self, *args, **named)

    watched.__signature__ = inspect.signature(learn)
    monkeypatch.setattr(type(learner), "learn", watched)
    tuned = Tuned(learner, grid, cv=3, random_state=5).learn(network.schema, TAN, rows)
    assert asked == [1e-4] * 6 + [1e-6]
    assert tuned.certificate.gap <= 1e-6
    asked.clear()
    Tuned(learner, {**grid, "tol": [1e-5]}, cv=3).learn(network.schema, TAN, rows)
    assert asked == [1e-5] * 7


def test_threads_over_folds_do_not_change_the_result() -> None:
    network, rows = problem(7)
    learner = ConditionalLikelihood(max_iter=20)
    one, two = (
        Tuned(learner, {"l2": [1.0, 0.1]}, cv=3, random_state=0, n_jobs=n).learn(network.schema, TAN, rows)
        for n in (1, 2)
    )
    assert one.network == two.network
    assert [t.scores for t in one.trials] == [t.scores for t in two.trials]


def test_progress_is_told_after_each_point() -> None:
    network, rows = problem(8)
    seen: list[Moment] = []
    Tuned(MaximumLikelihood(), {"smoothing": [1.0, 0.1]}, cv=2, callback=seen.append).learn(network.schema, TAN, rows)
    assert len(seen) == 2
    assert "2 of 2 settings" in seen[1].note


def test_it_works_inside_a_classifier() -> None:
    X, y = load_iris(return_X_y=True)
    clf = BayesNetClassifier("nb", Tuned(MaximumLikelihood(), {"smoothing": [1.0, 0.1]}, random_state=0)).fit(X, y)
    assert clf.parameter_result_.best["smoothing"] in (1.0, 0.1)
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"grid": None}, "MaximumLikelihood has no grid of its own"),
        ({"grid": {"l2": [1.0]}}, "MaximumLikelihood has no parameter 'l2'; it has kind"),
        ({"grid": {"smoothing": []}}, r"the grid gives 'smoothing' \[\]; give it a list"),
        ({"grid": {"smoothing": 1.0}}, "the grid gives 'smoothing' 1.0; give it a list"),
        ({"grid": "yes"}, "the grid is 'yes'; give a dictionary"),
        ({"cv": 3, "holdout": 0.2}, "cv=3 and holdout=0.2 exclude each other"),
        ({"cv": 1}, "cv=1 must be a whole number, at least 2"),
        ({"holdout": 0.9}, "holdout=0.9 must be above 0"),
        ({"score": "f1"}, "score='f1' is not known"),
    ],
)
def test_wrong_choices_are_refused_by_name(arguments: dict[str, object], message: str) -> None:
    network, rows = problem(9)
    with pytest.raises(ValueError, match=message):
        Tuned(MaximumLikelihood(), **{"grid": {"smoothing": [1.0]}, **arguments}).learn(network.schema, TAN, rows)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.25, 0.3, 0.4, 0.5])
def test_the_share_that_is_held_out_is_the_one_that_was_asked_for_in_every_class(share: float) -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 1000, p=[0.6, 0.3, 0.1]).astype(np.uint8)
    rows = Rows(np.vstack([labels, np.arange(1000) % 200]).astype(np.uint8), (3, 200))
    ((train, out),) = usual_split(rows, None, share, 0, 0)
    assert len(train) + len(out) == 1000
    for label in range(3):
        count = int((labels == label).sum())
        assert abs(int((out.codes[0] == label).sum()) - share * count) <= 1


def test_a_setting_that_rules_a_held_out_row_out_is_the_worst_one() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 6, (40, 5)).astype(str), rng.integers(0, 3, 40)
    tuned = Tuned(MaximumLikelihood(), {"smoothing": [0.0, 1.0]}, score="log_loss", random_state=0)
    result = BayesNetClassifier("nb", tuned).fit(X, y).parameter_result_
    assert result.best == {"smoothing": 1.0}
    assert result.trials[0].score == -np.inf
