"""Runs of `ExactMargin` that are stopped, resumed, watched and limited."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from marginbayes.data import Rows, Schema, Variable
from marginbayes.graph import Dag
from marginbayes.structure.exact import checkpoint as checkpoints
from marginbayes.structure.exact import node, tree
from marginbayes.structure.exact.incumbent import Incumbent, objective_of, plain_choice
from marginbayes.structure.exact.instance import Instance, MemoryLimit
from marginbayes.structure.exact.learner import ExactMargin
from marginbayes.structure.exact.trace import thinned
from marginbayes.verification import verify
from tests.oracles.exact import random_problem, soft_margin

CARDS = [3, 3, 3, 3, 2, 3, 3]


@pytest.fixture(scope="module", autouse=True)
def _nothing_is_listed():
    """Small problems take a search of many parts only if structures are never looked at one by one.

    And they go depth first only if the tree need be neither wide nor long under way for that.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node, "MANY", 0)
        patch.setattr(node, "FEW", 0)
        patch.setattr(node, "LITTLE", 0)
        patch.setattr(tree, "WIDE", 20)
        patch.setattr(tree, "PAYS", 0.0)
        yield


@pytest.fixture(scope="module")
def problem():
    return random_problem(9, CARDS, 90)


@pytest.fixture(scope="module")
def whole(problem):
    """The uninterrupted run."""
    found = ExactMargin(p=0.8).learn(*problem)
    assert found.certificate.status == "optimal"
    assert found.certificate.evidence["nodes"] > 100
    return found


def same(one, other) -> bool:
    first, second = one.certificate, other.certificate
    return (
        one.dag == other.dag
        and (first.objective, first.bound) == (second.objective, second.bound)
        and first.evidence["proof"] == second.evidence["proof"]
    )


def test_a_run_in_pieces_ends_like_the_whole_run(problem, whole, tmp_path) -> None:
    file = tmp_path / "search.npz"
    for limit in range(12, 10_000, 40):
        found = ExactMargin(p=0.8, node_limit=limit, checkpoint=file).learn(*problem)
        if found.certificate.status == "optimal":
            break
        assert found.certificate.status == "node limit"
        nodes = found.certificate.evidence["nodes"]
        assert limit <= nodes < limit + tree.BATCH + nodes // tree.WIDE
        assert found.certificate.bound >= whole.certificate.objective
    assert same(found, whole)
    verify(found.certificate.to_document(), problem[1].codes)


def test_a_run_that_goes_on_takes_a_better_start_over_and_no_worse_one(problem, whole, tmp_path) -> None:
    plain = Dag(problem[0].names, ((), *((0,) for _ in CARDS[1:])))
    poor = ExactMargin(p=0.8, start=plain, time_limit=0.0, checkpoint=tmp_path / "search.npz").learn(*problem)
    assert poor.certificate.objective < whole.certificate.objective
    for start in (whole, plain):
        limited = ExactMargin(p=0.8, start=start, node_limit=1, checkpoint=tmp_path / "search.npz").learn(*problem)
        assert limited.certificate.objective == whole.certificate.objective
    assert limited.dag == whole.dag


def test_a_callback_is_told_before_a_large_search_compiles_what_it_needs(problem) -> None:
    notes = []
    ExactMargin(p=0.8, node_limit=70, callback=lambda moment: notes.append(moment.note)).learn(*problem)
    [told] = [note for note in notes if "compiling" in note]
    assert int(told.split()[0]) >= tree.SMALL


def test_large_searches_begin_anew_from_time_to_time(problem, monkeypatch) -> None:
    begun = []

    def search_from(instance, top, choice, seed, *_):
        begun.append((seed, choice.tolist() == plain_choice(instance).tolist()))
        return Incumbent(top, choice, objective_of(instance, top, choice))

    monkeypatch.setattr(tree, "search_from", search_from)
    monkeypatch.setattr(tree, "SMALL", 4)
    monkeypatch.setattr(tree, "LATER", 4)
    ExactMargin(p=0.8, node_limit=70, random_state=5).learn(*problem)
    # Once 4, 16 and 64 parts were there; which of two threads is the first does not matter.
    assert sorted(begun) == [(6, False), (8, True), (9, True), (10, True), (11, True)]


