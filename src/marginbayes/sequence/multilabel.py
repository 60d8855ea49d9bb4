"""MultiLabelClassifier: several correlated targets per row, a tree between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.estimators.nested import NamedLearners
from marginbayes.estimators.progress import warn_if_interrupted, watched
from marginbayes.estimators.validation import read_features
from marginbayes.estimators.weights import check_weights
from marginbayes.graph import Dag
from marginbayes.graph.tree import maximum_spanning_forest
from marginbayes.network import Network
from marginbayes.scores.information import conditional_mutual_information
from marginbayes.sequence.learners import WeightLearner, WeightResult, named_learner
from marginbayes.sequence.likeliest import likeliest_tree
from marginbayes.sequence.targets import Targets, as_targets, learn_schema, read_targets
from marginbayes.sequence.tree import TreeExamples, TreeModel
from marginbayes.solvers import Certificate

__all__ = ["MultiLabelClassifier"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

DECODINGS = ("marginal", "joint")


class MultiLabelClassifier(ClassifierMixin, NamedLearners):  # type: ignore[misc]
    """Predicts several correlated targets of each row: a tree over the targets, all features children of each target.

    Parameters
    ----------
    parameters : {"mm-hybrid", "m3n", "mm-convex", "cl", "ml"} or WeightLearner, default="mm-hybrid"
        As in `SequenceLabeler`: the learners are the same.
    tree : {"learned", "independent"} or list of pairs, default="learned"
        The tree of greatest mutual information between the targets; no edges; or edges (parent, child) between targets,
        by name or position.
    decoding : {"marginal", "joint"}, default="marginal"
        Predict for each target its most probable level, or the most probable combination.
    smoothing : float, default=1.0
        Added to every count (Laplace).
    discretizer : "mdlp", None or transformer, default="mdlp"
        What turns numbers into levels; the cuts for all targets are used together. A transformer that has no cut points
        is fitted with the first target.
    categorical_features : "from_dtype", or list of names, positions or booleans, default="from_dtype"
        Columns of numbers that are categories, as in `BayesNetClassifier`.
    n_jobs : int or None, default=None
        Threads that encode columns.
    verbose : int, default=0
        Progress of learners that take long.

    Attributes
    ----------
    classes_ : list of arrays, or an array where y has one dimension
        Levels of each target.
    schema_ : Schema
        The targets, then the features.
    model_ : TreeModel
        Which weights there are, and what they belong to.
    weights_ : array
        Logarithms of proper tables.
    parameter_result_ : WeightResult
        What the learner returned, before renormalisation.
    certificate_ : Certificate or None
        How far from the optimum the learner can be, where it proves that.

    Examples
    --------
    >>> X = [[0, 1], [0, 0], [1, 1], [1, 0]] * 5
    >>> Y = [[0, 0], [0, 0], [1, 1], [1, 1]] * 5
    >>> MultiLabelClassifier(parameters="ml").fit(X, Y).predict([[1, 0]])
    array([[1, 1]])
    """

    def __init__(
        self,
        parameters: str | WeightLearner = "mm-hybrid",
        *,
        tree: str | Sequence[tuple[Any, Any]] = "learned",
        decoding: str = "marginal",
        smoothing: float = 1.0,
        discretizer: Any = "mdlp",
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.parameters = parameters
        self.tree = tree
        self.decoding = decoding
        self.smoothing = smoothing
        self.discretizer = discretizer
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MultiLabelClassifier:
        """Learn tree and tables.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            NaN, None and NA are missing.
        y : array-like or data frame of shape (n_samples, n_targets) or (n_samples,)
            Levels of the targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.
        """
        learner = self._learner()
        checks.one_of("decoding", self.decoding, DECODINGS)
        checks.jobs("n_jobs", self.n_jobs)
        targets = read_targets(self, X, y, sample_weight)
        schema, codes = learn_schema(targets, self.discretizer, self.categorical_features, self.n_jobs)
        cards = schema.cardinalities
        n = len(targets.names)
        model = TreeModel(cards[:n], self._parents(targets), cards[n:])
        examples = TreeExamples(model, model.cells(codes), targets.labels.T, targets.weights)
        with watched(learner, self.verbose) as own:
            result = own.learn(examples)
        self.flat_ = targets.flat
        self.schema_, self.model_, self.parameter_result_ = schema, model, result
        self.classes_ = targets.classes[0] if targets.flat else list(targets.classes)
        self.weights_ = result.weights
        if not model.rows.are_proper(result.weights):
            found = likeliest_tree(examples, result.weights)
            self.weights_ = found.weights
            if found.interrupted:
                self.parameter_result_ = replace(result, status="interrupted")
        warn_if_interrupted(self.parameter_result_)
        return self

    def _learner(self) -> WeightLearner:
        return named_learner(self.parameters, self.smoothing)

    def _makers(self) -> Mapping[str, Callable[[], WeightLearner]]:
        return {"parameters": self._learner}

    def _parents(self, targets: Targets) -> tuple[int, ...]:
        n = len(targets.names)
        if isinstance(self.tree, str):
            if self.tree == "independent":
                return (-1,) * n
            if self.tree == "learned":
                return _learned_tree(targets)
            raise ValueError(f"tree={self.tree!r} is not known; say 'learned', 'independent', or give pairs of targets")
        parents = [-1] * n
        for above, below in self.tree:
            child = _position(below, targets.given)
            if parents[child] >= 0:
                raise ValueError(f"the target {targets.given[child]!r} has two parents; a tree allows one")
            parents[child] = _position(above, targets.given)
        _refuse_cycle(parents, targets.given)
        return tuple(parents)

    # -- answers

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of each row, one column for each target (one dimension where y had one)."""
        checks.one_of("decoding", self.decoding, DECODINGS)
        unary = self._unary(X)
        if self.decoding == "joint":
            codes, _ = self.model_.decode(self.weights_, unary)
        else:
            pairs, _ = self.model_.marginals(self.weights_, unary)
            codes = np.column_stack([pair.sum(axis=1).argmax(axis=1) for pair in pairs])
        if self.flat_:
            return np.asarray(self.classes_[codes[:, 0]])
        columns = [levels[codes[:, k]] for k, levels in enumerate(self.classes_)]
        if len({column.dtype.kind for column in columns}) > 1:
            columns = [column.astype(object) for column in columns]
        return np.column_stack(columns)

    def predict_proba(self, X: Any) -> Any:
        """P(level | features) of each target: a list of arrays (rows x levels); one array where y had one dimension."""
        unary = self._unary(X)
        pairs, _ = self.model_.marginals(self.weights_, unary)
        chances = [pair.sum(axis=1) for pair in pairs]
        chances = [p / p.sum(axis=1, keepdims=True) for p in chances]
        return chances[0] if self.flat_ else chances

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of `predict_proba`, also where that is too small for a number."""
        unary = self._unary(X)
        logs = self.model_.log_marginals(self.weights_, unary)
        return logs[0] if self.flat_ else logs

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows in which every target is predicted right."""
        predicted, given = self.predict(X), as_targets(y)
        if given.shape != predicted.shape:
            raise ValueError(f"y has the shape {given.shape}, but the labels of X have {predicted.shape}")
        right = np.equal(predicted, given)
        whole = right if right.ndim == 1 else np.all(right, axis=1)
        return float(np.average(whole, weights=check_weights(sample_weight, None, whole)))

    def _unary(self, X: Any) -> list[Floats]:
        """Score of every level of every target from the features alone."""
        check_is_fitted(self, "schema_")
        frame = read_features(self, X)
        n = len(self.model_.cardinalities)
        codes = np.array([v.encode(frame.column(i)) for i, v in enumerate(self.schema_.variables[n:])])
        cells = self.model_.cells(codes)
        return [np.asarray(cells @ own) for own in self.model_.tables(self.weights_)[1]]

    # -- what was learned

    @property
    def certificate_(self) -> Certificate | None:
        """How good the weights are, where the learner certifies it."""
        check_is_fitted(self, "schema_")
        result: WeightResult = self.parameter_result_
        return result.certificate

    @property
    def network_(self) -> Network:
        """The network: the targets, and for each of them copies of all features."""
        check_is_fitted(self, "schema_")
        return _network(self.model_, self.weights_, self.schema_)

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write the fitted classifier to a file, whole or not at all: all that predicts.

        Of what it was learned by, the name of the learner is kept, if `parameters` was a name, and nothing else.
        """
        from marginbayes.sequence.treefiles import write_multilabel

        check_is_fitted(self, "schema_")
        write_multilabel(self, path)

    @classmethod
    def from_json(cls, path: str | PathLike[str]) -> MultiLabelClassifier:
        """The fitted classifier of such a file; settings of learning that are not in it have their defaults."""
        from marginbayes.sequence.treefiles import read_multilabel

        return read_multilabel(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def _learned_tree(targets: Targets) -> tuple[int, ...]:
    """Parent of each target in the forest of greatest mutual information, away from the first target."""
    constant = np.zeros((1, targets.labels.shape[1]), np.int64)
    cards = (1, *(len(levels) for levels in targets.classes))
    codes = np.concatenate([constant, targets.labels]).astype(np.min_scalar_type(max(cards)))
    information = conditional_mutual_information(Rows(codes, cards, targets.weights))
    return tuple(maximum_spanning_forest(information))


def _position(target: Any, names: tuple[str, ...]) -> int:
    if isinstance(target, (int, np.integer)) and not isinstance(target, bool) and 0 <= target < len(names):
        return int(target)
    if target in names:
        return names.index(target)
    raise ValueError(f"the tree names {target!r}, which is no target; they are {', '.join(map(repr, names))}")


def _refuse_cycle(parents: list[int], names: tuple[str, ...]) -> None:
    for k in range(len(parents)):
        way = [k]
        while parents[way[-1]] >= 0 and len(way) <= len(parents):  # a longer way leads into a cycle further up
            way.append(parents[way[-1]])
            if way[-1] == k:
                shown = " -> ".join(repr(names[i]) for i in reversed(way))
                raise ValueError(f"the edges of the tree form a cycle: {shown}; leave one out")


def _network(model: TreeModel, weights: Floats, schema: Schema) -> Network:
    tables, cells = model.tables(weights)
    n = len(model.cardinalities)
    variables, parents, logs = list(schema.variables[:n]), [], []
    for k, parent in enumerate(model.parents):
        parents.append((parent,) if parent >= 0 else ())
        logs.append(tables[k] if parent >= 0 else tables[k][0])
    for k in range(n):
        for f, variable in enumerate(schema.variables[n:]):
            name = variable.name if n == 1 else f"{variable.name}[{schema.names[k]}]"
            variables.append(type(variable)(name, variable.levels, variable.cuts, variable.origin))
            parents.append((k,))
            logs.append(cells[k][model.first_cells[f] : model.first_cells[f + 1]].T)
    names = tuple(v.name for v in variables)
    return Network(Schema(tuple(variables)), Dag(names, tuple(parents)), tuple(logs))
