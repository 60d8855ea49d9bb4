"""Estimators from what a study says of a method."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder
from sklearn.svm import SVC

from marginbayes import AODEClassifier, BayesNetClassifier, MDLPDiscretizer, parameters, structure
from marginbayes.datasets import synthetic
from marginbayes.study.pipelines import LastStepSearch, is_about_last_step
from marginbayes.study.protocol import validation_folds

__all__ = ["build", "validated"]

Options = Mapping[str, Any]


def build(options: Options, seed: int) -> Any:
    """The estimator of a method, not tuned yet.

    ``estimator`` is "bayesnet" (the default), "aode" or "svm". A network's ``structure`` and ``parameters`` are the
    short names of the library, the name of a learner's class with its arguments in ``structure_options`` and
    ``parameters_options`` (an ``inner_parameters`` or a ``base`` among them names its ``learner`` and has its arguments
    beside it), or ``dag:NAME`` for a graph that generated data. A support vector machine sees numbers as
    they are, or with ``inputs = "levels"`` as they are discretised.
    """
    makers = {"bayesnet": _bayesnet, "aode": _aode, "svm": _svm}
    kind = options.get("estimator", "bayesnet")
    if kind not in makers:
        raise ValueError(f"estimator = {kind!r} is not known to studies; say {', '.join(map(repr, makers))}")
    return makers[kind](options, seed)


def validated(estimator: Any, options: Options, labels: Any, seed: int) -> Any:
    """The estimator, with a search of the method's grid around it where it has one.

    The choice is made as in the papers: by a fifth of the training rows where there are more than 1000, else by five
    folds; the same rows for every method.
    """
    grid = options.get("grid")
    if grid is None:
        return estimator
    folds = validation_folds(labels, seed)
    if is_about_last_step(estimator, grid):
        return LastStepSearch(estimator, grid, folds)
    return GridSearchCV(estimator, grid, scoring="accuracy", cv=folds, error_score="raise", refit=True)


def _bayesnet(options: Options, seed: int) -> BayesNetClassifier:
    return BayesNetClassifier(
        _structure(options.get("structure", "tan"), options.get("structure_options", {}), seed),
        _learner(options.get("parameters", "ml"), options.get("parameters_options", {}), parameters, seed),
        smoothing=options.get("smoothing", 1.0),
        discretizer=options.get("discretizer", "mdlp"),
        missing=options.get("missing", "available"),
        random_state=seed,
    )


def _structure(name: str, options: Options, seed: int) -> Any:
    if name.startswith("dag:"):
        return getattr(synthetic, name.removeprefix("dag:"))
    return _learner(name, options, structure, seed)


def _with_inner(options: Options, seed: int) -> Options:
    """The arguments of a learner, with learners of tables among them made from their entries."""
    made = {}
    for name in ("inner_parameters", "base"):
        inner = options.get(name)
        if isinstance(inner, Mapping):
            if "learner" not in inner:
                raise ValueError(f"{name} lacks its learner, such as 'ConditionalLikelihood'")
            own = {key: value for key, value in inner.items() if key != "learner"}
            made[name] = _learner(inner["learner"], own, parameters, seed)
    return {**options, **made}


def _learner(name: str, options: Options, module: Any, seed: int) -> Any:
    """A learner's class with its arguments, and the seed where it takes one; or a short name as it is."""
    if name[:1].isupper():
        if name not in module.__all__:
            near = difflib.get_close_matches(name, module.__all__, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"there is no learner {name!r} in {module.__name__}{hint}")
        learner = getattr(module, name)(**_with_inner(options, seed))
        if "random_state" in learner.get_params(deep=False) and "random_state" not in options:
            learner.set_params(random_state=seed)
        return learner
    if options:
        raise ValueError(f"{name!r} takes no arguments here; name the class of the learner instead")
    return name


def _aode(options: Options, _seed: int) -> AODEClassifier:
    return AODEClassifier(**options.get("options", {}))


def _svm(options: Options, _seed: int) -> Any:
    machine = SVC(C=options.get("C", 1.0), gamma=options.get("gamma", "scale"), cache_size=1000)
    categories = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    )
    if options.get("inputs", "raw") == "levels":
        numbers = make_pipeline(MDLPDiscretizer(), _ordinal(), MinMaxScaler(clip=True))
    else:
        numbers = make_pipeline(SimpleImputer(), MinMaxScaler(clip=True))
    columns = make_column_transformer(
        (numbers, make_column_selector(dtype_include="number")),
        (categories, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, machine)


def _ordinal() -> Any:
    return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
