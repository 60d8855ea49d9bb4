"""What every parameter learner is, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from sklearn.base import BaseEstimator

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema
from marginbayes.graph import Dag
from marginbayes.network import Network
from marginbayes.solvers import Certificate, Learned

__all__ = ["ParameterLearner", "ParameterResult"]


@dataclass(frozen=True)
class ParameterResult(Learned):
    """A network, the certificate of how good it is where the learner gives one, and the objective step by step.

    `status` is ``"finished"``, ``"interrupted"``, a limit such as ``"time limit"`` or ``"iteration limit"``, or what
    else a learner says of its end. The path of learners that climb (``"cl"``, ``"mm"``) rises and that of those that
    minimise falls; it is empty where the start is the end.
    """

    network: Network
    certificate: Certificate | None = None
    path: tuple[float, ...] = ()
    status: str = "finished"


class ParameterLearner(BaseEstimator, ABC):  # type: ignore[misc]
    """Holds parameters only, so that it can be cloned and grid-searched; `learn` returns a value."""

    @abstractmethod
    def learn(self, schema: Schema, dag: Dag, rows: Rows) -> ParameterResult:
        """Network with this graph for these rows."""
