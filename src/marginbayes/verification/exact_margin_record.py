"""The record of a search for an exact margin: its parts cover all structures, and each of them is bounded.

A part has a set of options for every feature. It is divided in two by slots, some options of one feature: none of them,
or one. A slot is a feature * number of options + option. Each part that is not divided, and each set of options that
was taken out of a part, must be bounded by its multipliers. Of a part that is listed, structures that its multipliers
do not bound are looked at one by one.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, whole
from marginbayes.verification.exact_margin_bound import Bounds, Margins

__all__ = ["check_record"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Slots = tuple[int, ...]

KEYS = {"parent", "slots", "taken", "fixes", "closed", "listed", "multipliers"}
WHOLE = 1 << 24


@dataclass
class Part:
    """Some of the structures: those of these class parents, with these options."""

    number: int
    top: Slots
    options: Flags


def check_record(proof: Mapping[str, Any], problems: Sequence[tuple[Slots, Flags]], bounds: Bounds) -> None:
    """Bound all structures of the problems, one for each set of class parents with the options of its features."""
    count = _count(proof)
    bounds.multipliers = [_unpacked(text, bounds.margins) for text in proof["multipliers"]]
    children: list[list[int]] = [[] for _ in range(count)]
    begun: list[int] = []
    for number, parent in enumerate(proof["parent"]):
        if parent >= number:
            raise CertificateError(f"part {number} of the record comes before the part it belongs to")
        (children[parent] if parent >= 0 else begun).append(number)
    if sorted(proof["slots"][number] for number in begun) != [[k] for k in range(len(problems))]:
        raise CertificateError("the record does not treat every set of class parents once")
    listed = {whole(number, count, "a part that is listed") for number in proof.get("listed", ())}
    waiting = []
    for number in begun:
        top, options = problems[proof["slots"][number][0]]
        waiting.append(Part(number, top, options.copy()))
    while waiting:
        part = waiting.pop()
        _apply_fixes(proof["fixes"][part.number], part, bounds)
        if children[part.number]:
            waiting += _pieces(proof, part, children[part.number])
        else:
            bounds.check(proof["closed"][part.number], part.top, part.options, part.number in listed)


def _count(proof: Mapping[str, Any]) -> int:
    if proof.keys() | {"listed"} != KEYS:  # records from before there were lists have none
        raise CertificateError(f"the record lacks, or has besides what it should, {sorted(KEYS ^ proof.keys())}")
    count = len(proof["parent"])
    if any(len(proof[key]) != count for key in ("slots", "taken", "fixes", "closed")):
        raise CertificateError("the lists of the record differ in length")
    return count


def _apply_fixes(fixes: Sequence[Sequence[Any]], part: Part, bounds: Bounds) -> None:
    """Options taken out of a part are bounded by themselves."""
    for number, members, multipliers in fixes:
        feature = whole(number, len(part.options), f"the feature of a fix in part {part.number} of the record")
        out = _members(members, part.options.shape[1])
        confined = part.options.copy()
        confined[feature] &= out
        bounds.check(multipliers, part.top, confined)
        part.options[feature] &= ~out


def _pieces(proof: Mapping[str, Any], part: Part, numbers: Sequence[int]) -> list[Part]:
    """The two pieces of a part: a feature takes one of some slots, or none of them."""
    slots, taken = [proof["slots"][n] for n in numbers], [proof["taken"][n] for n in numbers]
    if len(numbers) != 2 or slots[0] != slots[1] or sorted(taken) != [False, True]:
        raise CertificateError(f"the parts {list(numbers)} of the record do not cover the part they divide")
    if not slots[0] or not all(isinstance(s, int) and 0 <= s < part.options.size for s in slots[0]):
        raise CertificateError(f"part {part.number} of the record is divided by options that there are not")
    inside = np.zeros(part.options.shape, bool)
    inside.flat[slots[0]] = True
    divided = np.flatnonzero(inside.any(axis=1))
    if len(divided) != 1:
        raise CertificateError(f"part {part.number} of the record is divided by options of several features")
    pieces = []
    for number in numbers:
        options = part.options.copy()
        options[divided] &= inside[divided] if proof["taken"][number] else ~inside[divided]
        pieces.append(Part(number, part.top, options))
    return pieces


def _members(text: str, n_options: int) -> Flags:
    value = int(text, 16)
    return np.array([bool(value >> o & 1) for o in range(n_options)])


def _unpacked(text: str, margins: Margins) -> tuple[NDArray[np.int64], Floats]:
    """Rows and multipliers; they must not be negative, nor exceed the weight of a sample."""
    both = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<i4").astype(np.int64)
    rows, shares = np.cumsum(both[: len(both) // 2]), both[len(both) // 2 :]
    if len(rows) != len(shares) or (len(rows) and not 0 <= rows.min() <= rows.max() < margins.n_rows):
        raise CertificateError("multipliers belong to rows that there are not")
    sample = rows // margins.rivals if len(rows) else rows
    if len(set(rows.tolist())) < len(rows) or (shares < 0).any():
        raise CertificateError("multipliers are negative, or a row has two")
    if (np.bincount(sample, shares, 1) > WHOLE).any():
        raise CertificateError("multipliers exceed the weight of their sample")
    return rows, margins.weights[sample] * (shares / WHOLE)
