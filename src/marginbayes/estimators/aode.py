"""AODEClassifier: averaged one-dependence estimators, the strong cheap baseline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes import checks
from marginbayes.data.rows import Block, Rows
from marginbayes.data.schema import Schema
from marginbayes.estimators.base import BaseClassifier
from marginbayes.estimators.room import check_all_pairs
from marginbayes.estimators.streaming import NOTHING_YET, Counts, Stream, check_batchwise, known_classes
from marginbayes.estimators.validation import read_training

__all__ = ["AODEClassifier"]

Floats = NDArray[np.float64]


class AODEClassifier(BaseClassifier):
    """Averaged one-dependence estimators (Webb, Boughton & Wang 2005).

    The mean of all networks in which one feature, besides the class, is the parent of all others. Nothing is searched:
    fitting counts pairs of levels once. A missing feature is left out as a child and as a parent; a row in which no
    feature may be a parent is answered by naive Bayes.

    Parameters
    ----------
    frequency_limit : float, default=1
        A level is a parent only if at least this many training rows (this much weight) have it.
    smoothing : float, default=1.0
        Added to every count (Laplace).
    discretizer : "mdlp", None or transformer, default="mdlp"
        As in `BayesNetClassifier`.
    categorical_features : "from_dtype", or list of names, positions or booleans, default="from_dtype"
        As in `BayesNetClassifier`.
    class_weight : dict, "balanced" or None, default=None
        As in `BayesNetClassifier`.
    n_jobs : int or None, default=None
        As in `BayesNetClassifier`.

    Attributes
    ----------
    classes_ : array
        The class labels, with the type they came with.
    schema_ : Schema
        What each column became, and why.

    Notes
    -----
    Memory is the square of the number of levels of all features, times the number of classes.
    """

    def __init__(
        self,
        frequency_limit: float = 1,
        *,
        smoothing: float = 1.0,
        discretizer: Any = "mdlp",
        categorical_features: Any = "from_dtype",
        class_weight: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.frequency_limit = frequency_limit
        self.smoothing = smoothing
        self.discretizer = discretizer
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AODEClassifier:
        """Count all pairs of levels in each class; see `BayesNetClassifier.fit` for the arguments."""
        self._check()
        data = read_training(self, X, y, sample_weight, self.class_weight)
        schema, rows = self._encode(data, missing_level=False)
        check_all_pairs(schema)
        return self._store(Stream(data.classes, schema, Counts.of(rows, with_pairs=True)))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> AODEClassifier:
        """Count one more batch, also after `fit`; see `BayesNetClassifier.partial_fit`."""
        self._check()
        check_batchwise(self.class_weight)
        stream: Stream | None = getattr(self, "_stream", None)
        known = known_classes(stream, classes)
        data = read_training(self, X, y, sample_weight, self.class_weight, classes=known, reset=stream is None)
        if stream is None:
            return self._store(Stream.opened(self, data, known, with_pairs=True))
        return self._store(stream.continued(self, data))

    def _check(self) -> None:
        checks.not_negative("smoothing", self.smoothing)
        checks.not_negative("frequency_limit", self.frequency_limit, infinite=True)
        checks.jobs("n_jobs", self.n_jobs)

    def _store(self, stream: Stream) -> AODEClassifier:
        self._stream: Stream = stream
        self.classes_ = stream.classes
        self.schema_ = stream.schema
        self._tables = _Tables(stream.schema, stream.counts, self.smoothing, self.frequency_limit)
        return self

    def _log_joint(self, rows: Rows) -> Floats:
        return np.concatenate(rows.map(self._tables.log_joint))

    def _class_prior(self) -> Floats:
        return np.exp(self._tables.prior)

    # -- files

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write the fitted classifier to a JSON file, bit-exact."""
        from marginbayes.estimators.files import write_aode

        write_aode(self, path)

    @classmethod
    def from_json(cls, path: str | PathLike[str]) -> AODEClassifier:
        """A fitted classifier from such a file."""
        from marginbayes.estimators.files import read_aode

        return read_aode(path)


@dataclass(frozen=True)
class _Tables:
    """Log tables made of counts; the levels of all features are numbered behind each other."""

    schema: Schema
    counts: Counts
    smoothing: float
    limit: float

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *self.schema.cardinalities[1:-1]], dtype=np.int64)

    @cached_property
    def prior(self) -> Floats:
        counts = self.counts.classes + self.smoothing
        return np.asarray(_log(counts) - _log(counts.sum()))

    @cached_property
    def single(self) -> Floats:
        """log P(level | class), class by level."""
        counts = self.counts.single
        return _conditional(counts, np.add.reduceat(counts, self.starts, axis=1), self.smoothing, self.schema)

    @cached_property
    def base(self) -> Floats:
        """log P(class, level), level by class."""
        counts, cards = self.counts.single, np.array(self.schema.cardinalities[1:])
        seen = np.add.reduceat(counts, self.starts, axis=1).sum(axis=0)
        total = np.repeat(seen + self.smoothing * len(self.counts.classes) * cards, cards)
        return np.ascontiguousarray((_log(counts + self.smoothing) - _log(total)).T)

    @cached_property
    def pair(self) -> Floats:
        """log P(level m | class, level l), indexed [l, m, class]."""
        pairs = self.counts.pairs
        assert pairs is not None
        tables = [_conditional(p, np.add.reduceat(p, self.starts, axis=1), self.smoothing, self.schema) for p in pairs]
        return np.ascontiguousarray(np.stack(tables, axis=-1))

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Levels that may be a parent: seen often enough, and not the stand-in of a column without any value."""
        real = np.repeat([v.levels != NOTHING_YET for v in self.schema.features], self.schema.cardinalities[1:])
        return np.asarray(real & (self.counts.single.sum(axis=0) >= self.limit))

    def log_joint(self, block: Block) -> Floats:
        from marginbayes.kernels.aode import average_joint

        cards = np.array(self.schema.cardinalities[1:], np.int64)
        rows = np.ascontiguousarray(block.codes[1:].T, dtype=np.int64)
        joint, served = average_joint(rows, cards, self.starts, self.allowed, self.base, self.pair)
        if not served.all():
            joint[~served] = self._naive(rows[~served], cards)
        return np.asarray(joint)

    def _naive(self, rows: NDArray[np.int64], cards: NDArray[np.int64]) -> Floats:
        joint = np.tile(self.prior, (len(rows), 1))
        for column, card, start in zip(rows.T, cards, self.starts, strict=True):
            present = column < card
            joint[present] += self.single.T[start + column[present]]
        return joint


def _conditional(counts: Floats, totals: Floats, smoothing: float, schema: Schema) -> Floats:
    """Log of the smoothed shares of each feature's levels (last axis); a row never seen is uniform."""
    cards = np.array(schema.cardinalities[1:])
    totals = np.repeat(totals + smoothing * cards, cards, axis=1)
    uniform = -np.log(np.repeat(cards, cards).astype(float))
    logs = _log(counts + smoothing) - _log(np.maximum(totals, 1e-300))
    return np.asarray(np.where(totals > 0, logs, uniform))


def _log(values: Any) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))
