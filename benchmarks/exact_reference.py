"""Exact structures beside formulation (19) of Peharz & Pernkopf (2012) in HiGHS: the same problem, one after the other.

    python benchmarks/exact_reference.py mdl                   # generative: best description length, all sets
    python benchmarks/exact_reference.py margin --seconds 60   # soft margin: time to the optimum, or gap at equal time
    python benchmarks/exact_reference.py root                  # root bound beside the full linear relaxation

`mdl`: seconds of `ExactScore("mdl", k=1, class_parents=2)` with all scoring, and of (19) without margin constraints on
the parent sets that pruning leaves (its time alone). `margin`: `ExactMargin` and (19) have the same gamma and the same
parent sets; where (19) does not finish, both stop after the same seconds, and the gaps are compared. `root`: how far
the bound at the root lies above the linear relaxation with all rows, columns and cluster inequalities, as a share of
the latter's size (at least 1).

The seconds are those of the clock on whatever machine this runs on; read the ratios.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from marginbayes import datasets
from marginbayes.data import Rows, Schema, Variable
from marginbayes.data.encode import Encoder
from marginbayes.data.frame import read_frame
from marginbayes.structure import ExactScore
from marginbayes.structure.exact.families import Families, ParentSpace, complete_rows, score_families
from marginbayes.structure.exact.milp import full_lp_bound, solve_milp
from marginbayes.structure.exact.problem import DenseProblem, dense_problem

PAPER = (
    *("australian", "breast", "chess", "cleve", "corral", "crx", "diabetes", "flare", "german", "glass", "glass2"),
    *("heart", "hepatitis", "iris", "letter", "lymphography", "mofn-3-7-10", "pima", "satimage", "segment"),
    *("shuttle-small", "soybean-large", "vehicle", "vote", "waveform-21", "abalone", "adult", "car", "mushroom"),
    *("nursery", "spambase"),
)
# (19) finishes on the first of these in seconds to minutes, and not on the last.
MARGIN = ("iris", "pima", "glass", "glass2", "vote", "breast", "heart", "car", "vehicle", "segment")
ROOT = ("iris", "pima", "glass", "glass2", "vote", "breast", "heart", "cleve", "car", "vehicle")


class Encoded(NamedTuple):
    """Training rows of a set, numbers cut by Fayyad & Irani's method, rows with missing cells left out."""

    name: str
    schema: Schema
    rows: Rows


def encoded(name: str) -> Encoded:
    """The training part of a set."""
    data = datasets.load(name, complete=True, keep_ids=name == "breast")
    X, y = data.split()[:2] if data.train is not None else (data.X, data.y)
    classes, labels = np.unique(np.asarray(y), return_inverse=True)
    frame = read_frame(X)
    encoder = Encoder(labels, len(classes), None, np.zeros(len(frame.names), bool))
    return Encoded(name, *encoder.learn(Variable("the class", tuple(classes.tolist()), origin="class"), frame))


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What the work returns, and its seconds."""
    started = time.perf_counter()
    return work(), time.perf_counter() - started


# -- description length


def mdl(names: Sequence[str], limit: float) -> None:
    """Best description length of each set."""
    print(
        f"{'set':15} {'size':>12} {'MDL':>14} {'branchings':>10} {'seconds':>8} {'(19), s':>8} {'ratio':>7}  (19) says"
    )
    for data in map(encoded, names):
        found, seconds = timed(lambda d=data: ExactScore("mdl", k=1, class_parents=2).learn(d.schema, d.rows))
        (value, status), reference = timed(lambda d=data: mdl_by_milp(d, limit))
        size = f"{len(data.rows)} x {len(data.schema.names) - 1}"
        agrees = "same" if abs(value - found.score) <= 1e-5 * found.score else f"{value - found.score:+.3g}"
        print(
            f"{data.name:15} {size:>12} {found.score:14.4f} {len(found.certificate.evidence['proofs']):10d} "
            f"{seconds:8.3f} {reference:8.2f} {'' if status == 'optimal' else '>'}{reference / seconds:<7.1f}  "
            f"{status}, {agrees}",
            flush=True,
        )


def mdl_by_milp(data: Encoded, limit: float) -> tuple[float, str]:
    """(19) without margin constraints: the linear objective (3), order constraints (16)."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    from marginbayes.scores.decomposable import FamilyScore
    from marginbayes.structure.exact.milp import Formulation

    families = _families(data, FamilyScore)
    options = [(v, s) for v, own in enumerate(families.sets) for s in own]
    form = Formulation(_without_samples(data, options))
    matrix, least = form.order
    low, high = form.bounds
    cost = np.concatenate([*(-own for own in families.scores), np.zeros(len(families.sets))])
    found = milp(
        cost,
        integrality=np.concatenate([np.ones(len(options)), np.zeros(len(families.sets))]),
        bounds=Bounds(low, high),
        constraints=[LinearConstraint(form.choice, 1.0, 1.0), LinearConstraint(matrix, least, np.inf)],
        options={"time_limit": limit, "mip_rel_gap": 1e-9},
    )
    return (math.inf if found.x is None else float(found.fun)), {0: "optimal", 1: "time limit"}[found.status]


