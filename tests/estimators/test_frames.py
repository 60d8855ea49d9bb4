"""Data of every kind, and what is wrong with it, at the border."""

from __future__ import annotations

import enum
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.preprocessing import OrdinalEncoder

from marginbayes import AODEClassifier, BayesNetClassifier, Dag
from marginbayes.data.frame import read_frame

RNG = np.random.default_rng(0)
N = 200
LABEL = RNG.integers(0, 2, N)
COLUMNS: dict[str, list[Any]] = {
    "colour": [
        None if i % 11 == 0 else v
        for i, v in enumerate(np.array(["red", "green", "blue"])[(LABEL + RNG.integers(0, 2, N)) % 3].tolist())
    ],
    "size": [None if i % 7 == 0 else float(v) for i, v in enumerate(LABEL * 2 + RNG.normal(size=N))],
    "count": (LABEL * 3 + RNG.integers(0, 4, N)).tolist(),
    "flag": [None if i % 13 == 0 else bool(v) for i, v in enumerate(LABEL ^ (RNG.random(N) < 0.2))],
}


def frames() -> dict[str, Any]:
    plain = pd.DataFrame(COLUMNS)
    nullable = pd.DataFrame(
        {
            "colour": pd.Series(COLUMNS["colour"], dtype="string"),
            "size": pd.Series(COLUMNS["size"], dtype="Float64"),
            "count": pd.Series(COLUMNS["count"], dtype="Int64"),
            "flag": pd.Series(COLUMNS["flag"], dtype="boolean"),
        }
    )
    return {
        "pandas": plain,
        "pandas nullable": nullable,
        "pandas category": plain.astype({"colour": "category", "flag": "category"}),
        "pandas arrow": nullable.convert_dtypes(dtype_backend="pyarrow"),
        "pandas arrow view": nullable.astype({"colour": pd.ArrowDtype(pa.string_view())}),
        "pandas arrow dictionary": nullable.convert_dtypes(dtype_backend="pyarrow").astype(
            {"colour": pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))}
        ),
        "polars": pl.DataFrame(COLUMNS),
        "polars categorical": pl.DataFrame(COLUMNS).with_columns(pl.col("colour").cast(pl.Categorical)),
        "polars enum": pl.DataFrame(COLUMNS).with_columns(pl.col("colour").cast(pl.Enum(["blue", "green", "red"]))),
        "pyarrow": pa.table(COLUMNS),
        "pyarrow view": pa.table({**COLUMNS, "colour": pa.array(COLUMNS["colour"], pa.string_view())}),
        "pyarrow dictionary": pa.table({**COLUMNS, "colour": pa.array(COLUMNS["colour"]).dictionary_encode()}),
    }


@pytest.mark.parametrize("kind", frames())
def test_every_frame_library_gives_the_same_network(kind: str) -> None:
    reference = BayesNetClassifier().fit(frames()["pandas"], LABEL)
    X = frames()[kind]
    clf = BayesNetClassifier().fit(X, LABEL)
    assert clf.schema_.names == ("class", *COLUMNS)
    for a, b in zip(clf.network_.tables, reference.network_.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(X), reference.predict_proba(frames()["pandas"]), atol=1e-12)
    assert clf.feature_names_in_.tolist() == list(COLUMNS)


