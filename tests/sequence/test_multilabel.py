"""MultiLabelClassifier: trees over several targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("pandas", reason="tables are pandas frames here")

import pandas as pd
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import KBinsDiscretizer

from marginbayes import BayesNetClassifier, MDLPDiscretizer
from marginbayes.sequence import MultiLabelClassifier, SequenceLabeler, StructuredHybrid
from marginbayes.verification import verify


def rows(n: int = 200, seed: int = 0) -> tuple[Any, Any]:
    """Two numbers, one category; the third target follows the first, the second is on its own."""
    rng = np.random.default_rng(seed)
    first, second = rng.choice(["a", "b"], n), rng.integers(0, 3, n)
    third = np.where(rng.random(n) < 0.9, first, "b")
    X = pd.DataFrame(
        {
            "u": rng.normal(2.0 * (first == "a")),
            "v": rng.normal(2.0 * second),
            "w": np.where(rng.random(n) < 0.5, third, "c"),
        }
    )
    return X, pd.DataFrame({"first": first, "second": second, "third": third})


@pytest.mark.parametrize("parameters", ["ml", "cl", "mm-hybrid", "m3n", "mm-convex"])
def test_every_learner_predicts_all_targets(parameters: str) -> None:
    X, Y = rows()
    clf = MultiLabelClassifier(parameters).fit(X[:150], Y[:150])
    predicted = clf.predict(X[150:])
    assert predicted.shape == (50, 3)
    assert predicted.dtype == object
    right = (predicted == Y[150:].to_numpy()).mean(axis=0)
    assert (right > [0.7, 0.6, 0.7]).all()
    for chances, levels in zip(clf.predict_proba(X), clf.classes_, strict=True):
        assert chances.shape == (200, len(levels))
        np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert clf.network_.normalized


def test_the_learned_tree_joins_the_targets_that_depend_on_each_other() -> None:
    X, Y = rows(1000)
    clf = MultiLabelClassifier("ml").fit(X, Y)
    assert clf.model_.parents[2] == 0
    assert ("first", "third") in clf.network_.dag.edges
    assert MultiLabelClassifier("ml", tree="independent").fit(X, Y).model_.parents == (-1, -1, -1)
    given = MultiLabelClassifier("ml", tree=[("third", "first"), (0, 1)]).fit(X, Y)
    assert given.model_.parents == (2, 0, -1)


def test_the_network_of_all_copies_gives_the_same_answers() -> None:
    X, Y = rows()
    clf = MultiLabelClassifier("m3n").fit(X, Y)
    network, row = clf.network_, X.iloc[[3]]
    evidence = {}
    for variable in clf.schema_.variables[3:]:
        cell = row[variable.name].iloc[0]
        level = cell if variable.cuts is None else variable.levels[int(np.searchsorted(variable.cuts, cell))]
        evidence |= {f"{variable.name}[{target}]": level for target in Y}
    for chances, target in zip(clf.predict_proba(row), Y, strict=True):
        np.testing.assert_allclose(network.query(target, evidence), chances[0], atol=1e-10)


def test_one_target_in_one_dimension_is_an_ordinary_classifier() -> None:
    X, Y = rows()
    flat = MultiLabelClassifier().fit(X, Y["first"])
    column = MultiLabelClassifier().fit(X, Y[["first"]])
    assert flat.predict(X).shape == (200,)
    assert column.predict(X).shape == (200, 1)
    np.testing.assert_array_equal(flat.predict(X), column.predict(X)[:, 0])
    np.testing.assert_array_equal(flat.predict_proba(X), column.predict_proba(X)[0])
    assert flat.classes_.tolist() == ["a", "b"]
    assert cross_val_score(MultiLabelClassifier("ml"), X, Y["first"], cv=3).mean() > 0.7


def test_joint_decoding_predicts_the_most_probable_combination() -> None:
    X, Y = rows()
    clf = MultiLabelClassifier("ml", decoding="joint").fit(X, Y)
    labels = clf.predict(X)
    network = clf.network_
    row = X.iloc[[5]]
    evidence = {}
    for variable in clf.schema_.variables[3:]:
        cell = row[variable.name].iloc[0]
        level = cell if variable.cuts is None else variable.levels[int(np.searchsorted(variable.cuts, cell))]
        evidence |= {f"{variable.name}[{target}]": level for target in Y}
    best, _ = network.most_probable(evidence)
    assert [best[target] for target in Y] == labels[5].tolist()
    assert clf.score(X, Y) == pytest.approx((labels == Y.to_numpy()).all(axis=1).mean())


def test_cuts_of_a_number_serve_every_target() -> None:
    X, Y = rows(400)
    alone = {c for t in ("first", "second") for c in MultiLabelClassifier("ml").fit(X, Y[t]).schema_["v"].cuts}
    together = set(MultiLabelClassifier("ml").fit(X, Y[["first", "second"]]).schema_["v"].cuts)
    assert together == alone
    assert together


def test_a_discretiser_of_your_own_serves_every_target_too() -> None:
    X, Y = rows(400)
    named, given = (MultiLabelClassifier("ml", discretizer=d).fit(X, Y).schema_ for d in ("mdlp", MDLPDiscretizer()))
    assert [v.cuts for v in given.features] == [v.cuts for v in named.features]
    bins = MultiLabelClassifier("ml", discretizer=KBinsDiscretizer(3, encode="ordinal")).fit(X, Y).schema_
    assert len(bins["v"].cuts) == 2


def test_labels_of_mixed_type_are_refused_as_for_one_target() -> None:
    X, Y = rows()
    sentence = r"labels are text, whole numbers or booleans, all of one type, not 1 \(int\) and 'a' \(str\)"
    mixed = Y.assign(second=[1, "a"] * (len(Y) // 2))
    with pytest.raises(ValueError, match=f"target 'second': {sentence}"):
        MultiLabelClassifier("ml").fit(X, mixed)
    with pytest.raises(ValueError, match=f"target 1: {sentence}"):
        MultiLabelClassifier("ml").fit(X, mixed.to_numpy(object))
    with pytest.raises(ValueError, match=sentence):
        MultiLabelClassifier("ml").fit(X, mixed["second"])


@pytest.mark.parametrize("kind", [MultiLabelClassifier, SequenceLabeler])
def test_columns_that_nobody_can_have_meant_are_warned_of(kind: Any) -> None:
    X, Y = rows()
    names = [f"k{i}" for i in range(len(X))]
    with pytest.warns(
        UserWarning, match="column 'id' has 200 different values in 200 rows, like an identifier"
    ) as told:
        kind(parameters="ml").fit(X.assign(id=names), Y["first"])
    assert [w.filename for w in told] == [__file__]
    spoiled = X.assign(crp=[f"{i % 20}.5" for i in range(199)] + ["<0.5"])
    with pytest.warns(UserWarning, match="column 'crp' is taken for a category because 1 of its 200 cells"):
        kind(parameters="ml").fit(spoiled, Y["first"])
    kind(parameters="ml", categorical_features=["crp"]).fit(spoiled, Y["first"])


@pytest.mark.parametrize("kind", [MultiLabelClassifier, SequenceLabeler])
def test_logarithms_are_finite_where_probabilities_are_too_small_for_a_number(kind: Any) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.random((300, 1500)) < 0.1 + 0.8 * y[:, None]
    logs = kind(parameters="ml").fit(X, y).predict_log_proba(X)
    assert logs.min() < -745
    assert np.isfinite(logs).all()
    if kind is MultiLabelClassifier:
        np.testing.assert_allclose(logs, BayesNetClassifier("nb").fit(X, y).predict_log_proba(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_logarithms_are_those_of_the_probabilities(order: int) -> None:
    X, Y = rows()
    several = MultiLabelClassifier("ml").fit(X, Y)
    for chances, logs in zip(several.predict_proba(X), several.predict_log_proba(X), strict=True):
        np.testing.assert_allclose(np.exp(logs), chances, atol=1e-12)
    ids = np.repeat(np.arange(40), 5)
    for smoothing in (0.0, 1.0):  # without any, labellings are impossible, of some sequences all of them
        chain = SequenceLabeler(3, order, "ml", smoothing=smoothing).fit(X[:50], Y["second"][:50], sequence=ids[:50])
        chances, logs = chain.predict_proba(X, sequence=ids), chain.predict_log_proba(X, sequence=ids)
        np.testing.assert_allclose(np.exp(logs), chances, atol=1e-12)


@pytest.mark.parametrize("kind", [MultiLabelClassifier, SequenceLabeler])
def test_booleans_that_are_objects_are_scored_and_a_decoding_that_is_not_known_is_refused(kind: Any) -> None:
    X, Y = rows()
    truths = (Y["first"] == "a").astype(object)
    clf = kind(parameters="ml").fit(X, truths)
    assert clf.score(X, truths) == clf.score(X, truths.astype(bool)) > 0.5
    with pytest.raises(ValueError, match="decoding='best' is not known"):
        clf.set_params(decoding="best").predict(X)


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1, 2], "inconsistent numbers of samples"), ([0.0] * 200, "Sample weights must contain at least one non-zero")],
)
def test_weights_of_a_score_are_checked_as_those_of_a_fit(weights: list[float], message: str) -> None:
    X, Y = rows()
    with pytest.raises(ValueError, match=message):
        MultiLabelClassifier("ml").fit(X, Y).score(X, Y, sample_weight=weights)


@pytest.mark.parametrize(
    ("weight", "message"), [(np.nan, "Input sample_weight contains NaN"), ("much", "must be one number for each row")]
)
def test_weights_of_sequences_are_refused_for_what_they_are(weight: Any, message: str) -> None:
    X, Y = rows()
    with pytest.raises(ValueError, match=message):
        SequenceLabeler(parameters="ml").fit(X, Y["first"], [1.0] * 199 + [weight], sequence=np.arange(200) // 5)


def test_the_column_of_sequences_is_no_identifier() -> None:
    X, Y = rows()
    ids = [f"k{i}" for i in range(len(X))]
    labeler = SequenceLabeler(parameters="ml", sequence="id").fit(X.assign(id=ids), Y["first"])  # warns of nothing
    assert "id" not in labeler.schema_.names


@pytest.mark.parametrize("parameters", ["mm-hybrid", "m3n", "mm-convex"])
def test_the_certificate_of_several_targets_can_be_checked(parameters: str) -> None:
    X, Y = rows(60)
    clf = MultiLabelClassifier(parameters).fit(X, Y)
    from marginbayes.data.frame import read_frame

    frame = read_frame(X)
    labels = [np.searchsorted(levels, Y.iloc[:, k]) for k, levels in enumerate(clf.classes_)]
    codes = [v.encode(frame.column(i)) for i, v in enumerate(clf.schema_.variables[3:])]
    assert clf.certificate_ is not None
    assert verify(clf.certificate_.to_document(), np.vstack([*labels, *codes])).gap <= 1e-4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tree": "star"}, "tree='star' is not known"),
        ({"tree": [("first", "fourth")]}, "the tree names 'fourth', which is no target"),
        ({"tree": [(0, 2), (1, 2)]}, "the target 'third' has two parents"),
        (
            {"tree": [(0, 1), (1, 0)]},
            "the edges of the tree form a cycle: 'first' -> 'second' -> 'first'; leave one out",
        ),
        ({"tree": [(2, 0), (1, 1)]}, "form a cycle: 'second' -> 'second'"),
        ({"tree": [(True, 0)]}, "the tree names True, which is no target"),
        ({"decoding": "best"}, "decoding='best' is not known"),
    ],
)
def test_bad_parameters_of_several_targets_are_refused(change: dict[str, Any], message: str) -> None:
    X, Y = rows(20)
    with pytest.raises(ValueError, match=message):
        MultiLabelClassifier(**{"parameters": "ml", **change}).fit(X, Y)


@pytest.mark.parametrize("gone", [None, np.nan, pd.NA], ids=str)
def test_a_missing_label_is_refused(gone: object) -> None:
    X, Y = rows(20)
    Y = Y.astype(object)
    Y.loc[3, "third"] = gone
    with pytest.raises(ValueError, match=r"row 3 \(from 0\) has no label for target 'third'; drop"):
        MultiLabelClassifier().fit(X, Y)
    with pytest.raises(ValueError, match=r"row 3 \(from 0\) has no label for target 2; drop"):
        MultiLabelClassifier().fit(X, Y.to_numpy())


def test_a_target_called_like_a_feature_is_found_by_the_name_it_was_given() -> None:
    X, Y = rows(20)
    assert list(X.columns[:2]) == ["u", "v"]
    classifier = MultiLabelClassifier("ml", tree=[("u", "t")]).fit(X, Y.set_axis(["u", "t", "third"], axis=1))
    assert classifier.model_.parents == (-1, 0, -1)
    assert classifier.schema_.names[:3] == ("u_", "t", "third")


def test_targets_and_features_called_alike_but_for_underscores_are_told_apart() -> None:
    X, Y = rows(20)
    X = X.set_axis(["a", *X.columns[1:]], axis=1)
    for given, names in ((["a", "a_", "b"], ("a__", "a_", "b")), (["a_", "a", "b"], ("a_", "a__", "b"))):
        assert MultiLabelClassifier("ml").fit(X, Y.set_axis(given, axis=1)).schema_.names[:3] == names


def test_targets_without_a_column_are_refused() -> None:
    X, _ = rows(20)
    with pytest.raises(ValueError, match="y has no column"):
        MultiLabelClassifier().fit(X, np.empty((20, 0)))


def test_targets_may_be_of_different_types_in_any_order() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60)})
    p, q = rng.integers(0, 2, 60), np.where(rng.random(60) < 0.5, "u", "v")
    frames = [
        pd.DataFrame({"q": q, "p": p}),
        pd.DataFrame({"p": p, "q": q}),
        pd.DataFrame({"p": pd.array(p, dtype="Int64"), "q": pd.Categorical(q)}),
    ]
    models = [MultiLabelClassifier("ml").fit(X, Y) for Y in frames]
    for model, Y in zip(models, frames, strict=True):
        levels = dict(zip(Y, model.classes_, strict=True))
        assert levels["p"].tolist() == [0, 1]
        assert levels["q"].tolist() == ["u", "v"]
    np.testing.assert_array_equal(models[0].predict(X)[:, ::-1], models[1].predict(X))
    np.testing.assert_array_equal(models[1].predict(X), models[2].predict(X))


def test_what_never_occurred_together_has_the_probability_zero_and_not_nan() -> None:
    X, Y = pd.DataFrame({"a": ["x", "y"] * 20}), np.array([["p", "k"], ["q", "l"]] * 20)
    clf = MultiLabelClassifier("ml", smoothing=0).fit(X, Y)
    for chances in clf.predict_proba(X[:2]):
        np.testing.assert_array_equal(chances, np.eye(2))
    assert clf.score(X, Y) == 1.0
    both = pd.DataFrame({"a": ["x", "y"] * 20, "b": ["x", "y"] * 20})
    impossible = pd.DataFrame({"a": ["x"], "b": ["y"]})
    for chances in MultiLabelClassifier("ml", smoothing=0).fit(both, Y).predict_proba(impossible):
        np.testing.assert_array_equal(chances, [[0.5, 0.5]])


def test_lists_of_numbers_and_texts_keep_the_type_of_each_column() -> None:
    X, Y = [[1.5, "a"], [float("nan"), "b"], [2.5, "b"]] * 20, [[1, "p"], [2, "q"], [2, "p"]] * 20
    clf = MultiLabelClassifier("ml").fit(X, Y)
    assert "nan" not in clf.schema_["x0"].levels
    assert [levels.tolist() for levels in clf.classes_] == [[1, 2], ["p", "q"]]
    assert clf.score(X, Y) == np.mean([row == list(own) for row, own in zip(Y, clf.predict(X), strict=True)])


def test_labels_of_other_rows_are_not_scored() -> None:
    X, Y = rows()
    clf = MultiLabelClassifier("ml").fit(X, Y)
    for given in (Y, Y[["first"]][:1], Y["first"][:1]):
        with pytest.raises(ValueError, match=r"y has the shape \(.*\), but the labels of X have \(1, 3\)"):
            clf.score(X[:1], given)


def test_targets_of_the_same_name_are_refused() -> None:
    X, Y = rows()
    with pytest.raises(ValueError, match="two columns are called 'same'"):
        MultiLabelClassifier("ml").fit(X, Y.set_axis(["same", "other", "same"], axis=1))


@pytest.mark.parametrize("kind", [MultiLabelClassifier, SequenceLabeler])
def test_a_parameter_of_a_named_learner_makes_it_that_learner(kind: Any) -> None:
    learner = kind().set_params(parameters__B=0.1, smoothing=3.0).parameters
    assert isinstance(learner, StructuredHybrid)
    assert (learner.B, learner.smoothing) == (0.1, 3.0)


@pytest.mark.parametrize("kind", [MultiLabelClassifier, SequenceLabeler])
def test_an_unknown_discretizer_is_refused_by_name(kind: Any) -> None:
    X, Y = rows()
    with pytest.raises(ValueError, match="discretizer='MDLP' is not known"):
        kind(parameters="ml", discretizer="MDLP").fit(X, Y["first"])
