"""The AODE kernel against its definition, written out; also run with NUMBA_DISABLE_JIT=1."""

from __future__ import annotations

import numpy as np

from marginbayes.kernels.aode import average_joint


def test_the_kernel_is_the_mean_over_all_parents() -> None:
    rng = np.random.default_rng(0)
    cards = np.array([2, 3, 4])
    start = np.array([0, 2, 5])
    base, pair = np.log(rng.random((9, 2))), np.log(rng.random((9, 9, 2)))
    allowed = rng.random(9) < 0.7
    rows = np.array([[rng.integers(0, c + 1) for c in cards] for _ in range(50)])
    joint, served = average_joint(rows, cards, start, allowed, base, pair)
    for n, row in enumerate(rows):
        levels = [start[j] + x for j, x in enumerate(row) if x < cards[j]]
        members = [
            np.exp(base[a] + sum((pair[a, b] for b in levels if b != a), np.zeros(2))) for a in levels if allowed[a]
        ]
        assert served[n] == bool(members)
        if members:
            np.testing.assert_allclose(joint[n], np.log(np.mean(members, axis=0)), atol=1e-12)
    assert served.any()
    assert not served.all()
