"""Every number that a learner takes: nonsense is refused in one sentence, NumPy's numbers work like Python's."""

from __future__ import annotations

import inspect
import math
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import marginbayes
from marginbayes import parameters, sequence, structure
from marginbayes.data import Rows, Schema, Variable
from marginbayes.graph import Dag

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 24)
CODES = np.array([LABELS, *(np.where(RNG.random(24) < 0.8, LABELS, 1 - LABELS) for _ in range(2))], np.uint8)
SCHEMA = Schema(tuple(Variable(name, (0, 1)) for name in "yab"))
DAG = Dag(SCHEMA.names, ((), (0,), (0, 1)))
NEEDED = {"Tuned": {"learner": parameters.MaximumLikelihood(), "grid": {"smoothing": [1.0, 0.1]}}}
# Any value says whether to tell the progress; a sequence may also be named.
OTHERS = {"verbose", "sequence"}
NONSENSE = ("text", math.nan, True, -1)


def learners() -> list[type[BaseEstimator]]:
    """All public learners and classifiers with a number among their parameters."""
    modules: list[ModuleType] = [structure, parameters, sequence, marginbayes]
    found = {getattr(module, name) for module in modules for name in module.__all__}
    kinds = [f for f in found if inspect.isclass(f) and issubclass(f, BaseEstimator) and not inspect.isabstract(f)]
    return [kind for kind in sorted(kinds, key=lambda kind: kind.__name__) if numbers(kind)]


def numbers(kind: type[BaseEstimator]) -> dict[str, Any]:
    """Names and defaults of the parameters that are numbers."""
    known = inspect.signature(kind).parameters.values()
    return {
        p.name: p.default for p in known if re.search(r"\b(int|float)\b", str(p.annotation)) and p.name not in OTHERS
    }


def learn(learner: Any) -> object:
    """What the learner learns from a few rows."""
    features = CODES[1:].T.astype(float)
    if isinstance(learner, structure.StructureLearner):
        return learner.learn(SCHEMA, Rows(CODES, (2, 2, 2)))
    if isinstance(learner, parameters.ParameterLearner):
        return learner.learn(SCHEMA, DAG, Rows(CODES, (2, 2, 2)))
    if isinstance(learner, sequence.WeightLearner):
        model, offsets = sequence.ChainModel(2, (2, 2)), np.arange(0, 25, 4)
        cells = model.cells(CODES[1:].astype(np.int64), offsets)
        return learner.learn(sequence.ChainExamples(model, cells, offsets, LABELS, np.ones(6)))
    return learner.fit(features, LABELS)


def made(kind: type[BaseEstimator], **settings: Any) -> BaseEstimator:
    return kind(**{**NEEDED.get(kind.__name__, {}), **settings})


@pytest.mark.parametrize(
    ("kind", "name"), [pytest.param(k, name, id=f"{k.__name__}-{name}") for k in learners() for name in numbers(k)]
)
def test_nonsense_is_refused_with_its_name_and_value_before_any_work(kind: type[BaseEstimator], name: str) -> None:
    for value in NONSENSE[: 3 if name == "n_jobs" else 4]:  # joblib counts from the end, too
        with pytest.raises(ValueError, match=rf"^{name}={re.escape(repr(value))} (must|should) be "):
            learn(made(kind, **{name: value}))


@pytest.mark.parametrize("kind", learners(), ids=lambda kind: kind.__name__)
def test_numbers_of_numpy_give_what_those_of_python_give(kind: type[BaseEstimator]) -> None:
    own = {int: np.int64, float: np.float32}
    defaults = {**numbers(kind), **({"random_state": 0} if "random_state" in numbers(kind) else {})}
    settings = {name: own[type(value)](value) for name, value in defaults.items() if type(value) in own}
    plain = {name: value.item() for name, value in settings.items()}
    found, expected = learn(made(kind, **settings)), learn(made(kind, **plain))
    np.testing.assert_allclose(answer(found), answer(expected), rtol=1e-5, atol=1e-6)


def answer(found: Any) -> Any:
    """What was learned, as numbers."""
    if isinstance(found, structure.StructureResult):
        return [len(found.dag.parents), *(1 + p for own in found.dag.parents for p in (*own, -1))]
    if isinstance(found, parameters.ParameterResult):
        return np.concatenate([np.exp(table).ravel() for table in found.network.tables])
    if isinstance(found, sequence.WeightResult):
        return found.weights
    features = CODES[1:].T.astype(float)
    return found.transform(features) if hasattr(found, "transform") else found.predict_proba(features)
