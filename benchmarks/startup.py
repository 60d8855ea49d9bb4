"""Seconds until marginbayes has done something for the first time: each line is a process of its own.

"no caches" is the worst fresh install: no module of any package has been compiled to bytecode, and numba has compiled
nothing. "bytecode" is what pip leaves behind (it compiles modules), still without anything from numba. The time of
Python's own start is not counted; importing NumPy, SciPy and scikit-learn is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = "import numpy as np; r = np.random.default_rng(0); X = r.integers(0, 4, (99, 4)) * 1.0; y = r.integers(0, 3, 99)"
MAKE = f"from marginbayes import BayesNetClassifier; {DATA}; clf = BayesNetClassifier('tan', discretizer=None)"
MISSING = "X[::3, 0] = np.nan"  # the root of the tree, which others depend on
# What is done before the clock starts, what is timed, and how long it may take (None: no limit has been set).
JOBS = {
    "import marginbayes": ("", "import marginbayes", 0.5),
    "import scikit-learn's base class alone, for comparison": ("", "import sklearn.base", None),
    "import, first naive Bayes fit": ("", f"{MAKE.replace('tan', 'nb')}.fit(X, y)", 3.0),
    "import, first TAN fit": ("", f"{MAKE}.fit(X, y)", 3.0),
    "first TAN predict_proba, after the fit": (f"{MAKE}.fit(X, y)", "clf.predict_proba(X)", None),
    "first TAN predict_proba with missing cells, after the fit": (
        f"{MAKE}.fit(X, y); {MISSING}",
        "clf.predict_proba(X)",
        None,
    ),
    "the same of 990,000 rows, which is compiled": (
        f"{MAKE}.fit(X, y); {MISSING}; X = np.repeat(X, 10000, axis=0)",
        "clf.predict_proba(X)",
        None,
    ),
    "first TAN-OMI-CR fit, after a TAN fit, which is compiled": (
        f"{MAKE}.fit(X, y); clf = BayesNetClassifier('tan-omi-cr', discretizer=None)",
        "clf.fit(X, y)",
        None,
    ),
}
PROGRAM = """
import sys, time
{before}
clock, processor = time.perf_counter(), time.process_time()
{job}
print(time.perf_counter() - clock, time.process_time() - processor, int("numba" in sys.modules))
"""


def once(before: str, job: str, bytecode: bool) -> tuple[float, float, bool]:
    """Seconds, processor seconds, and whether numba was loaded, in a fresh process with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder) / "numba")}
        if not bytecode:
            # Bytecode is looked for, and written, in this empty folder and nowhere else.
            environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(before=before, job=job)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"the job {job!r} failed:\n{done.stderr}")
    seconds, cpu, numba = done.stdout.split()
    return float(seconds), float(cpu), numba == "1"


def measure(runs: int) -> list[dict[str, object]]:
    """One record for each job and kind of cache, printed as it comes."""
    print(f"{'':<60}{'caches':>10}{'seconds':>9}{'cpu':>8}{'wanted':>8}  numba loaded")
    records: list[dict[str, object]] = []
    for name, (before, job, wanted) in JOBS.items():
        for caches in ("bytecode", "no caches"):
            times = [once(before, job, caches == "bytecode") for _ in range(runs)]
            seconds, cpu = min(t[0] for t in times), min(t[1] for t in times)
            verdict = "" if wanted is None else f"{wanted:8g}"
            mark = "  MISSED" if wanted is not None and seconds > wanted else ""
            numba = "yes" if times[0][2] else "no"
            print(f"{name:<60}{caches:>10}{seconds:9.3f}{cpu:8.3f}{verdict:>8}  {numba}{mark}", flush=True)
            records.append(
                {"job": name, "caches": caches, "seconds": seconds, "cpu": cpu, "wanted": wanted, "numba": numba}
            )
    return records


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="processes for each line; the best counts")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    chosen = parser.parse_args()
    records = measure(chosen.runs)
    if chosen.json:
        chosen.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
