"""What missing cells add to the log joint of many rows: exact sums, each made once and remembered.

A row's *factors* are the tables of its families with the observed cells put in. Missing variables are summed out in a
fixed order; each sum makes a *message*, which is a factor of its own. A message depends on nothing but its factors, and
rows share most of them: those already made are found again by the numbers of their factors, which spares most sums.

Every factor is read through strides into one flat array, tables first and messages behind them. The target's axis is
never summed: all sums run on vectors over the target's levels. They use plain probabilities where a lower bound on the
factors proves that nothing can underflow, and logarithms otherwise.

Functions take the arrays they need rather than one tuple of all of them, which makes faster code. What is called from
one place only is inlined.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marginbayes.kernels.elimination import SAFE_LOG, Plan

__all__ = ["add_messages"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Row = NDArray[np.int32]

# Places for remembered messages; half of them are used at most, then all is forgotten.
BUCKETS = 1 << 15
# A factor's number in keys is its position times this, plus a mask of its free members.
MASKS = 1 << 32
PRIME = (1 << 31) - 1
# Columns of a factor: position, stride of the target, number of free variables, number in keys, and from FIRST on the
# free variables and then their strides.
BASE, TSTRIDE, FREE, NUMBER, FIRST = 0, 1, 2, 3, 4
# Columns of a factor that is used in a sum: position, stride of the summed variable, stride of the target, which factor
# it is, and from SCOPE on the strides of the message's variables.
AT, VSTRIDE, CSTRIDE, WHICH, SCOPE = 0, 1, 2, 3, 4


@njit(inline="always", error_model="numpy")
def _mark_needed(
    row: Row, cards: Ints, target: int, topo: Ints, child_at: Ints, child: Ints, needed: NDArray[np.bool_]
) -> None:
    """needed[i]: i is observed, is the target, or has a needed child. The others sum to one and drop out."""
    for k in range(len(topo) - 1, -1, -1):
        i = topo[k]
        needed[i] = row[i] < cards[i] or i == target
        if not needed[i]:
            for j in range(child_at[i], child_at[i + 1]):
                if needed[child[j]]:
                    needed[i] = True
                    break


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
    v: int, turn: int, row: Row, plan: Plan, needed: NDArray[np.bool_], stamp: Ints, factor: Ints, alive: Ints, n: int
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
    left, n_used, n_scope = 0, 0, 0
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
        used[n_used, AT], used[n_used, VSTRIDE] = factor[f, BASE], vstride
        used[n_used, CSTRIDE], used[n_used, WHICH] = factor[f, TSTRIDE], f
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
        code = (code * 1000003 + number % PRIME) % PRIME  # never beyond 2^52, so that plain Python agrees
    b = code & last
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


@njit(nogil=True, error_model="numpy")
def _locate(cell: int, n_used: int, n_scope: int, used: Ints, scope: Ints, cards: Ints, at: Ints) -> None:
    """at[k]: where used factor k stands for one assignment of the message's variables (the last one fastest)."""
    for k in range(n_used):
        at[k] = used[k, AT]
    for j in range(n_scope - 1, -1, -1):
        x = cell % cards[scope[j]]
        cell //= cards[scope[j]]
        for k in range(n_used):
            at[k] += x * used[k, SCOPE + j]


@njit(nogil=True, error_model="numpy")
def _sum_plain(
    card: int, n_used: int, used: Ints, at: Ints, term: Floats, total: Floats, logs: Floats, probs: Floats, here: int
) -> None:
    """Sum over x of the product of the used factors; the last one is multiplied on the way into the sum."""
    levels, last = np.uint64(len(term)), n_used - 1
    both = n_used == 2 and used[0, CSTRIDE] == 1 and used[1, CSTRIDE] == 1
    for c in range(levels):
        total[c] = 0.0
    for x in range(card):
        b = np.uint64(at[last] + x * used[last, VSTRIDE])
        if both:
            a = np.uint64(at[0] + x * used[0, VSTRIDE])
            for c in range(levels):
                total[c] += probs[a + c] * probs[b + c]
            continue
        for c in range(levels):
            term[c] = 1.0
        for k in range(last):
            a = np.uint64(at[k] + x * used[k, VSTRIDE])
            if used[k, CSTRIDE] == 1:
                for c in range(levels):
                    term[c] *= probs[a + c]
            else:
                for c in range(levels):
                    term[c] *= probs[a]
        if used[last, CSTRIDE] == 1:
            for c in range(levels):
                total[c] += term[c] * probs[b + c]
        else:
            for c in range(levels):
                total[c] += term[c] * probs[b]
    out = np.uint64(here)
    for c in range(levels):
        probs[out + c] = total[c]
        logs[out + c] = math.log(total[c]) if total[c] > 0.0 else -np.inf


@njit(nogil=True, error_model="numpy")
def _sum_logs(
    card: int, n_used: int, used: Ints, at: Ints, levels: int, logs: Floats, probs: Floats, here: int
) -> None:
    """Log-sum-exp in one pass, with a running maximum for each level of the target."""
    for c in range(levels):
        top, total = -np.inf, 0.0
        for x in range(card):
            value = 0.0
            for k in range(n_used):
                value += logs[at[k] + x * used[k, VSTRIDE] + c * used[k, CSTRIDE]]
            if value > top:
                total = total * math.exp(top - value) + 1.0
                top = value
            elif value > -np.inf:
                total += math.exp(value - top)
        logs[here + c] = top + math.log(total) if total > 0.0 else -np.inf
        probs[here + c] = math.exp(logs[here + c])


