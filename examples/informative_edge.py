"""When a discriminative structure is needed: section 3 and Figure 3 of Pernkopf & Bilmes (2010), run again.

Three binary features; X2-X3 is the strongest dependence, but only X1-X3 differs between the classes.

    python examples/informative_edge.py --out some-folder        # about a minute; --seeds 10 for a quick look
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from rich.progress import track
from sklearn.svm import SVC

from marginbayes import BayesNetClassifier
from marginbayes.datasets.synthetic import informative_edge

SIZES = (20, 50, 100, 200, 500, 1000)
CONTESTANTS = {
    "naive Bayes": ("nb", "-", "tab:gray"),
    "TAN, generative": ("tan", "-", "tab:orange"),
    "TAN, order-based CR": ("tan-omi-cr", "-", "tab:blue"),
    "TAN, greedy CL": ("tan-cl", "-", "tab:green"),
}


def rates(seeds: int) -> dict[tuple[str, str], np.ndarray]:
    """Share of 1000 test rows classified correctly: (structure, parameters) -> seeds x sizes."""
    names = [(s, p) for s in CONTESTANTS for p in ("ml", "cl")] + [("SVM", "")]
    found = {name: np.zeros((seeds, len(SIZES))) for name in names}
    for seed in track(range(seeds), description="simulations"):
        for k, size in enumerate(SIZES):
            X, y, X_test, y_test = informative_edge(size, 1000, random_state=1000 * seed + k).split()
            for structure, parameters in names[:-1]:
                clf = BayesNetClassifier(CONTESTANTS[structure][0], parameters).fit(X, y)
                found[structure, parameters][seed, k] = clf.score(X_test, y_test)
            svm = SVC(C=3, gamma=0.5).fit(X.astype(float), y)  # the paper's C* = 3 and sigma = 1
            found["SVM", ""][seed, k] = svm.score(X_test.astype(float), y_test)
    return found


def main() -> None:
    """Print the averages and draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    parser.add_argument("--seeds", type=int, default=100)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    found = rates(args.seeds)
    print(f"{'rows':28}" + "".join(f"{size:>8}" for size in SIZES))
    figure, ax = plt.subplots(figsize=(7, 5), layout="constrained")
    for (structure, parameters), values in found.items():
        label = f"{structure} {parameters.upper()}".strip()
        print(f"{label:28}" + "".join(f"{v:8.3f}" for v in values.mean(axis=0)))
        color = CONTESTANTS[structure][2] if parameters else "black"
        ax.plot(SIZES, values.mean(axis=0), "--" if parameters == "cl" else "-", color=color, marker=".", label=label)
    for level, text in ((0.5, "guessing"), (0.575, "X2-X3"), (0.65, "best possible")):
        ax.axhline(level, color="0.85", zorder=0)
        ax.annotate(text, (SIZES[0], level), va="bottom", fontsize=8, color="0.4")
    ax.set(xscale="log", xticks=SIZES, xticklabels=SIZES, xlabel="training rows", ylabel="correct on 1000 test rows")
    ax.minorticks_off()
    figure.legend(loc="outside lower center", fontsize=8, ncols=3)
    figure.savefig(args.out / "informative_edge.png", dpi=120)
    print(f"drawn in {args.out / 'informative_edge.png'}")


if __name__ == "__main__":
    main()
