"""The record of a search for an exact margin: its parts cover all structures, and each of them is bounded.

A part has a set of options for every feature. It is divided in two by some options of one feature: one of them, or
none. Each part that is not divided, and each set of options that was taken out of a part, must be bounded by its
multipliers. Of a part that is listed, structures that its multipliers do not bound are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.check import Progress
from marginbayes.verification.document import CertificateError, whole
from marginbayes.verification.exact_margin_bound import Margins
from marginbayes.verification.exact_margin_branching import OptionCosts, best_branchings
from marginbayes.verification.exact_margin_linear import Linear, LinearFunctions
from marginbayes.verification.exact_margin_options import Options, Stretch, flags
from marginbayes.verification.exact_margin_packed import TWICE, Record, read_record

__all__ = ["Bounds", "check_record"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Top = tuple[int, ...]
BY = "the position of the multipliers that bound a part of the record"

# Parts whose options are followed at a time, and options of parts that are bounded at a time.
PARTS, OPTIONS = 2048, 1 << 19


@dataclass
class Bounds:
    """Bounds of parts, and the largest of them so far. `unbounded` looks at structures one by one."""

    margins: Margins
    claimed: float
    unbounded: Callable[..., float]
    largest: float = -np.inf

    def check(self, linear: Linear, options: Flags, tops: Sequence[Top | None]) -> None:
        """Bound the structures of parts by linear functions; the largest bound is kept.

        Of parts that are listed there are class parents: what is not bounded of them is looked at.
        """
        there = np.asarray(options.any(axis=2)).all(axis=1)
        # Without the ban on cycles the bound is weaker, and at once there; most often it is enough.
        bounds = linear.constants + _best(linear.values, options).sum(axis=1)
        for better in (self._by_branching, self._one_by_one):
            over = np.flatnonzero(there & (bounds > self.claimed)).tolist()
            if len(over):
                bounds[over] = better(bounds[over], linear.only(over), options[over], [tops[i] for i in over])
        self.keep(bounds[there])

    def _by_branching(self, _: Floats, linear: Linear, options: Flags, __: Sequence[Top | None]) -> Floats:
        return linear.constants + best_branchings(linear.values, options)

    def _one_by_one(self, bounds: Floats, linear: Linear, options: Flags, tops: Sequence[Top | None]) -> Floats:
        found = bounds.copy()
        for i, top in enumerate(tops):
            if top is not None:
                own = float(linear.constants[i]), linear.values[i]
                found[i] = self.unbounded(self.margins, top, own, options[i], self.claimed)
        return found

    def keep(self, bounds: Floats) -> None:
        """These are bounds of some structures."""
        if np.isnan(bounds).any():
            raise CertificateError("the multipliers of a part of the record bound nothing")
        self.largest = max(self.largest, float(bounds.max(initial=-np.inf)))


def check_record(
    proof: Mapping[str, Any],
    tops: Sequence[Top],
    root: Callable[[Top], Flags],
    bounds: Bounds,
    progress: Progress | None = None,
) -> None:
    """Bound all structures of the problems: one for each set of class parents, which has options for its features."""
    shape = bounds.margins.n, bounds.margins.n + 2
    walk = _Walk(read_record(proof, shape), shape, tops, bounds)
    walk.check_numbers()
    begun = np.flatnonzero(walk.record.parent < 0)
    if sorted(walk.record.feature[begun].tolist()) != list(range(len(tops))):
        raise CertificateError(TWICE)
    options = Options(walk.record, shape, lambda own: np.array([root(tops[p]) for p in own], bool).reshape(-1, *shape))
    count = len(walk.record.parent)
    for begin in range(0, count, PARTS):
        end = min(begin + PARTS, count)
        walk.check_stretch(begin, options.stretch(begin, end))
        if progress is not None:
            progress(end, count)
    walk.linear.read_all()


class _Walk:
    """All parts of a record, in its order."""

    def __init__(self, record: Record, shape: tuple[int, int], tops: Sequence[Top], bounds: Bounds) -> None:
        self.record, self.shape, self.tops, self.bounds = record, shape, tops, bounds
        self.linear = LinearFunctions(record, bounds.margins, tops)
        self.at_a_time = max(1, OPTIONS // (shape[0] * shape[1]))

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
        self.divided = numbers > 0

    def _beyond(self, options: NDArray[np.uint8]) -> Flags:
        """Whether sets of options have members that are none."""
        return np.asarray((options[:, -1] >> (self.shape[1] - 1) % 8 >> 1) != 0)

    def check_stretch(self, begin: int, parts: Stretch) -> None:
        """Bound what fixes take out of some parts, and what is left of those that are not divided."""
        for own in self._together(parts.group_by):
            self._check_fixes(parts, own)
        closed = np.flatnonzero(~self.divided[begin : begin + len(parts.left)])
        by = self.record.closed[begin + closed].astype(np.int64)
        for own in self._together(by):
            places = closed[own]
            problems, options = parts.problem[places], flags(parts.left[places], self.shape[1])
            listed = self.listed[begin + places].tolist()
            tops = [self.tops[problem] if look else None for problem, look in zip(problems, listed, strict=True)]
            self.bounds.check(self.linear.of(by[own], problems, options), options, tops)

    def _together(self, by: Ints) -> list[Ints]:
        """Those that are bounded together: few enough, by multipliers that are near each other."""
        order = np.argsort(by, kind="stable")
        return [order[begin : begin + self.at_a_time] for begin in range(0, len(order), self.at_a_time)]

    def _check_fixes(self, parts: Stretch, groups: Ints) -> None:
        """Three bounds, each better and slower than the one before, for those that the one before leaves."""
        options = flags(parts.before[groups], self.shape[1])
        linear = self.linear.of(parts.group_by[groups], parts.problem[parts.group_part[groups]], options)
        fixes, group = _members(parts.fix_group, groups)
        feature, (constants, values), claimed = parts.fix_feature[fixes], linear, self.bounds.claimed
        out = flags(parts.fix_out[fixes], self.shape[1])
        best, taken_out = _best(values, options), out & options[group, feature]
        bound = constants[group] + best.sum(axis=1)[group] - best[group, feature]
        bound += np.where(taken_out, values[group, feature], -np.inf).max(axis=1)
        bound[~np.isfinite(best[group]).all(axis=1)] = -np.inf  # there is no structure left
        over = np.flatnonzero(bound > claimed)
        if len(over):
            own, place = np.unique(group[over], return_inverse=True)
            found = OptionCosts(values[own], options[own])
            cheapest = np.where(taken_out[over], found.of(place, feature[over]), np.inf).min(axis=1)
            bound[over] = constants[group[over]] + found.totals[place] - cheapest
        enough = ~(bound > claimed)
        self.bounds.keep(bound[enough])
        if not enough.all():
            left = np.flatnonzero(~enough)
            alone = np.array([_taken_alone(options, group, feature, out, fix) for fix in left.tolist()])
            self.bounds.check(linear.only(group[left]), alone, [None] * len(left))


def _members(of: Ints, groups: Ints) -> tuple[Ints, Ints]:
    """Those of some groups, in the order they have, and the place of the group of each; `of` ascends."""
    begin, end = np.searchsorted(of, groups), np.searchsorted(of, groups, side="right")
    sizes = end - begin
    place = np.repeat(np.arange(len(groups)), sizes)
    return np.arange(sizes.sum()) + (begin - np.cumsum(sizes) + sizes)[place], place


def _taken_alone(options: Flags, group: Ints, feature: Ints, out: Flags, fix: int) -> Flags:
    """What a fix takes out, when those of its group that come before it are made."""
    own: Flags = options[group[fix]].copy()
    for earlier in np.flatnonzero(group[:fix] == group[fix]):
        own[feature[earlier]] &= ~out[earlier]
    own[feature[fix]] &= out[fix]
    return own


def _best(values: Floats, options: Flags) -> Floats:
    """Greatest value of each feature."""
    return np.asarray(np.where(options, values, -np.inf).max(axis=1))


def _check_range(numbers: NDArray[np.int32], end: int, what: str) -> None:
    for number in numbers[(numbers < 0) | (numbers >= end)][:1].tolist():
        whole(number, end, what)


def _uncovered(parts: Ints) -> CertificateError:
    return CertificateError(f"the parts {parts.tolist()} of the record do not cover the part they divide")
