"""What the names of methods stand for, from a study's own entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from marginbayes.report.grid import Grid, Row
from marginbayes.report.results import Findings
from marginbayes.study.spec import Method

__all__ = ["TITLE", "method_grid"]

TITLE = "Methods"
CAPTION = (
    "What the study's file says of each. Names with a capital are classes of marginbayes.structure and "
    "marginbayes.parameters, others short names of the library; what is not named is as the library has it."
)
MACHINES = {"svm": "support vector machine", "aode": "averaged one-dependence estimators"}
# Said with the structure; of what is left, all but a grid is said with the parameters.
OF_STRUCTURE = ("structure", "structure_options", "estimator")
OF_PARAMETERS = ("parameters", "parameters_options")


def method_grid(found: Iterable[Findings]) -> Grid:
    """A row for each method with a finished task: structure, parameters, and what validation chooses."""
    used = {m.name: m for o in found for m in o.experiment.methods if any(r.method == m.name for r in o.records)}
    rows = [Row((name, _structure(m), _parameters(m), _grid(m)), ()) for name, m in used.items()]
    return Grid("", CAPTION, ("method", "structure", "parameters", "chosen by validation"), tuple(rows))


def _structure(method: Method) -> str:
    options = method.options
    if "estimator" in options:
        return MACHINES.get(options["estimator"], str(options["estimator"]))
    if "options" in options:  # of a labeler of sequences
        return "chain"
    if "structure" not in options and any("structure" in grid for grid in _grids(method)):
        return ""
    return _call(str(options.get("structure", "tan")), options.get("structure_options", {}))


def _parameters(method: Method) -> str:
    options = method.options
    rest = {k: v for k, v in options.items() if k not in (*OF_STRUCTURE, *OF_PARAMETERS, "grid", "options")}
    rest |= options.get("options", {})
    named = "estimator" not in options and "options" not in options
    learner = _call(str(options.get("parameters", "ml")), options.get("parameters_options", {})) if named else ""
    return ", ".join([*([learner] if learner else []), *(f"{k} = {_value(v)}" for k, v in rest.items())])


def _grid(method: Method) -> str:
    return " or ".join(
        ", ".join(f"{key.rpartition('__')[2]}: {' '.join(map(_value, values))}" for key, values in grid.items())
        for grid in _grids(method)
    )


def _grids(method: Method) -> list[Mapping[str, Any]]:
    found = method.options.get("grid", [])
    return [found] if isinstance(found, Mapping) else list(found)


def _call(name: str, options: Mapping[str, Any]) -> str:
    """A learner with its arguments."""
    said = ", ".join(f"{key}={_value(value)}" for key, value in options.items())
    return f"{name}({said})" if said else name


def _value(value: Any) -> str:
    """As it is shown: a learner among the arguments with its own ones, numbers without needless digits."""
    if isinstance(value, Mapping) and "learner" in value:
        return _call(value["learner"], {k: v for k, v in value.items() if k != "learner"})
    return f"{value:g}" if isinstance(value, float) else str(value)
