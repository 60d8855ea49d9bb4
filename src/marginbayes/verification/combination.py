"""The check of a convex combination: weights give the objective, multipliers of pairs (row, rival) the bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.check import CHECKS
from marginbayes.verification.document import CertificateError, check_sense
from marginbayes.verification.onehot import OneHot, pair_values

__all__: list[str] = []

Floats = NDArray[np.float64]

LARGEST = 1e6


def check_combination(document: Mapping[str, Any], codes: NDArray[np.int64], weights: Floats) -> tuple[float, float]:
    """Objective: least 1/(2 g^2) + B sum max(0, g - margin) + D |alpha - 1/M| over g. Bound: see below.

    For every alpha and g the Lagrangian with multipliers eta of sum S, for each row at most B, lies below the margin
    problem; over g it is least at 3/2 S^(2/3) - sum eta margin(alpha). For every q of sum zero that is no longer than
    D, q . alpha lies below D |alpha - 1/M|. What is left is linear in alpha, so it is least at a member:
    3/2 S^(2/3) + min_m (q_m - sum eta margin_m).
    """
    check_sense(document, "min")
    evidence = document["evidence"]
    cost, pull = float(evidence["B"]), float(evidence["D"])
    if not (cost > 0 and pull >= 0):
        raise CertificateError(f"B={cost!r} with D={pull!r} is no problem that can be checked")
    rows = OneHot.of(evidence, codes, weights)
    members = np.asarray(evidence["members"], np.float64).reshape(-1, rows.n_cells, rows.n_classes)
    if not (np.abs(members) <= LARGEST).all():
        raise CertificateError("a weight of a member is no number, or too large to be added up")
    alpha = _shares(evidence, len(members))
    margins = [rows.margins(member) for member in members]
    caps = cost * rows.weights
    distance = float(np.linalg.norm(alpha - 1 / len(alpha)))
    return _value(rows, margins, alpha, caps) + pull * distance, _bound(evidence, rows, margins, caps, pull)


def _shares(evidence: Mapping[str, Any], members: int) -> Floats:
    alpha = np.asarray(evidence["weights"], np.float64)
    if alpha.shape != (members,) or not (alpha >= 0).all() or abs(alpha.sum() - 1) > 1e-12 * members:
        raise CertificateError("the weights are no convex combination of the members")
    return alpha


def _value(rows: OneHot, margins: list[Floats], alpha: Floats, caps: Floats) -> float:
    """The margin problem at fixed weights: on every interval between margins its best point, then the best of these."""
    if rows.n_classes == 1:  # no rival, and no margin is too large
        return 0.0
    # The own class has an infinite margin, which a weight of zero must not turn into nothing.
    own = np.arange(rows.n_classes) == rows.labels[:, None]
    total = sum(a * np.where(own, 0.0, m) for a, m in zip(alpha, margins, strict=True))
    worst = np.where(own, np.inf, total).min(axis=1)
    order = np.argsort(worst)
    low, costs = worst[order], np.cumsum(caps[order])
    high = np.append(low[1:], np.inf)
    rising = high > 0  # gamma is positive
    costs, spent = costs[rising], np.cumsum(caps[order] * low)[rising]
    gamma = np.clip(costs ** (-1 / 3), np.maximum(low[rising], 0.0), high[rising])
    return float((0.5 / gamma**2 + costs * gamma - spent).min())


def _bound(evidence: Mapping[str, Any], rows: OneHot, margins: list[Floats], caps: Floats, pull: float) -> float:
    duals = pair_values(evidence, rows, caps)
    q = np.asarray(evidence["pull"], np.float64)
    if q.shape != (len(margins),) or not np.isfinite(q).all():
        raise CertificateError("the pull is no vector with a number for each member")
    q = q - q.mean()
    q = q * min(1.0, pull / max(float(np.linalg.norm(q)), 1e-300))
    gained = [float(duals[duals > 0] @ m[duals > 0]) for m in margins]
    return float(1.5 * duals.sum() ** (2 / 3) + (q - np.array(gained)).min())


CHECKS["margin-combination"] = check_combination
