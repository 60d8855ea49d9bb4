"""SequenceLabeler: validate, arrange rows as chains, encode, call the learner, store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from marginbayes import checks
from marginbayes.data.encode import Encoder, categorical_mask
from marginbayes.data.frame import Frame, is_frame, read_frame
from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema, Variable
from marginbayes.estimators.base import warn_of_columns
from marginbayes.estimators.nested import NamedLearners
from marginbayes.estimators.progress import warn_if_interrupted, watched
from marginbayes.estimators.validation import Training, check_labels, names_at_fit, read_features, read_training
from marginbayes.estimators.weights import check_weights
from marginbayes.network import Network
from marginbayes.sequence.ids import Chains, chains_of, id_column, separate_ids
from marginbayes.sequence.learners import WeightLearner, WeightResult, named_learner
from marginbayes.sequence.likeliest import likeliest_chain
from marginbayes.sequence.model import Cells, ChainExamples, ChainModel
from marginbayes.sequence.unroll import unroll
from marginbayes.solvers import Certificate

__all__ = ["SequenceLabeler"]

Floats = NDArray[np.float64]

DECODINGS = ("viterbi", "marginal")


class SequenceLabeler(ClassifierMixin, NamedLearners):  # type: ignore[misc]
    """Labels sequences, such as the residues of proteins, by a hidden-Markov-shaped Bayesian network.

    Parameters
    ----------
    window : int, default=1
        Odd number of positions whose observations are children of a label: 7 takes those up to three before and after.
    order : {1, 2}, default=1
        How many labels before it a label depends on.
    parameters : {"mm-hybrid", "m3n", "mm-convex", "cl", "ml"} or WeightLearner, default="mm-hybrid"
        Likelihood + margin, the maximum-margin Markov network, the margin problem as published (for study),
        conditional likelihood (a conditional random field), or maximum likelihood.
    sequence : str or int, default=None
        The column of X that says which sequence a row belongs to; its name, or its position. The rows of a sequence
        keep their order in the table, and need not be neighbours. Without it, and without ids given to `fit`, every
        row is a sequence of its own.
    decoding : {"viterbi", "marginal"}, default="viterbi"
        Predict the most probable labelling of the whole sequence, or at each position the most probable label.
    smoothing : float, default=1.0
        Added to every count (Laplace).
    discretizer : "mdlp", None or transformer, default="mdlp"
        What turns numbers into levels, as in `BayesNetClassifier`.
    categorical_features : "from_dtype", or list of names, positions or booleans, default="from_dtype"
        Columns of numbers that are categories, as in `BayesNetClassifier`.
    n_jobs : int or None, default=None
        Threads that encode columns.
    verbose : int, default=0
        Progress of learners that take long.

    Attributes
    ----------
    classes_ : array
        The labels, with the type they came with.
    schema_ : Schema
        What each column became.
    model_ : ChainModel
        Which weights there are, and what they belong to.
    weights_ : array
        Logarithms of the tables, proper: one row for the first label, one for each label with all next labels and the
        end, one for each child and label.
    parameter_result_ : WeightResult
        What the learner returned, before renormalisation.
    certificate_ : Certificate or None
        How far from the optimum the learner can be, where it proves that.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1, 0], [1, 0], [1, 1], [2, 1], [2, 1], [2, 0]])
    >>> y = ["a", "a", "b", "b", "b", "a"]
    >>> labeler = SequenceLabeler(sequence=0, parameters="ml").fit(X, y)
    >>> labeler.predict([[7, 1], [7, 1], [7, 0]]).tolist()
    ['b', 'b', 'a']
    """

    def __init__(
        self,
        window: int = 1,
        order: int = 1,
        parameters: str | WeightLearner = "mm-hybrid",
        *,
        sequence: str | int | None = None,
        decoding: str = "viterbi",
        smoothing: float = 1.0,
        discretizer: Any = "mdlp",
        categorical_features: Any = "from_dtype",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.window = window
        self.order = order
        self.parameters = parameters
        self.sequence = sequence
        self.decoding = decoding
        self.smoothing = smoothing
        self.discretizer = discretizer
        self.categorical_features = categorical_features
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, sequence: Any = None) -> SequenceLabeler:
        """Learn the tables.

        Parameters
        ----------
        X : data frame or array of shape (n_samples, n_features)
            NaN, None and NA are missing.
        y : array-like of shape (n_samples,)
            Label of each row.
        sample_weight : array-like of shape (n_samples,), default=None
            Equal for all rows of a sequence.
        sequence : array-like of shape (n_samples,), default=None
            Which sequence each row belongs to; better name a column in the constructor, which `predict` finds too.
        """
        learner = self._learner()
        self._check(sequence)
        self._check_whole(X, sequence, sample_weight)
        data = read_training(self, X, y, sample_weight)
        frame, ids = separate_ids(data.frame, self.sequence)
        chains = chains_of(_kept(sequence, sample_weight) if ids is None else ids, frame.n_rows)
        schema, rows = self._encode(data, frame)
        model = ChainModel(len(data.classes), schema.cardinalities[1:], self.window, self.order)
        cells = model.cells(rows.codes[1:][:, chains.order], chains.offsets)
        weights = _chain_weights(data.weights, chains)
        examples = ChainExamples(model, cells, chains.offsets, data.labels[chains.order], weights)
        self.ids_given_ = sequence is not None
        with watched(learner, self.verbose) as own:
            result = _with_rows(own.learn(examples), chains)
        self._store(data.classes, schema, model, result, examples)
        warn_if_interrupted(self.parameter_result_)
        return self

    def _learner(self) -> WeightLearner:
        return named_learner(self.parameters, self.smoothing)

    def _makers(self) -> Mapping[str, Callable[[], WeightLearner]]:
        return {"parameters": self._learner}

    def _check(self, sequence: Any) -> None:
        checks.one_of("decoding", self.decoding, DECODINGS)
        checks.jobs("n_jobs", self.n_jobs)
        if sequence is not None and self.sequence is not None:
            raise ValueError(f"the sequence ids are in the column {self.sequence!r}; do not give others to fit")

    def _check_whole(self, X: Any, sequence: Any, sample_weight: Any) -> None:
        """Refuse a weight of zero for some rows of a sequence: without them, others would become neighbours."""
        if sample_weight is None or np.isscalar(sample_weight) or (sequence is None and self.sequence is None):
            return
        frame = read_features(self, X, reset=True)
        weights = check_weights(sample_weight, None, np.empty(frame.n_rows))
        ids = sequence if self.sequence is None else separate_ids(frame, self.sequence)[1]
        _chain_weights(weights, chains_of(ids, frame.n_rows))

    def _encode(self, data: Training, frame: Frame) -> tuple[Schema, Rows]:
        mask = categorical_mask(self.categorical_features, data.frame.names)
        at = id_column(self.sequence, data.frame.names)
        named = mask if at is None else np.delete(mask, at)
        encoder = Encoder(
            labels=data.labels,
            n_classes=len(data.classes),
            weights=data.weights,
            categorical=named,
            discretizer=self.discretizer,
            n_jobs=self.n_jobs,
        )
        schema, rows = encoder.learn(Variable(data.target, tuple(data.classes.tolist()), origin="class"), frame)
        warn_of_columns(schema.features, rows.codes[1:], frame, named)
        return schema, rows

    def _store(
        self, classes: NDArray[Any], schema: Schema, model: ChainModel, result: WeightResult, examples: ChainExamples
    ) -> None:
        self.classes_ = classes
        self.schema_ = schema
        self.model_ = model
        self.parameter_result_ = result
        self.weights_ = result.weights
        if not model.rows.are_proper(result.weights):
            found = likeliest_chain(examples, result.weights, _mean_length(examples))
            self.weights_ = found.weights
            if found.interrupted:
                self.parameter_result_ = replace(result, status="interrupted")

    # -- answers

    def predict(self, X: Any, sequence: Any = None) -> NDArray[Any]:
        """Label of each row: those of the best labelling of its sequence, or the most probable one by itself."""
        checks.one_of("decoding", self.decoding, DECODINGS)
        if self.decoding == "marginal":
            best = self.predict_proba(X, sequence=sequence).argmax(axis=1)
            return np.asarray(self.classes_[best])
        chains, cells = self._read(X, sequence)
        labels, _ = self.model_.decode(self.weights_, cells, chains.offsets)
        return np.asarray(self.classes_[chains.back(labels)])

    def predict_proba(self, X: Any, sequence: Any = None) -> Floats:
        """P(label | observations of the whole sequence) for each row, columns in the order of `classes_`."""
        chains, cells = self._read(X, sequence)
        node, _ = self.model_.marginals(self.weights_, cells, chains.offsets)
        return chains.back(node / node.sum(axis=1, keepdims=True))

    def predict_log_proba(self, X: Any, sequence: Any = None) -> Floats:
        """Logarithms of `predict_proba`, also where that is too small for a number."""
        chains, cells = self._read(X, sequence)
        return chains.back(self.model_.log_marginals(self.weights_, cells, chains.offsets))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sequence: Any = None) -> float:
        """Share of the rows whose label is predicted right."""
        truth = check_labels(y, warn=False)
        return float(accuracy_score(truth, self.predict(X, sequence=sequence), sample_weight=sample_weight))

    def log_likelihood(self, X: Any, sequence: Any = None) -> Floats:
        """log P(observations and length) of each sequence, in the order of the sorted ids.

        Children of several labels (a window) are taken as different observations.
        """
        chains, cells = self._read(X, sequence)
        return self.model_.marginals(self.weights_, cells, chains.offsets)[1]

    def sequence_ids(self, X: Any, sequence: Any = None) -> NDArray[np.int64]:
        """Number of the sequence of each row, counted in the order of the sorted ids; usable as `groups`."""
        return self._chains(X, sequence)[0].chain_of_row

    def _chains(self, X: Any, sequence: Any) -> tuple[Chains, Frame]:
        check_is_fitted(self, "schema_")
        if sequence is not None and self.sequence is not None:
            raise ValueError(f"the sequence ids are in the column {self.sequence!r}; do not give others")
        if sequence is None and self.sequence is None and self.ids_given_:
            raise ValueError(
                "fit was given sequence ids; give them here too, or name their column in the constructor: "
                "SequenceLabeler(sequence='column')"
            )
        self._check_ids_there(X)
        frame, ids = separate_ids(read_features(self, X), self.sequence)
        return chains_of(sequence if ids is None else ids, frame.n_rows), frame

    def _check_ids_there(self, X: Any) -> None:
        """Refuse a table without the column of ids, which unlike others cannot be added with empty cells."""
        names = names_at_fit(self)
        if self.sequence is None or names is None or not is_frame(X):
            return
        column = self.sequence if isinstance(self.sequence, str) else names[self.sequence]
        if column not in read_frame(X).names:
            raise ValueError(f"the column {column!r} of sequence ids is missing; add it, with an id in every row")

    def _read(self, X: Any, sequence: Any) -> tuple[Chains, Cells]:
        chains, frame = self._chains(X, sequence)
        codes = self.schema_.encode(frame, self.n_jobs).codes
        return chains, self.model_.cells(codes[1:][:, chains.order], chains.offsets)

    # -- what was learned

    @property
    def certificate_(self) -> Certificate | None:
        """How good the weights are, where the learner certifies it."""
        check_is_fitted(self, "schema_")
        return self.parameter_result_.certificate

    @property
    def network_(self) -> Network:
        """The network of two slices; the tables of all further ones are those of the second."""
        return self.to_network(2)

    def to_network(self, length: int) -> Network:
        """Ordinary Bayesian network of so many slices; see `marginbayes.sequence.unroll`."""
        check_is_fitted(self, "schema_")
        return unroll(self.model_, self.weights_, self.schema_, length)

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write the fitted labeler to a file, whole or not at all: all that labels sequences.

        Of what it was learned by, the name of the learner is kept, if `parameters` was a name, and nothing else.
        """
        from marginbayes.sequence.files import write_labeler

        check_is_fitted(self, "schema_")
        write_labeler(self, path)

    @classmethod
    def from_json(cls, path: str | PathLike[str]) -> SequenceLabeler:
        """The fitted labeler of such a file; settings of learning that are not in it have their defaults."""
        from marginbayes.sequence.files import read_labeler

        return read_labeler(path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags


def _with_rows(result: WeightResult, chains: Chains) -> WeightResult:
    """The result, its certificate saying which rows of the table are one sequence."""
    certificate = result.certificate
    if certificate is None:
        return result
    evidence = {**certificate.evidence, "chain_of_row": chains.chain_of_row}
    return replace(result, certificate=replace(certificate, evidence=evidence))


def _mean_length(examples: ChainExamples) -> float:
    """Mean length of the sequences, and a little more: one more position in one of them, be it of mean weight.

    So sequences of one row leave a way on to a second.
    """
    lengths, weights = np.diff(examples.offsets), examples.weights
    return float((lengths @ weights + weights.mean()) / weights.sum())


def _kept(sequence: Any, sample_weight: Any) -> Any:
    """The ids of the rows that count: those of weight zero were dropped."""
    if sequence is None or sample_weight is None or np.isscalar(sample_weight):
        return sequence
    return np.asarray(sequence)[np.asarray(sample_weight) != 0]


def _chain_weights(weights: Floats | None, chains: Chains) -> Floats | None:
    """The one weight of each sequence."""
    if weights is None:
        return None
    arranged = weights[chains.order]
    first = arranged[chains.offsets[:-1]]
    differs = arranged != np.repeat(first, np.diff(chains.offsets))
    if differs.any():
        row = int(chains.order[np.argmax(differs)])
        raise ValueError(
            f"row {row} (from 0) has another weight than the first of its sequence; give each sequence one weight"
        )
    return first