def _families(data: Encoded, score: Any) -> Families:
    rows = complete_rows(data.rows)
    return score_families(rows, ParentSpace.of(data.schema.names, None, 1, 2), score("mdl", rows.total))


def _without_samples(data: Encoded, options: Sequence[tuple[int, tuple[int, ...]]]) -> DenseProblem:
    from marginbayes.structure.exact.problem import Option

    listed = tuple(Option(v, s) for v, s in options)
    nothing = np.zeros((0, len(listed)))
    return DenseProblem(data.schema.names, "sm", 0.0, listed, nothing, np.zeros(0, np.int64), np.zeros(0))


# -- soft margin


def _gamma(p: float) -> float:
    return math.log(p / (1.0 - p))


def margin(names: Sequence[str], limit: float, kinds: Sequence[str], probabilities: Sequence[float]) -> None:
    """Time to the optimum, or gap at equal time."""
    from marginbayes.structure import ExactMargin

    iris = encoded("iris")
    ExactMargin("sm").learn(iris.schema, iris.rows)  # compilers
    print(f"{'set':15} {'margin':>6} {'p':>6} | {'ours, s':>8} {'gap':>8} | {'(19), s':>8} {'gap':>8} | {'ratio':>7}")
    for data in map(encoded, names):
        for kind in kinds:
            for p in probabilities:
                ours = ExactMargin(kind, gamma=_gamma(p), k=1, time_limit=limit)
                found, seconds = timed(lambda d=data, o=ours: o.learn(d.schema, d.rows))
                problem = dense_problem(data.schema, data.rows, margin=kind, gamma=_gamma(p), k=1)
                other, reference = timed(lambda q=problem: solve_milp(q, time_limit=limit))
                finished = other.status == "optimal"
                theirs = (other.bound - other.objective) / max(1.0, abs(other.objective))
                ratio = f"{reference / seconds:7.1f}" if finished else "      -"
                print(
                    f"{data.name:15} {kind:>6} {p:6.3f} | {seconds:8.2f} {found.certificate.gap:8.2g} | "
                    f"{reference:8.2f} {theirs:8.2g} | {ratio}"
                    + (
                        ""
                        if not finished or abs(other.objective - found.score) < 1e-4 * abs(found.score)
                        else "  DIFFERS"
                    ),
                    flush=True,
                )


def root(names: Sequence[str], limit: float, kinds: Sequence[str], probabilities: Sequence[float]) -> None:
    """Root bound beside the full linear relaxation."""
    from marginbayes.structure import ExactMargin

    print(
        f"{'set':15} {'margin':>6} {'p':>6} | {'incumbent':>12} {'full LP':>12} {'root':>12} | {'above':>8} | W gamma"
    )
    for data in map(encoded, names):
        for kind in kinds:
            for p in probabilities:
                problem = dense_problem(data.schema, data.rows, margin=kind, gamma=_gamma(p), k=1)
                full = full_lp_bound(problem, time_limit=limit)
                found = ExactMargin(kind, gamma=_gamma(p), k=1, node_limit=1).learn(data.schema, data.rows)
                above = (found.certificate.bound - full.bound) / max(1.0, abs(full.bound))
                print(
                    f"{data.name:15} {kind:>6} {p:6.3f} | {found.score:12.4f} {full.bound:12.4f} "
                    f"{found.certificate.bound:12.4f} | {above:8.2%} | {problem.gamma * problem.weights.sum():.2f}"
                    + ("" if full.complete else "  full LP not finished"),
                    flush=True,
                )


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("mdl", "margin", "root"))
    parser.add_argument("--sets", nargs="+", help="names of data sets; by default those of the module")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each solve")
    parser.add_argument("--margin", nargs="+", default=["sm", "sbm"], choices=("sm", "sbm"))
    parser.add_argument("--p", nargs="+", type=float, default=[0.9, 0.99], help="gamma = log(p / (1 - p))")
    args = parser.parse_args()
    if args.part == "mdl":
        mdl(args.sets or PAPER, args.seconds)
    elif args.part == "margin":
        margin(args.sets or MARGIN, args.seconds, args.margin, args.p)
    else:
        root(args.sets or ROOT, args.seconds, args.margin, args.p)


if __name__ == "__main__":
    main()
