"""BayesNetClassifier: validate, encode, call the learners, store."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if

from marginbayes import checks
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.estimators.base import BaseClassifier
from marginbayes.estimators.explain import Explanation, explain
from marginbayes.estimators.nested import NamedLearners
from marginbayes.estimators.progress import warn_if_interrupted, watched
from marginbayes.estimators.proofs import write_certificates
from marginbayes.estimators.room import check_pairs, check_tables
from marginbayes.estimators.streaming import Stream, can_stream, check_batchwise, known_classes
from marginbayes.estimators.validation import read_training, set_feature_names
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.parameters import MaximumLikelihood, ParameterLearner, ParameterResult
from marginbayes.parameters.names import named_parameters
from marginbayes.solvers import Certificate
from marginbayes.structure import ChowLiuTAN, Fixed, StructureLearner, StructureResult, named_structure

__all__ = ["BayesNetClassifier"]

Floats = NDArray[np.float64]

MISSING = ("available", "em", "level")


class BayesNetClassifier(NamedLearners, BaseClassifier):
    """Bayesian network classifier for categorical, numeric and mixed data with missing cells.

    Parameters
    ----------
    structure : str, Dag or StructureLearner, default="tan"
        ``"nb"`` naive Bayes; ``"tan"`` the tree-augmented network by conditional mutual information; a name such as
        ``"tan-cr"`` or ``"2tree-omi-cr"`` for the discriminative learners (see
        `marginbayes.structure.named_structure`); a graph of your own; or a learner.
    parameters : str or ParameterLearner, default="ml"
        ``"ml"`` smoothed maximum likelihood; ``"cl"`` conditional likelihood; ``"mm"``, ``"mm-hybrid"``,
        ``"mm-convex"``, ``"m3n"`` or ``"mm-combine"`` for margins (see
        `marginbayes.parameters.named_parameters`); or a learner.
    smoothing : float, default=1.0
        Added to every count of maximum-likelihood tables (Laplace).
    discretizer : "mdlp", None or transformer, default="mdlp"
        What turns numbers into levels: the entropy / minimum description length method of Fayyad & Irani, nothing (each
        distinct number is a level), or a scikit-learn transformer such as ``KBinsDiscretizer``.
    categorical_features : "from_dtype", or list of names, positions or booleans, default="from_dtype"
        Columns of numbers that are categories. Strings, categories and booleans are categories in any case, and so is a
        column of at most two whole numbers.
    missing : {"available", "em", "level"}, default="available"
        Missing cells at fit: each table is estimated from the rows in which all of its variables are observed, or all
        tables by expectation maximisation, or a missing cell is a level of its own.
    class_weight : dict, "balanced" or None, default=None
        Weight of the rows of each class in graph and tables; where numbers are cut, rows count without it.
    n_jobs : int or None, default=None
        Threads, as joblib counts them.
    random_state : int or None, default=None
        Seed of the learners that short names stand for. Of these ``"mm-combine"``, structures with a random order
        (``"tan-ro-cr"``) and structures by local search (``"tan-sm-search"``) draw at random; others do where
        ``structure__selection`` or ``parameters__tune`` makes them deal rows into folds. A learner that is given as an
        object keeps its own `random_state`, None included.
    verbose : int, default=0
        Progress of learners that take long.

    Attributes
    ----------
    classes_ : array
        The class labels, with the type they came with.
    schema_ : Schema
        What each column became, and why; ``print(clf.schema_)``.
    network_ : Network
        The learned network: graph and tables.
    dag_ : Dag
        Its graph.
    structure_result_ : StructureResult
        What the structure learner returned.
    parameter_result_ : ParameterResult
        What the parameter learner returned.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = BayesNetClassifier(structure="tan").fit(X, y)
    >>> clf.predict(X.iloc[[0, 50, 100]])
    array([0, 1, 2])
    """

    def __init__(
        self,
        structure: str | Dag | StructureLearner = "tan",
        parameters: str | ParameterLearner = "ml",
        *,
        smoothing: float = 1.0,
        discretizer: Any = "mdlp",
        categorical_features: Any = "from_dtype",
        missing: str = "available",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.parameters = parameters
        self.smoothing = smoothing
        self.discretizer = discretizer
        self.categorical_features = categorical_features
        self.missing = missing
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BayesNetClassifier:
        """Learn structure and parameters.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            NaN, None and NA are missing.
        y : array-like of shape (n_samples,)
            Its name, if it has one, is that of the class. Without one the class is called ``"class"``, or as the one
            node of a given graph that is no feature.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row: 2 counts like the row twice.
        """
        structure, parameters = self._learners()
        nodes = structure.dag.names if isinstance(structure, Fixed) else ()
        data = read_training(self, X, y, sample_weight, self.class_weight, nodes=nodes)
        schema, rows = self._encode(data, missing_level=self.missing == "level")
        if not isinstance(parameters, MaximumLikelihood):
            schema = _with_class_shares(schema, rows)
        if structure.counts_pairs:
            check_pairs(schema)
        with watched(structure, self.verbose) as learner:
            found = learner.learn(schema, rows)
        self._stream: Stream | None = None
        check_tables(schema, found.dag)
        with watched(parameters, self.verbose) as learner:
            tables = learner.learn(schema, found.dag, rows)
        warn_if_interrupted(found, tables)
        return self._store(data.classes, schema, found, tables)

    @available_if(can_stream)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> BayesNetClassifier:
        """Learn from one more batch; the result equals that of `fit` on all batches together.

        Only for naive Bayes and TAN with smoothed maximum likelihood: their counts are sums. The first call fixes the
        cut points of numeric columns, so it should see typical data; new categories are added as they come. Weights of
        classes must be given as numbers, "balanced" would need all batches at once. What `fit` learned keeps no counts:
        it is forgotten, with a warning.

        Parameters
        ----------
        classes : array-like, default=None
            All class labels; needed in the first call if the first batch lacks some, and the same in every call.
        """
        structure, parameters = self._learners()
        check_batchwise(self.class_weight)
        stream = getattr(self, "_stream", None)
        if stream is None and hasattr(self, "schema_"):  # scikit-learn's checks do not let it be refused
            warnings.warn(
                "partial_fit forgets what this classifier has learned by fit or read from a file, which keeps no "
                "counts to go on from; begin a new one with partial_fit",
                UserWarning,
                stacklevel=2,
            )
        known = known_classes(stream, classes)
        data = read_training(self, X, y, sample_weight, self.class_weight, classes=known, reset=stream is None)
        if stream is None:
            stream = Stream.opened(self, data, known, with_pairs=isinstance(structure, ChowLiuTAN))
        else:
            stream = stream.continued(self, data)
        found = stream.structure(structure)
        self._stream = stream
        return self._store(stream.classes, stream.schema, found, stream.parameters(found.dag, parameters))

    def _learners(self) -> tuple[StructureLearner, ParameterLearner]:
        checks.one_of("missing", self.missing, MISSING)
        checks.not_negative("smoothing", self.smoothing)
        checks.jobs("n_jobs", self.n_jobs)
        checks.whole("random_state", self.random_state, none=True)
        parameters = self._parameter_learner()
        if self.missing == "em":
            if not isinstance(parameters, MaximumLikelihood):
                raise ValueError(
                    f"missing='em' belongs to parameters='ml'; parameters={self.parameters!r} has no such step"
                )
            parameters = clone(parameters).set_params(missing="em")
        return self._structure_learner(), parameters

    def _structure_learner(self) -> StructureLearner:
        if isinstance(self.structure, StructureLearner):
            return self.structure
        if isinstance(self.structure, Dag):
            return Fixed(self.structure)
        return named_structure(self.structure, self.random_state, self.smoothing, self.n_jobs)

    def _parameter_learner(self) -> ParameterLearner:
        if isinstance(self.parameters, ParameterLearner):
            return self.parameters
        return named_parameters(self.parameters, self.smoothing, self.n_jobs, self.random_state)

    def _makers(self) -> Mapping[str, Callable[[], Any]]:
        return {"structure": self._structure_learner, "parameters": self._parameter_learner}

    def _store(
        self, classes: NDArray[Any], schema: Schema, structure: StructureResult, parameters: ParameterResult
    ) -> BayesNetClassifier:
        self.classes_ = classes
        self.schema_ = schema
        self.structure_result_ = structure
        self.parameter_result_ = parameters
        return self

    # -- what was learned

    @property
    def network_(self) -> Network:
        """The fitted network."""
        self._fitted()
        return self.parameter_result_.network

    @property
    def dag_(self) -> Dag:
        """The fitted graph."""
        return self.network_.dag

    @classmethod
    def from_network(cls, network: Network) -> BayesNetClassifier:
        """A fitted classifier around a network, for instance one read from a file; its first variable is the class."""
        classifier = cls(structure=network.dag)
        classes = network.schema.target.labels
        set_feature_names(classifier, network.schema.names[1:])
        return classifier._store(classes, network.schema, StructureResult(network.dag), ParameterResult(network))

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write the fitted network to a JSON file, bit-exact; how it was learned is not kept."""
        self._fitted().network_.to_json(path)

    @classmethod
    def from_json(cls, path: str | PathLike[str]) -> BayesNetClassifier:
        """A fitted classifier from such a file; see `from_network`."""
        return cls.from_network(Network.from_json(path))

    def explain(self, X: Any, *, target: Any = None, against: Any = None) -> Explanation:
        """Weight of evidence of each feature: an exact additive account of the log-odds of every row.

        The log-odds of `target` against `against` given a row are the prior log-odds plus one number for each feature:
        how much that feature, given the features above it in the graph, speaks for the one or the other. In naive Bayes
        the order does not matter; in other graphs it is a topological order. A missing feature weighs nothing.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            The rows to explain.
        target : class label, default=None
            By default the class predicted for the row (with two classes: the second one).
        against : class label, default=None
            By default the most probable other class.
        """
        return explain(self.network_, self._rows(X), self.classes_, target, against)

    def save_certificates(self, path: str | PathLike[str]) -> dict[Path, Certificate]:
        """Write the proofs of structure and parameters for `marginbayes verify` and `marginbayes.verification`.

        Where there are both, that of the parameters goes to a file of its own whose name ends in ``-parameters``.

        Returns
        -------
        dict
            The files and what they hold.
        """
        return write_certificates(self._fitted(), path)

    def _log_joint(self, rows: Rows) -> Floats:
        return self.network_.log_joint(rows)

    def _class_prior(self) -> Floats:
        """What the answers take for granted: for learned parameters how often a class was among the training rows.

        Their networks say nothing of it: among all that answer alike they are one whose rows are likely.
        """
        target = self.network_.schema.target
        return self.network_.query(target.name) if target.shares is None else np.array(target.shares)


def _with_class_shares(schema: Schema, rows: Rows) -> Schema:
    counts = np.bincount(rows.codes[0], rows.weights, schema.target.cardinality)
    target = replace(schema.target, shares=tuple((counts / counts.sum()).tolist()))
    return Schema((target, *schema.features))
