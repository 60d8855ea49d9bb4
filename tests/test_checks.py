"""Checks of settings: what passes, and the sentence that refuses the rest."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from marginbayes import checks

NO_NUMBERS = ["text", "1", "", math.nan, np.float64("nan"), True, False, np.True_, [1], np.ones(2), 1j, object]


@pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)
@pytest.mark.parametrize("check", [checks.positive, checks.not_negative, checks.whole, checks.jobs])
def test_what_is_no_number_is_refused_with_its_name_and_value(check: Callable[..., None], value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^size={re.escape(repr(value))} must be a "):
        check("size", value)


@pytest.mark.parametrize("kind", [int, float, np.int64, np.uint8, np.float32, np.float64, np.longdouble])
def test_numbers_of_numpy_count_like_those_of_python(kind: type) -> None:
    checks.positive("size", kind(3))
    checks.not_negative("size", kind(0))
    checks.number("size", kind(3), lambda v: v < 4, "below 4")
    if issubclass(kind, (int, np.integer)):
        checks.whole("size", kind(3), 1, 3)
        checks.jobs("size", kind(3))
    else:
        with pytest.raises(ValueError, match="must be a whole number, at least 0"):
            checks.whole("size", kind(3))


@pytest.mark.parametrize(
    ("check", "value", "options", "said"),
    [
        (checks.positive, 0, {}, "a positive number"),
        (checks.positive, math.inf, {}, "a positive number"),
        (checks.positive, -math.inf, {"infinite": True}, "a positive number"),
        (checks.positive, -1, {"none": True}, "a positive number, or None"),
        (checks.positive, 0, {"note": ": use 1"}, "a positive number: use 1"),
        (checks.not_negative, -1e-9, {}, "a number that is not negative"),
        (checks.not_negative, None, {}, "a number that is not negative"),
        (checks.whole, -1, {}, "a whole number, at least 0"),
        (checks.whole, 0, {"least": 1, "none": True}, "a whole number, at least 1, or None"),
        (checks.whole, 6, {"least": 1, "most": 5}, "a whole number from 1 to 5"),
        (checks.whole, 2.0, {"most": 5}, "a whole number from 0 to 5"),
        (checks.jobs, 0, {}, "a whole number other than 0, or None"),
    ],
)
def test_a_number_that_is_not_allowed_is_refused_with_what_is(
    check: Callable[..., None], value: Any, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=rf"^size={re.escape(repr(value))} must be {said}$"):
        check("size", value, **options)


@pytest.mark.parametrize(
    ("check", "value", "options"),
    [
        (checks.positive, math.inf, {"infinite": True}),
        (checks.positive, None, {"none": True}),
        (checks.not_negative, 0.0, {}),
        (checks.not_negative, math.inf, {"infinite": True}),
        (checks.whole, 0, {}),
        (checks.whole, 10**400, {}),
        (checks.whole, 5, {"least": 5, "most": 5}),
        (checks.whole, None, {"none": True}),
        (checks.jobs, -1, {}),
        (checks.jobs, None, {}),
    ],
)
def test_the_edges_of_what_is_allowed_pass(check: Callable[..., None], value: Any, options: dict[str, Any]) -> None:
    check("size", value, **options)


@pytest.mark.parametrize("value", ["c", "", 0, None, ["a"], np.array(["a", "b"])], ids=repr)
def test_what_is_none_of_the_choices_is_refused_with_all_of_them(value: Any) -> None:
    said = re.escape(f"way={value!r} is not known; choose one of 'a', 'b', or give a Way")
    with pytest.raises(ValueError, match=f"^{said}$"):
        checks.one_of("way", value, {"a": 1, "b": 2}, note=", or give a Way")


def test_none_is_a_choice_where_it_is_among_them() -> None:
    checks.one_of("way", None, (None, "a"))
    checks.one_of("way", np.str_("a"), (None, "a"))
