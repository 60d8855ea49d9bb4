"""Structures that are looked at one by one, in the search and in its check, against all of them."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes.kernels.branching import option_bound
from marginbayes.kernels.exact_list import best_listed
from marginbayes.structure.exact.learner import ExactMargin
from marginbayes.verification import CertificateError, verify
from marginbayes.verification.document import seal
from marginbayes.verification.exact_margin_bound import Margins, merged
from marginbayes.verification.exact_margin_list import best_unbounded
from tests.oracles import records
from tests.oracles.exact import acyclic_choices, all_structures, random_problem, soft_margin


def instance_of(seed: int, margin: str):
    schema, rows = random_problem(seed, [3, 2, 3, 2, 2], 40)
    learner = ExactMargin(margin, p=0.8)
    instance = learner._instance(schema, rows)
    claim = {"cardinalities": schema.cardinalities, "gamma": instance.gamma, "smoothing": 1.0, "margin": margin}
    margins = Margins(*merged(rows.codes.astype(np.int64), np.ones(len(rows)), schema.cardinalities), claim)
    return rows, instance, margins


def objectives(rows, instance, margin: str):
    """Soft margin of every structure, by its options."""
    return {
        tuple(instance.choice(parents)[1].tolist()): soft_margin(rows, parents, margin, instance.gamma)
        for parents in all_structures(instance.n_features)
    }


@pytest.mark.parametrize(("seed", "margin"), [(0, "sm"), (1, "sm"), (2, "sbm"), (3, "sbm")])
def test_both_lists_find_the_best_structure_that_multipliers_do_not_bound(seed: int, margin: str) -> None:
    rows, instance, margins = instance_of(seed, margin)
    known = objectives(rows, instance, margin)
    rng = np.random.default_rng(seed)
    sample = np.arange(margins.n_rows) // margins.rivals
    share = rng.random(margins.n_rows)
    share *= rng.random(len(margins.weights))[sample] / np.bincount(sample, share)[sample]
    used = margins.weights[sample] * share
    options = instance.root(0)
    values = margins.values(np.arange(margins.n_rows), used, np.arange(options.size)).reshape(options.shape)
    constant = instance.gamma * (margins.weights.sum() - used.sum()) + float(used @ margins.base(()))
    bounds = {c: constant + values[np.arange(len(c)), list(c)].sum() for c in acyclic_choices(options)}
    assert all(bounds[c] >= known[c] - 1e-9 for c in bounds)
    for cutoff in np.quantile(list(known.values()), [0.3, 0.9, 0.99, 1.0]) - 1e-9:
        best = max(known[c] for c in bounds if bounds[c] > cutoff)
        assert best_unbounded(margins, (), (constant, values), options, cutoff) == pytest.approx(max(cutoff, best))
        choice, reduced = np.empty(len(options), np.int64), np.empty(options.shape)
        budget = constant + option_bound(values, options, choice, reduced) - cutoff
        limit = instance.ceiling - cutoff
        arguments = (instance.data, instance.state(0), instance.gamma, reduced, budget, limit)
        loss = best_listed(*arguments, 10**6, choice)
        if best > cutoff:
            assert instance.ceiling - loss == pytest.approx(best)
            assert known[tuple(choice.tolist())] == pytest.approx(best)
        else:
            assert loss == np.inf
        assert best_listed(*arguments, 1, choice) == -1.0


def test_a_part_that_is_called_listed_is_looked_at_again() -> None:
    schema, rows = random_problem(4, [2, 2, 3, 2, 2, 2], 60)
    document = ExactMargin(p=0.7).learn(schema, rows).certificate.to_document()
    n_options = len(document["evidence"]["names"]) + 1
    columns = records.unpacked(document["evidence"]["proof"], n_options)
    assert columns["listed"]
    assert verify(document, rows.codes).gap <= 1e-6
    for listed, match in (([], "only the bound"), ([99], "a part that is listed")):
        other = {k: v for k, v in document.items() if k != "digest"}
        other["evidence"] = {**document["evidence"], "proof": records.packed({**columns, "listed": listed}, n_options)}
        with pytest.raises(CertificateError, match=match):
            verify(seal(other), rows.codes)


def test_a_poorer_structure_does_not_pass_for_the_best_because_all_were_looked_at() -> None:
    schema, rows = random_problem(4, [2, 2, 3, 2, 2, 2], 60)
    document = ExactMargin(p=0.7).learn(schema, rows).certificate.to_document()
    other = {k: v for k, v in document.items() if k != "digest"}
    other["evidence"] = {**document["evidence"], "parents": [[], [0], [0], [0], [0], [0]]}
    other["objective"] = soft_margin(rows, ((), (0,), (0,), (0,), (0,), (0,)), "sm", document["evidence"]["gamma"])
    other["bound"] = other["objective"] + 1e-9
    with pytest.raises(CertificateError, match="only the bound"):
        verify(seal(other), rows.codes)
