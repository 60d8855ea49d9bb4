"""What disjunctions of single samples could take from the root's bound, at small gamma.

    python benchmarks/exact_envelope.py

The relaxation gives each sample min(gamma, mean margin), the mean over the shares of the features' options. A structure
takes whole options; what every convex relaxation of one sample alone must grant it at those shares is its concave
envelope, the greatest mean of min(gamma, margin) over all joint distributions of the options with these shares. Any one
of them is a lower limit: here the one that the rearrangement algorithm (Puccetti & Rueschendorf 2012) finds, which
couples large contributions with small ones. So `could close` is an upper limit of the part of the gap that cuts for
single samples, whatever their form, can close at these shares. The last column has the options drawn independently of
one another: what the same shares are worth without any coupling.

Sets with two classes, where a sample has one margin.
"""

from __future__ import annotations

import argparse

import numpy as np
from _exact import desired, encoded, root_relaxation
from numpy.typing import NDArray

from marginbayes.structure import ExactMargin
from marginbayes.structure.exact.instance import Instance

Floats = NDArray[np.float64]

SETS = ("australian", "german", "breast", "vote")
# A feature's options as so many equally likely outcomes, and rounds of rearrangement.
OUTCOMES, ROUNDS = 400, 6


def two_classes(name: str, p: float) -> Instance:
    """The soft margin of a set in which a sample has one rival."""
    data = encoded(name)
    instance = ExactMargin("sm", gamma=desired(p))._instance(data.schema, data.rows)
    if instance.rivals != 1:
        raise SystemExit(f"{name} has more than two classes")
    return instance


def root_shares(instance: Instance) -> tuple[Floats, float]:
    """Shares of the options at the root, and the objective of the best structure of a brief search."""
    relaxed, objective = root_relaxation(instance)
    return relaxed.shares, objective


def outcomes(shares: Floats) -> NDArray[np.int64]:
    """[feature, outcome] the options, as often as their shares say."""
    at = (np.arange(OUTCOMES) + 0.5) / OUTCOMES
    return np.array([np.searchsorted(np.cumsum(own / own.sum()), at).clip(max=len(own) - 1) for own in shares])


def rearranged(values: Floats) -> Floats:
    """The lines of [feature, outcome] permuted until their sum hardly varies."""
    for _ in range(ROUNDS):
        for line in values:
            rest = values.sum(axis=0) - line
            line[np.argsort(rest)] = np.sort(line)[::-1]
    return values


def measure(name: str, p: float) -> None:
    """Print what the relaxation, an attained envelope and independence make of the same shares."""
    instance = two_classes(name, p)
    shares, objective = root_shares(instance)
    drawn, rng = outcomes(shares), np.random.default_rng(0)
    totals = np.zeros(3)
    instance.fill(np.arange(instance.n_rows))
    for m, row in enumerate(instance.space.dense):
        values = np.take_along_axis(row.reshape(shares.shape), drawn, axis=1)
        base, weight = instance.base(0)[m], instance.samples.weights[m]
        totals[0] += weight * min(instance.gamma, base + values.mean(axis=1).sum())
        shuffled = rng.permuted(values, axis=1)
        totals[2] += weight * np.minimum(instance.gamma, base + shuffled.sum(axis=0)).mean()
        totals[1] += weight * np.minimum(instance.gamma, base + rearranged(shuffled).sum(axis=0)).mean()
    relaxed, envelope, independent = totals
    print(
        f"| {name} | {p:g} | {objective:.2f} | {relaxed:.2f} | {envelope:.2f} "
        f"| {(relaxed - envelope) / (relaxed - objective):.1%} | {independent:.2f} |",
        flush=True,
    )


def main() -> None:
    """Measure the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--p", type=float, default=0.6, help="gamma = log(p / (1 - p))")
    args = parser.parse_args()
    print("| set | p | best structure | relaxation | envelope at least | could close | independent |")
    print("|---|---|---|---|---|---|---|")
    for name in args.sets:
        measure(name, args.p)


if __name__ == "__main__":
    main()