def test_an_object_array_is_read_column_by_column() -> None:
    X = frames()["pandas"].to_numpy(dtype=object)
    clf = BayesNetClassifier().fit(X, LABEL)
    reference = BayesNetClassifier().fit(frames()["pandas"], LABEL)
    for a, b in zip(clf.network_.tables, reference.network_.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert clf.schema_.names[1:] == ("x0", "x1", "x2", "x3")


def test_the_schema_says_what_became_of_each_column_and_why() -> None:
    text = str(BayesNetClassifier().fit(frames()["pandas"], LABEL).schema_)
    assert "colour: 3 levels {blue, green, red} (type of the column)" in text
    assert "size: number, 1 cut" in text
    assert "(discretised by mdlp)" in text
    assert "flag: 2 levels {False, True} (type of the column)" in text


def test_a_flag_of_zeros_and_ones_is_never_dropped_by_the_discretiser() -> None:
    noise = RNG.integers(0, 2, N)  # the discretiser would find no cut in it
    for X in (noise[:, None], noise[:, None].astype(float), pd.DataFrame({"flag": noise})):
        clf = BayesNetClassifier().fit(X, LABEL)
        variable = clf.schema_.features[0]
        assert variable.levels == (0, 1)
        assert variable.origin == "at most two whole numbers"
    assert BayesNetClassifier().fit(RNG.normal(size=(N, 1)), LABEL).schema_.features[0].cuts == ()


def test_categorical_features_are_named_by_name_position_or_mask() -> None:
    X = frames()["pandas"]
    for choice in (["count"], [2], [False, False, True, False], np.array([False, False, True, False])):
        variable = BayesNetClassifier(categorical_features=choice).fit(X, LABEL).schema_["count"]
        assert variable.levels == (0, 1, 2, 3, 4, 5, 6)
        assert variable.origin == "named in categorical_features"
    assert BayesNetClassifier().fit(X, LABEL).schema_["count"].cuts is not None


def test_columns_may_come_in_another_order_but_not_be_missing_or_new() -> None:
    X = frames()["pandas"]
    for clf in (BayesNetClassifier().fit(X, LABEL), AODEClassifier().fit(X, LABEL)):
        assert np.array_equal(clf.predict_proba(X[list(COLUMNS)[::-1]]), clf.predict_proba(X))
        with pytest.raises(ValueError, match="the column 'size' was there at fit but is missing now"):
            clf.predict(X.drop(columns="size"))
        with pytest.raises(ValueError, match=r"'colour' was there at fit but is missing now \(and 1 more: 'flag'\)"):
            clf.predict(X.drop(columns=["colour", "flag"]))
        with pytest.raises(ValueError, match="the column 'new' was not there at fit"):
            clf.predict(X.assign(new=1))


def test_a_level_never_seen_is_treated_as_missing() -> None:
    X = frames()["pandas"]
    for clf in (BayesNetClassifier().fit(X, LABEL), AODEClassifier().fit(X, LABEL)):
        unseen, missing = X.assign(colour="purple"), X.assign(colour=pd.Series([None] * N, dtype=object))
        assert np.array_equal(clf.predict_proba(unseen), clf.predict_proba(missing))


def test_a_column_that_changed_its_type_is_refused_with_both_values() -> None:
    X = frames()["pandas"]
    clf = BayesNetClassifier().fit(X, LABEL)
    with pytest.raises(TypeError, match="'colour' was learned with values such as 'blue' but now holds 0"):
        clf.predict(X.assign(colour=0))
    with pytest.raises(TypeError, match="'size' was learned as a number but now holds 'big'"):
        clf.predict(X.assign(size="big"))
    assert np.array_equal(clf.predict_proba(X.assign(size=X["size"].map(str))), clf.predict_proba(X))


def test_a_missing_level_is_learned_when_asked_for() -> None:
    # Missing exactly when the class is 1: the hole itself is the information.
    X = pd.DataFrame({"a": np.where(LABEL == 1, None, "x"), "b": RNG.normal(size=N)})
    assert BayesNetClassifier(missing="level").fit(X, LABEL).score(X, LABEL) == 1.0
    assert BayesNetClassifier().fit(X, LABEL).score(X, LABEL) < 0.9
    clf = BayesNetClassifier(missing="level").fit(X, LABEL)
    assert clf.schema_["a"].levels == ("x", None)
    assert None not in clf.schema_["b"].levels


@pytest.mark.parametrize("structure", ["nb", "tan"])
@pytest.mark.parametrize("missing", ["available", "em", "level"])
def test_columns_without_information_do_no_harm(structure: str, missing: str) -> None:
    X = pd.DataFrame(
        {
            "good": LABEL + RNG.normal(scale=0.2, size=N),
            "constant": 1.0,
            "same": "x",
            "nothing": [None] * N,
            "nan": np.nan,
            "id": [f"row {i}" for i in range(N)],
        }
    )
    with pytest.warns(UserWarning, match=f"column 'id' has {N} different values in {N} rows, like an identifier"):
        clf = BayesNetClassifier(structure, missing=missing).fit(X, LABEL)
    assert clf.score(X, LABEL) > 0.95
    assert np.isfinite(clf.predict_proba(X.assign(nothing="now there is"))).all()


def test_a_single_row_a_single_class_and_a_single_level_work() -> None:
    one = BayesNetClassifier().fit([[1.5, 2.0]], ["only"])
    assert one.predict([[0.0, np.nan]]).tolist() == ["only"]
    np.testing.assert_allclose(one.predict_proba([[0.0, 1.0]]), [[1.0]])
    assert AODEClassifier().fit([[1.5, 2.0]], ["only"]).predict([[0.0, np.nan]]).tolist() == ["only"]


def test_rows_of_weight_zero_are_as_if_absent() -> None:
    X, weights = frames()["pandas"], np.ones(N)
    weights[::3] = 0
    kept = weights > 0
    for kind, frame in frames().items():
        weighted = BayesNetClassifier().fit(frame, LABEL, sample_weight=weights)
        assert (
            weighted.network_.tables[0].tolist()
            == BayesNetClassifier().fit(X[kept], LABEL[kept]).network_.tables[0].tolist()
        ), kind


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [np.inf]], [0, 1], "infinity"),
        (np.array([[-(10**400)], [2]], object), [0, 1], "a number too large .* column 'x0', row 0"),
        (pd.DataFrame({"a": [1.0, 2.0]}), ["a", np.nan], "row 1 .from 0. has no label"),
        (pd.DataFrame({"a": [1.0, np.inf]}), [0, 1], "column 'a', row 1"),
        (pd.DataFrame({"a": [1.0, 2.0]}), [0, None], "row 1 .from 0. has no label"),
        (pd.DataFrame({"a": [1.0, 2.0]}), [0, np.nan], "Input y contains NaN"),
        (pd.DataFrame({"a": [1.0, 2.0]}), [0, 1, 1], "X has 2 rows, y 3"),
        (pd.DataFrame({"a": [1.0, 2.0]}), [0.3, 1.7], "continuous"),
        (pd.DataFrame({"a": []}), [], "no rows"),
        (pd.DataFrame(index=[0, 1]), [0, 1], "minimum of 1 is required"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), [0], "two columns are called 'a'|unique"),
    ],
)
def test_bad_data_gets_one_sentence(X: Any, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesNetClassifier().fit(X, y)


def test_a_date_is_refused_with_the_remedy() -> None:
    days = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=3)})
    arrays = [days.to_numpy(), days.to_numpy() - days.to_numpy()[0], days.to_numpy("M8[s]").astype(object)]
    cells = np.empty((3, 1), object)
    cells[:, 0] = [np.datetime64("2020-01-01", "ns")] * 3
    for X in (days, days.astype("category"), cells, *arrays):
        with pytest.raises(TypeError, match=r"column '(when|x0)' has the type .* days since"):
            BayesNetClassifier().fit(X, [0, 1, 0])


