"""The simplex method on the dual of a relaxation, and the depth-first search that is built on it."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes.kernels.exact_begin import AWAY, Basis, basis_of, begin, first_samples
from marginbayes.kernels.exact_bench import (
    linear_by,
    make_sheet,
    new_bench,
    relax_part,
    smaller,
    use_clusters,
    vertex_multipliers,
)
from marginbayes.kernels.exact_dive import dive
from marginbayes.kernels.exact_lines import add_lines, along_lines, take_line
from marginbayes.kernels.exact_near import look_at, margins_near
from marginbayes.kernels.exact_part import Problem
from marginbayes.kernels.exact_simplex import find_clusters, improve, settle
from marginbayes.kernels.exact_space import WHOLE, Multipliers, evaluate, quick_margins, shared_margins
from marginbayes.kernels.exact_vertex import CLUSTER, invert, sample_of, switch_reference
from marginbayes.structure.exact.instance import Instance, make_instance
from marginbayes.structure.exact.milp import full_lp_bound
from marginbayes.structure.exact.problem import dense_problem, merged_samples, parent_sets
from tests.oracles.exact import best_structure, random_problem

# Without the compiler, random numbers are drawn by products that overflow, as they should, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar:RuntimeWarning")

GAMMA = 2.0
NOTHING = Multipliers(np.empty(0, np.int32), np.empty(0, np.int32))
UNKNOWN = Basis(*(np.empty(0, np.int32) for _ in range(3)))
CASES = [("sm", 3), ("sbm", 3), ("sm", 2)]


def problem(seed: int, margin: str, classes: int):
    """A random table, and the problem of its greatest soft margin."""
    schema, rows = random_problem(seed, [classes, 2, 3, 2, 3], 40)
    sets = parent_sets(schema.names, 1, 0, None)
    made = make_instance(merged_samples(rows), sets, margin=margin, gamma=GAMMA, smoothing=1.0, max_memory=1e9)
    return schema, rows, made


def at_optimum(made: Instance):
    """A bench whose vertex is the optimum of the whole relaxation: all samples looked at, and all clusters."""
    space, allowed, n = made.space, made.root(0), made.n_features
    sheet = make_sheet(made.base(0), made.ceiling, allowed, np.zeros((0, n), bool))
    bench = new_bench(sheet, n, len(made.samples.weights), space.rivals)
    assert begin(space, sheet, n, NOTHING, UNKNOWN, allowed, bench.at)
    assert look_at(space, sheet, bench.near, np.arange(len(made.samples.weights)))
    shares, every = np.zeros(allowed.shape), np.ones(len(sheet.slots), bool)
    for _ in range(100):
        assert 0 <= improve(space, sheet, n, bench.at, bench.near, bench.room, every, -np.inf, 1000) < 1000
        settle(sheet, bench.at, bench.room, shares)
        if not find_clusters(sheet, shares, 1e-6):
            break
    return bench, shares


def matrix_of(bench, n: int) -> np.ndarray:
    """The matrix [tight option, variable] whose inverse a vertex keeps."""
    at, sheet = bench.at, bench.sheet
    d = at.size[0]
    out = np.zeros((d, d))
    for t, column in enumerate(at.tight[:d]):
        out[t, sheet.feature[column]] = 1.0
        out[t, n:] = -at.lines[: d - n, column]
    return out


@pytest.mark.parametrize(("margin", "classes"), CASES)
@pytest.mark.parametrize("seed", range(4))
def test_the_simplex_method_ends_at_the_full_linear_relaxation(seed: int, margin: str, classes: int) -> None:
    schema, rows, made = problem(seed, margin, classes)
    dense = dense_problem(schema, rows, margin=margin, gamma=GAMMA)
    bench, _ = at_optimum(made)
    assert bench.at.objective[0] == pytest.approx(full_lp_bound(dense).bound, rel=1e-6)


@pytest.mark.parametrize(("margin", "classes"), CASES)
def test_a_vertex_keeps_its_inverse_its_border_and_its_objective(margin: str, classes: int) -> None:
    _, _, made = problem(7, margin, classes)
    bench, shares = at_optimum(made)
    at, sheet, n, space = bench.at, bench.sheet, made.n_features, made.space
    d = at.size[0]
    np.testing.assert_allclose(at.inverse[:d, :d] @ matrix_of(bench, n), np.eye(d), atol=1e-8)
    slack = at.amount[sheet.feature] - at.values
    assert slack.min() > -1e-8
    np.testing.assert_allclose(slack[at.tight[:d]], 0.0, atol=1e-8)
    assert at.amount[n:d].min(initial=0.0) > -1e-9
    assert (at.used <= made.samples.weights + 1e-9).all()
    # Strong duality: the shares of the optimum are worth what its multipliers bound, but for the noise.
    margins = shared_margins(space, made.base(0), shares).reshape(len(made.samples.weights), -1)
    worth = made.samples.weights @ np.minimum(GAMMA, margins.min(axis=1))
    assert worth == pytest.approx(at.objective[0], abs=1e-6)


@pytest.mark.parametrize(("margin", "classes"), CASES)
@pytest.mark.parametrize("steps", [1, 2, 5, 10, 20])
def test_shares_and_margins_follow_the_steps(margin: str, classes: int, steps: int) -> None:
    _, _, made = problem(11, margin, classes)
    space, allowed, n = made.space, made.root(0), made.n_features
    sheet = make_sheet(made.base(0), made.ceiling, allowed, np.zeros((0, n), bool))
    bench = new_bench(sheet, n, len(made.samples.weights), space.rivals)
    assert begin(space, sheet, n, NOTHING, UNKNOWN, allowed, bench.at)
    assert look_at(space, sheet, bench.near, np.arange(len(made.samples.weights)))
    every = np.ones(len(sheet.slots), bool)
    assert improve(space, sheet, n, bench.at, bench.near, bench.room, every, -np.inf, steps) == steps
    d, size, room = bench.at.size[0], bench.near.number[0] * space.rivals, bench.room
    shares, margins = room.shares[:d].copy(), room.margins[:size].copy()
    np.testing.assert_allclose(shares, bench.at.cost[:d] @ bench.at.inverse[:d, :d], atol=1e-9)
    margins_near(space, sheet, bench.at, bench.near, room)
    np.testing.assert_allclose(margins, room.margins[:size], atol=1e-9)
    assert np.ptp(margins) > 0.1


@pytest.mark.parametrize("number", range(10))
def test_sums_of_lines_are_products_of_matrices(number: int) -> None:
    rng, size = np.random.default_rng(number), 7
    matrix, amounts, which = rng.normal(size=(12, 9)), rng.normal(size=12), rng.permutation(12)
    out = np.arange(9.0)
    add_lines(matrix, which, amounts, number, size, out)
    added = np.arange(9.0)
    added[:size] += amounts[:number] @ matrix[which[:number], :size]
    np.testing.assert_allclose(out, added, atol=1e-12)
    along_lines(matrix, amounts, number, out)
    added[:number] = matrix[:number, :number] @ amounts[:number]
    np.testing.assert_allclose(out, added, atol=1e-12)
    taken, own = matrix.copy(), rng.normal(size=12)
    take_line(matrix, own, amounts, number)
    taken[:number, :number] -= np.outer(amounts[:number], own[:number])
    np.testing.assert_allclose(matrix, taken, atol=1e-12)


@pytest.mark.parametrize(("margin", "classes"), CASES)
def test_another_reference_is_the_same_vertex(margin: str, classes: int) -> None:
    _, _, made = problem(3, margin, classes)
    bench, _ = at_optimum(made)
    at, n, space = bench.at, made.n_features, made.space
    free = [z for z in range(n, at.size[0]) if at.row[z] < CLUSTER]
    sample = sample_of(space.rivals, int(at.row[free[0]]))
    used, amount, row = at.used[sample], at.amount[free[0]], at.row[free[0]]
    switch_reference(space, at, n, free[0])
    d = at.size[0]
    np.testing.assert_allclose(at.inverse[:d, :d] @ matrix_of(bench, n), np.eye(d), atol=1e-8)
    assert at.reference[sample] == row
    assert at.used[sample] == pytest.approx(made.samples.weights[sample] - amount, abs=1e-9)
    switch_reference(space, at, n, free[0])
    assert at.used[sample] == pytest.approx(used, abs=1e-9)
    kept = at.inverse[:d, :d].copy()
    assert invert(at, bench.sheet, n)
    np.testing.assert_allclose(at.inverse[:d, :d], kept, atol=1e-8)


def found_again(made: Instance, bench, **changes):
    """A bench that begins at the basis of another one's vertex, or at a changed one."""
    space, allowed, n = made.space, made.root(0), made.n_features
    used = np.zeros(bench.sheet.number[0], bool)
    use_clusters(bench.at, n, used)
    given = vertex_multipliers(space, n, bench.at, WHOLE >> 12, np.zeros(made.n_rows, np.int64))
    known = basis_of(space, bench.sheet, bench.at, n, np.cumsum(used) - 1)._replace(**changes)
    sheet = make_sheet(made.base(0), made.ceiling, allowed, bench.sheet.clusters[: len(used)][used])
    new = new_bench(sheet, n, len(made.samples.weights), space.rivals)
    assert begin(space, sheet, n, given, known, allowed, new.at)
    return new, given, known


