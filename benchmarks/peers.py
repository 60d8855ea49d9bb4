"""marginbayes beside its peers, in one run: seconds, and how many times as fast.

Default settings and Laplace smoothing 1 on both sides. Contestants take turns and the best run of each counts. A ratio
says how many times as long the peer takes for a row; "wanted" is the ratio that this project has set itself.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from _data import SETS, Table, table
from _peers import Absent, Pgmpy, Pyagrum, Sklearn, Weka
from _report import Result, compare, summary
from _timing import Contestant
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

from marginbayes import BayesNetClassifier, Network
from marginbayes.parameters import MaximumLikelihood
from marginbayes.structure import ChowLiuTAN, NaiveBayes, StructureLearner

P = TypeVar("P")

PEERS = ("sklearn", "pyagrum", "pgmpy", "weka")
PARTS = ("fit", "frame", "predict", "missing")
QUICK = ("letter", "digits")
# Encoding weighs where there are many rows and few features; the wide sets would only repeat their fits.
FRAMES = ("letter", "digits", "satimage")
WIDE = 100  # features
# Exact inference of the peers goes row by row.
SLOW_ROWS = 300


@dataclass(frozen=True)
class Field:
    """The peers that are there, and how long to let each run."""

    sklearn: Sklearn | None
    pyagrum: Pyagrum | None
    pgmpy: Pgmpy | None
    weka: Weka | None
    rounds: int
    seconds: float
    slow: bool

    def compare(self, part: str, title: str, data: str, contestants: Sequence[Contestant]) -> list[Result]:
        """Results of a race with this field's limits."""
        return compare(part, title, data, contestants, self.rounds, self.seconds)


def learn(data: Table, structure: StructureLearner) -> Network:
    """Our network from encoded rows."""
    dag = structure.learn(data.schema, data.rows).dag
    return MaximumLikelihood().learn(data.schema, dag, data.rows).network


# -- fitting


def fit_encoded(field: Field, data: Table) -> list[Result]:
    """TAN from data in the form in which each side counts."""
    n, goal = len(data.rows), data.name != "satimage"
    contestants = [Contestant("marginbayes TAN", lambda: learn(data, ChowLiuTAN()), n)]
    if field.pyagrum is not None:
        contestants += _pyagrum_fits(field.pyagrum, data, 60.0 if goal else None)
    if (weka := field.weka) is not None:
        instances = weka.load(data)
        wanted = 10.0 if goal else None
        contestants.append(Contestant("Weka BayesNet with TAN", lambda: weka.fit(instances), n, wanted=wanted))
    if (pgmpy := field.pgmpy) is not None and field.slow:
        contestants.append(Contestant("pgmpy TreeSearch", lambda: pgmpy.learn_tan(data), n))
    title = f"TAN fit, encoded data: {data.name} ({data.size}; {data.source})"
    results = field.compare("fit", title, data.name, contestants)
    return results + (_fit_naive_bayes(field, data) if data.name == "letter" else [])


def _pyagrum_fits(peer: Pyagrum, data: Table, wanted: float | None) -> Iterator[Contestant]:
    """Its TAN classifier on the codes; the rule of that classifier alone; a TAN written by hand over its counts.

    Several threads wait for each other at every single count, on a busy machine for minutes: wide sets get one thread.
    """
    ready: list[Any] = []

    def load() -> None:
        peer.use_threads(1)
        ready[:] = [peer.loaded(data)]

    n, many = len(data.rows), peer.threads if data.features.shape[1] < WIDE else 1
    for threads in sorted({many, 1}, reverse=True):
        yield Contestant(
            f"pyAgrum TAN classifier, given the codes, threads: {threads}",
            lambda: peer.classifier("TAN").fit(data.features, data.labels),
            n,
            partial(peer.use_threads, threads),
            wanted,
        )
    alone, by_hand = (
        "pyAgrum, its TAN rule on data already read, threads: 1",
        "pyAgrum, TAN by hand over its counts, threads: 1",
    )
    yield Contestant(alone, lambda: peer.learn_tan(data, ready[0]), n, load)
    yield Contestant(by_hand, lambda: peer.learn_tan_by_hand(data, ready[0]), n, load)


