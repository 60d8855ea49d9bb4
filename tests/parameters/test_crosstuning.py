"""Early stopping by cross tuning, against a loop that is written out."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes import Dag, Network
from marginbayes.data import Rows
from marginbayes.parameters import ConditionalLikelihood, ParameterLearner, crosstuning
from marginbayes.parameters.folds import deal, in_folds, usual_split
from marginbayes.parameters.gradient import MarginGradient
from tests.oracles.brute import random_network

TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))


def problem(seed: int) -> tuple[Network, Rows]:
    rng = np.random.default_rng(seed)
    network = random_network(rng, TAN, (3, 2, 3, 4))
    return network, network.sample(90, rng)


def learned(learner: ParameterLearner, network: Network, rows: Rows, steps: int) -> Network:
    """The network after exactly so many steps: a descent that may take no more."""
    return learner.set_params(max_iter=steps, early_stopping=None).learn(network.schema, TAN, rows).network


def held_out_loss(learner: ParameterLearner, network: Network, rows: Rows, score: str) -> float:
    joint = network.log_joint(rows.take(np.arange(len(rows))))
    own = joint[np.arange(len(rows)), rows.codes[0]]
    if score == "cv-accuracy":
        return float((joint.argmax(axis=1) != rows.codes[0]).mean())
    if isinstance(learner, ConditionalLikelihood):
        return float((np.logaddexp.reduce(joint, axis=1) - own).sum())
    rivals = joint.copy()
    rivals[np.arange(len(rows)), rows.codes[0]] = -np.inf
    t = (own - np.logaddexp.reduce(rivals, axis=1)) / learner.target
    return float(np.where(t <= 0, 0.5 - t, 0.5 * np.clip(1 - t, 0, None) ** 2).sum())


@pytest.mark.parametrize("score", ["cv", "cv-accuracy"])
@pytest.mark.parametrize("form", ["concave", "softmax"])
@pytest.mark.parametrize("kind", [ConditionalLikelihood, MarginGradient])
def test_it_takes_the_average_of_the_steps_that_do_best_on_held_out_rows(kind: type, form: str, score: str) -> None:
    network, rows = problem(0)
    most = 8
    choices = {"l2": 0.0, "form": form, "random_state": 3, "normalize": "plain"}
    result = kind(**choices, max_iter=most, early_stopping=score).learn(network.schema, TAN, rows)
    best = []
    for train, test in in_folds(rows, 5, 3):
        losses = [
            held_out_loss(kind(), learned(kind(**choices), network, train, steps), test, score)
            for steps in range(most + 1)
        ]
        best.append(int(np.argmin(np.round(losses, 9))))
    steps = round(np.mean(best))
    assert len(result.path) == steps
    expected = learned(kind(**choices), network, rows, steps)
    for a, b in zip(result.network.tables, expected.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_without_shrinkage_it_stops_before_the_optimum() -> None:
    rng = np.random.default_rng(1)
    drawn = random_network(rng, Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 1, 2))), (2, 4, 4, 4))
    rows, naive = drawn.sample(300, rng), Dag.naive(list("yabc"))
    choices = {"l2": 0.0, "random_state": 0, "max_iter": 60}
    stopped = ConditionalLikelihood(**choices, early_stopping="cv").learn(drawn.schema, naive, rows)
    whole = ConditionalLikelihood(**choices).learn(drawn.schema, naive, rows)
    assert 0 < len(stopped.path) < len(whole.path)
    assert stopped.path[-1] < whole.path[-1]


@pytest.mark.parametrize("solver", ["lbfgs", "cg"])
def test_a_fold_ends_when_its_best_step_is_long_past(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, rows = problem(0)
    folds: list[tuple[object, list[float]]] = []

    def noted(judge: object, *others: object) -> float:
        if not folds or folds[-1][0] is not judge:
            folds.append((judge, []))
        folds[-1][1].append(judged(judge, *others))
        return folds[-1][1][-1]

    judged = crosstuning._judged
    monkeypatch.setattr(crosstuning, "_judged", noted)
    monkeypatch.setattr(crosstuning, "PATIENCE", 5)
    choices = {"l2": 0.0, "form": "softmax", "random_state": 3, "solver": solver}
    result = ConditionalLikelihood(**choices, early_stopping="cv").learn(network.schema, TAN, rows)
    best = [int(np.argmin(values)) for _, values in folds]
    assert [len(values) - 1 - step for step, (_, values) in zip(best, folds, strict=True)] == [max(5, b) for b in best]
    assert len(folds) == 5
    assert len(result.path) == round(np.mean(best))


def test_every_fold_has_its_share_of_every_class() -> None:
    _, rows = problem(2)
    part = deal(rows, 5, 0)
    for label in range(3):
        counts = np.bincount(part[rows.codes[0] == label], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert sum(len(test) for _, test in in_folds(rows, 5, 0)) == len(rows)
    assert len(usual_split(rows, None, 0.2, 0, 1000)) == 1


def test_too_few_rows_for_the_folds_are_refused() -> None:
    network, rows = problem(3)
    with pytest.raises(ValueError, match="3 rows cannot be dealt into 5 parts"):
        ConditionalLikelihood(early_stopping="cv").learn(network.schema, TAN, rows.take(np.arange(3)))


def test_interrupting_a_fold_ends_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from marginbayes.parameters import descent

    network, rows = problem(4)
    calls = []

    def interrupted(*args: object, **kwargs: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    original = descent.lbfgs
    monkeypatch.setattr(descent, "lbfgs", interrupted)
    result = ConditionalLikelihood(early_stopping="cv", random_state=0, max_iter=20).learn(network.schema, TAN, rows)
    assert result.status == "interrupted"
    assert len(calls) == 3  # one fold, the interrupted one, and all rows
    assert result.network.normalized
