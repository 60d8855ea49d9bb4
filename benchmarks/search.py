"""Discriminative structure search: against a plain wrapper and Weka, and how its cost grows.

    python benchmarks/search.py                 # a few minutes with Weka (pip install "marginbayes[bench]")
    python benchmarks/search.py --without-weka
    MARGINBAYES_DATA=/path/to/data python benchmarks/search.py --mnist     # MNIST 14x14 instead

A *plain wrapper* fits and scores a new classifier for every candidate edge, as wrapper packages do. It is timed on one
round of candidates and multiplied by the number of rounds that greedy search takes.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any
from unittest.mock import patch

import numpy as np
from _data import Table
from _peers import Absent, Weka
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import KBinsDiscretizer

from marginbayes import BayesNetClassifier, Dag, datasets
from marginbayes.data.rows import Rows
from marginbayes.parameters import MaximumLikelihood
from marginbayes.structure import (
    KDB,
    BackwardJoin,
    ForwardJoin,
    Greedy,
    LocalSearch,
    OrderBased,
    SelectiveNaiveBayes,
    StructureResult,
    SuperParent,
)
from marginbayes.structure.engine import Engine

# R is not run here. Processor seconds of bnclassify 0.4.8's tan_hc on breast cancer 569x30 in 5 bins, run to the end,
# measured once on a machine of the same kind.
BNCLASSIFY_TAN_HC = 35.7
# The sets of the paper's Table 4, row UCI.
UCI = [
    "australian", "breast", "chess", "cleve", "corral", "crx", "diabetes", "flare", "german", "glass", "glass2",
    "heart", "hepatitis", "iris", "letter", "lymphography", "mofn-3-7-10", "pima", "shuttle-small", "vote", "satimage",
    "segment", "soybean-large", "vehicle", "waveform-21",
]  # fmt: skip
# Rows and features of the generated data.
SIZES = ((2500, 15), (5000, 15), (10000, 15), (5000, 30))


def five_bins(name: str, loader: Any) -> Table:
    """scikit-learn's data in five bins of equal width; constant columns left out."""
    X, y = loader(return_X_y=True)
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    codes = KBinsDiscretizer(5, encode="ordinal", strategy="uniform").fit_transform(X).astype(np.uint8)
    codes = np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T])
    codes = np.vstack([y[None], codes]).astype(np.uint8)
    return Table(name, Rows(codes, tuple(int(c.max()) + 1 for c in codes)), "scikit-learn")


def timed(learner: Any, table: Table, repeats: int = 3) -> tuple[float, StructureResult]:
    """Least processor seconds of several runs, and the result."""
    best, result = np.inf, None
    for _ in range(repeats):
        start = time.process_time()
        result = learner.learn(table.schema, table.rows)
        best = min(best, time.process_time() - start)
    return best, result


