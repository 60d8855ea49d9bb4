from __future__ import annotations

import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, StandardScaler

from marginbayes import AODEClassifier, BayesNetClassifier, Dag, MDLPDiscretizer, Network
from marginbayes.parameters import ConditionalLikelihood, MaximumLikelihood
from marginbayes.structure import ChowLiuTAN, ExactMargin, Greedy, NaiveBayes


def categorical_data(seed: int = 0, n: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {f"f{i}": np.array(list("abcd"))[(y * rng.integers(0, 2, n) + rng.integers(0, 2, n)) % 4] for i in range(5)}
    )
    return frame, y


def test_naive_bayes_equals_scikit_learns_categorical_nb() -> None:
    X, y = categorical_data()
    codes = X.apply(lambda c: c.map({v: i for i, v in enumerate("abcd")})).to_numpy()
    peer = CategoricalNB(min_categories=X.nunique().to_numpy()).fit(codes, y)
    clf = BayesNetClassifier("nb").fit(X, y)
    # scikit-learn does not smooth the prior.
    shift = np.log(np.bincount(y) / len(y)) - np.log(np.exp(clf.network_.tables[0]))
    np.testing.assert_allclose(clf.predict_joint_log_proba(X) + shift, peer.predict_joint_log_proba(codes), atol=1e-10)


def test_the_answers_of_a_fitted_network_are_bayes_rule() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = BayesNetClassifier("tan").fit(X, y)
    joint = clf.predict_joint_log_proba(X)
    proba = np.exp(joint) / np.exp(joint).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), proba, atol=1e-12)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), proba, atol=1e-12)
    assert np.array_equal(clf.predict(X), clf.classes_[proba.argmax(axis=1)])
    assert clf.score(X, y) > 0.95


@pytest.mark.parametrize(
    "labels",
    [[0, 1], ["no", "yes"], [False, True], [1.0, 2.0], [-3, 10**12], np.array(["a", "b"], object)],
)
def test_labels_keep_their_type(labels: list[object]) -> None:
    X, y = load_iris(return_X_y=True)
    y = np.asarray(labels)[(y > 0).astype(int)]
    predicted = BayesNetClassifier().fit(X, y).predict(X)
    assert predicted.dtype == y.dtype
    assert np.mean(predicted == y) > 0.95


def test_pandas_labels_with_categories_work_and_name_the_class() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    y = pd.Series(pd.Categorical.from_codes(y, ["setosa", "versicolor", "virginica"]), name="species")
    clf = BayesNetClassifier().fit(X, y)
    assert clf.schema_.target.name == "species"
    assert clf.classes_.tolist() == ["setosa", "versicolor", "virginica"]


def test_a_new_prior_corrects_the_odds_by_bayes_rule() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    clf = BayesNetClassifier().fit(X, y)
    old = clf.network_.query(clf.schema_.target.name)
    proba = clf.predict_proba(X)
    expected = proba / old * [0.01, 0.99]
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X, prior=[0.01, 0.99]), expected, atol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(X, prior={1: 0.99, 0: 0.01}), expected, atol=1e-12)
    np.testing.assert_allclose(clf.predict_proba(X, prior=old), proba, atol=1e-12)
    logs = clf.predict_log_proba(X, prior=[0.01, 0.99])
    np.testing.assert_allclose(logs, np.log(clf.predict_proba(X, prior=[0.01, 0.99])), rtol=1e-9, atol=1e-12)
    assert np.abs(logs - clf.predict_log_proba(X)).max() > 1
    for bad in ([0.5, 0.6], {0: 1.0}, {0: 0.5, 1: 0.3, 2: 0.2}, [1.0]):
        with pytest.raises(ValueError, match="prior must"):
            clf.predict_proba(X, prior=bad)


def test_a_cost_matrix_moves_the_decision_to_the_least_expected_cost() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    clf = BayesNetClassifier("nb").fit(X, y)
    proba = clf.predict_proba(X)
    cost = np.array([[0.0, 50.0], [1.0, 0.0]])
    expected = [min((0, 1), key=lambda j: p[0] * cost[0, j] + p[1] * cost[1, j]) for p in proba]
    assert clf.predict(X, cost=cost).tolist() == expected
    assert np.array_equal(clf.predict(X, cost=1 - np.eye(2)), clf.predict(X))
    with pytest.raises(ValueError, match="2 x 2 matrix"):
        clf.predict(X, cost=[[1, 2, 3]])


