"""How well classifiers answer when features are missing: every parameter learner on the same graph.

Parameters are learned from complete rows; then some features of the test rows are made missing at random, and summed
out exactly. Learners whose tables must be renormalised come twice: of the many networks that give the same answers for
complete rows the likeliest, which is the default, and the one that plain renormalisation gives (dashed).

    python examples/missing_features.py --out some-folder                  # digits of scikit-learn, less than a minute
    python examples/missing_features.py --data breast-cancer --structure nb
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from marginbayes import BayesNetClassifier, datasets
from marginbayes.parameters import ConditionalLikelihood, MaximumLikelihood, ParameterLearner
from marginbayes.parameters.combination import ConvexCombination
from marginbayes.parameters.convex import MarginConvex
from marginbayes.parameters.gradient import MarginGradient
from marginbayes.parameters.hybrid import MarginHybrid
from marginbayes.parameters.markov import MarginMarkov

LEARNERS: dict[str, tuple[ParameterLearner, str]] = {
    "maximum likelihood": (MaximumLikelihood(), "black"),
    "conditional likelihood": (ConditionalLikelihood(), "tab:blue"),
    "margin by gradients": (MarginGradient(), "tab:cyan"),
    "likelihood and margin": (MarginHybrid(tol=1e-3), "tab:green"),
    "margin of the Markov network": (MarginMarkov(0.1, shrink="ml", tol=1e-2), "tab:orange"),
    "published convex problem": (MarginConvex(), "tab:red"),
    "convex combination": (ConvexCombination(5, base=MarginHybrid(tol=1e-3)), "tab:purple"),
}
RENORMALISED = ("conditional likelihood", "margin of the Markov network", "published convex problem")
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9)


def contestants() -> dict[str, tuple[ParameterLearner, str, str]]:
    """Learner, colour and line style by name."""
    found = {}
    for name, (learner, color) in LEARNERS.items():
        found[name] = (learner, color, "-")
        if name in RENORMALISED:
            plain = type(learner)(**{**learner.get_params(deep=False), "normalize": "plain"})
            found[f"{name}, plain"] = (plain, color, "--")
    return found


def with_holes(X: pd.DataFrame, counts: tuple[int, ...], rng: np.random.Generator) -> list[pd.DataFrame]:
    """The rows with so many features missing, other ones in each row; what is missing stays missing."""
    rank = rng.random(X.shape).argsort(axis=1).argsort(axis=1)
    return [X.mask(rank < count) for count in counts]


def main() -> None:
    """Print the accuracies and draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", help="name of a data set that marginbayes knows")
    parser.add_argument("--structure", default="tan", help="a graph whose feature parents are joined")
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    data = datasets.load(args.data)
    counts = tuple(round(share * data.X.shape[1]) for share in SHARES)
    X, X_test, y, y_test = train_test_split(data.X, data.y, test_size=0.5, stratify=data.y, random_state=args.seed)
    tests = with_holes(X_test, counts, np.random.default_rng(args.seed))
    print(f"{args.data}, {args.structure}: {len(X)} rows to learn from, {len(X_test)} to be judged by")
    print(f"{'features missing':38}" + "".join(f"{count:>8}" for count in counts) + "   fit in")
    figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
    for name, (learner, color, style) in contestants().items():
        began = time.perf_counter()
        clf = BayesNetClassifier(args.structure, learner).fit(X, y)
        seconds = time.perf_counter() - began
        values = [clf.score(test, y_test) for test in tests]
        print(f"{name:38}" + "".join(f"{v:8.3f}" for v in values) + f"{seconds:7.2f} s", flush=True)
        ax.plot(counts, values, style, color=color, marker=".", label=name)
    ax.set(xlabel=f"features missing, of {data.X.shape[1]}", ylabel=f"correct on {len(X_test)} test rows")
    ax.set_title(f"{args.data}, {args.structure}")
    figure.legend(loc="outside lower center", fontsize=8, ncols=2)
    figure.savefig(args.out / "missing_features.png", dpi=120)
    print(f"drawn in {args.out / 'missing_features.png'}")


if __name__ == "__main__":
    main()
