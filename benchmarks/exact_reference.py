"""The best description length beside formulation (19) of Peharz & Pernkopf (2012) in HiGHS: one problem, two ways.

    python benchmarks/exact_reference.py mdl

Seconds of `ExactScore("mdl", k=1, class_parents=2)` with all scoring, and of (19) without margin constraints on the
parent sets that pruning leaves (its time alone). The seconds are those of the clock on whatever machine this runs on;
read the ratios. The soft margin has a benchmark of its own, `exact_margin.py`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from _exact import Encoded, encoded, timed
from _protocol import UCI

from marginbayes.structure import ExactScore
from marginbayes.structure.exact.families import Families, ParentSpace, complete_rows, score_families
from marginbayes.structure.exact.problem import DenseProblem


def mdl(names: Sequence[str], limit: float) -> None:
    """Best description length of each set."""
    print(
        f"{'set':15} {'size':>12} {'MDL':>14} {'branchings':>10} {'seconds':>8} {'(19), s':>8} {'ratio':>7}  (19) says"
    )
    for data in map(encoded, names):
        found, seconds, _ = timed(lambda d=data: ExactScore("mdl", k=1, class_parents=2).learn(d.schema, d.rows))
        (value, status), reference, _ = timed(lambda d=data: mdl_by_milp(d, limit))
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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("mdl",))
    parser.add_argument("--sets", nargs="+", help="names of data sets; by default those of the paper")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of each solve")
    args = parser.parse_args()
    mdl(args.sets or UCI, args.seconds)


if __name__ == "__main__":
    main()
