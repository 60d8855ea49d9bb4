"""Checks of the published convex margin problem: its value, its bound, and separability by a witness."""

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

# Among smaller weights there is hardly a network that any margin of one could come from.
LEAST_RADIUS = 1.0


def check_convex(document: Mapping[str, Any], codes: NDArray[np.int64], weights: Floats) -> tuple[float, float]:
    """1/(2 gamma^2) + B sum of slacks at the weights; 3/2 (B l)^(2/3) with l = sum(eta) - R |V|_1, V = sum eta Delta.

    For margins of a loss of at least l at every u = w / gamma with entries up to R, the value is at least
    1/(2 gamma^2) + B gamma l, which is least at gamma = (B l)^(-1/3). V is zero at entries that no pair with a positive
    multiplier touches, so nothing is assumed about those; nor about what the classes of a cell share, which no margin
    sees.
    """
    check_sense(document, "min")
    evidence = document["evidence"]
    rows = OneHot.of(evidence, codes, weights)
    cost, gamma, table = _feasible(evidence, rows)
    missed = np.maximum(0.0, gamma - rows.margins(table, cost).min(axis=1))
    objective = 1 / (2 * gamma**2) + cost * float(rows.weights @ missed)
    if evidence["separable"]:
        _check_witness(evidence, rows)
    radius = float(evidence["radius"])
    duals = pair_values(evidence, rows, rows.weights)
    rest = np.abs(rows.gathered(duals))
    least = float(duals.sum() - radius * rest.sum())
    _check_status(document["status"], radius, evidence["separable"], least)
    if least > 0 and radius < LEAST_RADIUS:
        raise CertificateError(
            f"a bound within |u| <= {radius!r} says nothing; the radius must be {LEAST_RADIUS:g} or more"
        )
    if least > 0 and not (_half_ranges(table, rest > 0) <= radius * gamma * (1 + 1e-9)).all():
        raise CertificateError(f"the weights lie outside of |u| <= {radius!r}, within which the bound holds")
    return objective, 1.5 * (cost * max(0.0, least)) ** (2 / 3)


def _half_ranges(table: Floats, counted: NDArray[np.bool_]) -> Floats:
    """Largest entry of each cell when what its classes share is chosen best, over the entries that count."""
    some = counted.any(axis=1)
    high = np.where(counted, table, -np.inf)[some].max(axis=1)
    low = np.where(counted, table, np.inf)[some].min(axis=1)
    return np.asarray((high - low) / 2)


def check_hard(document: Mapping[str, Any], codes: NDArray[np.int64], weights: Floats) -> tuple[float, float]:
    """The least margin at the weights; infinite is the bound, and the witness says that it is reached in the limit."""
    check_sense(document, "max")
    evidence = document["evidence"]
    rows = OneHot.of(evidence, codes, weights)
    _, _, table = _feasible(evidence, rows)
    _check_witness(evidence, rows)
    return float(rows.margins(table).min()), np.inf


def _check_status(status: str, radius: float, separable: bool, least: float) -> None:
    """Refuse a status that does not name the radius within which a bound above zero holds, or that is not as proved."""
    if not radius >= 0 or float(f"{radius:.3g}") != radius:
        raise CertificateError(f"the radius {radius!r} must not be negative, and have three digits at most")
    if status.startswith("not attained") and not separable:
        raise CertificateError(f"the status is {status!r}, but nothing shows that the rows are separable")
    if separable and least <= 0:
        if not status.startswith("not attained"):
            raise CertificateError(f"the rows are separable: no optimum is attained, but the status is {status!r}")
    elif (least > 0 or status.startswith(("optimal", "not attained"))) and not status.endswith(
        f" within |u| <= {radius:.3g}"
    ):
        raise CertificateError(f"the status {status!r} does not end with 'within |u| <= {radius:.3g}', what is proved")


def _feasible(evidence: Mapping[str, Any], rows: OneHot) -> tuple[float, float, Floats]:
    """B, gamma and the weights, if they satisfy the constraints."""
    cost, gamma = float(evidence["B"]), float(evidence["gamma"])
    table = np.asarray(evidence["weights"], np.float64).reshape(rows.n_cells, rows.n_classes)
    check_cost("B", cost)
    if not gamma > 0:
        raise CertificateError(f"gamma={gamma!r} must be positive")
    if any((np.exp(table.reshape(-1)[group]).sum(axis=1) > 1 + 1e-9).any() for group in rows.groups):
        raise CertificateError("a row of a table sums to more than one")
    return cost, gamma, table


def _check_witness(evidence: Mapping[str, Any], rows: OneHot) -> None:
    """Refuse unless every pair gets a positive margin when weights of level 1 are lowered far more than those of 2, ...

    Counted in whole numbers: at the first level at which own class and rival have different numbers of lowered weights
    the rival must have more; where no level tells, the margin of the core weights must be positive.
    """
    levels = np.asarray(evidence["levels"], np.int64).reshape(rows.n_cells, rows.n_classes)
    core = np.asarray(evidence["core"], np.float64).reshape(levels.shape)
    won = _are_positive(rows, core)
    for level in np.unique(levels[levels > 0])[::-1]:
        difference = -rows.margins((levels == level).astype(np.float64))
        difference[np.arange(len(rows.labels)), rows.labels] = 0.0
        won = np.where(difference == 0, won, difference > 0)
    if not won.all():
        raise CertificateError("the witness does not separate the rows")


def _are_positive(rows: OneHot, table: Floats) -> NDArray[np.bool_]:
    """For each row and class whether the margin is positive: exactly, where rounding could have decided."""
    margins, sizes = rows.margins(table), rows.scores(np.abs(table))
    sizes = sizes + sizes[np.arange(len(rows.labels)), rows.labels][:, None]
    positive = margins > 0
    for n, c in zip(*np.nonzero(np.abs(margins) <= 1e-14 * rows.cells.shape[1] * sizes), strict=True):
        positive[n, c] = rows.margin(table, n, c) > 0
    return positive


CHECKS["margin-convex"] = check_convex
CHECKS["margin-hard"] = check_hard
