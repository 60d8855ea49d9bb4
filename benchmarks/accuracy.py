"""Accuracy of parameter learners on naive Bayes, TAN and 2-trees, beside support vector machines: one resumable table.

    MARGINBAYES_DATA=/path/to/data python benchmarks/accuracy.py --out accuracy.jsonl

The papers' protocol: rows with unknown cells left out, numbers discretised on the training part, the given split or
five folds; settings chosen on 20 % of the training rows, or by five folds of them where they are at most 1000. Each
finished part is one line of the file, so a run that was stopped goes on where it was; `--table` only prints what is
there. Structures: naive Bayes, TAN, k-dependence with k = 2, and the 2-tree, whose feature parents are joined. The rows
"chosen" take, part by part, the structure that did best in validation. Times are processor seconds.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _accuracy_table import print_tables
from _protocol import IMAGES, SETS, STRUCTURES, UCI, Encoded, Fold, folds
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from marginbayes import Network
from marginbayes.parameters.design import Design

QUICK = ("iris", "glass2", "heart", "corral", "vehicle")
# The SVM's settings are chosen on at most this many training rows.
SVM_TUNING_ROWS = 4000


@dataclass(frozen=True)
class Method:
    """A parameter learner by name, and the settings to choose from, the strongest regularisation first."""

    learner: str
    module: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @property
    def settings(self) -> list[dict[str, Any]]:
        """All combinations of the grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]

    def make(self, setting: Mapping[str, Any]) -> Any:
        """The learner with one setting."""
        kind = getattr(import_module(f"marginbayes.parameters.{self.module}"), self.learner)
        return kind(**self.fixed, **setting)

    def missing(self) -> str:
        """Why the learner cannot be had; empty if it can."""
        try:
            self.make(self.settings[0])
        except (ImportError, AttributeError, TypeError) as error:
            return str(error)
        return ""


METHODS = {
    "ML": Method("MaximumLikelihood", "likelihood"),
    "CL": Method(
        "ConditionalLikelihood",
        "conditional",
        {"max_iter": 200, "tol": 1e-4, "pool": False},
        {"l2": (30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01)},
    ),
    "CL pooled": Method(
        "ConditionalLikelihood",
        "conditional",
        {"max_iter": 200, "tol": 1e-4, "pool": True},
        {"l2": (300.0, 100.0, 30.0, 10.0, 3.0, 1.0)},
    ),
    "MarginGradient": Method(
        "MarginGradient", "gradient", {"max_iter": 200, "tol": 1e-4}, {"target": (5.0, 20.0), "l2": (3.0, 0.3, 0.03)}
    ),
    "MarginHybrid": Method("MarginHybrid", "hybrid", {"tol": 1e-3}, {"B": (0.1, 1.0, 10.0)}),
    "MarginMarkov": Method("MarginMarkov", "markov", {"shrink": "ml", "tol": 1e-3}, {"C": (0.001, 0.01, 0.1)}),
    "MarginConvex": Method("MarginConvex", "convex", {"method": "exact"}),
    "ConvexCombination": Method("ConvexCombination", "combination", {"n_parts": 10}, {"D": (1e6, 1e3, 0.0)}),
}
SVMS = ("SVM discretised", "SVM raw")


# -- cells


def learn_cell(fold: Fold, structure: str, method: Method, every: bool) -> dict[str, Any]:
    """What a learner does on one fold, its setting chosen by validation; with `every` also each setting's test rows."""
    data, parts = fold.encoded, fold.inner  # encoded once for all learners, outside of the time
    start = time.process_time()
    found = [[_judged(network, part) for network in _learned(method, part, structure)] for part in parts]
    scores = [tuple(np.mean(part, axis=0).round(6).tolist()) for part in zip(*found, strict=True)]
    best = max(range(len(scores)), key=lambda i: scores[i])
    tuned = time.process_time()
    network = method.make(method.settings[best]).learn(data.schema, data.graph(structure), data.train).network
    done = time.process_time()
    cell = {
        "right": _right(network, data),
        "rows": len(data.truth),
        "validation": scores[best],
        "setting": method.settings[best],
        "cpu": round(done - tuned, 3),
        "tuning_cpu": round(tuned - start, 3),
        "parameters": int(sum(t.size - t[..., 0].size for t in network.tables)),
    }
    if every and len(scores) > 1:
        cell |= {"every": scores, "every_right": [_right(n, data) for n in _learned(method, data, structure)]}
    return cell


