"""What proves a fitted classifier's structure and parameters, as files that anyone can check."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marginbayes.network.json import variable_to_dict
from marginbayes.verification import write_document

if TYPE_CHECKING:
    from marginbayes.data.schema import Schema
    from marginbayes.solvers import Certificate

__all__ = ["certificate_files", "write_certificates"]


def write_certificates(fitted: Any, path: str | PathLike[str]) -> dict[Path, Certificate]:
    """Write what proves the structure, and what proves the parameters; says which file holds which.

    Where there are both, the parameters' goes to a file of its own whose name ends in ``-parameters``.
    """
    results = [getattr(fitted, name, None) for name in ("structure_result_", "parameter_result_")]
    found = [certificate for result in results if (certificate := getattr(result, "certificate", None)) is not None]
    if not found:
        raise ValueError(
            "neither the structure nor the parameters come with a proof, so there is no certificate to write; "
            "the structures exact-mdl and exact-sm do, and the parameters mm-hybrid"
        )
    written = dict(zip(certificate_files(path), found, strict=False))
    schema = _entries(fitted.schema_)
    for file, certificate in written.items():
        write_document(certificate.to_document(schema), file)
    return written


def certificate_files(path: str | PathLike[str]) -> tuple[Path, Path]:
    """The file of the first proof, and that of the parameters' where there are two."""
    path = Path(path)
    return path, path.with_name(f"{path.stem}-parameters{path.suffix}")


def _entries(schema: Schema) -> list[dict[str, Any]]:
    """How cells become codes: for each variable, the class first, its name, levels and cuts."""
    entries = [variable_to_dict(variable) for variable in schema.variables]
    return [{"name": e["name"], "levels": e["levels"], "cuts": e.get("cuts")} for e in entries]
