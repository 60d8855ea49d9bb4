from __future__ import annotations

import pytest
from sklearn.datasets import load_iris

from marginbayes import BayesNetClassifier
from marginbayes.structure import STRUCTURE_NAMES, Greedy, LocalSearch, OrderBased, SuperParent, named_structure


@pytest.mark.parametrize("name", STRUCTURE_NAMES)
def test_every_short_name_learns_and_classifies(name: str) -> None:
    X, y = load_iris(return_X_y=True)
    assert BayesNetClassifier(name, random_state=0).fit(X, y).score(X, y) > 0.9


def test_a_name_says_order_score_and_number_of_parents() -> None:
    found = named_structure("3tree-omisp-cl", random_state=5)
    assert isinstance(found, OrderBased)
    assert (found.order, found.score, found.k, found.random_state) == ("mi_sp", "cl", 3, 5)
    found = named_structure("2tree-sbm")
    assert isinstance(found, Greedy)
    assert (found.score, found.k) == ("sbm", 2)
    assert isinstance(named_structure("4tree-superparent"), SuperParent)
    found = named_structure("tan-sm-search")
    assert isinstance(found, LocalSearch)
    assert (found.score, found.method, found.k) == ("sm", "ils", 1)


@pytest.mark.parametrize("name", STRUCTURE_NAMES)
def test_every_learner_that_takes_a_seed_is_given_it(name: str) -> None:
    assert named_structure(name, random_state=7).get_params().get("random_state", 7) == 7


def test_a_name_with_folds_repeats_by_the_seed_of_the_classifier() -> None:
    classifier = BayesNetClassifier("tan-cl", random_state=3).set_params(structure__selection="cv")
    assert classifier.structure.random_state == 3  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["", "tree", "0tree-cr", "tan-omi-superparent", "tan-omi-cr-search", "tan-xx", "kdb0"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not known; say for instance"):
        named_structure(name)
