"""Learning batch by batch: counts are sums, and naive Bayes, TAN and AODE are functions of counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.counts import family_counts, pairs_by_class
from marginbayes.data.frame import Column, NumericColumn, missing_cells, natural_order
from marginbayes.data.rows import Rows, code_type
from marginbayes.data.schema import Schema, Variable, factorise_numbers
from marginbayes.estimators.room import check_all_pairs
from marginbayes.estimators.validation import Training
from marginbayes.graph import Dag
from marginbayes.parameters import MaximumLikelihood, ParameterLearner, ParameterResult
from marginbayes.scores.information import information_of_pairs
from marginbayes.structure import ChowLiuTAN, NaiveBayes, StructureLearner, StructureResult

if TYPE_CHECKING:
    from marginbayes.estimators.base import BaseClassifier

__all__ = ["NOTHING_YET", "Counts", "Stream", "can_stream", "check_batchwise", "known_classes"]

Floats = NDArray[np.float64]

# Levels of a column that had no value in any batch.
NOTHING_YET = (None,)


@dataclass(frozen=True)
class Counts:
    """Counts of a batch: the classes, the levels in each class, and (for TAN and AODE) pairs of levels in each class.

    `single[c, l]` and `pairs[c, l, m]` number the levels of all features behind each other.
    """

    classes: Floats
    single: Floats
    pairs: Floats | None

    @classmethod
    def of(cls, rows: Rows, with_pairs: bool) -> Counts:
        """Counts of encoded rows."""
        features = range(1, len(rows.cardinalities))
        classes, *tables = family_counts(rows, [(0,), *((0, i) for i in features)])
        single = np.concatenate(tables, axis=1).astype(np.float64)
        pairs = np.stack([p.astype(np.float64) for p in pairs_by_class(rows)]) if with_pairs else None
        return cls(classes.astype(np.float64), single, pairs)

    def __add__(self, other: Counts) -> Counts:
        pairs = None if self.pairs is None or other.pairs is None else self.pairs + other.pairs
        return Counts(self.classes + other.classes, self.single + other.single, pairs)

    def spread(self, positions: NDArray[np.intp], size: int) -> Counts:
        """The same counts for a schema that has grown: level l is at `positions[l]` among `size`; at -1 it is gone."""
        kept = np.flatnonzero(positions >= 0)
        to = positions[kept]
        single = np.zeros((len(self.classes), size))
        single[:, to] = self.single[:, kept]
        if self.pairs is None:
            return Counts(self.classes, single, None)
        pairs = np.zeros((len(self.classes), size, size))
        pairs[:, to[:, None], to] = self.pairs[:, kept[:, None], kept]
        return Counts(self.classes, single, pairs)

    def table(self, schema: Schema, family: tuple[int, ...]) -> Floats:
        """Counts of the class, of a feature, of (class, feature), or of (class, feature, feature)."""
        levels = [_levels_of(schema, i) for i in family if i]
        if not levels:
            return self.classes
        if 0 not in family:
            return np.asarray(self.single[:, levels[0]].sum(axis=0))
        if len(levels) == 1:
            return self.single[:, levels[0]]
        if self.pairs is None:
            raise ValueError("these counts have no pairs")
        return self.pairs[:, levels[0], levels[1]]


@dataclass(frozen=True)
class Stream:
    """What has been seen so far: the schema and the counts under it."""

    classes: NDArray[Any]
    schema: Schema
    counts: Counts
    missing_level: bool = False

    @classmethod
    def opened(
        cls, estimator: BaseClassifier, data: Training, classes: NDArray[Any] | None, with_pairs: bool
    ) -> Stream:
        """A stream whose first batch is this; it fixes the classes and the cut points."""
        known = data.classes if classes is None else classes
        data.labels = _labels_among(known, data)
        data.classes = known
        missing_level = getattr(estimator, "missing", None) == "level"
        schema, rows = estimator._encode(data, missing_level=missing_level)
        if with_pairs:
            check_all_pairs(schema)
        return cls(known, schema, Counts.of(rows, with_pairs), missing_level)

    def continued(self, estimator: BaseClassifier, data: Training) -> Stream:
        """The stream after one more batch; categories that are new become levels.

        A column without any value so far is what this batch makes of it.
        """
        labels = data.labels = _labels_among(self.classes, data)
        data.classes = self.classes
        known = self.schema.features
        if any(v.levels == NOTHING_YET for v in known):
            fresh = estimator._encode(data, missing_level=self.missing_level)[0].features
            known = tuple(self._begun(v, new) for v, new in zip(known, fresh, strict=True))
        grown = [self._grown(v, data.frame.column(i)) for i, v in enumerate(known)]
        schema = Schema((self.schema.target, *grown))
        if self.counts.pairs is not None:
            check_all_pairs(schema)
        codes = np.empty((len(schema.names), data.frame.n_rows), code_type(max(schema.cardinalities)))
        codes[0] = labels
        for i, variable in enumerate(schema.features):
            codes[i + 1] = variable.encode(data.frame.column(i))
        batch = Counts.of(Rows(codes, schema.cardinalities, data.weights), self.counts.pairs is not None)
        old = self.counts.spread(_positions(self.schema, schema), sum(schema.cardinalities[1:]))
        return replace(self, schema=schema, counts=old + batch)

    def _begun(self, variable: Variable, new: Variable) -> Variable:
        """The variable as this batch makes it, where no earlier one had a value; cells missing till then may count."""
        if variable.levels != NOTHING_YET:
            return variable
        lacking = self.missing_level and None not in new.levels
        return replace(new, levels=(*new.levels, None)) if lacking else new

    def _grown(self, variable: Variable, column: Column) -> Variable:
        """The variable with the levels that a batch adds: new categories, and the first missing cells."""
        levels = variable.levels
        if variable.cuts is None and variable.transformer is None:
            named = factorise_numbers(column) if isinstance(column, NumericColumn) else column
            variable.refuse_other_types(named.levels)
            known = {*levels}
            new = [v for v in named.levels if v not in known]
            if new:
                own = [v for v in levels if v is not None]
                levels = (*natural_order([*own, *new]), *((None,) if None in levels else ()))
        if self.missing_level and None not in levels and missing_cells(column).any():
            levels = (*levels, None)
        return replace(variable, levels=levels)

    def structure(self, learner: StructureLearner) -> StructureResult:
        """What the learner would find on all rows seen so far."""
        if isinstance(learner, ChowLiuTAN):
            if self.counts.pairs is None:
                raise ValueError(
                    "the batches so far were counted for naive Bayes, without the pairs that TAN needs; use fit, or "
                    "begin anew with a clone"
                )
            cards = self.schema.cardinalities[1:]
            information = information_of_pairs(self.counts.pairs, cards, self.counts.classes)
            return StructureResult(learner.from_information(self.schema, information))
        nothing = Rows(np.empty((len(self.schema.names), 0), np.uint8), self.schema.cardinalities)
        return learner.learn(self.schema, nothing)  # naive Bayes reads no rows

    def parameters(self, dag: Dag, learner: ParameterLearner) -> ParameterResult:
        """What the learner would find on all rows seen so far."""
        assert isinstance(learner, MaximumLikelihood)
        tables = [self.counts.table(self.schema, (*parents, child)) for child, parents in enumerate(dag.parents)]
        return ParameterResult(learner.from_counts(self.schema, dag, tables))


def can_stream(estimator: Any) -> bool:
    """Whether a BayesNetClassifier learns from sums of counts alone; raises the reason where it does not."""
    structure, parameters = estimator._learners()
    if not isinstance(structure, (NaiveBayes, ChowLiuTAN)):
        raise AttributeError(f"partial_fit works for naive Bayes and TAN, not for {type(structure).__name__}; use fit")
    if not isinstance(parameters, MaximumLikelihood) or parameters.missing == "em":
        raise AttributeError("partial_fit needs smoothed maximum likelihood without missing='em'; use fit")
    return True


def check_batchwise(class_weight: Any) -> None:
    """Raise where the weights of a batch would hang on the other batches."""
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={class_weight!r} needs the sizes of all classes, which no batch knows; give partial_fit a "
            "dictionary of weights, or use fit"
        )


def known_classes(stream: Stream | None, classes: Any) -> NDArray[Any] | None:
    """All classes of a stream, before its first batch those given; None if that batch is to say."""
    given = None if classes is None else np.unique(np.asarray(classes))
    if stream is None or given is None:
        return given if stream is None else stream.classes
    if not np.array_equal(given, stream.classes):
        raise ValueError(
            f"classes={classes!r} is not the same as in the first call of partial_fit, {stream.classes.tolist()}"
        )
    return stream.classes


def _levels_of(schema: Schema, i: int) -> slice:
    start = sum(schema.cardinalities[1:i])
    return slice(start, start + schema.cardinalities[i])


def _labels_among(classes: NDArray[Any], data: Training) -> NDArray[np.intp]:
    unknown = [c for c in data.classes.tolist() if c not in classes]
    if unknown:
        raise ValueError(f"the class {unknown[0]!r} is new; name all classes in the first call of partial_fit")
    return np.asarray(np.searchsorted(classes, data.classes)[data.labels])


def _positions(old: Schema, new: Schema) -> NDArray[np.intp]:
    """For each level of the old schema its position among the levels of the new one; -1 where it is gone."""
    found: list[int] = []
    for i, (before, after) in enumerate(zip(old.features, new.features, strict=True), start=1):
        start = _levels_of(new, i).start
        lost = before.levels == NOTHING_YET and None not in after.levels
        place = {level: k for k, level in enumerate(after.levels)}
        found += [-1] if lost else [start + place[v] for v in before.levels]
    return np.array(found, np.intp)
