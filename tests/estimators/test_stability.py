"""Edge strength against a bootstrap done by hand: rows repeated, classifiers fitted one after the other."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from marginbayes import BayesNetClassifier, Dag
from marginbayes.data import Rows, Schema
from marginbayes.estimators.stability import EdgeStrength, edge_strength
from marginbayes.parameters.base import ParameterLearner, ParameterResult
from marginbayes.structure import Greedy, OrderBased, Step


def table(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """b copies a most of the time, d is noise; the class is rare in one level."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.1, "rare", np.where(rng.random(n) < 0.5, "no", "yes"))
    a = np.where(rng.random(n) < 0.7, y, "yes")
    b = np.where(rng.random(n) < 0.8, a, "no")
    c = np.where(rng.random(n) < 0.5, b, "rare")
    d = rng.choice(["u", "v"], n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d}, dtype="category"), pd.Series(y, name="y")


def by_hand(X: pd.DataFrame, y: pd.Series, n_boot: int, seed: int, structure: Any) -> NDArray[np.float64]:
    names = [y.name, *X.columns]
    total = np.zeros((len(names), len(names)))
    for sequence in np.random.SeedSequence(seed).spawn(n_boot):
        rng, drawn = np.random.default_rng(sequence), []
        for label in np.unique(y):
            rows = np.flatnonzero(y == label)
            drawn += [np.repeat(rows, rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows))))]
        at = np.sort(np.concatenate(drawn))
        assert len(at) == len(y)
        assert (y.iloc[at].value_counts() == y.value_counts()).all()
        dag = BayesNetClassifier(structure).fit(X.iloc[at], y.iloc[at]).dag_
        for parent, child in dag.edges:
            total[names.index(parent), names.index(child)] += 1
    return total / n_boot


@pytest.mark.parametrize("structure", ["tan", Greedy("cl"), OrderBased("random", random_state=3)])
def test_it_is_the_share_of_resamples_with_the_edge(structure: Any) -> None:
    X, y = table()
    found = edge_strength(BayesNetClassifier(structure), X, y, n_boot=12, random_state=5)
    np.testing.assert_allclose(found.directed, by_hand(X, y, 12, 5, structure), atol=1e-12)
    assert found.names == ("y", "a", "b", "c", "d")
    assert found.n_boot == 12


