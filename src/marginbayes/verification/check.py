"""`verify`: which check belongs to which certificate."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, check_document
from marginbayes.verification.table import check_known, encode

__all__ = ["Report", "verify", "verify_table"]

# A claimed number may differ from the one computed anew by this much, relative to its size.
ROUNDING = 1e-9
# A variable may have levels that do not occur, but hardly so many more than there are cells.
MOST_LEVELS = 1_000_000

# From the document, the codes (class first, one line a variable) and the weights to objective and bound. Each module
# of checks puts its own here.
Check = Callable[[Mapping[str, Any], NDArray[np.int64], NDArray[np.float64]], tuple[float, float]]
CHECKS: dict[str, Check] = {}
# Told how many parts of the evidence are checked, and of how many; some evidence takes hours.
Progress = Callable[[int, int], None]
# Checks that have more to say than that they are done, which take what they shall tell by the name of `progress`.
TELLING: dict[str, Callable[..., tuple[float, float]]] = {}


@dataclass(frozen=True)
class Report:
    """What was computed anew from the data and the evidence."""

    kind: str
    objective: float
    bound: float
    gap: float


def verify(document: Mapping[str, Any], codes: Any, weights: Any = None, *, progress: Progress | None = None) -> Report:
    """Objective and bound, computed anew; raises `CertificateError` where the certificate does not hold.

    Parameters
    ----------
    document : mapping
        `Certificate.to_document()`, or what `read_document` returns.
    codes : array of shape (variables, rows)
        Encoded data, the class first, as in `Rows.codes`.
    weights : array of shape (rows,), default=None
        Weight of each row; all 1 by default.
    progress : callable or None, default=None
        Called now and then with how many parts of the evidence are checked, and of how many; only the evidence of a
        search for an exact margin has so many that it is told.
    """
    check_document(document)
    codes = np.asarray(codes, np.int64)
    weights = np.ones(codes.shape[1]) if weights is None else np.asarray(weights, np.float64)
    kind = document["kind"]
    if kind not in CHECKS:
        raise CertificateError(f"no check is known for a certificate of kind {kind!r}")
    try:
        _check_levels(document, codes)
        there = weights > 0  # for every learner a row of weight zero is as if absent
        codes, weights = codes[:, there], weights[there]
        with np.errstate(all="ignore"):  # numbers that run over prove nothing, and are refused
            check = CHECKS[kind]
            if progress is not None and kind in TELLING:
                check = partial(TELLING[kind], progress=progress)
            objective, bound = check(document, codes, weights)
        return _compared(document, objective, bound, float(weights.sum()))
    except CertificateError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError, zlib.error) as error:
        raise CertificateError(f"the evidence cannot be read: {type(error).__name__} {error}") from None


def verify_table(
    document: Mapping[str, Any],
    columns: Mapping[str, Sequence[Any]],
    weights: Any = None,
    *,
    progress: Progress | None = None,
) -> Report:
    """The same for a table as it was read: cells by column name, encoded by the schema in the certificate."""
    check_document(document)
    if document["schema"] is None:
        raise CertificateError("the certificate has no schema; verify it with the encoded rows")
    schema = document["schema"]
    try:
        codes = encode(schema, columns)
    except TypeError as error:
        raise CertificateError(f"the levels of the schema cannot be compared with cells: {error}") from None
    counts = np.ones(codes.shape[1], bool) if weights is None else np.asarray(weights, np.float64) > 0
    for variable, own in zip(schema, codes, strict=True):
        check_known(variable, columns[variable["name"]], own, counts)
    return verify(document, codes, weights, progress=progress)


def _label_levels(document: Mapping[str, Any]) -> list[int]:
    """Numbers of levels of what is predicted, where the evidence has them apart from those of the features."""
    if document["kind"] != "sequence-margin":
        return []
    evidence = document["evidence"]
    return list(evidence["label_cardinalities"]) if evidence["model"] == "tree" else [evidence["labels"]]


def _check_levels(document: Mapping[str, Any], codes: NDArray[np.int64]) -> None:
    """Refuse evidence about other numbers of levels than those of the schema or the data: cells would be left out."""
    evidence = document["evidence"]
    certified = [*_label_levels(document), *evidence["cardinalities"]]
    if document["schema"] is not None and [len(v["levels"]) for v in document["schema"]] != certified:
        raise CertificateError("the numbers of levels differ from those of the schema")
    if len(certified) != len(codes):
        raise CertificateError(f"the certificate is about {len(certified)} variables, the data have {len(codes)}")
    if any(n > codes.size + MOST_LEVELS for n in certified):
        raise CertificateError(f"{max(certified)} levels are out of all proportion to the data")
    if (codes < 0).any() or (codes > np.array(certified)[:, None]).any():
        raise CertificateError("the data have codes beyond the numbers of levels in the certificate")


def _compared(document: Mapping[str, Any], objective: float, bound: float, weight: float) -> Report:
    """Refuse claims that the numbers do not bear out; a weaker claim than what is proved is no lie.

    Sums over the rows are known as well as the weight of the rows allows; nothing that a certificate says, least of all
    an objective as bad as can be, makes that more.
    """
    claimed, claimed_bound = float(document["objective"]), float(document["bound"])
    sign = 1.0 if document["sense"] == "max" else -1.0
    if np.isnan(objective) or np.isnan(bound):
        raise CertificateError("objective and bound cannot be computed from the evidence")
    pad, bound_pad = (_rounding(value, weight) for value in (objective, bound))
    if not (claimed == objective or abs(claimed - objective) <= pad):  # nor is a claim that is no number
        raise CertificateError(f"the objective is {objective!r}, not {claimed!r}")
    if np.isnan(claimed_bound) or sign * (bound - claimed_bound) > bound_pad:
        raise CertificateError(f"only the bound {bound!r} is proved, not {claimed_bound!r}")
    if sign * (bound - objective) < -pad:
        raise CertificateError(f"the bound {bound!r} contradicts the objective {objective!r}")
    left = max(0.0, sign * (claimed_bound - objective))
    gap = left / max(1.0, abs(objective))
    # What is optimal within a radius, or but for a remark, is optimal.
    if document["status"].startswith("optimal"):
        if not (np.isfinite(objective) and np.isfinite(claimed_bound)):
            raise CertificateError(f"an objective of {objective!r} with a bound of {claimed_bound!r} is no optimum")
        allowed = float(document["evidence"]["gap"])
        if not left <= allowed * max(1.0, abs(objective)) + pad:
            raise CertificateError(f"a gap of {gap:.2g} is more than that of an optimum, {allowed!r}")
    return Report(document["kind"], objective, claimed_bound, gap)


def _rounding(value: float, weight: float) -> float:
    """How far from this value a sum over rows of such a weight may be."""
    return ROUNDING * max(1.0, weight, abs(value) if np.isfinite(value) else 0.0)
