"""What the two experiments on sequences share: contestants, the choice of their strengths, and a peer."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marginbayes.sequence import (
    SequenceLabeler,
    StructuredConditional,
    StructuredConvex,
    StructuredHybrid,
    StructuredLikelihood,
    StructuredMarkov,
    sequence_accuracy,
)


@dataclass(frozen=True)
class Contestant:
    """A name and the candidates among which the first split chooses."""

    name: str
    candidates: tuple[Callable[[], Any], ...]


@dataclass(frozen=True)
class Outcome:
    """One fit: share of labels that are right by best paths and by marginals, share of sequences that are right by best
    paths, processor seconds to learn, and the certified gap."""

    labels: float
    by_marginals: float
    sequences: float
    seconds: float
    gap: float | None


def contestants(sequence: str, window: int, *, literal: bool) -> list[Contestant]:
    """ML, CL, M3N and margin, and python-crfsuite where it is installed."""

    def own(learner: Any) -> Callable[[], SequenceLabeler]:
        return lambda: SequenceLabeler(window, parameters=learner, sequence=sequence)

    grid = [(b, margin) for b in (0.3, 1.0, 3.0) for margin in (1.0, 3.0, 5.0)]
    found = [
        Contestant("maximum likelihood", (own(StructuredLikelihood()),)),
        Contestant("conditional likelihood", tuple(own(StructuredConditional(c)) for c in (0.1, 1.0, 10.0))),
        Contestant("Markov network, margin", tuple(own(StructuredMarkov(c)) for c in (0.01, 0.1, 1.0))),
        Contestant("likelihood + margin", tuple(own(StructuredHybrid(b, margin)) for b, margin in grid)),
    ]
    if literal:
        found.insert(3, Contestant("margin as published", (own(StructuredConvex()),)))
    try:
        import pycrfsuite  # noqa: F401
    except ImportError:
        print("python-crfsuite is not installed and left out")
    else:
        found.append(
            Contestant("python-crfsuite", tuple((lambda c=c: Crfsuite(sequence, window, c)) for c in (0.1, 1.0, 10.0)))
        )
    return found


def choose(who: Contestant, X: Any, y: Any, sequence: str) -> Callable[[], Any]:
    """The candidate that labels a held-out quarter of these sequences best, by best paths or by marginals."""
    if len(who.candidates) == 1:
        return who.candidates[0]
    names = X[sequence].unique()
    held = X[sequence].isin(names[::4]).to_numpy()
    parts = (X[~held], y[~held]), (X[held], y[held])
    found = [measure(make, *parts, sequence) for make in who.candidates]
    return who.candidates[int(np.argmax([max(o.labels, o.by_marginals) for o in found]))]


def measure(make: Callable[[], Any], train: tuple[Any, Any], test: tuple[Any, Any], sequence: str) -> Outcome:
    """Fit and test once."""
    labeler = make()
    started = time.process_time()
    labeler.fit(*train)
    seconds = time.process_time() - started
    X, y = test
    predicted = labeler.predict(X)
    certificate = getattr(labeler, "certificate_", None)
    if isinstance(labeler, SequenceLabeler):
        by_marginals = labeler.set_params(decoding="marginal").predict(X)
    else:
        by_marginals = labeler.predict_by_marginals(X)
    return Outcome(
        float((predicted == np.asarray(y)).mean()),
        float((by_marginals == np.asarray(y)).mean()),
        sequence_accuracy(y, predicted, X[sequence]),
        seconds,
        None if certificate is None else certificate.gap,
    )


def table(title: str, outcomes: dict[str, list[Outcome]]) -> None:
    """Print one line for each contestant: means over the repetitions, with standard deviations of the accuracies."""
    print(f"\n{title}")
    print(f"  {'':<26}{'by best path':>16}{'by marginals':>16}{'sequences':>11}{'cpu s':>9}{'largest gap':>13}")
    for name, found in outcomes.items():
        gaps = [o.gap for o in found if o.gap is not None]
        print(
            f"  {name:<26}{_spread([o.labels for o in found])}{_spread([o.by_marginals for o in found])}"
            f"{100 * np.mean([o.sequences for o in found]):11.2f}{np.mean([o.seconds for o in found]):9.2f}"
            + (f"{max(gaps):13.1e}" if gaps else ""),
            flush=True,
        )


def _spread(shares: list[float]) -> str:
    return f"{100 * np.mean(shares):9.2f} ±{100 * np.std(shares):5.2f}"


class Crfsuite:
    """python-crfsuite with the same window: one indicator for each neighbour and level."""

    def __init__(self, sequence: str, window: int, c2: float) -> None:
        self.sequence, self.window, self.c2 = sequence, window, c2

    def _items(self, X: Any) -> Iterable[tuple[np.ndarray, list[list[str]]]]:
        reach = self.window // 2
        features = [c for c in X.columns if c != self.sequence]
        ids = X[self.sequence].to_numpy()
        for name in dict.fromkeys(ids.tolist()):
            rows = np.flatnonzero(ids == name)
            cells = X.iloc[rows][features].astype(str).to_numpy()
            items = []
            for t in range(len(rows)):
                near = ((s, t + s) for s in range(-reach, reach + 1))
                items.append(
                    [
                        f"{f}{s}={cells[at, k] if 0 <= at < len(rows) else 'outside'}"
                        for s, at in near
                        for k, f in enumerate(features)
                    ]
                )
            yield rows, items

    def fit(self, X: Any, y: Any) -> Crfsuite:
        """Train by L-BFGS with an l2 penalty."""
        import pycrfsuite

        trainer = pycrfsuite.Trainer(verbose=False)
        trainer.set_params({"c1": 0.0, "c2": self.c2, "max_iterations": 300})
        labels = np.asarray(y).astype(str)
        for rows, items in self._items(X):
            trainer.append(items, labels[rows].tolist())
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "model")
            trainer.train(path)
            self.tagger = pycrfsuite.Tagger()
            self.model = Path(path).read_bytes()  # the tagger reads it as long as it lives, but does not keep it
            self.tagger.open_inmemory(self.model)
        self.kind = np.asarray(y).dtype
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels of the best path."""
        found = np.empty(len(X), object)
        for rows, items in self._items(X):
            found[rows] = self.tagger.tag(items)
        return found.astype(self.kind)

    def predict_by_marginals(self, X: Any) -> np.ndarray:
        """At each position the most probable label."""
        found, names = np.empty(len(X), object), self.tagger.labels()
        for rows, items in self._items(X):
            self.tagger.set(items)
            chances = [[self.tagger.marginal(name, t) for name in names] for t in range(len(rows))]
            found[rows] = [names[k] for k in np.argmax(chances, axis=1)]
        return found.astype(self.kind)
