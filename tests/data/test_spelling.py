"""Columns whose spelling makes categories of numbers: what is said of them, and that it helps."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes.data.spelling import doubt_of

POINTS, COMMAS = ["0.7", "1.2", "2.3", "3.4", "4.5"], ["0,7", "1,2", "2,3", "3,4", "4,5"]
THOUSANDS = ["961", "1.015", "1.244", "12.000", "3.500"]


def told(levels: list[str], decimal: str = ".") -> str:
    doubt = doubt_of(levels, np.arange(len(levels)), decimal=decimal)
    return "" if doubt is None else doubt.sentence("x")


@pytest.mark.parametrize(
    ("cell", "remedy"),
    [
        ("<0.5", "write a number beyond the limit, such as 0.25 for '<0.5', and it is cut"),
        ("≤ 3", "such as 1.5 for '≤ 3'"),
        ("<=-2", "such as -3 for '<=-2'"),
        (">100", "such as 101 for '>100'"),
        ("≥ 0.5", "such as 1.5 for '≥ 0.5'"),
        ("90+", "such as 91 for '90+'"),
        ("<low", "is no number; mend it, or make it missing, and it is cut"),
        ("haemolysed", "is no number; mend it, or make it missing, and it is cut"),
    ],
)
def test_a_limit_is_replaced_by_a_number_beyond_it_and_only_another_text_by_nothing(cell: str, remedy: str) -> None:
    said = told([*POINTS, cell])
    assert f"because 1 of its 6 cells, such as {cell!r}, is no number" in said
    assert remedy in said
    assert ("missing" in said) == ("mend" in said)


def test_limits_and_other_texts_each_have_their_remedy() -> None:
    said = told([*POINTS, *POINTS, "<0.5", "lost"])
    assert "such as 0.25 for '<0.5', and mend the others, or make them missing, and it is cut" in said
    assert "2 of its 12 cells, such as 'lost', are no numbers; mend them, or" in told(
        [*POINTS, *POINTS, "lost", "gone"]
    )


def test_commas_and_odd_cells_are_named_together() -> None:
    said = told([*COMMAS, "<0,5"])
    assert "such as '0,7', have a comma, and 1 of its 6 cells, such as '<0,5', is no number; write a point" in said
    assert "write a point for it, and write a number beyond the limit, such as 0,25 for '<0,5'" in said
    assert "because 1 of its 6 cells, such as '<0,5', is no number; write a number" in told([*COMMAS, "<0,5"], ",")
    assert told([*COMMAS, "low", "high", "none"]) == ""


def test_points_between_thousands_are_taken_out_and_not_for_decimal_points() -> None:
    for levels in (THOUSANDS, [*THOUSANDS, "1.234,50"], [*THOUSANDS, "<1.000"]):
        doubt = doubt_of(levels, np.arange(len(levels)), decimal=",")
        assert doubt is not None
        assert doubt.decimal is None
        assert "such as '1.015', have points between thousands" in doubt.reason
        assert doubt.remedy == "take the points out"
    assert "such as 500 for '<1.000'" in told([*THOUSANDS, "<1.000"], ",")
    assert (
        "'961,50', have points between thousands and a comma; take the points out and write a point for the comma"
        in (told(["961,50", "1.015,25", "1.244,00", "12.000,00", "3.500,75"]))
    )


def test_three_digits_behind_a_zero_are_no_thousands() -> None:
    levels = ["0,014", "0,125", "1,015", "0,689", "2,500"]
    assert "such as '0,014', have a comma; write a point for it" in told(levels)
    assert "have a point; write a comma for it" in told([v.replace(",", ".") for v in levels], ",")


def test_who_reads_with_a_comma_is_not_sent_back_to_the_point() -> None:
    levels = ["1.5", "2.25", "0.7", "3.75", "4.5"]
    doubt = doubt_of(levels, np.arange(5), decimal=",")
    assert doubt is not None
    assert doubt.decimal is None
    assert "have a point; write a comma for it" in doubt.sentence("x")
    found = doubt_of(COMMAS, np.arange(5))
    assert found is not None
    assert found.decimal == ","