def test_class_weight_equals_weighting_the_rows() -> None:
    X, y = load_iris(return_X_y=True)
    weighted = BayesNetClassifier(discretizer=None).fit(X, y, sample_weight=np.array([1.0, 2.0, 5.0])[y])
    balanced = BayesNetClassifier(discretizer=None, class_weight={0: 1.0, 1: 2.0, 2: 5.0}).fit(X, y)
    assert balanced.network_ == weighted.network_


def test_integer_weights_equal_repeated_rows() -> None:
    X, y = categorical_data()
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    for structure in ("nb", "tan"):
        weighted = BayesNetClassifier(structure).fit(X, y, sample_weight=weights)
        repeated = BayesNetClassifier(structure).fit(X.loc[X.index.repeat(weights)], np.repeat(y, weights))
        assert weighted.dag_ == repeated.dag_
        for a, b in zip(weighted.network_.tables, repeated.network_.tables, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)


def test_it_works_with_scikit_learns_tools() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    grid = GridSearchCV(
        BayesNetClassifier(structure=ChowLiuTAN(), parameters=MaximumLikelihood()),
        {"parameters__smoothing": [0.1, 1.0], "structure__root": [None, "petal width (cm)"]},
        cv=3,
    ).fit(X, y)
    assert grid.best_score_ > 0.9
    assert make_pipeline(StandardScaler(), BayesNetClassifier()).fit(X, y).score(X, y) > 0.9
    assert CalibratedClassifierCV(BayesNetClassifier(), cv=3).fit(X, y).score(X, y) > 0.9
    assert cross_val_score(BayesNetClassifier(), X, y, cv=3, scoring="neg_log_loss").mean() > -0.5
    fitted = BayesNetClassifier().fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), fitted.predict_proba(X))
    assert clone(fitted).get_params() == fitted.get_params()
    assert "BayesNetClassifier" in fitted._repr_html_()


def test_threads_do_not_change_the_answers() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = np.tile(X, (40, 1))
    y = np.tile(y, 40)
    one, two = (BayesNetClassifier(n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.network_ == two.network_
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"structure": "magic"}, "structure='magic' is not known"),
        ({"parameters": "magic"}, "parameters='magic' is not known"),
        ({"missing": "magic"}, "missing='magic' is not known"),
        ({"discretizer": "magic"}, "discretizer='magic' is not known"),
        ({"categorical_features": "magic"}, "categorical_features='magic'"),
        ({"categorical_features": ["nope"]}, "'nope', which is not there"),
        ({"categorical_features": [17]}, "holds 17, which is no column"),
        ({"categorical_features": [True]}, "has 1 booleans, but there are 4 columns"),
        ({"smoothing": -2.0}, "smoothing=-2.0"),
        ({"parameters": ConditionalLikelihood(), "missing": "em"}, "missing='em' belongs to parameters='ml'"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(arguments: dict[str, object], message: str) -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        BayesNetClassifier(**arguments).fit(X, y)


def test_structures_are_given_by_name_by_learner_or_as_a_graph() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    assert BayesNetClassifier("nb").fit(X, y).dag_ == BayesNetClassifier(NaiveBayes()).fit(X, y).dag_
    selective = Dag.from_edges([("target", "petal width (cm)")], names=["target", *X.columns])
    clf = BayesNetClassifier(selective).fit(X, y)
    shuffled = X.copy()
    shuffled["sepal length (cm)"] = shuffled["sepal length (cm)"].to_numpy()[::-1]
    np.testing.assert_allclose(clf.predict_proba(X), clf.predict_proba(shuffled), atol=1e-12)


def test_a_class_without_a_name_is_the_node_of_the_graph_that_is_no_feature(tmp_path) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    dag = Dag.naive(["kind", *X.columns])
    clf = BayesNetClassifier(dag).fit(X, y.to_numpy())
    assert clf.network_.schema.names[0] == "kind"
    clf.to_json(tmp_path / "kind.json")
    again = BayesNetClassifier.from_json(tmp_path / "kind.json").fit(X, y.tolist())
    assert again.dag_ == dag
    voting = VotingClassifier([("own", BayesNetClassifier(dag)), ("tan", BayesNetClassifier())], voting="soft")
    assert voting.fit(X, y).score(X, y) > 0.9
    with pytest.raises(ValueError, match=r"not in the names \['kind'\]; y, called 'target', must have the name of"):
        BayesNetClassifier(dag).fit(X, y)
    with pytest.raises(ValueError, match="y, called 'class', must have the name of the class in the graph"):
        BayesNetClassifier(dag).fit(X.iloc[:, 1:], y.to_numpy())


def test_the_class_may_have_parents() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    dag = Dag.from_edges(
        [("petal width (cm)", "target"), ("target", "petal length (cm)")], names=["target", *X.columns]
    )
    clf = BayesNetClassifier(dag).fit(X, y)
    assert clf.score(X, y) > 0.9
    holes = X.assign(**{"petal width (cm)": np.nan})
    assert clf.score(holes, y) > 0.9
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "discretizer",
    [
        KBinsDiscretizer(5, encode="ordinal", quantile_method="averaged_inverted_cdf"),
        KBinsDiscretizer(5, encode="onehot", quantile_method="averaged_inverted_cdf"),
        MDLPDiscretizer(),
        FunctionTransformer(np.round),
        None,
    ],
)
def test_any_discretiser_is_accepted_and_sees_no_missing_cell(discretizer: object) -> None:
    X, y = load_iris(return_X_y=True)
    X = X.copy()
    X[::7, 2] = np.nan
    clf = BayesNetClassifier(discretizer=discretizer).fit(X, y)
    assert clf.score(X, y) > 0.85