@njit(nogil=True, error_model="numpy")
def _make(
    card: int, cells: int, plain: bool, n_used: int, n_scope: int, used: Ints, scope: Ints, cards: Ints, at: Ints,
    term: Floats, total: Floats, logs: Floats, probs: Floats, end: int,
) -> None:  # fmt: skip
    """Fill the cells of a message, from `end` on."""
    levels = len(term)
    for cell in range(cells):
        _locate(cell, n_used, n_scope, used, scope, cards, at)
        if plain:
            _sum_plain(card, n_used, used, at, term, total, logs, probs, end + cell * levels)
        else:
            _sum_logs(card, n_used, used, at, levels, logs, probs, end + cell * levels)


@njit(inline="always", error_model="numpy")
def _as_factor(
    f: int, room: int, n_scope: int, scope: Ints, cards: Ints, levels: int, factor: Ints, width: int
) -> None:
    """Make a message the factor f."""
    factor[f, BASE], factor[f, TSTRIDE], factor[f, FREE], factor[f, NUMBER] = room, 1, n_scope, room * MASKS
    by = levels
    for j in range(n_scope - 1, -1, -1):
        factor[f, FIRST + j], factor[f, FIRST + width + j] = scope[j], by
        by *= cards[scope[j]]


@njit(nogil=True, error_model="numpy")
def _tables(plan: Plan) -> tuple[Floats, Floats]:
    """Logs and probabilities of all tables, with room for messages behind them."""
    n = len(plan.logs)
    logs, probs = np.empty(n + plan.capacity), np.empty(n + plan.capacity)
    for i in range(n):
        logs[i], probs[i] = plan.logs[i], plan.probs[i]
    return logs, probs


@njit(inline="always")
def _extent(
    n_scope: int, scope: Ints, cards: Ints, n_used: int, used: NDArray[np.int64], low: Floats
) -> tuple[int, float]:
    """Cells of a message, and the log of a lower bound on its positive entries."""
    cells, bound = 1, 0.0
    for j in range(n_scope):
        cells *= cards[scope[j]]
    for k in range(n_used):
        bound += low[used[k, WHICH]]
    return cells, bound


@njit(inline="always")
def _add_row(joint: Floats, n: int, logs: Floats, room: int) -> None:
    start = np.uint64(room)
    for c in range(np.uint64(joint.shape[1])):
        joint[n, c] += logs[start + c]


@njit(cache=True, nogil=True, error_model="numpy")
def add_messages(rows: NDArray[np.int32], joint: Floats, plan: Plan) -> int:
    """Add to each row's log joint of its wholly observed families (rows x target levels) what the others sum to.

    Returns 0, or the message cells that one row alone lacked; then `joint` is spoilt.
    """
    cards, width = plan.cards, plan.width
    d, levels, tables_end = len(cards), joint.shape[1], len(plan.logs)
    logs, probs = _tables(plan)
    needed, stamp, alive = np.empty(d, np.bool_), np.zeros(d, np.int64), np.empty(2 * d, np.int64)
    factor, low = np.zeros((2 * d, FIRST + 2 * width), np.int64), np.zeros(2 * d)
    for f in range(d):
        needed[f], factor[f, TSTRIDE], low[f] = True, plan.tstride[f], plan.low[f]
    used, scope, at = np.zeros((2 * d, SCOPE + width), np.int64), np.zeros(width, np.int64), np.zeros(2 * d, np.int64)
    term, total, before = np.zeros(levels), np.zeros(levels), np.zeros(levels)
    buckets = max(BUCKETS, 1 << int(math.log2(8 * d)))
    bucket, key, key_at = np.full(buckets, -1), np.empty(8 * buckets, np.int64), np.zeros(buckets, np.int64)
    room, bounds = np.zeros(buckets, np.int64), np.zeros(buckets)
    n, turn, entries, end = 0, 0, 0, tables_end
    while n < len(rows):
        row, turn, lacking = rows[n], turn + 1, 0
        if plan.prune:
            _mark_needed(row, cards, plan.target, plan.topo, plan.child_at, plan.child, needed)
        for c in range(np.uint64(levels)):
            before[c] = joint[n, c]
        fresh, full = entries == 0, 2 * (entries + d) > buckets or key_at[entries] + 6 * d > len(key)
        n_alive, free = 0, d
        for v in plan.order:
            if full or row[v] < cards[v] or not needed[v]:
                continue
            n_alive = _add_families(v, turn, row, plan, needed, stamp, factor, alive, n_alive)
            n_alive, n_used, n_scope = _use_up(v, n_alive, factor, alive, used, scope, width)
            b = _find(v, n_used, used, factor, entries, bucket, key, key_at)
            if bucket[b] < 0:
                cells, bound = _extent(n_scope, scope, cards, n_used, used, low)
                if end + cells * levels > len(logs):
                    lacking = end + cells * levels - tables_end
                    break
                _spread_strides(n_used, n_scope, used, scope, factor, width)
                plain = bound > SAFE_LOG
                _make(cards[v], cells, plain, n_used, n_scope, used, scope, cards, at, term, total, logs, probs, end)
                bucket[b], room[entries], bounds[entries] = entries, end, bound
                entries += 1
                end += cells * levels
            e = bucket[b]
            if n_scope == 0:
                _add_row(joint, n, logs, room[e])
            else:
                low[free] = bounds[e]
                _as_factor(free, room[e], n_scope, scope, cards, levels, factor, width)
                alive[n_alive] = free
                n_alive += 1
                free += 1
        if lacking and fresh:
            return int(lacking)
        if lacking or full:  # forget, and take the same row again
            for c in range(levels):
                joint[n, c] = before[c]
            for b in range(buckets):
                bucket[b] = -1
            entries, end = 0, tables_end
        else:
            n += 1
    return 0
