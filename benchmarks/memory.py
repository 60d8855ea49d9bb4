"""Peak memory of a fit, beside the data and the tables it works on.

Counted is every array and object that Python allocates between the start and the end of structure and parameter
learning on encoded rows (tracemalloc, to which NumPy reports), the tables of the network included. Not counted are
buffers inside the matrix product library, which do not depend on the data. "total" adds the encoded rows, which are
there before; it should stay below twice (encoded rows + tables). "from a frame" is the same for
`BayesNetClassifier.fit` on a frame of categories, beside what the frame takes itself, for information.
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
SETS: dict[str, Callable[[], Table]] = {
    "letter": lambda: table("letter"),
    "usps": lambda: table("usps"),
    "1000000x50": lambda: random_tan("1000000x50", 1_000_000, (5, *[4] * 50)),
    "200000x20, 40 levels": lambda: random_tan("200000x20, 40 levels", 200_000, (5, *[40] * 20)),
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
    return {
        "set": data.name,
        "fit": name,
        "rows MB": data.rows.codes.nbytes / MEGABYTE,
        "tables MB": tables / MEGABYTE,
        "extra MB": extra / MEGABYTE,
        "total MB": total / MEGABYTE,
        "ratio": total / base,
        "seconds": seconds,
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
    print(
        f"{'set':<22}{'fit':>5}{'rows MB':>10}{'tables MB':>11}{'extra MB':>10}{'total MB':>10}{'ratio':>8}  (wanted: < 2)"
    )
    for name in chosen.sets:
        data = SETS[name]()
        for structure in STRUCTURES:
            r = encoded(data, structure)
            records.append(r)
            print(
                f"{r['set']:<22}{r['fit']:>5}{r['rows MB']:10.2f}{r['tables MB']:11.2f}{r['extra MB']:10.2f}"
                f"{r['total MB']:10.2f}{r['ratio']:8.2f}{'  MISSED' if r['ratio'] >= 2 else ''}",
                flush=True,
            )
        print(from_frame(data), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
