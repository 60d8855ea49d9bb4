"""What every structure learner is, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag

__all__ = ["StructureLearner", "StructureResult"]


@dataclass(frozen=True)
class StructureResult:
    """A learned graph, and the certificate of how good it is where the learner gives one."""

    dag: Dag
    certificate: Any | None = None


class StructureLearner(BaseEstimator, ABC):  # type: ignore[misc]
    """Holds parameters only, so that it can be cloned and grid-searched; `learn` returns a value."""

    @abstractmethod
    def learn(self, schema: Schema, rows: Rows) -> StructureResult:
        """Structure for these rows, over the names of the schema, the class first."""
