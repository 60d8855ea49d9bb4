"""SVG pictures: valid, self-contained, every name and edge in them, widths that follow the information."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes.graph.boxes import Route
from marginbayes.graph.dag import Dag
from marginbayes.graph.layout import lay_out
from marginbayes.graph.svg import arrow, draw_svg, legend_values, line_width

SVG = "{http://www.w3.org/2000/svg}"
AWKWARD = [
    "a<b",
    'quote"d',
    "it's",
    "x & y",
    "<script>alert(1)</script>",
    "tab\tbed",
    "two\nlines",
    "",
    "年齢",
    "$x$",
]

unhurried = settings(deadline=None, max_examples=50)


def tan() -> Dag:
    edges = [("class", x) for x in "abcde"] + [("a", "b"), ("a", "c"), ("b", "d"), ("b", "e")]
    return Dag.from_edges(edges)


def titles(root: ET.Element) -> list[str]:
    return [title.text or "" for title in root.iter(f"{SVG}title")]


def edge_widths(root: ET.Element) -> dict[str, float]:
    """Width of the line of each edge, by the beginning of its tooltip."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        title, path = group.find(f"{SVG}title"), group.find(f"{SVG}path")
        if title is not None and path is not None:
            found[(title.text or "").split(":")[0]] = float(path.attrib["stroke-width"])
    return found


@unhurried
@given(st.lists(st.text(max_size=40), unique=True, max_size=12))
def test_any_names_give_valid_xml_with_a_box_for_each(names: list[str]) -> None:
    root = ET.fromstring(draw_svg(Dag.naive(names) if names else Dag((), ())))
    assert len(list(root.iter(f"{SVG}rect"))) == len(names)
    assert len(list(root.iter(f"{SVG}polygon"))) == max(0, len(names) - 1)


def test_awkward_names_are_escaped_and_kept_whole_in_the_tooltips() -> None:
    text = draw_svg(Dag.naive(AWKWARD))
    root = ET.fromstring(text)
    assert set(AWKWARD) <= set(titles(root))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        *("svg", "style", "g", "title", "path", "polygon", "rect", "text")
    }


@pytest.mark.parametrize("name", ["nul\x00", "escape\x1b", "surrogate\ud800", "noncharacter\uffff"])
def test_characters_that_xml_forbids_are_replaced(name: str) -> None:
    text = draw_svg(Dag.naive(["class", name]), title=name, tooltips={name: name})
    ET.fromstring(text.encode("utf-8"))
    assert "\ufffd" in text


def test_a_long_name_is_shortened_in_its_box_and_whole_in_its_tooltip() -> None:
    name = "a_very_long_name_of_a_measurement_that_never_seems_to_end"
    root = ET.fromstring(draw_svg(Dag.naive(["class", name])))
    labels = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert name in titles(root)
    assert name not in labels
    assert any(label.startswith("a_very") and label.endswith("_end") for label in labels)