def _fit_naive_bayes(field: Field, data: Table) -> list[Result]:
    n = len(data.rows)
    contestants = [Contestant("marginbayes naive Bayes", lambda: learn(data, NaiveBayes()), n)]
    if (peer := field.sklearn) is not None:
        contestants.append(Contestant(peer.title, lambda: peer.on_codes().fit(data.features, data.labels), n))
    return field.compare("fit-nb", f"naive Bayes fit, encoded data: {data.name}", data.name, contestants)


def fit_frames(field: Field, data: Table) -> list[Result]:
    """TAN from data that has yet to be encoded."""
    n, frame, labels = len(data.rows), data.categories, data.labels
    contestants = [
        Contestant("marginbayes TAN, frame of categories", lambda: BayesNetClassifier("tan").fit(frame, labels), n)
    ]
    if (agrum := field.pyagrum) is not None:
        numbers = data.frame[data.names[1:]]
        contestants += [
            Contestant(
                f"pyAgrum TAN, frame of whole numbers, threads: {threads}",
                lambda: agrum.classifier("TAN").fit(numbers, labels),
                n,
                partial(agrum.use_threads, threads),
            )
            for threads in sorted({agrum.threads, 1}, reverse=True)
        ]
    if (weka := field.weka) is not None:
        weka.load(data)
        path = weka.write(data)
        contestants.append(Contestant("Weka TAN, ARFF file", lambda: weka.fit(weka.read(path)), n))
    title = f"TAN fit, encoding included: {data.name} ({data.size}; {data.source})"
    return field.compare("frame", title, data.name, contestants)


# -- answering


def predict(field: Field, data: Table) -> list[Result]:
    """predict_proba of complete rows: on codes, then with encoding."""
    return _predict_codes(field, data) + _predict_frames(field, data)


def _predict_codes(field: Field, data: Table) -> list[Result]:
    n, network = len(data.rows), learn(data, ChowLiuTAN())
    contestants = [Contestant("marginbayes TAN", lambda: network.posterior(data.rows), n)]
    if (peer := field.sklearn) is not None:
        bayes = peer.on_codes().fit(data.features, data.labels)
        contestants.append(Contestant(peer.title, lambda: bayes.predict_proba(data.features), n, wanted=3.0))
    if (agrum := field.pyagrum) is not None:
        tan, some = agrum.classifier("TAN").fit(data.features, data.labels), data.features[:2000]
        contestants.append(Contestant("pyAgrum TAN", lambda: tan.predict_proba(some), len(some), wanted=400.0))
    if (weka := field.weka) is not None:
        instances = weka.load(data)
        fitted = weka.fit(instances)
        contestants.append(Contestant("Weka TAN", lambda: fitted.distributionsForInstances(instances), n))
    return field.compare("predict", f"predict_proba, encoded data: {data.name}", data.name, contestants)


def _predict_frames(field: Field, data: Table) -> list[Result]:
    n, labels, codes, frame = len(data.rows), data.labels, data.features, data.categories
    ours = BayesNetClassifier("tan").fit(frame, labels)
    coded = BayesNetClassifier("tan", categorical_features=range(codes.shape[1])).fit(codes, labels)
    cut = BayesNetClassifier("tan").fit(codes, labels)
    contestants = [
        Contestant("marginbayes TAN, frame of categories", lambda: ours.predict_proba(frame), n),
        Contestant("marginbayes TAN, array of whole numbers as categories", lambda: coded.predict_proba(codes), n),
        Contestant("marginbayes TAN, array of numbers, discretised", lambda: cut.predict_proba(codes), n),
    ]
    if (peer := field.sklearn) is not None:
        theirs, theirs_coded = peer.on_frames().fit(frame, labels), peer.on_frames().fit(codes, labels)
        contestants += [
            Contestant(f"{peer.title}, frame", lambda: theirs.predict_proba(frame), n),
            Contestant(f"{peer.title}, array", lambda: theirs_coded.predict_proba(codes), n),
        ]
    return field.compare("predict-frame", f"predict_proba, encoding included: {data.name}", data.name, contestants)


