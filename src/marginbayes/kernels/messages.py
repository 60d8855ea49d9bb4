"""What missing cells add to the log joint of many rows: exact sums, each made once and remembered.

A row's *factors* are the tables of its families with the observed cells put in. Missing variables are summed out in a
fixed order; each sum makes a *message*, which is a factor of its own. A message depends on nothing but its factors, and
rows share most of them: those already made are found again by the numbers of their factors, which spares most sums.

Every factor is read through strides into one flat array, tables first and messages behind them. The target's axis is
never summed: all sums run on vectors over the target's levels. They use plain probabilities where a lower bound on the
factors proves that nothing can underflow, and logarithms otherwise.

A *tape* says of which factors each message was made, for those who need derivatives (`elimination`).

What is called from one place only is inlined. Functions take the arrays they need rather than one tuple of all of them,
which makes faster code; arrays are allocated outside, and counters start as `np.int64` (a plain 0 is a type of its own,
for which callees would be compiled once more), which makes for a shorter wait at the first call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginbayes.kernels.compiling import njit
from marginbayes.kernels.layout import (
    AT,
    BASE,
    CSTRIDE,
    FIRST,
    FREE,
    HEAD,
    HOLDS,
    KIND,
    LOGS,
    NUMBER,
    PLAIN,
    SCOPE,
    TSTRIDE,
    VSTRIDE,
    WHICH,
    Flags,
    Floats,
    Indices,
    Ints,
    Memory,
    Plan,
)
from marginbayes.kernels.summation import fill_message

__all__ = ["SAFE_LOG", "sum_rows"]

Row = NDArray[np.int32]

# A product whose factors are proved to stay above exp(-600) cannot underflow a float64 (smallest normal: exp(-708)).
SAFE_LOG = -600.0
# A factor's number in keys is its position times this, plus a mask of its free members.
MASKS = 1 << 32
LOW_BITS = (1 << 31) - 1


@njit(inline="always", error_model="numpy")
def _list_missing(
    row: Row, cards: Ints, order: Indices, upward: Indices, child_at: Ints, child: Ints, prune: bool,
    needed: Flags, gone: Ints, todo: Ints,
) -> tuple[int, int]:  # fmt: skip
    """List the missing variables, children before parents, and those of them to be summed out; returns both numbers.

    A missing variable is needed if it has a needed child, as observed ones and the target are; the others sum to one
    and drop out. Lists are written without a branch, which the processor could not predict.
    """
    n_gone: Any = np.int64(0)
    n_todo: Any = np.int64(0)
    for k in range(np.uint64(len(upward))):
        gone[n_gone] = upward[k]
        n_gone += row[upward[k]] >= cards[upward[k]]
    if prune:
        for k in range(n_gone):
            needed[gone[k]] = False
            for j in range(child_at[gone[k]], child_at[gone[k] + 1]):
                needed[gone[k]] |= needed[child[j]]
    for k in range(np.uint64(len(order))):
        todo[n_todo] = order[k]
        n_todo += (row[order[k]] >= cards[order[k]]) & needed[order[k]]
    return n_gone, n_todo


@njit(inline="always", error_model="numpy")
def _restrict(
    f: int, row: Row, cards: Ints, base: int, member_at: Ints, member: Ints, stride: Ints, factor: Ints, width: int
) -> None:
    """Make family f a factor: put the observed cells in; what stays free is its scope."""
    n, mask = 0, 0
    for m in range(member_at[f], member_at[f + 1]):
        v = member[m]
        mask *= 2
        if row[v] < cards[v]:
            base += stride[m] * row[v]
        else:
            factor[f, FIRST + n], factor[f, FIRST + width + n] = v, stride[m]
            mask += 1
            n += 1
    factor[f, BASE], factor[f, FREE], factor[f, NUMBER] = base, n, base * MASKS + mask


@njit(inline="always", error_model="numpy")
def _add_families(
    v: int, turn: int, row: Row, plan: Plan, needed: Flags, stamp: Ints, factor: Ints, alive: Ints, n: int
) -> int:
    """The families of v and of its needed children become living factors, unless they are; returns how many live."""
    for j in range(plan.child_at[v] - 1, plan.child_at[v + 1]):
        f = v if j < plan.child_at[v] else plan.child[j]
        if stamp[f] != turn and needed[f]:
            stamp[f] = turn
            _restrict(f, row, plan.cards, plan.base[f], plan.member_at, plan.member, plan.stride, factor, plan.width)
            alive[n] = f
            n += 1
    return n


@njit(inline="always", error_model="numpy")
def _use_up(
    v: int, n_alive: int, factor: Ints, alive: Ints, used: Ints, scope: Ints, width: int
) -> tuple[int, int, int]:
    """Take the living factors that hold v; returns how many live on, how many are used, and the message's variables."""
    left: Any = np.int64(0)
    n_used: Any = np.int64(0)
    n_scope: Any = np.int64(0)
    for k in range(n_alive):
        f = alive[k]
        vstride = 0
        for m in range(factor[f, FREE]):
            if factor[f, FIRST + m] == v:
                vstride = factor[f, FIRST + width + m]
        if vstride == 0:
            alive[left] = f
            left += 1
            continue
        used[n_used, AT], used[n_used, VSTRIDE], used[n_used, CSTRIDE] = factor[f, BASE], vstride, factor[f, TSTRIDE]
        used[n_used, WHICH], used[n_used, KIND] = f, factor[f, HOLDS]
        n_used += 1
        for m in range(factor[f, FREE]):
            u = factor[f, FIRST + m]
            known = u == v
            for j in range(n_scope):
                known = known or scope[j] == u
            if not known:
                scope[n_scope] = u
                n_scope += 1
    return left, n_used, n_scope


