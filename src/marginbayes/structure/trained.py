"""An engine whose tables are trained to classify, anew for every structure that is tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.parameters.discriminative import DiscriminativeLearner
from marginbayes.structure.engine import Engine, Parents, Rest, structure_dag

__all__ = ["TrainedEngine"]

Floats = NDArray[np.float64]


class TrainedEngine(Engine):
    """The vector of every row holds the classes' scores under tables that a learner trains for classification.

    These tables do not belong to one family alone, so every candidate is trained and scored as a whole. As in training,
    a family with a missing member adds nothing to its row.
    """

    def __init__(self, learner: DiscriminativeLearner, *args: Any) -> None:
        self.learner = learner
        super().__init__(*args)
        if self.score.name == "sbm":
            raise ValueError("tables that are trained have no binary margin; choose score 'cr', 'cl' or 'sm'")

    def _settle(self, loss: float | None = None) -> None:
        self.state = self._trained(self.parents)
        super()._settle(loss)

    def set_parents(
        self,
        child: int,
        parents: Parents,
        without: Floats | None = None,  # noqa: ARG002
        loss: float | None = None,  # noqa: ARG002
    ) -> None:
        """Change one family and train all tables."""
        self.parents[child] = parents
        self._settle()

    def without(self, child: int) -> Floats:  # noqa: ARG002
        """The present vectors: no family can be taken out of tables that were trained together."""
        return self.state

    def try_parents(
        self,
        child: int,
        kept: Sequence[int],
        candidates: Sequence[int],
        limit: float,  # noqa: ARG002
        rest: Rest | None = None,  # noqa: ARG002
    ) -> Floats:
        """Loss for each candidate as a parent of the child besides the kept ones, after training."""
        losses = []
        for j in candidates:
            self._check_table(child, (*kept, j))
            parents = [*self.parents[:child], (*kept, j), *self.parents[child + 1 :]]
            losses.append(float(self.losses_of(self._trained(parents)).sum()))
        return np.array(losses)

    def _trained(self, parents: Sequence[Parents]) -> Floats:
        dag = structure_dag(self.schema.names, parents)
        return self.learner.train_scores(self.schema, dag, self.rows)
