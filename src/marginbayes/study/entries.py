"""Values of a study's file, checked where they are read: what is wrong is named with its place."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["check_table", "listed", "numbers", "of_type", "refuse", "whole_number"]

Options = Mapping[str, Any]


def refuse(key: str, value: Any, what: str, where: str) -> NoReturn:
    """Raise for a value that is not what the key needs."""
    raise ValueError(f"{where} has {key} = {value!r}, which should be {what}")


def check_table(value: Any, known: set[str] | None, where: str) -> Options:
    """A table with known keys, or any where there is no telling; what else is there is named."""
    if not isinstance(value, dict):
        raise ValueError(f"{where} should be a table of keys and values, not {value!r}")
    for key in sorted(value.keys() - (value.keys() if known is None else known)):
        near = difflib.get_close_matches(key, known or (), 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known or ()))}"
        raise ValueError(f"{where} has {key!r}, which no study knows; {hint}")
    return value


def of_type(entry: Options, key: str, default: Any, what: str, where: str) -> Any:
    """What stands under a key, of the default's type, or the default."""
    value = entry.get(key, default)
    if not isinstance(value, type(default)):
        refuse(key, value, what, where)
    return value


def whole_number(entry: Options, key: str, default: int, least: int, where: str) -> int:
    """A whole number that is large enough, or the default."""
    value = entry.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        refuse(key, value, f"a whole number from {least} on", where)
    return value


def listed(entry: Options, key: str, where: str, kind: type = str) -> tuple[Any, ...]:
    """Names, or other values of a kind, each once."""
    value = entry[key]
    what = "names" if kind is str else "whole numbers"
    if not isinstance(value, list) or not value or not all(type(item) is kind for item in value):
        refuse(key, value, f"a list of {what}", where)
    twice = sorted({item for item in value if value.count(item) > 1})
    if twice:
        raise ValueError(f"{where} has {', '.join(map(repr, twice))} twice in {key}; once is enough")
    return tuple(value)


def numbers(value: Any, count: int) -> tuple[float, ...] | None:
    """A list of so many numbers, None where it is something else."""
    if not isinstance(value, list) or len(value) != count:
        return None
    known = [float(item) for item in value if isinstance(item, (int, float)) and not isinstance(item, bool)]
    return tuple(known) if len(known) == count else None
