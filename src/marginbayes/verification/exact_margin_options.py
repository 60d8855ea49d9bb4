"""Options of the parts of a record, a stretch of parts after the other.

A part begins with the options of the part it belongs to, of which a division leaves some; fixes take out more. Sets of
options are bits of words. Of the parts before a stretch only those are kept that have pieces to come: as many as were
open in the search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.exact_margin_packed import Record

__all__ = ["Options", "Stretch", "flags"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]


class Stretch(NamedTuple):
    """Parts with what they hold at last, and their fixes: those of a part by the same multipliers are a group."""

    problem: Ints
    left: Words  # [part, feature, word]
    group_part: Ints  # counted from the first part of the stretch
    group_by: Ints
    before: Words  # what the part of a group has before its fixes: [group, feature, word]
    fix_group: Ints
    fix_feature: Ints
    fix_out: Words  # [fix, word]


class Options:
    """Options of all parts of a record whose numbers were checked; `roots` are those of problems, by their numbers."""

    def __init__(self, record: Record, shape: tuple[int, int], roots: Callable[[Ints], Flags]) -> None:
        self.record, self.roots = record, roots
        self.shape = shape[0], -(-shape[1] // 64)
        count = len(record.parent)
        self.fixes = np.argsort(record.fix_part, kind="stable")  # of a part in the order in which they were made
        self.ends = np.concatenate([[0], np.cumsum(np.bincount(record.fix_part, minlength=count))])
        self.last_piece = np.full(count + 1, -1)  # one more, for the parent of what has none
        self.last_piece[record.parent] = np.arange(count)  # of several values the last one stays
        self.problem = np.zeros(count, np.int64)
        self.slot = np.full(count, -1)
        self.kept = np.zeros((0, *self.shape), np.uint64)
        self.free: list[int] = []

    def stretch(self, begin: int, end: int) -> Stretch:
        """What the next parts hold; stretches are asked for one after the other."""
        record = self.record
        own = self.fixes[self.ends[begin] : self.ends[end]]
        part, feature = record.fix_part[own] - begin, record.fix_feature[own].astype(np.int64)
        out, by = _words(record.fix_options[own]), record.fix_by[own].astype(np.int64)
        gone = np.zeros((end - begin, *self.shape), np.uint64)
        np.bitwise_or.at(gone, (part, feature), out)
        start, left = self._follow(begin, end, gone)
        self._keep(begin, end, left)

        changes = (np.diff(part, prepend=-1) != 0) | (np.diff(by, prepend=-1) != 0)
        group, first = np.cumsum(changes) - 1, np.flatnonzero(changes)
        group_part, group_by = part[first].astype(np.int64), by[first]
        taken = np.zeros((len(first), *self.shape), np.uint64)
        np.bitwise_or.at(taken, (group, feature), out)
        before = start[group_part]
        place = np.arange(len(first)) - np.searchsorted(group_part, group_part)  # among the groups of a part
        for later in range(1, int(place.max(initial=0)) + 1):
            now = np.flatnonzero(place == later)
            before[now] = before[now - 1] & ~taken[now - 1]
        return Stretch(self.problem[begin:end], left, group_part, group_by, before, group, feature, out)

    def _follow(self, begin: int, end: int, gone: Words) -> tuple[Words, Words]:
        """Options of parts before and after their fixes, those of a part before those of its pieces."""
        record = self.record
        parent, feature = record.parent[begin:end].astype(np.int64), record.feature[begin:end].astype(np.int64)
        inside = _words(record.inside[begin:end])
        stays = np.where(record.taken[begin:end, None] == 1, inside, ~inside)
        start, left = np.empty_like(gone), np.empty_like(gone)
        whole = np.flatnonzero(parent < 0)
        self.problem[begin + whole] = feature[whole]
        start[whole] = self._packed(self.roots(feature[whole]))
        left[whole] = start[whole] & ~gone[whole]
        for now in _generations(parent - begin, parent >= 0):
            above = parent[now]
            self.problem[begin + now] = self.problem[above]
            start[now] = left[above - begin] if above[0] >= begin else self.kept[self.slot[above]]
            start[now, feature[now]] &= stays[now]
            left[now] = start[now] & ~gone[now]
        return start, left

    def _keep(self, begin: int, end: int, left: Words) -> None:
        """Let go of what has no pieces to come, and keep what has."""
        above = self.record.parent[begin:end]
        done = above[(self.last_piece[above] == np.arange(begin, end)) & (above >= 0) & (above < begin)]
        self.free += self.slot[done].tolist()
        later = np.flatnonzero(self.last_piece[begin:end] >= end)
        missing = len(later) - len(self.free)
        if missing > 0:
            more = max(missing, len(self.kept))  # twice as many, for a copy now and then only
            self.free += range(len(self.kept), len(self.kept) + more)
            self.kept = np.concatenate([self.kept, np.empty((more, *self.shape), np.uint64)])
        slots = np.array([self.free.pop() for _ in later], np.int64)
        self.slot[begin + later], self.kept[slots] = slots, left[later]

    def _packed(self, options: Flags) -> Words:
        lines = np.packbits(options, axis=-1, bitorder="little")
        return _words(lines.reshape(-1, lines.shape[-1])).reshape(len(options), *self.shape)


def flags(words: Words, n_options: int) -> Flags:
    """Whether each option is in sets of them."""
    raw = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(raw, axis=-1, count=n_options, bitorder="little").view(np.bool_)


def _words(lines: Bytes) -> Words:
    """Lines of bytes as words."""
    wide = np.zeros((len(lines), -(-lines.shape[1] // 8) * 8), np.uint8)
    wide[:, : lines.shape[1]] = lines
    return wide.view("<u8").astype(np.uint64, copy=False)


def _generations(above: Ints, there: Flags) -> list[Ints]:
    """Places of those that are there, first those of whom nothing above is among them, then those below, and so on."""
    age = np.zeros(len(above), np.int64)
    for place, parent in enumerate(above.tolist()):
        if parent >= 0:
            age[place] = age[parent] + 1
    order = np.argsort(age, kind="stable")
    order = order[there[order]]
    return np.split(order, np.flatnonzero(np.diff(age[order])) + 1) if len(order) else []
