"""Ctrl-C while what was learned is normalised: nothing of it is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from marginbayes import BayesNetClassifier, Dag
from marginbayes.network.likeliest import likeliest
from marginbayes.parameters import ConditionalLikelihood
from marginbayes.sequence import MultiLabelClassifier, SequenceLabeler
from marginbayes.sequence.likeliest import likeliest_chain, likeliest_tree
from marginbayes.solvers import lbfgs as module
from tests.oracles.brute import random_network
from tests.oracles.labellings import chain_sample, tree_sample

RNG = np.random.default_rng(0)
X, Y, IDS = RNG.integers(0, 3, (60, 4)).astype(str), RNG.integers(0, 3, 60), np.repeat(np.arange(12), 5)


@pytest.fixture(params=[0, 3], ids=["as it begins", "at its third evaluation"])
def pressed(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the search for the likeliest tables, and there alone."""
    search = module.lbfgs

    def interrupted(objective: Callable[[Any], Any], start: Any, **options: Any) -> Any:
        asked = 0

        def evaluate(point: Any) -> Any:
            nonlocal asked
            asked += 1
            if asked == request.param:
                signal.raise_signal(signal.SIGINT)
            return objective(point)

        if request.param == 0:
            signal.raise_signal(signal.SIGINT)
        return search(evaluate, start, **options)

    monkeypatch.setattr(module, "lbfgs", interrupted)


@pytest.mark.usefixtures("pressed")
@pytest.mark.parametrize(
    "learner",
    ["cl", "m3n", "mm-convex", "mm-combine", ConditionalLikelihood(tune={"l2": [1.0, 10.0]})],
    ids=["cl", "m3n", "mm-convex", "mm-combine", "tuned"],
)
def test_a_network_whose_normalisation_is_interrupted_is_kept_and_says_so(learner: Any) -> None:
    with pytest.warns(UserWarning, match="interrupted"):
        classifier = BayesNetClassifier("nb", learner).fit(X, Y)
    assert classifier.parameter_result_.interrupted
    for table in classifier.network_.tables:
        np.testing.assert_allclose(np.exp(table).sum(axis=-1), 1.0, atol=1e-9)


@pytest.mark.usefixtures("pressed")
@pytest.mark.parametrize("learner", ["cl", "m3n", "mm-convex"])
def test_labels_whose_normalisation_is_interrupted_are_kept_and_say_so(learner: str) -> None:
    with pytest.warns(UserWarning, match="interrupted"):
        labeler = SequenceLabeler(parameters=learner).fit(X, Y, sequence=IDS)
    with pytest.warns(UserWarning, match="interrupted"):
        several = MultiLabelClassifier(learner).fit(X, np.column_stack([Y, Y > 1]))
    for fitted in (labeler, several):
        assert fitted.parameter_result_.interrupted
        assert fitted.model_.rows.are_proper(fitted.weights_)


@pytest.mark.usefixtures("pressed")
def test_what_is_interrupted_is_no_less_likely_than_plain_tables() -> None:
    network = random_network(np.random.default_rng(0), Dag.naive(list("yabc")), (2, 3, 3, 2))
    tables = [t + np.random.default_rng(1).normal(size=t.shape) for t in network.tables]
    found = likeliest(network, tables)
    assert found.interrupted
    assert found.gain >= 0.0
    chains, trees = chain_sample(2, (3, 5, 2, 4)), tree_sample(4, 12)
    weights = np.random.default_rng(0).normal(0, 2, chains.model.n_weights)
    assert likeliest_chain(chains, weights, 3.5).interrupted
    assert likeliest_tree(trees, np.random.default_rng(0).normal(0, 2, trees.model.n_weights)).interrupted