def test_kbins_codes_are_those_of_scikit_learn_at_the_edges_too() -> None:
    X, y = load_iris(return_X_y=True)
    bins = KBinsDiscretizer(6, encode="ordinal", strategy="uniform").fit(X)
    clf = BayesNetClassifier(discretizer=KBinsDiscretizer(6, encode="ordinal", strategy="uniform")).fit(X, y)
    edges = np.array(list(bins.bin_edges_)).T
    for points in (X, edges):
        assert np.array_equal(clf._rows(points).codes[1:].T, bins.transform(points))


def test_a_classifier_comes_back_from_a_network_file(tmp_path) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    clf = BayesNetClassifier().fit(X, y)
    clf.to_json(tmp_path / "model.json")
    again = BayesNetClassifier.from_json(tmp_path / "model.json")
    assert again.network_ == Network.from_json(tmp_path / "model.json")
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.predict(X).dtype == clf.predict(X).dtype
    with pytest.raises(ValueError, match="'petal width \\(cm\\)' was there at fit"):
        again.predict(X.drop(columns="petal width (cm)"))


def test_an_unfitted_classifier_says_so() -> None:
    from sklearn.exceptions import NotFittedError

    for clf in (BayesNetClassifier(), AODEClassifier()):
        with pytest.raises(NotFittedError):
            clf.predict([[1.0]])


