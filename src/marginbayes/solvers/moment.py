"""A look at a solver while it runs."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Moment"]


@dataclass(frozen=True)
class Moment:
    """Time, best objective and best bound so far; what a callback of a solver is given.

    Examples
    --------
    >>> print(Moment(1.5, objective=2.0, bound=1.5, note="12 nodes"))
    objective 2, bound 1.5, gap 0.25, 12 nodes
    """

    seconds: float
    objective: float
    bound: float
    note: str = ""

    @property
    def gap(self) -> float:
        """Distance of objective and bound over max(1, |objective|)."""
        return abs(self.bound - self.objective) / max(1.0, abs(self.objective))

    def __str__(self) -> str:
        line = f"objective {self.objective:.7g}, bound {self.bound:.7g}, gap {self.gap:.2g}"
        return f"{line}, {self.note}" if self.note else line