def _learned(method: Method, part: Encoded, structure: str) -> Iterator[Network]:
    """The network of each setting; a learner that can start somewhere starts where the setting before ended."""
    dag, given = part.graph(structure), dict[str, Any]()
    for setting in method.settings:
        learner = method.make(setting)
        if "normalize" in learner.get_params(deep=False):
            learner.set_params(normalize="plain")  # rows are complete: the same answers, sooner
        taken = inspect.signature(learner.learn).parameters
        if "design" in taken and "design" not in given:
            given["design"] = Design.of(dag, part.train)
        result = learner.learn(part.schema, dag, part.train, **given)
        given |= {name: value for name, value in (("start", result.network), ("previous", result)) if name in taken}
        yield result.network


def _judged(network: Network, part: Encoded) -> tuple[float, float]:
    """Share of validation rows classified correctly, and their mean log P(class | row), which decides ties."""
    joint = network.log_joint(part.test)
    chances = log_softmax(joint, axis=1)[np.arange(len(joint)), part.truth]
    return float((joint.argmax(axis=1) == part.truth).mean()), float(np.maximum(chances, -50.0).mean())


def _right(network: Network, data: Encoded) -> int:
    return int((network.log_joint(data.test).argmax(axis=1) == data.truth).sum())


def svm_cell(fold: Fold, raw: bool) -> dict[str, Any]:
    """What a support vector machine with a Gaussian kernel does, its C and width chosen by validation."""
    start = time.process_time()
    outer = _svm_tables(fold, raw)
    settings = [{"C": c, "width": w} for c in (0.5, 2.0, 8.0, 32.0) for w in (0.125, 0.5, 2.0, 8.0)]
    inner = [_svm_tables(part, raw) for part in _inner_folds(fold)]
    scores = []
    for setting in settings:
        hits = [_svm(setting, X.shape[1]).fit(X, y).predict(Z) == z for X, y, Z, z in inner]
        scores.append(float(np.concatenate(hits).mean()))
    best = int(np.argmax(scores))
    tuned = time.process_time()
    X, y, Z, z = outer
    model = _svm(settings[best], X.shape[1]).fit(X, y)
    right = int((model.predict(Z) == z).sum())
    return {
        "right": right,
        "rows": len(z),
        "validation": (scores[best], 0.0),
        "setting": settings[best],
        "cpu": time.process_time() - tuned,
        "tuning_cpu": tuned - start,
        "parameters": int(model.support_vectors_.shape[0] * X.shape[1]),
    }


def _svm(setting: Mapping[str, float], features: int) -> SVC:
    return SVC(C=setting["C"], gamma=setting["width"] / features, cache_size=400)


def _inner_folds(fold: Fold) -> Iterator[Fold]:
    for task in fold.inner_tasks:
        part = Fold(fold.data, 0, 1, task, fold.classes, fold.seed)
        yield part.limited(SVM_TUNING_ROWS)


def _svm_tables(fold: Fold, raw: bool) -> tuple[Any, NDArray[Any], Any, NDArray[Any]]:
    """Numbers for a kernel: standardised columns and one-hot categories, or one-hot codes after discretisation."""
    if raw:
        task = fold.task
        onehot = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
        table = make_column_transformer(
            (StandardScaler(), make_column_selector(dtype_include="number")),
            (onehot, make_column_selector(dtype_exclude="number")),
        )
        return table.fit_transform(task.X_train), task.y_train, table.transform(task.X_test), task.y_test
    data = fold.encoded
    onehot = make_pipeline(OneHotEncoder(sparse_output=False, handle_unknown="ignore", dtype=np.float32))
    X = onehot.fit_transform(data.train.codes[1:].T)
    return X, data.train.codes[0], onehot.transform(data.test.codes[1:].T), data.truth


