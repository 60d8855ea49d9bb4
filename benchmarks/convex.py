"""Margin learners with certificates, beside generic solvers and scikit-learn, at equal objective.

    python benchmarks/convex.py              # published, separable and markov, some minutes
    python benchmarks/convex.py mnist        # MNIST 14x14, 60,000 rows; needs the data home

*Published problem*: `MarginConvex(method="exact")` beside Clarabel (through cvxpy) and IPOPT (through CasADi), where
they are installed, on naive Bayes over 2000 rows of satimage in four levels of equal frequency: not separable, so that
there is an optimum. A peer's time is that of its solver alone, without building the problem; ours is that of `learn`,
all included, the quickest of up to ten times, as long as they take less than a second together.

*MNIST*: the time and the peak memory of a process that does nothing else.

*Separable rows*: where Clarabel stops, by its tolerance.

*Markov network*: `MarginMarkov` beside `LinearSVC(multi_class="crammer_singer")` on the same one-hot features. The peer
runs to its tolerance; ours is timed until its objective is as small, and until its certificate closes.

Times are of the processor. `--json FILE` writes the numbers.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from _data import Table, table
from _exact import quickest

from marginbayes import Dag
from marginbayes.data.rows import Rows
from marginbayes.parameters.certified import distinct_rows
from marginbayes.parameters.convex import MarginConvex
from marginbayes.parameters.design import Design
from marginbayes.parameters.markov import MarginMarkov
from marginbayes.solvers import Moment
from marginbayes.solvers.coordinate import MarginRows

WANTED = 100.0
# Relative gap of MarginMarkov, and how far apart objectives are that count as equal.
TOL = 1e-6


def naive(data: Table) -> Dag:
    """Naive Bayes over the table's variables."""
    return Dag.naive(data.names)


def quartiles(data: Table, n: int) -> Table:
    """The first rows with each feature in at most four levels of about equal frequency."""
    codes = data.rows.codes[:, :n].astype(np.int64)
    for i in range(1, len(codes)):
        shares = np.cumsum(np.bincount(codes[i])) / n
        codes[i] = np.unique(np.minimum(3, (4 * (shares - 1e-9)).astype(int))[codes[i]], return_inverse=True)[1]
    cards = tuple(int(line.max()) + 1 for line in codes)
    return Table(f"{data.name}, {n} rows in quartiles", Rows(codes.astype(np.uint8), cards), data.source)


def processor(job: Callable[[], Any]) -> tuple[Any, float, float]:
    """What a job returns, its seconds of the processor and on the clock."""
    cpu, clock = time.process_time(), time.perf_counter()
    value = job()
    return value, time.process_time() - cpu, time.perf_counter() - clock


# -- the published problem


def differences(rows: MarginRows) -> tuple[sp.csr_array, sp.csr_array]:
    """Delta (pairs x weights) and the matrix that gives each pair its row's slack."""
    n, (cells, classes) = len(rows), rows.shape
    pairs = [(r, c) for r in range(n) for c in range(classes) if c != rows.labels[r]]
    at, rival = (np.array(part) for part in zip(*pairs, strict=True))
    used = rows.cells[at]
    line = np.repeat(np.arange(len(at)), used.shape[1])
    own = (used * classes + rows.labels[at][:, None]).ravel()
    other = (used * classes + rival[:, None]).ravel()
    ones = np.ones(len(line))
    shape = (len(at), cells * classes)
    delta = sp.csr_array((ones, (line, own)), shape) - sp.csr_array((ones, (line, other)), shape)
    return delta, sp.csr_array((np.ones(len(at)), (np.arange(len(at)), at)), (len(at), n))


def table_rows(design: Design) -> list[np.ndarray]:
    """For each family the numbers of its weights, as rows of its table x levels."""
    numbers = np.arange(np.prod(design.shape)).reshape(design.shape)
    found, start = [], 0
    for i, size in zip(design.families, design.sizes, strict=True):
        part = numbers[start : start + size]
        found.append(part.reshape(1, -1) if i == 0 else part.T)
        start += size
    return found


