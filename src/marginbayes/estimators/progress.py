"""A progress line for searches that take long."""

from __future__ import annotations

import sys
import time

from marginbayes.solvers import Moment
from marginbayes.structure.base import Step

__all__ = ["Progress"]


class Progress:
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
        if self.count and sys.stderr.isatty():
            sys.stderr.write("\n")
