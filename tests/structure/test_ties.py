"""Ties are ties whatever the order of rows, the names of levels and the batches: no rounding decides them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from marginbayes import BayesNetClassifier
from marginbayes.data import Rows, Schema, Variable
from marginbayes.structure import KDB, ChowLiuTAN, Constraints, DependencyAnalysis, Greedy, StructureLearner

CARDS = (2, 3, 3, 3, 3)
SEEDS = range(40)
LEARNERS = [
    ChowLiuTAN(),
    ChowLiuTAN(constraints=Constraints(forbidden=[("e", "a")])),
    KDB(1),
    Greedy("cl", candidates=1),
    DependencyAnalysis(),
]


def with_a_twin(seed: int, n: int = 40) -> NDArray[np.int64]:
    """A class and four features, of which the second is the first with its levels renamed: it ties with it."""
    rng = np.random.default_rng(seed)
    y, a = rng.integers(0, 2, n), rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.6, a, rng.integers(0, 3, n))
    return np.array([y, b, (b + 1) % 3, a, np.where(rng.random(n) < 0.5, y, rng.integers(0, 3, n))])


def learned(learner: StructureLearner, codes: NDArray[np.int64], weights: NDArray[np.float64]) -> set[tuple[str, str]]:
    schema = Schema(tuple(Variable(name, tuple(range(card))) for name, card in zip("ybcae", CARDS, strict=True)))
    return set(learner.learn(schema, Rows(codes.astype(np.uint8), CARDS, weights)).dag.edges)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda x: " ".join(str(x).split()))
def test_the_order_of_rows_and_the_names_of_levels_do_not_change_the_graph(learner: StructureLearner) -> None:
    for seed in SEEDS:
        codes, rng = with_a_twin(seed), np.random.default_rng(seed)
        weights = rng.integers(1, 4, codes.shape[1]) * 0.1
        shuffled = rng.permutation(codes.shape[1])
        expected = learned(learner, codes, weights)
        assert learned(learner, codes[:, shuffled], weights[shuffled]) == expected
        renamed = np.concatenate([codes[:1], (codes[1:] + 1) % 3])
        assert learned(learner, renamed, weights) == expected


def test_a_feature_and_its_twin_tie_and_the_one_further_left_is_the_parent() -> None:
    for seed in SEEDS:
        edges = learned(ChowLiuTAN(root="a"), with_a_twin(seed), np.ones(40))
        assert ("c", "a") not in edges
        assert ("a", "c") not in edges


def test_batches_do_not_change_the_tree() -> None:
    for seed in SEEDS:
        codes = with_a_twin(seed)
        X, y = pd.DataFrame(np.array(list("uvw"))[codes[1:]].T, columns=list("bcae")), codes[0]
        whole, stream = BayesNetClassifier("tan").fit(X, y), BayesNetClassifier("tan")
        for part in np.array_split(np.arange(len(y)), 2):
            stream.partial_fit(X.iloc[part], y[part], classes=[0, 1])
        assert set(stream.dag_.edges) == set(whole.dag_.edges)