def test_a_run_that_the_clock_cuts_again_and_again_ends_at_the_optimum(problem, whole, tmp_path) -> None:
    file, limit, bound = tmp_path / "search.npz", 0.05, np.inf
    for _ in range(40):
        found = ExactMargin(p=0.8, time_limit=limit, checkpoint=file).learn(*problem)
        assert found.certificate.bound <= bound
        verify(found.certificate.to_document(), problem[1].codes)
        if found.certificate.status == "optimal":
            break
        limit, bound = 1.3 * limit, found.certificate.bound
    assert found.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-6)


SCRIPT = """
import sys
from tests.oracles.exact import random_problem
from marginbayes.structure.exact import node, tree
from marginbayes.structure.exact.learner import ExactMargin
node.MANY = node.FEW = node.LITTLE = 0
tree.WIDE, tree.PAYS = 20, 0.0
tell = lambda moment: print(moment, flush=True)
found = ExactMargin(p=0.8, checkpoint=sys.argv[1], checkpoint_seconds=0.0, callback=tell).learn(
    *random_problem(9, {cards}, 90)
)
"""


def test_a_killed_run_is_resumed_and_ends_like_the_whole_run(problem, whole, tmp_path) -> None:
    file = tmp_path / "search.npz"
    command = [sys.executable, "-c", SCRIPT.format(cards=CARDS), str(file)]
    run = subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE)
    assert run.stdout is not None
    while not file.exists() and run.poll() is None:
        time.sleep(0.01)
    run.kill()
    run.wait()
    run.stdout.close()
    assert same(ExactMargin(p=0.8, checkpoint=file).learn(*problem), whole)


def test_an_interrupted_run_keeps_the_best_structure_and_its_bound(problem, whole) -> None:
    def stop(moment) -> None:
        if moment.note.startswith("1 "):
            raise KeyboardInterrupt

    found = ExactMargin(p=0.8, callback=stop).learn(*problem)
    assert found.status == found.certificate.status == "interrupted"
    assert found.certificate.bound >= whole.certificate.objective >= found.certificate.objective
    assert soft_margin(problem[1], found.dag.parents, "sm", np.log(4)) == pytest.approx(found.score)
    verify(found.certificate.to_document(), problem[1].codes)


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals to a thread need POSIX")
def test_ctrl_c_ends_the_search_when_everything_is_on_record(problem) -> None:
    main = threading.main_thread().ident
    assert main is not None

    def press(moment) -> None:
        if moment.note.startswith("1 "):
            signal.pthread_kill(main, signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    found = ExactMargin(p=0.8, n_jobs=2, callback=press).learn(*problem)
    assert found.certificate.status == "interrupted"
    assert signal.getsignal(signal.SIGINT) is before
    verify(found.certificate.to_document(), problem[1].codes)


def test_a_time_limit_of_nothing_still_returns_a_structure_and_a_bound(problem) -> None:
    found = ExactMargin(p=0.8, time_limit=0.0).learn(*problem)
    assert (found.status, found.certificate.status, found.interrupted) == ("time limit", "time limit", False)
    assert found.certificate.objective <= found.certificate.bound < np.inf
    verify(found.certificate.to_document(), problem[1].codes)


def test_a_memory_limit_ends_the_search_with_what_it_has(problem) -> None:
    with pytest.warns(RuntimeWarning, match="ended at its memory limit, with the best so far"):
        found = ExactMargin(p=0.8, max_memory=4e4).learn(*problem)
    assert found.certificate.status == "memory limit"
    assert found.certificate.objective <= found.certificate.bound < np.inf
    verify(found.certificate.to_document(), problem[1].codes)


@pytest.mark.parametrize("after", [0, 1, 2, 5])
def test_memory_that_runs_out_anywhere_loses_no_set_of_class_parents(after, tmp_path, monkeypatch) -> None:
    problem = random_problem(2, [3, 2, 3, 2], 60)
    whole = ExactMargin(p=0.9, class_parents=2).learn(*problem)
    expand, calls = tree.expand, []

    def failing(*args):
        calls.append(1)
        if len(calls) > after:
            raise MemoryLimit("as if")
        return expand(*args)

    monkeypatch.setattr(tree, "expand", failing)
    file = tmp_path / "search.npz"
    with pytest.warns(RuntimeWarning, match="memory limit"):
        cut = ExactMargin(p=0.9, class_parents=2, n_jobs=1, checkpoint=file).learn(*problem)
    assert cut.certificate.bound >= whole.certificate.objective
    verify(cut.certificate.to_document(), problem[1].codes)
    monkeypatch.setattr(tree, "expand", expand)
    resumed = ExactMargin(p=0.9, class_parents=2, checkpoint=file).learn(*problem)
    assert resumed.certificate.status == "optimal"
    assert resumed.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-6)
    verify(resumed.certificate.to_document(), problem[1].codes)


