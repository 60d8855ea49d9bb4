"""What a setting may be. A check raises a ValueError that names the setting, its value and what is allowed.

NumPy's integers and floats count as Python's do. Truth values, texts and NaN are no numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

__all__ = ["jobs", "not_negative", "number", "one_of", "positive", "whole"]


def number(
    name: str, value: Any, allowed: Callable[[float], bool], meaning: str, *, none: bool = False, note: str = ""
) -> None:
    """Refuse what is not an allowed number; None passes if `none` says so.

    Parameters
    ----------
    name : str
        Of the setting.
    value : object
    allowed : callable
        Whether a number, infinite or not, may be the value.
    meaning : str
        The same in words that follow "must be".
    none : bool, default=False
        Whether None may be the value.
    note : str, default=""
        What comes after that in the sentence: a reason, or a remedy.

    Examples
    --------
    >>> number("p", 2, lambda p: 0 < p < 1, "above 0 and below 1")
    Traceback (most recent call last):
    ...
    ValueError: p=2 must be above 0 and below 1
    """
    if (none and value is None) or (_is_number(value) and allowed(value)):
        return
    raise ValueError(f"{name}={value!r} must be {meaning}{', or None' if none else ''}{note}")


def positive(name: str, value: Any, *, infinite: bool = False, none: bool = False, note: str = "") -> None:
    """Refuse what is not a number above zero; infinity and None pass where that is said."""
    number(name, value, lambda v: v > 0 and (infinite or v < math.inf), "a positive number", none=none, note=note)


def not_negative(name: str, value: Any, *, infinite: bool = False, none: bool = False, note: str = "") -> None:
    """Refuse what is neither zero nor a number above; infinity and None pass where that is said."""
    meaning = "a number that is not negative"
    number(name, value, lambda v: v >= 0 and (infinite or v < math.inf), meaning, none=none, note=note)


def whole(name: str, value: Any, least: int = 0, most: float = math.inf, *, none: bool = False, note: str = "") -> None:
    """Refuse what is not an integer from `least` to `most`; 1.0 is none, and None passes where that is said."""
    meaning = f"a whole number, at least {least}" if most == math.inf else f"a whole number from {least} to {most}"

    def allowed(v: float) -> bool:
        return isinstance(v, (int, np.integer)) and least <= v <= most

    number(name, value, allowed, meaning, none=none, note=note)


def jobs(name: str, value: Any) -> None:
    """Refuse what is no number of threads as joblib counts them: None and negative numbers are some."""
    meaning = "a whole number other than 0"
    number(name, value, lambda v: isinstance(v, (int, np.integer)) and v != 0, meaning, none=True)


def one_of(name: str, value: Any, choices: Iterable[str | None], *, note: str = "") -> None:
    """Refuse what is not among the choices."""
    known = tuple(choices)
    if not (value is None or isinstance(value, str)) or value not in known:
        raise ValueError(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}{note}")


def _is_number(value: Any) -> bool:
    kinds = (int, float, np.integer, np.floating)
    return isinstance(value, kinds) and not isinstance(value, bool) and value == value  # NaN differs from itself
