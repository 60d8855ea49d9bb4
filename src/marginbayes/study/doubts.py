"""What of a study cannot be run as it is written, found before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from marginbayes import BayesNetClassifier, datasets
from marginbayes.parameters.names import named_parameters
from marginbayes.sequence import SequenceLabeler
from marginbayes.structure import named_structure
from marginbayes.study.kinds import KINDS
from marginbayes.study.methods import build
from marginbayes.study.protocol import GENERATORS, known_rows, split_names
from marginbayes.study.spec import Experiment, Method, Study

__all__ = ["doubts", "present"]


def doubts(study: Study) -> list[str]:
    """A sentence for each experiment and method whose tasks would fail at once."""
    found: dict[str, None] = {}  # in order, and once
    for experiment in study.experiments:
        if experiment.kind not in KINDS:
            found[
                f"experiment {experiment.name!r} is of the kind {experiment.kind!r}; there are {', '.join(KINDS)}"
            ] = None
            continue
        for method in experiment.methods:
            found |= _told(f"method {method.name!r}", _try_method, experiment, method)
        found |= _told(f"experiment {experiment.name!r}", _try_folds, experiment)
    return [*found]


def present(study: Study) -> tuple[Study, list[str]]:
    """The part of a study whose data sets are here, and the names of those that nothing here can load."""
    names = dict.fromkeys(name for e in study.experiments for name in e.sets if name not in GENERATORS)
    absent = [name for name in names if _told(name, datasets.where, name)]
    kept = [replace(e, sets=tuple(s for s in e.sets if s not in absent)) for e in study.experiments]
    return replace(study, experiments=tuple(e for e in kept if e.sets)), absent


def _told(what: str, attempt: Callable[..., object], *arguments: object) -> dict[str, None]:
    try:
        attempt(*arguments)
    except (ValueError, TypeError) as error:
        return {f"{what}: {error}": None}
    return {}


def _try_folds(experiment: Experiment) -> None:
    """Refuse more folds than rows, as far as the catalogue knows how many there are."""
    if experiment.kind == "label":  # which deals sequences
        return
    sizes = {name: known_rows(name) for name in experiment.sets if "fold0" in split_names(experiment.protocol, name)}
    folds = experiment.protocol.get("folds", 5)
    small = [f"{name} has {rows}" for name, rows in sizes.items() if rows is not None and rows < folds]
    if small:
        raise ValueError(f"folds = {folds} needs as many rows, but {', '.join(small)}")


def _try_method(experiment: Experiment, method: Method) -> None:
    if experiment.kind == "label":
        SequenceLabeler(**method.options.get("options", {}))
        return
    estimator = build(method.options, experiment.seed)
    if isinstance(estimator, BayesNetClassifier):
        if isinstance(estimator.structure, str):
            named_structure(estimator.structure)
        if isinstance(estimator.parameters, str):
            named_parameters(estimator.parameters)
