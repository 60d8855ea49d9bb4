"""Learners of weights against generic solvers, finite differences and counts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.base import clone

from marginbayes.sequence import (
    ChainExamples,
    ChainModel,
    StructuredConditional,
    StructuredConvex,
    StructuredHybrid,
    StructuredLikelihood,
    StructuredMarkov,
)
from marginbayes.sequence.learners import named_learner
from marginbayes.sequence.learners.base import WeightResult
from marginbayes.sequence.learners.conditional import ConditionalObjective
from marginbayes.solvers import Moment
from tests.oracles.labellings import chain_sample, margin_optimum, tree_sample, written_out

EXAMPLES = {
    "chain": lambda seed: chain_sample(seed, weights=True),
    "order 2": lambda seed: chain_sample(seed, (1, 3, 2, 3), order=2),
    "window": lambda seed: chain_sample(seed, (2, 3, 1), window=3),
    "tree": lambda seed: tree_sample(seed, 6),
}


# -- margins


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize(("B", "margin"), [(0.3, 1.0), (2.0, 0.5), (5.0, 3.0)])
def test_likelihood_and_margin_reach_the_optimum_of_a_generic_solver(kind: str, B: float, margin: float) -> None:
    examples = EXAMPLES[kind](0)
    found = StructuredHybrid(B, margin, tol=1e-7).learn(examples)
    best = margin_optimum(examples, B, margin, examples.true_features + 1.0)
    assert found.certificate is not None
    assert found.certificate.status == "optimal"
    assert found.certificate.objective == pytest.approx(best, rel=1e-6)
    assert found.certificate.bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("learner", [StructuredHybrid(), StructuredHybrid(5.0, 3.0), StructuredMarkov(0.3)], ids=str)
def test_constraint_generation_and_multipliers_end_at_the_same_optimum(kind: str, learner: Any) -> None:
    examples = EXAMPLES[kind](6)
    smooth = clone(learner).learn(examples).certificate
    generated = clone(learner).set_params(method="cuts").learn(examples).certificate
    assert generated.status == smooth.status == "optimal"
    # Each objective lies between the other's bound and the two gaps.
    assert max(smooth.bound, generated.bound) <= min(smooth.objective, generated.objective)
    assert generated.objective == pytest.approx(smooth.objective, rel=2e-5, abs=2e-5)


def test_constraint_generation_needs_few_of_all_labellings() -> None:
    examples = chain_sample(0, (6,) * 30, missing=0.3)
    certificate = StructuredHybrid(method="cuts").learn(examples).certificate
    assert certificate is not None
    assert certificate.status == "optimal"
    assert len(certificate.evidence["owners"]) < 0.15 * 30 * 2**6


def test_constraint_generation_says_that_its_steps_ran_out() -> None:
    certificate = StructuredMarkov(30.0, method="cuts", max_iter=40, tol=1e-9).learn(chain_sample(1)).certificate
    assert certificate is not None
    assert certificate.gap > 0.01
    assert certificate.status == "iteration limit"


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_the_markov_network_reaches_the_optimum_of_a_generic_solver(kind: str, C: float) -> None:
    examples = EXAMPLES[kind](1)
    found = StructuredMarkov(C, tol=1e-6).learn(examples)
    best = margin_optimum(examples, C, 1.0, None)
    assert found.certificate is not None
    assert found.certificate.status == "optimal"
    assert found.certificate.objective == pytest.approx(best, rel=1e-5)


def test_the_tables_of_likelihood_and_margin_are_counts_that_margins_reweight() -> None:
    examples = chain_sample(2, (3, 4, 2, 5))
    result = StructuredHybrid(1.0, 1.0, tol=1e-8).learn(examples)
    assert result.certificate is not None
    evidence = result.certificate.evidence
    expected = examples.expect(np.array(evidence["potentials"]), evidence["potential_margin"]).features
    mass = examples.true_features + 1.0 + evidence["share"] * (examples.true_features - expected)
    np.testing.assert_allclose(examples.rows.sums(np.exp(result.weights)), 1.0, atol=1e-9)
    np.testing.assert_allclose(np.exp(result.weights), mass / examples.rows.sums(mass)[examples.rows.row_of], atol=2e-3)


def least_hinge(examples: Any, radius: float) -> float:
    """Least sum of hinge losses with |weights| <= radius, with a row for every labelling."""
    owners, leads, losses = written_out(examples)
    n = len(examples.weights)
    cost = np.concatenate([np.zeros(leads.shape[1]), examples.weights])
    bounds = [(-radius, radius)] * leads.shape[1] + [(0, None)] * n
    return float(linprog(cost, np.hstack([-leads, -np.eye(n)[owners]]), -losses, bounds=bounds).fun)


@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_constraint_generation_solves_the_published_problem(kind: str) -> None:
    examples = chain_sample(3, (3,) * 12, missing=0.5) if kind == "chain" else tree_sample(3, 30)
    found = StructuredConvex(radius=10.0).learn(examples)
    assert found.certificate is not None
    assert found.certificate.status == "optimal within |u| <= 10"
    best = least_hinge(examples, 10.0)
    assert best > 0.1
    assert found.certificate.objective == pytest.approx(best, rel=1e-5)


def test_the_strength_of_the_published_problem_changes_no_decision() -> None:
    examples = chain_sample(3, (3,) * 12, missing=0.5)
    weak, strong = (StructuredConvex(B).learn(examples).weights for B in (0.01, 100.0))
    # (3/2) (B L)^(2/3) at gamma = (B L)^(-1/3): ten thousand times the strength divides the weights by its cube root.
    np.testing.assert_allclose(weak, strong * 10_000 ** (1 / 3), rtol=1e-9)
    np.testing.assert_array_equal(examples.decode(weak)[0], examples.decode(strong)[0])


def test_separable_sequences_are_reported_as_such() -> None:
    examples = chain_sample(0, (2, 2, 2), window=3, missing=0.0)
    found = StructuredConvex().learn(examples)
    assert found.certificate is not None
    assert found.certificate.status.startswith("separable")
    np.testing.assert_array_equal(examples.decode(found.weights)[0], examples.labels)


# -- likelihood


def test_tables_of_maximum_likelihood_are_relative_frequencies() -> None:
    model = ChainModel(2, (2,))
    offsets, labels = np.array([0, 3, 4]), np.array([0, 0, 1, 1])
    examples = ChainExamples(model, model.cells(np.array([[0, 1, 1, 1]]), offsets), offsets, labels)
    start, steps, emission = (np.exp(t) for t in model.tables(StructuredLikelihood(1.0).learn(examples).weights))
    np.testing.assert_allclose(start, [2 / 4, 2 / 4])
    np.testing.assert_allclose(steps, [[2 / 5, 2 / 5, 1 / 5], [1 / 5, 1 / 5, 3 / 5]])
    np.testing.assert_allclose(emission, [[2 / 4, 1 / 4], [2 / 4, 3 / 4]])
    start, steps, _ = (np.exp(t) for t in model.tables(StructuredLikelihood(0.0).learn(examples).weights))
    np.testing.assert_allclose(steps, [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])


def test_likelihoods_and_best_paths_are_those_of_hmmlearn() -> None:
    hmm = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn is the oracle")
    rng = np.random.default_rng(0)
    model, stop = ChainModel(3, (4,)), 0.2
    start, emission = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4), 3)
    transitions = rng.dirichlet(np.ones(3), 3)
    steps = np.column_stack([transitions * (1 - stop), np.full(3, stop)])
    weights = model.flatten(np.log(start), np.log(steps), np.log(emission.T))
    lengths = [1, 2, 5, 9]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = rng.integers(0, 4, offsets[-1])
    other = hmm.CategoricalHMM(3)
    other.startprob_, other.transmat_, other.emissionprob_, other.n_features = start, transitions, emission, 4
    cells = model.cells(codes[None], offsets)
    node, log_z = model.marginals(weights, cells, offsets)
    labels, best = model.decode(weights, cells, offsets)
    for i, n in enumerate(lengths):
        part = slice(offsets[i], offsets[i + 1])
        own = np.log(stop) + (n - 1) * np.log(1 - stop)  # hmmlearn has no end
        assert log_z[i] == pytest.approx(other.score(codes[part, None]) + own)
        np.testing.assert_allclose(node[part], other.predict_proba(codes[part, None]), atol=1e-12)
        score, path = other.decode(codes[part, None])
        assert best[i] == pytest.approx(score + own)
        np.testing.assert_array_equal(labels[part], path)


def test_marginals_and_best_paths_are_those_of_python_crfsuite(tmp_path: Path) -> None:
    crfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is the oracle")
    rng = np.random.default_rng(0)
    model, offsets = ChainModel(3, (4,)), np.array([0, 1, 3, 8, 17, 29])
    codes = rng.integers(0, 4, offsets[-1])
    labels = np.where(rng.random(len(codes)) < 0.6, codes % 3, rng.integers(0, 3, len(codes)))
    trainer = crfsuite.Trainer(verbose=False)
    trainer.set_params({"feature.possible_transitions": True, "feature.possible_states": True})
    parts = [slice(a, b) for a, b in pairwise(offsets.tolist())]
    items = [[[f"x={c}"] for c in codes[part]] for part in parts]
    for own, part in zip(items, parts, strict=True):
        trainer.append(own, labels[part].astype(str).tolist())
    trainer.train(str(tmp_path / "model"))
    tagger = crfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    steps, emission = np.zeros((3, 4)), np.zeros((4, 3))  # it has neither start nor end
    for (a, b), weight in tagger.info().transitions.items():
        steps[int(a), int(b)] = weight
    for (attribute, label), weight in tagger.info().state_features.items():
        emission[int(attribute[-1]), int(label)] = weight
    weights, cells = model.flatten(np.zeros(3), steps, emission), model.cells(codes[None], offsets)
    node, _ = model.marginals(weights, cells, offsets)
    found, _ = model.decode(weights, cells, offsets)
    for own, part in zip(items, parts, strict=True):
        assert found[part].astype(str).tolist() == tagger.tag(own)
        expected = [[tagger.marginal(str(c), t) for c in range(3)] for t in range(len(own))]
        np.testing.assert_allclose(node[part], expected, atol=1e-5)  # the weights are printed with six digits


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_gradient_of_conditional_likelihood_is_that_of_finite_differences(kind: str) -> None:
    examples = EXAMPLES[kind](4)
    rng = np.random.default_rng(4)
    objective = ConditionalObjective(examples, rng.normal(size=examples.n_weights), 0.3)
    point, h = rng.normal(size=examples.n_weights + 1), 1e-6
    _, gradient = objective(point)
    for k in range(len(point)):
        step = h * np.eye(len(point))[k]
        slope = (objective(point + step)[0] - objective(point - step)[0]) / (2 * h)
        assert slope == pytest.approx(gradient[k], rel=1e-5, abs=1e-6)


def test_conditional_likelihood_ends_where_the_gradient_vanishes_and_above_maximum_likelihood() -> None:
    examples = chain_sample(5, (3, 4, 2, 5, 3))
    reference = StructuredLikelihood().learn(examples).weights
    objective = ConditionalObjective(examples, reference, 0.1)
    result = StructuredConditional(0.1).learn(examples)
    assert -objective(objective.start)[0] < result.path[-1]
    assert list(result.path) == sorted(result.path)

    # The point (s, U) is found back: of all s the optimal one makes the gradient vanish.
    def slope(s: float) -> float:
        return float(np.abs(objective(np.concatenate([[s], result.weights - s * reference]))[1]).max())

    assert min(slope(s) for s in np.linspace(0.5, 2.0, 3001)) < 2e-3


# -- behaviour


@pytest.mark.parametrize(
    "learner", [StructuredHybrid(), StructuredMarkov(), StructuredMarkov(method="cuts"), StructuredConvex()], ids=str
)
def test_an_interrupt_keeps_the_best_so_far(learner: Any) -> None:
    def interrupt(_: Moment) -> None:
        raise KeyboardInterrupt

    examples = chain_sample(3, (3,) * 12, missing=0.5)
    found = learner.set_params(callback=interrupt).learn(examples)
    assert found.certificate.status.startswith("interrupted")
    assert found.certificate.objective >= found.certificate.bound
    assert np.isfinite(found.weights).all()


@pytest.mark.parametrize("learner", [StructuredHybrid(), StructuredMarkov(method="cuts"), StructuredConvex()], ids=str)
def test_an_interrupt_that_strikes_in_compiled_code_keeps_the_best_so_far(learner: Any) -> None:
    examples = chain_sample(3, (3,) * 12, missing=0.5)
    whole, calls = examples.decode, iter(range(4))

    def decode(*args: Any) -> Any:
        if next(calls, None) is None:
            raise SystemError("one") from _chained()
        return whole(*args)

    examples.decode = decode  # type: ignore[method-assign]
    assert learner.learn(examples).certificate.status.startswith("interrupted")


def _chained() -> SystemError:
    """As numba makes them: a SystemError that an interrupt caused."""
    error = SystemError("returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()
    return error


def test_an_interrupted_conditional_likelihood_keeps_the_best_so_far() -> None:
    seen: list[Moment] = []

    def interrupt(moment: Moment) -> None:
        seen.append(moment)
        if len(seen) == 3:
            raise KeyboardInterrupt

    examples = chain_sample(5, (3, 4, 2, 5, 3))
    found = StructuredConditional(callback=interrupt).learn(examples)
    assert found.path == tuple(m.objective for m in seen)
    whole = StructuredConditional().learn(examples)
    assert len(found.path) == 3 < len(whole.path)
    assert found.interrupted
    assert not whole.interrupted


def test_an_interrupt_of_what_the_literal_problem_starts_from_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    examples, whole = chain_sample(3, (3,) * 12, missing=0.5), StructuredMarkov.learn

    def cut_short(self: StructuredMarkov, examples: ChainExamples) -> WeightResult:
        return replace(whole(self, examples), status="interrupted")

    monkeypatch.setattr(StructuredMarkov, "learn", cut_short)
    assert StructuredConvex().learn(examples).interrupted


def test_the_callback_sees_objective_and_bound_close_in_on_each_other() -> None:
    seen: list[Moment] = []
    StructuredHybrid(callback=seen.append).learn(chain_sample(0, (4,) * 10))
    assert all(m.bound <= m.objective for m in seen)
    assert [m.objective for m in seen] == sorted((m.objective for m in seen), reverse=True)
    assert [m.gap for m in seen] == sorted((m.gap for m in seen), reverse=True)


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (StructuredHybrid(B=0), "B=0 must be a positive number"),
        (StructuredHybrid(target=-1), "target=-1 must be a positive number"),
        (StructuredHybrid(smoothing=0), "smoothing=0 must be a positive number"),
        (StructuredMarkov(C="1"), "C='1' must be a positive number"),
        (StructuredMarkov(method="qp"), "method='qp' is not known; choose one of 'multipliers', 'cuts'"),
        (StructuredConditional(l2=-0.1), "l2=-0.1 must be a number that is not negative"),
        (StructuredLikelihood(float("nan")), "smoothing=nan must be a number that is not negative"),
        (StructuredConvex(radius=0), "radius=0 must be a positive number"),
    ],
)
def test_amounts_that_make_no_sense_are_refused(learner: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        learner.learn(chain_sample(0))


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(
        ValueError, match="parameters='crf' is not known; choose one of 'ml', 'cl', 'mm-hybrid', 'mm-convex', 'm3n'"
    ):
        named_learner("crf", 1.0)
    assert named_learner("mm-hybrid", 0.5).smoothing == 0.5
