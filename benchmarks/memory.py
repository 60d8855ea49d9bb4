"""Peak memory of a fit, beside the data and the tables it works on.

Counted is every array and object that Python allocates between the start and the end of structure and parameter
learning on encoded rows (tracemalloc, to which NumPy reports), the tables of the network included. Not counted are
buffers inside the matrix product library. "total" adds the encoded rows, which are there before; it should stay below
twice (encoded rows + tables). Sets with less than 1 MB of both are not judged: there, graphs and names weigh as much.
"from a frame" is what `BayesNetClassifier.fit` allocates beside a frame of categories.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _data import Table, random_tan, table

from marginbayes import BayesNetClassifier, Network
from marginbayes.parameters import MaximumLikelihood
from marginbayes.structure import ChowLiuTAN, NaiveBayes, StructureLearner

MEGABYTE = 1e6
JUDGED_MEGABYTES = 1
SETS: dict[str, Callable[[], Table]] = {
    "digits": lambda: table("digits"),
    "letter": lambda: table("letter"),
    "satimage": lambda: table("satimage"),
    "10000x196": lambda: table("10000x196"),
    "usps": lambda: table("usps"),
    "1000000x50, 10 classes": lambda: random_tan("1000000x50, 10 classes", 1_000_000, (10, *[4] * 50)),
    "1000000x50, 2 classes": lambda: random_tan("1000000x50, 2 classes", 1_000_000, (2, *[4] * 50)),
    "500000x30, 40 levels": lambda: random_tan("500000x30, 40 levels", 500_000, (3, *[40] * 30)),
}
STRUCTURES: dict[str, type[StructureLearner]] = {"nb": NaiveBayes, "tan": ChowLiuTAN}


def peak(job: Callable[[], Any]) -> tuple[Any, int, float]:
    """What a job returns, the most bytes it had allocated at once, and its seconds (tracing slows it down a little)."""
    tracemalloc.start()
    try:
        start = time.perf_counter()
        value = job()
        return value, tracemalloc.get_traced_memory()[1], time.perf_counter() - start
    finally:
        tracemalloc.stop()


def learn(data: Table, structure: StructureLearner) -> Network:
    """A network from encoded rows."""
    dag = structure.learn(data.schema, data.rows).dag
    return MaximumLikelihood().learn(data.schema, dag, data.rows).network


def encoded(data: Table, name: str) -> dict[str, Any]:
    """Record of one fit on encoded rows."""
    learn(data, NaiveBayes())  # so that modules that load at their first use are there
    network, extra, seconds = peak(lambda: learn(data, STRUCTURES[name]()))
    tables = sum(t.nbytes for t in network.tables)
    base = data.rows.codes.nbytes + tables
    total = data.rows.codes.nbytes + extra
    judged = base >= JUDGED_MEGABYTES * MEGABYTE
    return {
        "set": data.name,
        "fit": name,
        "rows MB": data.rows.codes.nbytes / MEGABYTE,
        "tables MB": tables / MEGABYTE,
        "extra MB": extra / MEGABYTE,
        "total MB": total / MEGABYTE,
        "ratio": total / base,
        "seconds": seconds,
        "missed": judged and total >= 2 * base,
    }


def from_frame(data: Table) -> str:
    """Sentence about a fit from a frame."""
    frame, labels = data.categories, data.labels
    _, extra, _ = peak(lambda: BayesNetClassifier("tan").fit(frame, labels))
    held = int(frame.memory_usage(deep=False).sum())
    return f"  {data.name}, TAN from a frame of {held / MEGABYTE:.1f} MB: {extra / MEGABYTE:.1f} MB more at the peak"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--json", type=Path, help="file to write the results to")
    chosen = parser.parse_args()
    records = []
    heads = ("rows MB", "tables MB", "extra MB", "total MB")
    print(f"{'set':<24}{'fit':>5}{''.join(f'{h:>11}' for h in heads)}{'ratio':>8}  (wanted: below 2)")
    for name in chosen.sets:
        data = SETS[name]()
        for structure in STRUCTURES:
            r = encoded(data, structure)
            records.append(r)
            numbers = "".join(f"{r[h]:11.2f}" for h in heads)
            print(f"{name:<24}{structure:>5}{numbers}{r['ratio']:8.2f}{'  MISSED' if r['missed'] else ''}", flush=True)
        print(from_frame(data), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