@njit(inline="always", error_model="numpy")
def _find(v: int, n_used: int, used: Ints, factor: Ints, entries: int, bucket: Ints, key: Ints, key_at: Ints) -> int:
    """Bucket of the message with these factors, or an empty one; its key is written behind those of all entries."""
    new, n, last = key_at[entries], n_used + 1, len(bucket) - 1
    key[new] = v
    key_at[entries + 1] = new + n
    code = v
    for k in range(n_used):
        number = factor[used[k, WHICH], NUMBER]
        key[new + 1 + k] = number
        code = (code * 1000003 + (number >> 31) + number) & LOW_BITS  # no overflow, so that plain Python agrees
    b = (code ^ (code >> 15)) & last
    while bucket[b] >= 0:
        old = key_at[bucket[b]]
        j = 0 if key_at[bucket[b] + 1] - old == n else n + 1
        while j < n and key[old + j] == key[new + j]:
            j += 1
        if j == n:
            break
        b = (b + 1) & last
    return int(b)


@njit(inline="always", error_model="numpy")
def _spread_strides(n_used: int, n_scope: int, used: Ints, scope: Ints, factor: Ints, width: int) -> None:
    """Stride of each variable of the message in each used factor, 0 where it is absent."""
    for k in range(n_used):
        f = used[k, WHICH]
        for j in range(n_scope):
            used[k, SCOPE + j] = 0
            for m in range(factor[f, FREE]):
                if factor[f, FIRST + m] == scope[j]:
                    used[k, SCOPE + j] = factor[f, FIRST + width + m]


@njit(inline="always", error_model="numpy")
def _write_tape(
    v: int, n_used: int, n_scope: int, used: Ints, scope: Ints, entry: int, tape: Ints, tape_at: Ints
) -> None:
    """Put on tape of what a message was made."""
    here = tape_at[entry]
    tape[here], tape[here + 1], tape[here + 2] = v, n_used, n_scope
    here += HEAD
    for j in range(n_scope):
        tape[here + j] = scope[j]
    here += n_scope
    for k in range(n_used):
        for j in range(SCOPE + n_scope):
            tape[here + j] = used[k, j]
        here += SCOPE + n_scope
    tape_at[entry + 1] = here


@njit(inline="always", error_model="numpy")
def _as_factor(
    f: int, room: int, plain: bool, n_scope: int, scope: Ints, cards: Ints, levels: int, factor: Ints, width: int
) -> None:
    """Make a message the factor f."""
    factor[f, BASE], factor[f, TSTRIDE], factor[f, FREE], factor[f, NUMBER] = room, 1, n_scope, room * MASKS
    factor[f, HOLDS] = PLAIN if plain else LOGS
    by = levels
    for j in range(n_scope - 1, -1, -1):
        factor[f, FIRST + j], factor[f, FIRST + width + j] = scope[j], by
        by *= cards[scope[j]]


