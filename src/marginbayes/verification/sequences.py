"""Margin problems over label vectors: the objective by another inference, the bound from the evidence.

The problem is: minimise regulariser(w) + strength * sum of structured hinge losses(w), where an example's hinge loss is
the greatest of margin * loss(y) - lead of the truth over y, over all labellings y.

- For every distribution over the labellings of each example, with u = strength * (features of the truth - expected
  features), strength * margin * (expected loss) - conjugate(u) is below the optimum. The evidence holds potentials:
  the distribution is proportional to exp(potential_margin * loss + potentials . features). Or it holds single
  labellings with multipliers, strength times their probability; what is left is the truth's.
- The regulariser is a "ball" (half the squared length, its own conjugate), or "tables": minus counts . w with rows that
  sum to at most one, whose conjugate is the sum of v log(v / row sum) with v = counts + u.
- Where it is a "box", only |w| <= radius is asked for, and the bound comes from single labellings with multipliers:
  sum of multiplier * loss - radius * (sum of absolute values of the combined leads).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.verification.check import CHECKS
from marginbayes.verification.document import CertificateError, check_sense
from marginbayes.verification.labelled_chains import LabelledChains
from marginbayes.verification.labelled_trees import LabelledTrees

__all__ = ["check_sequence_margin"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Labelled = LabelledChains | LabelledTrees

MODELS: dict[str, type[LabelledChains] | type[LabelledTrees]] = {"chain": LabelledChains, "tree": LabelledTrees}
# Rows of tables and sums of multipliers may exceed what they should be by rounding.
ROUNDING = 1e-9
# Within a box nothing else keeps weights from growing until rounding decides what a labelling scores.
LARGEST = 1e6
# Beyond this strength a loss that rounding makes is worth more than all others.
STRONGEST = 1e6


def check_sequence_margin(document: Mapping[str, Any], codes: Integers, weights: Floats) -> tuple[float, float]:
    """Objective and bound of a margin problem over label vectors."""
    check_sense(document, "min")
    evidence = document["evidence"]
    if evidence.get("model") not in MODELS:
        raise CertificateError(f"the model {evidence.get('model')!r} is not known")
    examples = MODELS[evidence["model"]](evidence, codes, weights)
    vector = np.array(evidence["weights"], np.float64)
    strength, margin = float(evidence.get("strength", 1.0)), float(evidence["margin"])
    truth = examples.true_features()
    hinges = np.maximum(0.0, examples.hinges(vector, margin))
    hinge = float(examples.weights @ hinges)
    kind = evidence.get("regularizer")
    if kind == "box":
        return _box(document, examples, vector, hinges)
    if kind not in ("ball", "tables"):
        raise CertificateError(f"the regulariser {kind!r} is not known")
    if not (0 < strength <= STRONGEST and margin > 0):
        raise CertificateError(f"strength and margin must be positive, and the strength at most {STRONGEST:g}")
    counts = truth + float(evidence["smoothing"]) if kind == "tables" else None
    objective = _value(vector, counts, examples) + strength * hinge
    if "potentials" in evidence:
        pull, gain = _from_potentials(evidence, examples, truth, strength)
    else:
        pull, gain = _from_labellings(evidence, examples, strength)
    return objective, margin * gain - _conjugate(pull, counts, examples)


def _from_potentials(
    evidence: Mapping[str, Any], examples: Labelled, truth: Floats, strength: float
) -> tuple[Floats, float]:
    """Pull and loss of the distribution that potentials stand for."""
    share = float(evidence["share"])
    if not 0 <= share <= 1:
        raise CertificateError(f"the share {share!r} is no part of a whole")
    potentials = np.array(evidence["potentials"], np.float64)
    expected, loss = examples.expected(potentials, float(evidence["potential_margin"]))
    return share * strength * (truth - expected), share * strength * loss


def _from_labellings(evidence: Mapping[str, Any], examples: Labelled, strength: float) -> tuple[Floats, float]:
    """Pull and loss of single labellings with multipliers that sum to at most strength times an example's weight."""
    multipliers, owners = np.array(evidence["multipliers"], np.float64), [int(i) for i in evidence["owners"]]
    labellings = evidence["labellings"]
    if not len(multipliers):
        return np.zeros(len(evidence["weights"])), 0.0
    if not (multipliers >= 0).all() or len({len(owners), len(multipliers), len(labellings)}) > 1 or min(owners) < 0:
        raise CertificateError("multipliers are negative, or their number is not that of the labellings")
    sums, most = np.bincount(owners, multipliers, len(examples.weights)), strength * examples.weights
    if len(sums) > len(most) or (sums > most * (1 + ROUNDING)).any():
        raise CertificateError("the multipliers of an example sum to more than its weight")
    examples.check_labellings(labellings, owners)
    wrong = np.flatnonzero(examples.losses(labellings, owners))  # the truth itself says nothing
    labellings, owners, multipliers = [labellings[i] for i in wrong], [owners[i] for i in wrong], multipliers[wrong]
    truths = [_truth(examples, i) for i in owners]
    lead = examples.features(truths, owners, multipliers) - examples.features(labellings, owners, multipliers)
    return lead, float(multipliers @ examples.losses(labellings, owners))


def _value(vector: Floats, counts: Floats | None, examples: Labelled) -> float:
    if counts is None:
        return 0.5 * float(vector @ vector)
    largest = examples.largest_row_sum(vector)
    if largest > 1 + ROUNDING:
        raise CertificateError(f"a row of the tables sums to {largest!r}, which is more than one")
    return -float(counts @ vector)


def _conjugate(pull: Floats, counts: Floats | None, examples: Labelled) -> float:
    if counts is None:
        return 0.5 * float(pull @ pull)
    mass = counts + pull
    least = float(mass.min())
    if least < 0:
        raise CertificateError(f"the evidence takes more from a table entry than there is: {least!r} is left")
    totals = examples.row_totals(mass)
    used = mass > 0
    return float((mass[used] * np.log(mass[used] / totals[used])).sum())


def _box(document: Mapping[str, Any], examples: Labelled, vector: Floats, hinges: Floats) -> tuple[float, float]:
    evidence, status = document["evidence"], document["status"]
    radius = float(evidence["radius"])
    if float(evidence["margin"]) != 1.0:
        raise CertificateError(f"within a box the margin is 1, not {evidence['margin']!r}")
    separable = status.startswith("separable")
    if separable:
        # A wrong labelling has a loss of one at least, so that the truth leads where less is lacking.
        if not (hinges < 1.0 - ROUNDING).all():
            raise CertificateError(f"the weights lack {hinges.max()!r}, so that they do not separate the examples")
    elif not status.endswith(f" within |u| <= {radius:g}"):
        raise CertificateError(f"the status {status!r} does not end with 'within |u| <= {radius:g}', what is proved")
    largest = float(np.abs(vector).max())
    if not largest <= LARGEST:
        raise CertificateError(f"a weight of {largest!r} is too large for sums of weights to be known")
    if largest > radius * (1 + ROUNDING):
        raise CertificateError(f"a weight of {largest!r} lies outside the radius {radius!r}")
    lead, gain = _from_labellings(evidence, examples, 1.0)
    bound = 0.0 if separable else max(0.0, gain - radius * float(np.abs(lead).sum()))
    return float(examples.weights @ hinges), bound


def _truth(examples: Labelled, owner: int) -> Any:
    if isinstance(examples, LabelledChains):
        return examples.labels[examples.positions[owner]]
    return examples.labels[owner]


CHECKS["sequence-margin"] = check_sequence_margin
