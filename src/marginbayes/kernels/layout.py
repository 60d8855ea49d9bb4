"""How networks, factors and remembered messages lie in flat arrays, for exact sums over missing cells.

Factors are numbered: first the families, then the messages of a row. A factor and a factor that is used in a sum are
lines of whole numbers, whose columns have the names below.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Memory", "Plan", "new_memory"]

Ints = NDArray[np.int64]
# Of what is only used to index: numba need not ask whether it counts from the end.
Indices = NDArray[np.uint64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Places for remembered messages; half of them are used at most, then all is forgotten.
BUCKETS = 1 << 15
# Columns of a factor: position, stride of the target, number of free variables, number in keys, what it holds, and from
# FIRST on the free variables and then their strides.
BASE, TSTRIDE, FREE, NUMBER, HOLDS, FIRST = 0, 1, 2, 3, 4, 5
# What the values of a factor are: a table, for which both are at hand; probabilities; logarithms.
TABLE, PLAIN, LOGS = 0, 1, 2
# Columns of a factor that is used in a sum: position, stride of the summed variable, stride of the target, which factor
# it is, what it holds, and from SCOPE on the strides of the message's variables.
AT, VSTRIDE, CSTRIDE, WHICH, KIND, SCOPE = 0, 1, 2, 3, 4, 5
# On the tape, before the variables of a message and its factors: the summed variable and how many of each there are.
HEAD = 3


class Plan(NamedTuple):
    """A network laid out flat for one target. Family f is that of variable f; the target is never among its members."""

    cards: Ints  # levels of each variable
    target: int
    order: Indices  # in which missing variables are summed out
    upward: Indices  # all but the target, children before parents
    child_at: Ints  # children of i: child[child_at[i] : child_at[i + 1]]
    child: Ints
    member_at: Ints  # members of family f: member[member_at[f] : member_at[f + 1]]
    member: Ints
    stride: Ints  # of each member in the family's table
    tstride: Ints  # of the target in it: 1, or 0 where the family does not hold the target
    base: Ints  # where the table starts
    low: Floats  # log of its smallest positive entry
    logs: Floats  # all tables
    probs: Floats  # exp(logs)
    prune: bool  # whether rows of every table sum to one, so that unobserved leaves drop out
    width: int  # largest scope a factor may have
    capacity: int  # cells for the messages of one row


class Memory(NamedTuple):
    """The messages made so far, and buffers for one row at a time. Factors are numbered: families, then messages."""

    # Probabilities of all tables; messages: logarithms if they are over the target alone (or could underflow), else
    # probabilities; and a vector of ones at the end.
    values: Floats
    bucket: Ints  # number of the message in each place, -1: none
    key: Ints  # key of message e: key[key_at[e] : key_at[e + 1]]
    key_at: Ints
    room: Ints  # where its values start
    bounds: Floats  # log of a lower bound on its positive entries
    tape: Ints  # what it was made of: tape[tape_at[e] : tape_at[e + 1]]; without room where nobody asks
    tape_at: Ints
    size: Ints  # number of messages, end of their values
    needed: Flags
    stamp: Ints  # the last row in which a family became a factor
    alive: Ints
    factor: Ints
    low: Floats
    used: Ints
    scope: Ints
    at: Ints  # position of each used factor for one cell of a message
    term: Floats  # one product, and a sum of them, for all levels of the target
    total: Floats
    gone: Ints  # missing variables
    todo: Ints  # those to be summed out
    ready: Ints  # messages over the target alone


def new_memory(plan: Plan, with_tape: bool = False) -> Memory:
    """Memory without messages, for a network laid out like this."""
    d, width, levels, end = len(plan.cards), plan.width, int(plan.cards[plan.target]), len(plan.logs)
    values = np.empty(end + plan.capacity + levels)
    values[:end], values[-levels:] = plan.probs, 1.0
    buckets = max(BUCKETS, 1 << int(math.log2(8 * d)))
    factor, low = np.zeros((2 * d, FIRST + 2 * width), np.int64), np.zeros(2 * d)
    factor[:d, TSTRIDE], low[:d] = plan.tstride, plan.low

    def ints(*shape: int) -> Ints:
        return np.zeros(shape, np.int64)

    return Memory(
        values,
        np.full(buckets, -1),
        np.empty(8 * buckets, np.int64),
        ints(buckets),
        ints(buckets),
        np.zeros(buckets),
        np.empty(max(1 << 20, 4 * d * (HEAD + 2 * SCOPE + 3 * width)) if with_tape else 0, np.int64),
        ints(buckets),
        np.array([0, end]),
        np.ones(d, bool),
        np.full(d, -1),
        ints(2 * d),
        factor,
        low,
        ints(2 * d, SCOPE + width),
        ints(width),
        ints(2 * d),
        np.zeros(levels),
        np.zeros(levels),
        ints(d + 1),
        ints(d + 1),
        ints(d + 1),
    )