# -- the file


@dataclass(frozen=True)
class Key:
    """Which cell, and which of its folds."""

    data: str
    fold: int
    folds: int
    structure: str
    method: str
    seed: int


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Finished parts; a line that was cut off while it was written is left out."""
    lines = []
    if path.exists():
        for text in path.read_text("utf-8").splitlines():
            try:
                lines.append(json.loads(text))
            except json.JSONDecodeError:
                continue
    return lines


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Add one line in a single write, after a line break if the last line was cut off."""
    cut = path.exists() and path.stat().st_size > 0 and not path.read_bytes().endswith(b"\n")
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(handle, (("\n" if cut else "") + json.dumps(line) + "\n").encode())
        os.fsync(handle)
    finally:
        os.close(handle)


# -- the run


def run_set(name: str, args: argparse.Namespace, methods: Mapping[str, Method], done: set[Key]) -> None:
    """Compute what is lacking for one data set."""
    parts = list(folds(name, args.seed, args.rows))
    for structure, method in [*product(args.structures, methods), *(("-", svm) for svm in SVMS if svm in args.methods)]:
        for fold in parts:
            key = Key(name, fold.number, fold.count, structure, method, args.seed)
            if key in done:
                continue
            try:
                cell = svm_cell(fold, method == SVMS[1]) if structure == "-" else None
                cell = cell or learn_cell(fold, structure, methods[method], args.every)
            except ValueError as error:
                cell = {"refused": str(error)}
            append_line(args.out, {**asdict(key), **cell})
            shown = f"{100 * cell['right'] / cell['rows']:.2f} %" if "right" in cell else cell["refused"]
            took = f"{cell.get('tuning_cpu', 0):.1f} + {cell.get('cpu', 0):.1f} s"
            print(f"{name} {fold.number + 1}/{fold.count} {structure} {method}: {shown}, {took}", flush=True)


def usable(names: Sequence[str]) -> dict[str, Method]:
    """The learners that can be had; a line for each that cannot."""
    found = {name: METHODS[name] for name in names if name in METHODS}
    for name in list(found):
        if why := found[name].missing():
            print(f"{name} is left out: {why}")
            del found[name]
    return found


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("accuracy.jsonl"), help="file of finished parts")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=[*SETS, "uci", "images"], metavar="SET")
    parser.add_argument("--methods", nargs="+", default=[*METHODS, *SVMS], choices=[*METHODS, *SVMS], metavar="METHOD")
    parser.add_argument("--structures", nargs="+", default=list(STRUCTURES), choices=list(STRUCTURES))
    parser.add_argument("--seed", type=int, default=0, help="of folds and of splits that are ours")
    parser.add_argument("--rows", type=int, help="learn from at most that many random training rows")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--every", action="store_true", help="also judge every setting by the test rows, for study")
    parser.add_argument("--table", action="store_true", help="compute nothing")
    args = parser.parse_args()
    groups = {"uci": UCI, "images": IMAGES}
    names = [name for word in args.sets for name in groups.get(word, (word,))]
    args.sets = [name for name in names if name in QUICK] if args.quick else names
    return args


def main() -> None:
    """Compute what is lacking and print the tables."""
    args = options()
    methods = usable(args.methods)
    if not args.table:
        done = {Key(**{k: line[k] for k in Key.__dataclass_fields__}) for line in read_lines(args.out)}
        for name in args.sets:
            try:
                run_set(name, args, methods, done)
            except (OSError, LookupError) as error:
                print(f"{name} is left out: {error}")
    lines = [line for line in read_lines(args.out) if line["seed"] == args.seed and line["data"] in args.sets]
    lines = [line for line in lines if line["method"] in args.methods and line["structure"] in {*args.structures, "-"}]
    print_tables(lines, [*METHODS, *SVMS], list(STRUCTURES), UCI)


if __name__ == "__main__":
    main()
