"""Likelihood and margin with a certificate: beside a generic solver, and over a grid of settings.

    python benchmarks/hybrid.py ratio                         # Clarabel through cvxpy at equal objective, minutes
    python benchmarks/hybrid.py grid --file grid.jsonl        # every set at hand, naive Bayes and TAN; resumes
    python benchmarks/hybrid.py grid --sets vehicle satimage  # some of them
    python benchmarks/hybrid.py table --file grid.jsonl       # what the file says, and the cells that miss

*Ratio*: both solve the same problem, and both objectives are printed. Clarabel's time is that of `Problem.solve`, which
brings the problem into the solver's form, and beside it that of the solver alone; ours is that of all of `learn`. The
settings are the default and three more. What takes less than a second is done up to ten times, and the quickest counts.
Times and factors are of the processor over all threads, but for the factor on the clock. Clarabel takes all cores, ours
one; on small sets its threads cost it more than they bring, and RAYON_NUM_THREADS=1 keeps it to one.

*Grid*: B in {.01, .1, 1, 10, 100} times target in {.1, 1, 2, 5, 10} nats; each cell starts at the network of the one
before it with the same B. A cell misses if its relative gap is above 1e-6 after ten minutes of processor time. Times
are of the processor, one thread.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from _exact import quickest
from _protocol import SETS, Encoded, folds

from marginbayes import Dag
from marginbayes.parameters import MarginHybrid
from marginbayes.parameters.certified import distinct_rows
from marginbayes.parameters.design import Design
from marginbayes.solvers import Moment
from marginbayes.solvers.coordinate import MarginRows

WANTED, TOL, LIMIT = 100.0, 1e-6, 600.0
MANY = 100_000  # steps: time is the limit
COSTS, TARGETS = (0.01, 0.1, 1.0, 10.0, 100.0), (0.1, 1.0, 2.0, 5.0, 10.0)
STRUCTURES = ("nb", "tan")
RATIO_CELLS = ((1.0, "auto"), (1.0, 1.0), (1.0, 5.0), (10.0, 5.0))  # the first is the default


def encoded(name: str) -> Encoded:
    """The training part of a set by the papers' protocol; of folds the first."""
    return next(iter(folds(name, 0))).encoded


# -- beside Clarabel


def differences(rows: MarginRows) -> tuple[sp.csr_array, sp.csr_array]:
    """Delta (pairs x weights) and the matrix that gives each pair its row's slack."""
    n, (cells, classes) = len(rows), rows.shape
    at = np.repeat(np.arange(n), classes)
    rival = np.tile(np.arange(classes), n)
    at, rival = (part[rival != rows.labels[at]] for part in (at, rival))
    line = np.repeat(np.arange(len(at)), rows.cells.shape[1])
    shape, ones = (len(at), cells * classes), np.ones(len(line))
    own, other = ((rows.cells[at] * classes + c[:, None]).ravel() for c in (rows.labels[at], rival))
    delta = sp.csr_array((ones, (line, own)), shape) - sp.csr_array((ones, (line, other)), shape)
    return delta, sp.csr_array((np.ones(len(at)), (np.arange(len(at)), at)), (len(at), n))


def table_rows(design: Design) -> list[np.ndarray]:
    """For each family the numbers of its weights, as rows of its table x levels."""
    numbers, found, start = np.arange(np.prod(design.shape)).reshape(design.shape), [], 0
    for i, size in zip(design.families, design.sizes, strict=True):
        part = numbers[start : start + size]
        levels = design.cardinalities[i]
        found.append(part if i == 0 else part.reshape(-1, levels, design.shape[1]).swapaxes(1, 2).reshape(-1, levels))
        start += size
    return found


def counts(design: Design, rows: MarginRows) -> np.ndarray:
    """Counts with one added to each cell, flat."""
    out = np.ones(design.shape)
    for column in rows.cells.T:
        np.add.at(out, (column, rows.labels), rows.row_weights)
    return out.ravel()


