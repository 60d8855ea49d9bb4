"""Margin and number of parents by validation: the grid, the splits, the choice, and the start that solves share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from marginbayes.data import Rows, Schema
from marginbayes.parameters import MaximumLikelihood
from marginbayes.parameters.folds import usual_split
from marginbayes.structure import Constraints
from marginbayes.structure.base import StructureResult
from marginbayes.structure.exact import tuning
from marginbayes.structure.exact.general import learn_general
from marginbayes.structure.exact.tuning import FEW_ROWS, GRID, MarginTrial, TunedMargin
from marginbayes.verification import verify
from tests.oracles.structure import bundled, random_rows


@dataclass
class Recorded:
    """A solver of one point of the grid that puts on record what it was asked."""

    settings: dict[str, Any]
    calls: list[dict[str, Any]]

    def check(self) -> None:
        """Every setting is taken."""

    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        self.calls.append({**self.settings, "rows": rows})
        gamma = math.log(self.settings["p"] / (1 - self.settings["p"]))
        limit, gap = self.settings["limit"], self.settings["gap"]
        return learn_general(schema, rows, gamma=gamma, k=self.settings["k"], time_limit=limit, gap=gap)


class Tuned(TunedMargin):
    """Tuning with that solver."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.calls: list[dict[str, Any]] = []

    def solver(self, k: int, p: float, limit: float | None, gap: float, start: Any) -> Recorded:  # type: ignore[override]
        return Recorded({"k": k, "p": p, "limit": limit, "gap": gap, "start": start}, self.calls)


def settings(**changes: Any) -> dict[str, Any]:
    return {"k": (0, 1), "p": (0.6, 0.9), "cv": 3, **changes}


