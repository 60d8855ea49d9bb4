"""Kernels of the exact margin against plain sums, a linear program and all subsets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from marginbayes.kernels.exact_climb import free_options, kick
from marginbayes.kernels.exact_clusters import violated_clusters
from marginbayes.kernels.exact_interior import Best, Linear, Program, interior_run, starting_point
from marginbayes.kernels.exact_margins import near_hinge
from marginbayes.kernels.exact_split import division_by_options


def random_program(rng, groups, blocks, cuts):
    counts = rng.integers(1, 3, groups)
    start = np.concatenate([[0], np.cumsum(counts)])
    block = np.repeat(np.arange(blocks), 2)
    rows = rng.normal(size=(start[-1], len(block)))
    lines = (rng.random((cuts, len(block))) < 0.5).astype(float)
    return Program(
        rows,
        rng.normal(size=start[-1]),
        start,
        rng.random(groups) + 0.5,
        0.8,
        rng.normal(size=len(block)) * 0.1,
        block,
        lines,
        np.full(cuts, 0.9),
    )


def optimum(program: Program) -> float:
    """The same program by a general solver."""
    n, groups, p = len(program.base), len(program.weight), len(program.block)
    sample = np.repeat(np.arange(groups), np.diff(program.start))
    hinge = np.hstack([-program.rows, np.eye(groups)[sample]])
    simplex = np.hstack(
        [np.eye(program.block.max() + 1)[:, program.block], np.zeros((program.block.max() + 1, groups))]
    )
    cuts = np.hstack([program.cuts, np.zeros((len(program.cuts), groups))])
    found = linprog(
        -np.concatenate([program.linear, program.weight]),
        np.vstack([hinge, simplex, cuts]),
        np.concatenate([program.base, np.ones(len(simplex)), program.room]),
        bounds=[(0, None)] * p + [(None, program.gamma)] * groups,
    )
    assert n == len(hinge)
    return -found.fun


@pytest.mark.parametrize("cuts", [0, 2])
def test_the_interior_point_reaches_the_optimum_of_the_linear_program(cuts: int) -> None:
    rng = np.random.default_rng(cuts)
    for _ in range(3):
        program = random_program(rng, 6, 3, cuts)
        counts = np.diff(program.start)
        dual = np.repeat(program.weight / (counts + 1), counts)
        point = starting_point(program, np.full(6, 0.25), dual, 3, 1.0)
        # No rows of a larger problem: what is proved is of no interest here.
        linear = Linear(np.empty((0, 0)), np.arange(0), np.zeros(0), 0.0, np.zeros(0), np.zeros((0, 2), bool))
        best = Best(np.array([np.inf]), point.dual.copy(), np.zeros((0, 2)))
        for _ in range(25):
            interior_run(program, point, linear, best, -1e9, 0.0, 1, np.zeros(1, np.int64))
            if point.slack @ point.dual + point.top @ point.top_dual + point.x @ point.price < 1e-9:
                break
        used = np.bincount(np.repeat(np.arange(6), counts), point.dual)
        assert (point.dual > 0).all()
        assert (used < program.weight + 1e-12).all()
        margins = program.base + program.rows @ point.x
        hinges = np.minimum(program.gamma, np.minimum.reduceat(margins, program.start[:-1]))
        assert program.weight @ hinges + program.linear @ point.x == pytest.approx(optimum(program), abs=1e-6)


def test_every_violated_cluster_that_is_named_is_violated_and_one_is_named_if_there_is_any() -> None:
    rng = np.random.default_rng(3)
    for _ in range(25):
        n = 4
        shares = rng.dirichlet(np.full(n + 2, 0.3), n)
        shares[np.arange(n), np.arange(n) + 2] = 0.0
        shares /= shares.sum(axis=1, keepdims=True)

        def outside(cluster, shares=shares):
            return sum(1.0 - shares[i, [2 + j for j in cluster]].sum() for i in cluster)

        clusters = [c for m in range(2, n + 1) for c in combinations(range(n), m)]
        worst = min(outside(c) for c in clusters)
        found = violated_clusters(shares, 0.01)
        assert (len(found) > 0) == (worst <= 0.99)
        for line in found:
            assert outside(np.flatnonzero(line)) <= 0.99 + 1e-9


def test_rows_are_open_exactly_near_their_hinge() -> None:
    margins = np.array([[5.0, 6.0], [1.2, 4.0], [-3.0, 2.0], [-3.0, -2.8], [0.9, 1.1]])
    firm = np.zeros(10, bool)
    rows, counts, alone = near_hinge(margins.reshape(-1), 2, 1.0, 0.5, firm)
    assert rows.tolist() == [2, 6, 7, 8, 9]
    assert counts.tolist() == [0, 1, 0, 2, 2]
    assert alone.tolist() == [4]
    firm[0] = True
    assert near_hinge(margins.reshape(-1), 2, 1.0, 0.5, firm)[0].tolist() == [0, 2, 6, 7, 8, 9]


def test_free_options_close_no_cycle_and_a_kick_opens_the_one_it_closes() -> None:
    allowed = np.ones((4, 6), bool)
    allowed[np.arange(4), np.arange(4) + 2] = False
    choice = np.array([1, 2, 3, 0])  # 0 -> 1 -> 2, and 3 alone
    assert np.flatnonzero(free_options(allowed, choice, 0)).tolist() == [0, 1, 5]
    assert np.flatnonzero(free_options(allowed, choice, 2)).tolist() == [0, 1, 2, 3, 5]
    kick(allowed, choice, 0, 4)  # 2 -> 0
    assert choice.tolist() == [4, 1, 3, 0]


def test_the_division_parts_options_that_pull_in_opposite_directions() -> None:
    # Two features, options 0, 1 and one more; only the first one's options differ, by the sign of what they add.
    dense = np.array([[0.0, 2.0, 0.0, -2.0, 0.5, 0.5, 0.5, 0.5]] * 3)
    shares = np.array([[0.0, 0.5, 0.0, 0.5], [0.5, 0.5, 0.0, 0.0]])
    allowed = shares > 0
    right = np.zeros(4, bool)
    rows, start = np.arange(3), np.arange(4)
    feature, fall = division_by_options(dense, rows, start, np.ones(3), 1.0, np.full(3, 1.0), shares, allowed, right)
    assert feature == 0
    assert right[1] != right[3]
    assert fall == pytest.approx(3.0)  # half of the hinges fall by two