@pytest.mark.parametrize(("margin", "classes"), CASES)
@pytest.mark.parametrize("seed", range(6))
def test_a_vertex_is_found_again_from_its_basis(seed: int, margin: str, classes: int) -> None:
    _, _, made = problem(seed, margin, classes)
    bench, _ = at_optimum(made)
    new, _, _ = found_again(made, bench)
    old, at, n = bench.at, new.at, made.n_features
    d = old.size[0]
    assert at.size[0] == d > n
    assert at.objective[0] == pytest.approx(old.objective[0], abs=1e-9)
    np.testing.assert_array_equal(at.tight[:d], old.tight[:d])
    np.testing.assert_array_equal(at.reference, old.reference)
    for name in ("amount", "cost", "values", "used"):
        size = d if name in ("amount", "cost") else None
        np.testing.assert_allclose(getattr(at, name)[:size], getattr(old, name)[:size], atol=1e-8)
    np.testing.assert_allclose(at.inverse[:d, :d] @ matrix_of(new, n), np.eye(d), atol=1e-8)


def test_a_basis_that_is_none_is_not_taken() -> None:
    _, _, made = problem(7, "sm", 3)
    bench, _ = at_optimum(made)
    n = made.n_features
    _, _, known = found_again(made, bench)
    twice = known.free.copy()
    twice[0] = twice[-1]
    no_cluster = np.full_like(known.free, made.n_rows + 99)
    others = known.tight.copy()
    others[0] = next(slot for slot in bench.sheet.slots if slot not in known.tight)
    for changes in ({"free": twice}, {"free": no_cluster}, {"tight": others}):
        at = found_again(made, bench, **changes)[0].at
        assert at.size[0] == n
        assert not at.used.any()
        np.testing.assert_allclose(at.amount[:n], at.values[at.tight[:n]])
        assert (at.amount[bench.sheet.feature] >= at.values).all()


