"""A progress line for searches that take long."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from sklearn.base import BaseEstimator, clone

from marginbayes.solvers import Learned, Moment
from marginbayes.structure.base import Step

__all__ = ["ProgressLine", "warn_if_interrupted", "watched"]

Learner = TypeVar("Learner", bound=BaseEstimator)


class ProgressLine:
    """Callback that keeps one line on the terminal up to date, or writes a line now and then where there is none."""

    def __init__(self) -> None:
        self.count = 0
        self.last = 0.0

    def __call__(self, step: Step | Moment) -> None:
        """Show a step, at most ten times a second (elsewhere than on a terminal: every ten seconds)."""
        self.count += 1
        terminal = sys.stderr.isatty()
        if time.monotonic() - self.last < (0.1 if terminal else 10.0):
            return
        self.last = time.monotonic()
        line = f"{step.seconds:7.1f} s  step {self.count}  {step}"
        sys.stderr.write(f"\r{line[:100]:<100}" if terminal else line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Leave the line."""
        if self.last and sys.stderr.isatty():
            sys.stderr.write("\n")


@contextmanager
def watched(learner: Learner, verbose: int) -> Iterator[Learner]:
    """The learner, with a progress line where the user wants one and the learner can show it."""
    if not verbose or learner.get_params(deep=False).get("callback", learner) is not None:
        yield learner
        return
    progress = ProgressLine()
    try:
        yield clone(learner).set_params(callback=progress)
    finally:
        progress.close()


def warn_if_interrupted(*results: Learned | None) -> None:
    """Say that Ctrl-C cut a learner short: inside a loop of scikit-learn nothing else would."""
    if any(result is not None and result.interrupted for result in results):
        text = "interrupted: the model is the best so far, and not what a whole fit would give"
        warnings.warn(text, UserWarning, stacklevel=3)
