"""What products of two options could take from the root's bound, at small gamma.

    python benchmarks/exact_products.py

Products y of the options of two features, shared by all samples, make the mean square of a margin linear, beside its
mean. For a margin M within [L, U] around gamma,

    min(gamma, M) <= gamma - (M - gamma) (M - U) / (U - L)

has equality at L, gamma and U; of all quadratic functions above min(gamma, M) no other is needed beside gamma and M, as
all are above a mixture of the three. So the mean of the right side, linear in y, limits a sample, the more the more its
margin varies; and y has to suit all samples at once. Here the shares of the options are those of the root, and the best
y for them is found by a linear program. The relaxation may choose other shares once there are products, so `could
close` is an upper limit of the part of the gap that they can close. [L, U] is over all options of a part, as it has to
be to be true; the last column takes only options with shares, as if all others had been ruled out.

Sets with two classes, where a sample has one margin.
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from exact_envelope import SETS, root_shares, two_classes
from numpy.typing import NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LEAST = 1e-4  # smaller shares are left out


class Products:
    """Products of the options that have shares: what they must sum to, and each margin's mean square by them."""

    def __init__(self, margins: Floats, base: Floats, shares: Floats) -> None:
        own = [np.flatnonzero(line) for line in shares]
        means = np.einsum("mfo,fo->mf", margins, shares)
        squares = np.einsum("mfo,fo->mf", margins**2, shares)
        whole = [f for f, options in enumerate(own) if len(options) == 1]
        split = [f for f, options in enumerate(own) if len(options) > 1]
        fixed = base + means[:, whole].sum(axis=1)
        rest = means[:, split].sum(axis=1)
        self.mean = fixed + rest
        self.alone = fixed**2 + 2.0 * fixed * rest + squares[:, split].sum(axis=1)
        columns, rules, sums = [], [], []
        for f, g in combinations(split, 2):
            a, b = margins[:, f, own[f]], margins[:, g, own[g]]
            columns.append((2.0 * a[:, :, None] * b[:, None, :]).reshape(len(base), -1))
            rows, cells = np.eye(len(own[f])), np.eye(len(own[g]))
            rules.append(np.vstack([np.kron(rows, np.ones(len(cells))), np.kron(np.ones(len(rows)), cells)]))
            sums += [shares[f, own[f]], shares[g, own[g]]]
        self.together = np.hstack(columns)
        self.rules, self.sums = sp.block_diag(rules, format="csr"), np.concatenate(sums)

    def value(self, weights: Floats, gamma: float, low: Floats, high: Floats) -> float:
        """The greatest sum of what the samples are granted."""
        plain = np.minimum(gamma, self.mean)
        live = np.flatnonzero((low < gamma) & (gamma < high))
        bend, high, mean = 1.0 / (high - low)[live], high[live], self.mean[live]
        right = gamma - bend * (self.alone[live] - (gamma + high) * mean + gamma * high)
        n, size = len(live), self.together.shape[1]
        found = linprog(
            np.concatenate([np.zeros(size), -weights[live]]),
            A_ub=np.hstack([bend[:, None] * self.together[live], np.eye(n)]),
            b_ub=right,
            A_eq=sp.hstack([self.rules, sp.csr_array((len(self.sums), n))], format="csr"),
            b_eq=self.sums,
            bounds=[*[(0.0, 1.0)] * size, *((None, limit) for limit in plain[live])],
            method="highs",
        )
        if found.status != 0:
            raise SystemExit(f"the linear program was not solved: {found.message}")
        others = np.ones(len(weights), bool)
        others[live] = False
        return float(weights[others] @ plain[others] - found.fun)


def measure(name: str, p: float) -> None:
    """Print what the relaxation and products make of the same shares."""
    instance = two_classes(name, p)
    shares, best = root_shares(instance)
    shares = np.where(shares < LEAST, 0.0, shares)
    shares /= shares.sum(axis=1, keepdims=True)
    base, weights, gamma = instance.base(0), instance.samples.weights, instance.gamma
    instance.fill(np.arange(instance.n_rows))
    margins = instance.space.dense.reshape(-1, *shares.shape)
    products = Products(margins, base, shares)
    relaxed = float(weights @ np.minimum(gamma, products.mean))
    values = [products.value(weights, gamma, *_range(margins, base, some)) for some in (instance.root(0), shares > 0)]
    could = [f"{(relaxed - value) / (relaxed - best):.1%}" for value in values]
    print(f"| {name} | {p:g} | {best:.2f} | {relaxed:.2f} | {values[0]:.2f} | {could[0]} | {could[1]} |", flush=True)


def _range(margins: Floats, base: Floats, options: Flags) -> tuple[Floats, Floats]:
    """Least and greatest margin of each sample with these options."""
    low = np.where(options, margins, np.inf).min(axis=2).sum(axis=1)
    high = np.where(options, margins, -np.inf).max(axis=2).sum(axis=1)
    return base + low, base + high


def main() -> None:
    """Measure the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--p", type=float, nargs="+", default=(0.6, 0.8), help="gamma = log(p / (1 - p))")
    args = parser.parse_args()
    print("| set | p | best structure | relaxation | with products | could close | of options with shares |")
    print("|---|---|---|---|---|---|---|")
    for p in args.p:
        for name in args.sets:
            measure(name, p)


if __name__ == "__main__":
    main()
