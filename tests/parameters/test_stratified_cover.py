from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginbayes import Dag
from marginbayes.data import Rows
from marginbayes.parameters.combination import stratified_cover
from tests.oracles.brute import random_network


def drawn(seed: int, n: int, weighted: bool) -> Rows:
    rng = np.random.default_rng(seed)
    rows = random_network(rng, Dag.naive(list("yabc")), (3, 2, 3, 2)).sample(n, rng)
    return rows.reweighted(rng.random(n) + 0.5) if weighted else rows


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9), st.booleans())
def test_parts_cover_every_row_and_keep_the_shares_of_classes(seed: int, n_parts: int, weighted: bool) -> None:
    rows = drawn(seed, 70, weighted)
    parts = stratified_cover(rows, n_parts, seed)
    counts = np.bincount(rows.codes[0], minlength=3)
    common = [c for c in range(3) if counts[c] >= n_parts]
    sizes = np.array([np.bincount(p.codes[0], minlength=3) for p in parts])
    for c in range(3):
        if c in common:
            assert sizes[:, c].sum() == counts[c]
            assert np.ptp(sizes[:, c]) <= 1
        else:
            assert (sizes[:, c] == counts[c]).all()
    assert np.ptp(sizes[:, common].sum(axis=1)) <= 1
    # Every row with its whole weight, no more and no less.
    merged = rows.merged()[0]
    codes = np.hstack([p.codes for p in parts])
    weights = np.concatenate([np.ones(len(p)) if p.weights is None else p.weights for p in parts])
    again = Rows(codes, rows.cardinalities, weights).merged()[0]
    np.testing.assert_array_equal(merged.codes, again.codes)
    np.testing.assert_allclose(merged.weights, again.weights)


def test_every_part_knows_a_class_with_fewer_rows_than_parts() -> None:
    rows = drawn(6, 60, weighted=False)
    rows = rows.take(np.r_[np.flatnonzero(rows.codes[0] != 2), np.flatnonzero(rows.codes[0] == 2)[:2]])
    for part in stratified_cover(rows, 8, 0):
        assert part.weights[part.codes[0] == 2].sum() == pytest.approx(2 / 8)
