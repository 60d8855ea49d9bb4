"""The check of a margin of a Markov network: weights give the objective, multipliers the bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.check import CHECKS
from marginbayes.verification.document import CertificateError, check_sense
from marginbayes.verification.onehot import OneHot, check_cost, pair_values

__all__: list[str] = []

Floats = NDArray[np.float64]


def check_markov(document: Mapping[str, Any], codes: NDArray[np.int64], weights: Floats) -> tuple[float, float]:
    """|U|^2/2 + penalty s^2/2 + C sum of hinges at the weights; the bound by the multipliers.

    The bound is sum(eta) - |V|^2/2 - (V.ML)^2/(2 penalty) with V = sum eta Delta, by weak duality: for every U and s
    the Lagrangian with multipliers eta >= 0, sum_c eta_nc <= C, lies below the objective, and its minimum over U and s
    is at U = V and s = V.ML / penalty.
    """
    check_sense(document, "min")
    evidence = document["evidence"]
    cost, shrink = float(evidence["C"]), evidence["shrink"]
    check_cost("C", cost)
    if shrink not in ("zero", "ml"):
        raise CertificateError(f"shrink={shrink!r} is neither 'zero' nor 'ml'")
    rows = OneHot.of(evidence, codes, weights)
    caps = cost * rows.weights
    free = np.asarray(evidence["weights"], np.float64).reshape(rows.n_cells, rows.n_classes)
    scale = float(evidence["scale"]) if shrink == "ml" else 0.0
    reference = _reference(evidence, codes, weights) if shrink == "ml" else np.zeros_like(free)
    penalty = float(evidence["scale_penalty"]) * caps.sum() if shrink == "ml" else 1.0
    if not penalty > 0:
        raise CertificateError("the penalty of the scale must be positive")
    missed = np.maximum(0.0, 1.0 - rows.margins(free + scale * reference, cost).min(axis=1))
    objective = float((free**2).sum() / 2 + penalty * scale**2 / 2 + caps @ missed)
    duals = pair_values(evidence, rows, caps)
    gathered = rows.gathered(duals)
    slope = float((gathered * reference).sum())
    return objective, float(duals.sum() - (gathered**2).sum() / 2 - slope**2 / (2 * penalty))


def _reference(evidence: Mapping[str, Any], codes: NDArray[np.int64], weights: Floats) -> Floats:
    """Smoothed log frequencies of the families that hold the class, as cells x classes."""
    parents, cards, smoothing = evidence["parents"], evidence["cardinalities"], float(evidence["smoothing"])
    parts = []
    for child in [i for i in range(len(codes)) if i == 0 or 0 in parents[i]]:
        family = [*parents[child], child]
        shape = [cards[v] for v in family]
        whole = np.all([codes[v] < cards[v] for v in family], axis=0)
        index = np.ravel_multi_index([codes[v][whole] for v in family], shape)
        counts = np.bincount(index, weights[whole], minlength=int(np.prod(shape))).reshape(shape) + smoothing
        logs = np.log(counts / counts.sum(axis=-1, keepdims=True))
        parts.append(np.moveaxis(logs, family.index(0), -1).reshape(-1, cards[0]))
    return np.concatenate(parts)


CHECKS["margin-markov"] = check_markov
