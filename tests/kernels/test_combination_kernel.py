from __future__ import annotations

import numpy as np

from marginbayes.kernels.combination import member_margins


def test_margins_are_differences_of_sums_of_looked_up_weights() -> None:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(7, 3, 2))
    cells = rng.integers(-1, 7, size=(5, 4)).astype(np.int32)
    labels = rng.integers(0, 3, size=5)
    margins = np.empty((5, 2, 2))
    member_margins(cells, weights, labels, margins)
    for n, label in enumerate(labels):
        scores = sum((weights[c] for c in cells[n] if c >= 0), np.zeros((3, 2)))
        rivals = [c for c in range(3) if c != label]
        np.testing.assert_allclose(margins[n], [scores[label] - scores[c] for c in rivals])