def by_clarabel(design: Design, rows: MarginRows, tol: float = 1e-8) -> dict[str, Any]:
    """Clarabel on (14) with B = 1."""
    import cvxpy as cp

    delta, slack_of = differences(rows)
    w, gamma, slack, term = cp.Variable(delta.shape[1]), cp.Variable(), cp.Variable(len(rows)), cp.Variable()
    rules = [delta @ w >= gamma - slack_of @ slack, slack >= 0, cp.power(gamma, -2) <= 2 * term]
    rules += [cp.log_sum_exp(cp.reshape(w[r.ravel()], r.shape, order="C"), axis=1) <= 0 for r in table_rows(design)]
    problem = cp.Problem(cp.Minimize(term + rows.row_weights @ slack), rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        _, cpu, _ = processor(lambda: problem.solve(solver="CLARABEL", tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol))
    seconds = float(problem.solver_stats.solve_time)
    share = seconds / max(seconds, float(problem.compilation_time or 0.0) + seconds)
    found = {"name": f"Clarabel, tolerance {tol:g}", "status": problem.status, "gamma": float(gamma.value)}
    return found | {"objective": float(problem.value), "cpu": cpu * share, "seconds": seconds}


def by_ipopt(design: Design, rows: MarginRows) -> dict[str, Any]:
    """IPOPT on (14) with B = 1; first and second derivatives by CasADi."""
    import casadi as ca

    delta, slack_of = differences(rows)
    w, gamma, slack = ca.MX.sym("w", delta.shape[1]), ca.MX.sym("gamma"), ca.MX.sym("slack", len(rows))
    margins = ca.DM(delta.tocsc()) @ w - gamma + ca.DM(slack_of.tocsc()) @ slack
    groups = [line for part in table_rows(design) for line in part]
    at, of = np.repeat(np.arange(len(groups)), [len(g) for g in groups]), np.concatenate(groups)
    sums = ca.DM(sp.csc_array((np.ones(len(of)), (at, of)), (len(groups), delta.shape[1]))) @ ca.exp(w)
    problem = {"x": ca.vertcat(w, gamma, slack), "g": ca.vertcat(margins, sums)}
    problem["f"] = 1 / (2 * gamma**2) + ca.dot(ca.DM(rows.row_weights), slack)
    quiet = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-8}
    solver = ca.nlpsol("solver", "ipopt", problem, quiet)
    found, cpu, seconds = processor(
        lambda: solver(
            x0=np.concatenate([np.full(delta.shape[1], -3.0), [1.0], np.full(len(rows), 2.0)]),
            lbx=np.concatenate([np.full(delta.shape[1], -1e3), [1e-6], np.zeros(len(rows))]),
            lbg=np.concatenate([np.zeros(delta.shape[0]), np.full(len(groups), -np.inf)]),
            ubg=np.concatenate([np.full(delta.shape[0], np.inf), np.ones(len(groups))]),
        )
    )
    status = solver.stats()["return_status"]
    margin = float(found["x"][delta.shape[1]])
    return {"name": "IPOPT", "status": status, "gamma": margin, "objective": float(found["f"])} | {
        "cpu": cpu,
        "seconds": seconds,
    }


def published(data: Table) -> list[dict[str, Any]]:
    """Our exact method and the peers that are there, on one set."""
    print(f"\nPublished problem, naive Bayes, {data.name} ({data.source})")
    dag = naive(data)
    MarginConvex().learn(data.schema, dag, data.rows)  # the compiler's time does not count
    result, seconds, cpu = quickest(lambda: MarginConvex().learn(data.schema, dag, data.rows))
    found = result.certificate
    records = [
        {"name": "MarginConvex", "status": found.status, "objective": found.objective, "bound": found.bound}
        | {"cpu": cpu, "seconds": seconds, "gamma": found.evidence["gamma"]}
    ]
    design = Design.of(dag, data.rows)
    rows = distinct_rows(design)
    for module, peer in (("cvxpy", by_clarabel), ("casadi", by_ipopt)):
        if importlib.util.find_spec(module) is None:
            print(f"  {module} is not installed; its line is left out")
        else:
            records.append(peer(design, rows))
    for record in records:
        ratio = record["cpu"] / records[0]["cpu"]
        verdict = "" if record is records[0] else f"{WANTED:8g}  {'reached' if ratio >= WANTED else 'MISSED'}"
        print(
            f"  {record['name']:<28}{record['objective']:16.7f}{record['cpu']:10.3f} s{ratio:9.1f}{verdict}"
            f"   {record['status']}"
        )
    return records


def separable() -> list[dict[str, Any]]:
    """Where Clarabel stops on rows that can be separated."""
    data = table("digits")
    small = Table("digits, 60 rows", Rows(data.rows.codes[:, :60], data.rows.cardinalities), data.source)
    dag = naive(small)
    found = MarginConvex().learn(small.schema, dag, small.rows).certificate
    print(f"\nSeparable rows, naive Bayes, {small.name}\n  MarginConvex: {found.status}")
    if importlib.util.find_spec("cvxpy") is None:
        print("  cvxpy is not installed; its lines are left out")
        return []
    design = Design.of(dag, small.rows)
    records = [by_clarabel(design, distinct_rows(design), tol) for tol in (1e-6, 1e-8, 1e-10)]
    for r in records:
        print(f"  {r['name']:<28} value {r['objective']:.2e}, gamma {r['gamma']:8.1f}   {r['status']}")
    return records


# -- the Markov network


