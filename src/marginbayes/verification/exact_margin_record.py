"""The record of a search for an exact margin: its parts cover all structures, and each of them is bounded.

A part has a set of options for every feature. It is divided in two by some options of one feature: one of them, or
none. Each part that is not divided, and each set of options that was taken out of a part, must be bounded by its
multipliers. Of a part that is listed, structures that its multipliers do not bound are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.document import CertificateError, whole
from marginbayes.verification.exact_margin_bound import Margins
from marginbayes.verification.exact_margin_branching import best_branching, option_costs
from marginbayes.verification.exact_margin_linear import LinearFunctions
from marginbayes.verification.exact_margin_packed import TWICE, Record, read_record

__all__ = ["Bounds", "check_record"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Top = tuple[int, ...]
BY = "the position of the multipliers that bound a part of the record"


@dataclass
class Part:
    """Some of the structures: those of these class parents, with these options."""

    number: int
    top: Top
    options: Flags


@dataclass
class Bounds:
    """Bounds of parts, and the largest of them so far. `unbounded` looks at structures one by one."""

    margins: Margins
    claimed: float
    unbounded: Callable[..., float]
    largest: float = -np.inf

    def check(self, linear: tuple[float, Floats], part: Part, listed: bool = False) -> None:
        """Bound the structures of a part by a linear function; the largest bound is kept."""
        constant, values = linear
        if not part.options.any(axis=1).all():
            return
        # Without the ban on cycles the bound is weaker, and at once there; most often it is enough.
        bound = constant + float(_best(values, part.options).sum())
        if bound > self.claimed:
            bound = constant + best_branching(values, part.options)
        if bound > self.claimed and listed:
            bound = self.unbounded(self.margins, part.top, linear, part.options, self.claimed)
        self.keep(bound)

    def keep(self, bound: float) -> None:
        """This is a bound of some structures."""
        if np.isnan(bound):
            raise CertificateError("the multipliers of a part of the record bound nothing")
        self.largest = max(self.largest, bound)


def check_record(proof: Mapping[str, Any], problems: Sequence[tuple[Top, Flags]], bounds: Bounds) -> None:
    """Bound all structures of the problems, one for each set of class parents with the options of its features."""
    shape = bounds.margins.n, bounds.margins.n + 2
    walk = _Walk(read_record(proof, shape), shape, bounds)
    walk.check_numbers()
    begun = np.flatnonzero(walk.record.parent < 0)
    if sorted(walk.record.feature[begun].tolist()) != list(range(len(problems))):
        raise CertificateError(TWICE)
    for number in begun.tolist():
        top, options = problems[walk.record.feature[number]]
        walk.below(Part(number, top, options.copy()))
    walk.linear.read_all()


class _Walk:
    """All parts of a record, each before its pieces."""

    def __init__(self, record: Record, shape: tuple[int, int], bounds: Bounds) -> None:
        self.record, self.shape, self.bounds = record, shape, bounds
        self.linear = LinearFunctions(record, bounds.margins)

    def check_numbers(self) -> None:
        """Refuse parts and fixes that are not where they should be, and divisions that leave something out."""
        record, count = self.record, len(self.record.parent)
        late = np.flatnonzero((record.parent >= np.arange(count)) | (record.parent < -1))
        if len(late):
            raise CertificateError(f"part {late[0]} of the record comes before the part it belongs to")
        _check_range(record.listed, count, "a part that is listed")
        _check_range(record.fix_part, count, "the part of a fix")
        for feature in np.flatnonzero((record.fix_feature < 0) | (record.fix_feature >= self.shape[0]))[:1]:
            what = f"the feature of a fix in part {record.fix_part[feature]} of the record"
            whole(int(record.fix_feature[feature]), self.shape[0], what)
        _check_range(record.fix_by, record.sets, BY)
        for fix in np.flatnonzero(self._beyond(record.fix_options))[:1]:
            part = record.fix_part[fix]
            raise CertificateError(f"a fix in part {part} of the record takes out options that there are not")
        self._check_divisions()
        # Fixes of a part in the order in which they were made.
        self.fixes = np.argsort(record.fix_part, kind="stable")
        self.fix_ends = np.cumsum(np.bincount(record.fix_part, minlength=count))
        self.listed = np.zeros(count, bool)
        self.listed[record.listed] = True

    def _check_divisions(self) -> None:
        record, count = self.record, len(self.record.parent)
        pieces = np.argsort(record.parent, kind="stable")[int((record.parent < 0).sum()) :]
        numbers = np.bincount(record.parent[pieces], minlength=count)
        for part in np.flatnonzero((numbers != 0) & (numbers != 2))[:1]:
            raise _uncovered(np.flatnonzero(record.parent == part))
        pairs = pieces.reshape(-1, 2)
        one, other = pairs.T
        same = (record.feature[one] == record.feature[other]) & (record.inside[one] == record.inside[other]).all(axis=1)
        for pair in pairs[~(same & (np.sort(record.taken[pairs], axis=1) == [0, 1]).all(axis=1))]:
            raise _uncovered(pair)
        fine = (record.feature[one] >= 0) & (record.feature[one] < self.shape[0])
        fine &= record.inside[one].any(axis=1) & ~self._beyond(record.inside[one])
        for part in record.parent[one[~fine]]:
            raise CertificateError(f"part {part} of the record is divided by options that there are not")
        _check_range(record.closed[numbers == 0], record.sets, BY)
        self.pairs, self.place = pairs, np.full(count, -1)
        self.place[record.parent[one]] = np.arange(len(pairs))

    def _beyond(self, options: NDArray[np.uint8]) -> Flags:
        """Whether sets of options have members that are none."""
        return np.asarray((options[:, -1] >> (self.shape[1] - 1) % 8 >> 1) != 0)

    def below(self, part: Part) -> None:
        """Bound all that a part holds. Depth first: few parts have options at a time."""
        waiting = [part]
        while waiting:
            part = waiting.pop()
            self._apply_fixes(part)
            place = int(self.place[part.number])
            if place >= 0:
                waiting += self._pieces(part, self.pairs[place].tolist())
            else:
                linear = self.linear.of(int(self.record.closed[part.number]), part.top)
                self.bounds.check(linear, part, bool(self.listed[part.number]))

    def _apply_fixes(self, part: Part) -> None:
        """Options taken out of a part are bounded by themselves, those by the same multipliers together."""
        end = self.fix_ends[part.number]
        own = self.fixes[self.fix_ends[part.number - 1] if part.number else 0 : end]
        if not len(own):
            return
        by, features = self.record.fix_by[own], self.record.fix_feature[own]
        out = self._members(self.record.fix_options[own])
        changes = [0, *(np.flatnonzero(np.diff(by)) + 1).tolist(), len(own)]
        for begin, stop in pairwise(changes):
            linear = self.linear.of(int(by[begin]), part.top)
            self._check_fixes(linear, part, features[begin:stop], out[begin:stop])

    def _check_fixes(self, linear: tuple[float, Floats], part: Part, features: NDArray[np.int32], out: Flags) -> None:
        """Three bounds, each better and slower than the one before, for those that the one before leaves."""
        (constant, values), claimed = linear, self.bounds.claimed
        best, taken_out = _best(values, part.options), out & part.options[features]
        bound = np.full(len(features), -np.inf)
        if np.isfinite(best).all():  # else there is no structure left
            confined = np.where(taken_out, values[features], -np.inf).max(axis=1)
            bound = constant + best.sum() - best[features] + confined
        if (bound > claimed).any():
            total, costs = option_costs(values, part.options)
            cheapest = np.where(taken_out, costs[features], np.inf).min(axis=1)
            bound = np.where(bound > claimed, constant + total - cheapest, bound)
        enough = ~(bound > claimed)
        self.bounds.keep(float(bound[enough].max(initial=-np.inf)))
        for feature, gone, fine in zip(features.tolist(), out, enough.tolist(), strict=True):
            if not fine:
                options = part.options.copy()
                options[feature] &= gone
                self.bounds.check(linear, Part(part.number, part.top, options))
            part.options[feature] &= ~gone

    def _pieces(self, part: Part, numbers: Sequence[int]) -> list[Part]:
        """The two pieces of a part: a feature takes one of some options, or none of them."""
        feature = int(self.record.feature[numbers[0]])
        inside, pieces = self._members(self.record.inside[numbers[0]]), []
        for number in numbers:
            options = part.options.copy()
            options[feature] &= inside if self.record.taken[number] else ~inside
            pieces.append(Part(number, part.top, options))
        return pieces

    def _members(self, packed: NDArray[np.uint8]) -> Flags:
        return np.unpackbits(packed, axis=-1, count=self.shape[1], bitorder="little").astype(bool)


def _best(values: Floats, options: Flags) -> Floats:
    """Greatest value of each feature."""
    return np.asarray(np.where(options, values, -np.inf).max(axis=1))


def _check_range(numbers: NDArray[np.int32], end: int, what: str) -> None:
    for number in numbers[(numbers < 0) | (numbers >= end)][:1].tolist():
        whole(number, end, what)


def _uncovered(parts: Ints) -> CertificateError:
    return CertificateError(f"the parts {parts.tolist()} of the record do not cover the part they divide")