def by_clarabel(design: Design, rows: MarginRows, B: float, target: float, limit: float) -> dict[str, Any]:
    """Clarabel's optimum and the seconds of its solver."""
    import cvxpy as cp

    delta, slack_of = differences(rows)
    w, slack = cp.Variable(delta.shape[1]), cp.Variable(len(rows))
    rules = [delta @ w >= target - slack_of @ slack, slack >= 0]
    rules += [cp.log_sum_exp(cp.reshape(w[r.ravel()], r.shape, order="C"), axis=1) <= 0 for r in table_rows(design)]
    goal = -counts(design, rows) @ w + B * (rows.row_weights @ slack)
    problem = cp.Problem(cp.Minimize(goal), rules)

    def solved() -> tuple[float, str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return problem.solve(solver="CLARABEL", time_limit=limit), problem.status
            except cp.error.SolverError as error:
                return float("nan"), f"failed after {limit:g} s at most: {error}"

    (value, status), clock, cpu = quickest(solved)
    # The solver tells the time of the clock; this run had a share of the processor.
    alone = cpu if np.isnan(value) else problem.solver_stats.solve_time * cpu / clock
    return {"status": status, "value": value, "cpu": cpu, "clock": clock, "alone": alone}


def ratio(names: list[str], structures: list[str], cells: list[tuple[float, float | str]], limit: float) -> None:
    """Print both times for each set, structure and setting; `limit` is of the clock."""
    for name, structure in product(names, structures):
        data = encoded(name)
        dag = data.graph(structure)
        design = Design.of(dag, data.train)
        rows = distinct_rows(design)
        # The compiler's time does not count, nor that of loading what it has kept: a whole run uses all of it.
        MarginHybrid(10.0, 5.0).learn(data.schema, dag, data.train)
        for B, target in cells:
            found, clock, cpu = quickest(partial(MarginHybrid(B, target).learn, data.schema, dag, data.train))
            ours = found.certificate
            peer = by_clarabel(design, rows, B, ours.evidence["target"], limit)
            times = peer["cpu"] / cpu
            least = "" if peer["status"].startswith("optimal") else "at least "  # the peer did not finish
            print(
                f"{name:<10}{structure:<5}B={B:<5g}target={target:<5}"
                f"ours {ours.objective:14.6f} gap {ours.gap:.1e} in {cpu:7.4f} s | "
                f"Clarabel {peer['value']:14.6f} in {peer['cpu']:8.2f} s, {peer['status']} | "
                f"{least}{times:6.0f} x {'reached' if times >= WANTED else 'MISSED'}, "
                f"on the clock {peer['clock'] / clock:6.0f} x, solver alone {peer['alone'] / cpu:6.0f} x",
                flush=True,
            )


# -- the grid


def cell(data: Encoded, dag: Dag, B: float, target: float, start: Any, limit: float) -> tuple[Any, dict[str, Any]]:
    """The network of one setting, and what it took."""
    began, steps = time.process_time(), []

    def watch(moment: Moment) -> None:
        steps.append(moment)
        if time.process_time() - began > limit:
            raise KeyboardInterrupt

    learner = MarginHybrid(B, target, tol=TOL, max_iter=MANY, callback=watch)
    found = learner.learn(data.schema, dag, data.train, start=start)
    proof = found.certificate
    numbers = {"objective": proof.objective, "bound": proof.bound, "gap": proof.gap, "steps": len(steps)}
    status = "time limit" if proof.status == "interrupted" else proof.status
    return found.network, numbers | {"status": status, "cpu": time.process_time() - began}


def grid(names: list[str], structures: list[str], cells: list[tuple[float, float]], file: Path, limit: float) -> None:
    """Append a line for each cell that the file does not have yet."""
    done = {(r["set"], r["structure"], r["B"], r["target"]) for r in records(file)}
    for name, structure in product(names, structures):
        missing = [c for c in cells if (name, structure, *c) not in done]
        if not missing:
            continue
        data = encoded(name)
        dag = data.graph(structure)
        MarginHybrid(max_iter=1).learn(data.schema, dag, data.train)  # the compiler's time does not count
        start, last = None, None
        for B, target in missing:
            start = start if last == B else None
            start, numbers = cell(data, dag, B, target, start, limit)
            last = B
            line = {"set": name, "structure": structure, "rows": len(data.train), "B": B, "target": target} | numbers
            with file.open("a") as out:
                out.write(json.dumps(line) + "\n")
            print(
                f"{name:<14}{structure:<5}B={B:<5g}target={target:<5g}gap {line['gap']:.1e} {line['cpu']:8.2f} s",
                flush=True,
            )


def records(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file; none if there is no file."""
    if file.exists():
        yield from map(json.loads, file.read_text().splitlines())


def table(file: Path) -> None:
    """Print a line for each set in Markdown, small ones first, and the cells that miss."""
    by_set: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for record in records(file):
        by_set[record["set"]][record["structure"]].append(record)
    print("| set | rows | naive Bayes: certified, median s, slowest s (B, target) | TAN |")
    print("|---|---|---|---|")
    rows = {name: next(iter(parts.values()))[0]["rows"] for name, parts in by_set.items()}
    for name in sorted(by_set, key=lambda name: (rows[name], name)):
        parts = by_set[name]
        print(f"| {name} | {rows[name]} | {_summary(parts['nb'])} | {_summary(parts['tan'])} |")
    every = [r for parts in by_set.values() for lines in parts.values() for r in lines]
    missed = [r for r in every if _misses(r)]
    print(f"\n{len(every) - len(missed)} of {len(every)} cells certified at {TOL:g}")
    for r in missed:
        setting = f"B={r['B']:g} target={r['target']:g}"
        print(f"missed: {r['set']} {r['structure']} {setting}: gap {r['gap']:.1e}, {r['cpu']:.0f} s")


def _misses(record: dict[str, Any]) -> bool:
    return record["gap"] > TOL or record["cpu"] > LIMIT


def _summary(lines: list[dict[str, Any]]) -> str:
    if not lines:
        return ""
    slowest = max(lines, key=lambda r: r["cpu"])
    median = float(np.median([r["cpu"] for r in lines]))
    good = sum(not _misses(r) for r in lines)
    where = f"({slowest['B']:g}, {slowest['target']:g})"
    return f"{good} / {len(lines)}, {median:.2f}, {slowest['cpu']:.1f} {where}"


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ratio", "grid", "table"))
    parser.add_argument("--sets", nargs="+", default=None)
    parser.add_argument("--structures", nargs="+", default=list(STRUCTURES), choices=STRUCTURES)
    parser.add_argument("--costs", nargs="+", type=float, default=COSTS)
    parser.add_argument("--targets", nargs="+", type=float, default=TARGETS)
    parser.add_argument("--file", type=Path, default=Path("hybrid-grid.jsonl"))
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="seconds for a cell of the grid (processor), or for Clarabel (clock)"
    )
    arguments = parser.parse_args()
    cells = list(product(arguments.costs, arguments.targets))
    if arguments.what == "ratio":
        wanted = [
            cell for cell in RATIO_CELLS if cell[0] in arguments.costs and cell[1] in (*arguments.targets, "auto")
        ]
        ratio(arguments.sets or ["vehicle", "satimage"], arguments.structures, wanted, arguments.limit)
    elif arguments.what == "grid":
        grid(arguments.sets or list(SETS), arguments.structures, cells, arguments.file, arguments.limit)
    else:
        table(arguments.file)


if __name__ == "__main__":
    main()