@pytest.mark.parametrize(("margin", "classes"), CASES)
def test_samples_that_are_looked_at_first_are_those_near_to_another_row(margin: str, classes: int) -> None:
    _, _, made = problem(7, margin, classes)
    bench, shares = at_optimum(made)
    space, n, weights = made.space, made.n_features, made.samples.weights
    new, given, _ = found_again(made, bench)
    found = first_samples(space, new.sheet, n, given, new.at)
    margins = shared_margins(space, made.base(0), shares).reshape(len(weights), -1)
    lowest = np.sort(np.column_stack([margins, np.full(len(weights), GAMMA)]), axis=1)
    left = lowest[:, 1] - lowest[:, 0]
    assert set(np.flatnonzero(left < AWAY - 1e-4)) <= set(found.tolist()) <= set(np.flatnonzero(left < AWAY + 1e-4))
    free = new.at.row[n : new.at.size[0]]
    assert {sample_of(space.rivals, int(row)) for row in free if row < CLUSTER} <= set(found.tolist())
    plain = given._replace(shares=np.where(given.shares < WHOLE, given.shares, WHOLE - 1))
    new.at.size[0] = n
    np.testing.assert_array_equal(first_samples(space, new.sheet, n, plain, new.at), given.rows // space.rivals)


@pytest.mark.parametrize(("margin", "classes"), CASES)
@pytest.mark.parametrize("grain", [1, WHOLE >> 12])
def test_rounded_multipliers_make_of_the_options_what_their_definition_does(
    margin: str, classes: int, grain: int
) -> None:
    _, _, made = problem(5, margin, classes)
    bench, _ = at_optimum(made)
    space, n, allowed = made.space, made.n_features, made.root(0)
    room = np.zeros(made.n_rows, np.int64)
    found = vertex_multipliers(space, n, bench.at, grain, room)
    values, literal = np.zeros(allowed.shape), np.zeros(allowed.shape)
    constant = linear_by(space, bench.sheet, n, bench.at, found, room, values)
    assert not room.any()
    assert (np.diff(found.rows) > 0).all()
    assert (np.bincount(found.rows // space.rivals, found.shares) <= WHOLE).all()
    assert constant == pytest.approx(evaluate(space, made.base(0), found, literal), abs=1e-9)
    np.testing.assert_allclose(values[allowed], literal[allowed], atol=1e-9)


def test_fewer_columns_leave_the_vertex_as_it_is() -> None:
    _, _, made = problem(2, "sm", 3)
    bench, shares = at_optimum(made)
    allowed = shares > 1e-9
    new = smaller(made.space, bench, allowed)
    assert len(new.sheet.slots) < len(bench.sheet.slots)
    assert new.at.objective[0] == bench.at.objective[0]
    old = {int(slot): c for c, slot in enumerate(bench.sheet.slots)}
    places = [old[int(slot)] for slot in new.sheet.slots]
    np.testing.assert_array_equal(new.at.values, bench.at.values[places])
    d = new.at.size[0]
    np.testing.assert_array_equal(new.sheet.slots[new.at.tight[:d]], bench.sheet.slots[bench.at.tight[:d]])
    fits, _ = relax_part(made.space, new, allowed, 0.0, shares.copy(), np.empty(made.n_rows, np.float32))
    assert fits
    assert new.at.objective[0] <= bench.at.objective[0] + 1e-9


def test_quick_margins_have_six_digits() -> None:
    _, _, made = problem(4, "sm", 3)
    rng, allowed = np.random.default_rng(0), made.root(0)
    shares = np.where(allowed, rng.random(allowed.shape), 0.0)
    slots, out = np.flatnonzero(shares), np.empty(made.n_rows, np.float32)
    for space in (made.space, made.space._replace(quick=np.empty((0, 0), np.float32))):
        quick_margins(space, made.base(0), slots, shares.reshape(-1)[slots], out)
        np.testing.assert_allclose(out, shared_margins(made.space, made.base(0), shares), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("margin", "classes"), CASES)
@pytest.mark.parametrize("most", [0, 50])
def test_a_dive_finds_the_best_structure_or_shows_that_there_is_none(margin: str, classes: int, most: int) -> None:
    schema, rows, made = problem(9, margin, classes)
    best, stop = best_structure(schema, rows, margin, GAMMA, 1, 0, None), np.zeros(1, np.int64)
    for cutoff in (best - 0.1, best + 1e-4):
        of = Problem(made.base(0), made.state(0), made.root(0), cutoff, 1e-9)
        none = np.zeros((0, made.n_features), bool)
        found = dive(made.space, of, made.root(0), none, NOTHING, UNKNOWN, 1000, most, False, 3, stop)
        assert found.fits
        assert len(found.open_part) == 0
        if cutoff < best:
            assert found.objective == pytest.approx(best, abs=1e-9)
        else:
            assert found.pruned <= cutoff + 1e-6
        assert sorted(found.closed_part.tolist()) == _leaves(found.parent.tolist())


def _leaves(parent: list[int]) -> list[int]:
    """Parts that nothing came from, the given one being -1."""
    return sorted(set(range(-1, len(parent))) - set(parent))


def test_a_dive_that_is_stopped_hands_its_part_back() -> None:
    _, _, made = problem(9, "sm", 3)
    of = Problem(made.base(0), made.state(0), made.root(0), 0.0, 1e-9)
    none = np.zeros((0, made.n_features), bool)
    found = dive(made.space, of, made.root(0), none, NOTHING, UNKNOWN, 1000, 0, False, 3, np.ones(1, np.int64))
    assert found.nodes == 0
    assert found.open_part.tolist() == [-1]
    np.testing.assert_array_equal(found.open_allowed[0], made.root(0))