def test_an_unhashable_value_is_refused_with_its_column() -> None:
    X = pd.DataFrame({"a": [{"x": 1}, {"y": 2}]})
    with pytest.raises(TypeError, match="column 'a'"):
        BayesNetClassifier().fit(X, [0, 1])


def test_the_class_gets_another_name_when_a_feature_has_it() -> None:
    X = pd.DataFrame({"class": [1.0, 2.0, 3.0]})
    assert BayesNetClassifier().fit(X, pd.Series([0, 1, 1], name="class")).schema_.target.name == "class_"


def test_ten_thousand_levels_work() -> None:
    X = pd.DataFrame({"id": [f"{i}" for i in range(20000)], "x": np.tile([0.0, 1.0], 10000)})
    y = np.tile([0, 1], 10000)
    with pytest.warns(UserWarning, match="column 'id' has 20000 different values"):
        clf = BayesNetClassifier("nb").fit(X, y)
    assert clf._rows(X).codes.dtype == np.uint16
    assert clf.score(X, y) == 1.0


def test_columns_whose_names_are_numbers_work_by_position() -> None:
    X = pd.DataFrame(RNG.normal(size=(N, 2)) + LABEL[:, None])
    clf = BayesNetClassifier().fit(X, LABEL)
    assert not hasattr(clf, "feature_names_in_")
    assert clf.predict(X).shape == (N,)


