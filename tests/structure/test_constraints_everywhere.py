"""Every structure learner of the library takes constraints and obeys them."""

from __future__ import annotations

from inspect import isabstract

import numpy as np
import pytest
from sklearn.base import clone

from marginbayes import structure
from marginbayes.structure import (
    KDB,
    BackwardJoin,
    ChowLiuTAN,
    Constraints,
    DependencyAnalysis,
    ExactMargin,
    ExactScore,
    Fixed,
    ForwardJoin,
    Greedy,
    LocalSearch,
    NaiveBayes,
    OrderBased,
    SelectiveNaiveBayes,
    StructureLearner,
    SuperParent,
    TunedMargin,
)
from marginbayes.verification import verify
from tests.oracles.structure import random_rows
from tests.structure.test_constraints import obeys, random_constraints

LEARNERS = [
    NaiveBayes(),
    ChowLiuTAN(),
    KDB(1),
    Greedy("sm"),
    SuperParent("cr"),
    OrderBased("mi", "cr"),
    OrderBased("mi", "cr", inner_parameters="cl"),
    *(LocalSearch("sm", method, max_iter=3, random_state=0) for method in ("hc", "ils", "sa")),
    ForwardJoin(),
    BackwardJoin(),
    SelectiveNaiveBayes(),
    DependencyAnalysis(0.0, alpha=None),
    ExactScore("bic"),
    ExactScore("bic", class_parents=1),
    ExactScore("bic", max_parents=2),
    ExactMargin("sm", node_limit=8),
    ExactMargin("sbm", class_parents=1, node_limit=8),
    TunedMargin(p=(0.6, 0.9), cv=2, tuning_limit=0.1, time_limit=0.1),
]


def fitting(given: Constraints, learner: StructureLearner) -> Constraints:
    """As much of it as networks of this kind can obey."""
    if isinstance(learner, (NaiveBayes, SelectiveNaiveBayes)):  # no edges between features
        required = given.required[:0]
    elif isinstance(learner, (ForwardJoin, BackwardJoin)):  # what required edges link is one group, of two here
        required = given.required[:1]
    else:
        required = given.required
    return Constraints(required, given.forbidden, given.tiers, given.keep)


def test_no_learner_is_left_out() -> None:
    known = [getattr(structure, name) for name in structure.__all__]
    public = {c for c in known if isinstance(c, type) and issubclass(c, StructureLearner) and not isabstract(c)}
    assert {type(learner) for learner in LEARNERS} == public - {Fixed}  # a graph that is given obeys nobody else


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda x: " ".join(str(x).split()))
def test_a_learner_obeys(learner: StructureLearner) -> None:
    for seed in range(4):
        schema, rows = random_rows(seed, n=50)
        given = fitting(random_constraints(np.random.default_rng(seed), 1, drop=seed == 3), learner)
        dag = clone(learner).set_params(constraints=given).learn(schema, rows).dag
        joined = {(a, b) for edge in dag.edges for a, b in (edge, edge[::-1])}
        assert obeys(dag, Constraints(given.required, given.forbidden, given.tiers))
        # Where the class may have parents, a feature is kept if it is a neighbour of the class.
        assert all(("v0", name) in joined for name in given.keep)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda x: " ".join(str(x).split()))
@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Constraints(required=[("v1", "v2")], forbidden=[("v1", "v2")]), "'v1' -> 'v2' is both required and forbidden"),
        (Constraints(required=[("v1", "v2"), ("v2", "v1")]), "v1 -> v2|v2 -> v1"),
        (Constraints(keep=["nobody"]), "'nobody'"),
    ],
)
def test_a_learner_refuses_a_contradiction(learner: StructureLearner, given: Constraints, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        clone(learner).set_params(constraints=given).learn(*random_rows(0, n=50))


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_what_are_no_constraints_is_refused_in_a_sentence(learner: StructureLearner) -> None:
    schema, rows = random_rows(1, n=40, features=3)
    for wrong in ([("a", "b")], {"required": [("a", "b")]}):
        with pytest.raises(ValueError, match=r"constraints=.* must be Constraints"):
            clone(learner).set_params(constraints=wrong).learn(schema, rows)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda x: " ".join(str(x).split()))
def test_what_is_always_so_may_be_said(learner: StructureLearner) -> None:
    schema, rows = random_rows(2, n=50)
    plain = clone(learner).set_params(constraints=Constraints()).learn(schema, rows)
    vacuous = Constraints(forbidden=[(name, name) for name in schema.names], keep=["v0"])
    found = clone(learner).set_params(constraints=vacuous).learn(schema, rows)
    assert found.dag == plain.dag
    if found.certificate is not None:
        verify(found.certificate.to_document(), rows.codes)
