"""Charts: what is drawn where, and that every text has room."""

import re
from itertools import pairwise

import numpy as np
import pytest

from marginbayes.report.charts import critical_difference, lines, scatter

FONT = 6.7  # mean width of a character of DejaVu Sans at 12 px, which is a wide font


def texts(svg):
    """Each text with the places of its left and right ends."""
    found = {}
    for attributes, text in re.findall(r"<text ([^>]*)>([^<]*)</text>", svg):
        if "transform" in attributes:
            continue
        x, room = float(re.search(r'x="([^"]+)"', attributes)[1]), FONT * len(text)
        before = 1.0 if 'text-anchor="end"' in attributes else 0.5 if 'class="mid"' in attributes else 0.0
        found[text] = (x - before * room, x + (1 - before) * room)
    return found


def width(svg):
    return float(re.search(r'viewBox="0 0 (\S+) ', svg)[1])


def ticks(svg):
    """Texts below the horizontal axis, from left to right."""
    return re.findall(r'<text x="[^"]+" y="292" class="mid">([^<]*)</text>', svg)


def test_higher_values_are_drawn_higher_and_later_ones_further_right():
    svg = lines({"a": [(1, 10.0), (2, 30.0), (4, 20.0)]}, "x", "y")
    points = [tuple(map(float, p.split(","))) for p in re.search(r'points="([^"]+)"', svg)[1].split()]
    assert points[0][0] < points[1][0] < points[2][0]
    assert points[1][1] < points[2][1] < points[0][1]


def test_a_curve_of_one_point_is_a_dot():
    drawn = lines({"a": [(1.0, 2.0)], "b": [(1.0, 3.0), (2.0, 4.0)]}, "x", "y")
    assert re.findall(r"<circle[^>]*>(?:<title>(.)</title>)?", drawn) == ["a", ""]  # in the chart and in the legend


def test_charts_of_nothing_are_nothing_and_of_one_point_stand():
    assert lines({}, "x", "y") == ""
    assert scatter({}, "x", "y") == ""
    assert "circle" in scatter({"a": (1.0, 5.0)}, "x", "y")


def test_points_keep_off_the_numbers_at_the_axes():
    svg = scatter({"a": (1.0, 80.0), "b": (1000.0, 90.0)}, "seconds", "%")
    (left, low), (right, high) = (
        map(float, p) for p in re.findall(r'<circle cx="([^"]+)" cy="([^"]+)" r="5"', svg)[:2]
    )
    assert left - 6.5 > texts(svg)["80"][1] + 6.5
    assert low + 6.5 < 292 - 12
    assert right + 6.5 < width(svg)
    assert high - 6.5 > 0


def test_the_rank_diagram_names_every_method_and_draws_a_bar_for_each_group():
    svg = critical_difference({"a": 1.2, "b": 2.0, "c": 2.8}, 1.0, [["a", "b"], ["b", "c"]])
    assert svg.count('class="bar"') == 3
    assert all(f"{name} ({rank:.2f})" in svg for name, rank in {"a": 1.2, "b": 2.0, "c": 2.8}.items())


def test_the_rank_diagram_has_room_for_the_longest_names():
    ranks = {f"a-method-with-a-very-long-name-{i}": 1.0 + 20 * i / 40 for i in range(41)} | {"z": 21.0}
    svg = critical_difference(ranks, 30.0, [])
    assert len(texts(svg)) == 42 + 21 + 1
    assert all(low >= 0 and high <= width(svg) for low, high in texts(svg).values())


def test_no_two_of_48_points_look_alike_and_the_legend_shows_each():
    svg = scatter({f"m{i}": (1.0 + i, 50.0 + i) for i in range(48)}, "x", "y")
    looks = re.findall(r'(<circle|<path d="[^"]+")[^>]*(class="c\d dot")[^>]*>(<title>)?', svg)
    drawn = [look[:2] for look in looks if look[2]]
    assert len(drawn) == len(set(drawn)) == 48
    assert [look[:2] for look in looks if not look[2]] == drawn


def test_a_value_that_holds_until_the_next_is_drawn_as_steps():
    svg = lines({"bound": [(1, 9.0), (10, 4.0), (100, 3.0)]}, "seconds", "score", log_x=True, steps=True)
    points = [tuple(map(float, p.split(","))) for p in re.search(r'points="([^"]+)"', svg)[1].split()]
    assert len(points) == 5
    assert all(a == c or b == d for (a, b), (c, d) in pairwise(points))
    assert points[0][1] == points[1][1] < points[2][1] == points[3][1] < points[4][1]  # downwards on the screen


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.191584, 0.7381, ["0.2", "0.5"]),
        (0.02, 400, ["0.1", "1", "10", "100"]),
        (3, 130, ["5", "10", "20", "50", "100"]),
        (2.1, 2.9, ["2.2", "2.4", "2.6", "2.8"]),
        (1, 1000, ["1", "10", "100", "1000"]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_round_numbers(low, high, shown):
    assert ticks(lines({"a": [(low, 1.0), (high, 2.0)]}, "x", "y", log_x=True)) == shown


@pytest.mark.parametrize("values", [(28894.25, 28894.75), (1e5, 9e7), (0.0, 1.0), (-1e-4, 2e-4), (7.0, 7.0)])
def test_numbers_at_the_axes_differ_and_have_room(values):
    svg = lines({"a": [(1e-3, values[0]), (123456.0, values[1])]}, "x", "y")
    found = re.findall(r'text-anchor="end">([^<]*)<', svg)
    assert len(found) == len(set(found)) > 1
    steps = np.diff([float(text) for text in found])
    assert np.allclose(steps, steps[0])
    name = 18  # where the name of the axis ends
    assert all(low >= name for text, (low, _) in texts(svg).items() if text in found)
    assert all(high <= width(svg) for _, high in texts(svg).values())
