"""Pictures of graphs as self-contained SVG text, for notebooks, pages and files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from marginbayes.graph.boxes import MARGIN, Layout, Point, Route
from marginbayes.graph.dag import Dag
from marginbayes.graph.labels import FONT, text_width
from marginbayes.graph.layout import lay_out

__all__ = ["arrow", "check_widths", "draw_svg", "legend_samples", "legend_values", "line_width"]

ACCENT = "#2f6fdb"  # fill of the class; white text is readable on it
FAINT, FAINTNESS = (
    "#5b8def",
    0.65,
)  # edges of the class: visible on white and on black, weaker than all others
THIN, THICK = 1.1, 5.5  # widths of lines in pixels
STRENGTH = 0.82  # of the other edges
SMALL = 11.0  # font size of the legend
LEGEND, SAMPLE = "information, nats", 24.0  # and the length of a sample line
_FORBIDDEN = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Inside a page a picture takes the page's text colour; as a file it follows the reader's light or dark mode.
STYLE = (
    "svg.marginbayes:root{color:#1b1f27;color-scheme:light dark}"
    "@media (prefers-color-scheme:dark){svg.marginbayes:root{color:#e8eaee}}"
    "@media print{svg.marginbayes:root{color:#000}}"
)


def draw_svg(
    dag: Dag,
    *,
    widths: Mapping[tuple[str, str], float] | None = None,
    tooltips: Mapping[str, str] | None = None,
    title: str | None = None,
    class_edges: bool = True,
) -> str:
    """SVG text of a graph, the class (its first variable) on top.

    Parameters
    ----------
    dag : Dag
        The graph.
    widths : mapping from (parent, child) to float, optional
        Information in nats that each edge carries, drawn as the width of its line, with a legend. Edges that
        are not named are drawn thin.
    tooltips : mapping from name to str, optional
        Text shown, below its full name, when the pointer rests on a variable.
    title : str, optional
        Heading of the picture.
    class_edges : bool
        Whether to draw the edges that leave the class.

    Returns
    -------
    str
        One `svg` element that needs nothing else: no fonts, scripts or other files.

    Examples
    --------
    >>> draw_svg(Dag.naive(["class", "a", "b"])).startswith("<svg ")
    True
    """
    information = check_widths(dag, widths)
    _check_tooltips(dag, tooltips or {})
    layout = lay_out(dag)
    legend, legend_width = _legend(max(information.values(), default=0.0))
    head = 34.0 if title else 0.0
    foot = 26.0 if legend else 0.0
    width = max(layout.width, legend_width, text_width(title or "", 15.0) + 2 * MARGIN)
    height = head + layout.height + foot
    shift = round((width - layout.width) / 2)
    return "\n".join(
        [
            _opening(dag, title, width, height),
            *([_heading(title, width)] if title else []),
            f'<g transform="translate({shift} {_n(head)})">',
            *_edges(dag, layout, information, class_edges),
            *(_node(dag, i, layout, tooltips or {}) for i in range(len(dag.names))),
            "</g>",
            *([f'<g transform="translate(0 {_n(height - foot)})" {legend}'] if legend else []),
            "</svg>",
        ]
    )


def check_widths(dag: Dag, widths: Mapping[tuple[str, str], float] | None) -> dict[tuple[int, int], float]:
    """Information of edges by index; refuses an unknown edge and a number that is no information."""
    known, found = set(dag.edges), {}
    for edge, value in (widths or {}).items():
        if edge not in known:
            raise ValueError(f"widths names the edge {edge!r}, which the graph does not have")
        if not math.isfinite(value) or value < -1e-9:  # zero may come out of sums as -1e-17
            raise ValueError(f"the width of {edge!r} is {value!r}; give a finite number of nats, zero or more")
        found[dag.index(edge[0]), dag.index(edge[1])] = max(0.0, float(value))
    return found


def _check_tooltips(dag: Dag, tooltips: Mapping[str, str]) -> None:
    for name in tooltips:
        if name not in dag.names:
            raise ValueError(f"tooltips names the variable {name!r}, which is not in the graph")


def line_width(value: float | None, most: float) -> float:
    """Width of a line in pixels: proportional to the information, but never too thin to be seen."""
    return max(THIN, THICK * value / most) if value and most else THIN


def arrow(route: Route, width: float) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    """The curves that are an edge's own, up to where its head begins, and the three corners of the head."""
    length, half = 5.0 + 0.6 * width, 2.4 + 0.65 * width
    *points, before, tip = route.points[3 * route.shared :]
    if before == tip:  # a straight line, whose control points are its ends
        before = points[-1]
    reach = math.dist(before, tip)
    ux, uy = (tip[0] - before[0]) / reach, (tip[1] - before[1]) / reach
    base = (tip[0] - length * ux, tip[1] - length * uy)
    end = (tip[0] - 0.7 * length * ux, tip[1] - 0.7 * length * uy)
    corners = (tip, (base[0] - half * uy, base[1] + half * ux), (base[0] + half * uy, base[1] - half * ux))
    straight = route.points[-2] == tip
    return (*points, end if straight else before, end), corners


def legend_values(most: float) -> list[float]:
    """A round value not above the largest, with its half and its quarter, ascending."""
    power = 10.0 ** math.floor(math.log10(most))
    top = power * max(f for f in (0.8, 1, 2, 3, 4, 6, 8) if f * power <= most)
    return [float(f"{value:.3g}") for value in (top / 4, top / 2, top)]


