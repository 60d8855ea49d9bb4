"""What every structure learner is, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from sklearn.base import BaseEstimator

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.solvers import Certificate, Learned

__all__ = ["Step", "StructureLearner", "StructureResult"]


@dataclass(frozen=True)
class Step:
    """One change on the way to a structure: what was done to which edge, the score after it, and when."""

    change: str
    parent: str | None
    child: str | None
    score: float
    seconds: float

    def __str__(self) -> str:
        what = f"{self.parent} -> {self.child}" if self.parent else (self.child or "")
        return f"{self.change} {what}".strip() + f": {self.score:.6g}"


@dataclass(frozen=True)
class StructureResult(Learned):
    """A learned graph and how it came about.

    Attributes
    ----------
    dag : Dag
        The graph.
    certificate : Certificate or None
        How far from the optimum it can be, where the learner proves that.
    score : float or None
        The learner's own score of the graph.
    path : tuple of Step
        Every change that was accepted, in order.
    status : {"finished", "time limit", "node limit", "memory limit", "interrupted"}
        After a limit or Ctrl-C the best structure so far is kept.
    start : float or None
        The score before the first change.
    """

    dag: Dag
    certificate: Certificate | None = None
    score: float | None = None
    path: tuple[Step, ...] = ()
    status: str = "finished"
    start: float | None = None


class StructureLearner(BaseEstimator, ABC):  # type: ignore[misc]
    """Holds parameters only, so that it can be cloned and grid-searched; `learn` returns a value."""

    # Whether it makes a table of every two features' levels in every class.
    counts_pairs: ClassVar[bool] = False

    @abstractmethod
    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """Structure for these rows, over the names of the schema, the class first."""