def test_the_picture_needs_nothing_from_outside() -> None:
    text = draw_svg(tan(), widths=dict.fromkeys(tan().edges, 0.5), title="A network")
    assert re.findall(r"https?:[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    for word in ("href", "url(", "@import", "<script", "<image", "<foreignObject"):
        assert word not in text


def test_two_pictures_on_a_page_share_no_identifiers() -> None:
    assert " id=" not in draw_svg(tan())


def test_the_picture_says_what_it_is() -> None:
    root = ET.fromstring(draw_svg(tan()))
    assert root.attrib["role"] == "img"
    assert "6 variables" in root.attrib["aria-label"]
    assert ET.fromstring(draw_svg(tan(), title='My "net"')).attrib["aria-label"] == 'My "net"'


def test_a_file_follows_dark_mode_and_an_inline_picture_the_page() -> None:
    text = draw_svg(tan())
    assert "prefers-color-scheme:dark" in text
    style = re.search(r"<style>(.*?)</style>", text)
    assert style is not None
    colours = re.findall(r"[^{}]*\{color:", style.group(1))
    assert colours
    assert all(":root" in rule for rule in colours)


def test_every_edge_has_a_tooltip_with_its_information() -> None:
    dag = tan()
    root = ET.fromstring(draw_svg(dag, widths={("a", "b"): 0.12345}))
    assert "a → b: 0.123 nats" in titles(root)
    assert {f"{p} → {c}" for p, c in dag.edges} <= {title.split(":")[0] for title in titles(root)}


def test_tooltips_are_added_below_the_name() -> None:
    root = ET.fromstring(draw_svg(tan(), tooltips={"a": "3 levels & more"}))
    assert "a\n3 levels & more" in titles(root)


def test_lines_are_as_wide_as_their_information() -> None:
    dag = tan()
    information = {edge: 0.1 * k for k, edge in enumerate(dag.edges)}
    found = edge_widths(ET.fromstring(draw_svg(dag, widths=information)))
    widths = [found[f"{p} → {c}"] for p, c in dag.edges]
    assert widths == sorted(widths)
    assert widths[-1] == pytest.approx(2 * found["{} → {}".format(*dag.edges[4])], rel=0.15)


def test_edges_without_information_are_all_thin() -> None:
    assert len(set(edge_widths(ET.fromstring(draw_svg(tan()))).values())) == 1


def test_there_is_a_legend_only_where_there_is_information() -> None:
    assert "nats" not in draw_svg(tan())
    assert "nats</text>" not in draw_svg(tan(), widths=dict.fromkeys(tan().edges, 0.0))
    assert "nats</text>" in draw_svg(tan(), widths={("a", "b"): 0.2})


def test_edges_of_the_class_can_be_left_out() -> None:
    root = ET.fromstring(draw_svg(tan(), class_edges=False))
    edges = [title for title in titles(root) if "→" in title]
    assert sorted(edges) == ["a → b", "a → c", "b → d", "b → e"]


def test_the_edges_of_the_class_are_fainter_than_the_others() -> None:
    root = ET.fromstring(draw_svg(tan()))
    opacity = {}
    for group in root.iter(f"{SVG}g"):
        for edge in group.findall(f"{SVG}g/{SVG}title"):
            if "opacity" in group.attrib:
                opacity[edge.text] = float(group.attrib["opacity"])
    assert opacity["class → a"] < opacity["a → b"]


def test_only_the_class_is_filled_and_only_unconnected_variables_are_dashed() -> None:
    dag = Dag.from_edges([("class", "a")], names=["class", "a", "unused"])
    boxes = list(ET.fromstring(draw_svg(dag)).iter(f"{SVG}rect"))
    assert ["stroke" in box.attrib for box in boxes] == [False, True, True]
    assert ["stroke-dasharray" in box.attrib for box in boxes] == [False, False, True]


def test_a_wider_heading_or_legend_widens_the_picture() -> None:
    one = Dag.naive(["c", "x"])
    bare = float(ET.fromstring(draw_svg(one)).attrib["width"])
    assert float(ET.fromstring(draw_svg(one, title="A long heading " * 5)).attrib["width"]) > bare
    assert float(ET.fromstring(draw_svg(one, widths={("c", "x"): 1.0})).attrib["width"]) > bare


def test_the_same_graph_gives_the_same_text() -> None:
    assert draw_svg(tan()) == draw_svg(tan())


def test_a_graph_shows_itself_in_a_notebook() -> None:
    assert tan()._repr_html_() == draw_svg(tan())


@pytest.mark.parametrize(
    ("edge", "value", "message"),
    [
        (("a", "zebra"), 1.0, "'zebra'"),
        (("b", "a"), 1.0, "does not have"),
        (("a", "b"), -0.5, "-0.5"),
        (("a", "b"), float("nan"), "nan"),
        (("a", "b"), float("inf"), "inf"),
    ],
)
def test_a_width_that_cannot_be_drawn_is_refused(edge: tuple[str, str], value: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw_svg(tan(), widths={edge: value})


def test_a_zero_that_rounding_made_negative_is_drawn() -> None:
    rounded, exact = (draw_svg(tan(), widths={("a", "b"): zero, ("a", "c"): 0.5}) for zero in (-1e-16, 0.0))
    assert rounded == exact


def test_a_tooltip_for_an_unknown_variable_is_refused() -> None:
    with pytest.raises(ValueError, match="zebra"):
        draw_svg(tan(), tooltips={"zebra": "?"})


@unhurried
@given(st.floats(1e-6, 1e3))
def test_legend_values_are_distinct_round_and_near_the_largest(most: float) -> None:
    values = legend_values(most)
    assert all(a < b for a, b in itertools.pairwise(values))
    assert most / 2.01 <= values[-1] <= most * 1.001
    assert all(float(f"{value:.3g}") == value for value in values)


@unhurried
@given(st.floats(0.0, 5.0), st.floats(0.0, 5.0))
def test_line_widths_are_monotone(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert line_width(low, 5.0) <= line_width(high, 5.0)


def test_the_head_of_an_arrow_points_along_the_end_of_its_line() -> None:
    line, head = arrow(Route(0, 1, ((0.0, 0.0), (0.0, 5.0), (8.0, 5.0), (8.0, 20.0))), 2.0)
    tip, left, right = head
    assert tip == (8.0, 20.0)
    assert line[0] == (0.0, 0.0)
    assert line[-1][0] == pytest.approx(8.0)
    assert left[1] == pytest.approx(right[1])
    assert left[1] < line[-1][1] < tip[1]
    assert sorted([left[0], right[0]]) == pytest.approx([4.3, 11.7])


def test_every_arrow_ends_where_its_route_ends() -> None:
    for route in lay_out(tan()).routes:
        assert arrow(route, 5.0)[1][0] == route.points[-1]
