"""Layouts: what every picture must have, checked over random graphs, and its parts against slower answers."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import isotonic_regression

from marginbayes.graph.boxes import BOX, MARGIN, Box, Layout, Route
from marginbayes.graph.dag import Dag
from marginbayes.graph.layered import Net, crossings, nearest_apart, uncrossed
from marginbayes.graph.layout import lay_out
from marginbayes.graph.routes import united

unhurried = settings(deadline=None, max_examples=50)


@st.composite
def dags(draw: st.DrawFn) -> Dag:
    """Any graph, the class anywhere in it."""
    size = draw(st.integers(0, 14))
    order = draw(st.permutations(range(size)))
    share = draw(st.floats(0.0, 1.0)) ** 2
    chance = draw(st.randoms(use_true_random=False))
    parents: list[list[int]] = [[] for _ in range(size)]
    for a, b in itertools.combinations(order, 2):
        if chance.random() < share:
            parents[b].append(a)
    lengths = draw(st.lists(st.integers(1, 30), min_size=size, max_size=size))
    return Dag([f"{'v' * length}{i}" for i, length in enumerate(lengths)], parents)


@st.composite
def classifiers(draw: st.DrawFn) -> Dag:
    """The class above all features, each with up to k earlier features as parents."""
    size, k = draw(st.integers(1, 45)), draw(st.integers(0, 3))
    reach = draw(st.sampled_from([1, 2, 4, 50]))
    chance = draw(st.randoms(use_true_random=False))
    parents: list[list[int]] = [[]]
    for i in range(1, size + 1):
        earlier = range(max(1, i - reach), i)
        parents.append([0, *chance.sample(earlier, min(k, len(earlier)))])
    return Dag(["class", *(f"x{i}" for i in range(1, size + 1))], parents)


any_dag = st.one_of(dags(), classifiers())


def tree(size: int, seed: int = 0, reach: int = 10**6) -> Dag:
    """A TAN-shaped graph with a random tree."""
    chance = random.Random(seed)
    parents = [[], [0], *([0, chance.randrange(max(1, i - reach), i)] for i in range(2, size + 1))]
    return Dag(["class", *(f"x{i}" for i in range(1, size + 1))], parents)


def along(route: Route) -> np.ndarray:
    """Many points of a route."""
    t = np.linspace(0.0, 1.0, 25)[:, None]
    points = np.array(route.points)
    curves = [points[k : k + 4] for k in range(0, len(points) - 1, 3)]
    parts = [(1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d for a, b, c, d in curves]
    return np.concatenate(parts)


def inside(points: np.ndarray, box: Box, slack: float = 0.5) -> bool:
    """Whether any point is inside the box and not just on its border."""
    x, y = points.T
    across = (box.left + slack < x) & (x < box.right - slack)
    return bool((across & (box.top + slack < y) & (y < box.bottom - slack)).any())


@unhurried
@given(any_dag)
def test_no_two_boxes_overlap_or_touch(dag: Dag) -> None:
    for a, b in itertools.combinations(lay_out(dag).boxes, 2):
        apart = max(a.left, b.left) - min(a.right, b.right), max(a.top, b.top) - min(a.bottom, b.bottom)
        assert max(apart) > 5


@unhurried
@given(any_dag)
def test_every_parent_is_above_its_children(dag: Dag) -> None:
    boxes = lay_out(dag).boxes
    for child, parents in enumerate(dag.parents):
        assert all(boxes[p].bottom < boxes[child].top for p in parents)


@unhurried
@given(any_dag)
def test_everything_is_placed_inside_the_picture(dag: Dag) -> None:
    layout = lay_out(dag)
    assert len(layout.boxes) == len(layout.labels) == len(dag.names)
    for box in layout.boxes:
        assert min(box.left, box.top) >= MARGIN - 1e-9
        assert box.right <= layout.width - MARGIN + 1e-9
        assert box.bottom <= layout.height - MARGIN + 1e-9
    for x, y in (point for route in layout.routes for point in route.points):
        assert 0 < x < layout.width
        assert 0 < y < layout.height


@unhurried
@given(any_dag)
def test_every_edge_has_one_route_in_the_order_of_the_graph(dag: Dag) -> None:
    routes = lay_out(dag).routes
    assert [(dag.names[r.parent], dag.names[r.child]) for r in routes] == list(dag.edges)
    assert all(len(r.points) % 3 == 1 for r in routes)


@unhurried
@given(any_dag)
def test_routes_leave_the_bottom_of_the_parent_and_enter_the_top_or_left_of_the_child(dag: Dag) -> None:
    layout = lay_out(dag)
    for route in layout.routes:
        parent, child = layout.boxes[route.parent], layout.boxes[route.child]
        (x0, y0), (x1, y1) = route.points[0], route.points[-1]
        assert y0 == pytest.approx(parent.bottom)
        assert parent.left <= x0 <= parent.right
        from_above = y1 == pytest.approx(child.top) and child.left <= x1 <= child.right
        from_the_left = x1 == pytest.approx(child.left) and y1 == pytest.approx(child.y)
        assert from_above or from_the_left


@unhurried
@given(any_dag)
def test_no_route_passes_through_a_box(dag: Dag) -> None:
    layout = lay_out(dag)
    for route in layout.routes:
        points = along(route)
        assert not any(inside(points, box) for box in layout.boxes)


@unhurried
@given(any_dag)
def test_the_same_graph_gives_the_same_layout(dag: Dag) -> None:
    assert lay_out(dag) == lay_out(Dag(dag.names, dag.parents))


@unhurried
@given(classifiers())
def test_rails_cover_what_class_edges_share_and_no_piece_twice(dag: Dag) -> None:
    layout = lay_out(dag)
    pieces = [tuple(np.round(line, 6).ravel()) for line in layout.rails]
    assert len(pieces) == len(set(pieces))
    for route in (r for r in layout.routes if r.shared):
        assert all(_covered(point, layout) for point in route.points[: 3 * route.shared + 1 : 3])


def _covered(point: tuple[float, float], layout: Layout) -> bool:
    """Whether the point lies on a straight rail or at the end of a corner."""
    x, y = point
    for line in layout.rails:
        (x0, y0), (x1, y1) = line[0], line[-1]
        upright = x0 == x1 == x and min(y0, y1) <= y <= max(y0, y1)
        level = y0 == y1 == y and min(x0, x1) <= x <= max(x0, x1)
        if upright or level or point in (line[0], line[-1]):
            return True
    return False


@pytest.mark.parametrize("features", [12, 30, 60, 256, 784])
def test_a_wide_naive_bayes_is_wrapped_into_a_picture_of_sensible_shape(features: int) -> None:
    layout = lay_out(Dag.naive(["class", *(f"f{i}" for i in range(features))]))
    assert 0.5 < layout.width / layout.height < 2.6


@pytest.mark.parametrize("features", [30, 55, 150])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_wide_tree_is_wrapped_into_a_picture_of_sensible_shape(features: int, seed: int) -> None:
    layout = lay_out(tree(features, seed))
    assert layout.width < max(1000, 1.8 * layout.height)


@pytest.mark.parametrize("features", [100, 150, 200])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_route_of_a_wrapped_tree_passes_through_a_box(features: int, seed: int) -> None:
    layout = lay_out(tree(features, seed))
    hanging = [r for r in layout.routes if r.points[-1][0] == layout.boxes[r.child].left]
    assert hanging
    for route in layout.routes:
        points = along(route)
        assert not any(inside(points, box) for box in layout.boxes)


def test_a_star_of_sixty_children_is_wrapped() -> None:
    dag = Dag(["class", "hub", *(f"x{i}" for i in range(60))], [[], [0], *([[0, 1]] * 60)])
    layout = lay_out(dag)
    assert len({box.y for box in layout.boxes}) > 4
    assert layout.width < 1100


def test_a_class_with_sixty_parents_is_wrapped() -> None:
    dag = Dag(["class", *(f"x{i}" for i in range(60))], [list(range(1, 61)), *([[]] * 60)])
    assert len({box.y for box in lay_out(dag).boxes}) > 2


def test_a_small_naive_bayes_is_one_row_under_the_class() -> None:
    layout = lay_out(Dag.naive(["class", "a", "b", "c", "d"]))
    top, *features = layout.boxes
    assert len({box.y for box in features}) == 1
    assert [box.x for box in features] == sorted(box.x for box in features)
    assert features[0].x < top.x < features[-1].x
    assert not layout.rails


def test_children_of_a_tree_are_centred_under_their_parent() -> None:
    names = ["class", "root", "a", "b", "c"]
    layout = lay_out(Dag(names, [[], [0], [0, 1], [0, 1], [0, 1]]))
    x = dict(zip(names, (box.x for box in layout.boxes), strict=True))
    assert x["root"] == pytest.approx((x["a"] + x["c"]) / 2, abs=1)
    assert x["class"] == pytest.approx(x["root"], abs=1)


def test_a_class_with_parents_stands_below_them() -> None:
    dag = Dag.from_edges(
        [("age", "ill"), ("sex", "ill"), *(("ill", f"t{i}") for i in range(9)), ("age", "t0"), ("t0", "t1")],
        names=["ill", "age", "sex", *(f"t{i}" for i in range(9))],
    )
    boxes = lay_out(dag).boxes
    assert max(boxes[1].bottom, boxes[2].bottom) < boxes[0].top
    assert boxes[0].bottom < min(box.top for box in boxes[3:])


def test_a_deep_chain_needs_no_deep_recursion() -> None:
    layout = lay_out(tree(400, reach=1))
    assert len({box.y for box in layout.boxes}) == 401
    assert max(box.x for box in layout.boxes) - min(box.x for box in layout.boxes) <= 1


def test_a_dense_graph_is_laid_out_without_stand_ins() -> None:
    size = 60
    dag = Dag([f"v{i}" for i in range(size)], [list(range(i)) for i in range(size)])
    boxes = lay_out(dag).boxes
    assert all(a.bottom < b.top for a, b in itertools.pairwise(boxes))


def test_nothing_and_one_box_can_be_laid_out() -> None:
    assert lay_out(Dag((), ())).boxes == ()
    (box,) = lay_out(Dag(["only"], [()])).boxes
    assert (box.left, box.top, box.height) == (MARGIN, MARGIN, BOX)


# -- parts against slower answers


@st.composite
def nets(draw: st.DrawFn) -> Net:
    """Vertices in layers, edges between neighbouring layers."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    rank = dict(enumerate(layer for layer, size in enumerate(sizes) for _ in range(size)))
    possible = [(a, b) for a in rank for b in rank if rank[b] == rank[a] + 1]
    edges = [edge for edge in possible if draw(st.booleans())]
    return Net.of(rank, edges, {})


