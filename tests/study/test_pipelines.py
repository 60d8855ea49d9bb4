from __future__ import annotations

import pytest
from sklearn.model_selection import GridSearchCV

from marginbayes import datasets
from marginbayes.study.methods import build, validated
from marginbayes.study.pipelines import LastStepSearch, is_about_last_step
from marginbayes.study.protocol import validation_folds

GRID = {"svc__gamma": [0.03125, 0.5, 8.0], "svc__C": [0.125, 1.0, 32.0]}


@pytest.mark.parametrize("inputs", ["levels", "raw"])
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_it_finds_what_the_search_of_scikit_learn_finds(name: str, inputs: str) -> None:
    data = datasets.load(name)
    X, y = data.X, data.y.to_numpy()
    machine, folds = build({"estimator": "svm", "inputs": inputs}, 0), validation_folds(y, 0)
    ours = LastStepSearch(machine, GRID, folds).fit(X, y)
    theirs = GridSearchCV(machine, GRID, scoring="accuracy", cv=folds).fit(X, y)
    # Rates that differ by rounding alone are equal here, so only the rate of what is chosen must agree.
    chosen = theirs.cv_results_["params"].index(ours.best_params_)
    assert theirs.cv_results_["mean_test_score"][chosen] == pytest.approx(theirs.best_score_, abs=1e-12)
    assert (ours.predict(X) == machine.set_params(**ours.best_params_).fit(X, y).predict(X)).all()


def test_it_is_used_for_the_last_step_of_a_pipeline_alone() -> None:
    labels = datasets.load("iris").y.to_numpy()
    machine = build({"estimator": "svm"}, 0)
    assert isinstance(validated(machine, {"grid": GRID}, labels, 0), LastStepSearch)
    assert not is_about_last_step(machine, {"columntransformer__n_jobs": [1]})
    network = build({"structure": "nb"}, 0)
    assert isinstance(validated(network, {"grid": {"smoothing": [0.5, 1.0]}}, labels, 0), GridSearchCV)
