from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification

from marginbayes.data import mdlp
from marginbayes.data.mdlp import interval_labels, mdlp_all, mdlp_cuts
from tests.oracles.mdlp import naive_cuts

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

# What Orange 3.40's EntropyMDL finds, column after column.
IRIS = [[5.55, 6.15], [2.95, 3.3499999999999996], [2.45, 4.75], [0.8, 1.75]]
WINE = [
    *([12.184999999999999, 12.78], [1.42, 2.2350000000000003], [2.0300000000000002], [17.9], [88.5]),
    *([1.84, 2.335], [0.975, 1.5750000000000002, 2.31], [0.395], [1.27], [3.46, 7.55]),
    *([0.785, 0.975, 1.295], [2.115, 2.475], [468.0, 755.0, 987.5]),
]
BREAST_CANCER = [
    *([13.094999999999999, 15.045, 17.880000000000003], [18.634999999999998], [85.25, 98.755, 114.8]),
    *([529.8, 696.25, 883.25], [0.08946499999999999], [0.10214999999999999, 0.15525]),
    *([0.06922500000000001, 0.08942, 0.1192], [0.026805000000000002, 0.05142, 0.07900499999999999]),
    *([0.17154999999999998, 0.20865], [], [0.19365, 0.42025, 0.54785], [], [1.751, 2.762, 5.131]),
    *([18.515, 31.284999999999997, 53.78], [], [0.008401, 0.01838], [0.011, 0.02111], [0.0092025, 0.011965]),
    *(
        [0.043635],
        [0.003116],
        [14.905000000000001, 16.795, 18.225],
        [23.35, 29.295],
        [101.65, 105.95, 117.45],
    ),
    *([696.05, 884.55, 1214.0], [0.13615], [0.17925, 0.28105, 0.36725], [0.2164, 0.3663]),
    *([0.10955000000000001, 0.14235, 0.17575], [0.28065, 0.3571], [0.09279000000000001]),
]
MADE = [0, 0, 8, 0, 5, 5, 7, 6, 6, 0, 3, 2, 5, 6, 6, 6, 0, 8, 0, 11]
MADE_THIRD = [
    *(-5.253564686181262, -3.3861823655962158, -2.385704451349648, -0.8665305753222031),
    *(0.03904106070418217, 0.824510026877503, 2.81316955263062, 5.606025507680329),
]
DIGITS = [
    *(0, 1, 3, 4, 2, 3, 3, 1, 0, 2, 3, 2, 2, 4, 2, 1, 0, 2, 3, 3, 4, 3, 2, 1, 0, 2, 3, 3, 3, 3, 4, 0),
    *(0, 3, 3, 3, 3, 2, 2, 0, 1, 2, 3, 3, 3, 2, 3, 1, 0, 1, 3, 3, 2, 3, 2, 1, 0, 1, 4, 3, 3, 3, 3, 2),
]

WEIGHTS = [0.0, 0.25, 0.5, 1.0, 1.75, 3.0, 8.0]


