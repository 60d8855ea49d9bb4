"""What a row costs, by the scores of its classes: the one thing in which discriminative learners differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

__all__ = ["CONDITIONAL", "ConditionalLoss", "MarginLoss", "RowLoss"]


class RowLoss(ABC):
    """A loss that is convex in the scores, and falls as the label's score rises."""

    @abstractmethod
    def kernel(self) -> Callable[..., float]:
        """The compiled sum over rows; arguments as in `kernels.discriminative.conditional_loss`."""


@dataclass(frozen=True)
class ConditionalLoss(RowLoss):
    """-log P(label | row)."""

    def kernel(self) -> Callable[..., float]:
        """The compiled sum over rows."""
        from marginbayes.kernels.discriminative import conditional_loss

        return partial(conditional_loss)


@dataclass(frozen=True)
class MarginLoss(RowLoss):
    """Smoothed hinge of the log-margin over the target, the best rival taken as a smooth maximum."""

    target: float
    sharpness: float

    def kernel(self) -> Callable[..., float]:
        """The compiled sum over rows."""
        from marginbayes.kernels.discriminative import margin_loss

        return partial(_with, margin_loss, self.target, self.sharpness)


def _with(kernel: Callable[..., float], target: float, sharpness: float, *args: object) -> float:
    return kernel(*args, target, sharpness)


CONDITIONAL = ConditionalLoss()
