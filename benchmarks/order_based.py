"""TAN-OMI-CR on the 25 UCI sets of Pernkopf & Bilmes (2010), beside their Table 8.

    MARGINBAYES_DATA=/path/to/data python benchmarks/order_based.py

The paper's protocol: rows with unknown cells left out, numbers discretised on the training part, five folds or the
given split, zero probabilities replaced by 1e-5, maximum-likelihood tables. Folds and (where the original is lost)
splits are ours, so a result agrees if it lies within two standard deviations of the published mean over random
orders, or within the binomial noise (1.96 standard errors for the number of test rows) of the published OMI-CR
figure.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from marginbayes import BayesNetClassifier, datasets
from marginbayes.evaluation import holdout, run, stratified_tasks
from marginbayes.parameters import MaximumLikelihood
from marginbayes.structure import OrderBased

# Table 8: OMI-CR, mean and standard deviation over 1000 random orders.
PUBLISHED = {
    "australian": (82.04, 84.58, 0.77),
    "breast": (97.40, 97.19, 0.26),
    "chess": (94.93, 94.70, 0.76),
    "cleve": (81.76, 81.42, 0.97),
    "corral": (99.20, 95.79, 2.55),
    "crx": (84.07, 84.21, 0.82),
    "diabetes": (74.36, 75.23, 0.52),
    "flare": (82.74, 82.38, 0.50),
    "german": (73.20, 72.83, 0.87),
    "glass": (70.70, 71.74, 1.13),
    "glass2": (82.20, 81.94, 0.73),
    "heart": (81.85, 82.83, 0.85),
    "hepatitis": (90.67, 89.25, 1.69),
    "iris": (93.33, 93.58, 0.55),
    "letter": (87.00, 86.53, 0.60),
    "lymphography": (88.30, 85.83, 1.72),
    "mofn-3-7-10": (91.41, 90.11, 1.01),
    "pima": (75.26, 75.70, 0.49),
    "shuttle-small": (99.17, 99.33, 0.13),
    "vote": (94.29, 93.90, 0.69),
    "satimage": (88.25, 87.47, 0.44),
    "segment": (94.42, 94.63, 0.59),
    "soybean-large": (91.11, 92.29, 0.78),
    "vehicle": (67.38, 68.18, 0.90),
    "waveform-21": (78.02, 78.19, 0.51),
}
SPLIT = ("chess", "letter", "mofn-3-7-10", "shuttle-small", "satimage", "segment", "waveform-21")


def tasks(name: str, seed: int) -> list:
    """The paper's split, or five stratified folds."""
    data = datasets.load(name, complete=True, keep_ids=name == "breast")
    if name in SPLIT:
        return [holdout(*data.split()[:2], *data.split()[2:])]
    return list(stratified_tasks(data.X, data.y, 5, random_state=seed))


def rates(name: str, order: str, seed: int) -> tuple[float, int]:
    """Percentage of test rows classified correctly, and their number."""
    learner = OrderBased(order, "cr", kind="floor", smoothing=1e-5, random_state=seed)
    clf = BayesNetClassifier(learner, MaximumLikelihood(1e-5, kind="floor"))
    work = tasks(name, 0)
    labels = np.unique(np.concatenate([np.concatenate([t.y_train, t.y_test]) for t in work]))
    right = np.concatenate([o.correct for o in run({"": clf}, work, labels)])
    return 100 * float(right.mean()), len(right)


def main() -> None:
    """Print one line for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random-orders", type=int, default=5, help="how many random orders to average")
    args = parser.parse_args()
    print(f"{'set':15} {'OMI-CR':>7} {'paper':>7} | {'RO-CR mean':>10} {'paper':>13} | agrees | seconds")
    agreed, ours, theirs = 0, [], []
    for name, (omi, mean, std) in PUBLISHED.items():
        start = time.perf_counter()
        try:
            rate, n = rates(name, "mi", 0)
        except (ValueError, OSError) as error:
            print(f"{name:15} left out: {error}")
            continue
        seconds = time.perf_counter() - start
        random = np.mean([rates(name, "random", seed)[0] for seed in range(args.random_orders)])
        noise = 196 * np.sqrt(omi / 100 * (1 - omi / 100) / n)
        agrees = abs(rate - mean) <= 2 * std or abs(rate - omi) <= noise
        agreed += agrees
        ours.append((rate, n))
        theirs.append(omi)
        print(
            f"{name:15} {rate:7.2f} {omi:7.2f} | {random:10.2f} {mean:7.2f}+-{std:4.2f} "
            f"| {'yes' if agrees else 'NO ':6} | {seconds:.2f}",
            flush=True,
        )
    weights = [n for _, n in ours]
    print(
        f"agree: {agreed} of {len(ours)}; mean {np.mean([r for r, _ in ours]):.2f} (paper {np.mean(theirs):.2f}), ",
        end="",
    )
    print(f"weighted by test rows {np.average([r for r, _ in ours], weights=weights):.2f}")


if __name__ == "__main__":
    main()
