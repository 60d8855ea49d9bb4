"""Seconds to find the cut points of Fayyad and Irani: marginbayes beside Orange, in one run.

Both start from data in memory: marginbayes from NumPy arrays, validation included; Orange from its own table,
whose making is not counted. The repeats alternate and the best one counts, which is fair on a busy machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification

from marginbayes.data.discretize import MDLPDiscretizer

Cuts = list[list[float]]


def data_sets() -> dict[str, tuple[Any, Any]]:
    made = make_classification(20000, 20, n_informative=12, n_classes=5, random_state=0)
    return {"breast cancer 569x30": load_breast_cancer(return_X_y=True), "made 20000x20": made}


def marginbayes(X: Any, y: Any, n_jobs: int) -> Callable[[], Cuts]:
    return lambda: [cuts.tolist() for cuts in MDLPDiscretizer(n_jobs=n_jobs).fit(X, y).cut_points_]


def orange(X: Any, y: Any) -> Callable[[], Cuts]:
    from Orange.data import ContinuousVariable, DiscreteVariable, Domain, Table
    from Orange.preprocess.discretize import EntropyMDL

    features = [ContinuousVariable(f"x{j}") for j in range(X.shape[1])]
    domain = Domain(features, DiscreteVariable("y", values=[str(c) for c in np.unique(y)]))
    table, method = Table.from_numpy(domain, X, y), EntropyMDL()

    def run() -> Cuts:
        found = [method(table, feature).compute_value for feature in features]
        return [[float(cut) for cut in getattr(one, "points", ())] for one in found]

    return run


def race(runs: dict[str, Callable[[], Cuts]], repeats: int) -> dict[str, tuple[float, Cuts]]:
    """Best time and result of each run."""
    best: dict[str, tuple[float, Cuts]] = {}
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            cuts = run()
            seconds = time.perf_counter() - start
            best[name] = min(best.get(name, (seconds, cuts)), (seconds, cuts), key=lambda pair: pair[0])
    return best


def compare(name: str, X: Any, y: Any, with_orange: bool, repeats: int) -> None:
    cores = os.cpu_count() or 1
    runs = {f"marginbayes, {n} thread{'s' * (n > 1)}": marginbayes(X, y, n) for n in sorted({1, cores})}
    if with_orange:
        runs["Orange, 1 thread"] = orange(X, y)
    best = race(runs, repeats)
    slowest, reference = best["Orange, 1 thread"] if with_orange else best["marginbayes, 1 thread"]
    for label, (seconds, cuts) in best.items():
        agreement = "same" if cuts == reference else "DIFFERENT"
        ratio = f"{slowest / seconds:6.1f}x"
        print(f"{name:22} {label:24} {seconds:9.4f} s {ratio} {sum(map(len, cuts)):5} cut points, {agreement}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15, help="repeats of each run, the best counts (default 15)")
    repeats = parser.parse_args().repeats
    with_orange = importlib.util.find_spec("Orange") is not None
    if not with_orange:
        print("Orange is not installed, so there is nothing to compare with: pip install orange3")
    warnings.filterwarnings("ignore", module="Orange")
    reference = "Orange" if with_orange else "one thread"
    print(f"best of {repeats} repeats; ratios are speed relative to {reference}")
    for name, (X, y) in data_sets().items():
        compare(name, X, y, with_orange, repeats)


if __name__ == "__main__":
    main()
