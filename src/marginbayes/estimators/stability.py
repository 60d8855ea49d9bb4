"""How often each edge comes back when the structure is learned again from resampled rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import column_or_1d

from marginbayes import checks
from marginbayes.estimators.bayesnet import BayesNetClassifier
from marginbayes.estimators.validation import read_training
from marginbayes.graph import Dag
from marginbayes.graph.walks import above

__all__ = ["EdgeStrength", "edge_strength"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EdgeStrength:
    """Share of the resamples in which each edge was learned (Friedman, Goldszmidt & Wyner 1999).

    Attributes
    ----------
    names : tuple of str
        The variables, the class first.
    directed : array of shape (n_variables, n_variables)
        ``directed[i, j]``: how often variable i was a parent of variable j. The first row says how often each feature
        was kept.
    n_boot : int
        Number of resamples.
    """

    names: tuple[str, ...]
    directed: Floats
    n_boot: int

    @property
    def undirected(self) -> Floats:
        """How often two variables were joined by an edge, whatever its direction: a symmetric matrix."""
        return np.asarray(self.directed + self.directed.T)

    def __getitem__(self, edge: tuple[str, str]) -> float:
        """How often the edge (parent, child) was there."""
        for name in edge:
            if name not in self.names:
                raise KeyError(f"no variable {name!r}; there are {', '.join(map(repr, self.names))}")
        parent, child = edge
        return float(self.directed[self.names.index(parent), self.names.index(child)])

    def edges(self, features_only: bool = True) -> list[tuple[str, str, float]]:
        """(parent, child, frequency) of every edge that occurred, the most frequent first."""
        ranked = np.argsort(-self.directed, axis=None, kind="stable")
        pairs = [divmod(int(at), len(self.names)) for at in ranked]
        found = [(i, j) for i, j in pairs if self.directed[i, j] > 0 and (i or not features_only)]
        return [(self.names[i], self.names[j], float(self.directed[i, j])) for i, j in found]

    def to_frame(self, features_only: bool = True) -> Any:
        """A pandas DataFrame with a row for each edge that occurred, the most frequent first.

        Columns: parent, child, frequency; strength, the frequency of the edge in either direction; direction, the share
        of this one in that.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError('a frame needs pandas: pip install "marginbayes[data]"') from error
        frame = pd.DataFrame(self.edges(features_only), columns=["parent", "child", "frequency"])
        frame["strength"] = [f + self[b, a] for a, b, f in frame.itertuples(index=False)]
        frame["direction"] = frame["frequency"] / frame["strength"]
        return frame

    def consensus(self, threshold: float = 0.5) -> Dag:
        """The graph of all pairs that are joined in more than this share of the resamples.

        Each edge has its more frequent direction (parent first in a tie: the smaller index). Edges are taken from the
        strongest on; one that would close a cycle is left out. The result may have more than k parents.
        """
        checks.number("threshold", threshold, lambda share: 0 <= share < 1, "at least 0 and below 1")
        strength = self.undirected
        parents: list[tuple[int, ...]] = [()] * len(self.names)
        for at in np.argsort(-np.triu(strength), axis=None, kind="stable"):
            a, b = divmod(int(at), len(self.names))
            if a >= b or strength[a, b] <= threshold:
                continue
            parent, child = (a, b) if self.directed[a, b] >= self.directed[b, a] else (b, a)
            if child not in above(parents, [parent]):
                parents[child] += (parent,)
        return Dag(self.names, tuple(tuple(sorted(p)) for p in parents))


def edge_strength(
    estimator: BayesNetClassifier,
    X: Any,
    y: Any,
    n_boot: int = 100,
    random_state: int | None = None,
    n_jobs: int | None = None,
    sample_weight: Any = None,
) -> EdgeStrength:
    """How often each edge is learned from resampled rows: how far the graph is to be believed.

    As many rows as there are of each class are drawn with replacement from that class, so no class ever vanishes, and
    everything that leads to the graph is done again: cut points, structure. The tables at the end are not needed, so
    they are counts whatever the estimator's `parameters` are; a structure learner that trains tables on the way still
    does. The result does not depend on `n_jobs`.

    Cost: that of learning the structure, `n_boot` times.

    Parameters
    ----------
    estimator : BayesNetClassifier
        Says how the structure is learned; it is copied, and need not be fitted.
    X : data frame or array of shape (n_samples, n_features)
        The rows to resample.
    y : array-like of shape (n_samples,)
        Their classes.
    n_boot : int, default=100
        Number of resamples.
    random_state : int or None, default=None
        Seed of the resamples; the learner's own is the estimator's affair.
    n_jobs : int or None, default=None
        Threads, as joblib counts them; ``joblib.parallel_config(backend="loky")`` makes them processes.
    sample_weight : array-like of shape (n_samples,), default=None
        A row that is drawn counts with its weight each time; one of weight zero is never drawn.

    Returns
    -------
    EdgeStrength
        The share of the resamples for every pair of variables.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> strength = edge_strength(BayesNetClassifier("tan"), X, y, n_boot=20, random_state=0)
    >>> strength["target", "petal width (cm)"]
    1.0
    """
    checks.whole("n_boot", n_boot, 1)
    checks.whole("random_state", random_state, none=True)
    checks.jobs("n_jobs", n_jobs)
    learner = _structure_only(estimator)
    read_training(learner, X, y, sample_weight)  # bad input is refused here, once
    labels = np.unique(column_or_1d(y), return_inverse=True)[1]
    weights = np.full(len(labels), 1.0 if sample_weight is None else sample_weight, np.float64)
    seeds = np.random.SeedSequence(random_state).spawn(n_boot)
    with warnings.catch_warnings():  # an interrupt ends it all
        warnings.filterwarnings("ignore", "interrupted", UserWarning)
        dags = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_learned)(learner, X, y, labels, weights, seed) for seed in seeds
        )
    return EdgeStrength(dags[0].names, np.mean([_matrix(dag) for dag in dags], axis=0), int(n_boot))


def _structure_only(estimator: BayesNetClassifier) -> BayesNetClassifier:
    """A copy whose tables cost nothing: the structure is learned before them and does not see them."""
    if not isinstance(estimator, BayesNetClassifier):
        raise TypeError(f"edge_strength needs a BayesNetClassifier, not a {type(estimator).__name__}")
    copy: BayesNetClassifier = clone(estimator)
    missing = "available" if copy.missing == "em" else copy.missing
    return copy.set_params(parameters="ml", missing=missing)


def _learned(
    learner: BayesNetClassifier,
    X: Any,
    y: Any,
    labels: NDArray[np.intp],
    weights: Floats,
    seed: np.random.SeedSequence,
) -> Dag:
    """The graph from one resample, given as weights."""
    fitted = clone(learner).fit(X, y, sample_weight=weights * _times_drawn(labels, weights, seed))
    if fitted.structure_result_.interrupted:
        raise KeyboardInterrupt
    dag: Dag = fitted.dag_
    return dag


def _times_drawn(labels: NDArray[np.intp], weights: Floats, seed: np.random.SeedSequence) -> Floats:
    """How often each row is drawn, within its class, with replacement."""
    rng, times = np.random.default_rng(seed), np.zeros(len(labels))
    for label in np.unique(labels):
        rows = np.flatnonzero((labels == label) & (weights > 0))
        if len(rows):
            times[rows] = rng.multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)))
    return times


def _matrix(dag: Dag) -> Floats:
    """[parent, child]: 1 where there is an edge."""
    found = np.zeros((len(dag.names), len(dag.names)))
    for child, parents in enumerate(dag.parents):
        found[list(parents), child] = 1.0
    return found
