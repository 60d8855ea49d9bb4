"""What the benchmarks of exact structures share: the sets of the paper, encoded, and a file of results that grows."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marginbayes import datasets
from marginbayes.data import Rows, Schema, Variable
from marginbayes.data.encode import Encoder
from marginbayes.data.frame import read_frame
from marginbayes.kernels.exact_relax import ROOT, Part, Relaxed, relax
from marginbayes.kernels.exact_space import Multipliers
from marginbayes.structure.exact.incumbent import plain_choice, search_from
from marginbayes.structure.exact.instance import Instance

__all__ = ["Encoded", "Results", "desired", "encoded", "quickest", "root_relaxation", "timed", "versions"]


class Encoded(NamedTuple):
    """Training rows of a set, numbers cut by Fayyad & Irani's method, rows with missing cells left out."""

    name: str
    schema: Schema
    rows: Rows


def encoded(name: str) -> Encoded:
    """The training part of a set."""
    data = datasets.load(name, complete=True, keep_ids=name == "breast")
    X, y = data.split()[:2] if data.train is not None else (data.X, data.y)
    classes, labels = np.unique(np.asarray(y), return_inverse=True)
    frame = read_frame(X)
    encoder = Encoder(labels, len(classes), None, np.zeros(len(frame.names), bool))
    return Encoded(name, *encoder.learn(Variable("the class", tuple(classes.tolist()), origin="class"), frame))


def desired(p: float) -> float:
    """The desired log-margin of a posterior p."""
    return math.log(p / (1.0 - p))


def root_relaxation(instance: Instance) -> tuple[Relaxed, float]:
    """The relaxation of a whole problem without class parents, and the objective that a search for structures finds."""
    stop = np.zeros(1, np.int64)
    best = search_from(instance, 0, plain_choice(instance), 0, stop)
    shares = np.zeros(instance.allowed.shape)
    shares[np.arange(len(shares)), best.choice] = 1.0
    nothing, values = Multipliers(np.empty(0, np.int32), np.empty(0, np.int32)), np.zeros(shares.shape)
    start = Part(instance.root(0), shares, np.zeros((0, len(shares)), bool), nothing, instance.ceiling, values)
    return relax(instance.space, instance.base(0), start, best.objective, ROOT, stop), best.objective


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What the work returns, its seconds on the clock, and those of the processor over all threads."""
    clock, processor = time.perf_counter(), time.process_time()
    return work(), time.perf_counter() - clock, time.process_time() - processor


def quickest(work: Callable[[], Any], most: int = 10, seconds: float = 1.0) -> tuple[Any, float, float]:
    """As `timed`, of the run that took the processor least; it is done again for some time, if it is short."""
    runs = [timed(work)]
    while len(runs) < most and sum(run[1] for run in runs) < seconds:
        runs.append(timed(work))
    return min(runs, key=lambda run: run[2])


def versions() -> dict[str, str]:
    """What the numbers were measured with."""
    packages = ("marginbayes", "numpy", "scipy", "numba", "highspy")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


class Results:
    """Lines of JSON in a file, one for each result; what is in it already is not measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[dict[str, Any]] = []
        if path.exists():
            self.lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]

    def find(self, key: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result with these entries, if there is one."""
        return next((line for line in self.lines if all(line.get(k) == v for k, v in key.items())), None)

    def add(self, key: Mapping[str, Any], measure: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The result of this key, measured unless the file has it; the line is on disk when this returns."""
        known = self.find(key)
        if known is None:
            known = {**key, **measure()}
            self.lines.append(known)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known) + "\n")
        return known