def missing(field: Field, data: Table) -> list[Result]:
    """Exact posterior with 20 % of the cells missing."""
    network, rows = learn(data, ChowLiuTAN()), data.with_missing(0.2)
    few = rows.take(np.arange(SLOW_ROWS))
    runs: dict[str, Callable[[], Any]] = {}
    if (agrum := field.pyagrum) is not None:
        for engine in ("LazyPropagation", "ShaferShenoyInference", "VariableElimination"):
            runs[f"pyAgrum {engine}, row by row"] = agrum.posteriors(network, few, engine)
    if (pgmpy := field.pgmpy) is not None:
        runs["pgmpy VariableElimination, row by row"] = pgmpy.posteriors(network, few)
        runs["pgmpy factors, pass written by hand, row by row"] = pgmpy.posteriors_by_hand(network, few)
    truth = network.posterior(few)
    for name, run in runs.items():
        _refuse_difference(name, run(), truth)
    contestants = [Contestant("marginbayes TAN", lambda: network.posterior(rows), len(rows))]
    contestants += [Contestant(name, run, SLOW_ROWS, wanted=300.0) for name, run in runs.items()]
    title = f"exact posterior with 20 % of the cells missing: {data.name} (answers agree to 1e-9)"
    return field.compare("missing", title, data.name, contestants)


def _refuse_difference(name: str, answer: Any, truth: Any) -> None:
    gap = float(np.abs(answer - truth).max())
    if not gap < 1e-9:
        raise SystemExit(f"{name} and marginbayes differ by {gap:.2g} on the same network: nothing to compare")


# -- the run


def entered(peer: Callable[[], P], skipped: bool) -> P | None:
    """The peer, or None and one printed sentence."""
    if skipped:
        return None
    try:
        return peer()
    except Absent as reason:
        print(reason)
        return None


def describe(field: Field) -> Iterator[str]:
    """Versions and threads of both sides."""
    blas = sorted({f"{p['internal_api']} {p['num_threads']}" for p in threadpool_info() if p["user_api"] == "blas"})
    yield f"Python {sys.version.split()[0]}, NumPy {np.__version__}, {os.cpu_count()} processors"
    yield f"marginbayes {version('marginbayes')}: 1 thread (n_jobs=None); threads of matrix products: {', '.join(blas)}"
    for peer in (field.sklearn, field.pyagrum, field.pgmpy, field.weka):
        if peer is not None:
            yield peer.describe()


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="data sets for the fits")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to compare")
    parser.add_argument("--skip", nargs="+", choices=PEERS, default=[], help="peers to leave out")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each contestant")
    parser.add_argument("--seconds", type=float, default=15.0, help="after which a contestant is not run again")
    parser.add_argument("--quick", action="store_true", help=f"only the sets {' and '.join(QUICK)}")
    parser.add_argument("--slow", action="store_true", help="also pgmpy's TAN, which takes minutes")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    return parser.parse_args()


def run(field: Field, sets: Sequence[str], parts: Sequence[str]) -> Iterator[Result]:
    """All results, each printed as it comes."""
    if "fit" in parts:
        for name in sets:
            yield from fit_encoded(field, table(name))
    if "frame" in parts:
        for name in sets:
            if name in FRAMES:
                yield from fit_frames(field, table(name))
    if "predict" in parts:
        yield from predict(field, table("letter"))
    if "missing" in parts:
        yield from missing(field, table("letter"))


def main() -> None:
    """Print all tables."""
    chosen = arguments()
    # pyAgrum warns about more than ten classes, pgmpy about its own future.
    warnings.simplefilter("ignore")
    field = Field(
        entered(Sklearn, "sklearn" in chosen.skip),
        entered(Pyagrum, "pyagrum" in chosen.skip),
        entered(Pgmpy, "pgmpy" in chosen.skip),
        entered(Weka, "weka" in chosen.skip),
        chosen.rounds,
        chosen.seconds,
        chosen.slow,
    )
    about = list(describe(field))
    print("\n".join(about))
    results = list(run(field, QUICK if chosen.quick else chosen.sets, chosen.parts))
    summary(results)
    if chosen.json:
        found = {"about": about, "results": [asdict(result) for result in results]}
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
