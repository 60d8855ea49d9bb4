"""What an evaluation tests on: folds, a test file, or the split of a data set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.cli.console import counted, note, some
from marginbayes.cli.features import check_numbers, note_strangers, typed_like
from marginbayes.cli.labels import match_labels, text_of
from marginbayes.cli.sequences import sequence_tasks, with_ids
from marginbayes.cli.tables import (
    Reading,
    Table,
    Training,
    check_column,
    check_features,
    note_columns,
    read_data,
    training,
)

if TYPE_CHECKING:
    from marginbayes.cli.models import Choices
    from marginbayes.evaluation import Task

__all__ = ["FoldPlan", "Testing", "make_plan"]

DEFAULT_FOLDS = 5


@dataclass(frozen=True)
class Testing:
    """The options that say what to test on; `folds` is None where none was asked for."""

    folds: int | None
    repeats: int
    seed: int
    test: str | None
    split: bool
    sequence: str | None = None


@dataclass(frozen=True, eq=False)
class FoldPlan:
    """Training and test sets, all classes, a line for people, and the same as settings for a file.

    `sequences` are the ids of the rows that are tested, where they are those of sequences.
    """

    tasks: Iterable[Task] = field(repr=False)
    n_tasks: int
    classes: NDArray[Any]
    description: str
    settings: dict[str, Any]
    sequences: NDArray[Any] | None = None


def make_plan(
    data: str,
    reading: Reading,
    target: str | None,
    drop: tuple[str, ...],
    weight: str | None,
    choices: Choices,
    testing: Testing,
) -> FoldPlan:
    """The plan that the options describe."""
    _check_choice(testing)
    table = with_ids(read_data(data, reading, categorical=choices.categorical), testing.sequence)
    if testing.test is not None:
        return _against_file(table, testing.test, reading, target, drop, weight, choices, testing.sequence)
    rows = training(table, target, drop, weight, testing.sequence)
    check_features(table, rows, choices.categorical)
    note_columns(table, rows, choices)
    _note_weightless(rows)
    if testing.split:
        return _by_split(rows, table)
    return _by_folds(rows, table, testing)


def _check_choice(testing: Testing) -> None:
    chosen = [
        name
        for name, given in (
            ("--folds", testing.folds is not None),
            ("--test", testing.test is not None),
            ("--split", testing.split),
        )
        if given
    ]
    if len(chosen) > 1:
        raise ValueError(f"{' and '.join(chosen)} exclude each other; choose one")
    if testing.repeats > 1 and chosen and chosen[0] != "--folds":
        raise ValueError(f"--repeats is for cross-validation, not for {chosen[0]}")


def _by_folds(rows: Training, table: Table, testing: Testing) -> FoldPlan:
    from marginbayes.evaluation import small_classes, stratified_tasks

    folds = DEFAULT_FOLDS if testing.folds is None else testing.folds
    _note_small(small_classes(rows.y, folds), folds)
    classes = _at_least_two(np.unique(rows.y), rows.target)
    dealing = folds, testing.repeats, testing.seed
    if testing.sequence is None:
        tasks = stratified_tasks(rows.X, rows.y, *dealing, rows.weights)
    else:
        tasks = sequence_tasks(rows.X, rows.y, testing.sequence, *dealing, rows.weights)
    times = "" if testing.repeats == 1 else f", {testing.repeats} times"
    how = f"{folds}-fold cross-validation{times}, seed {testing.seed}"
    settings = {"folds": folds, "repeats": testing.repeats, "seed": testing.seed}
    return _plan(tasks, folds * testing.repeats, classes, rows, table, how, settings, _ids(rows.X, rows))


def _note_weightless(rows: Training) -> None:
    if rows.weights is None:
        return
    lost = [str(label) for label in sorted(set(rows.y.tolist()) - set(rows.y[rows.weights > 0].tolist()))]
    if lost:
        note(f"all rows of these classes have the weight zero, so that nothing is learned of them: {some(lost)}")


def _note_small(small: dict[Any, int], folds: int) -> None:
    alone = [str(label) for label, n in small.items() if n == 1]
    few = [f"{label} ({n})" for label, n in small.items() if n > 1]
    if alone:
        note(f"classes with a single row, which stays in the training set, are never tested: {some(alone)}")
    if few:
        note(f"classes with fewer rows than the {folds} folds are missing from some tests: {some(few)}")


def _against_file(
    table: Table,
    test: str,
    reading: Reading,
    target: str | None,
    drop: tuple[str, ...],
    weight: str | None,
    choices: Choices,
    sequence: str | None,
) -> FoldPlan:
    import pandas as pd

    from marginbayes.evaluation import holdout

    text = [c for c, column in table.frame.items() if pd.api.types.is_string_dtype(column.dtype)]
    other = with_ids(read_data(test, reading, text), sequence)
    for name in drop:  # which one of the two tables may lack
        if name not in other.frame.columns:
            check_column(name, table)
    rows = training(table, target, [name for name in drop if name in table.frame.columns], weight, sequence)
    check_features(table, rows, choices.categorical)
    _note_weightless(rows)
    note_columns(table, rows, choices)
    unused = drop if weight is None else (*drop, weight)  # tested rows count once each, whatever they weigh
    asked = training(other, rows.target, [name for name in unused if name in other.frame.columns], sequence=sequence)
    X = _of_same_types(rows, _same_columns(rows.X, asked.X, other), asked.rows, other, choices)
    known = np.unique(rows.y)
    truth = match_labels(asked.y, known)
    if not set(truth.tolist()) & set(known.tolist()):
        raise ValueError(
            f"no label of {other.name} ({some([text_of(c) for c in np.unique(asked.y)])}) is a class of {table.name} "
            f"({some([text_of(c) for c in known])})"
        )
    task = holdout(rows.X, rows.y, X, truth, rows.weights)
    how = f"tested on the {len(truth)} rows of {test}"
    return _holdout_plan(task, rows, table, how, {"test": test})


def _same_columns(train: Any, test: Any, other: Table) -> Any:
    missing = [c for c in train.columns if c not in test.columns]
    if missing:
        raise ValueError(f"{other.name} lacks the column {missing[0]!r} of the training data")
    extra = [c for c in test.columns if c not in train.columns]
    if extra:
        which, them = ("column", "it") if len(extra) == 1 else ("columns", "them")
        raise ValueError(
            f"{other.name} has the {which} {some([repr(c) for c in extra])}, which the training data lack; "
            f"leave {them} out with --drop"
        )
    return test[list(train.columns)]


def _of_same_types(rows: Training, X: Any, places: NDArray[np.intp], other: Table, choices: Choices) -> Any:
    """The test columns with cells as the levels of the training columns that they mean, as `predict` reads them."""
    from marginbayes.data.encode import DISTINCT, Encoder, categorical_mask
    from marginbayes.data.frame import read_frame
    from marginbayes.data.schema import Variable

    frame = read_frame(rows.X.drop(columns=[] if rows.sequence is None else [rows.sequence]))
    mask = categorical_mask(choices.categorical, frame.names)
    encoder = Encoder(np.zeros(frame.n_rows, np.intp), 1, None, mask, discretizer=None)
    schema, _ = encoder.learn(Variable(rows.target, ("",)), frame)
    if choices.discretizer != "none":
        check_numbers([v.name for v in schema.features if v.origin == DISTINCT], X, places, other)
    typed = typed_like(schema.features, X)
    note_strangers([v for v in schema.features if v.origin != DISTINCT], typed)
    return typed


def _by_split(rows: Training, table: Table) -> FoldPlan:
    from marginbayes.evaluation import holdout

    if table.train is None or table.test is None:
        raise ValueError(f"{table.name} comes without a split; leave out --split to cross-validate")
    train, test = (np.flatnonzero(np.isin(rows.rows, part)) for part in (table.train, table.test))
    weights = None if rows.weights is None else rows.weights[train]
    task = holdout(rows.X.iloc[train], rows.y[train], rows.X.iloc[test], rows.y[test], weights)
    how = f"trained on {len(train)} rows and tested on {len(test)}, by the split of the data set"
    return _holdout_plan(task, rows, table, how, {"split": True})


def _holdout_plan(task: Task, rows: Training, table: Table, how: str, settings: dict[str, Any]) -> FoldPlan:
    known = _at_least_two(np.unique(task.y_train), rows.target)
    new, counts = np.unique(task.y_test[~np.isin(task.y_test, known)], return_counts=True)
    if len(new):
        note(
            f"the training data lack the classes {some([str(c) for c in new])}: their {counts.sum()} test rows "
            "count as wrong, and make the log loss infinite"
        )
    classes = np.unique(np.concatenate([known, new])) if len(new) else known
    return _plan([task], 1, classes, rows, table, how, settings, _ids(task.X_test, rows))


def _ids(X: Any, rows: Training) -> NDArray[Any] | None:
    """Ids of the sequences of these rows, where there are any."""
    return None if rows.sequence is None else np.asarray(X[rows.sequence])


def _plan(
    tasks: Iterable[Task],
    n_tasks: int,
    classes: NDArray[Any],
    rows: Training,
    table: Table,
    how: str,
    settings: dict[str, Any],
    tested: NDArray[Any] | None,
) -> FoldPlan:
    labels, counts = np.unique(rows.y, return_counts=True)
    most = f"{labels[counts.argmax()]} ({counts.max() / counts.sum():.1%})"
    sizes = counted(len(rows.y), "row"), counted(rows.n_features, "feature"), counted(len(labels), "class")
    about = f"{table.name}: {', '.join(sizes)}, most often {most}; {how}"
    named = {"data": table.name, "target": rows.target, "rows": len(rows.y), "features": rows.n_features}
    named |= {} if rows.weight is None else {"weight": rows.weight}
    return FoldPlan(tasks, n_tasks, classes, about, {**named, **settings}, tested)


def _at_least_two(classes: NDArray[Any], target: str) -> NDArray[Any]:
    if len(classes) < 2:
        raise ValueError(f"all rows have the label {text_of(classes[0])!r} in {target!r}; there is nothing to evaluate")
    return classes
