"""How good a solution is, and the evidence for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marginbayes import checks
from marginbayes.verification.document import FORMAT, VERSION, plain, seal

__all__ = ["Certificate"]

# What rounding may do to two sums over the same data, relative to their size.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Certificate:
    """Objective, proved bound, and the evidence from which both can be computed anew.

    Parameters
    ----------
    kind : str
        What was optimised; names the check in `marginbayes.verification`.
    sense : str
        Whether it was maximised, "max", or minimised, "min".
    objective : float
        Value of the solution that was returned.
    bound : float
        No solution is better than this. Infinite where nothing was proved.
    status : str
        ``"optimal"`` within the tolerance that was asked for, else why the solver stopped: ``"time limit"``,
        ``"node limit"``, ``"interrupted"``, ``"iteration limit"``; or what the problem is, such as ``"unbounded"``.
    seconds : float
        How long the solver took.
    trace : sequence of (seconds, objective, bound)
        The way there.
    evidence : mapping
        Numbers, strings, lists and arrays: the solution, and the multipliers that prove the bound.

    Examples
    --------
    >>> found = Certificate("example", "min", objective=2.0, bound=1.5, status="time limit", seconds=0.1)
    >>> found.gap
    0.25
    """

    kind: str
    sense: str
    objective: float
    bound: float
    status: str
    seconds: float
    trace: Sequence[tuple[float, float, float]] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        checks.one_of("sense", self.sense, ("max", "min"))
        if math.isnan(self.objective) or math.isnan(self.bound):
            raise ValueError(f"objective {self.objective!r} and bound {self.bound!r} must be numbers")
        if self._excess < -ROUNDING * max(1.0, abs(self.objective)):
            side = "below" if self.sense == "max" else "above"
            raise ValueError(
                f"the bound {self.bound!r} lies {side} the objective {self.objective!r}: it proves nothing"
            )
        object.__setattr__(self, "trace", tuple((float(t), float(o), float(b)) for t, o, b in self.trace))

    @property
    def _excess(self) -> float:
        return self.bound - self.objective if self.sense == "max" else self.objective - self.bound

    @property
    def absolute_gap(self) -> float:
        """How much better a solution could be, at most."""
        return max(0.0, self._excess)

    @property
    def gap(self) -> float:
        """The absolute gap over max(1, |objective|)."""
        return self.absolute_gap / max(1.0, abs(self.objective))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and self.to_document() == other.to_document()

    def __hash__(self) -> int:
        return hash((self.kind, self.objective, self.bound, self.seconds))

    def __str__(self) -> str:
        return f"{self.status}: objective {self.objective:.8g}, bound {self.bound:.8g}, gap {self.gap:.2g}"

    def to_document(self, schema: Sequence[Mapping[str, Any]] | None = None) -> dict[str, Any]:
        """JSON values that `marginbayes.verification` can check, sealed with a digest.

        `schema` says how cells become codes: for each variable, the class first, its name, levels and cuts.
        """
        document = {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "sense": self.sense,
            "objective": self.objective,
            "bound": self.bound,
            "status": self.status,
            "seconds": self.seconds,
            "trace": [list(point) for point in self.trace],
            "schema": None if schema is None else [dict(variable) for variable in schema],
            "evidence": dict(self.evidence),
        }
        return seal(plain(document))