def test_the_grid_is_that_of_the_paper() -> None:
    assert GRID == (0.501, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
    assert TunedMargin().p == GRID
    assert tuple(TunedMargin().k) == (0, 1)


def test_every_pair_is_judged_by_held_out_accuracy_and_the_best_is_solved_on_all_rows() -> None:
    schema, rows = bundled("wine", range(3), n=60)
    tuned = Tuned(**settings())
    found = tuned.learn(schema, rows)
    assert [(t.k, t.p) for t in found.trials] == [(0, 0.6), (0, 0.9), (1, 0.6), (1, 0.9)]
    best = max(found.trials, key=lambda t: (round(t.accuracy, 9), -t.k))
    assert found.chosen == best
    last = tuned.calls[-1]
    assert (last["k"], last["p"], len(last["rows"])) == (best.k, best.p, 60)
    assert (last["limit"], last["gap"]) == (None, 1e-6)
    assert found.score == learn_general(schema, rows, gamma=best.gamma, k=best.k).score
    assert found.certificate.status == "optimal"


def test_the_accuracy_of_a_trial_is_that_of_its_networks_on_the_held_out_rows() -> None:
    schema, rows = bundled("wine", range(3), n=60)
    tuned = Tuned(**settings(k=(1,), p=(0.9,)))
    trial = tuned.learn(schema, rows).trials[0]
    rates = []
    for call in tuned.calls[:-1]:
        train = call["rows"]
        # What was not trained on: rows may repeat, so they are counted.
        left = _without(rows, train)
        dag = learn_general(schema, train, gamma=trial.gamma, k=1, gap=tuned.tuning_gap).dag
        network = MaximumLikelihood(1.0).learn(schema, dag, train).network
        rates.append((network.log_joint(left).argmax(axis=1) == left.codes[0]).mean())
    assert trial.accuracy == pytest.approx(np.mean(rates))


def _without(rows: Rows, some: Rows) -> Rows:
    gone = [tuple(line) for line in some.codes.T]
    kept = []
    for i, line in enumerate(map(tuple, rows.codes.T)):
        if line in gone:
            gone.remove(line)
        else:
            kept.append(i)
    return rows.take(np.array(kept))


def test_short_solves_start_from_the_one_before_on_the_same_rows() -> None:
    schema, rows = random_rows(0, n=45, features=3)
    tuned = Tuned(**settings(cv=2, tuning_limit=3.0, tuning_gap=0.01))
    tuned.learn(schema, rows)
    short = tuned.calls[:-1]
    assert len(short) == 2 * 2 * 2
    assert all((c["limit"], c["gap"]) == (3.0, 0.01) for c in short)
    assert all((c["start"] is None) == (c["p"] == 0.6) for c in short)
    assert tuned.calls[-1]["start"] is not None


def test_equal_accuracies_go_to_fewer_parents_and_to_the_first_p_whatever_their_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates = [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]  # of which the second sum is the greater one, by rounding
    assert np.mean(rates[1]) > np.mean(rates[0])
    schema, rows = random_rows(0, n=45, features=3)
    for k, p in (((0, 1), (0.6,)), ((1, 0), (0.6,)), ((0,), (0.6, 0.9)), ((0,), (0.9, 0.6))):
        fewer_first = rates if k != (1, 0) else rates[::-1]
        left = iter([rate for trial in fewer_first for rate in trial])
        monkeypatch.setattr(tuning, "held_out_rates", lambda *_, left=left: np.array([next(left)]))
        chosen = Tuned(**settings(k=k, p=p)).learn(schema, rows).chosen
        assert (chosen.k, chosen.p) == (0, p[0])


def test_few_rows_are_dealt_into_five_folds_and_of_many_a_fifth_is_held_out() -> None:
    _, rows = random_rows(1, n=50, features=2)
    assert [len(a) + len(b) for a, b in usual_split(rows, None, None, 0, FEW_ROWS)] == [50] * 5
    many = Rows(np.tile(rows.codes, 30), rows.cardinalities)
    ((train, test),) = usual_split(many, None, None, 0, FEW_ROWS)
    assert (len(train), len(test)) == (1200, 300)
    ((train, test),) = usual_split(rows, None, 0.5, 0, FEW_ROWS)
    assert (len(train), len(test)) == (25, 25)


def test_the_exact_learner_is_tuned_and_its_certificate_holds() -> None:
    schema, rows = random_rows(5, n=60, features=4)
    found = TunedMargin(p=(0.7, 0.95), cv=3).learn(schema, rows)
    assert len(found.trials) == 4
    expected = learn_general(schema, rows, gamma=found.chosen.gamma, k=found.chosen.k)
    assert found.score == pytest.approx(expected.score, abs=1e-5)
    verify(found.certificate.to_document(), rows.codes)


def test_the_class_may_have_as_many_parents_as_a_feature() -> None:
    tuned = TunedMargin(class_parents="k+1", n_jobs=1)
    for k in (0, 1):
        solver = tuned.solver(k, 0.9, None, 1e-6, None)
        assert (solver.class_parents, solver.n_jobs) == (k + 1, 1)
    with pytest.raises(ValueError, match="class_parents"):
        TunedMargin(class_parents="k").learn(*random_rows(5, n=30, features=3))


def test_an_interruption_chooses_among_what_was_tried() -> None:
    schema, rows = random_rows(3, n=40, features=3)

    class Impatient(Tuned):
        def solver(self, *words: Any) -> Recorded:
            if len(self.calls) == 5:
                self.calls.append({})
                raise KeyboardInterrupt
            return super().solver(*words)

    tuned = Impatient(**settings(cv=2))
    found = tuned.learn(schema, rows)
    assert found.status == "interrupted"
    assert [(t.k, t.p) for t in found.trials] == [(0, 0.6), (0, 0.9)]
    assert found.chosen in found.trials
    assert tuned.calls[-1]["limit"] == tuned.tuning_limit


def test_a_trial_knows_its_margin() -> None:
    assert MarginTrial(1, 0.9, 0.5, 0.0, 0.0).gamma == pytest.approx(math.log(9))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"p": (0.5,)}, "p=0.5 must be above 0.5 and below 1"),
        ({"p": ()}, r"p=\(\) should be a list of what to try"),
        ({"k": 1}, "k=1 should be a list of what to try"),
        ({"holdout": 0.2}, "cv=3 and holdout=0.2 exclude each other"),
        ({"cv": 1}, "cv=1 must be a whole number, at least 2, or None"),
        ({"cv": None, "holdout": 0.9}, "holdout=0.9 must be above 0 and at most a half"),
    ],
)
def test_what_cannot_be_tried_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Tuned(**settings(**changes)).learn(*random_rows(0, n=30, features=2))


def test_a_required_parent_of_the_class_is_no_feature_parent() -> None:
    schema, rows = random_rows(5, n=40, features=3)
    above = Constraints(required=[("v1", "v0")])
    tuned = TunedMargin(p=(0.8,), class_parents=1, cv=2, constraints=above)
    assert {trial.k for trial in tuned.learn(schema, rows).trials} == {0, 1}
    below = Constraints(required=[("v1", "v2")])
    assert {trial.k for trial in tuned.set_params(constraints=below).learn(schema, rows).trials} == {1}
