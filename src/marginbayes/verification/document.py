"""The file of a certificate: JSON values and a digest over all of them."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from marginbayes.writing import write_text

__all__ = [
    "FORMAT",
    "VERSION",
    "CertificateError",
    "check_document",
    "check_sense",
    "plain",
    "read_document",
    "seal",
    "whole",
    "write_document",
]

FORMAT, VERSION = "marginbayes-certificate", 1
CLAIMS = ("kind", "sense", "objective", "bound", "status", "seconds", "trace")
FIELDS = {"format", "version", *CLAIMS, "schema", "evidence", "digest"}


class CertificateError(ValueError):
    """A certificate that does not prove what it says."""


def whole(value: Any, end: int, what: str) -> int:
    """The value, if it is a whole number from 0 to below the end: a list or a negative one would mean another place."""
    if type(value) is not int or not 0 <= value < end:
        raise CertificateError(f"{what} is {value!r}, not a whole number from 0 to {end - 1}")
    return value


def check_sense(document: Mapping[str, Any], sense: str) -> None:
    """Refuse a certificate that claims the other end of what can be reached."""
    if document["sense"] != sense:
        raise CertificateError(f"the sense of such a certificate is {sense!r}, not {document['sense']!r}")


def plain(value: Any) -> Any:
    """The value as JSON has it: arrays as lists, infinities as strings."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def digest(document: Mapping[str, Any]) -> str:
    """Fingerprint of everything but the digest itself."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    try:
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise CertificateError(f"the certificate holds what JSON has no word for: {error}") from None
    return hashlib.sha256(text.encode()).hexdigest()


def seal(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its digest."""
    return {**document, "digest": digest(document)}


def check_document(document: Mapping[str, Any]) -> None:
    """Refuse what is no certificate, or one that was changed after it was written."""
    if document.get("format") != FORMAT:
        raise CertificateError("this is no certificate of marginbayes: it has no such format field")
    if document.get("version") != VERSION:
        raise CertificateError(f"certificate of version {document.get('version')!r}; this program reads {VERSION}")
    if odd := FIELDS ^ document.keys():
        raise CertificateError(f"the certificate lacks, or has besides what it should, {', '.join(sorted(odd))}")
    if not isinstance(document["evidence"], Mapping) or not all(
        isinstance(document[k], str) for k in ("kind", "status")
    ):
        raise CertificateError("the certificate has a kind, a status or evidence of another type than it should")
    if document["digest"] != digest(document):
        raise CertificateError("the certificate was changed after it was written: its digest does not fit")
    if document["schema"] is not None and not _is_schema(document["schema"]):
        raise CertificateError("the schema does not say of every variable its name, its levels and its cuts")


def _is_schema(schema: Any) -> bool:
    """Whether these are variables: each with a name, levels, and cuts or None."""
    return (
        isinstance(schema, list)
        and bool(schema)
        and all(
            isinstance(variable, dict)
            and isinstance(variable.get("name"), str)
            and isinstance(variable.get("levels"), list)
            and "cuts" in variable
            and (variable["cuts"] is None or _are_cuts(variable["cuts"], variable["levels"]))
            for variable in schema
        )
    )


def _are_cuts(values: Any, levels: list[Any]) -> bool:
    """Whether these are numbers that cut a line into so many levels, besides the one of missing cells."""
    numbers = isinstance(values, list) and all(type(value) in (int, float) for value in values)
    return numbers and len(values) + 1 == sum(level is not None for level in levels)


def read_document(path: str | Path) -> dict[str, Any]:
    """Certificate in a file; not checked yet."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CertificateError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise CertificateError(f"{path} holds no certificate")
    return document


def write_document(document: Mapping[str, Any], path: str | Path) -> None:
    """Write a file whole or not at all."""
    write_text(path, json.dumps(document, allow_nan=False))