def test_without_any_room_for_rows_there_is_a_structure_and_a_bound_that_hold(problem, monkeypatch) -> None:
    def nowhere(_: Instance) -> None:
        raise MemoryLimit("as if")

    monkeypatch.setattr(Instance, "space", property(nowhere))
    with pytest.warns(RuntimeWarning, match="memory limit"):
        found = ExactMargin(p=0.8).learn(*problem).certificate
    assert found.bound > found.objective
    verify(found.to_document(), problem[1].codes)


def test_no_nodes_means_none(problem) -> None:
    result = ExactMargin(p=0.8, node_limit=0).learn(*problem)
    found = result.certificate
    assert (result.status, found.status, found.evidence["nodes"]) == ("node limit", "node limit", 0)


def test_a_checkpoint_goes_on_with_a_greater_gap_but_not_with_one_it_has_cut_below(problem, whole, tmp_path) -> None:
    file = tmp_path / "search.npz"
    coarse = ExactMargin(p=0.8, gap=0.05, checkpoint=file).learn(*problem).certificate
    assert coarse.status == "optimal"
    assert coarse.bound - coarse.objective > 1e-3 * abs(coarse.objective)
    with pytest.raises(ValueError, match="greater gap"):
        ExactMargin(p=0.8, gap=1e-6, checkpoint=file).learn(*problem)
    assert ExactMargin(p=0.8, gap=0.06, checkpoint=file).learn(*problem).certificate.status == "optimal"
    fresh = tmp_path / "fresh.npz"
    ExactMargin(p=0.8, gap=0.05, node_limit=1, checkpoint=fresh).learn(*problem)  # nothing is cut off yet
    finished = ExactMargin(p=0.8, checkpoint=fresh).learn(*problem).certificate
    assert finished.objective == pytest.approx(whole.certificate.objective, rel=1e-6)


@pytest.mark.parametrize("kept", [0, 100])
def test_a_checkpoint_that_is_cut_short_is_refused_in_words(kept, problem, tmp_path) -> None:
    file = tmp_path / "search.npz"
    ExactMargin(p=0.8, node_limit=1, checkpoint=file).learn(*problem)
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match="cannot be read"):
        ExactMargin(p=0.8, checkpoint=file).learn(*problem)


def test_tables_beyond_the_memory_limit_are_refused_in_words(problem) -> None:
    with pytest.raises(ValueError, match="more than max_memory"):
        ExactMargin(max_memory=10.0).learn(*problem)


def test_objectives_rise_and_bounds_fall_along_the_trace(whole) -> None:
    _, objectives, bounds = np.array(whole.certificate.trace).T
    assert (np.diff(objectives) >= 0).all()
    assert (np.diff(bounds) <= 1e-9).all()
    assert objectives[-1] == whole.certificate.objective
    assert bounds[-1] == whole.certificate.bound


def test_a_checkpoint_of_other_data_is_refused(problem, tmp_path) -> None:
    file = tmp_path / "search.npz"
    ExactMargin(p=0.8, node_limit=4, checkpoint=file).learn(*problem)
    with pytest.raises(ValueError, match="belongs to other data"):
        ExactMargin(p=0.9, node_limit=4, checkpoint=file).learn(*problem)
    file.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="cannot be read"):
        ExactMargin(p=0.8, node_limit=4, checkpoint=file).learn(*problem)


def test_a_full_disk_costs_neither_the_search_nor_the_earlier_checkpoint(problem, tmp_path, monkeypatch) -> None:
    file = tmp_path / "search.npz"
    ExactMargin(p=0.8, node_limit=4, checkpoint=file).learn(*problem)
    earlier = file.read_bytes()

    def full(descriptor: int) -> None:  # noqa: ARG001
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RuntimeWarning, match="was not written: .*No space left"):
        found = ExactMargin(p=0.8, node_limit=20, checkpoint=file).learn(*problem)
    assert found.certificate.evidence["nodes"] >= 20
    assert file.read_bytes() == earlier
    assert list(tmp_path.iterdir()) == [file]


