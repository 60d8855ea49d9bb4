"""Settings of learners on the command line: by name, or chosen by validation."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

__all__ = ["apply_settings", "chosen"]

PARTS = ("structure", "parameters")
# Settings that take what no word can say: functions, constraints, a structure.
OBJECTS = ("callback", "constraints", "start")


def apply_settings(classifier: Any, asked: str, settings: Sequence[str], tune: bool) -> None:
    """Give the learners of a classifier what ``--set`` and ``--tune`` say; `asked` names the classifier in errors."""
    if tune:
        _tune(classifier, asked)
    for setting in settings:
        _set(classifier, asked, setting)


def chosen(classifier: Any) -> dict[str, dict[str, Any]]:
    """For each part of a fitted classifier that was tuned, the values that validation chose."""
    parameters = getattr(getattr(classifier, "parameter_result_", None), "best", {})
    margin = getattr(getattr(classifier, "structure_result_", None), "chosen", None)
    structure = {} if margin is None else {"k": margin.k, "p": margin.p}
    return {part: values for part, values in zip(PARTS, (structure, parameters), strict=True) if values}


def _tune(classifier: Any, asked: str) -> None:
    from marginbayes.structure import ExactMargin, TunedMargin

    learner: Any = getattr(classifier, "parameters", None)
    structure = getattr(classifier, "structure", None)
    tunes_tables = "tune" in _names(learner)
    if not isinstance(structure, ExactMargin) and not tunes_tables:
        raise ValueError(
            f"--tune is not for {asked}, which has no strength to choose; it is for the structures exact-sm and "
            "exact-sbm, and for --parameters cl, mm, mm-hybrid, mm-convex, m3n and mm-combine"
        )
    if isinstance(structure, ExactMargin):
        classifier.structure = TunedMargin(structure.margin, random_state=structure.random_state)
    if tunes_tables:
        learner.set_params(tune=True)


def _set(classifier: Any, asked: str, setting: str) -> None:
    place, equals, text = setting.partition("=")
    part, dot, name = place.strip().partition(".")
    if not equals or not dot or part not in PARTS:
        raise ValueError(f"--set {setting} cannot be read; say for instance structure.k=1 or parameters.tol=1e-4")
    learner: Any = getattr(classifier, part, None)
    known = _names(learner)
    if name not in known:
        has = f"; it has {', '.join(f'{part}.{other}' for other in known)}" if known else ""
        raise ValueError(f"{asked} has no setting {place.strip()}{has}")
    value, default = _value(text.strip()), learner.get_params(deep=False)[name]
    if isinstance(value, str) and isinstance(default, float | int):
        raise ValueError(f"--set {setting}: {value!r} is no number; by default it is {default}")
    learner.set_params(**{name: value})


def _names(learner: Any) -> list[str]:
    if not hasattr(learner, "get_params"):
        return []
    return [name for name in learner.get_params(deep=False) if name not in OBJECTS]


def _value(text: str) -> Any:
    """A number, a truth value, a list or nothing, as JSON or Python writes it; else the text."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text
