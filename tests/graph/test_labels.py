"""Labels: they fit, they say what the name says, and no two names look alike."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from marginbayes.graph.dag import Dag
from marginbayes.graph.labels import LABEL, shorten, shorten_all, text_width
from marginbayes.graph.layout import lay_out

unhurried = settings(deadline=None, max_examples=50)
PRESSURES = [
    "blood_pressure_systolic_mean_first_24_hours",
    "blood_pressure_diastolic_mean_first_24_hours",
    "blood_pressure_systolic_max_first_24_hours",
]
ITEMS = [f"questionnaire_item_{i:02d}_how_often_in_the_last_four_weeks_did_you_feel_tired" for i in range(45)]


def follows(label: str, name: str) -> bool:
    """Whether the pieces between the ellipses of a label occur in the name, one after the other."""
    at = 0
    for piece in label.split("…"):
        at = name.find(piece, at) + len(piece)
        if at < len(piece):
            return False
    return True


@unhurried
@given(st.text(max_size=80))
def test_a_label_is_printable_and_fits(name: str) -> None:
    label = shorten(name)
    assert label.isprintable()
    assert text_width(label) <= LABEL


@unhurried
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_a_label_is_the_name_or_its_beginning_and_end(name: str) -> None:
    label = shorten(name)
    if text_width(name) <= LABEL:
        assert label == name
    else:
        start, end = label.split("…")
        assert name.startswith(start)
        assert name.endswith(end)
        assert 0 <= len(start) - len(end) <= 1


@settings(deadline=None, max_examples=300)
@given(st.lists(st.text("ab_1…", max_size=24), max_size=12), st.floats(20.0, 120.0))
def test_different_names_have_different_labels_and_each_follows_its_name(names: list[str], limit: float) -> None:
    labels = shorten_all(names, limit)
    assert len(set(labels)) == len(set(names))
    assert all(follows(label, name) for label, name in zip(labels, names, strict=True))


def test_a_name_that_looks_like_no_other_is_shortened_as_if_it_were_alone() -> None:
    other = "oxygen_saturation_of_the_blood_first_24_hours"
    assert shorten_all([*PRESSURES, other])[-1] == shorten(other)


def test_names_that_differ_in_the_middle_show_what_differs_and_still_fit() -> None:
    labels = shorten_all(PRESSURES)
    shown = ("systolic_mean", "diastolic_mean", "systolic_max")
    assert all(words in label for words, label in zip(shown, labels, strict=True))
    assert all(text_width(label) <= LABEL for label in labels)


def test_boxes_of_a_long_questionnaire_are_told_apart() -> None:
    labels = lay_out(Dag.naive(["class", *ITEMS])).labels
    assert all(f"{i:02d}" in label for i, label in enumerate(labels[1:]))
    assert all(text_width(label) <= LABEL for label in labels)


def test_names_of_three_parts_that_all_vary_are_told_apart_without_wider_boxes() -> None:
    parts = itertools.product((1, 2, 3), ("inlet", "outlet"), ("warm", "cold"))
    names = [f"engine_{i}_temperature_of_the_zone_{z}_mean_after_{a}_start" for i, z, a in parts]
    labels = shorten_all(names)
    assert len(set(labels)) == 12
    assert all(text_width(label) <= LABEL for label in labels)


def test_names_that_only_their_length_tells_apart_get_longer_labels() -> None:
    names = ["x" * 60, "x" * 61, "x" * 62]
    assert len(set(shorten_all(names))) == 3


def test_numbered_long_names_stay_distinct() -> None:
    names = [f"a_very_long_measurement_of_something_{i:04d}" for i in range(50)]
    assert len({shorten(name) for name in names}) == 50


@unhurried
@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30))
def test_the_estimated_width_of_a_text_is_not_below_its_width_in_a_wide_font(text: str) -> None:
    font = FontProperties(family="DejaVu Sans", size=13)
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    assert text_width(text) >= width - 0.5  # the font's own widths are hinted to parts of a pixel


def test_no_room_at_all_is_no_error() -> None:
    assert len(set(shorten_all(["male", "female"], -3.0))) == 2
