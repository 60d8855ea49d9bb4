"""The check of likelihood and margin: weights give the objective, multipliers the bound."""

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

# By how much rounding may have moved a row's sum above one, or an amount below zero, relative to its size.
ROUNDING = 1e-9


def check_hybrid(document: Mapping[str, Any], codes: NDArray[np.int64], weights: Floats) -> tuple[float, float]:
    """-a.w + B sum of hinges at the weights; the bound by the multipliers.

    With multipliers eta >= 0, sum_c eta_nc <= B weight_n, every w that keeps the constraint costs at least
    target sum(eta) - v.w with v = a + sum eta Delta. Where v >= 0 the minimum over a row of a table that sums to at
    most one is at exp(w) = v / V, with V the row's sum of v; a row with V = 0 adds nothing.
    """
    check_sense(document, "min")
    evidence = document["evidence"]
    cost, target = float(evidence["B"]), float(evidence["target"])
    check_cost("B", cost)
    if not target > 0:
        raise CertificateError(f"target={target!r} must be positive")
    rows = OneHot.of(evidence, codes, weights)
    counts, caps = _smoothed(evidence, rows), cost * rows.weights
    table = _kept(np.asarray(evidence["weights"], np.float64).reshape(rows.n_cells, rows.n_classes), rows)
    missed = np.maximum(0.0, target - rows.margins(table, cost).min(axis=1, initial=np.inf))
    objective = float(caps @ missed - (counts * table).sum())
    duals = pair_values(evidence, rows, caps)
    return objective, _bound(counts, duals, rows, target)


def _smoothed(evidence: Mapping[str, Any], rows: OneHot) -> Floats:
    """Counts of all cells and classes and what smoothing adds: the same to each, or its share of a table."""
    amount, kind = float(evidence["smoothing"]), evidence["kind"]
    if not amount > 0 or kind not in ("laplace", "ess"):
        raise CertificateError(f"smoothing={amount!r} of the kind {kind!r} is none that can be checked")
    counts = np.zeros(rows.n_cells * rows.n_classes)
    for column in rows.cells.T:
        used = column >= 0
        at = column[used] * rows.n_classes + rows.labels[used]
        counts += np.bincount(at, rows.weights[used], minlength=len(counts))
    for entries in rows.groups:
        counts[entries] += amount / entries.size if kind == "ess" else amount
    return counts.reshape(rows.n_cells, rows.n_classes)


def _kept(table: Floats, rows: OneHot) -> Floats:
    """The weights, shifted by what rounding has put a row's sum above one, so that the constraint holds."""
    flat = table.copy().reshape(-1)
    for entries in rows.groups:
        excess = np.log(np.exp(flat[entries]).sum(axis=1))
        if not (excess <= ROUNDING).all():
            raise CertificateError("a row of a table sums to more than one")
        flat[entries] -= np.maximum(0.0, excess)[:, None]
    return flat.reshape(table.shape)


def _bound(counts: Floats, duals: Floats, rows: OneHot, target: float) -> float:
    change = rows.gathered(duals)
    down = change < 0
    share = float((counts[down] / -change[down]).min(initial=1.0))
    if share < 1.0 - ROUNDING:
        raise CertificateError("the multipliers take more from a cell than it has")
    amounts = np.maximum(0.0, counts + share * change).reshape(-1)
    value = target * share * float(duals.sum())
    for entries in rows.groups:
        part = amounts[entries]
        shares = np.divide(part, part.sum(axis=1, keepdims=True), out=np.ones_like(part), where=part > 0)
        value -= float((part * np.log(shares)).sum())
    return value


CHECKS["margin-hybrid"] = check_hybrid