def test_a_given_structure_is_where_the_search_begins(problem, whole) -> None:
    found = ExactMargin(p=0.8, start=whole, time_limit=0.0).learn(*problem)
    assert found.score == pytest.approx(whole.score, abs=1e-9)


def test_a_structure_to_begin_with_that_is_none_of_those_searched_is_named(problem) -> None:
    names = problem[0].names
    wide = Dag(names, ((), (0,), (0, 1), (0, 1, 2), (0,), (0,), (0,)))
    with pytest.raises(
        ValueError, match=f"the start gives {names[3]!r} parents that are not allowed here: {names[0]!r}, "
    ):
        ExactMargin(p=0.8, start=wide).learn(*problem)
    upside_down = Dag(names, ((1,), (), *((0,),) * 5))
    with pytest.raises(ValueError, match=f"the start gives {names[0]!r} parents that are not allowed here"):
        ExactMargin(p=0.8, start=upside_down).learn(*problem)


def test_parents_of_a_feature_without_the_class_do_not_matter_at_the_start(problem) -> None:
    names = problem[0].names
    apart = Dag(names, ((), (0,), (0,), (1, 2), (0,), (0,), (0,)))
    without = Dag(names, ((), (0,), (0,), (), (0,), (0,), (0,)))
    found = [ExactMargin(p=0.8, start=dag, time_limit=0.0).learn(*problem) for dag in (apart, without)]
    assert found[0].score == found[1].score


def test_a_search_is_the_same_after_a_file(problem, tmp_path) -> None:
    file = tmp_path / "search.npz"
    learner = ExactMargin(p=0.8, node_limit=30, checkpoint=file)
    learner.learn(*problem)
    instance = learner._instance(*problem)
    search = checkpoints.load_search(file, instance)
    checkpoints.save_search(tmp_path / "again.npz", search)
    again = checkpoints.load_search(tmp_path / "again.npz", instance)
    assert [(n.part, n.bound, n.packed.tolist()) for _, _, n in sorted(search.heap, key=lambda e: e[1])] == [
        (n.part, n.bound, n.packed.tolist()) for _, _, n in sorted(again.heap, key=lambda e: e[1])
    ]
    assert search.proof.evidence() == again.proof.evidence()


def test_parts_that_are_under_way_wait_in_a_file_with_all_that_decides_what_becomes_of_them(problem, tmp_path) -> None:
    file = tmp_path / "search.npz"
    learner = ExactMargin(p=0.8, node_limit=60, checkpoint=file)
    found = learner.learn(*problem).certificate
    search = checkpoints.load_search(file, learner._instance(*problem))
    assert 0 < len(search.tasks) < tree.AHEAD
    assert 1 < max(task.parts for task in search.tasks) <= 1 + found.evidence["nodes"] // tree.WIDE
    assert all(
        task.cutoff <= search.incumbent.objective + 1e-6 * abs(search.incumbent.objective) for task in search.tasks
    )
    assert max(task.node.bound for task in search.tasks) <= found.bound
    parts = [node.part for node in search.open_nodes]
    assert len(parts) == len(set(parts)) == search.n_open


