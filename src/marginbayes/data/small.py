"""A small table for learners to be compiled on, so that no time limit is spent on the compiler."""

from __future__ import annotations

import numpy as np

from marginbayes.data.rows import Rows
from marginbayes.data.schema import Schema, Variable

__all__ = ["small_table"]


def small_table() -> tuple[Schema, Rows]:
    """Forty rows of a class and six features, three levels each, without any pattern."""
    cards = (3,) * 7
    codes = np.random.default_rng(0).integers(0, 3, (len(cards), 40)).astype(np.uint8)
    return Schema(tuple(Variable(f"v{i}", tuple(range(c))) for i, c in enumerate(cards))), Rows(codes, cards)
