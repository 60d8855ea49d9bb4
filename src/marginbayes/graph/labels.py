"""Names as labels: how wide a text is, and how long names are shortened so that no two look alike."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, takewhile, zip_longest

__all__ = ["FONT", "LABEL", "shorten", "shorten_all", "text_width"]

FONT = 13.0  # pixels
LABEL = 180.0  # longer names are shortened to this width
ELLIPSIS = "…"
CORE = 0.7  # of the limit may be taken by what tells a name from the others it was taken for
WORD = 6  # letters of the first and the last word that differ, where all that differs takes more than that

# Widths of characters in a wide sans serif, in font sizes; all others are between these.
_WIDTHS = {"iljtfrI.,:;'|!()[]/\\ -": 0.42, "#&+<=>~^": 0.85, "mwMW@%…": 1.0}
_WORD = re.compile(r"[^\W_]+|[\W_]")


def text_width(text: str, size: float = FONT) -> float:
    """Width of a text in pixels, rather too large than too small, without asking for the font."""
    return size * sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    for characters, width in _WIDTHS.items():
        if character in characters:
            return width
    return 0.80 if character.isupper() else 0.64


def shorten(name: str, limit: float = LABEL) -> str:
    """The name, or as much of its beginning and end as fits into the limit, in printable characters."""
    return shorten_all([name], limit)[0]


def shorten_all(names: Iterable[str], limit: float = LABEL) -> tuple[str, ...]:
    """The names, each shortened as by `shorten`, but so that different names stay different.

    A name that would look like another keeps what tells the two apart. Only where that alone takes more room than
    there is, a label is wider than the limit.

    Examples
    --------
    >>> shorten_all(["blood_pressure_systolic_first_24_hours", "blood_pressure_diastolic_first_24_hours"])
    ('blood_…systolic…_hours', 'blood_…diastolic…hours')
    """
    limit = max(0.0, limit)
    clean = ["".join(c if c.isprintable() else " " for c in name) for name in names]
    kept: dict[str, frozenset[int]] = dict.fromkeys(clean, frozenset())
    labels = {name: _cut(name, frozenset(), limit) for name in kept}
    while groups := _mistaken(labels):
        for group in groups:
            wanted = {name: kept[name] | places for name, places in _differences(group, CORE * limit).items()}
            if all(wanted[name] == kept[name] for name in group):  # all that differs is there: the rest as well
                wanted = {name: frozenset(range(len(name))) for name in group}
            kept |= wanted
            labels |= {name: _cut(name, kept[name], limit) for name in group}
    return tuple(labels[name] for name in clean)


def _mistaken(labels: dict[str, str]) -> list[list[str]]:
    """Names that have the same label, in groups."""
    groups = defaultdict(list)
    for name, label in labels.items():
        groups[label].append(name)
    return [group for group in groups.values() if len(group) > 1]


def _differences(group: Sequence[str], room: float) -> dict[str, set[int]]:
    """Where each name differs from the others: all between common beginning and end, or the first and last of it."""
    start = _common_start(group)
    same = _common_start([name[start:][::-1] for name in group])
    found = {}
    for name in group:
        core, end = name[start : len(name) - same], len(name) - same
        if core and text_width(core) > room:
            words = _WORD.findall(core)
            first, last = min(len(words[0]), WORD), min(len(words[-1]), WORD)
            found[name] = {*range(start, start + first), *range(end - last, end)}
        else:
            found[name] = set(range(start, end))
    return found


def _common_start(texts: Iterable[str]) -> int:
    """How many letters the texts begin with alike."""
    return sum(1 for _ in takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False)))


def _cut(name: str, kept: Collection[int], limit: float) -> str:
    """What must be kept of a name, then the words around it, then its beginning and end, as long as they fit."""
    if text_width(name) <= limit:
        return name
    shown = set(kept)
    for place in chain(_words_around(name, kept), _from_both_ends(len(name))):
        if text_width(_drawn(name, shown | {place})) > limit:
            break
        shown.add(place)
    return _drawn(name, shown)


def _words_around(name: str, kept: Collection[int]) -> Iterator[int]:
    """The places of the words that are kept in part, those beside a kept letter first."""
    edges = [(place, step) for place in sorted(kept) for step in (-1, 1) if place + step not in kept]
    runs = [_run(name, place, step) for place, step in edges]
    return (place for places in zip_longest(*runs) for place in places if place is not None)


def _run(name: str, place: int, step: int) -> list[int]:
    """The letters and digits that follow one in this direction."""
    found = []
    while name[place].isalnum() and 0 <= place + step < len(name) and name[place + step].isalnum():
        place += step
        found.append(place)
    return found


def _from_both_ends(length: int) -> Iterator[int]:
    for k in range((length + 1) // 2):
        yield from (k, length - 1 - k)


def _drawn(name: str, shown: Collection[int]) -> str:
    """The letters shown, and an ellipsis for each gap of two or more: a single letter is no wider than that."""
    text, gap = [], ""
    for place, letter in enumerate(name):
        if place in shown:
            text += [gap if len(gap) < 2 else ELLIPSIS, letter]
            gap = ""
        else:
            gap += letter
    return "".join(text) + (gap if len(gap) < 2 else ELLIPSIS)
