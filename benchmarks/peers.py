"""marginbayes beside its peers, in one run: seconds, and how many times as fast.

Default settings and Laplace smoothing 1 on both sides. Contestants take turns and the best run of each counts. A ratio
above 1 says how many times as long the peer takes for a row; "wanted" is the ratio this project has set itself.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from _data import SETS, Table, table
from _peers import Absent, Pgmpy, Pyagrum, Sklearn, Weka
from _timing import Contestant, race
from threadpoolctl import threadpool_info

from marginbayes import BayesNetClassifier, Network
from marginbayes.data.rows import Rows
from marginbayes.parameters import MaximumLikelihood
from marginbayes.structure import ChowLiuTAN, NaiveBayes, StructureLearner

P = TypeVar("P")

QUICK = ("letter", "digits")
PARTS = ("fit", "frame", "predict", "missing")
SLOW_ROWS = 300  # for exact inference of the peers, which goes row by row
WANTED_PYAGRUM, WANTED_WEKA = 60.0, 10.0


@dataclass(frozen=True)
class Result:
    """One line of the printed tables."""

    part: str
    data: str
    contestant: str
    seconds: float
    cpu: float
    runs: int
    rows: int
    ratio: float
    cpu_ratio: float
    wanted: float | None

    @property
    def line(self) -> str:
        """Text of the line."""
        met = "" if self.wanted is None else f"{self.wanted:7g}  {'met' if self.ratio >= self.wanted else 'MISSED'}"
        speed = f"{self.rows / self.seconds:11,.0f}"
        return (
            f"  {self.contestant:<58}{self.seconds:10.4f}{self.cpu:10.4f}{self.runs:5d}{speed}"
            f"{self.ratio:9.1f}{self.cpu_ratio:9.1f}{met}"
        )


HEAD = f"  {'':<58}{'seconds':>10}{'cpu':>10}{'runs':>5}{'rows/s':>11}{'ratio':>9}{'cpu r.':>9}{'wanted':>7}"


@dataclass(frozen=True)
class Field:
    """The peers that are there, and how long to let them run."""

    sklearn: Sklearn | None
    pyagrum: Pyagrum | None
    pgmpy: Pgmpy | None
    weka: Weka | None
    rounds: int
    seconds: float
    slow: bool

    def race(self, part: str, title: str, data: str, contestants: Sequence[Contestant]) -> list[Result]:
        """Run and print one table; the first contestant is the one that the others are compared with."""
        print(f"\n{title}\n{HEAD}", flush=True)
        timings = race(contestants, self.rounds, self.seconds)
        ours, unit = timings[0], contestants[0].rows
        results = []
        for who, time in zip(contestants, timings, strict=True):
            share = unit / who.rows
            ratio, cpu_ratio = share * time.seconds / ours.seconds, share * time.cpu / max(ours.cpu, 1e-9)
            results.append(
                Result(part, data, who.name, time.seconds, time.cpu, time.runs, who.rows, ratio, cpu_ratio, who.wanted)
            )
            print(results[-1].line, flush=True)
        return results


# -- our side


def learn(data: Table, structure: StructureLearner) -> Network:
    """A network from encoded rows."""
    dag = structure.learn(data.schema, data.rows).dag
    return MaximumLikelihood().learn(data.schema, dag, data.rows).network


# -- the parts


def fit_encoded(field: Field, data: Table) -> list[Result]:
    """TAN from data in the form in which each side counts."""
    n = len(data.rows)
    contestants = [Contestant("marginbayes TAN", lambda: learn(data, ChowLiuTAN()), n)]
    with_target = data.name != "satimage"
    if (agrum := field.pyagrum) is not None:
        ready: list[Any] = []

        def load() -> None:
            ready[:] = [agrum.loaded(data)]

        wanted = WANTED_PYAGRUM if with_target else None
        contestants += [
            Contestant("pyAgrum, rule of its TAN classifier", lambda: agrum.learn_tan(data, ready[0]), n, load, wanted),
            Contestant("pyAgrum, TAN by hand over its counts", lambda: agrum.learn_tan_by_hand(data, ready[0]), n, load),
        ]
    if (weka := field.weka) is not None:
        path = weka.write(data)
        instances = weka.read(path)
        path.unlink()
        weka.warm_up(instances)
        wanted = WANTED_WEKA if with_target else None
        contestants.append(Contestant("Weka BayesNet with TAN", lambda: weka.fit(instances), n, wanted=wanted))
    if field.pgmpy is not None and field.slow:
        contestants.append(Contestant("pgmpy TreeSearch", lambda: field.pgmpy.learn_tan(data), n))
    results = field.race("fit", f"TAN fit, encoded data: {data.name} ({data.size}; {data.source})", data.name, contestants)
    return results + (_fit_naive_bayes(field, data) if data.name == "letter" else [])


def _fit_naive_bayes(field: Field, data: Table) -> list[Result]:
    contestants = [Contestant("marginbayes naive Bayes", lambda: learn(data, NaiveBayes()), len(data.rows))]
    if (peer := field.sklearn) is not None:
        contestants.append(
            Contestant(peer.title, lambda: peer.on_codes().fit(data.features, data.labels), len(data.rows))
        )
    return field.race("fit-nb", f"naive Bayes fit, encoded data: {data.name}", data.name, contestants)


def fit_frames(field: Field, data: Table) -> list[Result]:
    """TAN from data that has yet to be encoded."""
    n, frame, labels = len(data.rows), data.categories, data.labels
    contestants = [
        Contestant("marginbayes TAN, frame of categories", lambda: BayesNetClassifier("tan").fit(frame, labels), n)
    ]
    if (agrum := field.pyagrum) is not None:
        whole = data.frame[data.names[1:]]
        contestants.append(
            Contestant("pyAgrum TAN, frame of whole numbers", lambda: agrum.classifier("TAN").fit(whole, labels), n)
        )
    if (weka := field.weka) is not None:
        path = weka.write(data)
        weka.warm_up(weka.read(path))
        contestants.append(Contestant("Weka TAN, ARFF file", lambda: weka.fit(weka.read(path)), n))
    title = f"TAN fit, encoding included: {data.name} ({data.size}; {data.source})"
    return field.race("frame", title, data.name, contestants)


def predict(field: Field, data: Table) -> list[Result]:
    """predict_proba of complete rows: first on codes, then with encoding."""
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
        path = weka.write(data)
        instances = weka.read(path)
        path.unlink()
        weka.warm_up(instances)
        fitted = weka.fit(instances)
        contestants.append(Contestant("Weka TAN", lambda: fitted.distributionsForInstances(instances), n))
    return field.race("predict", f"predict_proba, encoded data: {data.name}", data.name, contestants)


def _predict_frames(field: Field, data: Table) -> list[Result]:
    n, labels, everything = len(data.rows), data.labels, list(range(data.features.shape[1]))
    framed = BayesNetClassifier("tan").fit(data.categories, labels)
    coded = BayesNetClassifier("tan", categorical_features=everything).fit(data.features, labels)
    cut = BayesNetClassifier("tan").fit(data.features, labels)
    contestants = [
        Contestant("marginbayes TAN, frame of categories", lambda: framed.predict_proba(data.categories), n),
        Contestant("marginbayes TAN, array of whole numbers as categories", lambda: coded.predict_proba(data.features), n),
        Contestant("marginbayes TAN, array of numbers, discretised", lambda: cut.predict_proba(data.features), n),
    ]
    if (peer := field.sklearn) is not None:
        framed_peer = peer.on_frames().fit(data.categories, labels)
        coded_peer = peer.on_frames().fit(data.features, labels)
        contestants += [
            Contestant(f"{peer.title}, frame", lambda: framed_peer.predict_proba(data.categories), n),
            Contestant(f"{peer.title}, array", lambda: coded_peer.predict_proba(data.features), n),
        ]
    return field.race("predict-frame", f"predict_proba, encoding included: {data.name}", data.name, contestants)


def missing(field: Field, data: Table) -> list[Result]:
    """Exact posterior with 20 % of the cells missing."""
    network, rows = learn(data, ChowLiuTAN()), data.with_missing(0.2)
    few = rows.take(np.arange(SLOW_ROWS))
    truth = network.posterior(few)
    runs: dict[str, Callable[[], Any]] = {}
    if (agrum := field.pyagrum) is not None:
        for engine in ("LazyPropagation", "ShaferShenoyInference", "VariableElimination"):
            runs[f"pyAgrum {engine}, row by row"] = agrum.posteriors(network, few, engine)
    if (pgmpy := field.pgmpy) is not None:
        runs["pgmpy VariableElimination, row by row"] = pgmpy.posteriors(network, few)
        runs["pgmpy factors, pass written by hand, row by row"] = pgmpy.posteriors_by_hand(network, few)
    for name, run in runs.items():
        check(name, run(), truth)
    contestants = [
        Contestant("marginbayes TAN", lambda: network.posterior(rows), len(rows)),
        *(Contestant(name, run, SLOW_ROWS, wanted=300.0) for name, run in runs.items()),
    ]
    title = f"exact posterior with 20 % of the cells missing: {data.name} (all agree to 1e-9)"
    return field.race("missing", title, data.name, contestants)


def check(name: str, answer: Any, truth: Any) -> None:
    """Refuse to time what computes something else."""
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
    blas = ", ".join(sorted({f"{pool['internal_api']} {pool['num_threads']} threads" for pool in threadpool_info()}))
    yield f"Python {sys.version.split()[0]}, NumPy {np.__version__}, {os.cpu_count()} processors"
    yield f"marginbayes {version('marginbayes')}: n_jobs=None, 1 thread; inside matrix products {blas}"
    for peer in (field.sklearn, field.pyagrum, field.pgmpy, field.weka):
        if peer is not None:
            yield peer.describe()


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="data sets for the fits")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="what to compare")
    parser.add_argument("--skip", nargs="+", choices=["sklearn", "pyagrum", "pgmpy", "weka"], default=[], help="leave out")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each contestant")
    parser.add_argument("--seconds", type=float, default=15.0, help="after which a contestant is not run again")
    parser.add_argument("--quick", action="store_true", help=f"only the sets {' and '.join(QUICK)}")
    parser.add_argument("--slow", action="store_true", help="also pgmpy's TAN, which takes minutes")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    return parser.parse_args()


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
    tables = [table(name) for name in (QUICK if chosen.quick else chosen.sets)]
    results: list[Result] = []
    for part, run in (("fit", fit_encoded), ("frame", fit_frames)):
        if part in chosen.parts:
            for data in tables:
                results += run(field, data)
    letter = table("letter")
    for part, run in (("predict", predict), ("missing", missing)):
        if part in chosen.parts:
            results += run(field, letter)
    summary(results)
    if chosen.json:
        lines = {"about": about, "results": [asdict(r) for r in results]}
        chosen.json.write_text(json.dumps(lines, indent=1) + "\n")


def summary(results: Sequence[Result]) -> None:
    """Print how many of the ratios that are wanted were reached."""
    wanted = [r for r in results if r.wanted is not None]
    missed = [r for r in wanted if r.wanted is not None and r.ratio < r.wanted]
    print(f"\n{len(wanted) - len(missed)} of {len(wanted)} wanted ratios reached.")
    for r in missed:
        print(f"  missed: {r.part}, {r.data}, {r.contestant}: {r.ratio:.1f} of {r.wanted:g}")


if __name__ == "__main__":
    main()
