"""The kinds of experiments: what is measured when a task is run."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from marginbayes import BayesNetClassifier
from marginbayes.evaluation.folds import Task as Rows
from marginbayes.study.methods import build, validated
from marginbayes.study.protocol import split, whole
from marginbayes.study.sequences import label
from marginbayes.study.spec import Task
from marginbayes.study.structures import shared_structure
from marginbayes.study.timing import Spent, Stopwatch, structure_seconds

__all__ = ["KINDS", "measure", "unpack"]

Result = dict[str, Any]


def measure(task: Task) -> Result:
    """Run a task and return what it found."""
    if task.kind not in KINDS:
        raise ValueError(f"{task.experiment}: the kind {task.kind!r} is not known; there are {', '.join(KINDS)}")
    return KINDS[task.kind](task)


def classify(task: Task) -> Result:
    """Accuracy on the test rows, with everything needed to compare it row by row with another method.

    Where training sets are drawn again and again, the draws are what is compared, and the rows are left out.
    """
    rows = _rows(task)
    found = _classified(rows, *_fitted(task, rows))
    if task.options["protocol"].get("repeats", 1) > 1:
        del found["correct"]
    return found


def _classified(rows: Rows, model: Any, spent: Spent) -> Result:
    start = time.perf_counter()
    correct = np.asarray(model.predict(rows.X_test)) == rows.y_test
    predicted = time.perf_counter() - start
    return {
        "accuracy": float(correct.mean()),
        "tested": len(correct),
        "trained": len(rows.y_train),
        "correct": pack(correct),
        "train_accuracy": float((np.asarray(model.predict(rows.X_train)) == rows.y_train).mean()),
        **spent.of_fit(),
        "predict_seconds": predicted,
        **_about(model),
        **_likelihoods(model, rows),
    }


def missing(task: Task) -> Result:
    """Accuracy when so many features of each test row are missing at random; the same ones for every method.

    The curve ends, and says why, where a network is too dense for so many features to be summed out.
    """
    rows = _rows(task)
    model, spent = _fitted(task, rows)
    repeats, n_features = task.options.get("draws", 100), rows.X_test.shape[1]
    counts = [m for m in task.options["missing"] if m < n_features]
    curve: list[list[float]] = []
    ended: Result = {}
    for count in counts:
        rng = np.random.default_rng([task.seed, count])
        try:
            rates = [_rate_without(model, rows, count, rng) for _ in range(repeats if count else 1)]
        except ValueError as error:
            if not curve:
                raise
            ended["ended"] = f"with {count} features missing: {error}"
            break
        curve.append([count, float(np.mean(rates)), float(np.std(rates))])
    return {
        **ended,
        "accuracy": curve[0][1],
        "tested": len(rows.y_test),
        "curve": curve,
        **spent.of_fit(),
        **_about(model),
    }


def orders(task: Task) -> Result:
    """Accuracy and conditional likelihood of order-based learning over many random orders, or for its one order."""
    drawn = task.method.options["structure_options"]["order"] == "random"
    count = task.options.get("orders", 100) if drawn else 1
    rows = _rows(task)
    tests, trains, likelihoods = [], [], []
    for number in range(count):
        model = build({**task.method.options, "structure_options": _seeded(task, number)}, task.seed)
        model.fit(rows.X_train, rows.y_train)
        tests.append(float((model.predict(rows.X_test) == rows.y_test).mean()))
        trains.append(float((model.predict(rows.X_train) == rows.y_train).mean()))
        likelihoods.append(_likelihoods(model, rows)["train_cll"])
    return {
        "accuracy": float(np.mean(tests)),
        "tested": len(rows.y_test),
        "orders": count,
        # A thousand orders: digits that nobody reads would be most of a record.
        "test_accuracies": np.round(tests, 6).tolist(),
        "train_accuracies": np.round(trains, 6).tolist(),
        "train_cll": np.round(likelihoods, 6).tolist(),
    }


def parts(task: Task) -> Result:
    """Accuracy of a convex combination and of each of its members, on the training and on the test rows.

    Other methods, for comparison, have no members.
    """
    rows = _rows(task)
    model, spent = _fitted(task, rows)
    weak = []
    for network in getattr(model.parameter_result_, "members", ()):
        single = type(model).from_network(network)
        weak.append([float((single.predict(X) == y).mean()) for X, y in _both(rows)])
    return {**_classified(rows, model, spent), "members": weak}


def structure(task: Task) -> Result:
    """Accuracy, and the seconds of structure learning alone."""
    rows = _rows(task)
    model, spent, of_structure = structure_seconds(build(task.method.options, task.seed), rows)
    return {**_classified(rows, model, spent), "structure_seconds": of_structure}


KINDS: Mapping[str, Callable[[Task], Result]] = {
    "classify": classify,
    "missing": missing,
    "orders": orders,
    "parts": parts,
    "structure": structure,
    "label": label,
}


def pack(correct: NDArray[np.bool_]) -> str:
    """Booleans as text, eight to a byte."""
    return base64.b64encode(np.packbits(correct).tobytes()).decode("ascii")


def unpack(text: str, count: int) -> NDArray[np.bool_]:
    """Booleans back from text."""
    return np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=count).astype(bool)


def _rows(task: Task) -> Rows:
    return split(task.options["protocol"], task.dataset, task.split, task.seed)


def _fitted(task: Task, rows: Rows) -> tuple[Any, Spent]:
    """The model, and what it takes: what a structure took that another task has learned already counts too."""
    options = task.method.options
    model = build(options, task.seed)
    shared = None
    if options.get("structure_rows") == "all":
        model.set_params(structure=_graph(task))
    elif isinstance(model, BayesNetClassifier) and "grid" not in options:
        shared = shared_structure(task, model._structure_learner())
        model.set_params(structure=shared)
    model = validated(model, options, rows.y_train, task.seed)
    watch = Stopwatch()
    model.fit(rows.X_train, rows.y_train)
    return model, watch.spent() + (shared.spared if shared else Spent())


def _graph(task: Task) -> Any:
    """The structure of a method from all rows of the set, where training sets are too small to learn one."""
    options = {k: v for k, v in task.method.options.items() if k in ("structure", "structure_options")}
    key = json.dumps([task.dataset, options, task.options["protocol"], task.seed], sort_keys=True)
    if key not in _graphs:
        data = whole(task.options["protocol"], task.dataset)
        _graphs[key] = build(options, task.seed).fit(data.X, data.y).dag_
    return _graphs[key]


_graphs: dict[str, Any] = {}


def _both(rows: Rows) -> list[tuple[Any, NDArray[Any]]]:
    return [(rows.X_train, rows.y_train), (rows.X_test, rows.y_test)]


def _seeded(task: Task, number: int) -> dict[str, Any]:
    return {**task.method.options.get("structure_options", {}), "random_state": number}


def _rate_without(model: Any, rows: Rows, count: int, rng: np.random.Generator) -> float:
    hidden = np.argsort(rng.random(rows.X_test.shape), axis=1) < count
    return float((np.asarray(model.predict(rows.X_test.mask(hidden))) == rows.y_test).mean())


def _likelihoods(model: Any, rows: Rows) -> Result:
    """Sum of log P(class | row) over the training and over the test rows, where the model has probabilities."""
    inner = getattr(model, "best_estimator_", model)
    if isinstance(inner, Pipeline):
        return {}
    found = {}
    for name, (X, y) in zip(("train_cll", "test_cll"), _both(rows), strict=True):
        log_proba = inner.predict_log_proba(X)
        place = np.searchsorted(inner.classes_, y).clip(max=len(inner.classes_) - 1)
        known = inner.classes_[place] == y
        found[name] = float(log_proba[np.flatnonzero(known), place[known]].sum())
    return found


def _about(model: Any) -> Result:
    """Size of the model, what validation chose, and the certificate where there is one."""
    found: Result = {}
    if hasattr(model, "best_params_"):
        found["chosen"] = {key: _shown(value) for key, value in model.best_params_.items()}
        model = model.best_estimator_
    if hasattr(model, "network_"):
        found["parameters"] = int(sum((t.shape[-1] - 1) * (t.size // t.shape[-1]) for t in model.network_.tables))
        found["edges"] = len(model.dag_.edges)
        found |= _certificates(model)
    elif isinstance(model, Pipeline):
        # As Table 5 of Pernkopf & Bilmes counts them: the features of every support vector.
        found["support_vectors"] = len(model[-1].support_vectors_)
        found["parameters"] = found["support_vectors"] * int(model.n_features_in_)
    return found


def _certificates(model: Any) -> Result:
    """What was proved; how the bound came about is kept of structures, which a report draws."""
    found: Result = {}
    for name, result in (("structure", model.structure_result_), ("parameters", model.parameter_result_)):
        certificate = result.certificate
        if certificate is not None:
            found[f"{name}_certificate"] = {
                "objective": certificate.objective,
                "bound": certificate.bound if np.isfinite(certificate.bound) else None,
                "gap": certificate.gap if np.isfinite(certificate.gap) else None,
                "status": certificate.status,
                "seconds": certificate.seconds,
            }
            if "equal_from" in certificate.evidence:
                found["weights"] = _weights(certificate.evidence)
    if "structure_certificate" in found:
        trace = model.structure_result_.certificate.trace
        shown = [[t, o, b if np.isfinite(b) else None] for t, o, b in trace[:: _step(trace)]]
        found["structure_certificate"]["trace"] = shown
    return found


def _weights(evidence: Mapping[str, Any]) -> Result:
    """The smallest and the largest weight of a combination, and the pull from which on all of them are equal."""
    weights = np.asarray(evidence["weights"])
    return {
        "least": float(weights.min()),
        "most": float(weights.max()),
        "equal_from": float(evidence["equal_from"]),
        "equal": bool(np.ptp(weights) <= 1e-9),
    }


def _step(trace: Any, most: int = 60) -> int:
    """Which part of a long trace to keep."""
    return max(1, len(trace) // most)


def _shown(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
