"""SequenceLabeler: ids, order of rows, missing cells, lengths, and what scikit-learn does with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="tables are pandas frames here")

import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_predict, cross_val_score

from marginbayes.datasets import synthetic
from marginbayes.sequence import SequenceLabeler, StructuredHybrid, sequence_accuracy, whole_sequence_scorer
from marginbayes.verification import verify

PARAMETERS = ["ml", "cl", "mm-hybrid", "mm-convex", "m3n"]


def chains(n: int = 40, beta: float = 0.8, seed: int = 0) -> tuple[Any, Any]:
    """Frame with an id column in front, and labels as text."""
    data = synthetic.skewed_chain(n, 1, length=5, n_children=3, beta=beta, random_state=seed)
    frame = data.X.iloc[data.train].assign(id=data.ids["seq_id"].iloc[data.train].to_numpy())
    return frame[["id", *data.X]], pd.Series(np.where(data.y.iloc[data.train] == 1, "on", "off"), name="state")


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_every_learner_labels_held_out_sequences_better_than_chance(parameters: str) -> None:
    X, y = chains(60)
    new, truth = chains(60)
    new, truth = new.iloc[150:], truth.iloc[150:]
    labeler = SequenceLabeler(parameters=parameters, sequence="id").fit(X.iloc[:150], y.iloc[:150])
    assert labeler.score(new, truth) > 0.8
    assert set(labeler.predict(new)) <= {"on", "off"}
    chances = labeler.predict_proba(new)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert labeler.network_.normalized
    if labeler.certificate_ is not None:
        assert labeler.certificate_.gap <= 1e-4


@pytest.mark.parametrize("parameters", ["ml", "cl", "mm-hybrid", "m3n"])
def test_the_order_of_sequences_in_the_table_and_their_mixing_do_not_matter(parameters: str) -> None:
    X, y = chains(20)
    rng = np.random.default_rng(0)
    # Rows of different sequences are mixed at random, those of one sequence keep their order.
    slots = rng.permutation(np.repeat(np.arange(20), 5)).argsort(kind="stable")
    ranked = np.empty(100, int)
    ranked[slots] = np.arange(100)
    mixed, labels = X.iloc[ranked], y.iloc[ranked]
    assert (mixed["id"].to_numpy()[1:] != mixed["id"].to_numpy()[:-1]).mean() > 0.7
    one = SequenceLabeler(3, parameters=parameters, sequence="id").fit(X, y)
    other = SequenceLabeler(3, parameters=parameters, sequence="id").fit(mixed, labels)
    np.testing.assert_array_equal(one.weights_, other.weights_)
    np.testing.assert_array_equal(one.predict(X)[ranked], other.predict(mixed))
    np.testing.assert_array_equal(one.predict_proba(X)[ranked], one.predict_proba(mixed))


def test_ids_in_the_table_and_ids_given_to_fit_are_the_same() -> None:
    X, y = chains(20)
    named = SequenceLabeler(sequence="id").fit(X, y)
    given = SequenceLabeler().fit(X.drop(columns="id"), y, sequence=X["id"])
    np.testing.assert_array_equal(named.weights_, given.weights_)
    rest = X.drop(columns="id")
    np.testing.assert_array_equal(named.predict(X), given.predict(rest, sequence=X["id"]))
    assert named.score(X, y) == given.score(rest, y, sequence=X["id"])
    np.testing.assert_array_equal(given.sequence_ids(rest, X["id"]), named.sequence_ids(X))
    with pytest.raises(ValueError, match="fit was given sequence ids; give them here too"):
        given.predict(rest)
    with pytest.raises(ValueError, match="the sequence ids are in the column 'id'; do not give others"):
        named.predict(X, sequence=X["id"])
    with pytest.raises(ValueError, match="the sequence ids are in the column 'id'; do not give others to fit"):
        SequenceLabeler(sequence="id").fit(X, y, sequence=X["id"])


def test_ids_may_be_numbers_text_or_categories_and_lie_in_any_column() -> None:
    X, y = chains(15)
    number = X["id"].astype("category").cat.codes.to_numpy()
    array = np.column_stack([X.drop(columns="id").astype(int).to_numpy(), number])
    by_position = SequenceLabeler(sequence=3, categorical_features=[0, 1, 2]).fit(array, y)
    expected = SequenceLabeler(sequence="id").fit(X, y).predict_proba(X)
    np.testing.assert_allclose(by_position.predict_proba(array), expected, atol=1e-12)
    for ids in (number.astype(float), [f"s{i:03d}" for i in number], pd.Categorical(number), number.astype(object)):
        labeler = SequenceLabeler().fit(X.drop(columns="id"), y, sequence=ids)
        np.testing.assert_allclose(labeler.predict_proba(X.drop(columns="id"), ids), expected, atol=1e-12)


def test_without_ids_every_row_is_a_sequence_of_its_own() -> None:
    X, y = chains(20)
    rest = X.drop(columns="id")
    alone = SequenceLabeler(parameters="ml").fit(rest, y)
    given = SequenceLabeler(parameters="ml").fit(rest, y, sequence=np.arange(len(y)))
    np.testing.assert_array_equal(alone.predict_proba(rest), given.predict_proba(rest, np.arange(len(y))))
    assert alone.sequence_ids(rest).tolist() == list(range(len(y)))


def test_group_folds_grid_search_and_scorers_take_the_ids_from_the_table() -> None:
    X, y = chains(24)
    folds = GroupKFold(3)
    scores = cross_val_score(SequenceLabeler(sequence="id", parameters="ml"), X, y, groups=X["id"], cv=folds)
    whole = cross_val_score(
        SequenceLabeler(sequence="id", parameters="ml"),
        X,
        y,
        groups=X["id"],
        cv=folds,
        scoring=whole_sequence_scorer,
    )
    assert (whole <= scores).all()
    predicted = cross_val_predict(SequenceLabeler(sequence="id", parameters="ml"), X, y, groups=X["id"], cv=folds)
    by_fold = [sequence_accuracy(y.iloc[t], predicted[t], X["id"].iloc[t]) for _, t in folds.split(X, y, X["id"])]
    np.testing.assert_allclose(whole, by_fold)
    search = GridSearchCV(
        SequenceLabeler(sequence="id", parameters=StructuredHybrid()), {"parameters__B": [0.1, 1.0]}, cv=folds
    )
    assert search.fit(X, y, groups=X["id"]).best_params_["parameters__B"] in (0.1, 1.0)


def test_marginal_decoding_takes_the_most_probable_label_of_each_row() -> None:
    X, y = chains(20, beta=0.65)
    labeler = SequenceLabeler(sequence="id", decoding="marginal").fit(X, y)
    expected = labeler.classes_[labeler.predict_proba(X).argmax(axis=1)]
    np.testing.assert_array_equal(labeler.predict(X), expected)
    assert (clone(labeler).set_params(decoding="viterbi").fit(X, y).predict(X) != expected).any()
    with pytest.raises(ValueError, match="decoding='best' is not known; choose one of 'viterbi', 'marginal'"):
        SequenceLabeler(decoding="best").fit(X, y)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_sequences_of_one_row_of_many_rows_and_with_cells_missing_work(parameters: str) -> None:
    rng = np.random.default_rng(1)
    lengths = [1, 1, 2, 3, 60, 5, 1, 17]
    ids = np.repeat(np.arange(len(lengths)), lengths)
    y = np.where(ids == 4, rng.integers(0, 3, len(ids)), rng.integers(0, 2, len(ids)))  # label 2 in one sequence alone
    X = pd.DataFrame({"id": ids, "a": (y + rng.normal(0, 0.4, len(ids))), "b": rng.choice(["u", "v", None], len(ids))})
    X.loc[rng.random(len(ids)) < 0.2, "a"] = np.nan
    labeler = SequenceLabeler(3, parameters=parameters, sequence="id").fit(X, y)
    assert labeler.classes_.tolist() == [0, 1, 2]
    nothing = X.assign(a=np.nan, b=None).astype({"b": object})
    chances = labeler.predict_proba(nothing)
    assert np.isfinite(chances).all()
    long = pd.DataFrame({"id": 0, "a": [0.1, 2.2, np.nan] * 300, "b": ["u", "w", None] * 300})  # w is new
    assert labeler.predict(long).shape == (900,)
    assert np.isfinite(labeler.log_likelihood(long)).all()


def test_missing_observations_are_summed_out() -> None:
    X, y = chains(30)
    labeler = SequenceLabeler(sequence="id").fit(X, y)
    row = X.iloc[:5].astype({c: object for c in X.columns if c != "id"})
    hidden = row.copy()
    hidden.iloc[2, 2] = None
    levels = labeler.schema_.features[1].levels
    filled = []
    for level in levels:
        version = row.copy()
        version.iloc[2, 2] = level
        filled.append(version)
    each = [float(labeler.log_likelihood(f)[0]) for f in filled]
    assert float(labeler.log_likelihood(hidden)[0]) == pytest.approx(np.logaddexp.reduce(each))
    shares = np.exp(np.array(each) - np.logaddexp.reduce(each))
    mixed = sum(s * labeler.predict_proba(f) for s, f in zip(shares, filled, strict=True))
    np.testing.assert_allclose(labeler.predict_proba(hidden), mixed, atol=1e-12)


def test_a_sequence_of_weight_two_counts_as_two_sequences() -> None:
    X, y = chains(12)
    numbers = X["id"].astype("category").cat.codes.to_numpy()
    twice = pd.concat([X, X[numbers == 3].assign(id="again")])
    labels = pd.concat([y, y[numbers == 3]])
    weighted = SequenceLabeler(sequence="id", discretizer=None).fit(X, y, sample_weight=1.0 + (numbers == 3))
    repeated = SequenceLabeler(sequence="id", discretizer=None).fit(twice, labels)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=2e-3)
    without = SequenceLabeler(sequence="id").fit(X, y, sample_weight=1.0 * (numbers != 3))
    left = SequenceLabeler(sequence="id").fit(X[numbers != 3], y[numbers != 3])
    np.testing.assert_array_equal(without.weights_, left.weights_)
    given = SequenceLabeler().fit(X.drop(columns="id"), y, sequence=X["id"], sample_weight=1.0 * (numbers != 3))
    np.testing.assert_array_equal(given.weights_, left.weights_)
    with pytest.raises(ValueError, match="give each sequence one weight"):
        SequenceLabeler(sequence="id").fit(X, y, sample_weight=np.linspace(1, 2, len(y)))


def test_order_two_sees_what_order_one_cannot() -> None:
    # Labels repeat in pairs, 0 0 1 1 0 0 1 1; the observations say nothing.
    y = np.tile([0, 0, 1, 1], 25)[:96]
    ids = np.repeat(np.arange(8), 12)
    y = np.concatenate([np.tile([0, 0, 1, 1], 3)] * 8)
    X = pd.DataFrame({"id": ids, "a": ["x"] * 96})
    new = pd.DataFrame({"id": 0, "a": ["x"] * 12})
    first = SequenceLabeler(order=1, parameters="ml", sequence="id").fit(X, y)
    second = SequenceLabeler(order=2, parameters="ml", sequence="id").fit(X, y)
    assert second.predict(new).tolist() == np.tile([0, 0, 1, 1], 3).tolist()
    assert first.predict(new).tolist() != second.predict(new).tolist()


@pytest.mark.parametrize("parameters", ["mm-hybrid", "m3n", "mm-convex"])
def test_the_certificate_of_a_fit_can_be_checked_with_the_rows_of_the_table(parameters: str) -> None:
    X, y = chains(15, beta=0.65)
    shuffled = np.random.default_rng(0).permutation(len(y))
    X, y = X.iloc[shuffled], y.iloc[shuffled]
    labeler = SequenceLabeler(3, parameters=parameters, sequence="id").fit(X, y)
    codes = np.array([v.encode(c) for v, c in zip(labeler.schema_.features, columns(X), strict=True)])
    assert labeler.certificate_ is not None
    labels = np.searchsorted(labeler.classes_, y)
    report = verify(labeler.certificate_.to_document(), np.vstack([labels, codes]))
    assert report.gap <= 1e-4


def columns(X: Any) -> list[Any]:
    from marginbayes.data.frame import read_frame

    frame = read_frame(X.drop(columns="id"))
    return [frame.column(i) for i in range(len(frame.names))]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sequence": "chain"}, "sequence='chain' is no column of the table; it has 'id', 'x1'"),
        ({"sequence": 9}, "sequence=9 must name a column of the table, or be its position"),
        ({"window": 2}, "window=2 must be an odd number"),
        ({"order": 0}, "order=0 must be a whole number from 1 to 2"),
        ({"parameters": "svm"}, "parameters='svm' is not known"),
    ],
)
def test_bad_parameters_are_refused_with_the_remedy(change: dict[str, Any], message: str) -> None:
    X, y = chains(4)
    X.columns = ["id", "x1", "x2", "x3"]
    with pytest.raises(ValueError, match=message):
        SequenceLabeler(**{"sequence": "id", **change}).fit(X, y)


def test_ids_that_are_missing_or_too_few_are_refused() -> None:
    X, y = chains(4)
    with pytest.raises(ValueError, match=r"column 'id', row 2 \(from 0\) has no sequence id; give every row one"):
        SequenceLabeler(sequence="id").fit(X.assign(id=X["id"].where(np.arange(len(X)) != 2)), y)
    with pytest.raises(ValueError, match="sequence has 3 ids, but there are 20 rows"):
        SequenceLabeler().fit(X.drop(columns="id"), y, sequence=[1, 2, 3])
    with pytest.raises(ValueError, match=r"sequence has the shape \(20, 1\)"):
        SequenceLabeler().fit(X.drop(columns="id"), y, sequence=X[["id"]])
    with pytest.raises(ValueError, match="no column but that of the sequence ids"):
        SequenceLabeler(sequence="id").fit(X[["id"]], y)


def test_polars_frames_work_as_pandas_frames_do() -> None:
    pl = pytest.importorskip("polars", reason="polars is an optional peer")
    X, y = chains(10)
    other = pl.DataFrame({name: X[name].astype(str).tolist() for name in X})
    expected = SequenceLabeler(sequence="id", parameters="ml").fit(X, y).predict(X)
    found = SequenceLabeler(sequence="id", parameters="ml").fit(other, y.to_numpy()).predict(other)
    np.testing.assert_array_equal(found, expected)


def test_a_sequence_has_one_weight_and_zero_is_one_too() -> None:
    X, y, ids = [["a"], ["b"], ["a"], ["b"]], ["p", "q", "p", "q"], [1, 1, 1, 2]
    labeler = SequenceLabeler(parameters="ml")
    with pytest.raises(ValueError, match="row 1 \\(from 0\\) has another weight"):
        labeler.fit(X, y, sequence=ids, sample_weight=[1, 0, 1, 1])
    frame = pd.DataFrame({"x": list("aba"), "id": [1, 1, 1]})
    with pytest.raises(ValueError, match="row 1"):
        SequenceLabeler(parameters="ml", sequence="id").fit(frame, list("pqp"), sample_weight=[1, 0, 1])
    whole = labeler.fit(X, y, sequence=ids, sample_weight=[1, 1, 1, 0])
    np.testing.assert_allclose(whole.weights_, clone(labeler).fit(X[:3], y[:3], sequence=ids[:3]).weights_)


def test_a_file_keeps_names_that_are_numbers(tmp_path: Any) -> None:
    X, y = chains(20)
    X = X.set_axis(range(10, 10 + X.shape[1]), axis=1)
    labeler = SequenceLabeler(parameters="ml", sequence="10").fit(X, y)
    labeler.to_json(tmp_path / "labeler.json")
    again = SequenceLabeler.from_json(tmp_path / "labeler.json")
    np.testing.assert_array_equal(again.predict_proba(X.iloc[:, ::-1]), labeler.predict_proba(X))


@pytest.mark.parametrize("sequence", ["id", 0])
def test_a_table_without_the_column_of_ids_is_refused_with_a_remedy_that_works(sequence: Any) -> None:
    X, y = chains(10)
    labeler = SequenceLabeler(parameters="ml", sequence=sequence).fit(X, y)
    with pytest.raises(ValueError, match="the column 'id' of sequence ids is missing; add it, with an id in every row"):
        labeler.predict(X.drop(columns="id"))
    assert len(labeler.predict(X.drop(columns="id").assign(id=7))) == len(X)


def test_the_mean_length_does_not_depend_on_the_unit_of_the_weights() -> None:
    X, y = chains(20)
    found = [
        SequenceLabeler(parameters="m3n", sequence="id").fit(X, y, np.full(len(X), weight)) for weight in (1.0, 1e-3)
    ]
    lengths = []
    for labeler in found:
        start, steps, _ = labeler.model_.tables(np.exp(labeler.weights_))
        lengths.append(np.linalg.solve(np.eye(len(start)) - steps[:, :-1].T, start).sum())
    seen = len(X) / X["id"].nunique() + 1 / X["id"].nunique()
    np.testing.assert_allclose(lengths, seen, rtol=1e-6)


def test_an_array_of_one_dimension_is_refused_in_words() -> None:
    _, y = chains(20)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        SequenceLabeler(parameters="ml").fit(np.arange(100.0), y, np.ones(100), sequence=np.arange(100) // 5)


def test_weights_come_third_as_everywhere_and_are_not_taken_for_sequences() -> None:
    X, y = chains(10)
    heavy = 1.0 + (X["id"] % 2)
    labeler = SequenceLabeler(sequence="id", parameters="ml")
    np.testing.assert_array_equal(labeler.fit(X, y, heavy).weights_, labeler.fit(X, y, sample_weight=heavy).weights_)
    assert labeler.score(X, y, heavy) == labeler.score(X, y, sample_weight=heavy)
