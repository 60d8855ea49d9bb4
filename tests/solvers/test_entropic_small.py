from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from marginbayes import Dag
from marginbayes.kernels import path_step
from marginbayes.parameters import MarginHybrid
from marginbayes.solvers import entropic_small
from marginbayes.solvers.entropic_small import SmallPath
from marginbayes.verification import verify
from tests.oracles import margin
from tests.oracles.brute import random_dag, random_network, with_holes


def case(seed: int) -> tuple[Any, Dag, Any, float, float]:
    """Network, graph, rows, B and target: of one class or many, one row or many, with weights and holes."""
    rng = np.random.default_rng(seed)
    dag = random_dag(rng, 5, 2)
    classes = (1, 2, 3, 7)[seed % 4]
    network = random_network(rng, dag, (classes, 2, 3, 4, 2))
    n = (1, 20, 60, 150)[seed // 2 % 4]
    rows = with_holes(rng, network.sample(n, rng), (0.0, 0.3)[seed // 3 % 2], keep_class=True)
    B, target = [(1e-3, 1.0), (1.0, 1.0), (10.0, 5.0), (100.0, 10.0), (100.0, 0.1)][seed % 5]
    return network, dag, rows.reweighted(rng.random(n) * 2), B, target


@pytest.mark.parametrize("seed", range(40))
def test_the_compiled_path_and_that_over_arrays_have_one_optimum_and_verified_bounds(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, dag, rows, B, target = case(seed)
    found = []
    for small in (True, False):
        monkeypatch.setattr(SmallPath, "suits", lambda problem, small=small: small)  # noqa: ARG005
        proof = MarginHybrid(B, target, tol=1e-7).learn(network.schema, dag, rows).certificate
        assert proof is not None
        assert proof.status.startswith("optimal")
        report = verify(proof.to_document(), rows.codes, rows.weights)
        assert report.gap <= 1.01e-7
        found.append(proof)
    scale = max(1.0, abs(found[0].objective))
    assert abs(found[0].objective - found[1].objective) <= 1e-7 * scale
    assert max(p.bound for p in found) <= min(p.objective for p in found) + 1e-12 * scale


@pytest.mark.parametrize("seed", [2, 3, 6, 7, 10, 11, 17, 18])
def test_the_optimum_of_the_compiled_path_is_that_of_a_generic_solver(seed: int) -> None:
    cp = pytest.importorskip("cvxpy")
    network, dag, rows, B, target = case(seed)
    proof = MarginHybrid(B, target, tol=1e-8).learn(network.schema, dag, rows).certificate
    assert proof is not None
    assert proof.objective == pytest.approx(margin.hybrid(cp, dag, rows, B, target), rel=1e-6, abs=1e-6)


def test_conjugate_gradients_that_take_too_long_allow_for_more_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    dag = Dag.naive([f"v{i}" for i in range(9)])
    network = random_network(rng, dag, (4, *([4] * 8)))
    rows = network.sample(150, rng)
    sizes: list[int] = []
    move = path_step.move

    def noting(*arguments: Any) -> Any:
        sizes.append(len(arguments[4]))
        return move(*arguments)

    monkeypatch.setattr(path_step, "move", noting)
    monkeypatch.setattr(entropic_small, "FEW_MODES", 5)
    monkeypatch.setattr(entropic_small, "MANY_MODES", 5)
    monkeypatch.setattr(entropic_small, "MANY_WEIGHTS", 0)
    few = MarginHybrid(10.0, 5.0).learn(network.schema, dag, rows).certificate
    assert max(sizes) > 5
    assert sizes[0] <= 5
    monkeypatch.undo()
    many = MarginHybrid(10.0, 5.0).learn(network.schema, dag, rows).certificate
    assert few is not None
    assert many is not None
    assert few.status == many.status == "optimal"
    assert few.objective == pytest.approx(many.objective, rel=2e-6)


def test_a_compiled_path_that_leads_nowhere_is_left_for_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    network, dag, rows, B, target = case(6)
    whole = MarginHybrid(B, target).learn(network.schema, dag, rows).certificate
    seen: list[object] = []
    monkeypatch.setattr(SmallPath, "appraise", lambda *args: seen.append(args[0]))  # it never has anything better
    proof = MarginHybrid(B, target).learn(network.schema, dag, rows).certificate
    assert whole is not None
    assert proof is not None
    assert seen
    assert proof.status == whole.status == "optimal"
    assert proof.objective == pytest.approx(whole.objective, rel=2e-6)