def test_the_number_of_jobs_does_not_change_the_result() -> None:
    X, y = table()
    one, two = (edge_strength(BayesNetClassifier("tan"), X, y, 10, random_state=0, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.directed, two.directed)
    other = edge_strength(BayesNetClassifier("tan"), X, y, 10, random_state=1)
    assert (one.directed != other.directed).any()


def test_a_rare_class_is_in_every_resample() -> None:
    X, y = table(60)
    y[:] = ["one", *("yes", "no") * 29, "yes"]
    found = edge_strength(BayesNetClassifier("nb"), X, y, n_boot=15, random_state=0)
    assert (found.directed[0, 1:] == 1).all()
    assert (found.directed[1:] == 0).all()


def test_rows_of_weight_zero_are_as_if_absent() -> None:
    X, y = table()
    weights = np.ones(len(y))
    weights[:30] = 0
    some = edge_strength(BayesNetClassifier("tan"), X[30:], y[30:], 8, random_state=0)
    same = edge_strength(BayesNetClassifier("tan"), X, y, 8, random_state=0, sample_weight=weights)
    np.testing.assert_array_equal(some.directed, same.directed)
    scaled = edge_strength(BayesNetClassifier("tan"), X[30:], y[30:], 8, random_state=0, sample_weight=3.0)
    np.testing.assert_array_equal(some.directed, scaled.directed)


class Never(ParameterLearner):
    """Learns no parameters."""

    def learn(self, schema: Schema, dag: Dag, rows: Rows) -> ParameterResult:  # noqa: ARG002
        raise AssertionError("the tables are not needed")


def test_parameters_are_not_learned_and_the_estimator_stays_as_it_was() -> None:
    X, y = table()
    estimator = BayesNetClassifier("tan", Never())
    edge_strength(estimator, X, y, 3, random_state=0)
    assert not hasattr(estimator, "schema_")
    assert isinstance(estimator.parameters, Never)
    edge_strength(BayesNetClassifier("tan", missing="em"), X, y, 2, random_state=0)


def test_ctrl_c_ends_the_whole_bootstrap() -> None:
    def stop(_: Step) -> None:
        raise KeyboardInterrupt

    X, y = table()
    with pytest.raises(KeyboardInterrupt):
        edge_strength(BayesNetClassifier(Greedy("cl", callback=stop)), X, y, 3, random_state=0)


# -- reading it


def made() -> EdgeStrength:
    """y -> all; a - b mostly forward, b -> c, c -> a; d alone."""
    directed = np.zeros((5, 5))
    directed[0, 1:] = [1.0, 1.0, 0.9, 0.4]
    directed[1, 2], directed[2, 1] = 0.6, 0.3
    directed[2, 3], directed[3, 1] = 0.8, 0.7
    return EdgeStrength(("y", "a", "b", "c", "d"), directed, 10)


def test_an_edge_is_found_by_name() -> None:
    strength = made()
    assert strength["a", "b"] == 0.6
    assert strength["b", "a"] == 0.3
    assert strength.undirected[1, 2] == strength.undirected[2, 1] == pytest.approx(0.9)
    with pytest.raises(KeyError, match="no variable 'z'; there are 'y', 'a'"):
        strength["a", "z"]


def test_edges_come_strongest_first_and_the_frame_tells_direction() -> None:
    strength = made()
    assert strength.edges() == [("b", "c", 0.8), ("c", "a", 0.7), ("a", "b", 0.6), ("b", "a", 0.3)]
    assert strength.edges(features_only=False)[0] == ("y", "a", 1.0)
    frame = strength.to_frame()
    assert list(frame.columns) == ["parent", "child", "frequency", "strength", "direction"]
    assert frame["strength"].tolist() == pytest.approx([0.8, 0.7, 0.9, 0.9])
    assert frame["direction"].tolist() == pytest.approx([1.0, 1.0, 2 / 3, 1 / 3])
    assert len(EdgeStrength(("y", "a"), np.zeros((2, 2)), 3).to_frame()) == 0


def test_without_pandas_a_frame_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r'a frame needs pandas: pip install "marginbayes\[data\]"'):
        made().to_frame()


def test_the_consensus_takes_the_strongest_edges_first_and_no_cycle() -> None:
    edges = set(made().consensus(0.5).edges)
    # a -> b and b -> c are stronger than c -> a, which would close the cycle.
    assert edges == {("y", "a"), ("y", "b"), ("y", "c"), ("a", "b"), ("b", "c")}
    assert set(made().consensus(0.85).edges) == {("y", "a"), ("y", "b"), ("y", "c"), ("a", "b")}
    assert ("y", "d") in made().consensus(0.0).edges
    with pytest.raises(ValueError, match=r"threshold=1.0 must be at least 0 and below 1"):
        made().consensus(1.0)


def test_the_consensus_of_one_graph_is_that_graph() -> None:
    dag = Dag(("y", "a", "b", "c"), ((), (0,), (0, 1), (0, 2)))
    directed = np.zeros((4, 4))
    for child, parents in enumerate(dag.parents):
        directed[list(parents), child] = 1.0
    assert EdgeStrength(dag.names, directed, 1).consensus() == dag


# -- what is refused


def test_bad_input_is_refused_before_anything_is_drawn() -> None:
    X, y = table()
    with pytest.raises(ValueError, match="n_boot=0 must be a whole number, at least 1"):
        edge_strength(BayesNetClassifier(), X, y, n_boot=0)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        edge_strength(BayesNetClassifier(), X, y[:-1], n_boot=2)
    with pytest.raises(ValueError, match="Negative values in data passed to sample_weight"):
        edge_strength(BayesNetClassifier(), X, y, n_boot=2, sample_weight=-np.ones(len(y)))
    with pytest.raises(TypeError, match="edge_strength needs a BayesNetClassifier, not a str"):
        edge_strength("tan", X, y)  # type: ignore[arg-type]