def test_levels_keep_the_order_that_was_declared() -> None:
    sizes = np.array(["small", "large", "medium"])[RNG.integers(0, 3, N)]
    declared = ["small", "medium", "large", "never seen"]
    for X in (
        pd.DataFrame({"size": pd.Categorical(sizes, categories=declared, ordered=True)}),
        pl.DataFrame({"size": pl.Series(sizes.tolist(), dtype=pl.Enum(declared))}),
    ):
        assert BayesNetClassifier().fit(X, LABEL).schema_["size"].levels == ("small", "medium", "large")


def test_weights_that_are_shares_still_cut_numbers() -> None:
    from sklearn.ensemble import AdaBoostClassifier

    X = RNG.normal(size=(N, 2)) + 2 * LABEL[:, None]
    counted = BayesNetClassifier().fit(X, LABEL, sample_weight=np.ones(N))
    shares = BayesNetClassifier().fit(X, LABEL, sample_weight=np.full(N, 1 / N))
    assert [v.cuts for v in shares.schema_.features] == [v.cuts for v in counted.schema_.features]
    boosted = AdaBoostClassifier(BayesNetClassifier("nb"), n_estimators=3).fit(X, LABEL)
    assert boosted.score(X, LABEL) > 0.85


@pytest.mark.parametrize("kind", [BayesNetClassifier, AODEClassifier])
@pytest.mark.parametrize("names", [[10, 20], pd.MultiIndex.from_tuples([("a", "x"), ("b", "y")])])
def test_columns_whose_names_are_no_strings_are_found_by_name_too(kind: Any, names: Any) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 50)
    X = pd.DataFrame(np.column_stack([y + rng.normal(size=100) * 0.1, rng.normal(size=100)]), columns=names)
    clf = kind().fit(X, y)
    assert clf.score(X, y) > 0.9
    turned = X.iloc[:, ::-1]
    np.testing.assert_array_equal(clf.predict_proba(turned), clf.predict_proba(X))
    other = X.set_axis([98, 99], axis=1)
    with pytest.raises(ValueError, match="was there at fit but is missing now"):
        clf.predict(other)
    assert kind().fit(X.to_numpy(), y).predict(X).shape == (100,)  # an array has no names to go by


@pytest.mark.parametrize("kind", ["int64", "Int64", "object"])
def test_numbers_too_long_to_be_told_apart_are_refused(kind: str) -> None:
    codes = [900000000000000001, 900000000000000002, 900000000000000003] * 30
    X = pd.DataFrame({"id": pd.Series(codes, dtype=kind)})
    with pytest.raises(ValueError, match="'id' holds 900000000000000001 and 900000000000000002"):
        BayesNetClassifier(categorical_features=["id"]).fit(X, [0, 1, 1] * 30)
    with pytest.raises(ValueError, match="turn them into strings"):
        BayesNetClassifier().fit(np.array(codes)[:, None], [0, 1, 1] * 30)
    assert BayesNetClassifier().fit(X.astype(str), [0, 1, 1] * 30).schema_["id"].cardinality == 3
    apart = pd.DataFrame({"time": np.array([1.0, 2.0, 3.0] * 30).astype("int64") * 10**18})
    assert BayesNetClassifier().fit(apart, [0, 1, 1] * 30).score(apart, [0, 1, 1] * 30) == 1.0


def test_tables_that_would_fill_the_memory_are_refused_by_the_column_to_blame() -> None:
    rng = np.random.default_rng(0)
    n = 6000
    X = pd.DataFrame({"place": rng.integers(0, 2500, n).astype(str), "drug": rng.integers(0, 2500, n).astype(str)})
    y = rng.integers(0, 80, n)
    dag = Dag(("class", "place", "drug"), ((), (0,), (0, 1)))
    with pytest.raises(ValueError, match=r"cells, because '(place|drug)' has 2[0-9]+ levels; leave it out if"):
        BayesNetClassifier(dag).fit(X, y)


