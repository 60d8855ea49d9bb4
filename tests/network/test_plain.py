"""The plain sums of a few rows, against enumeration and against the compiled ones."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from marginbayes.network import evaluate
from marginbayes.network.evaluate import Evaluator
from tests.oracles.brute import log_joint, random_dag, random_network, with_holes


def evaluator(network, target: int = 0) -> Evaluator:
    return Evaluator(network.dag, network.schema.cardinalities, network.tables, target, network.normalized)


@pytest.mark.parametrize("holes", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_plain_sums_are_those_over_all_completions(seed: int, holes: float) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng, random_dag(rng, 6, 3), zeros=0.2 * (seed % 2))
    rows = with_holes(rng, network.sample(12, rng), holes)
    target = int(rng.integers(6))
    with np.errstate(invalid="raise"):
        found = evaluator(network, target)._eliminate_plainly(rows.codes)
    np.testing.assert_allclose(found, log_joint(network, rows, target), atol=1e-12)


def test_plain_and_compiled_sums_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    network = random_network(rng, random_dag(rng, 9, 3))
    rows = with_holes(rng, network.sample(60, rng), 0.4)
    plain = network.log_joint(rows)
    monkeypatch.setattr(evaluate, "PLAIN_CELLS", 0)
    np.testing.assert_allclose(plain, network.log_joint(rows), atol=1e-12)


def test_a_few_rows_with_missing_cells_do_not_load_the_compiler() -> None:
    program = (
        "import sys, numpy as np; from marginbayes import BayesNetClassifier; r = np.random.default_rng(0); "
        "X = r.integers(0, 4, (99, 4)) * 1.0; y = r.integers(0, 3, 99); "
        "c = BayesNetClassifier('tan', discretizer=None).fit(X, y); X[::3, :3] = np.nan; c.predict_proba(X); "
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(("n_rows", "is_compiled"), [(40_000, False), (200_000, True)])
def test_many_rows_are_never_summed_plainly_block_by_block(
    monkeypatch: pytest.MonkeyPatch, n_rows: int, is_compiled: bool
) -> None:
    rng = np.random.default_rng(8)
    network = random_network(rng, random_dag(rng, 4, 1), (2, 2, 2, 2))
    rows = with_holes(rng, network.sample(n_rows, rng), 0.3)
    own = evaluator(network)
    cells_of_row = own._order[2] * 2 * 2
    monkeypatch.setattr(evaluate, "PLAIN_CELLS", 40_000 * cells_of_row)  # more than a block may need
    compiled = []
    add_sums = Evaluator._add_sums
    monkeypatch.setattr(Evaluator, "_add_sums", lambda *given: compiled.append(add_sums(*given)))
    own.log_joint(rows)
    assert bool(compiled) == is_compiled
