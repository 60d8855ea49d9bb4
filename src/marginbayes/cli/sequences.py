"""Sequences on the command line: the options, the labeler they describe, whole sequences in folds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginbayes.cli.settings import apply_settings

if TYPE_CHECKING:
    from marginbayes.cli.models import Choices
    from marginbayes.cli.tables import Table
    from marginbayes.evaluation import Outcome, Task
    from marginbayes.sequence import SequenceLabeler

__all__ = [
    "Order",
    "SequenceColumn",
    "Window",
    "build_labeler",
    "check_alone",
    "labeler_features",
    "sequence_tasks",
    "whole_sequences",
    "with_ids",
]

PANEL = "Sequences"

SequenceColumn = Annotated[
    str | None,
    typer.Option(
        "--sequence",
        metavar="COL",
        help="Label sequences: the column that says which sequence a row belongs to. "
        "The rows of a sequence stay in the order of the table.",
        rich_help_panel=PANEL,
        show_default=False,
    ),
]
Window = Annotated[
    int, typer.Option("--window", min=1, help="Positions whose cells a label is told by, odd.", rich_help_panel=PANEL)
]
Order = Annotated[
    int, typer.Option("--order", min=1, max=2, help="Labels that a label depends on.", rich_help_panel=PANEL)
]


def check_alone(sequence: str | None, window: int, order: int) -> None:
    """Raise where options of sequences are given without a column of sequences."""
    for option, value in (("--window", window), ("--order", order)):
        if sequence is None and value != 1:
            raise ValueError(f"{option} {value} is for sequences; say with --sequence which column tells them apart")


def build_labeler(sequence: str, window: int, order: int, structures: Sequence[str], choices: Choices) -> Any:
    """The labeler, not yet fitted, that the options describe."""
    from marginbayes.sequence import SequenceLabeler
    from marginbayes.sequence.learners.names import NAMES, named_learner

    if sequence in choices.categorical:
        raise ValueError(f"--categorical {sequence} is the column of sequences, which nothing is learned from")
    if list(structures) not in ([], ["tan"]):
        raise ValueError(f"--structure {structures[0]} is not for --sequence: a chain has the structure of a chain")
    if choices.missing != "available":
        raise ValueError(f"--missing {choices.missing} is not for --sequence, which knows 'available' only")
    if choices.class_weight is not None:
        raise ValueError("--class-weight is not for --sequence, whose rows are not weighed one by one")
    if choices.parameters not in NAMES:
        raise ValueError(f"--parameters {choices.parameters} is not for --sequence; choose one of {', '.join(NAMES)}")
    labeler = SequenceLabeler(
        window,
        order,
        named_learner(choices.parameters, choices.smoothing),
        sequence=sequence,
        smoothing=choices.smoothing,
        discretizer=None if choices.discretizer == "none" else choices.discretizer,
        categorical_features=list(choices.categorical) or "from_dtype",
        n_jobs=choices.n_jobs,
    )
    apply_settings(labeler, f"--sequence --parameters {choices.parameters}", choices.settings, choices.tune)
    return labeler


def with_ids(table: Table, sequence: str | None) -> Table:
    """The table with the column of sequence ids, which a data set keeps apart from its features."""
    from marginbayes.cli.tables import check_column

    if sequence is None:
        return table
    if table.ids is not None and sequence in table.ids.columns and sequence not in table.frame.columns:
        table = replace(table, frame=table.frame.assign(**{sequence: table.ids[sequence].to_numpy()}))
    check_column(sequence, table)
    return table


def labeler_features(labeler: SequenceLabeler, table: Table, ignore_extra: bool, keep: Sequence[str]) -> Any:
    """What a labeler predicts from: its features and its column of ids, as at fit."""
    from marginbayes.cli.features import features_for

    sequence = labeler.sequence
    if not isinstance(sequence, str):
        return features_for(labeler.schema_, table, ignore_extra=ignore_extra, keep=keep)
    table = with_ids(table, sequence)
    frame = features_for(labeler.schema_, table, ignore_extra=ignore_extra, keep=[*keep, sequence])
    frame[sequence] = table.frame[sequence]
    return frame[[str(name) for name in labeler.feature_names_in_]]


def sequence_tasks(
    X: Any, y: Any, sequence: str, n_folds: int, n_repeats: int, seed: int, sample_weight: Any = None
) -> Iterator[Task]:
    """Tasks of a cross-validation that deals whole sequences, shuffled, so that folds have like numbers of rows."""
    import numpy as np

    from marginbayes.evaluation.folds import task_of

    _, chain, sizes = np.unique(X[sequence].astype(str).to_numpy(), return_inverse=True, return_counts=True)
    if len(sizes) < n_folds:
        raise ValueError(f"{n_folds} folds need at least {n_folds} sequences, there are {len(sizes)}")
    rng, labels = np.random.default_rng(seed), np.asarray(y)
    for repeat in range(n_repeats):
        order = rng.permutation(len(sizes))
        order = order[np.argsort(-sizes[order], kind="stable")]
        fold_of, held = np.empty(len(sizes), np.intp), np.zeros(n_folds)
        for k in order:  # the longest first, each to the smallest fold
            fold_of[k] = held.argmin()
            held[fold_of[k]] += sizes[k]
        for fold in range(n_folds):
            tested = fold_of[chain] == fold
            yield task_of(X, labels, np.flatnonzero(~tested), np.flatnonzero(tested), (repeat, fold), sample_weight)


def whole_sequences(outcomes: Sequence[Outcome], ids: Any) -> tuple[int, int]:
    """How many tested sequences have the right label in every row, and how many there are; `ids` are those of rows."""
    right = 0
    total = 0
    for outcome in outcomes:
        own = ids[outcome.rows]
        right += len(set(own.tolist()) - set(own[~outcome.correct].tolist()))
        total += len(set(own.tolist()))
    return right, total
