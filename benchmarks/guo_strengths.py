"""Strengths for the study of Guo et al. (2005), chosen as there: by one draw, and then fixed.

    MARGINBAYES_DATA=/path/to/data python benchmarks/guo_strengths.py

The draws have 50 training rows and are none of those that the study reports: the next repetition of the synthetic
networks, and of each of the 17 data sets, over which accuracies are averaged. Of equals the weaker shrinkage is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from marginbayes.study.kinds import measure
from marginbayes.study.spec import Experiment, Method, Task, load_study

# For each learner its strength and what is tried, weak shrinkage first.
GRID: dict[str, tuple[str, tuple[float, ...]]] = {
    "MarginConvex": ("B", (100.0, 10.0, 1.0, 0.1, 0.01)),
    "MarginHybrid": ("B", (100.0, 10.0, 1.0, 0.1, 0.01)),
    "MarginMarkov": ("C", (10.0, 1.0, 0.1, 0.01, 0.001)),
    "ConditionalLikelihood": ("l2", (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0)),
}
SIZE = 50


def with_strength(method: Method, name: str, value: float) -> Method:
    """The method with one setting of its parameter learner."""
    own = {**method.options.get("parameters_options", {}), name: value}
    return replace(method, options={**method.options, "parameters_options": own})


def accuracy(experiment: Experiment, method: Method) -> float:
    """Mean over the sets of the first draw that the study leaves over."""
    split = f"{SIZE}-{experiment.protocol['repeats']}"
    own: Mapping[str, Any] = {**experiment.options, "protocol": dict(experiment.protocol)}
    tasks = [Task(experiment.name, experiment.kind, s, method, split, experiment.seed, own) for s in experiment.sets]
    return float(np.mean([measure(task)["accuracy"] for task in tasks]))


def main() -> None:
    """Print the accuracy of every strength, and the best."""
    warnings.simplefilter("ignore")
    for experiment in load_study("studies/guo2005.toml").experiments:
        for method in experiment.methods:
            if method.options.get("parameters") not in GRID:
                continue
            name, values = GRID[method.options["parameters"]]
            rates = [round(accuracy(experiment, with_strength(method, name, value)), 6) for value in values]
            best = values[int(np.argmax(rates))]
            told = ", ".join(f"{value:g}: {rate:.2%}" for value, rate in zip(values, rates, strict=True))
            print(f"{experiment.name} {method.name:20} {name} = {best:g}   ({told})", flush=True)


if __name__ == "__main__":
    main()