def legend_samples(most: float) -> tuple[list[tuple[float, float]], float]:
    """Where the sample line of each round value begins, with the value, and the width of the whole legend."""
    samples, x = [], MARGIN + text_width(LEGEND, SMALL) + 6.0
    for value in legend_values(most) if most else ():
        samples.append((x, value))
        x += SAMPLE + text_width(f"{value:g}", SMALL) + 17.0
    return samples, x + MARGIN - 12.0 if samples else 0.0


def _opening(dag: Dag, title: str | None, width: float, height: float) -> str:
    about = title or f"Bayesian network of {len(dag.names)} variables and {len(dag.edges)} edges"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="marginbayes" role="img" aria-label={_quoted(about)} '
        f'width="{_n(width)}" height="{_n(height)}" viewBox="0 0 {_n(width)} {_n(height)}" '
        # Shrinks with the page, but not until the text is unreadable: from there on the page scrolls.
        f'style="max-width:max(100%,{round(0.6 * width)}px);height:auto" '
        "font-family=\"Helvetica,Arial,'DejaVu Sans',sans-serif\" "
        f'font-size="{_n(FONT)}" fill="currentColor"><style>{STYLE}</style>'
    )


def _heading(title: str, width: float) -> str:
    place = f'x="{_n(width / 2)}" y="26" font-size="15" font-weight="700" text-anchor="middle"'
    return f"<text {place}>{_escaped(title)}</text>"


def _edges(dag: Dag, layout: Layout, information: Mapping[tuple[int, int], float], class_edges: bool) -> list[str]:
    """Edges of the class, faint and in its colour, then all others."""
    most = max(information.values(), default=0.0)
    weak = [_edge(dag, r, information, most) for r in layout.routes if r.parent == 0 and class_edges]
    strong = [_edge(dag, r, information, most) for r in layout.routes if r.parent != 0]
    rails = [_path(layout.rails, 1.0)] if layout.rails and class_edges else []
    return [
        *([f'<g stroke="{FAINT}" fill="{FAINT}" opacity="{FAINTNESS}">', *rails, *weak, "</g>"] if weak else []),
        *([f'<g stroke="currentColor" opacity="{STRENGTH}">', *strong, "</g>"] if strong else []),
    ]


def _edge(dag: Dag, route: Route, information: Mapping[tuple[int, int], float], most: float) -> str:
    value = information.get((route.parent, route.child))
    width = line_width(value, most)
    line, corners = arrow(route, width)
    about = f"{dag.names[route.parent]} → {dag.names[route.child]}"
    about += "" if value is None else f": {value:.3g} nats"
    head = " ".join(f"{_n(x)},{_n(y)}" for x, y in corners)
    tip = f'<polygon points="{head}" stroke="none"/>'
    return f"<g><title>{_escaped(about)}</title>{_path([line], width)}{tip}</g>"


def _path(lines: Iterable[Sequence[Point]], width: float) -> str:
    return f'<path d="{"".join(map(_steps, lines))}" fill="none" stroke-width="{_n(width)}"/>'


def _steps(points: Sequence[Point]) -> str:
    steps = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for k in range(1, len(points), 3):
        one, two, end = (f"{_n(x)} {_n(y)}" for x, y in points[k : k + 3])
        steps.append(f"L{end}" if two == end else f"C{one} {two} {end}")
    return "".join(steps)


def _node(dag: Dag, node: int, layout: Layout, tooltips: Mapping[str, str]) -> str:
    box, name = layout.boxes[node], dag.names[node]
    about = f"{name}\n{tooltips[name]}" if name in tooltips else name
    lone = ' stroke-dasharray="3 3"' if not dag.parents[node] and not dag.children[node] else ""
    plain = f'fill="currentColor" fill-opacity="0.05" stroke="currentColor" stroke-opacity="0.5"{lone}'
    face, bold = (f'fill="{ACCENT}"', ' font-weight="700" fill="#fff"') if node == 0 else (plain, "")
    label = f'<text x="{_n(box.x)}" y="{_n(box.y + 4.5)}" text-anchor="middle"{bold}>'
    return (
        f'<g><title>{_escaped(about)}</title><rect x="{_n(box.left)}" y="{_n(box.top)}" '
        f'width="{_n(box.width)}" height="{_n(box.height)}" rx="6" {face}/>'
        f"{label}{_escaped(layout.labels[node])}</text></g>"
    )


def _legend(most: float) -> tuple[str, float]:
    """The rest of a group with a sample line for each of three round values, and its width."""
    if not most:
        return "", 0.0
    samples, width = legend_samples(most)
    items = [f'<text x="{_n(MARGIN)}" y="10">{LEGEND}</text>']
    for x, value in samples:
        wide = _n(line_width(value, most))
        items.append(f'<path d="M{_n(x)} 6h{_n(SAMPLE)}" stroke="currentColor" stroke-width="{wide}"/>')
        items.append(f'<text x="{_n(x + SAMPLE + 5)}" y="10">{value:g}</text>')
    return f'font-size="{_n(SMALL)}" opacity="0.85">{"".join(items)}</g>', width


def _escaped(text: str) -> str:
    return escape(_allowed(text))


def _quoted(text: str) -> str:
    return quoteattr(_allowed(text))


def _allowed(text: str) -> str:
    """The text with every character that XML 1.0 forbids replaced."""
    return _FORBIDDEN.sub("\ufffd", text)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