def test_importing_and_fitting_naive_bayes_and_tan_never_loads_the_compiler() -> None:
    code = """
import sys
import marginbayes
heavy = [m for m in ("numba", "sklearn", "pandas", "scipy", "numpy", "matplotlib") if m in sys.modules]
assert not heavy, heavy
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True)
for structure in ("nb", "tan"):
    marginbayes.BayesNetClassifier(structure).fit(X, y).predict_proba(X)
assert "numba" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [BayesNetClassifier, AODEClassifier])
def test_no_prior_makes_a_class_possible_that_was_never_seen(kind: type) -> None:
    X, y = np.array([["a"], ["a"], ["b"], ["b"]]), np.array([0, 0, 1, 1])
    clf = kind(smoothing=0.0).partial_fit(X, y, classes=[0, 1, 2])
    assert clf.predict(X, prior=[0.3, 0.3, 0.4]).tolist() == y.tolist()
    assert (clf.predict_proba(X, prior=[0.3, 0.3, 0.4])[:, 2] == 0).all()


def test_class_weights_that_leave_no_row_are_refused_in_words() -> None:
    X, y = categorical_data()
    with pytest.raises(ValueError, match="class_weight leaves no row"):
        BayesNetClassifier(class_weight={0: 0, 1: 0, 2: 0}).fit(X, y)


@pytest.mark.parametrize("parameters", ["ml", "cl", "mm", "m3n", "mm-hybrid"])
def test_the_class_frequencies_of_the_training_rows_as_prior_change_nothing(parameters: str, tmp_path) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.1).astype(int)
    X = pd.DataFrame({f"f{i}": np.where(rng.random(400) < 0.7, y, 1 - y).astype(str) for i in range(4)})
    clf = BayesNetClassifier("nb", parameters, smoothing=1e-9 if parameters == "ml" else 1.0).fit(X, y)
    prior = [1 - y.mean(), y.mean()]
    np.testing.assert_allclose(clf.predict_proba(X, prior=prior), clf.predict_proba(X), atol=1e-9)
    clf.network_.to_json(tmp_path / "model.json")
    again = BayesNetClassifier.from_network(Network.from_json(tmp_path / "model.json"))
    np.testing.assert_allclose(again.predict_proba(X, prior=prior), clf.predict_proba(X), atol=1e-9)
    shifted = clf.predict_proba(X, prior=[0.5, 0.5])
    odds = np.log(clf.predict_proba(X)) @ [-1, 1] - np.log(prior) @ np.array([-1, 1])
    np.testing.assert_allclose(np.log(shifted) @ [-1, 1], odds, atol=1e-9)


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "boolean"])
def test_labels_of_nullable_types_keep_their_kind(dtype: str) -> None:
    X, y = categorical_data()
    clf = BayesNetClassifier("nb").fit(X, pd.Series(np.minimum(y, 1)).astype(dtype))
    assert clf.classes_.dtype.kind == {"Int64": "i", "UInt8": "u", "boolean": "b"}[dtype]
    missing = pd.Series(y).astype("Int64")
    missing[3] = pd.NA
    with pytest.raises(ValueError, match="Input y contains NaN"):
        BayesNetClassifier("nb").fit(X, missing)


def test_balanced_classes_are_those_of_the_rows_that_count() -> None:
    X, y = load_iris(return_X_y=True)
    weights = np.where((y == 0) & (np.arange(150) < 40), 0.0, 1.0)
    there = weights > 0
    ours = BayesNetClassifier("nb", class_weight="balanced").fit(X, y, sample_weight=weights)
    theirs = BayesNetClassifier("nb", class_weight="balanced").fit(X[there], y[there])
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))


def test_a_labelled_prior_is_read_by_its_labels() -> None:
    rng = np.random.default_rng(0)
    y = pd.Series(np.where(rng.random(300) < 0.8, "well", "ill"))
    X = pd.DataFrame({"a": rng.normal(size=300) + (y == "ill")})
    clf = BayesNetClassifier("nb").fit(X, y)
    shares = y.value_counts(normalize=True)
    assert shares.index[0] == "well"
    np.testing.assert_allclose(clf.predict_proba(X, prior=shares), clf.predict_proba(X, prior=shares.to_dict()))
    with pytest.raises(ValueError, match="unknown: \\[0, 1\\]"):
        clf.predict_proba(X, prior=pd.Series([0.2, 0.8]))


def test_labelled_costs_are_read_by_their_labels() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    clf = BayesNetClassifier("nb").fit(X, y)
    costs = np.array([[0.0, 1.0], [90.0, 0.0]])
    turned = pd.DataFrame(costs[::-1, ::-1], index=[1, 0], columns=[1, 0])
    assert (clf.predict(X, cost=costs) != clf.predict(X, cost=costs.T)).any()
    np.testing.assert_array_equal(clf.predict(X, cost=turned), clf.predict(X, cost=costs))
    with pytest.raises(ValueError, match="must be called as the classes, 0, 1, not 'a', 'b'"):
        clf.predict(X, cost=pd.DataFrame(costs, index=list("ab"), columns=list("ab")))


def test_named_structures_are_searched_for_the_tables_that_are_used() -> None:
    X, y = load_iris(return_X_y=True)
    for name, learner in (("exact-sm", ExactMargin("sm", smoothing=20.0)), ("tan-cl", Greedy("cl", smoothing=20.0))):
        named = BayesNetClassifier(name, smoothing=20.0).fit(X, y)
        given = BayesNetClassifier(learner, smoothing=20.0).fit(X, y)
        assert named.dag_ == given.dag_
        assert named.structure_result_.score == pytest.approx(given.structure_result_.score)
    assert BayesNetClassifier("tan-cr", n_jobs=2)._structure_learner().n_jobs == 2


def test_an_interrupt_is_warned_of() -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    X, y = load_iris(return_X_y=True)
    with pytest.warns(UserWarning, match="interrupted: the model is the best so far"):
        BayesNetClassifier(Greedy("cl", callback=stop)).fit(X, y)


def test_parameters_of_a_learner_with_a_short_name_can_be_searched() -> None:
    X, y = load_iris(return_X_y=True)
    found = GridSearchCV(BayesNetClassifier(), {"parameters__smoothing": [0.1, 1.0]}).fit(X, y)
    assert isinstance(found.best_estimator_.parameters, MaximumLikelihood)
    grid = {"structure": ["tan-cr"], "structure__k": [1, 2], "smoothing": [2.0]}
    found = GridSearchCV(BayesNetClassifier(), grid).fit(X, y)
    assert found.best_estimator_.structure.k == found.best_params_["structure__k"]
    assert found.best_estimator_.smoothing == 2.0
    with pytest.raises(ValueError, match="nothing"):
        BayesNetClassifier().set_params(structure__nothing=1)
    clf = BayesNetClassifier()
    with pytest.raises(ValueError, match="bogus"):
        clf.set_params(structure__root="a", parameters__bogus=1)
    assert (clf.structure, clf.parameters) == ("tan", "ml")


def test_parameters_set_in_one_call_reach_the_learner_that_a_short_name_stands_for() -> None:
    clf = BayesNetClassifier("tan-sm-search", "mm-combine").set_params(
        parameters__B=2.0, structure__k=2, smoothing=50.0, random_state=7, n_jobs=2
    )
    assert (clf.parameters.smoothing, clf.parameters.random_state) == (50.0, 7)
    assert (clf.structure.k, clf.structure.random_state, clf.structure.n_jobs) == (2, 7, 2)


def test_expectation_maximisation_can_be_asked_for_before_and_after_the_learner_is_set() -> None:
    X, y = categorical_data()
    X = X.mask(np.random.default_rng(1).random(X.shape) < 0.2)
    expected = BayesNetClassifier("nb", missing="em").fit(X, y).network_
    nested = {"parameters__max_iter": 200}
    for clf in (
        BayesNetClassifier("nb", missing="em").set_params(**nested),
        BayesNetClassifier("nb").set_params(**nested).set_params(missing="em"),
        BayesNetClassifier("nb", MaximumLikelihood(), missing="em"),
    ):
        assert clf.fit(X, y).network_ == expected
        clf.set_params(missing="available")
        assert clf.fit(X, y).network_ == BayesNetClassifier("nb").fit(X, y).network_


def test_a_model_of_an_array_takes_arrays_and_frames_after_a_file_as_before(tmp_path) -> None:
    X, y = load_iris(return_X_y=True)
    clf = BayesNetClassifier("nb").fit(X, y)
    again = BayesNetClassifier.from_network(Network.from_json(clf.network_.to_json()))
    AODEClassifier().fit(X, y).to_json(tmp_path / "aode.json")
    average = AODEClassifier.from_json(tmp_path / "aode.json")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))
        average.predict(X)
        # Names that an array has in the schema are names.
        turned = pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"])[["x3", "x1", "x0", "x2"]]
        assert np.array_equal(again.predict_proba(turned), clf.predict_proba(X))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert np.array_equal(again.predict(pd.DataFrame(X, columns=list("abcd"))), clf.predict(X))


def test_labels_keep_their_type_through_categories_and_files() -> None:
    X, y = categorical_data()
    flags = pd.Series(y == 1).astype("category")
    assert BayesNetClassifier("nb").fit(X, flags).classes_.dtype == bool
    large = np.where(y == 1, 2**63 + 5, 3).astype(np.uint64)
    clf = BayesNetClassifier("nb").fit(X, large)
    again = BayesNetClassifier.from_network(Network.from_json(clf.network_.to_json()))
    assert again.predict(X).tolist() == clf.predict(X).tolist()
    assert again.classes_.tolist() == [3, 2**63 + 5]


def test_a_frame_of_costs_is_read_by_its_labels_whatever_they_are() -> None:
    X, y = categorical_data()
    costs = np.array([[0.0, 1.0], [9.0, 0.0]])
    for labels in (y == 1, np.where(y == 1, "yes", "no")):
        clf = BayesNetClassifier("nb").fit(X, labels)
        expected = clf.predict(X, cost=costs)
        own = clf.classes_.tolist()
        turned = pd.DataFrame(costs, own, own).iloc[::-1, ::-1]
        assert np.array_equal(clf.predict(X, cost=turned), expected)
        without_index = pl.DataFrame(costs[::-1, ::-1], schema=[str(c) for c in own[::-1]])
        assert np.array_equal(clf.predict(X, cost=without_index), expected)
    with pytest.raises(ValueError, match="must be called as the classes, 'no', 'yes', not 'a', 'b'"):
        clf.predict(X, cost=pl.DataFrame(costs, schema=["a", "b"]))


def test_what_is_no_prior_or_cost_is_named_with_its_value() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    clf = BayesNetClassifier("nb").fit(X, y)
    for prior in ("uniform", ["a", "b"], 0.5):
        with pytest.raises(ValueError, match=f"prior must be 2 numbers .* not {re.escape(repr(prior))}"):
            clf.predict_proba(X, prior=prior)
    for cost in ("zero-one", [[0, "a"], [1, 0]], {0: {1: 2.0}}, [[0, 1], [1]]):
        with pytest.raises(ValueError, match=f"cost must be a 2 x 2 matrix .* not {re.escape(repr(cost))}"):
            clf.predict(X, cost=cost)