def test_numbers_written_as_text_are_not_taken_for_identifiers() -> None:
    X = pd.DataFrame({"a": [f"{x:.1f}" for x in np.arange(100) * 1.7]})
    with pytest.warns(UserWarning, match="column 'a' is taken for a category because its numbers, .* are text; conv"):
        BayesNetClassifier("nb").fit(X, np.arange(100) % 2)


@pytest.mark.parametrize(
    "y", [pd.date_range("2020", periods=2).repeat(5), pd.Series([pd.Timedelta(1), pd.Timedelta(2)] * 5)]
)
def test_dates_are_no_classes(y: object) -> None:
    with pytest.raises(ValueError, match="dates and durations are no classes"):
        BayesNetClassifier("nb").fit(pd.DataFrame({"a": list("pq") * 5}), y)
    with pytest.raises(ValueError, match="dates and durations are no classes"):
        BayesNetClassifier("nb").fit(pd.DataFrame({"a": list("pq") * 5}), np.array(list(y), object))


@pytest.mark.parametrize("cells", [[1j, 2j] * 5, [1j] * 10])
def test_complex_numbers_are_refused_by_the_name_of_their_column(cells: list[complex]) -> None:
    with pytest.raises(TypeError, match="column 'a' has the type complex"):
        BayesNetClassifier("nb").fit(pd.DataFrame({"a": cells, "b": range(10)}), list("pq") * 5)


def test_columns_of_the_same_name_are_refused_with_a_remedy() -> None:
    cells = pa.array([1, 2] * 5)
    for X in (pd.DataFrame([[1, 2], [3, 4]] * 5, columns=["a", "a"]), pa.table([cells, cells], ["a", "a"])):
        with pytest.raises(ValueError, match="two columns are called 'a'; give each its own name"):
            BayesNetClassifier("nb").fit(X, list("pq") * 5)


def test_numbers_as_far_apart_as_can_be_are_levels_like_others() -> None:
    X = pd.DataFrame({"a": [-1e308, 1e308] * 10})
    assert BayesNetClassifier("nb").fit(X, [0, 1] * 10).score(X, [0, 1] * 10) == 1.0


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_numbers_and_texts_are_read_as_an_array_of_objects(kind: Any) -> None:
    rows = kind([size, colour or "none"] for size, colour in zip(COLUMNS["size"], COLUMNS["colour"], strict=True))
    rows = kind([np.nan if size is None else size, colour] for size, colour in rows)
    clf = BayesNetClassifier().fit(rows, LABEL)
    assert clf.schema_["x0"].cuts
    assert clf.network_ == BayesNetClassifier().fit(np.array(rows, object), LABEL).network_
    assert np.array_equal(clf.predict_proba(rows), clf.predict_proba(np.array(rows, object)))


def test_categories_without_an_order_of_their_own_are_levels() -> None:
    Colour = enum.Enum("Colour", "RED GREEN")
    for values in ([Colour.RED, Colour.GREEN], [(1, "a"), ("b", 2)]):
        X = pd.DataFrame({"a": pd.Series(values * 10, dtype=object)})
        clf = BayesNetClassifier().fit(X, [0, 1] * 10)
        assert {*clf.schema_["a"].levels} == {*values}
        assert clf.score(X, [0, 1] * 10) == 1.0


def test_a_lazy_table_is_refused_with_the_remedy() -> None:
    lazy = pl.DataFrame(COLUMNS).lazy()
    with pytest.raises(TypeError, match=r"call its collect\(\)"):
        BayesNetClassifier().fit(lazy, LABEL)