def one_hot(rows: MarginRows) -> sp.csr_array:
    """The rows as one-hot features, one column for each cell."""
    n, families = rows.cells.shape
    starts = np.arange(0, n * families + 1, families, dtype=np.int32)
    return sp.csr_array((np.ones(n * families), rows.cells.ravel(), starts), (n, rows.shape[0]))


def markov(data: Table, C: float) -> dict[str, Any]:
    """MarginMarkov beside scikit-learn's machine of Crammer and Singer, naive Bayes."""
    from sklearn.svm import LinearSVC

    dag = naive(data)
    design = Design.of(dag, data.rows)
    rows = distinct_rows(design)
    X = one_hot(rows)
    peer = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-4, max_iter=10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, peer_cpu, _ = processor(lambda: peer.fit(X, rows.labels, sample_weight=rows.row_weights))
    weights = peer.coef_.T if len(peer.coef_) > 1 else np.hstack([-peer.coef_.T / 2, peer.coef_.T / 2])
    scores = X @ weights
    own = scores[np.arange(len(rows)), rows.labels].copy()
    scores[np.arange(len(rows)), rows.labels] = -np.inf
    missed = rows.row_weights @ np.maximum(0.0, 1 - own + scores.max(axis=1))
    theirs = float((weights**2).sum() / 2 + C * missed)
    MarginMarkov(C, max_iter=10, normalize="plain").learn(data.schema, dag, data.rows)
    began, reached = time.process_time(), []

    def watch(moment: Moment) -> None:
        if moment.objective <= theirs * (1 + TOL) and not reached:
            reached.append(time.process_time() - began)

    found = MarginMarkov(C, tol=TOL, callback=watch, normalize="plain").learn(data.schema, dag, data.rows).certificate
    total = time.process_time() - began
    ours = reached[0] if reached else float("nan")
    print(
        f"  Markov network, {data.name:<10} C={C:<5g} LinearSVC {theirs:14.6f} in {peer_cpu:8.2f} s | "
        f"equal after {ours:7.2f} s: {peer_cpu / ours:6.1f} x | "
        f"certified {found.objective:14.6f}, gap {found.gap:.1e} in {total:7.2f} s"
    )
    return {"set": data.name, "C": C, "peer": theirs, "peer cpu": peer_cpu, "cpu to equal": ours} | {
        "objective": found.objective,
        "bound": found.bound,
        "cpu": total,
    }


# -- MNIST, in a process of its own so that its memory can be told


def mnist_child() -> None:
    """Print the numbers of one fit to the 60,000 training images as JSON; all that a user does counts."""
    from marginbayes import BayesNetClassifier, datasets

    X, y, X_test, y_test = datasets.load("mnist-14x14").split()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    clf, cpu, seconds = processor(lambda: BayesNetClassifier("nb", MarginConvex()).fit(X, y))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = clf.parameter_result_.certificate
    loss = 1 / (found.evidence["B"] * found.evidence["gamma"] ** 3)
    numbers = {"objective": found.objective, "bound": found.bound, "gap": found.gap, "status": found.status}
    numbers |= {"L": loss, "cpu": cpu, "seconds": seconds, "peak MiB": peak, "before MiB": before}
    print(json.dumps(numbers | {"accuracy": clf.score(X_test, y_test)}))


def mnist() -> dict[str, Any]:
    """The same from a fresh process."""
    print("\nPublished problem, naive Bayes, MNIST 14x14, 60,000 rows (wanted: below 1024 MiB)")
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), "mnist-child"], capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"  L = {found['L']:.5f}, gap {found['gap']:.1e}, {found['status']}\n  {found['cpu']:.0f} s of the processor, "
        f"{found['seconds']:.0f} s on the clock, peak {found['peak MiB']:.0f} MiB "
        f"({found['before MiB']:.0f} MiB while the data are read){'' if found['peak MiB'] < 1024 else '  MISSED'}; "
        f"accuracy {found['accuracy']:.4f} on the test images"
    )
    return found


PARTS: dict[str, Callable[[], Any]] = {
    "published": lambda: published(quartiles(table("satimage"), 2000)),
    "separable": separable,
    "markov": lambda: [markov(table(name), C) for name in ("satimage", "letter", "usps") for C in (0.01, 0.1)],
    "mnist": mnist,
    "mnist-child": mnist_child,
}


def main() -> None:
    """Print the parts that are wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="published, separable, markov (these three by default), mnist")
    parser.add_argument("--json", type=Path, help="file to write the results to")
    chosen = parser.parse_args()
    if unknown := set(chosen.parts) - PARTS.keys():  # argparse would refuse that there is none, if it had the choices
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    records = {name: PARTS[name]() for name in chosen.parts or ("published", "separable", "markov")}
    if chosen.json:
        chosen.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
