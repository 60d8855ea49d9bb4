"""Weight of evidence: what each feature adds to the log-odds of a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.data.rows import Rows
from marginbayes.network import Network

__all__ = ["Explanation", "explain"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Explanation:
    """Exact additive account of log P(target | row) - log P(against | row), in nats.

    Attributes
    ----------
    features : tuple of str
        Their names, in the order of the columns.
    weights : array of shape (n_samples, n_features)
        Positive where the feature speaks for `target`; zero where it is missing.
    prior : array of shape (n_samples,)
        The log-odds before any feature is seen.
    target : array of shape (n_samples,)
        The class that positive weights speak for, in each row.
    against : array of shape (n_samples,)
        The class that it is compared with.
    values : array of shape (n_samples, n_features)
        What was observed, as the level it fell into; None where missing.
    """

    features: tuple[str, ...]
    weights: Floats
    prior: Floats
    target: NDArray[Any]
    against: NDArray[Any]
    values: NDArray[Any]

    @property
    def log_odds(self) -> Floats:
        """The log-odds that the weights explain: the prior plus all weights."""
        return np.asarray(self.prior + self.weights.sum(axis=1))

    def __len__(self) -> int:
        return len(self.prior)

    def row(self, i: int) -> list[tuple[str, Any, float]]:
        """(feature, observed level, weight) of one row, the heaviest first."""
        order = np.argsort(-np.abs(self.weights[i]), kind="stable")
        return [(self.features[j], self.values[i, j], float(self.weights[i, j])) for j in order]

    def to_frame(self) -> Any:
        """A pandas DataFrame: target, against, prior, one column for each feature, log-odds.

        A feature that is called like one of the others gets an underscore behind its name.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError('a frame needs pandas: pip install "marginbayes[data]"') from error
        columns: dict[str, Any] = {"target": self.target, "against": self.against, "prior": self.prior}
        taken = {*columns, "log_odds"}
        for name, weights in zip(self.features, self.weights.T, strict=True):
            label = name
            while label in taken:
                label += "_"
            taken.add(label)
            columns[label] = weights
        return pd.DataFrame(columns | {"log_odds": self.log_odds})


def explain(
    network: Network, rows: Rows, classes: NDArray[Any], target: Any = None, against: Any = None
) -> Explanation:
    """Explanation of every row by a network; see `BayesNetClassifier.explain`."""
    first, second = _sides(network.log_joint(rows), classes, target, against)
    each = np.arange(len(rows))
    steps = network.log_joint_by_prefix(rows)
    odds = _carried(np.stack([_difference(step[each, first], step[each, second]) for step in steps]))
    weights = np.empty((len(rows), len(network.dag.names) - 1))
    changes = _difference(odds[1:], odds[:-1])
    weights[:, [i - 1 for i in network.dag.order if i]] = np.where(np.isnan(changes), 0.0, changes).T
    return Explanation(
        network.dag.names[1:], weights, odds[0], classes[first], classes[second], _observed_levels(network, rows)
    )


def _difference(one: Floats, other: Floats) -> Floats:
    """one - other; not a number where both are infinite alike."""
    with np.errstate(invalid="ignore"):
        return np.asarray(one - other)


def _carried(odds: Floats) -> Floats:
    """Where a feature leaves both classes impossible, the odds stay what they were: no later one changes them."""
    for step in range(1, len(odds)):
        odds[step] = np.where(np.isnan(odds[step]), odds[step - 1], odds[step])
    return odds


def _sides(
    joint: Floats, classes: NDArray[Any], target: Any, against: Any
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each row the positions of the class that is explained and of the class it is compared with."""
    if len(classes) < 2:
        raise ValueError("there is only one class, so there are no odds to explain")
    if target is None and len(classes) == 2 and against is None:
        target = classes[1]
    first = joint.argmax(axis=1) if target is None else np.full(len(joint), _class_index(target, classes, "target"))
    if against is not None:
        second = np.full(len(joint), _class_index(against, classes, "against"))
    else:
        second = _best_besides(joint, first)
    if target is None and against is not None:
        first = _best_besides(joint, second)
    if (first == second).any():
        raise ValueError(f"target and against are the same class {classes[first[0]]!r}")
    return first, second


def _best_besides(joint: Floats, own: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each row the most probable class besides one; the first of them where none is possible."""
    rivals = np.maximum(joint, np.finfo(np.float64).min)
    rivals[np.arange(len(joint)), own] = -np.inf
    return np.asarray(rivals.argmax(axis=1))


def _class_index(label: Any, classes: NDArray[Any], role: str) -> int:
    found = np.flatnonzero(classes == label)
    if not len(found):
        raise ValueError(f"{role}={label!r} is not a class; the classes are {', '.join(map(repr, classes.tolist()))}")
    return int(found[0])


def _observed_levels(network: Network, rows: Rows) -> NDArray[Any]:
    values = np.empty((len(rows), len(network.dag.names) - 1), object)
    for j, variable in enumerate(network.schema.features):
        labels = np.array([*variable.levels, None], object)
        values[:, j] = labels[rows.codes[j + 1]]
    return values
