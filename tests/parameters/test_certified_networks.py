"""Networks of certified weights: which of the networks that decide alike is taken."""

from __future__ import annotations

import numpy as np
import pytest

from marginbayes import Dag
from marginbayes.parameters import MaximumLikelihood
from marginbayes.parameters.certified import as_network
from marginbayes.parameters.design import Design
from tests.oracles.brute import random_network

TAN = Dag(tuple("yabc"), ((), (0,), (0, 1), (0, 2)))


@pytest.mark.parametrize(("largest", "plain"), [(1e6, False), (np.nextafter(1e6, np.inf), True)])
def test_weights_beyond_a_million_are_renormalised_plainly(largest: float, plain: bool) -> None:
    rng = np.random.default_rng(0)
    network = random_network(rng, TAN, (3, 2, 3, 2))
    rows = network.sample(60, rng)
    reference, design = MaximumLikelihood().learn(network.schema, TAN, rows).network, Design.of(TAN, rows, 1)
    weights = np.log(rng.random(design.shape))
    weights.flat[np.abs(weights).argmax()] = -largest
    found, expected = (as_network(network.schema, design, weights, reference, how)[0] for how in ("likeliest", "plain"))
    assert (found == expected) == plain
