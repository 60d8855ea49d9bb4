"""Parameter learners by their short names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from marginbayes import checks
from marginbayes.parameters.base import ParameterLearner

__all__ = ["PARAMETER_NAMES", "named_parameters"]

# Looked up when they are asked for: some of them load solvers that others do without.
PLACES = {
    "ml": ("likelihood", "MaximumLikelihood"),
    "cl": ("conditional", "ConditionalLikelihood"),
    "mm": ("gradient", "MarginGradient"),
    "mm-hybrid": ("hybrid", "MarginHybrid"),
    "mm-convex": ("convex", "MarginConvex"),
    "m3n": ("markov", "MarginMarkov"),
    "mm-combine": ("combination", "ConvexCombination"),
}
PARAMETER_NAMES = tuple(PLACES)


def named_parameters(
    name: str, smoothing: float = 1.0, n_jobs: int | None = None, random_state: int | None = None
) -> ParameterLearner:
    """The parameter learner with a short name, its other parameters as they are by default.

    ``"ml"`` maximum likelihood; ``"cl"`` conditional likelihood; ``"mm"`` margin by gradients; ``"mm-hybrid"``
    likelihood and margin; ``"mm-convex"`` the margin problem as published; ``"m3n"`` the margin of the Markov network,
    renormalised; ``"mm-combine"`` a convex combination of networks. What a learner does not take is left out.
    """
    checks.one_of("parameters", name, PLACES, note=", or give a ParameterLearner")
    module, kind = PLACES[name]
    learner = getattr(import_module(f"marginbayes.parameters.{module}"), kind)()
    wanted: dict[str, Any] = {"smoothing": smoothing, "n_jobs": n_jobs}
    if random_state is not None:
        wanted["random_state"] = random_state
    taken = learner.get_params(deep=False)
    found: ParameterLearner = learner.set_params(**{k: v for k, v in wanted.items() if k in taken})
    return found
