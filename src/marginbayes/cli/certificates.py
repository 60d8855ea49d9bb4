"""Certificates of what a classifier learned: limits for the solver before, files after."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from marginbayes.data.schema import Schema
    from marginbayes.solvers import Certificate

__all__ = ["set_limits", "write_certificates"]


def set_limits(classifier: Any, asked: str, limits: Mapping[str, float | Path | None]) -> None:
    """Set the time limit and the gap of the structure learner; `asked` is the option that chose one without them."""
    learner = getattr(classifier, "structure", None)
    known = {} if learner is None else learner.get_params(deep=False)
    for name, value in limits.items():
        if value is None:
            continue
        if learner is None or name not in known:
            option = "--" + name.replace("_", "-")
            raise ValueError(f"{option} is not for {asked}; it is for exact-mdl, exact-sm and the like")
        learner.set_params(**{name: value})


def write_certificates(classifier: Any, asked: str, path: Path) -> dict[Path, Certificate]:
    """Write what proves the structure, and what proves the parameters, and say which file holds which.

    Where there are both, the parameters' goes to a file of its own whose name ends in ``-parameters``.
    """
    from marginbayes.verification import write_document

    results = [getattr(classifier, name, None) for name in ("structure_result_", "parameter_result_")]
    found = [certificate for result in results if (certificate := getattr(result, "certificate", None)) is not None]
    if not found:
        raise ValueError(
            f"neither {asked} nor its parameters prove anything, so there is no certificate to write; "
            "exact-mdl and exact-sm do, and --parameters mm-hybrid"
        )
    files = [path, path.with_name(f"{path.stem}-parameters{path.suffix}")]
    written = dict(zip(files, found, strict=False))
    schema = schema_entries(classifier.schema_)
    for file, certificate in written.items():
        write_document(certificate.to_document(schema), file)
    return written


def schema_entries(schema: Schema) -> list[dict[str, Any]]:
    """How cells become codes: for each variable, the class first, its name, levels and cuts."""
    from marginbayes.network.json import variable_to_dict

    entries = [variable_to_dict(variable) for variable in schema.variables]
    return [{"name": e["name"], "levels": e["levels"], "cuts": e.get("cuts")} for e in entries]