def test_whatever_is_under_way_the_record_grows_part_by_part(problem, monkeypatch) -> None:
    monkeypatch.setattr("marginbayes.structure.exact.learner.NEWS", -1.0)
    nodes = []
    ExactMargin(p=0.8, callback=lambda moment: nodes.append(int(moment.note.split()[0]))).learn(*problem)
    assert nodes[-1] > 100
    assert all(new - old <= max(tree.BATCH, 1 + old // tree.WIDE) for old, new in pairwise(nodes))


@pytest.mark.parametrize("n_jobs", [1, 5])
def test_threads_do_not_change_the_course_of_a_search_that_goes_depth_first(problem, whole, n_jobs) -> None:
    assert same(ExactMargin(p=0.8, n_jobs=n_jobs).learn(*problem), whole)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("class_parents", [0, 1])
def test_a_search_ends_although_no_gap_is_allowed(seed: int, class_parents: int) -> None:
    schema, rows = random_problem(seed, [2, 2, 2, 2], 40)
    found = ExactMargin(gap=0.0, class_parents=class_parents, time_limit=60.0).learn(schema, rows).certificate
    assert found.status == "optimal"
    assert verify(found.to_document(), rows.codes).gap < 1e-9


def test_an_objective_of_nothing_is_optimal_whatever_the_rows_weigh() -> None:
    codes, weights = np.array([[0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]], np.uint8), np.full(8, 1e8)
    schema = Schema((Variable("class", (0, 1)), Variable("x", (0, 1))))
    found = ExactMargin().learn(schema, Rows(codes, (2, 2), weights)).certificate
    assert found.status == "optimal"
    assert verify(found.to_document(), codes, weights).objective == found.objective == 0.0


def test_the_points_of_a_trace_are_even_in_the_logarithm_of_time() -> None:
    trace = [(0.01 * k, 1.0, 2.0 + 1.0 / k) for k in range(1, 100_001)]
    found = thinned(trace, 1000)
    assert 300 < len(found) <= 1000
    assert (found[0], found[-1]) == (trace[0], trace[-1])
    times = np.log([seconds for seconds, _, _ in found])
    assert np.diff(times[times > np.log(1.0)]).max() < 0.03


@pytest.mark.parametrize("k", [0, 1])
def test_a_small_margin_below_a_large_gamma_is_proved_as_well_as_asked_for(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, n, levels = np.random.default_rng(1), 1000, 60
    codes = np.array([np.arange(n) % 2, rng.integers(0, levels, n), rng.integers(0, levels, n)])
    cards = (2, levels, levels)
    schema = Schema(tuple(Variable(name, tuple(range(card))) for name, card in zip("yab", cards, strict=True)))
    found = ExactMargin(gamma=1e6, k=k, smoothing=1e4).learn(schema, Rows(codes.astype(np.uint8), cards))
    assert found.certificate.status == "optimal"
    assert verify(found.certificate.to_document(), codes).gap <= 1e-6
    monkeypatch.setattr(tree, "ROUNDING", 0.0)
    strict = ExactMargin(gamma=1e6, k=k, smoothing=1e4, gap=1e-12).learn(schema, Rows(codes.astype(np.uint8), cards))
    assert strict.certificate.status == "stalled"
    verify(strict.certificate.to_document(), codes)


def test_what_is_compiled_at_its_first_use_does_not_count_as_time(problem, monkeypatch: pytest.MonkeyPatch) -> None:
    real, ahead = time.perf_counter, []
    monkeypatch.setattr(time, "perf_counter", lambda: real() + sum(ahead))
    monkeypatch.setattr("marginbayes.structure.exact.learner._compile_kernels", lambda: ahead.append(1e6))
    ExactMargin(p=0.8).learn(*problem)
    assert not ahead  # without a limit there is no need
    found = ExactMargin(p=0.8, time_limit=1000.0).learn(*problem)
    assert ahead == [1e6]
    assert found.certificate.status == "optimal"


def test_with_two_classes_both_margins_take_the_same_course() -> None:
    rng = np.random.default_rng(7)
    schema = Schema(tuple(Variable(name, (0, 1)) for name in "yabcdef"))
    rows = Rows(rng.integers(0, 2, (7, 60)).astype(np.uint8), (2,) * 7)
    found = [ExactMargin(margin, p=0.6, node_limit=6).learn(schema, rows) for margin in ("sm", "sbm")]
    assert found[0].dag == found[1].dag
    assert found[0].certificate.bound == found[1].certificate.bound
    assert found[1].certificate.evidence["margin"] == "sbm"
    for result in found:
        verify(result.certificate.to_document(), rows.codes)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_without_a_row_that_counts_there_is_no_margin(problem, k: int) -> None:
    schema, rows = problem
    with pytest.raises(ValueError, match="no row with a label has a weight above zero"):
        ExactMargin(k=k).learn(schema, rows.reweighted(np.zeros(len(rows))))


@pytest.mark.parametrize("seed", [8, 32])
def test_a_gamma_beyond_all_margins_leaves_proofs_that_can_be_checked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 20)
    codes = np.array([y, *((rng.integers(0, 3, 20) + y * (i % 2)) % 3 for i in range(3))], np.uint8)
    schema = Schema(tuple(Variable(name, tuple(range(c))) for name, c in zip("yabc", (2, 3, 3, 3), strict=True)))
    found = ExactMargin(gamma=1e5, k=2).learn(schema, Rows(codes, (2, 3, 3, 3)))
    assert found.certificate.status == "optimal"
    verify(found.certificate.to_document(), codes)