def test_a_column_of_integers_without_a_value_is_read_without_a_warning() -> None:
    clf = BayesNetClassifier().fit(pl.DataFrame({"a": [1, 2, 3, 4] * 50}), LABEL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = clf.predict_proba(pl.DataFrame({"a": [None]}, schema={"a": pl.Int64}))
    np.testing.assert_allclose(found[0], clf.network_.query(clf.schema_.names[0]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_discretiser_may_return_a_frame(library: str) -> None:
    X = RNG.integers(0, 5, (N, 2)).astype(float)
    plain = OrdinalEncoder()
    ours = BayesNetClassifier(discretizer=clone(plain).set_output(transform=library)).fit(X, LABEL)
    assert ours.network_ == BayesNetClassifier(discretizer=plain).fit(X, LABEL).network_


def test_long_numbers_of_arrow_are_read_as_those_of_pandas() -> None:
    apart = pd.DataFrame({"id": RNG.integers(10**17, 10**18, N), "hole": pd.array([2**60, None] * (N // 2), "Int64")})
    alike = apart.assign(id=[900000000000000001 + i % 3 for i in range(N)])
    reference = BayesNetClassifier("nb").fit(apart, LABEL)
    for turn in (pa.Table.from_pandas, lambda frame: frame.convert_dtypes(dtype_backend="pyarrow")):
        clf = BayesNetClassifier("nb").fit(turn(apart), LABEL)
        assert clf.network_ == reference.network_
        assert np.array_equal(clf.predict_proba(turn(apart)), reference.predict_proba(apart))
        with pytest.raises(ValueError, match="'id' holds 900000000000000001 and 900000000000000002"):
            clf.fit(turn(alike), LABEL)


@pytest.mark.parametrize("cells", [["inf", "1"], ["-Infinity", "1"], ["1", "1e999"], pd.Categorical([np.inf, 1.0])])
def test_infinity_is_refused_in_a_column_of_numbers_however_it_is_written(cells: Any) -> None:
    clf = BayesNetClassifier("nb").partial_fit(pd.DataFrame({"a": np.arange(N) * 1.0}), LABEL)
    with pytest.raises(ValueError, match=r"infinity, .* column 'a', row"):
        clf.predict_proba(pd.DataFrame({"a": cells}))
    with pytest.raises(ValueError, match=r"infinity, .* column 'a', row"):
        clf.partial_fit(pd.DataFrame({"a": cells}), [0, 1])


def test_a_text_with_an_underscore_is_no_number() -> None:
    clf = BayesNetClassifier("nb").fit(pd.DataFrame({"a": np.arange(N) * 1.0}), LABEL)
    with pytest.raises(TypeError, match="'a' was learned as a number but now holds '1_0'"):
        clf.predict(pd.DataFrame({"a": ["1_0"]}))


@pytest.mark.parametrize(
    ("labels", "classes"), [([True, False], [False, True]), ([7, 3], [3, 7]), ([np.int64(7), 3.0], [3, 7])]
)
def test_labels_that_a_hole_made_objects_are_those_of_their_type(labels: list[Any], classes: list[Any]) -> None:
    table = pd.DataFrame({"a": np.arange(20.0), "y": np.array([*labels * 9, None, labels[1]], object)}).dropna()
    clf = BayesNetClassifier().fit(table[["a"]], table["y"])
    assert clf.classes_.dtype.kind in "bif"
    assert clf.classes_.tolist() == classes
    assert clf.score(table[["a"]], table["y"]) == clf.score(table[["a"]], table["y"].to_list())


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ([1, "a"], r"1 \(int\) and 'a' \(str\)"),
        ([True, 2], r"True \(bool\) and 2 \(int\)"),
        ([(1,), (2,)], r"\(2,\) \(tuple\)"),
    ],
)
def test_labels_of_several_types_are_refused_with_an_example_of_each(labels: list[Any], shown: str) -> None:
    y = pd.Series(labels * 5, dtype=object)
    with pytest.raises(ValueError, match=f"all of one type, not {shown}; turn them into text"):
        BayesNetClassifier().fit(np.arange(10.0)[:, None], y)


@pytest.mark.parametrize("choice", [slice(0, 2), list.copy, 3])
def test_a_choice_of_categories_that_is_no_list_is_refused_in_a_sentence(choice: Any) -> None:
    with pytest.raises(
        ValueError, match=r"categorical_features=.*: say 'from_dtype' or give a list of names, positions"
    ):
        BayesNetClassifier(categorical_features=choice).fit([[1.0], [2.0]], [0, 1])


@pytest.mark.parametrize("kind", [float, str])
def test_a_cell_that_keeps_a_column_from_being_numbers_is_warned_of_by_what_it_holds(kind: Any) -> None:
    cells = [kind(i / 7) for i in range(N - 1)] + ["<0.5"]
    X = pd.DataFrame({"crp": np.array(cells, object), "x": np.arange(N) % 3})
    with pytest.warns(
        UserWarning, match=f"'crp' is taken for a category because 1 of its {N} cells, such as '<0.5', is"
    ):
        BayesNetClassifier("nb").fit(X, LABEL)
    for meant in (X.assign(crp=X["crp"].astype(str).astype("category")), X):
        with pytest.warns(UserWarning, match="identifier") as told:
            BayesNetClassifier("nb", categorical_features=["crp"] if meant is X else None).fit(meant, LABEL)
        assert [str(w.message) for w in told] == [
            f"column 'crp' has {N} different values in {N} rows, like an identifier; leave it out if it is one"
        ]


@pytest.mark.parametrize(
    "cells",
    [
        [f"{i % 20}" for i in range(N)],  # strings are what codes should be
        [f"{i % 20:05d}" for i in range(N - 9)] + ["D-1"] * 9,
        ["abc"[i % 3] for i in range(N - 2)] + ["1.5", "2.5"],
        ["1.5", "<2", "2.5", "3.5"] * (N // 4),
    ],
)
def test_codes_and_words_are_categories_without_a_warning(cells: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BayesNetClassifier("nb").fit(pd.DataFrame({"a": cells}), LABEL)


def test_numbers_that_are_not_cut_are_not_taken_for_identifiers() -> None:
    with pytest.warns(
        UserWarning, match=f"'x0' has {N} different values in {N} rows, .*let a discretizer such as 'mdlp'"
    ):
        BayesNetClassifier("nb", discretizer=None).fit(RNG.normal(size=(N, 1)), LABEL)


def test_whole_numbers_of_polars_of_any_width_are_read() -> None:
    frame = pl.DataFrame({"a": [1, None, 3]}, schema={"a": pl.Int128})
    np.testing.assert_array_equal(read_frame(frame).column(0).values, [1.0, np.nan, 3.0])


@pytest.mark.parametrize(
    "cells",
    [
        RNG.normal(size=(N, 2)) + LABEL[:, None],
        RNG.integers(0, 9, (N, 2)) + 3 * LABEL[:, None],
        (RNG.random((N, 2)) < 0.2) ^ (LABEL[:, None] == 1),
        np.array(["a", "b", "c"])[RNG.integers(0, 2, (N, 2)) + LABEL[:, None]],
    ],
)
def test_what_is_masked_is_missing(cells: Any) -> None:
    mask = np.random.default_rng(1).random(cells.shape) < 0.3
    plain = cells.astype(object)
    plain[mask] = None
    expected = BayesNetClassifier().fit(plain, LABEL)
    for hidden in (mask, np.zeros_like(mask)):
        masked = np.ma.masked_array(cells, hidden)
        found = BayesNetClassifier().fit(masked, LABEL)
        if hidden is mask:
            assert found.network_ == expected.network_
            np.testing.assert_array_equal(found.predict_proba(masked), expected.predict_proba(plain))
        else:
            assert found.network_ == BayesNetClassifier().fit(cells, LABEL).network_


def test_whole_numbers_of_a_type_without_missing_values_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import narwhals as nw

    cells = np.arange(-3, 5)
    assert np.isnan(read_frame(pd.DataFrame({"a": pd.array([1, None], "Int64")})).column(0).values[1])
    monkeypatch.setattr(nw.Series, "fill_null", None)  # slow, in every column of every row that is predicted
    for kind in ("int64", "int8"):
        column = read_frame(pd.DataFrame({"a": cells.astype(kind)})).column(0)
        np.testing.assert_array_equal(column.values, cells.astype(np.float64))
        assert column.values.dtype == np.float64