def plain_round(table: Table) -> float:
    """Processor seconds of one round of a plain wrapper: every edge that naive Bayes lacks, fitted and scored."""
    names, d = table.schema.names, len(table.schema.names) - 1
    pairs = [(a, b) for a in range(1, d + 1) for b in range(1, d + 1) if a != b]
    some = pairs[:: max(1, len(pairs) // 60)]
    start = time.process_time()
    for a, b in some:
        parents = [(), *((0, a) if i == b else (0,) for i in range(1, d + 1))]
        network = MaximumLikelihood().learn(table.schema, Dag(names, tuple(parents)), table.rows).network
        (network.log_joint(table.rows).argmax(axis=1) == table.rows.codes[0]).mean()
    return (time.process_time() - start) * len(pairs) / len(some)


def against_wrappers(table: Table, weka: Weka | None, elsewhere: float | None) -> None:
    """Greedy TAN-CR to the end, beside wrappers."""
    Greedy("cr").learn(table.schema, table.rows)  # compiled once
    seconds, result = timed(Greedy("cr"), table)
    rounds = len(result.path) + 1
    print(f"\n{table.name} ({table.size})")
    print(f"  greedy TAN-CR to the end: {seconds:.3f} s, {len(result.path)} edges, rate {result.score:.4f}")
    plain = plain_round(table) * rounds
    print(f"  plain wrapper, {rounds} rounds (estimated): {plain:9.2f} s = {plain / seconds:7.0f} x")
    if elsewhere:
        print(f"  bnclassify tan_hc (measured elsewhere): {elsewhere:9.2f} s = {elsewhere / seconds:7.0f} x")
    if weka is not None:
        data = weka.read(weka.write(table))
        search = weka._class("weka.classifiers.bayes.net.search.global.TAN")()
        classifier = weka._class("weka.classifiers.bayes.BayesNet")()
        classifier.setSearchAlgorithm(search)
        start = time.process_time()  # the virtual machine runs in this process
        classifier.buildClassifier(data)
        taken = time.process_time() - start
        print(f"  Weka TAN by leave-one-out, to the end:  {taken:9.2f} s = {taken / seconds:7.0f} x")


def candidates_of(learner: Any, table: Table) -> int:
    """How many candidate edges a search scores."""
    number, plain = 0, Engine.try_parents

    def counting(engine: Engine, child: int, kept: Any, candidates: Any, *others: Any) -> Any:
        nonlocal number
        number += len(candidates)
        return plain(engine, child, kept, candidates, *others)

    with patch.object(Engine, "try_parents", counting):
        learner.learn(table.schema, table.rows)
    return number


def growth() -> None:
    """What the docstrings say of the cost: how many candidates a learner scores, each in at most one pass."""
    searches = {
        "OMI-CR": OrderBased(),
        "OMI-CR, k=2": OrderBased(k=2),
        "greedy CR": Greedy("cr"),
        "greedy CL": Greedy("cl"),
        "greedy SM": Greedy("sm"),
        "hill climbing CR": LocalSearch("cr"),
        "BSEJ": BackwardJoin(),
    }
    # These score other things than the parents of one feature, which are not counted here.
    others = {
        "SuperParent": SuperParent(),
        "FSSJ": ForwardJoin(),
        "selective NB": SelectiveNaiveBayes(),
        "k-DB": KDB(2),
    }
    print(
        "\nHow the cost grows (generated data, 4 levels, 3 classes): processor seconds, candidates, and nanoseconds for"
    )
    print("one candidate and row, which stay about the same, or fall, where a candidate costs one pass or less")
    print(f"  {'':18}" + "".join(f"{f'{n}x{d}':^28}" for n, d in SIZES))
    tables = [generated(n, d) for n, d in SIZES]
    for name, learner in {**searches, **others}.items():
        cells = []
        for table in tables:
            seconds = timed(learner, table, 2)[0]
            cells.append(
                f"{seconds:8.3f} s" + (_per_candidate(learner, table, seconds) if name in searches else " " * 18)
            )
        print(f"  {name:18}" + "".join(cells), flush=True)


def _per_candidate(learner: Any, table: Table, seconds: float) -> str:
    number = candidates_of(learner, table)
    return f"{number:8} {1e9 * seconds / number / len(table.rows):6.2f}   "


def generated(n: int, d: int) -> Table:
    """Rows in which every feature tells a little about the class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, n)
    features = (rng.integers(0, 4, (d, n)) + labels * (rng.random((d, n)) < 0.2)) % 4
    return Table(f"{n}x{d}", Rows(np.vstack([labels, features]).astype(np.uint8), (3, *(4,) * d)), "generated")


def in_full(learner: Any, table: Table) -> float:
    """Processor seconds of a search that scores every candidate to the end, as the paper's greedy search does."""
    plain = Engine.try_parents

    def whole(engine: Engine, child: int, kept: Any, candidates: Any, limit: float, rest: Any = None) -> Any:  # noqa: ARG001
        rest = engine.rest(engine.without(child)) if rest is None else rest
        return np.array([plain(engine, child, kept, [j], np.inf, rest)[0] for j in candidates])

    with patch.object(Engine, "try_parents", whole):
        return timed(learner, table, 1)[0]


def order_against_greedy(names: list[str]) -> None:
    """Table 4 of Pernkopf & Bilmes (2010): the order-based heuristic takes 2 to 11 % of the time of greedy search.

    Their greedy search re-evaluates all edges in full each time (section 4.4.1). Ours gives most of them up early, so
    OMI-CR is compared with both.
    """
    print("\nOrder-based against greedy, processor seconds (the paper: 2 to 11 % of the time of greedy search)")
    print(
        f"  {'':15} {'greedy':>9} {'in full':>9} {'OMI-CR':>9}   share of the time  {'in full':>8}  of the candidates"
    )
    sums = np.zeros(5)
    for name in names:
        try:
            data = datasets.load(name, complete=True)
        except (ValueError, OSError) as error:
            print(f"  {name}: left out, {error}")
            continue
        clf = BayesNetClassifier("nb").fit(data.X, data.y)
        codes = clf._rows(data.X).codes.copy()
        codes[0] = np.searchsorted(clf.classes_, data.y)
        table = Table(name, Rows(codes, clf.schema_.cardinalities), data.source)
        learners = Greedy("cr"), OrderBased()
        seconds = [timed(learner, table)[0] for learner in learners]
        numbers = [candidates_of(learner, table) for learner in learners]
        found = np.array([seconds[0], in_full(learners[0], table), seconds[1], *numbers])
        _print_shares(name, found)
        sums += found
    _print_shares("all", sums)


def _print_shares(name: str, found: np.ndarray) -> None:
    greedy, whole, order, many, few = found
    print(
        f"  {name:15} {greedy:9.4f} {whole:9.4f} {order:9.4f}   {order / greedy:17.1%}  {order / whole:8.1%}"
        f"  {few / many:17.1%}",
        flush=True,
    )


def mnist() -> None:
    """MNIST 14x14, the paper's 60000 / 10000 split, both cores."""
    X, y, X_test, y_test = datasets.load("mnist-14x14").split()
    for learner, published in ((OrderBased(n_jobs=-1), 92.01), (OrderBased(k=2, n_jobs=-1), 92.69)):
        start, cpu = time.perf_counter(), time.process_time()
        clf = BayesNetClassifier(learner).fit(X, y)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        rate = 100 * clf.score(X_test, y_test)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"  {learner}: {seconds:.0f} s on the clock, {cpu:.0f} s of processors, test {rate:.2f} % "
            f"(paper {published}), "
            f"{len(clf.structure_result_.path)} changes"
        )
        print(f"  peak memory of the process so far {peak:.2f} GB", flush=True)


def main() -> None:
    """Everything that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without-weka", action="store_true")
    parser.add_argument("--orders", action="store_true", help="only order-based search against greedy search")
    parser.add_argument("--mnist", action="store_true", help="MNIST instead; needs the data home")
    args = parser.parse_args()
    if args.mnist:
        mnist()
        return
    if args.orders:
        order_against_greedy(UCI)
        return
    weka = None
    if not args.without_weka:
        try:
            weka = Weka()
            print(weka.describe())
        except Absent as error:
            print(error)
    against_wrappers(five_bins("breast-cancer", load_breast_cancer), weka, BNCLASSIFY_TAN_HC)
    against_wrappers(five_bins("digits", load_digits), None, None)
    growth()
    order_against_greedy(UCI)


if __name__ == "__main__":
    main()
