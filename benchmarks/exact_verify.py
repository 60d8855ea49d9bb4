"""How long certificates of soft margins take to verify, beside the searches that they come from.

    python benchmarks/exact_margin.py named --cpu --seconds 600 --keep searches --sets vehicle soybean-large
    python benchmarks/exact_verify.py --keep searches

Looks for the named instances in the folder of kept searches, makes the certificate of each and verifies all of it, in
a process of its own. Seconds are of the processor over all threads, those of the search as well; `document` is the time
to make the certificate, and its size that of the JSON file; the peak of memory is that of all of it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
from pathlib import Path
from typing import Any

from _exact import desired, encoded, timed
from exact_margin import NAMED, Instance

from marginbayes.structure import ExactMargin
from marginbayes.verification import verify

HEADER = (
    "set",
    "margin",
    "p",
    "status",
    "parts",
    "search, s",
    "document, s",
    "GB",
    "verify, s",
    "of the search",
    "peak GB",
)


def measured(instance: Instance, kept: Path) -> dict[str, Any]:
    """What the certificate of a kept search takes; it is not searched on."""
    data = encoded(instance[0])

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    learner = ExactMargin(instance[1], gamma=desired(instance[2]), checkpoint=kept, checkpoint_seconds=1e9)
    learner.callback = stop
    found = learner.learn(data.schema, data.rows).certificate
    assert found is not None
    document, _, making = timed(found.to_document)
    size = sum(len(part) for part in json.JSONEncoder().iterencode(document))
    _, _, seconds = timed(lambda: verify(document, data.rows.codes, data.rows.weights))  # raises what does not hold
    return {
        "status": found.status,
        "nodes": found.evidence["nodes"],
        "document": making,
        "size": size,
        "verify": seconds,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def row(instance: Instance, search: float, found: dict[str, Any]) -> str:
    """A line of the table."""
    cells = (
        *instance,
        found["status"],
        found["nodes"],
        f"{search:.1f}",
        f"{found['document']:.1f}",
        f"{found['size'] / 1e9:.3f}",
        f"{found['verify']:.1f}",
        f"{found['verify'] / search:.0%}",
        f"{found['peak'] / 1e9:.1f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    """Verify what was kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, required=True, metavar="FOLDER", help="of `exact_margin.py named --keep`")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="some sets; all by default")
    arguments = parser.parse_args()
    print(f"| {' | '.join(HEADER)} |\n|{'---|' * len(HEADER)}")
    for instance in NAMED:
        stem = arguments.keep / "-".join(map(str, instance))
        kept, spent = Path(f"{stem}.search"), Path(f"{stem}.spent")
        if kept.exists() and (not arguments.sets or instance[0] in arguments.sets):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                found = pool.apply(measured, (instance, kept))
            print(row(instance, json.loads(spent.read_text(encoding="utf-8"))["cpu"], found), flush=True)


if __name__ == "__main__":
    main()