def pairs_that_cross(net: Net, layers: list[list[int]]) -> int:
    place = {v: k for layer in layers for k, v in enumerate(layer)}
    rank = {v: k for k, layer in enumerate(layers) for v in layer}
    edges = [(a, b) for a, bs in net.downs.items() for b in bs]
    return sum(
        rank[a] == rank[c] and (place[a] - place[c]) * (place[b] - place[d]) < 0
        for (a, b), (c, d) in itertools.combinations(edges, 2)
    )


@unhurried
@given(nets())
def test_crossings_equal_the_count_over_all_pairs(net: Net) -> None:
    assert crossings(net, net.layers) == pairs_that_cross(net, net.layers)


@unhurried
@given(nets())
def test_reordering_keeps_every_layer_and_never_adds_crossings(net: Net) -> None:
    layers = uncrossed(net)
    assert [sorted(layer) for layer in layers] == [sorted(layer) for layer in net.layers]
    assert pairs_that_cross(net, layers) <= pairs_that_cross(net, net.layers)


def test_reordering_undoes_a_shuffled_matching() -> None:
    ends = [3, 0, 4, 1, 2]
    rank = {**dict.fromkeys(range(5), 0), **dict.fromkeys(range(5, 10), 1)}
    net = Net.of(rank, [(i, 5 + end) for i, end in enumerate(ends)], {})
    assert crossings(net, net.layers) > 0
    assert crossings(net, uncrossed(net)) == 0


numbers = st.floats(-1e3, 1e3, allow_nan=False)


@unhurried
@given(st.lists(st.tuples(numbers, st.floats(0.1, 10.0), st.floats(0.0, 50.0)), min_size=1, max_size=12))
def test_nearest_positions_apart_equal_isotonic_regression(items: list[tuple[float, float, float]]) -> None:
    wishes, weights, gaps = (np.array(column) for column in zip(*items, strict=True))
    offsets = np.concatenate([[0.0], np.cumsum(gaps[:-1])])
    expected = isotonic_regression(wishes - offsets, sample_weight=weights) + offsets
    found = nearest_apart(wishes.tolist(), weights.tolist(), gaps[:-1].tolist())
    np.testing.assert_allclose(found, expected, atol=1e-8)


@unhurried
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=12))
def test_united_intervals_are_apart_and_cover_the_same_numbers(items: list[tuple[int, int]]) -> None:
    pieces = [(float(low), float(low + length)) for low, length in items]
    found = united(pieces)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(found))
    for x in np.arange(0.0, 40.0, 0.5):
        assert any(a <= x <= b for a, b in pieces) == any(a <= x <= b for a, b in found)