@st.composite
def columns(draw: st.DrawFn, max_rows: int = 30) -> tuple[Floats, Codes]:
    """A column with ties and holes, whose classes come in runs often enough to be worth a cut."""
    runs = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 8)), max_size=6))
    y = np.array([c for c, length in runs for _ in range(length)], np.intp)[:max_rows]
    ties = draw(st.integers(1, 4))
    x = (np.arange(len(y)) // ties).astype(float)
    for i in draw(st.lists(st.integers(0, max_rows), max_size=5)):
        if i < len(y):
            x[i] = draw(st.sampled_from([math.nan, 0.0, 1.0, 3.5, -2.0]))
    return x, y


@st.composite
def weighted_columns(draw: st.DrawFn, weights: list[float] = WEIGHTS) -> tuple[Floats, Codes, Floats]:
    x, y = draw(columns())
    return x, y, np.array(draw(st.lists(st.sampled_from(weights), min_size=len(y), max_size=len(y))))


def bins(x: Floats, cuts: Floats) -> list[int]:
    return [int(np.searchsorted(cuts, v)) for v in x if not math.isnan(v)]


# -- against others


@pytest.mark.parametrize(
    ("load", "expected"), [(load_iris, IRIS), (load_wine, WINE), (load_breast_cancer, BREAST_CANCER)]
)
def test_the_cuts_are_those_of_orange(load: Any, expected: list[list[float]]) -> None:
    X, y = load(return_X_y=True)
    assert [cuts.tolist() for cuts in mdlp_all(X.T, y, y.max() + 1)] == expected


def test_breast_cancer_has_61_cuts() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    assert sum(map(len, mdlp_all(X.T, y, 2))) == 61


def test_the_made_classification_has_the_84_cuts_of_weka_and_orange() -> None:
    X, y = make_classification(20000, 20, n_informative=12, n_classes=5, random_state=0)
    cuts = mdlp_all(X.T, y, 5)
    assert [len(c) for c in cuts] == MADE
    assert sum(MADE) == 84
    np.testing.assert_allclose(cuts[2], MADE_THIRD, rtol=1e-12)


def test_digits_have_as_many_cuts_as_orange_finds() -> None:
    X, y = load_digits(return_X_y=True)
    assert [len(c) for c in mdlp_all(X.T, y, 10)] == DIGITS


@settings(max_examples=200, deadline=None)
@given(columns())
def test_the_cuts_are_those_of_the_naive_recursion(column: tuple[Floats, Codes]) -> None:
    x, y = column
    assert mdlp_cuts(x, y, 4).tolist() == naive_cuts(x, y)


@settings(max_examples=200, deadline=None)
@given(weighted_columns())
def test_weighted_cuts_are_those_of_the_naive_recursion(column: tuple[Floats, Codes, Floats]) -> None:
    x, y, w = column
    assert mdlp_cuts(x, y, 4, w).tolist() == naive_cuts(x, y, w)


@pytest.mark.parametrize("seed", range(20))
def test_noise_with_few_values_is_cut_as_by_the_naive_recursion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 6, 300).astype(float)
    y = np.where(rng.random(300) < 0.5, rng.integers(0, 3, 300), (x // 2).astype(int))
    assert mdlp_cuts(x, y, 3).tolist() == naive_cuts(x, y)


@pytest.mark.parametrize("seed", range(40))
def test_of_equally_good_cuts_the_lowest_is_taken(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_blocks, length = rng.integers(2, 8), rng.integers(2, 7)
    y = np.repeat(rng.permutation(n_blocks) % rng.integers(2, 6), length)
    x = np.arange(len(y), dtype=float)
    assert mdlp_cuts(x, y, 8).tolist() == naive_cuts(x, y)


def test_a_tie_that_rounding_would_decide_is_decided_by_order() -> None:
    # Orange cuts this at 3.5 only: the tie at the second step goes to a cut that does not pay.
    y = [2, 2, 2, 2, 0, 0, 1, 0, 3, 3, 3, 3, 1, 1, 1, 1]
    assert mdlp_cuts(np.arange(16.0), y, 4).tolist() == naive_cuts(range(16), y) == [3.5, 7.5, 11.5]


def test_a_tie_that_even_rounded_units_would_decide_is_decided_by_order() -> None:
    """N Ent is 18 after the second row, g(12) - g(6) - 2 g(3), and after the sixth, g(6) + g(8) - 10 - 2 - 2 g(3)."""
    y = [0, 0, 1, 1, 1, 1, 2, 2, 2, 1, 3, 3, 3, 1]
    assert mdlp_cuts(np.arange(14.0), y, 4).tolist() == naive_cuts(range(14), y) == [1.5]


# -- weights


@settings(max_examples=100, deadline=None)
@given(weighted_columns([0.0, 1.0, 2.0, 3.0, 7.0]))
def test_integer_weights_equal_repeated_rows(column: tuple[Floats, Codes, Floats]) -> None:
    x, y, w = column
    times = w.astype(int)
    repeated = mdlp_cuts(x.repeat(times), y.repeat(times), 4)
    assert mdlp_cuts(x, y, 4, w).tolist() == repeated.tolist()


@settings(max_examples=50, deadline=None)
@given(weighted_columns([0.0, 1e5, 2e5, 3e7]))
def test_weights_too_large_for_a_table_are_right(column: tuple[Floats, Codes, Floats]) -> None:
    x, y, w = column
    assert mdlp_cuts(x, y, 4, w).tolist() == naive_cuts(x, y, w)


def test_the_table_and_the_formula_give_the_same_units() -> None:
    table, formula = mdlp._xlogx(5000.0, 7, True), mdlp._xlogx(5000.0, 7, False)
    counts = np.arange(5001)
    np.testing.assert_array_equal(table(counts), formula(counts.astype(float)))


@settings(max_examples=100, deadline=None)
@given(weighted_columns([0.1, 0.3, 0.7, 1.1, 2.9]), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(column: tuple[Floats, Codes, Floats], random: Any) -> None:
    x, y, w = column
    order = np.array(random.sample(range(len(x)), len(x)), np.intp)
    assert mdlp_cuts(x[order], y[order], 4).tolist() == mdlp_cuts(x, y, 4).tolist()
    assert mdlp_cuts(x[order], y[order], 4, w[order]).tolist() == mdlp_cuts(x, y, 4, w).tolist()


def test_a_row_of_weight_zero_is_absent() -> None:
    x, y = np.array([1.0, 2, 3, 5, 7, 8, 9]), np.array([0, 0, 0, 1, 1, 1, 1])
    assert mdlp_cuts(x, y, 2, [1, 1, 1, 0, 1, 1, 1]).tolist() == [5.0]


def test_less_than_two_rows_are_not_cut() -> None:
    x, y = np.arange(128.0), np.arange(128) // 64
    assert mdlp_cuts(x, y, 2, np.full(128, 2 / 128)).tolist() == [63.5]
    assert mdlp_cuts(x, y, 2, np.full(128, 1.99 / 128)).tolist() == []


# -- values


@settings(max_examples=100, deadline=None)
@given(columns(), st.data())
def test_a_strictly_increasing_transformation_leaves_the_bins(
    column: tuple[Floats, Codes], data: st.DataObject
) -> None:
    x, y = column
    known = np.unique(x[~np.isnan(x)])
    finite = st.floats(allow_nan=False, allow_infinity=False)
    images = data.draw(st.lists(finite, min_size=len(known), max_size=len(known), unique_by=lambda v: v + 0.0))
    image = dict(zip(known.tolist(), sorted(images), strict=True))
    transformed = np.array([image.get(v, math.nan) for v in x.tolist()])
    cuts = mdlp_cuts(transformed, y, 4)
    assert np.isfinite(cuts).all()
    assert bins(transformed, cuts) == bins(x, mdlp_cuts(x, y, 4))


@pytest.mark.parametrize("offset", [0.0, 1e15, -1e15])
def test_a_large_offset_is_no_obstacle(offset: float) -> None:
    x, y = offset + np.arange(30.0), np.repeat([0, 1, 2], 10)
    assert mdlp_cuts(x, y, 3).tolist() == [offset + 9.5, offset + 19.5]


def test_a_cut_between_neighbouring_floats_is_the_lower_one() -> None:
    for low in (1.0, np.nextafter(1.0, 2.0), -1.0, 2.0**60):
        high = np.nextafter(low, np.inf)
        x = np.repeat([low, high], 10)
        cuts = mdlp_cuts(x, np.repeat([0, 1], 10), 2)
        assert cuts.tolist() == [low]
        assert bins(x, cuts) == [0] * 10 + [1] * 10


def test_a_cut_at_zero_has_no_sign() -> None:
    least = np.nextafter(0.0, 1.0)
    cuts = mdlp_cuts(np.repeat([-2 * least, least], 10), np.repeat([0, 1], 10), 2)  # half of -least is rounded to -0.0
    assert cuts.tolist() == [0.0]
    assert not np.signbit(cuts).any()
    assert interval_labels(cuts) == ["(-inf, 0]", "(0, inf)"]


def test_the_midpoint_of_huge_values_does_not_overflow() -> None:
    x = np.repeat([1e308, 1.5e308], 10)
    np.testing.assert_allclose(mdlp_cuts(x, np.repeat([0, 1], 10), 2), [1.25e308], rtol=1e-15)


def test_missing_values_are_ignored() -> None:
    x, y = np.array([1.0, math.nan, 2, 3, math.nan, 7, 8, 9]), np.array([0, 1, 0, 0, 0, 1, 1, 1])
    assert mdlp_cuts(x, y, 2).tolist() == [5.0]


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([3.0] * 20, [0, 1] * 10),
        ([math.nan] * 20, [0, 1] * 10),
        (range(20), [1] * 20),
        ([1.0], [0]),
        ([], []),
    ],
    ids=["constant", "all missing", "one class", "one row", "no row"],
)
def test_there_is_nothing_to_cut(x: Any, y: Any) -> None:
    assert mdlp_cuts(x, y, 2).shape == (0,)
    assert mdlp_cuts(x, y, 2, np.full(len(y), 0.7)).shape == (0,)


def test_thousands_of_classes_overflow_nothing() -> None:
    y = np.repeat(np.arange(1500), 4)
    assert mdlp_cuts(y, y, 1500).tolist() == (np.arange(1499) + 0.5).tolist()


# -- many columns


def test_columns_do_not_influence_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    y, w = rng.integers(0, 3, 400), rng.random(400)
    X = np.round(rng.normal(size=(12, 400)) + y * rng.random((12, 1)), 1)
    X[rng.random(X.shape) < 0.1] = math.nan
    X[5] = math.nan
    alone = [mdlp_cuts(x, y, 3, w).tolist() for x in X]
    assert sum(map(len, alone)) > 5
    for items in (1, 900, 1 << 15):
        for counts in (1, 1 << 18):
            monkeypatch.setattr(mdlp, "_BATCH_ITEMS", items)
            monkeypatch.setattr(mdlp, "_SCANNED_COUNTS", counts)
            assert [cuts.tolist() for cuts in mdlp_all(X, y, 3, w)] == alone


@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_change_nothing(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mdlp, "_BATCH_ITEMS", 1000)
    X, y = load_wine(return_X_y=True)
    assert [cuts.tolist() for cuts in mdlp_all(X.T, y, 3, n_jobs=n_jobs)] == WINE


def test_no_columns_have_no_cuts() -> None:
    assert mdlp_all([], [0, 1], 2) == []


@pytest.mark.parametrize(
    ("columns", "y", "weights", "message"),
    [
        ([[1.0, 2.0], [1.0, math.inf]], [0, 1], None, "column 1 holds an infinite value"),
        ([[-math.inf, math.nan]], [0, 1], None, "column 0 holds an infinite value"),
        ([[1.0, 2.0, 3.0]], [0, 1], None, "column 0 has the shape"),
        ([[1.0, 2.0]], [0, 2], None, "class code 2; codes must lie in 0 .. 1"),
        ([[1.0, 2.0]], [-1, 0], None, "class code -1"),
        ([[1.0, 2.0]], [0, 1], [1.0], "2 rows and weights of the shape"),
        ([[1.0, 2.0]], [0, 1], [1.0, -1.0], "weights hold or sum to -1.0"),
        ([[1.0, 2.0]], [0, 1], [1.0, math.nan], "weights hold or sum to nan"),
        ([[1.0, 2.0]], [0, 1], [1e308, 1e308], "weights hold or sum to inf"),
    ],
)
def test_bad_input_is_refused_by_name(columns: Any, y: Any, weights: Any, message: str) -> None:
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        mdlp_all(columns, y, 2, weights)


# -- labels


def test_labels_name_the_intervals() -> None:
    assert interval_labels([]) == ["(-inf, inf)"]
    assert interval_labels([2.45]) == ["(-inf, 2.45]", "(2.45, inf)"]
    assert interval_labels(np.array([-1.0, 0.1, 1e20])) == [
        "(-inf, -1]",
        "(-1, 0.1]",
        "(0.1, 1e+20]",
        "(1e+20, inf)",
    ]


def test_labels_of_neighbouring_floats_differ() -> None:
    cuts = [1.0, np.nextafter(1.0, 2.0), 1e15, np.nextafter(1e15, 2e15)]
    labels = interval_labels(cuts)
    assert len(set(labels)) == 5
    assert [float(label[1:].split(",")[0]) for label in labels[1:]] == cuts
