"""The record of a search for an exact margin as arrays, from its texts or from the lists of earlier certificates.

A text is base64 of zlib of bytes: all first bytes of the entries, then all second ones, and so on. Whole numbers have
32 bits and are differences to the one before in the same text, the sign in the lowest bit. Sets of options have a bit
for each. Multipliers come in blocks of `SETS` sets: the numbers of their rows; the rows, as differences within a set;
a bit for each row, whether its share is whole; and the other shares.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, whole

__all__ = ["SETS", "TWICE", "WHOLE", "Record", "Shares", "read_record"]

Int32s = NDArray[np.int32]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

FORMAT = "packed-1"
NUMBERS = ("parent", "feature", "closed", "listed", "fix_part", "fix_feature", "fix_by")
KEYS = {"format", "sets", "multipliers", "taken", "inside", "fix_options", *NUMBERS}
LISTS = {"parent", "slots", "taken", "fixes", "closed", "listed", "multipliers"}
SETS = 256
WHOLE = 1 << 24
TWICE = "the record does not treat every set of class parents once"


class Shares(NamedTuple):
    """Some sets of multipliers: how many rows each has, and rows and shares of all."""

    sizes: Ints
    rows: NDArray[np.integer[Any]]
    shares: NDArray[np.integer[Any]]


class Record(NamedTuple):
    """Parts, fixes and multipliers; sets of options are lines of bytes. Nothing but lengths is checked yet."""

    parent: Int32s
    taken: Bytes
    feature: Int32s  # of a whole problem: the position of its class parents
    inside: Bytes
    closed: Int32s
    listed: Int32s
    fix_part: Int32s
    fix_feature: Int32s
    fix_options: Bytes
    fix_by: Int32s
    sets: int
    block: Callable[[int], Shares]  # the sets from `SETS` times a number on


def read_record(proof: Mapping[str, Any], shape: tuple[int, int]) -> Record:
    """The record of a search with so many features and options."""
    record = _packed_record(proof, shape[1]) if "format" in proof else _listed_record(proof, shape)
    parts = {len(column) for column in (record.parent, record.taken, record.feature, record.inside, record.closed)}
    fixes = {len(column) for column in (record.fix_part, record.fix_feature, record.fix_options, record.fix_by)}
    if len(parts) > 1 or len(fixes) > 1:
        raise CertificateError("the lists of the record differ in length")
    return record


# -- texts


def _packed_record(proof: Mapping[str, Any], n_options: int) -> Record:
    _check_keys(proof, KEYS)
    if proof["format"] != FORMAT:
        raise CertificateError(f"a record of the format {proof['format']!r}; this program reads {FORMAT!r}")
    columns: dict[str, Any] = {name: _numbers(proof[name], name) for name in NUMBERS}
    for name in ("inside", "fix_options"):
        columns[name] = _lines(proof[name], -(-n_options // 8), name)
    taken = _lines(proof["taken"], 1, "taken").reshape(-1)
    texts, sets = list(proof["multipliers"]), proof["sets"]
    if type(sets) is not int or sets < 0 or len(texts) != -(-sets // SETS):
        raise CertificateError(f"{len(texts)} blocks of {SETS} do not hold {sets!r} sets of multipliers")

    def block(number: int) -> Shares:
        return _shares(texts[number], min(SETS, sets - SETS * number))

    return Record(**columns, taken=taken, sets=sets, block=block)


def _check_keys(proof: Mapping[str, Any], keys: set[str]) -> None:
    if odd := keys ^ proof.keys():
        raise CertificateError(f"the record lacks, or has besides what it should, {sorted(odd)}")


def _raw(text: Any, what: str) -> Bytes:
    try:
        return np.frombuffer(zlib.decompress(base64.b64decode(text, validate=True)), np.uint8)
    except (TypeError, binascii.Error, ValueError, zlib.error) as error:
        raise CertificateError(f"a text of the record, of {what!r}, cannot be unpacked: {error}") from None


def _joined(raw: Bytes, width: int, what: str) -> Bytes:
    """Lines of so many bytes, from all first bytes, all second ones, and so on."""
    if len(raw) % width:
        raise CertificateError(f"a text of the record, of {what!r}, ends within an entry")
    return np.ascontiguousarray(raw.reshape(width, -1).T)


def _lines(texts: Any, width: int, what: str) -> Bytes:
    if not isinstance(texts, list):
        raise CertificateError(f"{what!r} in the record is no list of texts")
    return np.concatenate([np.empty((0, width), np.uint8), *(_joined(_raw(t, what), width, what) for t in texts)])


def _numbers(texts: Any, what: str) -> Int32s:
    if not isinstance(texts, list):
        raise CertificateError(f"{what!r} in the record is no list of texts")
    parts = [np.empty(0, np.int32)]
    for text in texts:
        signed = _whole_numbers(_raw(text, what), what)
        change = (signed >> 1) ^ -(signed & 1)
        values = np.cumsum(change)
        if len(values) and not -(2**31) <= values.min() <= values.max() < 2**31:
            raise CertificateError(f"{what!r} in the record holds numbers beyond all bounds")
        parts.append(values.astype(np.int32))
    return np.concatenate(parts)


def _whole_numbers(raw: Bytes, what: str) -> Ints:
    """Numbers of 32 bits without a sign."""
    return _joined(raw, 4, what).view("<u4").reshape(-1).astype(np.int64)


def _shares(text: Any, count: int) -> Shares:
    """One block of so many sets of multipliers."""
    what = "multipliers"
    raw = _raw(text, what)
    sizes = _whole_numbers(raw[: 4 * count], what)
    total = int(sizes.sum())
    middle, end = 4 * count + 4 * total, 4 * count + 4 * total + -(-total // 8)
    if len(sizes) != count or len(raw) < end:
        raise CertificateError("a block of multipliers is too short")
    gaps = _whole_numbers(raw[4 * count : middle], what)
    is_whole = np.unpackbits(raw[middle:end], count=total, bitorder="little").astype(bool)
    others = _joined(raw[end:], 4, what).view("<i4").reshape(-1)
    if len(others) != total - is_whole.sum():
        raise CertificateError("a block of multipliers has more or fewer shares than rows")
    shares = np.full(total, WHOLE)
    shares[~is_whole] = others
    return Shares(sizes, within_sets(gaps, sizes), shares)


def within_sets(gaps: Ints, sizes: Ints) -> Ints:
    """Sums of differences, begun anew with every set."""
    sums = np.concatenate([[0], np.cumsum(gaps)])
    return np.asarray(sums[1:] - np.repeat(sums[np.cumsum(sizes) - sizes], sizes))


# -- lists


def _listed_record(proof: Mapping[str, Any], shape: tuple[int, int]) -> Record:
    """The same from lists: slots are features * number of options + options."""
    _check_keys({"listed": [], **proof}, LISTS)  # records from before there were lists have none
    count, texts = len(proof["parent"]), list(proof["multipliers"])
    if any(len(proof[key]) != count for key in ("slots", "taken", "fixes", "closed")):
        raise CertificateError("the lists of the record differ in length")
    divisions = [_division(own, above, shape) for own, above in zip(proof["slots"], proof["parent"], strict=True)]
    fixes = [(part, *_fix(fix, part, shape, len(texts))) for part, own in enumerate(proof["fixes"]) for fix in own]
    fix_part, fix_feature, fix_options, fix_by = zip(*fixes, strict=True) if fixes else ((), (), (), ())
    if any(type(taken) is not bool for taken in proof["taken"]):
        raise CertificateError("a part of the record is neither taken nor not")

    def block(number: int) -> Shares:
        return _gathered(texts[SETS * number : SETS * (number + 1)])

    return Record(
        parent=_column(proof["parent"]),
        taken=np.array(proof["taken"], np.uint8),
        feature=_column([feature for feature, _ in divisions]),
        inside=_bits([inside for _, inside in divisions], shape[1]),
        closed=_column(proof["closed"]),
        listed=_column([whole(part, count, "a part that is listed") for part in proof.get("listed", ())]),
        fix_part=_column(fix_part),
        fix_feature=_column(fix_feature),
        fix_options=_bits(fix_options, shape[1]),
        fix_by=_column(fix_by),
        sets=len(texts),
        block=block,
    )


def _column(values: Sequence[Any]) -> Int32s:
    if any(type(value) is not int for value in values):
        raise CertificateError("a list of the record holds what is not a whole number")
    return np.array(values, np.int32)


def _bits(sets: Sequence[int], n_options: int) -> Bytes:
    """Sets of options, which are numbers with a bit for each, as lines of bytes."""
    width = -(-n_options // 8)
    return np.frombuffer(b"".join(s.to_bytes(width, "little") for s in sets), np.uint8).reshape(-1, width)


def _division(slots: Sequence[Any], above: Any, shape: tuple[int, int]) -> tuple[int, int]:
    """The divided feature, or the position of class parents, and the options that the division is by."""
    if type(above) is not int or above < 0:
        if len(slots) != 1 or type(slots[0]) is not int or not 0 <= slots[0] < 1 << 31:
            raise CertificateError(TWICE)
        return slots[0], 0
    if not slots or not all(type(s) is int and 0 <= s < shape[0] * shape[1] for s in slots):
        raise CertificateError(f"part {above} of the record is divided by options that there are not")
    features = {s // shape[1] for s in slots}
    if len(features) != 1:
        raise CertificateError(f"part {above} of the record is divided by options of several features")
    return features.pop(), sum({1 << s % shape[1] for s in slots})


def _fix(fix: Sequence[Any], part: int, shape: tuple[int, int], sets: int) -> tuple[int, int, int]:
    number, members, by = fix
    feature = whole(number, shape[0], f"the feature of a fix in part {part} of the record")
    options = int(members, 16)
    if not 0 <= options < 1 << shape[1]:
        raise CertificateError(f"a fix in part {part} of the record takes out options that there are not")
    return feature, options, whole(by, sets, "the position of the multipliers that bound a part of the record")


def _gathered(texts: Sequence[Any]) -> Shares:
    """Sets of multipliers of which each has a text: rows, as differences, and shares."""
    both = [_raw(text, "multipliers").view("<i4").astype(np.int64).reshape(2, -1) for text in texts]
    sizes = np.array([pair.shape[1] for pair in both])
    gaps, shares = np.concatenate(both, axis=1)
    return Shares(sizes, within_sets(gaps, sizes), shares)