@njit(inline="always")
def _extent(n_scope: int, scope: Ints, cards: Ints, n_used: int, used: Ints, low: Floats) -> tuple[int, float]:
    """Cells of a message, and the log of a lower bound on its positive entries."""
    cells: Any = np.int64(1)
    bound = 0.0
    for j in range(n_scope):
        cells *= cards[scope[j]]
    for k in range(n_used):
        bound += low[used[k, WHICH]]
    return cells, bound


@njit(inline="always")
def _add_ready(joint: Floats, n: int, values: Floats, n_ready: int, ready: Ints, finals: Ints, final_at: Ints) -> None:
    """Add the messages over the target alone to the row's log joint, and note where they start if that is wanted."""
    for k in range(n_ready):
        start = np.uint64(ready[k])
        for c in range(np.uint64(joint.shape[1])):
            joint[n, c] += values[start + c]
        if len(finals) > 0:
            finals[final_at[n] + k] = ready[k]
    if len(finals) > 0:
        final_at[n + 1] = final_at[n] + n_ready


@njit(cache=True, nogil=True, error_model="numpy")
def sum_rows(
    rows: NDArray[np.int32], first: int, joint: Floats, plan: Plan, memory: Memory, finals: Ints, final_at: Ints
) -> tuple[int, int]:
    """Add to the log joint of a row's wholly observed families (rows x target levels) what the others sum to.

    Begins at row `first`. Returns the row at which the memory is full (the number of rows if it never is), and 0, or
    the message cells that this row lacked although all was forgotten before it. `finals`, where it has room, gets for
    each row where the messages that were added start: `finals[final_at[n] : final_at[n + 1]]`.
    """
    (
        values, bucket, key, key_at, room, bounds, tape, tape_at, size, needed, stamp, alive, factor, low, used, scope,
        at, term, total, gone, todo, ready,
    ) = memory  # fmt: skip
    cards, width = plan.cards, plan.width
    d, levels, last = len(cards), joint.shape[1], len(values) - joint.shape[1]
    entries, end = size[0], size[1]
    for n in range(first, len(rows)):
        row, fresh = rows[n], entries == 0
        on_tape = d * (HEAD + 2 * SCOPE + 3 * width) if len(tape) > 0 else 0  # the most that one row may write there
        full = 2 * (entries + d) > len(bucket) or key_at[entries] + 6 * d > len(key)
        if full or tape_at[entries] + on_tape > len(tape):
            return n, 0
        n_alive, n_ready, free = 0, 0, d
        n_gone, n_todo = _list_missing(
            row, cards, plan.order, plan.upward, plan.child_at, plan.child, plan.prune, needed, gone, todo
        )
        lacking: Any = np.int64(0)
        for k in range(n_todo):
            v = todo[k]
            n_alive = _add_families(v, n, row, plan, needed, stamp, factor, alive, n_alive)
            n_alive, n_used, n_scope = _use_up(v, n_alive, factor, alive, used, scope, width)
            b = _find(v, n_used, used, factor, entries, bucket, key, key_at)
            if bucket[b] < 0:
                cells, bound = _extent(n_scope, scope, cards, n_used, used, low)
                if end + cells * levels > last:
                    lacking = end + cells * levels - len(plan.logs)
                    break
                _spread_strides(n_used, n_scope, used, scope, factor, width)
                plain = bound > SAFE_LOG
                fill_message(
                    cards[v], cells, plain, n_used, n_scope, used, scope, cards, at, term, total, plan.logs, values, end
                )
                if len(tape) > 0:
                    _write_tape(v, n_used, n_scope, used, scope, entries, tape, tape_at)
                bucket[b], room[entries], bounds[entries] = entries, end, bound
                entries += 1
                end += cells * levels
            e = bucket[b]
            if n_scope == 0:
                ready[n_ready] = room[e]
                n_ready += 1
            else:
                low[free] = bounds[e]
                _as_factor(free, room[e], bounds[e] > SAFE_LOG, n_scope, scope, cards, levels, factor, width)
                alive[n_alive] = free
                n_alive += 1
                free += 1
        for k in range(n_gone):
            needed[gone[k]] = True
        size[0], size[1] = entries, end
        if lacking > 0:
            for f in range(d):
                stamp[f] = -1
            return n, (lacking if fresh else 0)
        _add_ready(joint, n, values, n_ready, ready, finals, final_at)
    return len(rows), 0
