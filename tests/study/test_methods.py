"""Estimators of studies."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pandas", reason="studies are about tables")

from marginbayes import datasets
from marginbayes.parameters import ConditionalLikelihood, MarginConvex
from marginbayes.study.methods import build

CL = {"early_stopping": "cv", "l2": 0.0, "pool": False, "form": "softmax", "solver": "cg", "kind": "floor"}


def test_a_method_with_folds_of_its_own_learns_the_same_twice() -> None:
    data = datasets.load("wine")
    options = {"structure": "nb", "parameters": "ConditionalLikelihood", "parameters_options": CL}
    one, two, other = (build(options, seed).fit(data.X, data.y) for seed in (3, 3, 4))
    assert one.parameters.random_state == 3
    np.testing.assert_array_equal(one.predict_proba(data.X), two.predict_proba(data.X))
    assert len({len(clf.parameter_result_.path) for clf in (one, other)}) == 2  # another seed, other folds


def test_a_seed_that_a_study_gives_stays() -> None:
    options = {"parameters": "ConditionalLikelihood", "parameters_options": {"random_state": 7}}
    assert build(options, 3).parameters.random_state == 7


def test_candidates_of_a_search_are_trained_by_the_learner_that_is_named() -> None:
    inner = {"learner": "ConditionalLikelihood", "max_iter": 3}
    made = build({"structure": "OrderBased", "structure_options": {"inner_parameters": inner}}, 5).structure
    assert isinstance(made.inner_parameters, ConditionalLikelihood)
    assert (made.inner_parameters.max_iter, made.inner_parameters.random_state) == (3, 5)


def test_members_of_a_combination_are_learned_by_the_base_that_is_named() -> None:
    options = {"n_parts": 2, "base": {"learner": "MarginConvex", "B": 3.0}}
    made = build({"parameters": "ConvexCombination", "parameters_options": options}, 5).parameters
    assert isinstance(made.base, MarginConvex)
    assert (made.base.B, made.base.random_state, made.random_state) == (3.0, 5, 5)
    with pytest.raises(ValueError, match="base lacks its learner"):
        build({"parameters": "ConvexCombination", "parameters_options": {"base": {"B": 3.0}}}, 5)
