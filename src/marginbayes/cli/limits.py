"""Limits for the solvers that prove what they found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["set_limits"]


def set_limits(classifier: Any, asked: str, limits: Mapping[str, float | Path | None]) -> None:
    """Set the time limit and the gap of the structure learner; `asked` is the option that chose one without them."""
    learner = getattr(classifier, "structure", None)
    known = {} if learner is None else learner.get_params(deep=False)
    for name, value in limits.items():
        if value is None:
            continue
        if learner is None or name not in known:
            option = "--" + name.replace("_", "-")
            others = "exact-sm and exact-sbm" if name == "checkpoint" else "exact-mdl, exact-sm and the like"
            raise ValueError(f"{option} is not for {asked}; it is for {others}")
        learner.set_params(**{name: str(value) if isinstance(value, Path) else value})
